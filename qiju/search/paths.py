"""The ways to the candidates of a search. Each gives the same rows in the same order; they differ in what they read.

    scan      walk the records in order
    project   walk the records of the asked projects in order
    session   the records of the asked session, sorted
    stream    follow the trigram index in commit order, which is time order but for late rows, and slip those in
    set       all candidates of the index (trigrams, short terms), sorted

A path applies every filter, the snapshot and the position in SQL; the text is verified by the caller. Rows written by
hand are not folded in the index, so the last two add all of them. The `*_sql` functions give the statement without
running it, for tests that look at its plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qiju.query import Filters, after_prefix
from qiju.search.matching import COLUMNS, Row
from qiju.search.trigrams import Condition, match_text
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

PATHS = ("scan", "project", "session", "stream", "set")
TIME = ("instant", "seq")

Statement = tuple[str, tuple[object, ...]]
Key = tuple[object, ...]


class Needle(NamedTuple):
    """What the index can be asked for: rows that meet `condition`, or hold one of the `shorts` (1 or 2 characters)."""

    condition: Condition | None = None
    shorts: tuple[str, ...] = ()
    known: tuple[int, ...] | None = None  # all rows the index names, once it has been asked

    @property
    def indexed(self) -> bool:
        return self.condition is not None or bool(self.shorts)


class Course(NamedTuple):
    """Where a page begins and which way it goes: columns of `record` ending in `seq`, and the last key served."""

    filters: Filters
    watermark: int
    order: tuple[str, ...] = TIME
    descending: bool = True
    after: Key | None = None
    pieces: tuple[str, ...] = ()  # caseless literals; every match holds one of them, so a walk asks SQLite first

    def where(self, *more: str, bind: Sequence[object] = ()) -> tuple[str, tuple[object, ...]]:
        """Snapshot, `more` (which takes the values of `bind`), filters and position as one condition."""
        parts, values = self.filters.clauses()
        parts = ["record.seq <= ?", *more, *parts]
        bound: list[object] = [self.watermark, *bind, *values]
        if self.after is not None:
            columns = ", ".join(f"record.{column}" for column in self.order)
            parts.append(f"({columns}) {'<' if self.descending else '>'} ({', '.join('?' * len(self.after))})")
            bound.extend(self.after)
        return " AND ".join(parts), tuple(bound)

    def order_by(self) -> str:
        way = "DESC" if self.descending else "ASC"
        return ", ".join(f"record.{column} {way}" for column in self.order)

    def key(self, row: Row) -> Key:
        """The position of a row on a course in time order."""
        return (row.instant, row.seq)


def scan_sql(course: Course) -> Statement:
    looks, pieces = _holds(course)
    where, values = course.where(looks, bind=pieces)
    using = "INDEXED BY record_instant" if course.order == TIME else ""
    return f"SELECT {COLUMNS} FROM record {using} WHERE {where} ORDER BY {course.order_by()}", values


def project_sql(course: Course, project: str) -> Statement:
    """The walk of one project; several are merged."""
    one = course._replace(filters=course.filters._replace(projects=(project,)))
    looks, pieces = _holds(course)
    where, values = one.where(looks, bind=pieces)
    return f"SELECT {COLUMNS} FROM record INDEXED BY record_project WHERE {where} ORDER BY {course.order_by()}", values


def session_sql(course: Course) -> Statement:
    where, values = course.where()
    return f"SELECT record.seq FROM record INDEXED BY record_session WHERE {where} ORDER BY {course.order_by()}", values


def set_sql(course: Course, needle: Needle) -> Statement:
    where, values = course.where()
    among, asked = _among(needle)
    return (
        f"SELECT record.seq FROM record NOT INDEXED WHERE record.seq IN ({among}) AND {where}"
        f" ORDER BY {course.order_by()}",
        (*asked, *values),
    )


def stream_sql(course: Course, condition: Condition, low: int, high: int) -> Statement:
    where, values = course.where("record.late = 0", "record.digest <> ''")
    way = "DESC" if course.descending else "ASC"
    return (
        f"SELECT {COLUMNS} FROM record_trigram CROSS JOIN record ON record.seq = record_trigram.rowid"
        " WHERE record_trigram MATCH ? AND record_trigram.rowid <= ? AND record_trigram.rowid >= ?"
        f" AND {where} ORDER BY record_trigram.rowid {way}",
        (match_text(condition), high, low, *values),
    )


def scan(connection: apsw.Connection, course: Course) -> Iterator[Row]:
    if course.order == TIME:
        return _rows(connection, scan_sql(course))
    sql, values = scan_sql(course)
    return _fetched(connection, (sql.replace(COLUMNS, "record.seq", 1), values))


def project(connection: apsw.Connection, course: Course) -> Iterator[Row]:
    walks = [_rows(connection, project_sql(course, slug)) for slug in course.filters.projects or ()]
    if len(walks) == 1:
        return walks[0]
    from heapq import merge

    return merge(*walks, key=course.key, reverse=course.descending)


def session(connection: apsw.Connection, course: Course) -> Iterator[Row]:
    return _fetched(connection, session_sql(course))


def whole_set(connection: apsw.Connection, course: Course, needle: Needle) -> Iterator[Row]:
    return _fetched(connection, set_sql(course, needle))


def stream(connection: apsw.Connection, course: Course, condition: Condition) -> Iterator[Row]:
    """The index in commit order. Before each of its rows come the late and the unsealed ones that lie before it."""
    low, high = commit_bounds(connection, course)
    aside = [kind for kind in _ASIDE if connection.execute(f"SELECT 1 FROM record WHERE {kind} LIMIT 1").fetchall()]
    at = course.after
    for row in _rows(connection, stream_sql(course, condition, low, high)):
        if aside:
            yield from _between(connection, course._replace(after=at), aside, course.key(row))
            at = course.key(row)
        yield row
    yield from _between(connection, course._replace(after=at), aside, None)


def commit_bounds(connection: apsw.Connection, course: Course) -> tuple[int, int]:
    """The first and last `seq` in commit order that the course can still meet."""
    filters = course.filters
    clauses, values = ["late = 0"], []
    if filters.since is not None:
        clauses.append("instant >= ?")
        values.append(filters.since)
    if filters.until is not None:
        clauses.append("instant < ?")
        values.append(filters.until)
    if course.after is not None:
        clauses.append(f"(instant, seq) {'<' if course.descending else '>'} (?, ?)")
        values.extend(course.after)  # type: ignore[arg-type]
    if not values:
        return 0, course.watermark
    ends = []
    for way in ("ASC", "DESC"):
        found: list[tuple[Any, ...]] = connection.execute(
            f"SELECT seq FROM record INDEXED BY record_late WHERE {' AND '.join(clauses)}"
            f" ORDER BY instant {way}, seq {way} LIMIT 1",
            values,
        ).fetchall()
        if not found:
            return 1, 0  # nothing in commit order is left
        ends.append(int(found[0][0]))
    return ends[0], min(ends[1], course.watermark)


# Rows that the stream cannot meet in order: late ones, and those written by hand.
_ASIDE = {"late = 1": "record_late", "digest = ''": "record_unsealed"}


def _between(connection: apsw.Connection, course: Course, aside: list[str], end: Key | None) -> Iterator[Row]:
    """Rows aside from the stream, from the course's position to `end`, in order."""
    found: list[Iterator[Row]] = []
    for kind in aside:
        more = [f"record.{kind}", *(["record.late = 0"] if kind != "late = 1" else [])]
        where, values = course.where(*more)
        if end is not None:
            where += f" AND (record.instant, record.seq) {'>' if course.descending else '<'} (?, ?)"
            values = (*values, *end)
        sql = f"SELECT {COLUMNS} FROM record INDEXED BY {_ASIDE[kind]} WHERE {where} ORDER BY {course.order_by()}"
        found.append(_rows(connection, (sql, values)))
    if len(found) == 1:
        yield from found[0]
    elif found:
        from heapq import merge

        yield from merge(*found, key=course.key, reverse=course.descending)


