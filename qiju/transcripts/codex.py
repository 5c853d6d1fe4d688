"""Codex rollouts (`rollout-<time>-<id>.jsonl`) as drafts.

A rollout tells a session twice: `response_item`s are what the model saw and said, `event_msg`s are what the interface
showed. The items are the truth; an event that only repeats one is reported and not stored again, any other event is
kept as an event. An event may come before the item it repeats, so the file is read twice: once for the items' texts
and calls (as hashes), once for the drafts.

Older rollouts hold the items bare, without the `{"timestamp", "type", "payload"}` frame; they are read as items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qiju.errors import InvalidJson
from qiju.jsontext import canonical, parse
from qiju.trajectory.types import RecordKind, TrajectoryDraft
from qiju.transcripts.ledger import Ledger
from qiju.transcripts.lines import read_lines
from qiju.transcripts.source import Identify, Source, parts_of, plain_identity, text_of, whole

if TYPE_CHECKING:
    from pathlib import Path

    from qiju.jsontext import JsonValue
    from qiju.transcripts.lines import Line
    from qiju.transcripts.report import ImportReport

    JsonObject = dict[str, JsonValue]

HOST = "codex"

# Item types that are a call, with the field that holds what was asked for; and those that are a result, with its field.
CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "web_search_call": "action",
    "tool_search_call": "arguments",
    "image_generation_call": "revised_prompt",
}
UNNAMED = {
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
    "image_generation_call": "image_generation",
}
# Calls whose outcome the item itself states: nothing else answers them.
SELF_ANSWERING = frozenset({"web_search_call", "image_generation_call"})
RESULTS = {"function_call_output": "output", "custom_tool_call_output": "output", "tool_search_output": "tools"}
OTHER_ITEMS = frozenset({"ghost_snapshot", "compaction", "compaction_trigger", "context_compaction", "other"})
ITEMS = frozenset({"message", "reasoning"}) | CALLS.keys() | RESULTS.keys() | OTHER_ITEMS
FRAMES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})

# Events that say a text which an item says too: event type, field of the text, and whose text it is.
REPEATS = {
    "user_message": ("message", "user"),
    "agent_message": ("message", "assistant"),
    "agent_reasoning": ("text", "reasoning"),
    "agent_reasoning_raw_content": ("text", "reasoning"),
}
# Events that only announce a call which an item states with its arguments.
ANNOUNCES = frozenset(
    {"exec_command_begin", "mcp_tool_call_begin", "patch_apply_begin", "web_search_begin", "view_image_tool_call"}
    | {"exec_command_output_delta"}
)
EVENTS = frozenset(
    {"task_started", "task_complete", "turn_started", "turn_complete", "turn_aborted", "error", "warning"}
    | {"stream_error"}
    | {"exec_command_end", "mcp_tool_call_end", "patch_apply_end", "web_search_end", "context_compacted", "turn_diff"}
    | {"thread_name_updated", "thread_rolled_back", "entered_review_mode", "exited_review_mode", "plan_update"}
    | {"agent_reasoning_section_break", "background_event", "undo_started", "undo_completed", "item_completed"}
    | {"item_started", "image_generation_end", "thread_settings_applied", "token_count"}
    | REPEATS.keys()
    | ANNOUNCES
)


def read_codex(path: Path, report: ImportReport, *, identify: Identify = plain_identity) -> Iterator[TrajectoryDraft]:
    """The drafts of one Codex rollout, in file order; memory does not grow with the file.

    Fills `report`, which is complete when the iterator is exhausted. Raises what `lines.read_lines` raises.
    """
    with Ledger() as ledger:
        source = Source(HOST, path, ledger, report, identify)
        named = _first_pass(path, source)
        report.files += 1
        reader = _Reader(source)
        for line in read_lines(path):
            report.lines += 1
            yield from reader.line(line)
        if not named:
            source.odd("session_from_file_name", 1)
        source.close()


def _first_pass(path: Path, source: Source) -> bool:
    """Note what the items say, so that the second pass knows which events repeat it; find the session's id."""
    named = False
    for line in read_lines(path):
        entry = line.value
        if not isinstance(entry, dict):
            continue
        frame, item = _unframed(entry)
        if frame == "session_meta" and not named:
            session = text_of(item.get("id")) or text_of(item.get("session_id"))
            named = session is not None
            source.session = session or source.session
        elif frame == "response_item":
            for whose, text in _texts(item):
                source.ledger.note("text", f"{whose}\0{text.strip()}", line.number)
            for name in (text_of(item.get("call_id")), text_of(item.get("id"))):
                if name and text_of(item.get("type")) in CALLS:
                    source.ledger.note("announced", name, line.number)
    return named


