"""The records of one export: a snapshot read in short transactions, oldest first, never changing under the reader.

A snapshot is a watermark (`seq`) and the change numbers at that moment. Batches are cut by key (instant, `seq`), each
in a read transaction of its own, so no long transaction keeps the WAL from being given back. Rows added meanwhile lie
above the watermark and are not seen. When a row below it was redacted, changed or deleted meanwhile, the copies already
taken may hold what must not be shared, and the batch raises `Changed`: the whole export starts again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import archive
from qiju.errors import CursorRejected, Refused
from qiju.keeping import cold
from qiju.query import Query
from qiju.search.engine import Position, Snapshot, run, snapshot, still_holds

if TYPE_CHECKING:
    import apsw

    from qiju.db import Database

BATCH_ROWS = 1000
BATCH_TEXT = 8 * 1024 * 1024  # characters of text in a batch, about
_COLUMNS = ", ".join(f"record.{name}" for name in archive.NAMES)


class Changed(Exception):
    """A record of the snapshot was redacted, changed or deleted while it was read."""


class Change(NamedTuple):
    """One entry of a change feed. `kind` is added, changed, redacted or deleted; `row` is None for a deletion."""

    rev: int
    kind: str
    seq: int
    row: archive.Row | None
    id: str
    project: str
    at: str


class Selection:
    """What a query selects in one snapshot, taken when the object is made."""

    def __init__(self, db: Database, query: Query, *, timeout: float) -> None:
        self.db = db
        # Oldest first, whatever was asked for: months come one after another, and a later import keeps commit order.
        self.query = query._replace(sort="ts", descending=False)
        self.timeout = timeout
        with db.read() as connection:
            self.snapshot: Snapshot = snapshot(connection)

    def check(self) -> None:
        """Raise `Changed` when a record of the snapshot is not any more what it was."""
        with self.db.read() as connection:
            self._check(connection)

    def _check(self, connection: apsw.Connection) -> None:
        try:
            still_holds(connection, self.snapshot, tiers=bool(self.query.filters.tiers))
        except CursorRejected as error:
            raise Changed(str(error)) from error

    def batches(self) -> Iterator[list[archive.Row]]:
        """The rows, some at a time."""
        yield from self._scanned() if self.query.blank else self._found()

    def _scanned(self) -> Iterator[list[archive.Row]]:
        clauses, values = self.query.filters.clauses()
        where = " AND ".join(["(record.instant, record.seq) > (?, ?)", "record.seq <= ?", *clauses])
        sql = f"SELECT {_COLUMNS} FROM record WHERE {where} ORDER BY record.instant, record.seq LIMIT {BATCH_ROWS}"
        last = (-(2**63), 0)
        while True:
            with self.db.read() as connection:
                self._check(connection)
                bound: tuple[Any, ...] = (*last, self.snapshot.watermark, *values)
                batch = _bounded(connection.execute(sql, bound))
                batch = [row if row.digest else self._sealed(connection, row) for row in batch]
            if not batch:
                return
            yield batch
            last = (batch[-1].instant or 0, batch[-1].seq)

    def _found(self) -> Iterator[list[archive.Row]]:
        """With words to look for: the search finds the row numbers, page by page."""
        position: Position | None = Position(self.snapshot)
        while position is not None:
            with self.db.read() as connection:
                self._check(connection)
                page = run(connection, self.query, limit=BATCH_ROWS, position=position, timeout=self.timeout)
            position = page.next
            for begin in range(0, len(page.hits), 50):
                with self.db.read() as connection:
                    self._check(connection)
                    rows = [cold.row(connection, hit.seq) for hit in page.hits[begin : begin + 50]]
                yield [row for row in rows if row is not None]

    def _sealed(self, connection: apsw.Connection, row: archive.Row) -> archive.Row:
        return cold.row(connection, row.seq) or row

    # --- changes -----------------------------------------------------------------------------------------------------

    def changes(self, since: int) -> Iterator[Change]:
        """What happened after change number `since`, in order: records added or changed, and deletions.

        Raises `Refused` when the store is not as far as `since` (it was put back to an earlier state).
        """
        if since > self.snapshot.rev:
            raise Refused(
                f"the store is at change {self.snapshot.rev}, before {since}: it was put back to an earlier state",
                hint="start again with a whole export (without --since-rev)",
            )
        yield from heapq.merge(self._changed(since), self._deleted(since), key=lambda change: change.rev)

    def _changed(self, since: int) -> Iterator[Change]:
        clauses, values = self.query.filters.clauses()
        where = " AND ".join(["record.rev > ?", "record.rev <= ?", "record.seq <= ?", *clauses])
        sql = f"SELECT {_COLUMNS}, record.revised FROM record WHERE {where} ORDER BY record.rev LIMIT {BATCH_ROWS}"
        last = since
        while True:
            with self.db.read() as connection:
                self._check(connection)
                bound: tuple[Any, ...] = (last, self.snapshot.rev, self.snapshot.watermark, *values)
                revised: list[bool] = []
                batch = _bounded(_noting(connection.execute(sql, bound), revised))
                batch = [row if row.digest else self._sealed(connection, row) for row in batch]
            if not batch:
                return
            for row, changed in zip(batch, revised, strict=False):
                kind = "added" if not changed else "redacted" if row.redactions != "[]" else "changed"
                yield Change(row.rev, kind, row.seq, row, row.id, row.project, "")
            last = batch[-1].rev

    def _deleted(self, since: int) -> Iterator[Change]:
        filters = self.query.filters
        clauses, values = filters._replace(
            tags=(), since=None, until=None, source="", agent="", model="", model_effort="", tiers=()
        ).clauses()
        where = " AND ".join(["what = 'record'", "rev > ?", "rev <= ?", *clauses]).replace("record.", "tombstone.")
        sql = f"SELECT rev, seq, id, project, deleted_at FROM tombstone WHERE {where} ORDER BY rev LIMIT {BATCH_ROWS}"
        last = since
        while True:
            with self.db.read() as connection:
                found: list[Any] = connection.execute(sql, (last, self.snapshot.rev, *values)).fetchall()
            if not found:
                return
            for rev, seq, identity, project, at in found:
                yield Change(rev, "deleted", seq, None, identity, project, at)
                last = rev


def _noting(found: Any, revised: list[bool]) -> Iterator[tuple[Any, ...]]:
    for values in found:
        revised.append(bool(values[-1]))
        yield values[:-1]


def _bounded(found: Iterable[Any]) -> list[archive.Row]:
    """Rows until their text passes the bound, some at a time; at least one."""
    rows: list[archive.Row] = []
    size = 0
    source = archive.as_rows(found)
    while size <= BATCH_TEXT and (some := list(islice(source, 50))):
        rows += some
        size += archive.weight(some)
    return rows
