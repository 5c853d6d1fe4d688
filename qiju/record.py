"""The record as a frozen value: parse, validate, normalise, canonical JSON, digest, instant, search text.

A record is schema version 2: the fields below, plus unknown keys, which are kept in `extra`. What is stored is the
normalised record; its canonical JSON is the one text that digests are taken of.

Search compares folded text: NFC first, then Unicode's full case folding. FTS5 folds less than that, so a record whose
text FTS5 would fold otherwise stores the folded text beside it (`folded`), and its index holds that instead.
"""

from __future__ import annotations

import re
import time

from qiju import jsontext
from qiju.errors import InvalidRecord
from qiju.jsontext import JsonValue, Number
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

SCHEMA_VERSION = 2
SOURCES = ("manual", "agent")
TIERS = ("short", "long", "archive")
_NUMBER_DIGITS = 18  # always fit SQLite's 64 bits
TEXT_FIELDS = ("agent", "model", "model_effort", "title", "body_md")
LIST_FIELDS = ("tags", "search_terms", "next_steps")
SCALAR_FIELDS = (
    "id",
    "ts",
    "project",
    "agent",
    "source",
    "title",
    "model",
    "model_effort",
    "body_md",
    "schema_version",
)
FIELDS = (
    "schema_version",
    "id",
    "ts",
    "project",
    "agent",
    "source",
    "title",
    "tags",
    "search_terms",
    "next_steps",
    "redactions",
    "body_md",
    "model",
    "model_effort",
)


