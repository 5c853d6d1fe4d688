"""The values of the trajectory API: what a writer gives, what a reader serves, and what was left out on the way.

All of them are frozen. A *draft* is what a writer knows; a *record* is what a store made of it (sequence, digest and
the missing parts filled in). A *query* says which records, without saying from which kind of store. A *loss report*
travels with every projection, import and export, so that nothing is left out silently.

Digests of records are 64 hex digits (SHA-256 over the payload's canonical JSON, UTF-8); digests of exported bytes are
written `sha256:<hex>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from qiju.errors import Interrupted, InvalidRecord, UsageError

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue

NO_LOSS = "qiju.loss/none"


class ExportCancelled(Interrupted):
    """The caller's `cancelled` asked an export to stop; nothing was replaced."""

    kind = "export_cancelled"
    retryable = True
    meaning = "an export was cancelled by its caller"


class PrivacyView(StrEnum):
    """Named projections over canonical raw data.

    `RAW_PRIVATE` is the data as stored and must be asked for by name. `REDACTED_PUBLIC` is an allow-list per record
    kind, run through the redaction engine. `METADATA_ONLY` keeps order, kind and time, and no payload at all.
    """

    RAW_PRIVATE = "raw_private"
    REDACTED_PUBLIC = "redacted_public"
    METADATA_ONLY = "metadata_only"


class RecordKind(StrEnum):
    """What a trajectory record states. `session_record` is a Qiju record; the others are facts of a session."""

    SESSION_RECORD = "session_record"
    MESSAGE = "message"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    STEERING = "steering"
    STATE = "state"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class LossEntry:
    """`count` occurrences of `field` did not pass, for `reason` (`not_allowed`, `redacted`, `unreadable`, ...)."""

    field: str
    reason: str
    count: int = 1

    def to_dict(self) -> dict[str, JsonValue]:
        return {"field": self.field, "reason": self.reason, "count": self.count}


@dataclass(frozen=True, slots=True)
class LossReport:
    """What a projection, import or export left out, counted per field and reason. `entries` empty means nothing."""

    policy_id: str = NO_LOSS
    entries: tuple[LossEntry, ...] = ()

    @property
    def lossless(self) -> bool:
        return not self.entries

    def to_dict(self) -> dict[str, JsonValue]:
        return {"policy_id": self.policy_id, "entries": [entry.to_dict() for entry in self.entries]}

    @classmethod
    def from_dict(cls, value: Mapping[str, object]) -> LossReport:
        """The report that `to_dict` wrote. Raises `InvalidRecord` when the shape is another."""
        policy_id = value.get("policy_id", NO_LOSS)
        entries = value.get("entries", [])
        if not isinstance(policy_id, str) or not isinstance(entries, (list, tuple)):
            raise InvalidRecord("a loss report needs `policy_id` (text) and `entries` (a list)")
        return cls(policy_id, tuple(_loss_entry(entry) for entry in entries))


def _loss_entry(value: object) -> LossEntry:
    if isinstance(value, Mapping):
        name, reason, count = value.get("field"), value.get("reason"), value.get("count", 1)
        if isinstance(name, str) and isinstance(reason, str) and isinstance(count, int) and not isinstance(count, bool):
            return LossEntry(name, reason, count)
    raise InvalidRecord("an entry of a loss report needs `field`, `reason` (text) and `count` (a whole number)")


class LossTally:
    """Collects losses while records pass by; memory is bounded by the number of distinct field and reason pairs.

    Field names beyond `MAX_FIELDS` are counted under `*`: a history with endless invented keys must not fill memory.
    """

    MAX_FIELDS = 2000

    def __init__(self, policy_id: str) -> None:
        self.policy_id = policy_id
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, name: str, reason: str, count: int = 1) -> None:
        key = (name, reason)
        if key not in self._counts and len(self._counts) >= self.MAX_FIELDS:
            key = ("*", reason)
        self._counts[key] = self._counts.get(key, 0) + count

    def add_report(self, report: LossReport) -> None:
        for entry in report.entries:
            self.add(entry.field, entry.reason, entry.count)

    def report(self) -> LossReport:
        if not self._counts:
            return LossReport()
        entries = (LossEntry(name, reason, count) for (name, reason), count in sorted(self._counts.items()))
        return LossReport(self.policy_id, tuple(entries))


@dataclass(frozen=True, slots=True)
class TrajectoryRecord:
    """One fact of a session, as a store serves it.

    `sequence` counts from 1 within its store; `ts` is the time as written, or None when the source had none;
    `payload` is a JSON object whose numbers beyond 64-bit integers are `qiju.jsontext.Number`; `digest` is 64 hex
    digits over the payload's canonical JSON *as served*: a projected record has the projection's digest, because the
    digest of hidden text would let anyone test guesses against it.
    """

    sequence: int
    record_id: str
    session_id: str
    run_id: str | None
    work_item_id: str | None
    kind: RecordKind
    ts: str | None
    payload: dict[str, JsonValue]
    digest: str

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "sequence": self.sequence,
            "record_id": self.record_id,
            "session_id": self.session_id,
            "run_id": self.run_id,
            "work_item_id": self.work_item_id,
            "kind": self.kind.value,
            "ts": self.ts,
            "payload": self.payload,
            "digest": self.digest,
        }

    @classmethod
    def from_dict(cls, value: object) -> TrajectoryRecord:
        """The record that `to_dict` wrote. Raises `InvalidRecord` on a missing or ill-typed field."""
        if not isinstance(value, Mapping):
            raise InvalidRecord("a trajectory record is a JSON object")
        sequence, payload = value.get("sequence"), value.get("payload")
        if not isinstance(sequence, int) or isinstance(sequence, bool) or not isinstance(payload, dict):
            raise InvalidRecord("a trajectory record needs `sequence` (a whole number) and `payload` (an object)")
        return cls(
            sequence=sequence,
            record_id=required_text(value, "record_id"),
            session_id=required_text(value, "session_id"),
            run_id=optional_text(value, "run_id"),
            work_item_id=optional_text(value, "work_item_id"),
            kind=record_kind(value.get("kind")),
            ts=optional_text(value, "ts"),
            payload=payload,
            digest=required_text(value, "digest"),
        )


