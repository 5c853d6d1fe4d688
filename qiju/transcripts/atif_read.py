"""ATIF documents as drafts: each step becomes the facts it states, in the order the format gives them.

The reader accepts every 1.x document whose shape it understands, and says where a shape is wrong by its place in the
document (`steps[3].tool_calls[0]`), never by its text. Fields it has no word for are kept under `extra`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qiju.errors import InvalidRecord, NotFound, StorageFailed, UsageError
from qiju.jsontext import canonical, digest, parse
from qiju.trajectory.types import RecordKind, TrajectoryDraft
from qiju.transcripts.source import Identify, plain_identity, text_of, whole

if TYPE_CHECKING:
    from pathlib import Path

    from qiju.jsontext import JsonValue
    from qiju.transcripts.report import ImportReport

    JsonObject = dict[str, JsonValue]

HOST = "atif"
LARGEST = 512 << 20  # bytes; one JSON value cannot be read in pieces
ROLES = {"user": "user", "agent": "assistant", "system": "system"}
STEP_SAID = frozenset(
    {"step_id", "timestamp", "source", "message", "reasoning_content", "tool_calls", "observation", "metrics"}
    | {"model_name"}
)
ROOT_SAID = frozenset({"steps", "subagent_trajectories"})


def read_atif(path: Path, report: ImportReport, *, identify: Identify = plain_identity) -> Iterator[TrajectoryDraft]:
    """The drafts of an ATIF document. The session is its `session_id`, else its `trajectory_id`, else a digest.

    Raises `NotFound`, `StorageFailed`, `UsageError` (too large), `InvalidJson`, `InvalidRecord` (not ATIF).
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise UsageError(f"{path} has {size} bytes; an ATIF document may have up to {LARGEST}")
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror or type(error).__name__}") from error
    report.files += 1
    value = parse(data, name=str(path))
    if not isinstance(value, dict) or not str(value.get("schema_version", "")).startswith("ATIF-v1."):
        raise InvalidRecord(f"{path} is no ATIF document", hint="it needs `schema_version`: ATIF-v1.x")
    session = text_of(value.get("session_id")) or text_of(value.get("trajectory_id"))
    if session is None:
        session = "atif-" + identify(digest(canonical(value)))[:16]
    yield from _Document(path.name, session, report).read(value, None, "")