def _unframed(entry: JsonObject) -> tuple[str, JsonObject]:
    """The frame's type and what it holds; a bare item of an older rollout counts as framed."""
    kind, payload = entry.get("type"), entry.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):
        return kind, payload
    if isinstance(kind, str) and kind in ITEMS:
        return "response_item", entry
    if kind is None and isinstance(entry.get("id"), str) and "timestamp" in entry:
        return "session_meta", entry
    return (kind, entry) if isinstance(kind, str) else ("", entry)


def _texts(item: JsonObject) -> Iterator[tuple[str, str]]:
    """Each text of an item that an event may repeat, with whose it is; a message's parts singly and joined."""
    whose = "reasoning" if item.get("type") == "reasoning" else text_of(item.get("role"))
    if not whose:
        return
    for field in ("content", "summary"):
        parts = item.get(field)
        if isinstance(parts, str):
            yield whose, parts
        elif isinstance(parts, list):
            texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
            found = [text for text in texts if isinstance(text, str)]
            yield from ((whose, text) for text in found)
            if len(found) > 1:
                yield whose, "\n".join(found)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.model: str | None = None
        self.turn: str | None = None
        self.since_result = 0
        self.totals: JsonObject = {}

    def line(self, line: Line) -> Iterator[TrajectoryDraft]:
        source = self.source
        if line.repaired:
            source.odd("lone_surrogate", line.number)
        entry = line.value
        if line.trouble or not isinstance(entry, dict):
            yield from source.no_object(line)
            return
        frame, item = _unframed(entry)
        ts = text_of(entry.get("timestamp"))
        own = text_of(item.get("id")) if frame == "response_item" else None
        base = source.line_id(line, source.session, own or "", dated=ts is not None)
        if base is None:
            return
        if frame == "response_item":
            kind, payload = self.item(item, line.number)
        elif frame == "event_msg":
            told = self.event(item, line.number)
            if told is None:
                return
            kind, payload = told
        else:
            kind, payload = self.frame(frame, item, line.number)
        yield source.draft(kind, payload, base, ts=ts)

    def frame(self, frame: str, item: JsonObject, number: int) -> tuple[RecordKind, JsonObject]:
        if frame == "turn_context":
            self.model = text_of(item.get("model")) or self.model
            self.turn = text_of(item.get("turn_id")) or self.turn
            return RecordKind.STATE, {"type": "turn_context", "model": self.model, "turn_id": self.turn, "data": item}
        if frame in FRAMES:
            return RecordKind.STATE, {"type": frame, "data": item}
        self.source.unknown(frame or "untyped", number)
        return RecordKind.EVENT, {"type": frame or "untyped", "data": item}

    def item(self, item: JsonObject, number: int) -> tuple[RecordKind, JsonObject]:
        kind = item.get("type")
        if kind is None and isinstance(item.get("role"), str):
            self.source.odd("untyped_item", number)
            kind = "message"
        leave_out = self.source.report.left_out
        name = str(kind) if isinstance(kind, str) else "untyped"
        payload: JsonObject = {"turn_id": _turn(item) or self.turn, "item_id": text_of(item.get("id"))}
        if name == "message" and isinstance(item.get("role"), str):
            payload.update(role=item["role"], content=parts_of(item.get("content"), leave_out), phase=item.get("phase"))
            if item["role"] == "assistant":
                payload.update(model=self.model, message_id=item.get("id"))
            return RecordKind.MESSAGE, _with_extra(payload, item, {"role", "content", "phase"})
        if name == "reasoning":
            texts = [text for _, text in _texts({**item, "summary": [], "content": item.get("content")})]
            summary = [text for _, text in _texts({**item, "content": None, "summary": item.get("summary")})]
            if item.get("encrypted_content"):
                leave_out("reasoning.encrypted_content", "opaque_to_readers")
            said = list(dict.fromkeys(_singles(summary) + _singles(texts)))
            payload.update(text="\n\n".join(said), model=self.model, withheld=None if said else True)
            return RecordKind.REASONING, _with_extra(payload, item, {"summary", "content", "encrypted_content"})
        if name in CALLS:
            return RecordKind.TOOL_CALL, self.call(name, item, payload, number)
        if name in RESULTS:
            return RecordKind.TOOL_RESULT, self.result(name, item, payload, number)
        if name not in OTHER_ITEMS:
            self.source.unknown(f"response_item:{name}", number)
        return RecordKind.EVENT, {"type": f"response_item:{name}", "data": item}

    def call(self, kind: str, item: JsonObject, payload: JsonObject, number: int) -> JsonObject:
        call_id, item_id = text_of(item.get("call_id")), text_of(item.get("id"))
        self.source.call(call_id or item_id, item_id, number)
        if kind in SELF_ANSWERING and (call_id or item_id):
            self.source.ledger.note("result", str(call_id or item_id), number)
        self.since_result += 1
        if self.since_result == 2:
            self.source.odd("parallel_batch", number)
        field = CALLS[kind]
        payload.update(
            call_id=call_id or item_id,
            name=text_of(item.get("name")) or UNNAMED.get(kind, kind),
            arguments=_arguments(item.get(field), field),
            call_type=kind,
            status=item.get("status"),
            model=self.model,
        )
        return _with_extra(payload, item, {"call_id", "name", field, "status"})

    def result(self, kind: str, item: JsonObject, payload: JsonObject, number: int) -> JsonObject:
        call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
        self.source.result(call_id, number)
        self.since_result = 0
        output = item.get(RESULTS[kind])
        success = output.get("success") if isinstance(output, dict) else None
        if isinstance(output, dict) and output.keys() <= {"content", "success", "content_items"}:
            output = output.get("content_items") or output.get("content")
        output = _opened(output)
        payload.update(call_id=call_id, output=parts_of(output, self.source.report.left_out))
        if isinstance(success, bool):
            payload["is_error"] = not success
        return _with_extra(payload, item, {"call_id", RESULTS[kind]})

    def event(self, item: JsonObject, number: int) -> tuple[RecordKind, JsonObject] | None:
        kind = item.get("type")
        name = kind if isinstance(kind, str) and kind else "untyped"
        ledger = self.source.ledger
        if name in REPEATS:
            field, whose = REPEATS[name]
            text = item.get(field)
            if isinstance(text, str) and ledger.seen("text", f"{whose}\0{text.strip()}"):
                self.source.odd("duplicate_event", number)
                return None
        call_id = text_of(item.get("call_id"))
        if name in ANNOUNCES and call_id and ledger.seen("announced", call_id):
            self.source.odd("duplicate_event", number)
            return None
        if name in ("task_started", "turn_started"):
            self.turn = text_of(item.get("turn_id")) or self.turn
        if name == "token_count":
            return self.usage(item, number)
        if name not in EVENTS:
            self.source.unknown(f"event_msg:{name}", number)
        data = {key: value for key, value in item.items() if key not in ("type", "call_id", "turn_id")}
        last = data.get("last_agent_message")
        if isinstance(last, str) and ledger.seen("text", f"assistant\0{last.strip()}"):
            self.source.odd("duplicate_event", number)
            del data["last_agent_message"]
        payload: JsonObject = {"type": name, "call_id": call_id, "turn_id": item.get("turn_id"), "data": data}
        return RecordKind.EVENT, payload

    def usage(self, item: JsonObject, number: int) -> tuple[RecordKind, JsonObject] | None:
        """A request's tokens. Codex tells the running total again with every change of its rate limits."""
        info = item.get("info")
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if not isinstance(total, dict) or not isinstance(last, dict):
            return RecordKind.EVENT, {"type": "token_count", "data": item}
        tokens = {
            "input_tokens": whole(last.get("input_tokens")),
            "cached_input_tokens": whole(last.get("cached_input_tokens")),
            "output_tokens": whole(last.get("output_tokens")),
            "reasoning_output_tokens": whole(last.get("reasoning_output_tokens")),
        }
        if total == self.totals:
            self.source.odd("usage_repeated", number)
            return RecordKind.EVENT, {"type": "token_count", "repeated": True, "data": item}
        self.totals = total
        self.source.report.spent(tokens)
        payload: JsonObject = {"type": "usage", "turn_id": self.turn, "model": self.model, **tokens, "data": item}
        return RecordKind.STATE, payload


