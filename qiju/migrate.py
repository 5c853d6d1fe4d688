"""Bring a store to the newest schema: numbered SQL files, each applied in one transaction with the note that it ran.

Several processes may arrive at once: the first takes the write lock and migrates, the others wait for it and find the
work done. A process killed in between leaves the old version, since SQLite rolls its transaction back. A store that
holds records is backed up first, next to it. A newer schema is refused and left as it is.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw

import qiju
from qiju.errors import NewerSchema, StorageFailed, StoreDamaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.db import Database

PAGE_SIZE = 8192  # bytes


def schema_folder() -> Path:
    """Where the SQL lies: inside the package when installed from a wheel, else at the top of the checkout."""
    inside = Path(__file__).parent / "schema"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "schema"


def latest(migrations: Path | None) -> int:
    """The newest schema version: the program's own, or that of another folder of migrations."""
    from qiju.db import SCHEMA_VERSION

    return SCHEMA_VERSION if migrations is None else max(files(migrations))


def files(migrations: Path | None) -> dict[int, Path]:
    """The migrations by number."""
    folder = migrations or schema_folder() / "migrations"
    found = {int(path.name.split("_", 1)[0]): path for path in sorted(folder.glob("[0-9]*_*.sql"))}
    if not found or sorted(found) != list(range(1, len(found) + 1)):
        raise StorageFailed(f"the schema files in {folder} are not complete", hint="install Qiju again")
    return found


def upgrade(db: Database, migrations: Path | None) -> None:
    """Apply what is missing. Raises `NewerSchema`, `StoreBusy`, `StorageFailed`."""
    newest = latest(migrations)
    version = db.version()
    if version > newest:
        raise NewerSchema(
            f"{db.path} has schema {version}; this Qiju {qiju.__version__} knows schemas up to {newest}",
            hint="upgrade Qiju (pip install --upgrade qiju); the store was not touched",
        )
    if version == 0 and db.path is not None:
        _use_wal(db)
    db.migrating = True
    try:
        _apply(db, files(migrations), version, newest)
    finally:
        db.migrating = False


def _apply(db: Database, steps: dict[int, Path], version: int, newest: int) -> None:
    kept: list[Path] = []
    for number in range(version + 1, newest + 1):
        sql = steps[number].read_text(encoding="utf-8")
        with db.write() as connection:
            if db.version() >= number:
                continue  # another process was faster
            if number > 1 and not db.private and db.value("SELECT 1 FROM record LIMIT 1"):
                kept.append(_backup(db, number - 1))
            connection.execute(sql).fetchall()  # to the end: a statement that answers would hold back the rest
            connection.execute(
                "INSERT INTO migration (version, name, qiju_version) VALUES (?, ?, ?)",
                (number, steps[number].stem, qiju.__version__),
            )
            connection.execute(f"PRAGMA user_version = {number}")
    if kept:
        db.notes.append(f"the store was brought from schema {version} to {newest}; as it was, it is kept in {kept[0]}")


def _use_wal(db: Database) -> None:
    """Pages of 8 KiB and WAL are chosen once, when the store is made (by whoever comes first, when several do).

    A record of the usual size wastes less of a page of 8 KiB than of one of 4: the file is about 8 % smaller. Asking is
    refused while another process makes the store: ask again.
    """
    db.value(f"PRAGMA page_size = {PAGE_SIZE}")
    deadline = time.monotonic() + max(db.lock_wait, 1.0)
    while True:
        try:
            mode = db.value("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise StoreDamaged(f"{db.path} cannot use a write-ahead log here", hint="put the store on a local disk")
        return


def _backup(db: Database, version: int) -> Path:
    """A copy of the store as it is, under the write lock, before its schema changes; where it lies."""
    assert db.path is not None
    folder = db.path.parent / "backups"
    target = folder / f"before-schema-{version + 1}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.db"
    # It gets its name when it is whole: a run killed here must leave nothing that looks like a backup.
    temporary = target.with_name(f".{target.name}.qiju-tmp-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StorageFailed(f"no backup before the schema change: {target}: {error.strerror}") from error
    # A second connection reads the committed state; the one that holds the lock cannot be a backup's source.
    source = apsw.Connection(str(db.path), flags=apsw.SQLITE_OPEN_READONLY)
    copy = apsw.Connection(str(temporary))
    try:
        with copy.backup("main", source, "main") as backup:
            backup.step(-1)
        if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise StoreDamaged(f"the backup {target} does not check out; the schema was not changed")
        # One file without a log beside it, as every other backup.
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.close()
        temporary.replace(target)
    finally:
        copy.close()
        source.close()
        temporary.unlink(missing_ok=True)
    return target
