"""Run a query over one snapshot: plan, read candidates, verify, stop when the page is full.

`run` answers with row numbers in order; the caller loads the records it prints. It reads several statements, so it is
called inside one read transaction. A snapshot is three numbers: the highest `seq`, and the two change numbers against
which a later page finds out whether anything inside it was changed meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from qiju.errors import CursorRejected, NotFound
from qiju.query import BY_RELEVANCE, Query, checked
from qiju.search import matching, paths, plan
from qiju.search.matching import Row, Verify
from qiju.values import NamedTuple
from qiju.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import apsw

TIMEOUT = 10.0  # seconds a pattern may take
LADDER = ("phrase", "all", "any")
AGAIN = "start again from the first page: the same command without --cursor"
COUNTER = "SELECT value FROM counter WHERE name = ?"


class Snapshot(NamedTuple):
    """The records up to `watermark`, as they were at change number `rev` (tiers: `tier_rev`)."""

    watermark: int
    rev: int
    tier_rev: int


class Hit(NamedTuple):
    """One matching row. `match` is the rung of the ladder under `--match auto`, `score` the relevance; else empty."""

    seq: int
    match: str = ""
    score: float | None = None


class Position(NamedTuple):
    """Where a page begins: after the row `last` of a snapshot. `ranked` are the rows still to come by relevance."""

    snapshot: Snapshot
    last: int = 0
    match: str = ""
    total: int | None = None
    ranked: tuple[Hit, ...] | None = None


class Explanation:
    """What a search did, for `--explain`."""

    __slots__ = ("candidates", "paths", "seconds", "verified")

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.candidates = self.verified = 0
        self.seconds = 0.0

    def __str__(self) -> str:
        how = "; then ".join(self.paths) or "nothing to read"
        return f"path {how}; candidates {self.candidates}, verified {self.verified}, time {self.seconds * 1000:.1f} ms"


class Found(NamedTuple):
    """A page. `next` is the position of the page after it, or None; `capped` says that a ranked list was cut there."""

    hits: list[Hit]
    next: Position | None
    snapshot: Snapshot
    total: int | None
    explanation: Explanation
    ranked: bool = False
    capped: bool = False


def snapshot(connection: apsw.Connection) -> Snapshot:
    """The store as it is now."""
    return Snapshot(
        plan.number(connection, "SELECT coalesce(max(seq), 0) FROM record"),
        plan.number(connection, COUNTER, ("rev",)),
        plan.number(connection, COUNTER, ("tier_rev",)),
    )


def still_holds(connection: apsw.Connection, snapshot: Snapshot, *, tiers: bool) -> None:
    """Raises `CursorRejected` when a record of the snapshot was changed or removed since (`tiers`: or moved)."""
    watermark, rev, tier_rev = snapshot
    if plan.number(connection, COUNTER, ("rev",)) < rev or plan.number(connection, COUNTER, ("tier_rev",)) < tier_rev:
        raise CursorRejected("the store was put back to an earlier state since the first page", hint=AGAIN)
    questions = [
        ("redacted or changed", "SELECT 1 FROM record WHERE revised = 1 AND rev > ? AND seq <= ? LIMIT 1", rev),
        ("deleted", "SELECT 1 FROM tombstone WHERE what = 'record' AND rev > ? AND seq <= ? LIMIT 1", rev),
    ]
    if tiers:
        moved = "SELECT 1 FROM record WHERE tier_rev > 0 AND tier_rev > ? AND seq <= ? LIMIT 1"
        questions.append(("moved to another tier", moved, tier_rev))
    for what, sql, number in questions:
        if connection.execute(sql, (number, watermark)).fetchall():
            raise CursorRejected(f"a record of this cursor's snapshot was {what} since the first page", hint=AGAIN)


def run(
    connection: apsw.Connection,
    query: Query,
    *,
    limit: int | None = None,
    position: Position | None = None,
    count: bool = False,
    timeout: float = TIMEOUT,
    home_project: str = "",
    force: str = "",
) -> Found:
    """The page of `limit` rows (None: all) after `position`.

    Raises `UsageError` for a query that cannot be answered, `SearchTimeout` for a pattern that runs away,
    `CursorRejected` when the position's last row is gone. `home_project` is favoured a little by relevance.
    `force` names a path, for tests.
    """
    checked(query)
    began = time.perf_counter()
    explanation = Explanation()
    at = position or Position(snapshot(connection))
    if query.sort == BY_RELEVANCE and not query.blank and not query.regex:
        from qiju.search import ranking

        found = ranking.run(connection, query, limit, at, home_project, explanation)
    else:
        with ExitStack() as stack:
            search = _Search(connection, query, at, timeout, force, explanation, stack)
            found = search.page(limit, count)
    explanation.seconds = time.perf_counter() - began
    return found


def literal_rows(
    connection: apsw.Connection, query: Query, at: Position, limit: int, explanation: Explanation
) -> list[int]:
    """The first `limit` rows that match literally, in the query's order, within a snapshot."""
    with ExitStack() as stack:
        search = _Search(connection, query, Position(at.snapshot), TIMEOUT, "", explanation, stack)
        return search.rows(query.match, limit - 1)


