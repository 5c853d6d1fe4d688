"""`qiju maintain`: tiers, archive, drafts, spool and the size of the files, in one pass that may be killed anywhere.

The order makes each phase find what the one before left: the spool is stored, old records leave the short tier, due
months get their Parquet file before their labels move, every other partition is compared with the database and written
anew where it is stale, drafts are swept, and the WAL is given back. Nothing is remembered between runs; each plans from
what is there. A partition that cannot be brought up to date is named and does not stop the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import staging
from qiju.errors import QijuError, StoreBusy
from qiju.files import disk_error, remove_tree
from qiju.keeping import cold, compact, partitions, tiers

if TYPE_CHECKING:
    from qiju.place.config import MaintainConfig
    from qiju.store import Store

LOCK_NAME = "maintain.lock"


class Task(NamedTuple):
    """What to do: one project or all, only to plan, with VACUUM and index merging or without. `now` in microseconds."""

    project: str | None = None
    dry_run: bool = False
    compact: bool = False
    now: int | None = None


class Report(NamedTuple):
    """`value` is what the command prints; `failed` names what could not be done (empty: all is well)."""

    value: dict[str, Any]
    failed: list[str]


def maintain(
    store: Store, limits: MaintainConfig, roots: Iterable[Path], task: Task, progress: Callable[[int], object]
) -> Report:
    """Bring the store's files into order. `roots` are the folders whose drafts are swept.

    Raises `StoreBusy` when another run is under way or the write lock is not to be had.
    """
    now = task.now if task.now is not None else time.time_ns() // 1000
    if task.dry_run:
        return _carry_out(store, limits, roots, task, now, progress)
    lock = _only_one(store.home)
    try:
        return _carry_out(store, limits, roots, task, now, progress)
    finally:
        lock.release()


def _only_one(home: Path) -> Any:
    from qiju.trajectory.filelock import WriterLock

    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, home) from error
    try:
        return WriterLock(home / LOCK_NAME)
    except StoreBusy as error:
        raise StoreBusy("another maintain is under way", hint="wait until it has ended") from error


def _carry_out(
    store: Store,
    limits: MaintainConfig,
    roots: Iterable[Path],
    task: Task,
    now: int,
    progress: Callable[[int], object],
) -> Report:
    db = store.db
    unread = [] if task.dry_run else store.drain_spool()
    rotation = _leave_short(store, limits, task, now, progress)
    archives, failed = _archive(store, limits, task, now)
    fresh = {(entry["project"], item["month"]) for entry in archives for item in entry["archived"]}
    refreshed, stale_failed = _refresh(store, task, fresh)
    failed += stale_failed
    swept = _sweep(roots, limits, task, now)
    left = _leftovers(store.home, task)
    value: dict[str, Any] = {
        "dry_run": task.dry_run,
        "rotation": rotation,
        "staging_sweep": swept,
        "archives": archives,
        "partitions": refreshed,
        "foreign": [
            {"path": str(found.path), "reason": found.reason}
            for found in partitions.foreign(store.home, db.setting("store_id"))
        ],
        "spool": {"unreadable": unread},
        "leftovers": left,
        "tiers": tiers.counts(db, task.project),
        "compact": compact.compact(db, task.dry_run) if task.compact else None,
    }
    if not task.dry_run:
        value["wal"] = compact.checkpoint(db)
    failed += [f"the spool file {name} cannot be read" for name in unread]
    return Report(value, failed)


def _leave_short(
    store: Store, limits: MaintainConfig, task: Task, now: int, progress: Callable[[int], object]
) -> dict[str, Any]:
    due = tiers.due_for_long(store.db, now - int(limits.short_days * tiers.DAY), task.project)
    moved = len(due) if task.dry_run else tiers.move(store.db, due, "short", "long", progress)
    kept = tiers.counts(store.db, task.project)["short"] - (moved if task.dry_run else 0)
    return {"path": str(store.db.path or ""), "removed": moved, "kept": kept}


def _archive(store: Store, limits: MaintainConfig, task: Task, now: int) -> tuple[list[dict[str, Any]], list[str]]:
    """One entry a project, as the predecessor reports it."""
    # A plan counts what the run would have moved into the long tier just before.
    before = now - int(limits.short_days * tiers.DAY) if task.dry_run else None
    months = tiers.months_of_long(store.db, task.project, with_short_before=before)
    due = tiers.due_for_archive(months, now, limits)
    entries: dict[str, dict[str, Any]] = {}
    failed: list[str] = []
    for month in months:
        entry = entries.setdefault(
            month.project, {"project": month.project, "archived": [], "remaining": 0, "warnings": []}
        )
        entry["remaining"] += month.rows
    for month in due:
        entry = entries[month.project]
        if task.dry_run:
            folder = partitions.folder_of(store.home, month.project, month.month)
            entry["archived"].append(_archived(month.month, str(folder), month.rows, month.rows, month.size))
            entry["remaining"] -= month.rows
            continue
        try:
            done = cold.bring_up_to_date(store.db, store.home, month.project, month.month, with_long=True)
        except QijuError as error:
            if _ends_the_run(error):
                raise
            entry["warnings"].append(f"{month.month}: {error}")
            failed.append(str(error))
            continue
        entry["archived"].append(_archived(month.month, str(done.path), done.moved, done.rows, done.size))
        entry["remaining"] -= done.moved
    if task.project is not None:
        entries.setdefault(task.project, {"project": task.project, "archived": [], "remaining": 0, "warnings": []})
    return [entries[name] for name in sorted(entries)], failed


def _ends_the_run(error: QijuError) -> bool:
    """Whether no other partition may be tried: the store is busy, or its database failed.

    A commit that failed may turn out to be done when the store is opened next, so nothing is built on either outcome.
    """
    import apsw

    return isinstance(error, StoreBusy) or isinstance(error.__cause__, apsw.Error)


def _archived(month: str, path: str, moved: int, total: int, size: int) -> dict[str, Any]:
    return {"month": month, "path": path, "entries": moved, "total_entries": total, "size": size}


def _refresh(store: Store, task: Task, fresh: set[tuple[str, str]]) -> tuple[dict[str, Any], list[str]]:
    """Compare every partition with the database; write the stale ones, remove the empty ones."""
    counted: dict[str, Any] = {"current": 0, "rewritten": [], "removed": [], "warnings": []}
    failed: list[str] = []
    for project, month in cold.stale(store.db, store.home, task.project):
        if (project, month) in fresh:
            continue
        path = str(partitions.folder_of(store.home, project, month))
        try:
            if task.dry_run:
                current = cold.is_current(store.db, store.home, project, month, with_long=False)
                state = "current" if current else "written"
            else:
                done = cold.bring_up_to_date(store.db, store.home, project, month, with_long=False)
                state, path = done.state, str(done.path)
        except QijuError as error:
            if _ends_the_run(error):
                raise
            counted["warnings"].append(str(error))
            failed.append(str(error))
            continue
        if state == "current":
            counted["current"] += 1
        else:
            counted["rewritten" if state == "written" else "removed"].append(path)
    return counted, failed


def _leftovers(home: Path, task: Task) -> list[str]:
    """Remove what killed runs left in the home an hour ago or longer."""
    from qiju.keeping.doctor import leftovers

    found = leftovers(home)
    try:
        for path in found if not task.dry_run else ():
            remove_tree(path)
    except OSError as error:
        raise disk_error(error, home) from error
    return [str(path) for path in found]


def _sweep(roots: Iterable[Path], limits: MaintainConfig, task: Task, now: int) -> dict[str, Any]:
    removed = there = 0
    warnings: list[str] = []
    for root in dict.fromkeys(roots):
        folder = staging.staging_dir(root)
        try:
            there += len(staging.sweep(folder, float("-inf"), True, now=now / 1e6))
            removed += len(staging.sweep(folder, limits.staging_hours * 3600, task.dry_run, now=now / 1e6))
        except QijuError as error:
            warnings.append(str(error))
    ttl = limits.staging_hours
    return {
        "removed": removed,
        "kept": there - removed,
        "ttl_hours": int(ttl) if ttl == int(ttl) else ttl,
        **({"warnings": warnings} if warnings else {}),
    }
