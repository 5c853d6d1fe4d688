"""Every file in which a secret may lie outside the database: all below the home, and `.qiju` of every registered root.

Each is looked at by what it is (SQLite, Parquet, text), by its bytes and decoded, and so is its name. What cannot be
read is named and makes the erasure incomplete; it is never overwritten. Links are not followed: they lead to files that
are somebody else's. Temporary files of runs that were killed go; one whose writer lives is named.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qiju import storekey
from qiju.errors import QijuError, StorageFailed
from qiju.files import ABANDONED_AFTER, TEMPORARY_MARK, remove_tree, rename_over, sync_folder
from qiju.place.root import MARKER_FOLDER
from qiju.store import database_path
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret
    from qiju.store import Store
    from qiju.trajectory.filelock import WriterLock

_PARQUET = b"PAR1"
_JOURNAL = b"qiju journal"
COMPANIONS = ("-journal", "-wal", "-shm")
_LOCKS = frozenset(("maintain.lock", "redact.lock"))
Step = Callable[[int], object]


class Changed(NamedTuple):
    """One file that held the secret: `tier` is its place (staging, archive, backup, ...), `entries` places in it."""

    tier: str
    path: str
    entries: int


class Report:
    """What was found. `problems` make the erasure incomplete, `warnings` do not."""

    def __init__(self) -> None:
        self.changes: list[Changed] = []
        self.problems: list[str] = []
        self.warnings: list[str] = []


class Scope(NamedTuple):
    """The home and the roots whose `.qiju` folders are looked through."""

    home: Path
    roots: tuple[Path, ...]


def look(scope: Scope, secret: Secret, step: Step = lambda _: None) -> Report:
    """Count what each file holds; nothing is changed."""
    report = Report()
    for path in walk(scope, report):
        step(1)
        if count := _count(path, secret, report):
            report.changes.append(Changed(tier_of(scope, path), str(path), count))
    unreachable(scope, report)
    return report


def clean(scope: Scope, secret: Secret, step: Step = lambda _: None, *, only: Path | None = None) -> Report:
    """Clean every file that holds the secret, its name included, and look at each again. `only` is one root."""
    report = Report()
    walked = list(walk(scope, report)) if only is None else list(_below(only / MARKER_FOLDER, report))
    for path in walked:
        step(1)
        if count := _count(path, secret, report):
            tier = tier_of(scope, path)
            fresh = _cleaned(scope, path, secret, report)
            report.changes.append(Changed(tier, str(fresh), count))
    for folder in _tops(scope) if only is None else [only / MARKER_FOLDER]:
        _rename_folders(folder, secret, report)
    if only is None:
        unreachable(scope, report)
    return report


def tier_of(scope: Scope, path: Path) -> str:
    """The word that a report uses for the place of a file."""
    if not path.is_relative_to(scope.home):
        return "staging" if path.parent.name == "tmp" else "short" if path.name == "short.jsonl" else "project"
    part = path.relative_to(scope.home).parts[0]
    return {"archive": "archive", "long": "long", "backups": "backup", "spool": "spool"}.get(part, "file")


# --- which files -----------------------------------------------------------------------------------------------------


def _tops(scope: Scope) -> list[Path]:
    return [scope.home, *(root / MARKER_FOLDER for root in scope.roots)]


def walk(scope: Scope, report: Report) -> Iterator[Path]:
    """Every file to be looked at, once."""
    seen: set[Path] = set()
    for top in _tops(scope):
        for path in _below(top, report):
            if path not in seen and not _is_live(scope.home, path):
                seen.add(path)
                yield path


def _below(top: Path, report: Report) -> Iterator[Path]:
    """Regular files below a folder, in order; links are left out."""
    if top.is_symlink():
        report.warnings.append(f"{top} is a link and was not followed")
        return
    if not top.is_dir():
        return

    def failed(error: OSError) -> None:
        report.problems.append(f"{error.filename} cannot be read: {error.strerror}")

    for folder, names, files in os.walk(top, onerror=failed):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file():
                continue
            if TEMPORARY_MARK in name:
                _leftover(path, report)
                continue
            if not _is_companion(path):
                yield path


def _is_companion(path: Path) -> bool:
    """Journal and WAL of a SQLite file belong to it: SQLite takes them in when the file is opened."""
    for suffix in COMPANIONS:
        if path.name.endswith(suffix) and path.with_name(path.name.removesuffix(suffix)).is_file():
            return True
    return False


def _is_live(home: Path, path: Path) -> bool:
    """The store's own files: proven by themselves, and never opened here (see `qiju.erasure.proof`)."""
    database = database_path(home)
    own = {database.name, database.name + "-wal", database.name + "-shm", storekey.NAME, *_LOCKS}
    if path.parent == home and path.name in own:
        return True
    try:
        return database.exists() and path.samefile(database)
    except OSError:
        return False