_LOOKED_AT = ("body_md", "title", "tags", "search_terms", "next_steps", "agent", "model", "model_effort")
_GLOB = str.maketrans({"*": "[*]", "?": "[?]", "[": "[[]"})


def _holds(course: Course) -> tuple[str, list[object]]:
    """The pieces as a condition in SQL, for rows whose text is compared as it is written. GLOB scans fastest."""
    if not course.pieces:
        return "TRUE", []
    looks = [f"record.{column} GLOB ?" for column in _LOOKED_AT for _ in course.pieces]
    return (
        f"(record.folded <> '' OR record.digest = '' OR {' OR '.join(looks)})",
        [f"*{piece.translate(_GLOB)}*" for _ in _LOOKED_AT for piece in course.pieces],
    )


def _among(needle: Needle) -> tuple[str, list[object]]:
    """A subquery that gives the `seq` of every row that may hold the needle."""
    parts: list[str] = []
    values: list[object] = []
    if needle.known is not None:
        parts.append("SELECT value FROM json_each(?)")
        values.append(f"[{','.join(map(str, needle.known))}]")
    elif needle.condition is not None:
        parts.append("SELECT rowid FROM record_trigram WHERE record_trigram MATCH ?")
        values.append(match_text(needle.condition))
    for short in needle.shorts if needle.known is None else ():
        parts.append("SELECT doc FROM record_trigram_instance WHERE term >= ? AND term < ?")
        values.extend((short, after_prefix(short)))
    parts.append("SELECT seq FROM record INDEXED BY record_unsealed WHERE digest = ''")
    return " UNION ALL ".join(parts), values


def _rows(connection: apsw.Connection, statement: Statement) -> Iterator[Row]:
    return map(Row._make, connection.execute(*statement))


def _fetched(connection: apsw.Connection, statement: Statement) -> Iterator[Row]:
    """Rows by their numbers, which are cheap to sort; the text is read as it is asked for."""
    one = f"SELECT {COLUMNS} FROM record WHERE seq = ?"
    for (seq,) in connection.execute(*statement):
        yield from map(Row._make, connection.execute(one, (seq,)))
