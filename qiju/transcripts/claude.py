"""Claude Code's transcripts (`<session>.jsonl`, `agent-<id>.jsonl`) as drafts.

Each line states one thing; an answer of the model is spread over several lines that share `message.id`, each of which
repeats the answer's usage. A block of a line becomes one record, so that text, reasoning, calls and results stay facts
of their own; the usage of an answer becomes one `state` record when the answer is over. What surrounds a session
(folder, branch, version, mode) is stated once and again when it changes, not on every record.

Lines of types this reader does not know are kept as events with everything they hold: hosts add types every month.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from qiju.trajectory.types import RecordKind, TrajectoryDraft
from qiju.transcripts.ledger import Ledger
from qiju.transcripts.lines import read_lines
from qiju.transcripts.source import Identify, Source, parts_of, plain_identity, text_of, whole, without_media

if TYPE_CHECKING:
    from pathlib import Path

    from qiju.jsontext import JsonValue
    from qiju.transcripts.lines import Line
    from qiju.transcripts.report import ImportReport

    JsonObject = dict[str, JsonValue]

HOST = "claude"
LOOK_AHEAD = 200  # lines read for the first session id; a summary may stand before it

# Fields of a line that other words of a payload already say, or that describe the surroundings.
SURROUNDINGS = {
    "cwd": "cwd",
    "gitBranch": "git_branch",
    "version": "version",
    "entrypoint": "entrypoint",
    "userType": "user_type",
    "permissionMode": "permission_mode",
    "slug": "slug",
}
SAID = frozenset(
    {"type", "uuid", "parentUuid", "timestamp", "sessionId", "isSidechain", "agentId", "message", "requestId", "isMeta"}
    | {"isCompactSummary", "toolUseResult"}
    | set(SURROUNDINGS)
)
UNSAID = ("message", "permissionMode")  # said by messages and their surroundings, but not by lines of other types
MESSAGE_SAID = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})

# Types of lines beside user and assistant, and the kind of fact each states.
STATES = frozenset(
    {"summary", "ai-title", "custom-title", "agent-name", "agent-color", "agent-setting", "mode", "permission-mode"}
    | {"last-prompt", "tag", "pr-link", "worktree-state", "file-history-snapshot", "file-history-delta", "todo"}
)
EVENTS = frozenset({"system", "attachment", "progress", "started", "result", "queue-operation"})
QUEUE = {"enqueue": "queued", "dequeue": "delivered", "remove": "removed", "popAll": "removed"}


def read_claude(path: Path, report: ImportReport, *, identify: Identify = plain_identity) -> Iterator[TrajectoryDraft]:
    """The drafts of one Claude Code transcript, in file order; memory does not grow with the file.

    Fills `report`, which is complete when the iterator is exhausted. Raises what `lines.read_lines` raises.
    """
    with Ledger() as ledger:
        source = Source(HOST, path, ledger, report, identify)
        named = _first_session(path)
        source.session = named or path.stem
        report.files += 1
        reader = _Reader(source)
        for line in read_lines(path):
            report.lines += 1
            yield from reader.line(line)
        yield from reader.end()
        if not named:
            source.odd("session_from_file_name", 1)
        if len(reader.sessions) > 1:
            source.odd("several_sessions", 1)
        source.close()


def _first_session(path: Path) -> str | None:
    for line in read_lines(path):
        if isinstance(line.value, dict) and (session := text_of(line.value.get("sessionId"))):
            return session
        if line.number >= LOOK_AHEAD:
            break
    return None


class _Answer:
    """The usage of one answer of the model, as its latest line states it."""

    __slots__ = ("key", "message", "model", "session", "ts", "usage")

    def __init__(self, message: str | None, key: str, session: str) -> None:
        self.message = message
        self.key = key
        self.session = session
        self.usage: JsonObject = {}
        self.model: str | None = None
        self.ts: str | None = None


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.sessions: set[str] = set()
        self.around: dict[tuple[str, str | None], JsonObject] = {}
        self.answers: dict[str | None, _Answer] = {}
        self.batch: dict[str | None, tuple[str, int]] = {}
        self.counted: dict[str, dict[str, int]] = {}

    def line(self, line: Line) -> Iterator[TrajectoryDraft]:
        source = self.source
        if line.repaired:
            source.odd("lone_surrogate", line.number)
        entry = line.value
        if line.trouble or not isinstance(entry, dict):
            yield from source.no_object(line)
            return
        session = text_of(entry.get("sessionId")) or source.session
        if len(self.sessions) < 2:
            self.sessions.add(session)
        run = text_of(entry.get("agentId")) or ("sidechain" if entry.get("isSidechain") is True else None)
        uuid = text_of(entry.get("uuid"))
        ts = text_of(entry.get("timestamp"))
        base = source.line_id(line, session, uuid or "", dated=ts is not None)
        if uuid:
            source.ledger.note("uuid", uuid, line.number)
        if parent := text_of(entry.get("parentUuid")):
            source.ledger.note("parent", parent, line.number)
        if base is None:
            return
        at = _Place(source, line, entry, session, run, ts, base)
        yield from self.surroundings(at)
        kind = entry.get("type")
        if kind in ("user", "assistant"):
            yield from self.message(at, str(kind))
        else:
            yield from self.other(at, kind)

    def end(self) -> Iterator[TrajectoryDraft]:
        for run in list(self.answers):
            yield from self.answered(run)

    def surroundings(self, at: _Place) -> Iterator[TrajectoryDraft]:
        now = {name: at.entry[key] for key, name in SURROUNDINGS.items() if at.entry.get(key) is not None}
        before = self.around.get((at.session, at.run), {})
        merged = {**before, **now}
        if merged != before:
            self.around[at.session, at.run] = merged
            yield at.draft(RecordKind.STATE, {"type": "context", "data": merged}, "context")

    def message(self, at: _Place, role: str) -> Iterator[TrajectoryDraft]:
        message = at.entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(content, (str, list)):
            at.source.odd("malformed_message", at.line.number)
            yield at.draft(RecordKind.EVENT, {"type": "malformed_message", "raw": at.entry}, "0")
            return
        if role == "user" and not _holds_results(content):
            # A person speaks: the answer before is over, and its usage belongs before the new turn.
            yield from self.answered(at.run)
        yield from self.usage(at, message)
        common = _common(at.entry, message, at.source.report.left_out)
        common["role"] = text_of(message.get("role")) or role
        blocks: list[JsonValue] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield at.draft(RecordKind.MESSAGE, {**common, "content": ""}, "0")
        for index, block in enumerate(blocks):
            yield self.block(at, block, common, index)
            # What the line holds beside its blocks is said once, with the first of them.
            for key in ("extra", "host_result"):
                common.pop(key, None)

    def block(self, at: _Place, block: JsonValue, common: JsonObject, index: int) -> TrajectoryDraft:
        number, tail = at.line.number, str(index)
        kind = block.get("type") if isinstance(block, dict) else None
        leave_out = at.source.report.left_out
        payload = {key: value for key, value in common.items() if key != "role"}
        if isinstance(block, dict) and isinstance(kind, str):
            if kind == "text" and isinstance(block.get("text"), str):
                return at.draft(RecordKind.MESSAGE, {**common, "content": block["text"]}, tail)
            if kind in ("image", "document"):
                return at.draft(RecordKind.MESSAGE, {**common, "content": parts_of([block], leave_out)}, tail)
            if kind in ("thinking", "redacted_thinking"):
                for key in ("signature", "data"):
                    if block.get(key):
                        leave_out(f"{kind}.{key}", "opaque_to_readers")
                text = block.get("thinking")
                withheld = None if isinstance(text, str) and text else True
                payload.update(text=text if isinstance(text, str) else "", withheld=withheld)
                return at.draft(RecordKind.REASONING, payload, tail)
            if kind.endswith("tool_use") and isinstance(block.get("name"), str):
                call_id = text_of(block.get("id"))
                at.source.call(call_id, None, number)
                self.parallel(at, text_of(common.get("message_id")))
                payload.update(call_id=call_id, name=block["name"], arguments=block.get("input"))
                if kind != "tool_use":
                    payload["call_type"] = kind
                return at.draft(RecordKind.TOOL_CALL, payload, tail)
            if kind.endswith("tool_result"):
                call_id = text_of(block.get("tool_use_id"))
                at.source.result(call_id, number)
                payload.update(call_id=call_id, output=parts_of(block.get("content"), leave_out))
                payload["is_error"] = block.get("is_error") if isinstance(block.get("is_error"), bool) else None
                structured = common.get("host_result")
                payload["subagent"] = text_of(structured.get("agentId")) if isinstance(structured, dict) else None
                return at.draft(RecordKind.TOOL_RESULT, payload, tail)
        known = isinstance(block, dict) and isinstance(kind, str)
        if known:
            at.source.unknown(f"block:{kind}", number)
        else:
            at.source.odd("malformed_block", number)
        payload.update(type=f"block:{kind}" if known else "malformed_block", raw=block)
        return at.draft(RecordKind.EVENT, payload, tail)

    def parallel(self, at: _Place, message: str | None) -> None:
        before, count = self.batch.get(at.run, ("", 0))
        count = count + 1 if message and message == before else 1
        self.batch[at.run] = (message or "", count)
        if count == 2:
            at.source.odd("parallel_batch", at.line.number)

    def usage(self, at: _Place, message: JsonObject) -> Iterator[TrajectoryDraft]:
        usage = message.get("usage")
        if not isinstance(usage, dict) or not usage:
            return
        name = text_of(message.get("id"))
        key = f"usage:{name[:120]}" if name else f"usage:{at.base}"
        answer = self.answers.get(at.run)
        if answer is not None and answer.key == key:
            at.source.odd("usage_repeated" if usage == answer.usage else "usage_revised", at.line.number)
        else:
            yield from self.answered(at.run)
            answer = self.answers[at.run] = _Answer(name, key, at.session)
        answer.usage, answer.model, answer.ts = usage, text_of(message.get("model")), at.ts

    def answered(self, run: str | None) -> Iterator[TrajectoryDraft]:
        """The usage of the answer that is over. An answer that is taken up again later is counted once all the same."""
        answer = self.answers.pop(run, None)
        if answer is None:
            return
        source, usage = self.source, answer.usage
        tokens = {
            "input_tokens": whole(usage.get("input_tokens"))
            + whole(usage.get("cache_read_input_tokens"))
            + whole(usage.get("cache_creation_input_tokens")),
            "cached_input_tokens": whole(usage.get("cache_read_input_tokens")),
            "output_tokens": whole(usage.get("output_tokens")),
        }
        identity = f"{HOST}:{answer.key}:{source.value_id(usage)}"
        if source.ledger.note("usage", f"{answer.session}\0{identity}", 0):
            return
        before = self.counted.pop(answer.key, {})
        self.counted[answer.key] = tokens
        if len(self.counted) > 1000:
            del self.counted[next(iter(self.counted))]
        source.report.spent({name: count - before.get(name, 0) for name, count in tokens.items()})
        payload: JsonObject = {"type": "usage", "message_id": answer.message, "model": answer.model, **tokens}
        payload["data"] = usage
        yield source.draft(RecordKind.STATE, payload, identity, session=answer.session, run=run, ts=answer.ts)

    def other(self, at: _Place, kind: JsonValue) -> Iterator[TrajectoryDraft]:
        entry = at.entry
        name = kind if isinstance(kind, str) and kind else "untyped"
        data = {key: value for key, value in entry.items() if key not in SAID or key in UNSAID}
        payload: JsonObject = {"type": name, "data": data, "subtype": entry.get("subtype")}
        payload.update(uuid=entry.get("uuid"), parent_uuid=entry.get("parentUuid"))
        if name == "queue-operation" and isinstance(text := entry.get("content"), str):
            payload.update(text=text, status=QUEUE.get(str(entry.get("operation")), "queued"))
            data.pop("content")
            yield at.draft(RecordKind.STEERING, payload, "0")
            return
        attachment = entry.get("attachment")
        if name == "attachment" and isinstance(attachment, dict) and attachment.get("type") == "queued_command":
            prompt = parts_of(attachment.get("prompt"), at.source.report.left_out)
            if isinstance(prompt, str):
                data["attachment"] = {key: value for key, value in attachment.items() if key != "prompt"}
                payload.update(text=prompt, status="delivered")
                yield at.draft(RecordKind.STEERING, payload, "0")
                return
        if name not in STATES and name not in EVENTS:
            at.source.unknown(name, at.line.number)
        yield at.draft(RecordKind.STATE if name in STATES else RecordKind.EVENT, payload, "0")


class _Place:
    """A line with what all its records share."""

    __slots__ = ("base", "entry", "line", "run", "session", "source", "ts")

    def __init__(
        self, source: Source, line: Line, entry: JsonObject, session: str, run: str | None, ts: str | None, base: str
    ) -> None:
        self.source = source
        self.line = line
        self.entry = entry
        self.session = session
        self.run = run
        self.ts = ts
        self.base = base

    def draft(self, kind: RecordKind, payload: JsonObject, tail: str) -> TrajectoryDraft:
        return self.source.draft(kind, payload, f"{self.base}#{tail}", session=self.session, run=self.run, ts=self.ts)


def _common(entry: JsonObject, message: JsonObject, leave_out: Callable[[str, str], None]) -> JsonObject:
    """What every record of a message's line says, and (under `extra`) whatever else the line holds."""
    common: JsonObject = {
        "uuid": text_of(entry.get("uuid")),
        "parent_uuid": text_of(entry.get("parentUuid")),
        "message_id": text_of(message.get("id")),
        "request_id": text_of(entry.get("requestId")),
        "model": text_of(message.get("model")),
        "stop_reason": text_of(message.get("stop_reason")),
        "meta": True if entry.get("isMeta") is True else None,
        "compact_summary": True if entry.get("isCompactSummary") is True else None,
    }
    extra: JsonObject = {key: value for key, value in entry.items() if key not in SAID and value is not None}
    inner: JsonObject = {key: value for key, value in message.items() if key not in MESSAGE_SAID and value is not None}
    if inner:
        extra["message"] = inner
    if extra:
        common["extra"] = extra
    result = without_media(entry.get("toolUseResult"), leave_out)
    if result is not None and not _repeats(result, message.get("content")):
        common["host_result"] = result
    return common


def _holds_results(content: JsonValue) -> bool:
    """Whether a user line carries results of tools, which the host puts between the lines of one answer."""
    return isinstance(content, list) and any(
        isinstance(block, dict) and str(block.get("type")).endswith("tool_result") for block in content
    )


def _repeats(result: JsonValue, content: JsonValue) -> bool:
    """Whether the host's form of a result says only what the result's block says, perhaps with a prefix."""
    if not isinstance(result, str) or not isinstance(content, list):
        return False
    texts = [block.get("content") for block in content if isinstance(block, dict)]
    return any(isinstance(text, str) and result in (text, f"Error: {text}") for text in texts)
