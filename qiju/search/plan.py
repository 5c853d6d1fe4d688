"""Which way to the candidates costs least? Asked of the index itself, with bounded questions.

The trigram index tells, by how far back its newest few hundred candidates reach, how dense they are from the page's
position on. From that follow the rows each way would read; the weights are microseconds measured on one machine, and
only their ratios matter. The choice never changes an answer, it only changes what is read: every way gives the same
rows. A walk that turns out longer than expected is given up for the index at the point it has reached.
"""

from __future__ import annotations

import re

from qiju.query import BY_SESSION, SORTS, Query, after_prefix, terms
from qiju.record import fold
from qiju.search import trigrams
from qiju.search.paths import TIME, Course, Needle, commit_bounds
from qiju.search.trigrams import match_text
from qiju.values import NamedTuple
from qiju.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

PROBE = 256  # candidates looked at to learn their density
SHORT_PROBE = 1_000  # instances of a short term, which are cheaper
SAMPLE = 200  # rows in time order looked at where the index can only tell that there are many
MOST_PIECES = 4  # literals that a walk asks SQLite for itself
COUNTED = 20_000  # rows of a project or session counted before it is called large
SESSION_ROWS = 2_000  # a session (or prefix) of up to so many rows is sorted whole

# Microseconds: to walk and verify a row, to follow the index to one and verify it, to find and sort one candidate.
WALK, FOLLOW, SORT, OPEN = 4.0, 6.0, 2.5, 300.0
WALK_CASELESS = 1.5  # SQLite passes over rows by itself


_LIKE = r"[\\%_]"


class Plan(NamedTuple):
    path: str
    needle: Needle
    reason: str
    give_up_after: int | None = None  # rows walked before the index is asked after all


