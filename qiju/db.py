"""The live store's connection: opened, configured, locked, migrated and translated in one place.

apsw only. The standard library's sqlite3 is another copy of SQLite; two copies on one file in one process drop each
other's POSIX locks, so nothing in this process may open the live store with it (a test guards that).

Callers say `with db.read():` or `with db.write():` and never BEGIN. `read` is one snapshot; `write` takes the write
lock at once (BEGIN IMMEDIATE), waits `lock_wait` seconds for it, and is durable when it ends: WAL with
synchronous=FULL. Nested blocks are savepoints. Inside either block SQLite's errors become `qiju.errors`.

A store in a folder that cannot be written is read through a private copy of the database and its WAL: opening it as
`immutable` would silently leave out what is still in the WAL.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from qiju.errors import QijuError, ReadOnlyStore, Refused, StorageFailed, StoreBusy, StoreDamaged
from qiju.query import tagged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

APPLICATION_ID = 0x51494A55  # "QIJU"
SCHEMA_VERSION = 1  # the number of the newest file in schema/migrations; a test compares them
LOCK_WAIT = 30.0  # seconds
JOURNAL_LIMIT = 16 * 1024 * 1024  # bytes a WAL may keep on disk after a checkpoint
# What the search indexes know, term by term: `row` counts the rows of a term, `instance` names them. A range of the
# trigram's instances answers terms of one and two characters. They belong to the connection: in the schema, tools would
# take them for search indexes.
_VOCABULARIES = """
CREATE VIRTUAL TABLE temp.record_fts_vocab USING fts5vocab (main, record_fts, row);
CREATE VIRTUAL TABLE temp.record_trigram_vocab USING fts5vocab (main, record_trigram, row);
CREATE VIRTUAL TABLE temp.record_trigram_instance USING fts5vocab (main, record_trigram, instance);
"""
_OWN_NAMES = ("store.key", "spool", "backups", "archive")  # what else Qiju writes beside its database
_COPY = "qiju-read-"  # private copies of stores that cannot be written, in the temporary folder
_WAL_WRITE_LOCK = 120  # the byte of the -shm file that SQLite locks for writing


class Database:
    """One open store. Not shared between threads or across a fork. Close it, or use it as a context manager."""

    def __init__(
        self, connection: apsw.Connection, path: Path | None, *, lock_wait: float, scratch: Path | None
    ) -> None:
        self.connection = connection
        self.path = path  # None for a store in memory
        self.lock_wait = lock_wait
        self._scratch = scratch
        self._pid = os.getpid()
        self._depth = 0
        self._writing = False
        self.notes: list[str] = []  # for the person: that the schema was upgraded, and where the old store is
        self.migrating = False  # set by `qiju.migrate`, which may write to a private copy, too
        connection.set_busy_handler(self._wait)
        connection.create_scalar_function("qiju_tagged", tagged, 2, deterministic=True)  # type: ignore[arg-type]
        self._waited_since = 0.0

    # --- opening -----------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, *, lock_wait: float = LOCK_WAIT, migrations: Path | None = None) -> Database:
        """Open the store at `path` for reading and writing; create and migrate it when needed.

        Raises `NewerSchema`, `StoreDamaged`, `ReadOnlyStore`, `StoreBusy`, `StorageFailed`.
        """
        from qiju import migrate

        _make_home(path.parent)
        refuse_links(path.parent, path.name)
        _make_file(path)
        db = cls._connect(path, path, lock_wait, None)
        try:
            with translated(db):
                version = db.version()
                if version == 0 or version != migrate.latest(migrations):
                    migrate.upgrade(db, migrations)
        except BaseException:
            db.close()
            raise
        return db

    @classmethod
    def open_for_reading(cls, path: Path, *, lock_wait: float = LOCK_WAIT) -> Database:
        """Open the store at `path` to read it. Without a store, an empty one in memory; nothing is created on disk.

        Raises as `open` does. Without permission or room to write beside the database, a private copy is read instead.
        """
        refuse_links(path.parent, path.name)
        if not path.exists():
            return cls.in_memory()
        if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
            try:
                return cls._opened_for_reading(path, lock_wait, None)
            except StorageFailed as error:
                # On a full disk not even a reader gets the shared index of the log that it needs.
                if isinstance(error, StoreDamaged) or not isinstance(error.__cause__, apsw.IOError | apsw.FullError):
                    raise
        return cls._opened_for_reading(path, lock_wait, _private_copy(path))

    @classmethod
    def _opened_for_reading(cls, path: Path, lock_wait: float, scratch: Path | None) -> Database:
        from qiju import migrate

        db = cls._connect(path, path if scratch is None else scratch / path.name, lock_wait, scratch)
        try:
            with translated(db):
                version = db.version()
                if version != migrate.latest(None):
                    migrate.upgrade(db, None)  # refuses a newer schema; on a private copy it changes only the copy
                db.connection.execute("PRAGMA query_only = ON")
        except BaseException:
            db.close()
            raise
        return db

    @classmethod
    def in_memory(cls) -> Database:
        """An empty store that lives as long as this object."""
        from qiju import migrate

        db = cls(apsw.Connection(":memory:"), None, lock_wait=0.0, scratch=None)
        migrate.upgrade(db, None)
        db.connection.execute(_VOCABULARIES).fetchall()
        return db

    @classmethod
    def _connect(cls, path: Path, file: Path, lock_wait: float, scratch: Path | None) -> Database:
        try:
            connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.Error as error:
            raise translation(error, path) from error
        db = cls(connection, path, lock_wait=lock_wait, scratch=scratch)
        try:
            with translated(db):
                # secure_delete and foreign_keys belong to the connection, not to the file.
                # Fetched to the end: a PRAGMA that answers would otherwise hold back the ones after it.
                connection.execute(
                    "PRAGMA secure_delete = ON; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;"
                    f"PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = {JOURNAL_LIMIT}"
                ).fetchall()
                connection.execute(_VOCABULARIES).fetchall()
        except BaseException:
            db.close()
            raise
        return db

    @property
    def file(self) -> Path | None:
        """The file that is open: the store itself or the private copy of it; None in memory."""
        return self.path if self._scratch is None or self.path is None else self._scratch / self.path.name

    def close(self) -> None:
        """Close the connection and remove a private copy. Safe to call twice, and in a forked child."""
        if os.getpid() == self._pid:
            # The last one out copies the log into the database. When that fails nothing is lost: what was committed is
            # in the log, which the next one to open the store reads.
            with suppress(apsw.IOError, apsw.FullError):
                self.connection.close()
        if self._scratch is not None:
            import shutil

            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # --- transactions ------------------------------------------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """One snapshot: every statement inside sees the same state. Nested inside another block it is part of that."""
        with self._transaction("BEGIN", writing=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """One durable transaction, rolled back when the block raises. Raises `StoreBusy` after `lock_wait` seconds."""
        if self._depth and not self._writing:
            raise QijuError("a write was begun inside a read")
        if self.private and not self.migrating:
            raise ReadOnlyStore(
                f"{self.path} cannot be written", hint="check the permissions of the folder and its files"
            )
        with self._transaction("BEGIN IMMEDIATE", writing=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str, *, writing: bool) -> Iterator[apsw.Connection]:
        if os.getpid() != self._pid:
            raise QijuError(
                "this store was opened before a fork and belongs to the parent process",
                hint="open it again in the child",
            )
        connection = self.connection
        with translated(self):
            depth = self._depth
            if depth:
                connection.execute(f"SAVEPOINT level_{depth}")
            else:
                connection.execute(begin)
                self._writing = writing
            self._depth += 1
            try:
                yield connection
            except BaseException:
                self._depth = depth
                # SQLite may have rolled back by itself (disk full, I/O error): the first error must not be masked.
                if connection.in_transaction:
                    connection.execute(f"ROLLBACK TO level_{depth}; RELEASE level_{depth}" if depth else "ROLLBACK")
                raise
            self._depth = depth
            try:
                connection.execute(f"RELEASE level_{depth}" if depth else "COMMIT")
            except BaseException:
                if connection.in_transaction and not depth:
                    connection.execute("ROLLBACK")
                raise

    @property
    def private(self) -> bool:
        """Whether this is a private copy of a store that cannot be written."""
        return self._scratch is not None

    # --- facts -------------------------------------------------------------------------------------------------------

    def value(self, sql: str, bindings: tuple[Any, ...] = ()) -> Any:
        """The first column of the first row, or None without a row."""
        row = self.connection.execute(sql, bindings).fetchone()
        return None if row is None else row[0]

    def version(self) -> int:
        """The schema version of the file. Raises `StoreDamaged` when the file is something else than a Qiju store."""
        version = int(self.value("PRAGMA user_version"))
        if self.value("PRAGMA application_id") != APPLICATION_ID and (version or self.value("PRAGMA schema_version")):
            raise StoreDamaged(f"{self.path} is a SQLite file, but not a Qiju store", hint="give another --home")
        return version

    def setting(self, name: str) -> str:
        """A single fact about this store, or '' when it is not set."""
        value = self.value("SELECT value FROM setting WHERE name = ?", (name,))
        return "" if value is None else str(value)

    def counter(self, name: str) -> int:
        """One of `rev`, `tier_rev`, `high_water`, `bulk`."""
        return int(self.value("SELECT value FROM counter WHERE name = ?", (name,)))

    # --- locks -------------------------------------------------------------------------------------------------------

    def _wait(self, attempts: int) -> bool:
        """The busy handler: sleeps a little and says whether to try again; Ctrl-C ends it at once."""
        now = time.monotonic()
        if attempts == 0:
            self._waited_since = now
        if now - self._waited_since >= self.lock_wait:
            return False
        time.sleep(min(0.05, 0.001 * 2 ** min(attempts, 6)))
        return True

    def lock_holder(self) -> int | None:
        """The pid of the process that holds the write lock, where the system tells (Linux)."""
        if self.path is None:
            return None
        try:
            inode = Path(f"{self.path}-shm").stat().st_ino
            lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        except OSError:
            return None
        for line in lines:
            words = line.split()
            if "WRITE" not in words or not words[5].endswith(f":{inode}"):
                continue
            first, last = words[6], words[7]
            if int(first) <= _WAL_WRITE_LOCK and (last == "EOF" or int(last) >= _WAL_WRITE_LOCK):
                return int(words[4])
        return None


# --- errors ----------------------------------------------------------------------------------------------------------


@contextmanager
def translated(db: Database) -> Iterator[None]:
    """Turn apsw's errors inside the block into `qiju.errors`; others pass."""
    try:
        yield
    except apsw.BusyError as error:
        holder = db.lock_holder()
        by = f" by process {holder}" if holder else ""
        raise StoreBusy(
            f"the store {db.path} is locked{by}; waited {db.lock_wait:g} s", hint="try again in a moment"
        ) from error
    except apsw.Error as error:
        raise translation(error, db.path) from error
    except UnicodeDecodeError as error:
        raise StoreDamaged(
            f"{db.path} holds text that is not UTF-8, written past Qiju", hint="'qiju verify' names the row"
        ) from error


