"""The exchange log: append-only facts of a conversation, and steering that waits for a safe boundary.

An agent runtime declares a batch of tool calls, then appends results in whatever order they arrive. The log keeps the
facts in the order they happened and derives every other order from them. Steering (a user's word in the middle of a
run) is queued and becomes a fact only while no batch is open, so that it never falls between a call and its result.

A call may be known by two ids (some providers give an item an `id` and a `call_id`): results pair by either. A call
without a result is never taken for a success: its outcome is None until a result is a fact.

Writing is strict (a contradiction is an error that names the ids). Reading facts that somebody else wrote is not:
`exchange_from_records` keeps going and reports what does not fit as anomalies.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from qiju.errors import ExchangeConflict, InvalidRecord
from qiju.trajectory.types import RecordKind, TrajectoryDraft, TrajectoryRecord

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue

EXCHANGE_LOG_SCHEMA_VERSION = "qiju.exchange/1"


@dataclass(frozen=True, slots=True)
class MessageItem:
    """Something said: `role` is `user`, `assistant`, `system`, ...; `content` is text or content blocks."""

    role: str
    content: JsonValue

    def to_dict(self) -> dict[str, JsonValue]:
        return {"type": "message", "role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One declared call. `item_id` is the other id some providers give the same call."""

    call_id: str
    name: str
    arguments: JsonValue = field(default_factory=dict)
    item_id: str | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.call_id,) if self.item_id in (None, self.call_id) else (self.call_id, str(self.item_id))

    def to_dict(self) -> dict[str, JsonValue]:
        value: dict[str, JsonValue] = {"call_id": self.call_id, "name": self.name, "arguments": self.arguments}
        if self.item_id is not None:
            value["item_id"] = self.item_id
        return value


@dataclass(frozen=True, slots=True)
class ToolCallBatch:
    """Calls declared together; the batch is open until each of them has a result."""

    batch_id: str
    calls: tuple[ToolCall, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        return {"type": "tool_calls", "batch_id": self.batch_id, "calls": [call.to_dict() for call in self.calls]}


@dataclass(frozen=True, slots=True)
class ToolResultItem:
    """What came back for one call, under the id the result was reported with."""

    batch_id: str
    call_id: str
    output: JsonValue
    is_error: bool = False

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "type": "tool_result",
            "batch_id": self.batch_id,
            "call_id": self.call_id,
            "output": self.output,
            "is_error": self.is_error,
        }


@dataclass(frozen=True, slots=True)
class SteeringItem:
    """A word from outside the loop, delivered (as an item) or still waiting (as queued)."""

    text: str

    def to_dict(self) -> dict[str, JsonValue]:
        return {"type": "steering", "text": self.text}


ExchangeItem = MessageItem | ToolCallBatch | ToolResultItem | SteeringItem


