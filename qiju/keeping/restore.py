"""Go back to a backup: checked first, brought up to today, then put in the live store's place as a whole.

The order is what makes it safe. (1) The backup is copied beside the store and proven there: bytes against its manifest,
schema (a newer one is refused, an older one migrated in the copy), every digest, index and reference. Nothing has
been touched until here. (2) The write lock is taken, and the store to be replaced is itself backed up
(`backups/replaced-...`), or, when it is too damaged for that, set aside byte for byte. (3) The copy learns what
happened since the backup: values redacted since are redacted in it; numbers given out since are never given again (they
get tombstones, so that increments and cursors notice); the audit of redactions continues. (4) The copy goes into the
live file through SQLite's backup interface, one transaction that other processes see as any other write; only a file
that SQLite cannot read is replaced by renaming.

Records deleted since the backup come back: that is what a restore is for. They are counted and said.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

import qiju
from qiju import storekey
from qiju.db import APPLICATION_ID, LOCK_WAIT, SCHEMA_VERSION, Database, refuse_links, translated
from qiju.errors import NewerSchema, NotFound, StoreDamaged, VerificationFailed
from qiju.files import disk_error, rename_over, sync_folder
from qiju.jsontext import JsonValue
from qiju.keeping import backup as backups
from qiju.keeping.reapply import redact_again
from qiju.store import Store, database_path
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.place.config import Config

_WORK = ".restore-"


class Restored(NamedTuple):
    """What a restore did, or with `dry_run` would do. `replaced` is where the old store is kept, None without one."""

    source: Path
    records: int
    replaced: Path | None
    left_behind: int
    returned: int
    redacted_again: int
    notes: tuple[str, ...]
    dry_run: bool

    def to_json(self) -> dict[str, JsonValue]:
        notes: list[JsonValue] = list(self.notes)
        return {
            "source": str(self.source),
            "records": self.records,
            "replaced": None if self.replaced is None else str(self.replaced),
            "left_behind": self.left_behind,
            "returned": self.returned,
            "redacted_again": self.redacted_again,
            "notes": notes,
            "dry_run": self.dry_run,
        }


def restore(home: Path, source: Path, config: Config | None = None, *, dry_run: bool = False) -> Restored:
    """Put the backup at `source` (a path, or a name in the backups folder) in the place of the store.

    Raises `NotFound`, `NewerSchema`, `VerificationFailed` (then nothing was changed), `StoreBusy`, `StorageFailed`.
    """
    refuse_links(home, database_path(home).name)
    source = _found(home, source)
    check_header(source)
    _check_bytes(source)
    _remove_leftovers(home)
    work = home / f"{_WORK}{os.getpid()}-{os.urandom(4).hex()}"
    made_home = not home.exists()
    try:
        work.mkdir(mode=0o700, parents=True)
        copy = _proven_copy(source, work)
        return _replace(home, source, copy, config, dry_run=dry_run)
    except OSError as error:
        raise disk_error(error, home) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if made_home and home.exists() and not any(home.iterdir()):
            home.rmdir()


def _found(home: Path, source: Path) -> Path:
    for path in (source, backups.folder(home) / source.name if len(source.parts) == 1 else source):
        if path.is_file():
            return path.resolve()
    raise NotFound(f"there is no backup {source}", hint="'qiju backup --list' lists them")


def check_header(path: Path) -> None:
    """Raise `StoreDamaged` unless the file is a Qiju database, `NewerSchema` when this program is too old for it."""
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        raise StoreDamaged(f"{path} is not a database", hint="give a file that 'qiju backup' wrote")
    version, application = int.from_bytes(head[60:64], "big"), int.from_bytes(head[68:72], "big")
    if application != APPLICATION_ID:
        raise StoreDamaged(f"{path} is not a Qiju store", hint="give a file that 'qiju backup' wrote")
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"{path} has schema {version}; this Qiju {qiju.__version__} knows schemas up to {SCHEMA_VERSION}",
            hint="upgrade Qiju (pip install --upgrade qiju), then restore it",
        )


def _check_bytes(source: Path) -> None:
    manifest = backups.read_manifest(source)
    if manifest is None:
        return
    from qiju.keeping.partitions import file_sha256

    if source.stat().st_size != manifest.size or file_sha256(source) != manifest.sha256:
        raise VerificationFailed(
            f"{source} is not as it was written: its bytes do not match its manifest",
            hint=f"restore another backup; to have this one checked by its content, move {source.name}.json away",
        )


def _proven_copy(source: Path, work: Path) -> Path:
    """Copy the backup (with a WAL, should one lie beside it), migrate the copy, check it whole."""
    from qiju.keeping.verify import verify_database

    copy = work / "qiju.db"
    shutil.copyfile(source, copy)
    copy.chmod(0o600)
    wal = source.with_name(source.name + "-wal")
    if wal.is_file():
        shutil.copyfile(wal, copy.with_name(copy.name + "-wal"))
    try:
        with Store(Database.open(copy), work) as opened:
            report = verify_database(opened, alone=True)
    except StoreDamaged as error:
        raise VerificationFailed(f"{source} is damaged: {error}", hint="restore another backup") from error
    if not report.ok:
        first = report.faults[0]
        raise VerificationFailed(
            f"{source} does not check out ({first.check}: {first.where}: {first.message}); nothing was changed",
            hint="restore another backup, or save what can be read: 'qiju doctor --fix'",
        )
    return copy


def _replace(home: Path, source: Path, copy: Path, config: Config | None, *, dry_run: bool) -> Restored:
    live = database_path(home)
    notes: list[str] = []
    with ExitStack() as stack:
        _key(home, source, copy, dry_run=dry_run, notes=notes)
        new = stack.enter_context(Store(Database.open(copy), copy.parent if dry_run else home, config, writable=True))
        records = int(new.db.value("SELECT count(*) FROM record"))
        left_behind = returned = redacted = 0
        replaced: Path | None = None
        old = _open_old(live) if live.exists() else None
        if old is not None:
            stack.callback(old.close)
        if dry_run:
            if old is not None:
                left_behind, returned = _compare(new.db, old)
            return Restored(source, records, None, left_behind, returned, 0, tuple(notes), True)
        if old is None:
            if live.exists():
                notes.append("the replaced database cannot be read; its records since the backup are not counted")
                replaced = set_aside(home, live)
                new.set("store_id", os.urandom(16).hex())
            put_in_place(live, new)
        else:
            lock_wait = LOCK_WAIT if config is None else config.lock_wait
            target = stack.enter_context(Database.open(live, lock_wait=lock_wait))
            with translated(target), target.connection.backup("main", new.db.connection, "main") as swap:
                # This takes the write lock: from here on nobody writes what would be lost unseen.
                _take_lock(swap, target)
                replaced = _keep_old(home, live)
                left_behind, returned = _compare(new.db, old)
                with new.db.write() as connection:
                    remembered = _learn(connection, old)
                redacted = redact_again(new) if remembered else 0
                swap.step(-1)
            target.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
        notes.extend(new.warnings)
    if left_behind:
        newer = counted(left_behind, "record is newer", "records are newer")
        notes.append(f"{newer} than the backup; 'qiju import {replaced}' brings back what is missing")
    if returned:
        notes.append(f"{counted(returned, 'record')} deleted since the backup came back")
    if any((home / "archive").glob("project=*")):
        notes.append("run 'qiju maintain' to bring the archive's files in line")
    return Restored(source, records, replaced, left_behind, returned, redacted, tuple(notes), False)


def _take_lock(swap: apsw.Backup, target: Database) -> None:
    """Copying no page takes the destination's write lock; SQLite does not wait for it here, so this does."""
    deadline = time.monotonic() + target.lock_wait
    while True:
        try:
            swap.step(0)
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _open_old(live: Path) -> apsw.Connection | None:
    """The store to be replaced, to read from; None when it cannot be read. Raises `NewerSchema`."""
    try:
        check_header(live)
        with Database.open_for_reading(live) as db:
            if db.value("PRAGMA quick_check(1)") != "ok":
                return None
            db.value("SELECT max(seq) FROM record")
    except StoreDamaged:
        return None
    return apsw.Connection(str(live), flags=apsw.SQLITE_OPEN_READWRITE)