def translation(error: Exception, path: Path | None) -> QijuError:
    """What an error of SQLite's means to the person who called; `path` None: some other database."""
    if path is None:
        path = Path("a database file")
    if isinstance(error, apsw.FullError):
        return StorageFailed(f"no room to write {path}: the disk is full", hint="free some space, then try again")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreDamaged(f"{path} is damaged: {error}", hint="run 'qiju doctor', or restore a backup")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return ReadOnlyStore(f"{path} cannot be written", hint="check the permissions of the folder and its files")
    if isinstance(error, apsw.CantOpenError):
        return StorageFailed(f"{path} cannot be opened", hint="check that the folder exists and its permissions")
    if isinstance(error, apsw.IOError):
        return StorageFailed(
            f"reading or writing {path} failed: {error}", hint="check the disk; nothing was half stored"
        )
    if isinstance(error, apsw.NoMemError | apsw.TooBigError):
        return StorageFailed(f"{path}: a value is too large for SQLite", hint="split the record")
    return QijuError(f"{path}: {error}", hint="run 'qiju doctor'; QIJU_DEBUG=1 shows where it happened")


# --- files -----------------------------------------------------------------------------------------------------------


def _make_home(home: Path) -> None:
    try:
        if not home.is_dir():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            home.chmod(0o700)  # a umask may have taken the owner's own permissions away
    except OSError as error:
        raise StorageFailed(
            f"the folder {home} cannot be created: {error.strerror}", hint="give another --home"
        ) from error