def _leftover(path: Path, report: Report) -> None:
    """A temporary file: removed when its writer is dead, else named."""
    pid = path.name.rpartition(TEMPORARY_MARK)[2].partition("-")[0]
    if pid.isdigit() and int(pid) != os.getpid() and _alive(int(pid), path):
        report.problems.append(f"{path} is being written by process {pid}; run the same again when it has ended")
        return
    try:
        remove_tree(path)
    except OSError as error:
        report.problems.append(f"{path} is left from a killed run and cannot be removed: {error.strerror}")


def _alive(pid: int, path: Path) -> bool:
    if sys.platform == "win32":  # there signal 0 would end the process
        return path.stat().st_mtime > time.time() - ABANDONED_AFTER
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def unreachable(scope: Scope, report: Report) -> None:
    """Name the roots that are not there."""
    for root in scope.roots:
        if not root.is_dir():
            report.problems.append(
                f"the project folder {root} cannot be reached (qiju update drops folders that are gone)"
            )


# --- one file --------------------------------------------------------------------------------------------------------


def kind_of(path: Path) -> str:
    """What a file is by its first bytes: sqlite, parquet, journal or text."""
    from qiju.erasure.databases import MAGIC

    with path.open("rb") as file:
        head = file.read(16)
    if head == MAGIC:
        return "sqlite"
    if head.startswith(_JOURNAL):
        return "journal"
    if head.startswith(_PARQUET) or (path.suffix == ".parquet" and head):
        return "parquet"
    return "text"


def _count(path: Path, secret: Secret, report: Report) -> int:
    """Places in the file and in its name; a file that cannot be read is a problem."""
    try:
        return _places(path, secret) + len(secret.spans(path.name))
    except QijuError as error:
        report.problems.append(f"{path}: {error}")
    except FileNotFoundError:
        pass  # removed by its owner meanwhile
    except OSError as error:
        report.problems.append(f"{path} cannot be read: {error.strerror}")
    return 0


def _places(path: Path, secret: Secret) -> int:
    from qiju.erasure import columnar, databases, proof

    kind = kind_of(path)
    if kind == "sqlite":
        beside = [path.with_name(path.name + suffix) for suffix in COMPANIONS]
        held = databases.holds(path, secret)
        return held + sum(proof.file_holds(each, secret) for each in beside if each.is_file())
    if kind == "parquet":
        return columnar.holds(path, secret) or proof.file_holds(path, secret)
    return proof.file_holds(path, secret) or _escaped(path, secret)


def _escaped(path: Path, secret: Secret) -> int:
    """JSON in which letters of the value are written as escapes."""
    from qiju.erasure import texts

    if path.suffix not in (".json", ".jsonl", ".ndjson") or path.stat().st_size > texts.WHOLE:
        return 0
    data = path.read_bytes()
    return texts.hidden(data, secret) if b"\\u" in data or b"\\x" in data else 0


def _cleaned(scope: Scope, path: Path, secret: Secret, report: Report) -> Path:
    """Clean one file; the path it has now. What stays in it is a problem."""
    from qiju.erasure import columnar, databases, journals, texts

    try:
        kind = kind_of(path)
        if kind == "sqlite":
            report.problems.extend(databases.clean(path, secret))
        elif kind == "parquet":
            columnar.clean(path, secret)
        elif kind == "journal":
            journals.clean(path, secret)
        elif _is_marker(scope, path):
            _clean_marker(scope, path, secret)
        elif _places(path, secret):
            texts.clean(path, secret)
        if secret.spans(path.name):
            fresh = texts.clean_name(secret, path)
            rename_over(path, fresh)
            sync_folder(path.parent)
            path = fresh
        if left := _places(path, secret):
            report.problems.append(f"{path} still holds the value in {counted(left, 'place')}")
    except QijuError as error:
        report.problems.append(f"{path}: {error}")
    except OSError as error:
        report.problems.append(f"{path} cannot be cleaned: {error.strerror}")
    return path


