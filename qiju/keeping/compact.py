"""Giving space back: merging the search index in short steps, VACUUM, and the WAL.

FTS5's `optimize` is one long transaction; `merge` does the same in steps between which writers get their turn. VACUUM
cannot be cut up, so it runs only when it was asked for. A checkpoint that a reader holds up is not a failure: the next
one does it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qiju.db import translated
from qiju.keeping.tiers import PAUSE

if TYPE_CHECKING:
    from qiju.db import Database

INDEXES = ("record_fts", "record_trigram")
MERGE_PAGES = 500  # pages of index a step, about
CHECKPOINT_WAIT = 1.0  # seconds; a truncating checkpoint that waits for a reader keeps writers out meanwhile


def merge_indexes(db: Database) -> int:
    """Merge each index into one segment, a step a transaction; returns the number of steps."""
    steps = 0
    for table in INDEXES:
        # The negative first step tells FTS5 to take all segments together, as `optimize` does.
        for pages in _steps():
            if steps:
                time.sleep(PAUSE)
            with db.write() as connection:
                before = connection.total_changes()
                connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))
                worked = connection.total_changes() - before
            steps += 1
            if worked < 2:
                break
    return steps


def _steps() -> Any:
    yield -MERGE_PAGES
    while True:
        yield MERGE_PAGES


def checkpoint(db: Database) -> dict[str, Any]:
    """Move the WAL into the database and cut it; `bytes` is what is left of it, above 0 when a reader held it up."""
    if db.path is None:
        return {"bytes": 0}
    patience, db.lock_wait = db.lock_wait, min(db.lock_wait, CHECKPOINT_WAIT)
    try:
        with translated(db):
            db.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.lock_wait = patience
    return {"bytes": _size(db.path.with_name(db.path.name + "-wal"))}


def compact(db: Database, dry_run: bool) -> dict[str, Any]:
    """Merge the indexes, refresh the planner's statistics and VACUUM. Sizes in bytes; `free` can be won by VACUUM."""
    if not dry_run:
        checkpoint(db)  # sizes tell nothing while the pages are still in the WAL
    page, free = int(db.value("PRAGMA page_size")), int(db.value("PRAGMA freelist_count"))
    path = db.path
    before = _size(path)
    result: dict[str, Any] = {"before": before, "free": page * free}
    if dry_run or path is None:
        return result
    result["index_steps"] = merge_indexes(db)
    with translated(db):
        db.connection.execute("PRAGMA optimize")
        db.connection.execute("VACUUM")
    checkpoint(db)
    result["after"] = _size(path)
    return result


def _size(path: Path | None) -> int:
    try:
        return 0 if path is None else path.stat().st_size
    except FileNotFoundError:
        return 0
