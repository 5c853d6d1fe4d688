"""Privacy views: named projections of a record, with what they left out counted.

`RAW_PRIVATE` is the record as stored. `REDACTED_PUBLIC` keeps what the allow-list of its kind names
(`qiju.trajectory.public_fields`) and scrubs every string that stays, ids included: secrets, addresses and e-mail by the
redaction engine, home folders, user and host names besides. `METADATA_ONLY` keeps order, kind, time and scrubbed ids.

A projected record has the digest of its projection. The loss report counts per field and reason; it is public itself,
so it names only fields that the tables know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from qiju import jsontext
from qiju.trajectory.public_fields import FLAG, NAMED_LOSSES, PUBLIC, TEXT, WORD, Shape
from qiju.trajectory.types import LossReport, LossTally, PrivacyView, Trajectory, TrajectoryRecord

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue

POLICIES = {
    PrivacyView.RAW_PRIVATE: "qiju.loss/none",
    PrivacyView.REDACTED_PUBLIC: "qiju.loss/redacted-public-1",
    PrivacyView.METADATA_ONLY: "qiju.loss/metadata-only-1",
}
NOT_ALLOWED, REDACTED, VIEW = "not_allowed", "redacted", "view"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+\-]{0,119}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?)?([Zz]|[+-]\d{2}:?\d{2})?")
_MISSING = object()


class Scrubbed(NamedTuple):
    """A string fit for the public, and the kinds of what was replaced in it, one entry a replacement."""

    text: str
    kinds: tuple[str, ...] = ()


# A scrubber takes a text, the key it is the value of ('' when there is none), and names to remove besides.
Scrub = Callable[[str, str, frozenset[str]], Scrubbed]


class Projector:
    """Projects records under one view and counts the losses. One for each page, export or iteration."""

    def __init__(self, view: PrivacyView, scrub: Scrub) -> None:
        self.view = PrivacyView(view)
        self.policy = POLICIES[self.view]
        self._scrub = scrub
        self._tally = LossTally(self.policy)
        self._names: frozenset[str] = frozenset()

    def loss(self) -> LossReport:
        return self._tally.report()

    def add_loss(self, report: LossReport) -> None:
        """Count what was lost before the projection, so that one report tells all."""
        self._tally.add_report(report)

    def project(self, record: TrajectoryRecord) -> TrajectoryRecord:
        """The record under the view; its payload is a value of its own."""
        if self.view is PrivacyView.RAW_PRIVATE:
            return record
        from qiju.trajectory.scrub import names_in

        self._names = names_in(jsontext.canonical(record.payload))
        payload: dict[str, JsonValue] = {}
        if self.view is PrivacyView.METADATA_ONLY:
            if record.payload:
                self._tally.add("payload", VIEW)
        else:
            kept = self._object(record.payload, PUBLIC[record.kind], "payload")
            payload = kept if isinstance(kept, dict) else {}
        ts = record.ts
        if ts is not None and not _TIME.fullmatch(ts):
            self._tally.add("ts", NOT_ALLOWED)
            ts = None
        digest = jsontext.digest(jsontext.canonical(payload))
        return TrajectoryRecord(
            record.sequence,
            self._identifier("record_id", record.record_id),
            self._identifier("session_id", record.session_id),
            self.identifier("run_id", record.run_id),
            self.identifier("work_item_id", record.work_item_id),
            record.kind,
            ts,
            payload,
            digest,
        )

    def identifier(self, name: str, value: str | None) -> str | None:
        """An id as the view shows it: ids are text of their writers, too."""
        return None if value is None else self._identifier(name, value)

    def _identifier(self, name: str, value: str) -> str:
        return value if self.view is PrivacyView.RAW_PRIVATE else self._text(value, name, name)

    def project_all(self, trajectory: Trajectory) -> Trajectory:
        """A whole trajectory, its own losses included in the report."""
        self.add_loss(trajectory.loss)
        records = tuple(self.project(record) for record in trajectory.records)
        session_id = self._identifier("session_id", trajectory.session_id)
        return Trajectory(session_id, records, self.loss())

    # The walk beside the table

    def _value(self, value: JsonValue, shape: Shape, path: str, name: str) -> object:
        """The public form of `value`, or `_MISSING` when no offered shape fits."""
        shapes = shape if isinstance(shape, tuple) else (shape,)
        if isinstance(value, dict):
            fields = next((one for one in shapes if isinstance(one, dict)), None)
            return _MISSING if fields is None else self._object(value, fields, path)
        if isinstance(value, list):
            inner = tuple(one[0] for one in shapes if isinstance(one, list))
            return [*self._items(value, inner, path, name)] if inner else _MISSING
        if isinstance(value, str):
            if TEXT in shapes:
                return self._text(value, path, name)
            if WORD in shapes and _WORD.fullmatch(value):
                return self._text(value, path, name)
            return _MISSING
        if value is None or isinstance(value, bool):
            return value if any(one in shapes for one in (TEXT, WORD, FLAG)) else _MISSING
        if any(one in shapes for one in (TEXT, FLAG)):
            return self._number(value, path, name)
        return _MISSING

    def _object(self, value: dict[str, JsonValue], fields: dict[str, Shape], path: str) -> dict[str, JsonValue]:
        kept: dict[str, JsonValue] = {}
        for key, item in value.items():
            shape = fields.get(key)
            known = shape is not None or key in NAMED_LOSSES
            at = f"{path}.{key if known else '*'}"
            public = _MISSING if shape is None else self._value(item, shape, at, key)
            if public is _MISSING:
                self._tally.add(at, NOT_ALLOWED)
            else:
                kept[key] = public  # type: ignore[assignment]  # what _value returns besides _MISSING is JSON
        return kept

    def _items(self, value: list[JsonValue], shapes: tuple[Shape, ...], path: str, name: str) -> Iterator[JsonValue]:
        for item in value:
            public = self._value(item, shapes, f"{path}[]", name)
            if public is _MISSING:
                self._tally.add(f"{path}[]", NOT_ALLOWED)
            else:
                yield public  # type: ignore[misc]  # as above

    def _text(self, value: str, path: str, name: str) -> str:
        scrubbed = self._scrub(value, name, self._names)
        for kind in scrubbed.kinds:
            self._tally.add(path, f"{REDACTED}:{kind}")
        if not scrubbed.kinds and scrubbed.text != value:
            self._tally.add(path, REDACTED)
        return scrubbed.text

    def _number(self, value: int | jsontext.Number, path: str, name: str) -> JsonValue:
        """A number stays a number unless its digits are something to hide (a card, a phone)."""
        digits = str(value) if isinstance(value, int) else value.token
        if len(digits) < 8:
            return value
        text = self._text(digits, path, name)
        return value if text == digits else text
