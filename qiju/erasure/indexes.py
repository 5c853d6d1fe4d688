"""The search indexes and the WAL after a change: old segments merged away in short steps, old page images cut off.

FTS5 only marks a deleted entry; its words stay in the old segments until those are merged. One merge that takes all
segments together does it, cut into steps of some pages, so that other writers get their turn in between. VACUUM copies
segments as they are and cleans none of them.

An open reader keeps the WAL from being cut. It is waited for a little, then named.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from qiju.db import translated
from qiju.keeping.compact import INDEXES, MERGE_PAGES
from qiju.keeping.tiers import PAUSE

if TYPE_CHECKING:
    from collections.abc import Callable

    from qiju.db import Database

READER_WAIT = 3.0  # seconds an open reader is waited for
_ROUNDS = 8  # of merging, while others write; then one long step takes the rest
_READ_LOCKS = range(123, 128)  # bytes of the -shm file that SQLite locks for reading


def merge(db: Database, step: Callable[[int], object] = lambda _: None) -> None:
    """Merge every index until one segment is left, or as many as other writers add meanwhile."""
    for table in INDEXES:
        for _round in range(_ROUNDS):
            # The negative number tells FTS5 to take all segments together; it does nothing when there is but one.
            if not _merge_step(db, table, -MERGE_PAGES):
                break
            step(1)
            while _merge_step(db, table, MERGE_PAGES):
                step(1)
        else:
            with db.write() as connection:
                connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def _merge_step(db: Database, table: str, pages: int) -> bool:
    """One step in one transaction; whether there was anything to do."""
    time.sleep(PAUSE)
    with db.write() as connection:
        before = connection.total_changes()
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))
        return bool(connection.total_changes() - before >= 2)


def cut_wal(db: Database, wait: float = READER_WAIT) -> str:
    """Checkpoint and truncate the WAL; '' when nothing is left in it, else who holds it up."""
    if db.path is None:
        return ""
    deadline = time.monotonic() + wait
    patience, db.lock_wait = db.lock_wait, min(db.lock_wait, 0.2)
    try:
        while True:
            with translated(db):
                busy, frames, _done = db.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchone() or (
                    1,
                    0,
                    0,
                )
            if not busy and frames <= 0:
                return ""
            if time.monotonic() >= deadline:
                return _holders(db)
            time.sleep(0.05)
    finally:
        db.lock_wait = patience


def _holders(db: Database) -> str:
    pids = readers(db)
    if pids:
        return "process " + ", ".join(map(str, pids))
    return "another process that reads or writes the store"


def readers(db: Database) -> list[int]:
    """The other processes with an open read of the store, where the system tells (Linux)."""
    import os

    try:
        inode = Path(f"{db.path}-shm").stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    found = set()
    for line in lines:
        words = line.split()
        if len(words) < 8 or "->" in words or not words[5].endswith(f":{inode}") or words[7] == "EOF":
            continue
        if any(int(words[6]) <= byte <= int(words[7]) for byte in _READ_LOCKS) and int(words[4]) != os.getpid():
            found.add(int(words[4]))
    return sorted(found)


def vacuum(db: Database) -> None:
    """Write the whole database anew; only when the proof asks for it, since writers wait for all of it."""
    with translated(db):
        db.connection.execute("VACUUM")
