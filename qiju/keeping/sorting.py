"""Redacted records on their way in: deduplicated by id and handed out by time, with memory that does not grow.

Sorting before insertion keeps commit order and time order the same, which keeps search pages cheap (few late marks) and
the trigram index small. The rows lie in a private SQLite database without a name: SQLite keeps it in its cache, spills
it to a deleted temporary file beyond that, and drops it on close. Only redacted text gets in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import apsw

CACHE_KIB = 32 * 1024


class Staged(NamedTuple):
    """`data` is whatever the caller packed; `instant` in microseconds."""

    part: str
    line: int
    data: str


class Sorter:
    """`with Sorter() as box: box.add(...)`, then `for staged in box`."""

    def __init__(self) -> None:
        self._db = apsw.Connection("")
        self._db.execute(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{CACHE_KIB};"
            "CREATE TABLE item (number INTEGER PRIMARY KEY, instant INTEGER NOT NULL, project TEXT NOT NULL, "
            "id TEXT NOT NULL, part TEXT NOT NULL, line INTEGER NOT NULL, data TEXT NOT NULL);"
            "CREATE UNIQUE INDEX item_id ON item (id, project); BEGIN"
        ).fetchall()  # apsw stops at a statement that gives a row until it is fetched
        self.count = 0

    def __enter__(self) -> Sorter:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def add(self, *, project: str, id: str, instant: int, part: str, line: int, data: str) -> Staged | None:
        """Keep one record, or return its twin: the earlier one of the same source with the same project and id."""
        cursor = self._db.execute(
            "INSERT INTO item (instant, project, id, part, line, data) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING RETURNING number",
            (instant, project, id, part, line, data),
        )
        if cursor.fetchone() is not None:
            self.count += 1
            return None
        twin = self._db.execute(
            "SELECT part, line, data FROM item WHERE id = ? AND project = ?", (id, project)
        ).fetchone()
        assert twin is not None  # the insert has just met it
        return Staged(*twin)

    def __iter__(self) -> Iterator[Staged]:
        # Only keys go through the sort; the texts are fetched one by one, so no sort ever holds them all.
        ordered = self._db.execute("SELECT number FROM item ORDER BY instant, number")
        for (number,) in ordered:
            row = self._db.execute("SELECT part, line, data FROM item WHERE number = ?", (number,)).fetchone()
            assert row is not None
            yield Staged(*row)
