"""A `record` row and the `Record` it holds: one list of columns, one way in each direction."""

from __future__ import annotations

from collections.abc import Sequence

from qiju import jsontext
from qiju.errors import InvalidJson, StoreDamaged
from qiju.jsontext import JsonValue
from qiju.record import Record, folded
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTENT = (
    "id",
    "project",
    "ts",
    "agent",
    "source",
    "model",
    "model_effort",
    "title",
    "tags",
    "search_terms",
    "next_steps",
    "body_md",
    "redactions",
    "schema_version",
    "extra",
    "digest",
    "folded",
)
"""Columns that follow from the record alone, in the order that `content` gives their values."""

COLUMNS = (
    "seq, rev, tier_rev, tier, instant, session_id, number, session_source, digest, folded, late,"
    " id, project, ts, agent, source, model, model_effort, title, tags, search_terms, next_steps, body_md, redactions,"
    " schema_version, extra"
)
"""What `stored` reads, for `SELECT {COLUMNS} FROM record`."""


class Stored(NamedTuple):
    """A record with what the store keeps beside it. `instant` is in microseconds; `digest` is '' when unsealed."""

    seq: int
    rev: int
    tier_rev: int
    tier: str
    instant: int
    session_id: str
    number: int
    session_source: str
    digest: str
    folded: str
    late: int
    record: Record


def content(record: Record) -> tuple[Any, ...]:
    """The values of the `CONTENT` columns."""
    return (
        record.id,
        record.project,
        record.ts,
        record.agent,
        record.source,
        record.model,
        record.model_effort,
        record.title,
        jsontext.canonical(list(record.tags)),
        jsontext.canonical(list(record.search_terms)),
        jsontext.canonical(list(record.next_steps)),
        record.body_md,
        jsontext.canonical(list(record.redactions)),
        record.schema_version,
        jsontext.canonical(record.extra),
        record.digest(),
        folded(record),
    )


def stored(row: Sequence[Any], *, leniently: bool = False) -> Stored:
    """A row of `COLUMNS`. Raises `StoreDamaged`, naming the row, when a JSON column does not hold what it should.

    `leniently` reads such a column as empty: in a list, a bad row must not hide the good ones.
    """
    if leniently:
        row = _without_damage(row)
    (tags, search_terms, next_steps) = (_strings(row, column) for column in (19, 20, 21))
    extra = {} if row[25] == "{}" else _json(row, 25)
    redactions = [] if row[23] == "[]" else _json(row, 23)
    if not isinstance(extra, dict) or not isinstance(redactions, list):
        raise _damaged(row)
    record = Record(
        id=row[11],
        project=row[12],
        ts=row[13],
        agent=row[14],
        source=row[15],
        model=row[16],
        model_effort=row[17],
        title=row[18],
        tags=tags,
        search_terms=search_terms,
        next_steps=next_steps,
        body_md=row[22],
        redactions=tuple(redactions),
        schema_version=row[24],
        extra=extra,
    )
    return Stored(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10], record)


def _without_damage(row: Sequence[Any]) -> Sequence[Any]:
    kept = list(row)
    for column in (19, 20, 21, 23, 25):
        try:
            if column == 25 and not isinstance(_json(row, column), dict):
                raise _damaged(row)
            if column != 25:
                _strings(row, column)
        except StoreDamaged:
            kept[column] = "{}" if column == 25 else "[]"
    return kept


def _strings(row: Sequence[Any], column: int) -> tuple[str, ...]:
    if row[column] == "[]":
        return ()
    value = _json(row, column)
    if not isinstance(value, list):
        raise _damaged(row)
    # Written by hand, a list may hold numbers; a record holds strings only.
    return tuple(item if isinstance(item, str) else jsontext.line(item) for item in value)


def _json(row: Sequence[Any], column: int) -> JsonValue:
    try:
        return jsontext.parse(row[column])
    except InvalidJson as error:
        raise _damaged(row) from error


def _damaged(row: Sequence[Any]) -> StoreDamaged:
    return StoreDamaged(f"record {row[11]!r} (seq {row[0]}) holds a damaged column", hint="run 'qiju verify'")