class Record(NamedTuple):
    """One normalised record. `model` and `model_effort` are '' when absent; `redactions` hold plain JSON objects."""

    id: str
    ts: str
    project: str
    agent: str
    source: str
    title: str
    body_md: str
    tags: tuple[str, ...] = ()
    search_terms: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    model: str = ""
    model_effort: str = ""
    redactions: tuple[JsonValue, ...] = ()
    schema_version: int = SCHEMA_VERSION
    extra: dict[str, JsonValue] = {}  # noqa: RUF012 - never changed: a record is a value

    @classmethod
    def from_json(cls, value: JsonValue) -> Record:
        """A record from its complete JSON object. Raises `InvalidRecord` naming every field that is wrong."""
        fields = check(value)
        missing = [name for name in ("id", "ts", "project", "source") if name not in fields]
        if missing:
            raise InvalidRecord(f"the record has no {', '.join(missing)}", hint="a stored record has all of them")
        return _record(fields)

    def to_json(self) -> dict[str, JsonValue]:
        """The record as the JSON object that commands print; absent optional fields are left out."""
        value: dict[str, JsonValue] = {
            "agent": self.agent,
            "body_md": self.body_md,
            "id": self.id,
            "next_steps": list(self.next_steps),
            "project": self.project,
            "redactions": list(self.redactions),
            "schema_version": self.schema_version,
            "search_terms": list(self.search_terms),
            "source": self.source,
            "tags": list(self.tags),
            "title": self.title,
            "ts": self.ts,
        }
        if self.model:
            value["model"] = self.model
        if self.model_effort:
            value["model_effort"] = self.model_effort
        if self.extra:
            value.update(self.extra)
        return value

    def canonical(self) -> str:
        """The canonical JSON text of the record."""
        return jsontext.canonical(self.to_json())

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, 64 hexadecimal digits."""
        return jsontext.digest(self.canonical())


# --- validation ------------------------------------------------------------------------------------------------------


def check(value: JsonValue) -> dict[str, JsonValue]:
    """The object's known fields, checked for shape, and its unknown keys; defaults are not filled in.

    `null` for an optional field counts as absent. Raises `InvalidRecord` naming every field that is wrong.
    """
    if not isinstance(value, dict):
        raise InvalidRecord(
            f"a record is a JSON object, not {_type_name(value)}",
            hint='give one object, such as {"title": "...", "body_md": "..."}',
        )
    fields = dict(value)
    for name in ("model", "model_effort", "id", "ts", "agent", "project", "source"):
        if fields.get(name, "") is None:
            del fields[name]
    faults: list[str] = []
    for name in ("id", "ts", "project", "agent", "source", "title", "body_md"):
        if not isinstance(fields.get(name, ""), str) and name != "ts":
            faults.append(f"{name} must be a string, not {_type_name(fields[name])}")
    for name in ("model", "model_effort"):
        if name in fields and not (isinstance(fields[name], str) and str(fields[name]).strip()):
            faults.append(f"{name} must be a non-empty string (leave it out when unknown)")
    for name in LIST_FIELDS:
        items = fields.get(name, [])
        if not isinstance(items, list):
            faults.append(f"{name} must be a list of strings, not {_type_name(items)}")
        else:
            faults.extend(
                f"{name}[{place}] must be a string, not {_type_name(item)}"
                for place, item in enumerate(items)
                if not isinstance(item, str)
            )
    redactions = fields.get("redactions", [])
    if not (isinstance(redactions, list) and all(isinstance(item, dict) for item in redactions)):
        faults.append("redactions must be a list of objects")
    if fields.get("source", "manual") not in SOURCES:
        faults.append("source must be 'manual' or 'agent'")
    version = fields.get("schema_version", SCHEMA_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        faults.append("schema_version must be a positive integer")
    identity = fields.get("id")
    if isinstance(identity, str) and not valid_id(identity):
        faults.append("id must be <session>:<number>, without spaces, the number from 1 and without leading zeros")
    if faults:
        more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
        raise InvalidRecord("; ".join(faults[:5]) + more, hint="correct the fields named; nothing was stored")
    return fields


def build(fields: dict[str, JsonValue]) -> Record:
    """A record from checked fields that hold at least id, ts, project and source; the rest gets its default."""
    return _record(fields)


def _record(fields: dict[str, JsonValue]) -> Record:
    get = fields.get
    return Record(
        id=str(fields["id"]),
        ts=_as_written(fields["ts"]),
        project=str(fields["project"]),
        agent=str(get("agent") or "unknown"),
        source=str(fields["source"]),
        title=str(get("title", "")),
        body_md=str(get("body_md", "")),
        tags=_strings(get("tags", [])),
        search_terms=_strings(get("search_terms", [])),
        next_steps=_strings(get("next_steps", [])),
        model=str(get("model", "")),
        model_effort=str(get("model_effort", "")),
        redactions=_values(get("redactions", [])),
        schema_version=version if isinstance(version := get("schema_version", SCHEMA_VERSION), int) else SCHEMA_VERSION,
        extra={name: value for name, value in fields.items() if name not in FIELDS},
    )


def _as_written(ts: JsonValue) -> str:
    return ts if isinstance(ts, str) else jsontext.line(ts)


def _strings(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _values(value: JsonValue) -> tuple[JsonValue, ...]:
    return tuple(value) if isinstance(value, list) else ()


def _type_name(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | Number):
        return "a number"
    return {str: "a string", list: "a list", dict: "an object"}.get(type(value), type(value).__name__)


def valid_id(identity: str) -> bool:
    """Whether it is `<session>:<number>`: no white space or control character, the number from 1, no leading zero."""
    session, colon, number = identity.rpartition(":")
    return (
        bool(session and colon)
        and number.isascii()
        and number.isdigit()
        and number[0] != "0"
        and len(number) <= _NUMBER_DIGITS
        and not any(letter.isspace() or letter < " " or letter == "\x7f" for letter in session)
    )


def split_id(identity: str) -> tuple[str, int]:
    """Session and number of a valid id."""
    session, _, number = identity.rpartition(":")
    return session, int(number)


# --- time ------------------------------------------------------------------------------------------------------------

_TS = (  # a text: compiled when the first time is parsed, which most searches never do
    r"(?P<year>\d{4})-?(?P<month>\d\d)-?(?P<day>\d\d)"
    r"(?:[Tt ](?P<hour>\d\d)(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?)?"
    r"(?P<zone>[Zz]|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?)?"
)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse_ts(text: str) -> int | None:
    """The instant of an ISO 8601 time in microseconds since 1970-01-01T00:00Z, or None when it is not one.

    A calendar date, or date and time, with `Z`, an offset or neither (then it is local time). Digits beyond the
    microsecond are cut, not rounded. 24:00 is the next midnight. A leap second (:60) has no instant of its own: None.
    """
    match = re.fullmatch(_TS, text, re.ASCII)
    if match is None:
        return None
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    micro = int(((match["fraction"] or "") + "000000")[:6])
    if year < 1 or not 1 <= month <= 12 or day < 1 or day > _MONTH_DAYS[month - 1] + (month == 2 and _leap(year)):
        return None
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second or micro)):
        return None
    zone = match["zone"]
    if zone is None:
        try:
            # mktime knows the local rules; only whole minutes go through it, so 24:00 stays exact.
            seconds = int(time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))) + second
        except (OverflowError, ValueError):
            return None
    else:
        offset = _offset(zone)
        if offset is None:
            return None
        seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    return seconds * 1_000_000 + micro


def now_ts() -> str:
    """The present moment as Qiju writes it: UTC, to the microsecond."""
    return format_instant(time.time_ns() // 1000)


def format_instant(instant: int) -> str:
    """An instant (microseconds since 1970) as ISO 8601 in UTC, to the microsecond."""
    seconds, micro = divmod(instant, 1_000_000)
    days, rest = divmod(seconds, 86400)
    year, month, day = _civil(days)
    return (
        f"{year:04d}-{month:02d}-{day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.{micro:06d}+00:00"
    )


def _offset(zone: str) -> int | None:
    if zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if zone[0] == "-" else 1)


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar (the datetime module is slow to import)."""
    years = year - (month <= 2)
    era, of_era = divmod(years, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def _civil(days: int) -> tuple[int, int, int]:
    era, of_era = divmod(days + 719468, 146097)
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


# --- search text -----------------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """NFC, then Unicode case folding: the one form in which texts and queries are compared."""
    if text.isascii():
        return text.lower()
    return nfc(text).casefold()


_MANY_MARKS = 1_000  # characters; up to here a square is small
_TWO_MARKS = {0x0344: "\u0308\u0301", 0x0F73: "\u0f71\u0f72", 0x0F75: "\u0f71\u0f74", 0x0F81: "\u0f71\u0f80"}
_RUN_OF_MARKS = r"[^\w\s\x00-\u02ff]{64,}"  # marks are neither letters nor spaces; other signs may be among them


def nfc(text: str, form: Literal["NFC", "NFKC"] = "NFC") -> str:
    """The text in Normalization Form C (or KC), in time that grows with its length.

    `unicodedata` sorts the marks after a letter by insertion, which takes a square of their number: a body of marks
    alone would take days. Sorted first, and stably, they come to the same text and are in order when it looks.
    """
    import unicodedata

    if len(text) > _MANY_MARKS and not text.isascii():
        text = re.sub(_RUN_OF_MARKS, lambda run: _marks_in_order(run[0]), text)
    return unicodedata.normalize(form, text)


def _marks_in_order(run: str) -> str:
    from itertools import groupby
    from unicodedata import combining

    groups = groupby(run.translate(_TWO_MARKS), key=lambda letter: combining(letter) > 0)
    return "".join("".join(sorted(letters, key=combining) if marks else letters) for marks, letters in groups)


def search_text(record: Record) -> str:
    """The eight searched fields, one a line; lists one item a line."""
    return "\n".join(
        (
            record.agent,
            record.model,
            record.model_effort,
            record.title,
            record.body_md,
            *record.tags,
            *record.search_terms,
            *record.next_steps,
        )
    )


def folded(record: Record) -> str:
    """The text the trigram index needs in place of the record's own, or '' where FTS5 folds it alike.

    It needs it when FTS5's folding differs from `fold`, when a NUL would end FTS5's tokenizer, and when a list item
    holds a JSON escape (the index reads lists as JSON text).
    """
    text = search_text(record)
    if text.isascii():
        alike = True
    else:
        alike = _fts5_folds_alike(text)
    if alike and "\0" not in text and not _escaped(record):
        return ""
    return fold(text).replace("\0", "\n")


def _escaped(record: Record) -> bool:
    for items in (record.tags, record.search_terms, record.next_steps):
        if items and "\\" in jsontext.canonical(list(items)):
            return True
    return False


# Below U+0528 FTS5 folds every letter as Unicode does, but for these; above, only letters that folding leaves alone
# are taken to be safe. A test asks FTS5 itself.
_FOLDED_OTHERWISE = frozenset("\u00df\u0130\u0149\u01f0\u037f\u0390\u03b0")
_FTS5_KNOWS_BELOW = "\u0528"


def _fts5_folds_alike(text: str) -> bool:
    import unicodedata

    if nfc(text) != text if len(text) > _MANY_MARKS else not unicodedata.is_normalized("NFC", text):
        return False
    letters = {letter for letter in set(text) if letter >= "\x80"}
    if not letters.isdisjoint(_FOLDED_OTHERWISE):
        return False
    return all(letter < _FTS5_KNOWS_BELOW or letter.casefold() == letter for letter in letters)