class _Document:
    def __init__(self, name: str, session: str, report: ImportReport) -> None:
        self.name = name
        self.session = session
        self.report = report
        self.seen: set[str] = set()

    def bad(self, place: str, what: str) -> InvalidRecord:
        return InvalidRecord(f"{self.name}: {place or 'the document'} {what}")

    def read(self, value: JsonObject, run: str | None, place: str) -> Iterator[TrajectoryDraft]:
        steps = value.get("steps")
        if not isinstance(steps, list):
            raise self.bad(place, "has no list `steps`")
        data = {key: inner for key, inner in value.items() if key not in ROOT_SAID}
        data.update(_agent_words(value.get("agent")))
        yield self.draft(RecordKind.STATE, {"type": "atif_document", "data": data}, "document", run, None)
        calls: set[str] = set()
        for index, step in enumerate(steps):
            if not isinstance(step, dict):
                raise self.bad(f"{place}steps[{index}]", "is not an object")
            yield from self.step(step, run, f"{place}steps[{index}]", calls)
        others = value.get("subagent_trajectories")
        for index, other in enumerate(others if isinstance(others, list) else []):
            inner = f"{place}subagent_trajectories[{index}]"
            name = text_of(other.get("trajectory_id")) if isinstance(other, dict) else None
            if not isinstance(other, dict) or name is None:
                raise self.bad(inner, "has no `trajectory_id`")
            yield from self.read(other, name if run is None else f"{run}/{name}", f"{inner}.")

    def step(self, step: JsonObject, run: str | None, place: str, calls: set[str]) -> Iterator[TrajectoryDraft]:
        number, source = step.get("step_id"), text_of(step.get("source"))
        message = step.get("message", "")
        if not isinstance(number, int) or isinstance(number, bool) or source not in ROLES:
            raise self.bad(place, "needs `step_id` (a whole number) and `source` (user, agent or system)")
        if not isinstance(message, (str, list)):
            raise self.bad(f"{place}.message", "is neither text nor a list of parts")
        self.report.lines += 1
        ts = text_of(step.get("timestamp"))
        common: JsonObject = {"message_id": f"step {number}" if source == "agent" else None}
        common["model"] = text_of(step.get("model_name"))
        extra: JsonObject = {key: value for key, value in step.items() if key not in STEP_SAID and value is not None}
        facts: list[tuple[RecordKind, JsonObject, str]] = []
        thought = text_of(step.get("reasoning_content"))
        if thought:
            facts.append((RecordKind.REASONING, {**common, "text": thought}, "reasoning"))
        asked, observed = self.listed(step, "tool_calls", place), step.get("observation")
        results = self.listed(observed, "results", f"{place}.observation") if isinstance(observed, dict) else []
        if message or not (asked or results or thought):
            if _steered(extra):
                facts.append((RecordKind.STEERING, {"text": message, "status": "delivered"}, "message"))
            else:
                said: JsonObject = {**common, "role": ROLES[source], "content": message}
                facts.append((RecordKind.MESSAGE, said, "message"))
        for index, call in enumerate(asked):
            payload = self.call(call, common, f"{place}.tool_calls[{index}]", calls)
            facts.append((RecordKind.TOOL_CALL, payload, f"call{index}"))
        for index, result in enumerate(results):
            payload = self.result(result, f"{place}.observation.results[{index}]", calls)
            facts.append((RecordKind.TOOL_RESULT, payload, f"result{index}"))
        if extra:
            # What the format has no field for belongs to the step, and so to the first fact of it.
            facts[0][1]["step_extra"] = extra
        metrics = step.get("metrics")
        if isinstance(metrics, dict):
            facts.append((RecordKind.STATE, self.usage(metrics, common), "usage"))
        for kind, payload, name in facts:
            yield self.draft(kind, payload, f"step {number}#{name}", run, ts)

    def listed(self, holder: JsonObject, key: str, place: str) -> list[JsonValue]:
        value = holder.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.bad(f"{place}.{key}", "is not a list")
        return value

    def call(self, call: JsonValue, common: JsonObject, place: str, calls: set[str]) -> JsonObject:
        if not isinstance(call, dict) or text_of(call.get("function_name")) is None:
            raise self.bad(place, "needs `function_name`")
        extra = call.get("extra")
        call_id = text_of(call.get("tool_call_id"))
        if call_id is None:
            self.odd("missing_call_id", place)
        elif call_id in calls:
            self.odd("repeated_call_id", place)
        else:
            calls.add(call_id)
        return {
            **common,
            "call_id": call_id,
            "name": call["function_name"],
            "arguments": call.get("arguments"),
            "item_id": extra.get("item_id") if isinstance(extra, dict) else None,
            "extra": extra if isinstance(extra, dict) and extra.keys() - {"item_id"} else None,
        }

    def result(self, result: JsonValue, place: str, calls: set[str]) -> JsonObject:
        if not isinstance(result, dict):
            raise self.bad(place, "is not an object")
        extra = result.get("extra")
        call_id = text_of(result.get("source_call_id"))
        if call_id is not None and call_id not in calls:
            self.odd("orphan_result", place)
        payload: JsonObject = {"call_id": call_id, "output": result.get("content"), "extra": extra}
        if isinstance(extra, dict):
            payload.update(is_error=extra.get("is_error"), exit_code=extra.get("exit_code"))
        references = result.get("subagent_trajectory_ref")
        first = references[0] if isinstance(references, list) and references else None
        payload["subagent"] = text_of(first.get("trajectory_id")) if isinstance(first, dict) else None
        if references != [{"trajectory_id": payload["subagent"]}]:
            payload["subagent_trajectory_ref"] = references
        return payload

    def usage(self, metrics: JsonObject, common: JsonObject) -> JsonObject:
        tokens = {
            "input_tokens": whole(metrics.get("prompt_tokens")),
            "cached_input_tokens": whole(metrics.get("cached_tokens")),
            "output_tokens": whole(metrics.get("completion_tokens")),
        }
        self.report.spent(tokens)
        return {**common, "type": "usage", **tokens, "data": metrics}

    def odd(self, name: str, place: str) -> None:
        self.report.anomaly(name, f"{self.name}:{place}")

    def draft(
        self, kind: RecordKind, payload: JsonObject, name: str, run: str | None, ts: str | None
    ) -> TrajectoryDraft:
        record_id = f"{HOST}:{run + '/' if run else ''}{name}"
        while record_id in self.seen:
            record_id += "+"
            if record_id not in self.seen:
                self.odd("repeated_id", name)
        self.seen.add(record_id)
        self.report.drafted(kind, self.session)
        kept: JsonObject = {key: value for key, value in payload.items() if value is not None}
        return TrajectoryDraft(self.session, kind, kept, record_id, run, None, ts)


def _agent_words(agent: JsonValue) -> JsonObject:
    version = agent.get("version") if isinstance(agent, dict) else None
    return {"version": version} if isinstance(version, str) else {}


def _steered(extra: JsonObject) -> bool:
    inner = extra.get("extra")
    return isinstance(inner, dict) and inner.get("steering") is True
