"""From what the predecessor wrote to a record of today: slug, id, and redaction entries that point at something.

Kept as they are: `ts` as written, unknown keys, every text. Changed, and said: a project name that is no slug, an id
that is not `<session>:<number>` (the predecessor took any text), and the offsets of recorded redactions. The
predecessor noted where a secret had stood in the text *before* it was replaced, a text that was never stored; here each
entry gets the place of its placeholder in the stored text, or loses `start` and `end` when the placeholder is not there
or the entry names no field (`*`, from a redaction afterwards).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from qiju.errors import InvalidRecord
from qiju.jsontext import JsonValue, ordered, parse
from qiju.keeping.collate import Candidate, pack
from qiju.legacy import Draft, Problem
from qiju.legacy.kedu import rebrand_object, rebrand_text
from qiju.place.slug import slugify
from qiju.record import Record, parse_ts, valid_id

_PATH = re.compile(r"\.?([^\s.\[\]\"]+)|\[(\d+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]")
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f]+")


class Normalised(NamedTuple):
    """`renamed` is the id as found when it had to change, else ''."""

    candidate: Candidate
    renamed: str


def normalise(draft: Draft, *, source: str, brand: bool) -> Normalised | Problem:
    """Make a candidate of a draft. `source` is its place for the report; `brand` rewrites the brand words.

    What is no record (a wrong type, a text where a list belongs) becomes a `Problem` that names the fields, not their
    contents.
    """
    value = draft.value
    folder = draft.folder_project
    if brand:
        value = rebrand_object(value)
        folder = rebrand_text(folder)
    value = dict(value)
    project = value.get("project")
    value["project"] = slugify(project if isinstance(project, str) and project.strip() else folder)
    found_id = value.get("id")
    identity = found_id if isinstance(found_id, str) else ""
    value["id"] = identity if valid_id(identity) else today_id(identity)
    if value["id"] is None:
        return _problem(draft, "the record has no id")
    value.setdefault("ts", "")
    value.setdefault("source", "manual")
    value.setdefault("schema_version", 2)
    try:
        record = Record.from_json(value)
    except InvalidRecord as error:
        return _problem(draft, str(error))
    candidate = Candidate(
        record.project, record.id, parse_ts(record.ts), draft.tier, draft.exact, source, pack(record.to_json())
    )
    return Normalised(candidate, identity if identity != record.id else "")


def today_id(identity: str) -> str | None:
    """An id of today's shape for an id of any other, or None for one without a visible character."""
    session = _UNFIT.sub("-", identity.strip())
    return f"{session.rstrip(':')}:1" if session.strip(":-") else None


def relocate(value: dict[str, JsonValue]) -> tuple[int, int]:
    """Put the offsets of the record's redaction entries right, in place; returns how many were placed, and dropped.

    Of equal placeholders in one text the first entry gets the first place, and so on: they stand for the same value.
    """
    entries = value.get("redactions")
    if not isinstance(entries, list):
        return 0, 0
    placed = lost = 0
    after: dict[tuple[str, str], int] = {}
    out: list[JsonValue] = []
    for entry in entries:
        if not isinstance(entry, dict):
            out.append(entry)
            continue
        entry = dict(entry)
        field, mark = entry.get("field"), entry.get("placeholder")
        at = -1
        if isinstance(field, str) and isinstance(mark, str) and mark:
            text = _text_at(value, field)
            at = text.find(mark, after.get((field, mark), 0))
            if at >= 0:
                after[field, mark] = at + len(mark)
                entry["start"], entry["end"] = at, at + len(mark)
                placed += 1
        if at < 0:
            lost += entry.pop("start", None) is not None
            entry.pop("end", None)
        out.append(entry)
    value["redactions"] = out
    return placed, lost


def _text_at(value: JsonValue, path: str) -> str:
    """The string at a redaction entry's path, or '' when there is none: `a.b[2]`, `a["odd.key"]`, a key `a.~key[1]`."""
    at, item = 0, value
    while at < len(path):
        match = _PATH.match(path, at)
        if match is None:
            return ""
        at = match.end()
        plain, index, quoted = match[1], match[2], match[3]
        if plain == "~key":
            number = _PATH.match(path, at)
            if not isinstance(item, dict) or number is None or number[2] is None or number.end() != len(path):
                return ""
            keys = ordered(item)
            return keys[int(number[2])] if int(number[2]) < len(keys) else ""
        if index is not None:
            item = item[int(index)] if isinstance(item, list) and int(index) < len(item) else None
        else:
            key = plain if quoted is None else parse(quoted, name="path")
            item = item.get(str(key)) if isinstance(item, dict) else None
    return item if isinstance(item, str) else ""


def _problem(draft: Draft, message: str) -> Problem:
    return Problem(draft.path, draft.line, draft.line, "invalid", message)
