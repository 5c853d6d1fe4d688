"""What is asked for: filters that compile to a clause with bound values, literal terms, and bounds of time.

A `Query` is plain data without a store: the command line, the MCP server and `export` build the same one. Nothing a
user wrote is ever put into SQL text; a filter gives a fixed clause and the values to bind.

Bounds of time are worked out once, here, to microseconds since the epoch: `since` is inclusive, `until` exclusive (one
microsecond after an instant, the end of the day after a date), so that "which records" is one comparison of integers
and a cursor can carry them unchanged.
"""

from __future__ import annotations

import re
import time

from qiju.errors import UsageError
from qiju.record import fold, parse_ts
from qiju.values import NamedTuple

SECOND = 1_000_000  # instants count microseconds
MATCHES = ("any", "all", "phrase", "auto")
TIERS = ("short", "long", "archive")
SOURCES = ("manual", "agent")
MOST_TERMS = 256
LONGEST_QUERY = 20_000  # characters
# Values of one filter: SQLite nests conditions a thousand deep and binds some thirty thousand values.
MOST_NAMED = {"projects": 1_000, "tags": 64, "tiers": 64}

# What `--sort` takes, and the column behind it. Every one is a scalar that each record has ('' or 0 where absent).
SORTS = {
    "ts": "instant",
    "id": "id",
    "project": "project",
    "agent": "agent",
    "source": "source",
    "title": "title",
    "model": "model",
    "model_effort": "model_effort",
    "tier": "tier",
    "session": "session_id",
    "session_id": "session_id",
    "number": "number",
    "schema_version": "schema_version",
    "body_md": "body_md",
    "seq": "seq",
    "rev": "rev",
}
BY_RELEVANCE = "relevance"
BY_SESSION = "session number"  # the order of a session's records when no other is asked for