def _singles(texts: list[str]) -> list[str]:
    """Without the joined form that `_texts` appends after several parts."""
    return texts[:-1] if len(texts) > 2 else texts


def _turn(item: JsonObject) -> str | None:
    passed = item.get("internal_chat_message_metadata_passthrough") or item.get("metadata")
    return text_of(passed.get("turn_id")) if isinstance(passed, dict) else None


def _with_extra(payload: JsonObject, item: JsonObject, said: set[str]) -> JsonObject:
    passed = "internal_chat_message_metadata_passthrough"
    known = said | {"type", "id", "timestamp"}
    extra: JsonObject = {key: value for key, value in item.items() if key not in known and value is not None}
    if isinstance(item.get(passed), dict) and extra.get(passed) == {"turn_id": payload.get("turn_id")}:
        del extra[passed]
    if extra:
        payload["extra"] = extra
    return payload


def _arguments(value: JsonValue, field: str) -> JsonValue:
    """Arguments as an object: Codex writes JSON in a string for functions, plain text for custom tools."""
    opened = _opened(value) if field == "arguments" else value
    if isinstance(opened, dict):
        return opened
    return {} if opened is None else {field: opened}


def _opened(value: JsonValue) -> JsonValue:
    """The object that a string holds as JSON; any other value, and a string that would not survive, as it is."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            inner = parse(value, name="arguments")
        except InvalidJson:
            return value
        # Only a string that says nothing beyond the object is opened, so that no spelling is lost that matters.
        if isinstance(inner, dict) and len(canonical(inner)) <= len(value):
            return inner
    return value