def _key(home: Path, source: Path, copy: Path, *, dry_run: bool, notes: list[str]) -> None:
    """A home without a key takes the one beside the backup; any other case is said, not decided."""
    beside = backups.key_path(source)
    current = storekey.read(home)
    if current is None and beside.is_file():
        notes.append(f"the store key {'would come' if dry_run else 'came'} from {beside}")
        if not dry_run:
            current = beside.read_bytes()
            place = storekey.path(home)
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(current)
                file.flush()
                os.fsync(file.fileno())
    with Database.open(copy) as db:
        written_with = db.setting("key_id")
    if written_with and (current is None or storekey.subkey(current, "id").hex()[:16] != written_with):
        notes.append(
            "the backup was written with another store key: open cursors end, equal secrets get other markers than"
            " before, and values redacted before are not recognised when they come back"
        )


def _keep_old(home: Path, live: Path) -> Path:
    """A proven backup of the store that is being replaced; when it does not check out, its bytes as they are."""
    try:
        with Store.open_for_reading(home) as store:
            return backups.backup(store, prefix="replaced").path
    except (VerificationFailed, StoreDamaged):
        return set_aside(home, live, keep=True)


def set_aside(home: Path, live: Path, *, keep: bool = False) -> Path:
    """Move (or with `keep` copy) the database and its log into the backups folder, byte for byte."""
    target = backups.fresh_name(home, "replaced")
    for suffix in ("", "-wal"):
        file, kept = live.with_name(live.name + suffix), target.with_name(target.name + suffix)
        if file.is_file():
            shutil.copyfile(file, kept) if keep else rename_over(file, kept)
            kept.chmod(0o600)
    live.with_name(live.name + "-shm").unlink(missing_ok=True)
    sync_folder(target.parent)
    return target