@dataclass(frozen=True, slots=True)
class TrajectoryDraft:
    """What a writer gives. The store assigns `sequence` and `digest`, and a `record_id` and `ts` when missing.

    A draft with a `record_id` that the store holds already, with the same content, is the same record again and adds
    nothing; with other content it is a conflict. That makes imports repeatable.
    """

    session_id: str
    kind: RecordKind
    payload: dict[str, JsonValue]
    record_id: str | None = None
    run_id: str | None = None
    work_item_id: str | None = None
    ts: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.session_id, str) or not self.session_id:
            raise InvalidRecord("a trajectory draft needs a non-empty session_id")
        if not isinstance(self.payload, dict):
            raise InvalidRecord("the payload of a trajectory draft is a JSON object")
        object.__setattr__(self, "kind", record_kind(self.kind))


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The records of one session, in sequence order, with what was left out of them."""

    session_id: str
    records: tuple[TrajectoryRecord, ...]
    loss: LossReport = field(default_factory=LossReport)


@dataclass(frozen=True, slots=True)
class TrajectoryQuery:
    """A store-independent, declarative query; None and () mean "any".

    `after_sequence` is exclusive; `limit` is the size of a page (for an iteration: of the pages it reads), in records.
    Raises `UsageError` on a limit below 1, a negative sequence, a number beyond 62 bits, an id that is no Unicode text,
    or an unknown kind.
    """

    session_id: str | None = None
    run_id: str | None = None
    work_item_id: str | None = None
    kinds: tuple[RecordKind, ...] = ()
    after_sequence: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError("limit is the page size and must be at least 1")
        if self.after_sequence is not None and self.after_sequence < 0:
            raise UsageError("after_sequence must not be negative")
        if max(self.limit or 0, self.after_sequence or 0) >> 62:
            raise UsageError("limit and after_sequence count records: no store holds that many")
        for name in ("session_id", "run_id", "work_item_id"):
            if any("\ud800" <= letter <= "\udfff" for letter in getattr(self, name) or ""):
                raise UsageError(f"{name} holds half a character (a lone surrogate)")
        kinds: Iterable[RecordKind | str] = (self.kinds,) if isinstance(self.kinds, str) else self.kinds
        try:
            object.__setattr__(self, "kinds", tuple(RecordKind(kind) for kind in kinds))
        except ValueError:
            raise UsageError(
                "unknown record kind in the query", hint="kinds: " + ", ".join(kind.value for kind in RecordKind)
            ) from None


@dataclass(frozen=True, slots=True)
class TrajectoryCursor:
    """Reader-local opaque token. No host path, credential or record text is in it."""

    token: str


@dataclass(frozen=True, slots=True)
class TrajectoryPage:
    """A page of one fixed snapshot. `next_cursor` is None on the last page; `watermark` is the snapshot's last
    sequence; `snapshot` is a cursor to the snapshot's first page."""

    records: tuple[TrajectoryRecord, ...]
    next_cursor: TrajectoryCursor | None
    snapshot: TrajectoryCursor
    watermark: int
    loss: LossReport = field(default_factory=LossReport)


@dataclass(frozen=True, slots=True)
class ExportArtifact:
    """An export held in memory: `data` (UTF-8 canonical JSON) with `digest` (`sha256:<hex>`) over exactly its bytes.

    `exact_reimport` is True only for `RAW_PRIVATE` without losses; `provenance` repeats what `data` says of its origin.
    """

    exporter_id: str
    format_version: str
    content_type: str
    data: bytes
    digest: str
    privacy_view: PrivacyView
    exact_reimport: bool
    provenance: dict[str, JsonValue]
    loss: LossReport


@dataclass(frozen=True, slots=True)
class FileExportReceipt:
    """Returned only after full validation, fsync and atomic replacement. `size_bytes` in bytes."""

    record_count: int
    size_bytes: int
    digest: str
    privacy_view: PrivacyView
    completed: bool = True
    loss: LossReport = field(default_factory=LossReport)

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "record_count": self.record_count,
            "size_bytes": self.size_bytes,
            "digest": self.digest,
            "privacy_view": self.privacy_view.value,
            "loss": self.loss.to_dict(),
            "completed": self.completed,
        }


def record_kind(value: object) -> RecordKind:
    """The kind of that name. Raises `InvalidRecord` for any other."""
    try:
        return RecordKind(str(value))
    except ValueError:
        raise InvalidRecord(
            "unknown kind of trajectory record", hint="kinds: " + ", ".join(kind.value for kind in RecordKind)
        ) from None


def required_text(value: Mapping[str, object], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not text:
        raise InvalidRecord(f"a trajectory record needs `{name}` (text)")
    return text


def optional_text(value: Mapping[str, object], name: str) -> str | None:
    text = value.get(name)
    if text is not None and not isinstance(text, str):
        raise InvalidRecord(f"`{name}` of a trajectory record is text or null")
    return text
