"""Which rows hold a secret: found in a reading snapshot, so that no writer waits while a large store is looked through.

The row transaction then looks again only at these and at what was written since (`rev`, `seq`). A row that cannot be
read is named: the erasure goes on with the others and ends as incomplete.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw

from qiju import jsontext
from qiju.db import Database
from qiju.erasure.secret import Secret
from qiju.errors import InvalidJson
from qiju.jsontext import JsonValue
from qiju.keeping.rowscan import scan
from qiju.record import fold
from qiju.redaction.forms import cut_tokens, strings

Step = Callable[[int], object]

RECORD_TEXT = (
    "id",
    "project",
    "session_id",
    "session_source",
    "ts",
    "agent",
    "model",
    "model_effort",
    "title",
    "body_md",
)
RECORD_JSON = ("tags", "search_terms", "next_steps", "redactions", "extra")
EVENT_TEXT = ("event_id", "session_id", "run_id", "work_item_id", "ts")
EVENT_JSON = ("payload",)


class Table(NamedTuple):
    """A small table: its key columns, its text columns, its JSON columns, and those that hold a project's slug."""

    name: str
    key: tuple[str, ...]
    text: tuple[str, ...]
    json: tuple[str, ...] = ()
    slugs: tuple[str, ...] = ()


SMALL = (
    Table("project", ("slug",), ("name",), slugs=("slug",)),
    Table("project_root", ("path",), ("path",), ("hosts",)),
    Table("tombstone", ("what", "seq"), ("id", "session_id"), slugs=("project",)),
    Table("redaction_audit", ("audit_id",), ("actor", "reason", "field", "kind", "rule", "placeholder"), ("counts",)),
    Table("file_manifest", ("path",), ("path", "owner", "root"), ("detail",)),
    Table("archive_partition", ("project", "month"), ("path",), slugs=("project",)),
    Table("retag", ("retag_id",), (), ("detail",), slugs=("source", "target")),
    Table("retag_record", ("retag_id", "seq"), ("old_id",), slugs=("old_project",)),
    Table("setting", ("name",), ("value",)),
)
"""Every table that holds words of people beside records and events. `record.project` refers to `project`."""


class Candidates:
    """What the snapshot holds. `rev` and `events` are its high-water marks; `problems` name rows not readable."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.events: list[int] = []
        self.small: dict[str, int] = {}
        self.problems: list[str] = []
        self.rev = 0
        self.last_event = 0
        self.cut = 0  # places where a longer word was cut
        self.variants = 0  # places in another case or spelling, which stay
        self.tiers: dict[str, int] = {}

    @property
    def count(self) -> int:
        return len(self.records) + len(self.events) + sum(self.small.values())


def find(db: Database, secret: Secret, step: Step = lambda _: None) -> Candidates:
    """Look through every row of the store."""
    found = Candidates()
    fold = _Folded(secret)
    with db.read() as connection:
        found.rev = db.counter("rev")
        found.last_event = int(db.value("SELECT coalesce(max(seq), 0) FROM trajectory_event"))
        columns = ", ".join((*RECORD_TEXT, *RECORD_JSON, "tier"))
        for row in scan(connection, "record", columns):
            if row.values is None:
                found.problems.append(f"record {row.rowid}: {row.fault}")
                continue
            *values, tier = row.values
            text, extra = _row_text(values, len(RECORD_TEXT), found, f"record {row.rowid}")
            if _note(found, secret, fold, text, extra):
                found.records.append(row.rowid)
                found.tiers[tier] = found.tiers.get(tier, 0) + 1
            if row.rowid % 512 == 0:
                step(512)
        columns = ", ".join((*EVENT_TEXT, *EVENT_JSON, "record_seq"))
        for row in scan(connection, "trajectory_event", columns):
            if row.values is None:
                found.problems.append(f"event {row.rowid}: {row.fault}")
                continue
            *values, record_seq = row.values
            if record_seq is not None:
                continue
            text, extra = _row_text(values, len(EVENT_TEXT), found, f"event {row.rowid}")
            if _note(found, secret, fold, text, extra):
                found.events.append(row.rowid)
            if row.rowid % 512 == 0:
                step(512)
        for table in SMALL:
            if hits := sum(1 for _ in small_rows(connection, table, secret)):
                found.small[table.name] = hits
    return found


def small_rows(connection: apsw.Connection, table: Table, secret: Secret) -> Iterator[tuple[Any, ...]]:
    """The rows of a small table that hold the secret: key, text, JSON and slug columns in the table's order."""
    columns = (*table.key, *table.text, *table.json, *table.slugs)
    for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table.name}").fetchall():
        if any(secret.in_text(value) and _holds(secret, value) for value in map(str, row)):
            yield row


def _holds(secret: Secret, text: str) -> bool:
    return bool(secret.spans(text))


def changed_since(connection: apsw.Connection, found: Candidates) -> tuple[list[int], list[int]]:
    """Records and events inserted or changed after the snapshot. Only inside a write."""
    records = connection.execute("SELECT seq FROM record WHERE rev > ? ORDER BY seq", (found.rev,)).fetchall()
    events = connection.execute(
        "SELECT seq FROM trajectory_event WHERE record_seq IS NULL AND (seq > ? OR (revised = 1 AND rev > ?))"
        " ORDER BY seq",
        (found.last_event, found.rev),
    ).fetchall()
    return [int(str(row[0])) for row in records], [int(str(row[0])) for row in events]


def _row_text(values: list[Any], plain: int, found: Candidates, where: str) -> tuple[str, JsonValue]:
    """All words of a row as one text; JSON columns with escapes are taken apart, others are their own words."""
    parts = [str(value) for value in values[:plain] if value]
    parsed: list[JsonValue] = []
    for column in values[plain:]:
        if column in ("[]", "{}"):
            continue
        if "\\" not in column:
            parts.append(column)
            continue
        try:
            value = jsontext.parse(column)
        except InvalidJson:
            found.problems.append(f"{where}: a JSON column cannot be read")
            continue
        parsed.append(value)
        parts.extend(strings(value))
    return "\n".join(parts), parsed


def _note(found: Candidates, secret: Secret, fold: _Folded, text: str, _parsed: JsonValue) -> bool:
    found.variants += fold.others(text)
    if not secret.in_text(text):
        return False
    if not secret.spans(text):
        return False
    found.cut += cut_tokens(text, secret.literal)
    return True


class _Folded:
    """Counts spellings that differ from the literal in case or in Unicode form only, and are not replaced."""

    def __init__(self, secret: Secret) -> None:
        composed = unicodedata.normalize("NFC", secret.literal)
        self._folded = composed.casefold()
        self._exact = {secret.literal, composed, unicodedata.normalize("NFD", secret.literal)}

    def others(self, text: str) -> int:
        low = text.lower() if text.isascii() else fold(text)
        if self._folded not in low:
            return 0
        return max(0, low.count(self._folded) - sum(text.count(exact) for exact in self._exact))