def refuse_links(home: Path, database: str) -> None:
    """Raise `Refused` when a file or folder of the store is a symbolic link.

    Only somebody else puts one there: through it, records would be written or read where nobody agreed to.
    """
    for name in (database, f"{database}-wal", f"{database}-shm", *_OWN_NAMES):
        path = f"{home}{os.sep}{name}"
        try:
            os.readlink(path)  # noqa: PTH115 - every command comes by here, and pathlib costs
        except OSError:
            continue
        raise Refused(
            f"{path} is a symbolic link, and links inside the home are not followed",
            hint="remove the link; to keep the store elsewhere, set QIJU_HOME or link the whole home",
        )


def _make_file(path: Path) -> None:
    """Create the database file with mode 0600 whatever the umask, before SQLite would with its own."""
    if path.exists():
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        os.close(descriptor)
        if path.stat().st_mode & 0o600 != 0o600:
            path.chmod(0o600)
    except PermissionError as error:
        raise ReadOnlyStore(f"{path} cannot be written", hint="check the permissions of the folder") from error
    except OSError as error:
        raise StorageFailed(f"{path} cannot be created: {error.strerror}", hint="give another --home") from error


def _sweep_copies(place: Path) -> None:
    """Remove private copies of this user's that killed readers left: older than an hour, and their process is gone."""
    import shutil

    for entry in os.scandir(place):
        pid = entry.name.removeprefix(_COPY).partition("-")[0]
        if not entry.name.startswith(_COPY) or not pid.isdigit() or not entry.is_dir(follow_symlinks=False):
            continue
        facts = entry.stat(follow_symlinks=False)
        mine = not hasattr(os, "getuid") or facts.st_uid == os.getuid()
        if mine and facts.st_mtime < time.time() - 3600 and not _alive(int(pid)):
            shutil.rmtree(entry.path, ignore_errors=True)


def _alive(pid: int) -> bool:
    if os.name == "nt":  # there signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _private_copy(path: Path) -> Path:
    """Copy the database and its WAL to a folder of our own; a copy torn by a writer is taken again."""
    import shutil
    import tempfile

    wal = path.with_name(path.name + "-wal")

    def state() -> list[tuple[int, int]]:
        return [(s.st_size, s.st_mtime_ns) for s in (file.stat() for file in (path, wal) if file.exists())]

    try:
        _sweep_copies(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=f"{_COPY}{os.getpid()}-"))
    except OSError as error:
        raise StorageFailed(
            f"{path} is read-only, and there is no temporary folder to read it through", hint="set TMPDIR"
        ) from error
    try:
        for _attempt in range(5):
            before = state()
            shutil.copyfile(path, folder / path.name)
            if wal.exists():
                shutil.copyfile(wal, folder / wal.name)
            if state() == before:
                return folder
            (folder / wal.name).unlink(missing_ok=True)
        raise StoreBusy(
            f"{path} is being written, and cannot be read from here meanwhile", hint="try again in a moment"
        )
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise StorageFailed(f"{path} cannot be copied to read it: {error.strerror}") from error
        raise
