"""What bounded paging needs from a store, and nothing else: cut a snapshot, recognise it again, read slices of it.

The SQLite store, the journal and the private copy of older histories are three sources with one interface; readers,
cursors, views and the exporter know only this. A third party's store that lacks it can still be read session by
session, but never page by page: reading all of it to serve one page is what this interface exists to prevent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from qiju import jsontext
from qiju.errors import IdConflict, InvalidRecord
from qiju.trajectory.types import RecordKind, Trajectory, TrajectoryDraft, TrajectoryQuery, TrajectoryRecord

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All records up to `watermark` (a sequence; 0 when empty) as they were; `state` is the source's own mark of it."""

    watermark: int
    state: str


class SessionSummary(NamedTuple):
    """One session of a source: counts, and first and last sequence."""

    session_id: str
    records: int
    first_sequence: int
    last_sequence: int


@runtime_checkable
class SnapshotSource(Protocol):
    """A source with the bounded snapshot capability."""

    @property
    def source_id(self) -> str:
        """Names this history; part of what a cursor is bound to. No path, no host name."""

    @property
    def cursor_key(self) -> bytes:
        """Authenticates cursors."""

    def cut(self) -> Snapshot:
        """Fix what is there now."""

    def opened(self, snapshot: Snapshot, *, whole: bool = False) -> AbstractContextManager[None]:
        """Hold the source still for one page and raise `CursorRejected` unless it still is that snapshot; `whole`
        checks every byte of it, where the source cannot tell otherwise."""

    def select(self, snapshot: Snapshot, query: TrajectoryQuery, after: int, count: int) -> list[TrajectoryRecord]:
        """At most `count` records with `after < sequence <= watermark`, each checked against its digest."""

    def close(self) -> None: ...


class SessionSource(Protocol):
    """The least a reader needs: whole sessions."""

    def read_session(self, session_id: str) -> Trajectory: ...


class TrajectoryStore(SessionSource, Protocol):
    """What a trajectory store does; `SqliteTrajectoryStore` and `JournalTrajectoryStore` conform."""

    def append(self, draft: TrajectoryDraft) -> TrajectoryRecord: ...

    def append_many(self, drafts: Iterable[TrajectoryDraft]) -> int: ...


class Sealed(NamedTuple):
    """A draft ready to be stored: payload as canonical JSON text with its digest (64 hex digits)."""

    session_id: str
    record_id: str | None
    run_id: str | None
    work_item_id: str | None
    kind: RecordKind
    ts: str | None
    payload: str
    digest: str


def seal(draft: TrajectoryDraft) -> Sealed:
    """Canonicalise and digest a draft's payload. Raises `InvalidRecord` for values that JSON cannot hold, and for half
    of a surrogate pair anywhere in the draft."""
    text = canonical_payload(draft.payload)
    for words in (text, draft.session_id, draft.record_id, draft.run_id, draft.work_item_id, draft.ts):
        try:
            (words or "").encode()
        except UnicodeEncodeError:
            raise InvalidRecord("a trajectory draft holds half of a surrogate pair, which is no text") from None
    return Sealed(
        draft.session_id,
        draft.record_id,
        draft.run_id,
        draft.work_item_id,
        draft.kind,
        draft.ts,
        text,
        sha256(text.encode()).hexdigest(),
    )


def refuse_other(
    new: Sealed, kind: RecordKind, digest: str, run_id: str | None, work_item_id: str | None, ts: str | None
) -> None:
    """Raise `IdConflict`, naming the fields, unless `new` says what is stored under its id already. What the writer
    left out is not compared."""
    pairs = (
        ("kind", new.kind, kind),
        ("payload", new.digest, digest),
        ("run_id", new.run_id, run_id),
        ("work_item_id", new.work_item_id, work_item_id),
        ("ts", new.ts, ts),
    )
    differing = [name for name, given, stored in pairs if given is not None and given != stored]
    if differing:
        raise IdConflict(
            "a record with this id exists in the session with other content: " + ", ".join(differing),
            hint="records are never rewritten; give the new one an id of its own",
        )


def canonical_payload(payload: dict[str, JsonValue]) -> str:
    """The payload's canonical JSON. Python floats are taken as the JSON numbers they print as; NaN and infinities,
    lone surrogates and objects of other types raise `InvalidRecord`."""
    return jsontext.canonical(plain(payload))


def plain(value: object, depth: int = 0) -> JsonValue:
    """A Python value as a `JsonValue`; see `canonical_payload`."""
    if value is None or isinstance(value, (bool, str, jsontext.Number)):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else jsontext.Number(str(value))
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidRecord("a payload holds NaN or an infinity, which JSON has no word for")
        return int(value) if value.is_integer() and abs(value) < 2**53 else jsontext.Number(repr(value))
    if depth >= jsontext.MAX_DEPTH:
        # What is deeper could be written but never read again.
        raise InvalidRecord(f"a payload is nested deeper than {jsontext.MAX_DEPTH} levels")
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item, depth + 1) for key, item in value.items()}
    raise InvalidRecord(f"a payload holds a value of type {type(value).__name__}, which JSON has no word for")


def now() -> str:
    """The time as a store writes it when a draft has none: UTC, microseconds."""
    seconds, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{microseconds:06d}Z"