def _is_marker(scope: Scope, path: Path) -> bool:
    return path.name == "config.json" and any(path == root / MARKER_FOLDER / "config.json" for root in scope.roots)


def _clean_marker(scope: Scope, path: Path, secret: Secret) -> None:
    """A project's marker: its project is called what the store calls the same UUID now."""
    from qiju.erasure import texts
    from qiju.place.marker import read_marker, write_marker
    from qiju.store import Store as Opened

    root = path.parent.parent
    marker = read_marker(root)
    if marker is not None and secret.spans(marker.project):
        with Opened.open_for_reading(scope.home) as store:
            slug = store.db.value("SELECT slug FROM project WHERE uuid = ?", (marker.uuid,)) if marker.uuid else None
        write_marker(root, marker._replace(project=str(slug) if slug else secret.name(marker.project)))
    if _places(path, secret):
        texts.clean(path, secret)


def _rename_folders(top: Path, secret: Secret, report: Report) -> None:
    """Folders below `top` whose name holds the secret get another one, the deepest first."""
    from qiju.erasure import texts

    if not top.is_dir() or top.is_symlink():
        return
    named = [path for path in top.rglob("*") if path.is_dir() and not path.is_symlink() and secret.spans(path.name)]
    for path in sorted(named, key=lambda each: -len(each.parts)):
        try:
            if not any(path.iterdir()):
                path.rmdir()
            else:
                rename_over(path, texts.clean_name(secret, path))
            sync_folder(path.parent)
        except OSError as error:
            report.problems.append(f"{path} cannot be renamed: {error.strerror}")


def elsewhere(
    manifest: dict[str, str], scope: Scope, secret: Secret, report: Report, *, look_only: bool = False
) -> None:
    """Files that Qiju wrote outside: `.bak` copies are cleaned, others that hold the value are named.

    `manifest` maps paths to kinds.
    """
    for text, kind in sorted(manifest.items()):
        path = Path(text)
        if any(path.is_relative_to(top) for top in _tops(scope)) or not path.is_file() or path.is_symlink():
            continue
        backup = path.suffix == ".bak" or kind == "backup"
        seen = report if backup else Report()
        count = _count(path, secret, seen)
        if backup and count:
            fresh = path if look_only else _cleaned(scope, path, secret, report)
            report.changes.append(Changed("bak", str(fresh), count))
        elif kind == "export" and (count or seen.problems):
            report.warnings.append(f"the export {path} lies elsewhere and holds the value: it was left as it is")
        elif count:
            report.warnings.append(f"{path}, which Qiju wrote, holds the value; it was left as it is")


def archive(store: Store, scope: Scope, report: Report) -> None:
    """Write every partition anew that does not hold what the rows hold. `maintain` is kept out meanwhile."""
    from qiju.keeping import cold

    lock = _maintain_lock(scope.home, report)
    if lock is None:
        return
    try:
        for project, month in list(cold.stale(store.db, scope.home, None)):
            try:
                cold.bring_up_to_date(store.db, scope.home, project, month, with_long=False)
            except QijuError as error:
                report.problems.append(str(error))
    finally:
        lock.release()


def _maintain_lock(home: Path, report: Report, wait: float = 30.0) -> WriterLock | None:
    from qiju.errors import StoreBusy
    from qiju.keeping.maintain import LOCK_NAME
    from qiju.trajectory.filelock import WriterLock

    deadline = time.monotonic() + wait
    while True:
        try:
            return WriterLock(home / LOCK_NAME)
        except StoreBusy:
            if time.monotonic() > deadline:
                report.problems.append("another maintain is under way, so the archive's files were not written anew")
                return None
            time.sleep(0.1)
        except StorageFailed as error:
            report.problems.append(str(error))
            return None