def put_in_place(live: Path, new: Store) -> None:
    """Give the finished copy the live name; what was there is damaged, or nothing, and kept elsewhere by now."""
    connection = new.db.connection
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchall()
    path = new.db.path
    assert path is not None
    new.close()
    path.chmod(0o600)
    # A log of the old file would be replayed into the new one.
    for suffix in ("-wal", "-shm"):
        live.with_name(live.name + suffix).unlink(missing_ok=True)
    rename_over(path, live)
    sync_folder(live.parent)


def _remove_leftovers(home: Path) -> None:
    """Copies of restores that were killed; one whose process lives is left alone."""
    for path in home.glob(f"{_WORK}*"):
        if path.is_dir() and time.time() - path.stat().st_mtime > 3600:
            shutil.rmtree(path, ignore_errors=True)


# --- what happened since the backup ----------------------------------------------------------------------------------


def _compare(new: Database, old: apsw.Connection) -> tuple[int, int]:
    """Records only the replaced store has (newer than the backup), and those only the backup has (deleted since)."""
    here = {int(row[0]) for row in new.connection.execute("SELECT seq FROM record")}
    there = {int(str(row[0])) for row in old.execute("SELECT seq FROM record")}
    return len(there - here), len(here - there)


# Facts about the world outside the records, which a restore of records must not forget: the later ones win.
_TAKEN_WHOLE = ("file_manifest", "archive_partition")
_ADDED = ("redaction_audit", "redacted_value", "redaction_pending")  # in the order in which they refer


def _learn(connection: apsw.Connection, old: apsw.Connection) -> int:
    """Bring the copy up to what happened since it was made; returns how many values were redacted since."""
    before = _one(connection, "SELECT count(*) FROM redacted_value")
    for table in _TAKEN_WHOLE:
        connection.execute(f"DELETE FROM {table}")
    for table in (*_TAKEN_WHOLE, *_ADDED):
        _copy_rows(connection, old, table)
    _copy_projects(connection, old)
    _continue_numbers(connection, old)
    return _one(connection, "SELECT count(*) FROM redacted_value") - before