class ExchangeLog:
    """Append-only exchange facts and queued safe-boundary steering.

    `items` are replayed under the same rules as live appends, so a log that contradicts itself cannot be constructed.
    Raises `ExchangeConflict` on such a contradiction and `InvalidRecord` for another `schema_version`.
    """

    def __init__(
        self,
        log_id: str | None = None,
        *,
        items: Iterable[ExchangeItem] | None = None,
        queued_steering: Iterable[SteeringItem] | None = None,
        schema_version: str = EXCHANGE_LOG_SCHEMA_VERSION,
    ) -> None:
        if schema_version != EXCHANGE_LOG_SCHEMA_VERSION:
            raise InvalidRecord(
                "the exchange log has another schema version", hint=f"this Qiju reads {EXCHANGE_LOG_SCHEMA_VERSION}"
            )
        self.log_id = log_id or str(uuid.uuid4())
        self.schema_version = schema_version
        self._items: list[ExchangeItem] = []
        self._batches: dict[str, ToolCallBatch] = {}
        self._results: dict[str, dict[str, ToolResultItem]] = {}
        self._open: str | None = None
        for item in items or ():
            self._append(item)
        self._queued: list[SteeringItem] = list(queued_steering or ())

    @property
    def items(self) -> tuple[ExchangeItem, ...]:
        return tuple(self._items)

    @property
    def queued_steering(self) -> tuple[SteeringItem, ...]:
        return tuple(self._queued)

    def __len__(self) -> int:
        return len(self._items)

    # Facts

    def append_message(self, role: str, content: JsonValue) -> MessageItem:
        """Append a message; allowed at any time."""
        item = MessageItem(role, content)
        self._append(item)
        return item

    def append_batch(self, batch_id: str, calls: Iterable[ToolCall]) -> ToolCallBatch:
        """Declare calls. Raises `ExchangeConflict` while a batch is open, for a known batch id, for an empty batch and
        for an id that two calls of it share."""
        batch = ToolCallBatch(batch_id, tuple(calls))
        self._append(batch)
        return batch

    def append_result(self, batch_id: str, call_id: str, output: JsonValue, is_error: bool = False) -> ToolResultItem:
        """Append the one result of a declared call; either id of the call will do. Raises `ExchangeConflict` for an
        unknown batch or call and for a second result."""
        item = ToolResultItem(batch_id, call_id, output, is_error)
        self._append(item)
        return item

    def queue_steering(self, text: str) -> SteeringItem:
        """Keep a word for the next safe boundary. It is no fact of the exchange until delivered."""
        item = SteeringItem(text)
        self._queued.append(item)
        return item

    def deliver_steering(self) -> tuple[SteeringItem, ...]:
        """Turn all queued steering into facts, in order. Raises `ExchangeConflict` while a batch is open."""
        if self._open is not None:
            raise ExchangeConflict(f"steering cannot be delivered while batch {self._open!r} is open")
        delivered = tuple(self._queued)
        self._items.extend(delivered)
        self._queued.clear()
        return delivered

    # Derived

    @property
    def batch_ids(self) -> tuple[str, ...]:
        return tuple(self._batches)

    def open_batch_id(self) -> str | None:
        """The batch that still waits for results, or None."""
        return self._open

    def declared_calls(self, batch_id: str) -> list[ToolCall]:
        """The calls of a batch as declared. Raises `ExchangeConflict` for an unknown batch."""
        return list(self._batch(batch_id).calls)

    def results_for_batch(self, batch_id: str) -> list[ToolResultItem]:
        """The results of a batch in the order they arrived."""
        self._batch(batch_id)
        return list(self._results[batch_id].values())

    def results_for_batch_in_declaration_order(self, batch_id: str) -> list[ToolResultItem]:
        """Derive results in call declaration order without rewriting facts; calls without a result are left out."""
        return [result for _call, result in self.outcomes(batch_id) if result is not None]

    def outcomes(self, batch_id: str) -> list[tuple[ToolCall, ToolResultItem | None]]:
        """Every declared call with its result, or None where none arrived (interrupted, still running): no success."""
        results = self._results[self._batch(batch_id).batch_id]
        return [(call, results.get(call.call_id)) for call in self._batch(batch_id).calls]

    # As data

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "schema_version": self.schema_version,
            "log_id": self.log_id,
            "items": [item.to_dict() for item in self._items],
            "queued_steering": [item.to_dict() for item in self._queued],
        }

    @classmethod
    def from_dict(cls, payload: Mapping[str, object]) -> ExchangeLog:
        """The log that `to_dict` wrote. Raises `InvalidRecord` on another shape, `ExchangeConflict` when its facts
        contradict each other."""
        if not isinstance(payload, dict):
            raise InvalidRecord("an exchange log is an object")
        queued = [_item(value) for value in _list(payload, "queued_steering")]
        steering = [item for item in queued if isinstance(item, SteeringItem)]
        if len(steering) != len(queued):
            raise InvalidRecord("`queued_steering` of an exchange log holds steering only")
        return cls(
            _text(payload, "log_id"),
            items=[_item(value) for value in _list(payload, "items")],
            queued_steering=steering,
            schema_version=_text(payload, "schema_version"),
        )

    def to_drafts(self, session_id: str, *, run_id: str | None = None) -> Iterator[TrajectoryDraft]:
        """The facts as drafts for a store or journal, one per message, call, result and steering. Record ids are
        derived from the log's id and the position, so writing the same log twice adds nothing."""
        position = 0
        for item in self._items:
            for kind, payload in _facts(item):
                record_id = f"{self.log_id}:{position}"
                yield TrajectoryDraft(session_id, kind, payload, record_id=record_id, run_id=run_id)
                position += 1

    def _append(self, item: ExchangeItem) -> None:
        if isinstance(item, ToolCallBatch):
            self._declare(item)
        elif isinstance(item, ToolResultItem):
            self._resolve(item)
        self._items.append(item)

    def _declare(self, batch: ToolCallBatch) -> None:
        if self._open is not None:
            raise ExchangeConflict(f"batch {batch.batch_id!r} cannot begin while batch {self._open!r} is open")
        if batch.batch_id in self._batches:
            raise ExchangeConflict(f"batch {batch.batch_id!r} is declared already")
        if not batch.calls:
            raise ExchangeConflict(f"batch {batch.batch_id!r} declares no calls")
        seen: set[str] = set()
        for call in batch.calls:
            for known in call.ids:
                if known in seen:
                    raise ExchangeConflict(f"batch {batch.batch_id!r} declares call {known!r} twice")
                seen.add(known)
        self._batches[batch.batch_id] = batch
        self._results[batch.batch_id] = {}
        self._open = batch.batch_id

    def _resolve(self, result: ToolResultItem) -> None:
        batch = self._batch(result.batch_id)
        call = next((call for call in batch.calls if result.call_id in call.ids), None)
        if call is None:
            raise ExchangeConflict(f"batch {batch.batch_id!r} declares no call {result.call_id!r}")
        results = self._results[batch.batch_id]
        if call.call_id in results:
            raise ExchangeConflict(f"call {result.call_id!r} of batch {batch.batch_id!r} has its result already")
        results[call.call_id] = result
        if len(results) == len(batch.calls):
            self._open = None

    def _batch(self, batch_id: str) -> ToolCallBatch:
        try:
            return self._batches[batch_id]
        except KeyError:
            raise ExchangeConflict(f"no batch {batch_id!r} is declared") from None