def needle(query: Query, match: str) -> Needle:
    """What the index can be asked for on behalf of a query under `match` (any, all or phrase)."""
    literals: tuple[str, ...]
    from_tags = trigrams.every(trigrams.literal(_as_indexed(tag)) for tag in query.filters.tags)
    if query.blank:
        return Needle(from_tags)
    if query.regex:
        from qiju.search.watch import FLAGS, source

        return Needle(trigrams.every((trigrams.pattern(source(query.text), FLAGS), from_tags)))
    if match == "phrase":
        literals = (query.text.strip(),)
    else:
        literals = terms(query.text)
    literals = tuple(map(_as_indexed, literals))
    long = [literal for literal in literals if len(literal) >= trigrams.PIECE]
    short = tuple(literal for literal in literals if len(literal) < trigrams.PIECE)
    most = max(1, min(trigrams.MOST_PIECES, trigrams.MOST_LEAVES // max(len(long), 1)))
    conditions = [trigrams.literal(literal, most) for literal in long]
    if match == "all" and long:
        return Needle(trigrams.every((*conditions, from_tags)))
    if match == "all":
        return Needle(from_tags) if from_tags else Needle(None, (max(short, key=len),))
    condition = trigrams.either(conditions)
    if not short:
        return Needle(trigrams.every((condition, from_tags)))
    return Needle(from_tags) if from_tags else Needle(condition, short)


def _as_indexed(literal: str) -> str:
    return fold(literal).replace("\0", trigrams.NUL_STANDS_AS)


def course(query: Query, watermark: int, match: str = "any") -> Course:
    """The way through the records that a query's order asks for, from its beginning."""
    if query.sort == BY_SESSION:
        order: tuple[str, ...] = ("session_id", "number", "seq")
    else:
        column = SORTS.get(query.sort, "instant")
        order = (column,) if column == "seq" else (column, "seq")
    return Course(query.filters, watermark, order, query.descending, pieces=_pieces(query, match))


def _pieces(query: Query, match: str) -> tuple[str, ...]:
    """Literals without letters of two cases: they stand in a row as they stand in the query, or not at all.

    Rows whose folding is out of the ordinary keep their folded text and are looked at anyway.
    """
    if query.blank or query.regex:
        return ()
    literals = (fold(query.text.strip()),) if match == "phrase" else terms(query.text)
    caseless = tuple(
        each for each in literals if each.lower() == each.upper() and "\0" not in each and len(each) < 1000
    )
    if match == "all":
        return caseless[:1]
    return caseless if len(caseless) == len(literals) <= MOST_PIECES else ()


def choose(connection: apsw.Connection, course: Course, needle: Needle, need: int | None, force: str = "") -> Plan:
    """The plan for the next `need` rows (None: all of them). `force` names a path, for tests."""
    if force:
        return Plan(force, needle, "forced")
    filters = course.filters
    if filters.session:
        rows = _count(connection, *_session_rows(filters.session), SESSION_ROWS)
        if rows <= SESSION_ROWS:
            return Plan("session", needle, f"the session has {counted(rows, 'row')}")
    if course.order != TIME:
        if not needle.indexed:
            return Plan("scan", needle, f"order by {course.order[0]}, nothing to ask the index for")
        return Plan("set", needle, f"order by {course.order[0]}")
    walk, walked_rows = _walk(connection, course)
    if not needle.indexed:
        return Plan(walk, needle, "nothing to ask the index for")
    known, density = _density(connection, course, needle)
    if known is not None and course.after is None and filters.since is None and filters.until is None:
        return Plan("set", needle._replace(known=known), counted(len(known), "candidate"))
    return _cheapest(connection, course, needle, need, walk, walked_rows, density)


def _cheapest(
    connection: apsw.Connection,
    course: Course,
    needle: Needle,
    need: int | None,
    walk: str,
    walked_rows: int,
    density: float,
) -> Plan:
    candidates = max(1.0, density * course.watermark)
    share = min(1.0, walked_rows / max(course.watermark, 1))
    wanted = candidates * share if need is None else min(float(need), max(candidates * share, 1.0))
    passed = min(float(walked_rows), wanted / max(density, 1e-9))  # rows of the walk until the page is full
    costs = {
        walk: (WALK_CASELESS if course.pieces else WALK) * passed,
        "set": OPEN + SORT * candidates + FOLLOW * wanted,
    }
    if needle.condition is not None and not needle.shorts:
        # Until the page is full the stream meets the candidates of all projects, and the late rows between them.
        met = min(candidates, wanted / max(share, 1e-9))
        late = _late_share(connection, course) * met / max(density, 1e-9)
        costs["stream"] = OPEN + FOLLOW * met + WALK * late
    path = min(costs, key=lambda name: (costs[name], name))
    reason = f"density {density:.2g}, " + ", ".join(f"{name} {cost:,.0f}" for name, cost in sorted(costs.items()))
    give_up = None
    if path == walk:
        # Twice the price of the dearer way is the most that a wrong guess can cost.
        give_up = 200 + int(max(costs["set"], costs[walk]) / WALK) * 2
    return Plan(path, needle, reason, give_up)


def _density(connection: apsw.Connection, course: Course, needle: Needle) -> tuple[tuple[int, ...] | None, float]:
    """(all candidates from here on when they are few, candidates a record)."""
    met: set[int] = set()
    few, density = True, 0.0
    if needle.condition is not None:
        low, high = commit_bounds(connection, course)
        way = "DESC" if course.descending else "ASC"
        rows: list[tuple[Any, ...]] = connection.execute(
            "SELECT rowid FROM record_trigram WHERE record_trigram MATCH ? AND rowid <= ? AND rowid >= ?"
            f" ORDER BY rowid {way} LIMIT {PROBE}",
            (match_text(needle.condition), high, low),
        ).fetchall()
        few = len(rows) < PROBE
        met.update(row[0] for row in rows)
        span = (high - low if few else abs((high if course.descending else low) - rows[-1][0])) + 1
        density = len(rows) / max(span, 1)
    for short in needle.shorts:
        instances: list[tuple[Any, ...]] = connection.execute(
            f"SELECT doc FROM record_trigram_instance WHERE term >= ? AND term < ? LIMIT {SHORT_PROBE}",
            (short, after_prefix(short)),
        ).fetchall()
        few = few and len(instances) < SHORT_PROBE
        met |= {row[0] for row in instances}
    density = max(density, len(met) / max(course.watermark, 1))
    if needle.shorts and not few:
        # The instances lie in order of pieces, not of time, so they only tell the least that there can be.
        density = max(density, _sampled(connection, course, needle.shorts))
    return tuple(sorted(met)) if few else None, min(density, 1.0)


def _sampled(connection: apsw.Connection, course: Course, shorts: tuple[str, ...]) -> float:
    """The share of the next rows in time order that seem to hold a short term: LIKE knows only the case of ASCII."""
    where, values = course.where()
    seems = " OR ".join(["body_md LIKE ? ESCAPE '\\'"] * len(shorts))
    patterns = [f"%{re.sub(_LIKE, _escaped, short)}%" for short in shorts]
    found: list[tuple[Any, ...]] = connection.execute(
        f"SELECT avg({seems}) FROM (SELECT body_md FROM record INDEXED BY record_instant WHERE {where}"
        f" ORDER BY {course.order_by()} LIMIT {SAMPLE})",
        (*patterns, *values),
    ).fetchall()
    return float(found[0][0] or 0.0)


def _escaped(match: re.Match[str]) -> str:
    return "\\" + match[0]


def _walk(connection: apsw.Connection, course: Course) -> tuple[str, int]:
    """The narrowest walk in time order, and about how many rows it has."""
    projects = course.filters.projects
    if projects is None or not 1 <= len(projects) <= 16:
        return "scan", course.watermark
    rows = sum(_count(connection, "record_project", "project = ?", (slug,), COUNTED) for slug in projects)
    return "project", rows if rows <= COUNTED else max(rows, course.watermark // 2)


def _count(connection: apsw.Connection, index: str, where: str, values: tuple[object, ...], most: int) -> int:
    """The rows of an index that meet `where`, counted up to `most` + 1."""
    sql = f"SELECT 1 FROM record INDEXED BY {index} WHERE {where} LIMIT {most + 1}"
    return number(connection, f"SELECT count(*) FROM ({sql})", values)


def number(connection: apsw.Connection, sql: str, values: tuple[Any, ...] = ()) -> int:
    """The first column of the one row that `sql` gives."""
    value: Any = connection.execute(sql, values).fetchall()[0][0]
    return int(value)


def _session_rows(session: str) -> tuple[str, str, tuple[object, ...]]:
    return "record_session", "session_id >= ? AND session_id < ?", (session, after_prefix(session))


def _late_share(connection: apsw.Connection, course: Course) -> float:
    """The share of late rows among the next hundred from the course's position on."""
    bare = course._replace(filters=course.filters._replace(projects=None, tags=(), source="", agent="", tiers=()))
    where, values = bare.where()
    found: list[tuple[Any, ...]] = connection.execute(
        f"SELECT avg(late) FROM (SELECT late FROM record INDEXED BY record_instant WHERE {where}"
        f" ORDER BY {course.order_by()} LIMIT 100)",
        values,
    ).fetchall()
    return float(found[0][0] or 0.0)