class _Search:
    """One question in the order of a column; `--sort relevance` without words to rank by is newest first."""

    def __init__(
        self,
        connection: apsw.Connection,
        query: Query,
        at: Position,
        timeout: float,
        force: str,
        explanation: Explanation,
        stack: ExitStack,
    ) -> None:
        self.connection, self.query, self.at = connection, query, at
        self.force, self.explanation = force, explanation
        self.find: matching.Finder | None = None
        if query.regex and not query.blank:
            from qiju.search.watch import Watch, compiled

            self.find = stack.enter_context(Watch(compiled(query.text), timeout)).search

    def page(self, limit: int | None, count: bool) -> Found:
        at = self.at
        auto = self.query.match == "auto" and not self.query.blank and not self.query.regex
        rungs = LADDER if auto and not at.match else (at.match or self.query.match,)
        rows: list[int] = []
        rung = rungs[-1]
        for rung in rungs:
            rows = self.rows(rung, limit)
            if rows:
                break
        more = limit is not None and len(rows) > limit
        rows = rows[:limit]
        total = at.total
        if count and total is None:
            total = self.count(rung)
        following = at._replace(last=rows[-1], match=rung if auto else "", total=total) if more else None
        hits = [Hit(seq, rung if auto else "") for seq in rows]
        return Found(hits, following, at.snapshot, total, self.explanation)

    def rows(self, match: str, limit: int | None) -> list[int]:
        """The verified rows of the page, and one more when there is one."""
        course = plan.course(self.query, self.at.snapshot.watermark, match)
        if self.at.last:
            course = course._replace(after=self._key(course.order))
        need = None if limit is None else limit + 1
        found: list[int] = []
        verify = self.verify(match)
        for row in self.candidates(course, match, need):
            if verify(row):
                self.explanation.verified += 1
                found.append(row.seq)
                if len(found) == need:
                    break
        return found

    def count(self, match: str) -> int:
        course = plan.course(self.query, self.at.snapshot.watermark, match)
        if self.query.blank:
            where, values = course.where()
            return plan.number(self.connection, f"SELECT count(*) FROM record WHERE {where}", values)
        verify = self.verify(match)
        return sum(map(verify, self.candidates(course, match, None)))

    def candidates(self, course: paths.Course, match: str, need: int | None) -> Iterator[Row]:
        chosen = plan.choose(self.connection, course, plan.needle(self.query, match), need, self.force)
        while True:
            self.explanation.paths.append(f"{chosen.path} ({chosen.reason})")
            walked = 0
            row = None
            for row in _follow(self.connection, course, chosen):
                self.explanation.candidates += 1
                walked += 1
                yield row
                if chosen.give_up_after is not None and walked >= chosen.give_up_after:
                    break
            else:
                return
            course = course._replace(after=course.key(row))
            chosen = plan.Plan("set", chosen.needle, f"the walk was given up after {counted(walked, 'row')}")

    def verify(self, match: str) -> Verify:
        if self.query.blank:
            return lambda _row: True
        if self.find is not None:
            return matching.pattern(self.find)
        return matching.literal(self.query, match)

    def _key(self, order: tuple[str, ...]) -> paths.Key:
        """The sort values of the last row served: they stand in the store, not in the cursor."""
        found = self.connection.execute(
            f"SELECT {', '.join(order)} FROM record WHERE seq = ?", (self.at.last,)
        ).fetchall()
        if not found:
            raise CursorRejected("the last record of the previous page is gone", hint=AGAIN)
        return tuple(found[0])


def _follow(connection: apsw.Connection, course: paths.Course, chosen: plan.Plan) -> Iterator[Row]:
    """The candidates of a plan. Raises `NotFound` for a path that does not exist or does not fit, which is a test's."""
    if chosen.path == "scan":
        return paths.scan(connection, course)
    if chosen.path == "project":
        return paths.project(connection, course)
    if chosen.path == "session":
        return paths.session(connection, course)
    if chosen.path == "set" and chosen.needle.indexed:
        return paths.whole_set(connection, course, chosen.needle)
    if chosen.path == "stream" and chosen.needle.condition is not None and not chosen.needle.shorts:
        return paths.stream(connection, course, chosen.needle.condition)
    raise NotFound(f"the path {chosen.path!r} does not lead to this query")