@dataclass(frozen=True, slots=True)
class ExchangeAnomaly:
    """A recorded fact that does not fit the others. `reason`: `unknown_call`, `second_result`, `no_result`,
    `repeated_call` or `unreadable`; `call_id` may be empty when the record has none."""

    sequence: int
    record_id: str
    call_id: str
    reason: str


def exchange_from_records(records: Iterable[TrajectoryRecord]) -> tuple[ExchangeLog, tuple[ExchangeAnomaly, ...]]:
    """The exchange that trajectory records tell, and every record that does not fit into it. Never stops at one.

    Calls without a declared batch form a batch of their own; a batch that stays open when the next one begins, or at
    the end, leaves an anomaly `no_result` for each call that has none. Records of other kinds are passed over.
    """
    return _Replay().run(records)


class _Replay:
    """Collects calls into batches first, because a log takes a batch whole while a trajectory lists single calls."""

    def __init__(self) -> None:
        self.anomalies: list[ExchangeAnomaly] = []
        self.order: list[MessageItem | SteeringItem | str | tuple[str, str]] = []
        self.batches: dict[str, list[ToolCall]] = {}
        self.results: dict[tuple[str, str], ToolResultItem] = {}
        self.by_id: dict[str, tuple[str, ToolCall, TrajectoryRecord]] = {}

    def run(self, records: Iterable[TrajectoryRecord]) -> tuple[ExchangeLog, tuple[ExchangeAnomaly, ...]]:
        for record in records:
            self._take(record)
        for batch_id, call, record in list(self.by_id.values()):
            if (batch_id, call.call_id) not in self.results:
                self._report(record, call.call_id, "no_result")
        unique = dict.fromkeys(self.anomalies)
        return self._log(), tuple(sorted(unique, key=lambda anomaly: anomaly.sequence))

    def _report(self, record: TrajectoryRecord, call_id: str, reason: str) -> None:
        self.anomalies.append(ExchangeAnomaly(record.sequence, record.record_id, call_id, reason))

    def _take(self, record: TrajectoryRecord) -> None:
        payload = record.payload
        if record.kind is RecordKind.MESSAGE:
            self.order.append(MessageItem(str(payload.get("role", "")), payload.get("content")))
        elif record.kind is RecordKind.STEERING:
            self.order.append(SteeringItem(str(payload.get("text", payload.get("content", "")))))
        elif record.kind is RecordKind.TOOL_CALL:
            self._take_call(record)
        elif record.kind is RecordKind.TOOL_RESULT:
            self._take_result(record)

    def _take_call(self, record: TrajectoryRecord) -> None:
        payload = record.payload
        call_id, item_id = payload.get("call_id"), payload.get("item_id")
        if not isinstance(call_id, str) or not call_id:
            return self._report(record, "", "unreadable")
        other = item_id if isinstance(item_id, str) else None
        call = ToolCall(call_id, str(payload.get("name", "")), payload.get("arguments", {}), other)
        if any(known in self.by_id for known in call.ids):
            return self._report(record, call_id, "repeated_call")
        batch = payload.get("batch_id")
        batch_id = batch if isinstance(batch, str) and batch else call_id
        if batch_id not in self.batches:
            self.batches[batch_id] = []
            self.order.append(batch_id)
        self.batches[batch_id].append(call)
        self.by_id.update((known, (batch_id, call, record)) for known in call.ids)
        return None

    def _take_result(self, record: TrajectoryRecord) -> None:
        call_id = record.payload.get("call_id")
        if not isinstance(call_id, str) or not call_id:
            return self._report(record, "", "unreadable")
        if call_id not in self.by_id:
            return self._report(record, call_id, "unknown_call")
        batch_id, call, _record = self.by_id[call_id]
        key = (batch_id, call.call_id)
        if key in self.results:
            return self._report(record, call_id, "second_result")
        is_error = record.payload.get("is_error") is True
        self.results[key] = ToolResultItem(batch_id, call_id, record.payload.get("output"), is_error)
        self.order.append(key)
        return None

    def _log(self) -> ExchangeLog:
        """Build the log. A batch that never got all its results would block the ones after it: its missing results
        become errors with a null output (interrupted, no success), except in the last batch, which stays open."""
        log = ExchangeLog()
        last = next((entry for entry in reversed(self.order) if isinstance(entry, str)), None)
        to_come = dict.fromkeys(self.batches, 0)
        for batch_id, _call_id in self.results:
            to_come[batch_id] += 1
        waiting: list[ToolResultItem | ToolCallBatch] = []
        for entry in self.order:
            if isinstance(entry, (MessageItem, SteeringItem)):
                log._append(entry)
                continue
            if isinstance(entry, str):
                batch_id = entry
                waiting.append(ToolCallBatch(batch_id, tuple(self.batches[batch_id])))
            else:
                batch_id = entry[0]
                to_come[batch_id] -= 1
                waiting.append(self.results[entry])
            if to_come[batch_id] == 0 and batch_id != last:
                waiting.extend(
                    ToolResultItem(batch_id, call.call_id, None, is_error=True)
                    for call in self.batches[batch_id]
                    if (batch_id, call.call_id) not in self.results
                )
            waiting = _drain(log, waiting)
        return log


