"""A session as an ATIF document: Harbor's Agent Trajectory Interchange Format, version 1.8.

ATIF knows steps of a user, a system and an agent; an agent's step is one answer of the model with its calls, their
results and its tokens. What a session holds beside that (states, events, authored records, steering that was never
delivered, pictures without a file) has no place there and is counted in the loss report, which also stands in the
document. Nothing is made up to fill a field: an unknown version says `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from qiju.jsontext import canonical
from qiju.trajectory.types import LossTally, RecordKind
from qiju.transcripts.source import text_of, whole
from qiju.transcripts.words import content_text, exit_code

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.types import LossReport, TrajectoryRecord

    JsonObject = dict[str, JsonValue]

VERSION = "ATIF-v1.8"
POLICY = "qiju.loss/atif-1.8"
AGENTS = {"claude": "claude-code", "codex": "codex"}
SOURCES = {"user": "user", "assistant": "agent", "system": "system", "developer": "system"}


def to_atif(
    session_id: str, view: str, records: Iterable[TrajectoryRecord], loss: LossReport | None = None
) -> tuple[JsonObject, LossReport]:
    """The document of one session's records (in sequence order) and the report of what it does not carry.

    `view` names the privacy view the records were read in and `loss` what that view left out, if it is known already.
    The whole document is in memory: ATIF is one JSON value.
    """
    tally = LossTally(POLICY)
    if loss is not None:
        tally.add_report(loss)
    runs: dict[str | None, _Run] = {None: _Run(session_id, None, tally)}
    for record in records:
        run = runs.get(record.run_id)
        if run is None:
            run = runs[record.run_id] = _Run(session_id, record.run_id, tally)
        run.add(record)
    main = runs.pop(None)
    document = main.document()
    if runs:
        for run in runs.values():
            # A subagent's file names no program of its own: it ran in its parent's.
            run.agent = {**main.agent, **run.agent}
        document["subagent_trajectories"] = [run.document() for run in runs.values()]
        main.refer(set(runs))
    report = tally.report()
    document["extra"] = {"qiju": {"privacy_view": view, "loss": report.to_dict()}}
    return document, report


class _Run:
    """The steps of one run: the session's main run (None) or one subagent's."""

    def __init__(self, session_id: str, run_id: str | None, tally: LossTally) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.tally = tally
        self.steps: list[JsonObject] = []
        self.agent: dict[str, str] = {}
        self.models: dict[str, int] = {}
        self.totals = {"prompt": 0, "completion": 0, "cached": 0, "seen": 0}
        self.open: JsonObject | None = None
        self.open_message: str | None = None
        self.messages: dict[str, JsonObject] = {}
        self.calls: dict[str, tuple[JsonObject, str]] = {}
        self.used: set[str] = set()
        self.subagents: list[tuple[JsonObject, str]] = []
        self.spent: dict[str, tuple[JsonObject, dict[str, int]]] = {}

    def add(self, record: TrajectoryRecord) -> None:
        host = record.record_id.partition(":")[0]
        if host in AGENTS:
            self.agent.setdefault("name", AGENTS[host])
        match record.kind:
            case RecordKind.MESSAGE:
                self.message(record)
            case RecordKind.REASONING:
                self.reasoning(record)
            case RecordKind.TOOL_CALL:
                self.call(record)
            case RecordKind.TOOL_RESULT:
                self.result(record)
            case RecordKind.STEERING:
                self.steering(record)
            case RecordKind.STATE:
                self.state(record)
            case _:
                self.lose(record)

    def lose(self, record: TrajectoryRecord) -> None:
        kind = text_of(record.payload.get("type"))
        self.tally.add(f"{record.kind.value}:{kind}" if kind else record.kind.value, "not_in_format")

    # Steps

    def step(self, source: str, record: TrajectoryRecord, message: str = "") -> JsonObject:
        step: JsonObject = {"step_id": len(self.steps) + 1, "source": source, "message": message}
        if record.ts:
            if _iso(record.ts):
                step["timestamp"] = record.ts
            else:
                self.tally.add("ts", "not_iso_8601")
        step["extra"] = {"record_ids": [record.record_id]}
        self.steps.append(step)
        return step

    def answer(self, record: TrajectoryRecord) -> JsonObject:
        """The step of the model's answer that `record` is part of: by message id, else the one that is still open."""
        # Codex gives every item an id of its own: there, an answer is what stands between two results.
        message = text_of(record.payload.get("message_id")) if not record.record_id.startswith("codex:") else None
        step = self.messages.get(message) if message else self.open if self.open_message is None else None
        if step is None:
            step = self.step("agent", record)
            self.open, self.open_message = step, message
            if message:
                self.messages[message] = step
        else:
            _extra(step)["record_ids"] = [*_list(_extra(step), "record_ids"), record.record_id]
        model = text_of(record.payload.get("model"))
        if model:
            self.models[model] = self.models.get(model, 0) + 1
            step.setdefault("model_name", model)
        return step

    def close(self) -> None:
        self.open, self.open_message = None, None

    def message(self, record: TrajectoryRecord) -> None:
        payload = record.payload
        role = text_of(payload.get("role")) or ""
        said = self.said(payload.get("content"), "message.content")
        if role == "assistant":
            step = self.answer(record)
            before = step["message"]
            step["message"] = f"{before}\n\n{said}" if before else said
            return
        self.close()
        step = self.step(SOURCES.get(role, "system"), record, said)
        if role not in SOURCES:
            _extra(step)["role"] = role
        for mark in ("meta", "compact_summary"):
            if payload.get(mark) is True:
                _extra(step)[mark] = True

    def reasoning(self, record: TrajectoryRecord) -> None:
        thought = content_text(record.payload.get("text"))
        if not thought:
            self.tally.add("reasoning", "withheld_by_host")
            return
        step = self.answer(record)
        before = step.get("reasoning_content")
        step["reasoning_content"] = f"{before}\n\n{thought}" if before else thought

    def call(self, record: TrajectoryRecord) -> None:
        payload = record.payload
        step = self.answer(record)
        given = text_of(payload.get("call_id"))
        name = given or record.record_id
        if given is None:
            self.tally.add("tool_call.call_id", "made_from_record_id")
        number = 1
        while name in self.used:
            number += 1
            name = f"{given or record.record_id}~{number}"
        if number > 1:
            self.tally.add("tool_call.call_id", "repeated_id_renamed")
        self.used.add(name)
        arguments = payload.get("arguments")
        if not isinstance(arguments, dict):
            if arguments is not None:
                self.tally.add("tool_call.arguments", "wrapped_in_object")
            arguments = {} if arguments is None else {"input": arguments}
        call: JsonObject = {
            "tool_call_id": name,
            "function_name": text_of(payload.get("name")) or "unknown",
            "arguments": arguments,
        }
        item = text_of(payload.get("item_id"))
        if item and item != given:
            call["extra"] = {"item_id": item}
        step["tool_calls"] = [*_list(step, "tool_calls"), call]
        for known in (given, item):
            if known:
                self.calls[known] = (step, name)

    def result(self, record: TrajectoryRecord) -> None:
        payload = record.payload
        if self.open_message is None:
            # Without message ids, an answer ends where its first result comes in.
            self.close()
        given = text_of(payload.get("call_id"))
        step, name = self.calls.get(given, (None, given)) if given else (None, None)
        if step is None:
            # Only a step without calls may hold a result that names none of them.
            step = self.step("system", record)
            _extra(step)["orphan_result"] = True
        output = payload.get("output")
        if output is not None and not isinstance(output, str):
            self.tally.add("tool_result.output", "written_as_text")
        result: JsonObject = {"content": self.said(output, "tool_result.output")}
        if name:
            result["source_call_id"] = name
        extra: JsonObject = {"record_id": record.record_id}
        if isinstance(payload.get("is_error"), bool):
            extra["is_error"] = payload["is_error"]
        if (code := exit_code(payload)) is not None:
            extra["exit_code"] = code
        result["extra"] = extra
        if payload.get("host_result") is not None:
            self.tally.add("tool_result.host_result", "not_in_format")
        observation = step.setdefault("observation", {"results": []})
        if isinstance(observation, dict):
            observation["results"] = [*_list(observation, "results"), result]
        if subagent := text_of(payload.get("subagent")):
            self.subagents.append((result, subagent))

    def steering(self, record: TrajectoryRecord) -> None:
        status = text_of(record.payload.get("status"))
        if status not in (None, "delivered"):
            self.tally.add(f"steering:{status}", "not_in_format")
            return
        self.close()
        said = record.payload.get("text", record.payload.get("content"))
        step = self.step("user", record, self.said(said, "steering.text"))
        _extra(step)["steering"] = True

    def said(self, value: JsonValue, field: str) -> str:
        if isinstance(value, list) and any(isinstance(part, dict) and "bytes" in part for part in value):
            self.tally.add(field, "embedded_media_described")
        return content_text(value)

    # What is known of the agent, and what it spent

    def state(self, record: TrajectoryRecord) -> None:
        payload, data = record.payload, record.payload.get("data")
        if payload.get("type") == "usage":
            self.usage(record)
            return
        if isinstance(data, dict):
            version = text_of(data.get("version")) or text_of(data.get("cli_version"))
            if version:
                self.agent.setdefault("version", version)
        self.lose(record)

    def usage(self, record: TrajectoryRecord) -> None:
        payload = record.payload
        message = text_of(payload.get("message_id"))
        step = self.messages.get(message) if message else _last_answer(self.steps)
        tokens = {
            "prompt": whole(payload.get("input_tokens")),
            "completion": whole(payload.get("output_tokens")),
            "cached": whole(payload.get("cached_input_tokens")),
        }
        if message and message in self.spent:
            # A later statement about the same answer stands; the earlier one must not be counted beside it.
            _, before = self.spent[message]
            for name, count in before.items():
                self.totals[name] -= count
        if message and step is not None:
            self.spent[message] = (step, tokens)
        for name, count in tokens.items():
            self.totals[name] += count
        self.totals["seen"] += 1
        if step is None or (not message and "metrics" in step):
            self.tally.add("state:usage", "counted_in_totals_only")
            return
        step["metrics"] = {
            "prompt_tokens": tokens["prompt"],
            "completion_tokens": tokens["completion"],
            "cached_tokens": tokens["cached"],
        }

    def refer(self, runs: set[str | None]) -> None:
        """Let the results that started a subagent point to its trajectory."""
        for result, agent in self.subagents:
            if agent in runs:
                result["subagent_trajectory_ref"] = [{"trajectory_id": agent}]

    def document(self) -> JsonObject:
        agent: JsonObject = {
            "name": self.agent.get("name", "unknown"),
            "version": self.agent.get("version", "unknown"),
        }
        if self.models:
            agent["model_name"] = max(self.models, key=lambda model: self.models[model])
        document: JsonObject = {"schema_version": VERSION, "session_id": self.session_id}
        if self.run_id is not None:
            document["trajectory_id"] = self.run_id
        metrics: JsonObject = {"total_steps": len(self.steps)}
        if self.totals["seen"]:
            metrics["total_prompt_tokens"] = self.totals["prompt"]
            metrics["total_completion_tokens"] = self.totals["completion"]
            metrics["total_cached_tokens"] = self.totals["cached"]
        document.update(agent=agent, steps=list(self.steps), final_metrics=metrics)
        return document


def _extra(step: JsonObject) -> JsonObject:
    extra = step["extra"]
    assert isinstance(extra, dict)
    return extra


def _list(holder: JsonObject, key: str) -> list[JsonValue]:
    value = holder.get(key)
    return value if isinstance(value, list) else []


def _last_answer(steps: list[JsonObject]) -> JsonObject | None:
    return next((step for step in reversed(steps) if step["source"] == "agent"), None)


def _iso(ts: str) -> bool:
    try:
        datetime.fromisoformat(ts.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


def atif_bytes(document: JsonObject) -> bytes:
    """The document as UTF-8 JSON with a final newline; equal documents give equal bytes."""
    return (canonical(document) + "\n").encode("utf-8")