def _copy_rows(connection: apsw.Connection, old: apsw.Connection, table: str) -> None:
    names = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    columns = ", ".join(f'"{name}"' for name in names)
    slots = ", ".join("?" * len(names))
    rows = _all(old, f"SELECT {columns} FROM {table}")
    connection.executemany(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({slots})", rows)


def _copy_projects(connection: apsw.Connection, old: apsw.Connection) -> None:
    """Projects and folders registered since: their markers lie in the folders, so their identity must stay known."""
    projects = _all(old, "SELECT slug, uuid, name, created_at FROM project")
    connection.executemany("INSERT OR IGNORE INTO project (slug, uuid, name, created_at) VALUES (?, ?, ?, ?)", projects)
    roots = _all(old, "SELECT path, project, hosts, registered_at FROM project_root")
    connection.executemany(
        "INSERT OR IGNORE INTO project_root (path, project, hosts, registered_at)"
        " SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM project WHERE slug = ?2)",
        roots,
    )


def _continue_numbers(connection: apsw.Connection, old: apsw.Connection) -> None:
    """No number is given out twice, and whoever remembers the replaced store notices every difference."""
    for name in ("rev", "tier_rev", "high_water"):
        value = _one(old, f"SELECT value FROM counter WHERE name = '{name}'")
        connection.execute("UPDATE counter SET value = max(value, ?) WHERE name = ?", (value, name))
    for name, top in _all(old, "SELECT name, seq FROM sqlite_sequence"):
        connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (top, name))
        connection.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?2"
            " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)",
            (name, top),
        )
    tombstone = "INSERT OR IGNORE INTO tombstone (what, seq, rev, id, project, session_id, number, deleted_at)"
    gone = _all(old, "SELECT what, seq, rev, id, project, session_id, number, deleted_at FROM tombstone")
    connection.executemany(
        f"{tombstone} SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8"
        " WHERE NOT (?1 = 'record' AND EXISTS (SELECT 1 FROM record WHERE seq = ?2))"
        " AND NOT (?1 = 'event' AND EXISTS (SELECT 1 FROM trajectory_event WHERE seq = ?2))",
        gone,
    )
    rev = _one(connection, "SELECT value FROM counter WHERE name = 'rev'") + 1
    newer: list[tuple[Any, ...]] = [
        ("record", *row) for row in old.execute("SELECT seq, id, project, session_id, number FROM record")
    ]
    newer += [
        ("event", seq, event_id, "", session_id, 0)
        for seq, event_id, session_id in old.execute("SELECT seq, event_id, session_id FROM trajectory_event")
    ]
    connection.executemany(
        f"{tombstone} SELECT ?1, ?2, {rev}, ?3, ?4, ?5, ?6, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
        " WHERE NOT (?1 = 'record' AND EXISTS (SELECT 1 FROM record WHERE seq = ?2))"
        " AND NOT (?1 = 'event' AND EXISTS (SELECT 1 FROM trajectory_event WHERE seq = ?2))",
        newer,
    )
    known: dict[int, tuple[Any, ...]] = {
        int(row[0]): row[1:] for row in _all(old, "SELECT seq, id, project, digest, tier FROM record")
    }
    tier_rev = _one(connection, "SELECT value FROM counter WHERE name = 'tier_rev'")
    for seq, *content, tier in _all(connection, "SELECT seq, id, project, digest, tier FROM record ORDER BY seq"):
        was = known.get(int(seq))
        if was is None or list(was[:3]) != content:
            rev += 1
            connection.execute("UPDATE record SET rev = ?, revised = 1 WHERE seq = ?", (rev, seq))
        if was is not None and was[3] != tier:
            tier_rev += 1
            connection.execute("UPDATE record SET tier_rev = ? WHERE seq = ?", (tier_rev, seq))
    connection.execute("UPDATE counter SET value = ? WHERE name = 'rev'", (rev,))
    connection.execute("UPDATE counter SET value = ? WHERE name = 'tier_rev'", (tier_rev,))


def _all(connection: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def _one(connection: apsw.Connection, sql: str) -> int:
    return int(_all(connection, sql)[0][0] or 0)