def _drain(log: ExchangeLog, waiting: list[ToolResultItem | ToolCallBatch]) -> list[ToolResultItem | ToolCallBatch]:
    """Append what fits now; a batch declared while another was open, and its results, wait for that one to close."""
    progress = True
    while progress and waiting:
        progress = False
        for index, item in enumerate(waiting):
            if isinstance(item, ToolCallBatch):
                fits = log.open_batch_id() is None
            else:
                fits = item.batch_id == log.open_batch_id()
            if fits:
                log._append(waiting.pop(index))
                progress = True
                break
    return waiting


def _facts(item: ExchangeItem) -> list[tuple[RecordKind, dict[str, JsonValue]]]:
    if isinstance(item, MessageItem):
        return [(RecordKind.MESSAGE, {"role": item.role, "content": item.content})]
    if isinstance(item, SteeringItem):
        return [(RecordKind.STEERING, {"text": item.text})]
    if isinstance(item, ToolResultItem):
        payload = item.to_dict()
        del payload["type"]
        return [(RecordKind.TOOL_RESULT, payload)]
    return [(RecordKind.TOOL_CALL, {"batch_id": item.batch_id, **call.to_dict()}) for call in item.calls]


def _item(value: object) -> ExchangeItem:
    if not isinstance(value, Mapping):
        raise InvalidRecord("an item of an exchange log is a JSON object")
    kind = value.get("type")
    if kind == "message":
        return MessageItem(_text(value, "role"), value.get("content"))
    if kind == "steering":
        return SteeringItem(_text(value, "text"))
    if kind == "tool_result":
        is_error = value.get("is_error", False)
        if not isinstance(is_error, bool):
            raise InvalidRecord("`is_error` of a tool result is true or false")
        return ToolResultItem(_text(value, "batch_id"), _text(value, "call_id"), value.get("output"), is_error)
    if kind == "tool_calls":
        return ToolCallBatch(_text(value, "batch_id"), tuple(_call(call) for call in _list(value, "calls")))
    raise InvalidRecord("an item of an exchange log has an unknown type")


def _call(value: object) -> ToolCall:
    if not isinstance(value, Mapping):
        raise InvalidRecord("a call of an exchange log is a JSON object")
    item_id = value.get("item_id")
    return ToolCall(
        _text(value, "call_id"),
        _text(value, "name"),
        value.get("arguments", {}),
        item_id if isinstance(item_id, str) else None,
    )


def _text(value: Mapping[str, object], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str):
        raise InvalidRecord(f"`{name}` of an exchange log item is text")
    return text


def _list(value: Mapping[str, object], name: str) -> Sequence[object]:
    entries = value.get(name, [])
    if not isinstance(entries, (list, tuple)):
        raise InvalidRecord(f"`{name}` of an exchange log is a list")
    return entries