_UNITS = {"min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_DATE = r"(\d{4})-?(\d\d)-?(\d\d)\Z"  # texts: compiled when a bound of time is given
_AGO = r"(\d{1,6})(min|h|d|w)\Z"


class Filters(NamedTuple):
    """Which records may match at all. None, '' and () mean: no such filter."""

    projects: tuple[str, ...] | None = None
    session: str = ""  # a session id or the beginning of one
    tags: tuple[str, ...] = ()  # each must be there, whatever its case
    since: int | None = None  # instant, inclusive
    until: int | None = None  # instant, exclusive
    source: str = ""
    agent: str = ""
    model: str = ""
    model_effort: str = ""
    tiers: tuple[str, ...] = ()

    def clauses(self) -> tuple[list[str], list[object]]:
        """SQL conditions over columns of `record`, to be joined by AND, and the values to bind, in order."""
        parts: list[str] = []
        values: list[object] = []

        def add(clause: str, *bound: object) -> None:
            parts.append(clause)
            values.extend(bound)

        if self.projects is not None:
            add(f"record.project IN ({', '.join('?' * len(self.projects))})", *self.projects)
        if self.session:
            add("record.session_id >= ? AND record.session_id < ?", self.session, after_prefix(self.session))
        for tag in self.tags:
            add("qiju_tagged(record.tags, ?)", fold(tag))
        if self.since is not None:
            add("record.instant >= ?", self.since)
        if self.until is not None:
            add("record.instant < ?", self.until)
        for column in ("source", "agent", "model", "model_effort"):
            if value := getattr(self, column):
                add(f"record.{column} = ?", value)
        if self.tiers:
            add(f"record.tier IN ({', '.join('?' * len(self.tiers))})", *self.tiers)
        return parts, values


class Query(NamedTuple):
    """A whole question: filters, text and order. `text` empty or blank matches every record."""

    filters: Filters = Filters()
    text: str = ""
    match: str = "any"
    regex: bool = False
    sort: str = "ts"
    descending: bool = True
    times: tuple[str, str] = ("", "")  # --since and --until as written; the filters hold what they meant at first

    @property
    def blank(self) -> bool:
        return not self.text.strip()

    def identity(self) -> tuple[str, ...]:
        """What a cursor is bound to; the resolved times travel in the cursor beside it."""
        timeless = self.filters._replace(since=None, until=None)
        return (repr(timeless), self.text, self.match, str(self.regex), self.sort, str(self.descending))


def checked(query: Query) -> Query:
    """The query itself, or `UsageError` where it is too large or names what does not exist."""
    if len(query.text) > LONGEST_QUERY:
        raise UsageError(
            f"the query has {len(query.text):,} characters; at most {LONGEST_QUERY:,} are searched for",
            hint="search for the few words that tell the record apart",
        )
    for name, most in MOST_NAMED.items():
        named = len(getattr(query.filters, name) or ())
        if named > most:
            raise UsageError(
                f"the query names {named:,} {name}; at most {most:,} can be asked for at once",
                hint="name fewer; without the filter every record is looked at",
            )
    if query.match not in MATCHES:
        raise UsageError(f"unknown --match {query.match!r}", hint=f"one of: {', '.join(MATCHES)}")
    if query.sort not in (*SORTS, BY_RELEVANCE, BY_SESSION):
        raise UsageError(
            f"unknown sort field {query.sort!r}",
            hint=f"the nearest is {nearest(query.sort, (*SORTS, BY_RELEVANCE))!r}; "
            f"any of: {', '.join((*SORTS, BY_RELEVANCE))}",
        )
    if not query.regex and query.match != "phrase" and len(terms(query.text)) > MOST_TERMS:
        raise UsageError(
            f"the query has {len(terms(query.text)):,} different terms; at most {MOST_TERMS} are searched for",
            hint="fewer words, or --match phrase for one passage",
        )
    return query


def terms(text: str) -> tuple[str, ...]:
    """The distinct literal terms of a query, folded, in order."""
    return tuple(dict.fromkeys(fold(term) for term in text.split()))


def tagged(stored: str, wanted: str) -> bool:
    """Whether a column of tags, a JSON array, holds a tag that folds to `wanted`: `qiju_tagged` in SQL.

    Runs once a row, so what is plain ASCII is not parsed. A row by hand may hold anything; it then has no tags.
    """
    plain = wanted.isascii() and stored.isascii() and "\\" not in stored
    if plain and f'"{wanted}"' not in stored.lower():
        return False
    import json

    try:
        tags = json.loads(stored)
    except (ValueError, RecursionError):
        return False
    return isinstance(tags, list) and any(isinstance(tag, str) and fold(tag) == wanted for tag in tags)


def after_prefix(prefix: str) -> str:
    """A string above every string that begins with `prefix`, in SQLite's order of bytes."""
    return prefix + "\U0010ffff"


def nearest(word: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    return (get_close_matches(word, known, n=1, cutoff=0.0) or known)[0]


def since(text: str, *, now: float | None = None) -> int:
    """The instant from which `--since text` counts. Raises `UsageError` for a form that is not known."""
    return _bound("--since", text, now)[0]


def until(text: str, *, now: float | None = None) -> int:
    """The instant before which `--until text` counts: a date includes its whole day, an instant itself."""
    return _bound("--until", text, now)[1]


def _bound(option: str, text: str, now: float | None) -> tuple[int, int]:
    """(first instant, first instant after) of a day, or of an instant."""
    spoken = text.strip().lower()
    seconds = time.time() if now is None else now
    here = time.localtime(seconds)
    days = {"today": 0, "yesterday": -1}
    if spoken in days:
        return _day(here.tm_year, here.tm_mon, here.tm_mday + days[spoken])
    if match := re.match(_DATE, spoken, re.ASCII):
        year, month, day = map(int, match.groups())
        if not (year and 1 <= month <= 12 and 1 <= day <= _days_in(year, month)):
            raise UsageError(f"{option} {text!r} is not a day of the calendar", hint="write it as 2026-03-01")
        return _day(year, month, day)
    if spoken == "now":
        instant = int(seconds * SECOND)
        return instant, instant + 1
    if match := re.match(_AGO, spoken, re.ASCII):
        instant = int(seconds * SECOND) - int(match[1]) * _UNITS[match[2]] * SECOND
        return instant, instant + 1
    parsed = parse_ts(text.strip())
    if parsed is None:
        raise UsageError(
            f"{option} {text!r} is not a time",
            hint="a date (2026-03-01), an instant (2026-03-01T09:30:00Z; local time without an offset), "
            "30min, 12h, 7d, 2w ago, today, yesterday or now",
        )
    return parsed, parsed + 1


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _day(year: int, month: int, day: int) -> tuple[int, int]:
    """A local day, from midnight to midnight, 23 or 25 hours where clocks change. `day` may lie outside the month."""
    return _midnight(year, month, day), _midnight(year, month, day + 1)


def _midnight(year: int, month: int, day: int) -> int:
    try:
        return int(time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))) * SECOND
    except (OverflowError, ValueError):
        # A system whose clock does not reach that far back: its standard offset is as good as any.
        from calendar import timegm

        return (timegm((year, month, day, 0, 0, 0)) + time.timezone) * SECOND
