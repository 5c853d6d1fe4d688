"""A derived index over a history that is no database: where each record is, by sequence, session, run, work item, kind.

It is an SQLite file that holds no truth: thrown away, it is built again. Readers use a private one without a name,
which the operating system removes with the process, however that ends. A journal's writer keeps one beside the journal
so that opening it again need not read every record; it carries a stamp of what it covers and is dropped when that does
not match, or when anything in it cannot be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from qiju.trajectory.selection import page_sql
from qiju.trajectory.sources import SessionSummary
from qiju.trajectory.types import TrajectoryQuery

LAYOUT = 1
SCHEMA = """
CREATE TABLE entry (
    seq INTEGER PRIMARY KEY,
    record_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    run_id TEXT,
    work_item_id TEXT,
    kind TEXT NOT NULL,
    ts TEXT,                 -- only with payload
    digest BLOB NOT NULL,    -- SHA-256 of the payload, or of a frame's header and meta, which contain that
    place INTEGER NOT NULL,  -- offset in the journal; 0 with payload
    length INTEGER NOT NULL,
    payload TEXT             -- canonical JSON, only in a private copy of a history
) STRICT;
CREATE TABLE stamp (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""
INDEXES = """
CREATE INDEX IF NOT EXISTS entry_record ON entry (session_id, record_id);
CREATE INDEX IF NOT EXISTS entry_session ON entry (session_id, seq);
CREATE INDEX IF NOT EXISTS entry_session_kind ON entry (session_id, kind, seq);
CREATE INDEX IF NOT EXISTS entry_kind ON entry (kind, seq);
CREATE INDEX IF NOT EXISTS entry_run ON entry (run_id, seq) WHERE run_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS entry_work_item ON entry (work_item_id, seq) WHERE work_item_id IS NOT NULL;
"""
COLUMNS = "seq, record_id, session_id, run_id, work_item_id, kind, ts, digest, place, length, payload"


class Entry(NamedTuple):
    """One row; `place` and `length` in bytes of the journal, `digest` 32 bytes."""

    seq: int
    record_id: str
    session_id: str
    run_id: str | None
    work_item_id: str | None
    kind: str
    ts: str | None
    digest: bytes
    place: int
    length: int
    payload: str | None = None


class SequenceIndex:
    """The index over one history. `path` None: private and nameless. Raises `apsw.Error` when a named one is unusable;
    the caller drops it then."""

    def __init__(self, path: Path | None = None, *, read_only: bool = False) -> None:
        self.path = path
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        if read_only:
            flags = apsw.SQLITE_OPEN_READONLY
        self._db = apsw.Connection("" if path is None else str(path), flags=flags)
        self._db.set_busy_timeout(200)
        if read_only:
            return
        try:
            # A named index may be lost or torn at any time, so durability would be wasted; a rollback journal still
            # keeps it whole when its process is killed.
            self._db.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -4000; PRAGMA temp_store = FILE")
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        if self._scalar("PRAGMA user_version") != LAYOUT:
            self._db.execute("BEGIN IMMEDIATE; DROP TABLE IF EXISTS entry; DROP TABLE IF EXISTS stamp")
            self._db.execute(SCHEMA + f"PRAGMA user_version = {LAYOUT}; COMMIT")

    def copy_from(self, other: SequenceIndex) -> None:
        """Take over another index as it stands."""
        with self._db.backup("main", other._db, "main") as backup:
            while not backup.done:
                backup.step(2000)

    def clear(self) -> None:
        self._db.execute("DELETE FROM entry; DELETE FROM stamp")

    def add(self, entries: Iterable[Entry], stamp: Callable[[], dict[str, str]] = dict) -> None:
        """Add entries, then the stamp that covers them, in one transaction; a stream stays bounded in memory. `stamp`
        is asked when the entries are through."""
        with self._db:
            self._db.executemany(f"INSERT INTO entry ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)", entries)
            self._db.executemany("INSERT OR REPLACE INTO stamp VALUES (?, ?)", stamp().items())

    def finish(self) -> None:
        """Build the access paths; cheaper after a first bulk load than during it."""
        self._db.execute(INDEXES)

    def stamp(self) -> dict[str, str]:
        return {str(name): str(value) for name, value in self._db.execute("SELECT name, value FROM stamp")}

    def last(self) -> int:
        return int(self._scalar("SELECT coalesce(max(seq), 0) FROM entry"))

    def find(self, session_id: str, record_id: str) -> Entry | None:
        row = self._db.execute(
            f"SELECT {COLUMNS} FROM entry WHERE session_id = ? AND record_id = ?", (session_id, record_id)
        ).fetchone()
        return None if row is None else Entry(*row)

    def select(self, query: TrajectoryQuery, after: int, upto: int, count: int) -> list[Entry]:
        sql, bindings = page_sql("entry", query)
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM entry WHERE seq IN ({sql}) ORDER BY seq",
            {**bindings, "after": after, "upto": upto, "count": count},
        )
        return [Entry(*row) for row in rows]

    def sessions(self) -> Iterator[SessionSummary]:
        for row in self._db.execute(
            "SELECT session_id, count(*), min(seq), max(seq) FROM entry GROUP BY session_id ORDER BY min(seq)"
        ):
            yield SessionSummary(*row)

    def close(self) -> None:
        self._db.close()

    def _scalar(self, sql: str) -> int:
        row = self._db.execute(sql).fetchone()
        return 0 if row is None else row[0]


def open_kept(path: Path) -> SequenceIndex | None:
    """The index kept at `path`, built anew when unreadable; None when the place cannot be written."""
    for _attempt in range(2):
        try:
            # Created here, because SQLite would give it the mode of the umask; it names sessions.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            index = SequenceIndex(path)
            index.finish()
            return index
        except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError):
            drop(path)
        except (apsw.Error, OSError):
            return None
    return None


def drop(path: Path) -> None:
    """Throw a kept index away, its own rollback journal included."""
    for name in (path, path.with_name(path.name + "-journal")):
        try:
            name.unlink()
        except OSError:
            continue
