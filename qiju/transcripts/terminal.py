"""Turns as lines for a terminal or a pipe.

Every line is a pair of a style name and inert text; colours are added only by the caller that knows it writes to a
terminal, so that a pipe gets the same bytes every time. Long texts are cut after `lines` lines and say by how much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qiju.trajectory.types import RecordKind
from qiju.transcripts.words import argument_lines, content_text, exit_code, inert
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.types import TrajectoryRecord
    from qiju.transcripts.turns import Entry, Turn

    JsonObject = dict[str, JsonValue]

WIDEST = 2000  # characters of one line; a minified file must not fill the screen

# Style names and how a terminal shows them.
STYLES = {
    "turn": "bold",
    "who": "bold cyan",
    "text": "",
    "thought": "italic dim",
    "call": "bold yellow",
    "ok": "green",
    "failed": "bold red",
    "odd": "magenta",
    "quiet": "dim",
    "record": "bold green",
}

Lines = Iterator[tuple[str, str]]


def turn_lines(turn: Turn, *, lines: int = 20) -> Lines:
    """The lines of one turn; `lines` cuts each text (0: never)."""
    name = f"turn {turn.number}" if turn.number else "before the first message"
    if turn.run:
        name = f"subagent {inert(turn.run)}, {name}"
    if turn.part > 1:
        name += f", part {turn.part}"
    first = turn.entries[0].record.ts if turn.entries else None
    yield "turn", f"== {name}" + (f" == {inert(first)}" if first else " ==")
    for entry in turn.entries:
        yield from entry_lines(entry, lines=lines)
    yield "text", ""


def entry_lines(entry: Entry, *, lines: int = 20) -> Lines:
    record, payload = entry.record, entry.record.payload
    match record.kind:
        case RecordKind.MESSAGE:
            yield "who", _who(payload)
            yield from _block(content_text(payload.get("content")), "text", lines)
        case RecordKind.REASONING:
            yield "quiet", "thinking" + (" (withheld by the host)" if payload.get("withheld") else "")
            yield from _block(_text(payload, "text"), "thought", lines)
        case RecordKind.STEERING:
            yield "who", f"steering ({inert(_text(payload, 'status') or 'delivered')})"
            yield from _block(_text(payload, "text") or content_text(payload.get("content")), "text", lines)
        case RecordKind.TOOL_CALL:
            yield from _call(entry, lines)
        case RecordKind.TOOL_RESULT:
            yield "odd", f"<- {entry.note}: {inert(_text(payload, 'call_id') or 'no id')}"
            yield from _block(content_text(payload.get("output")), "text", lines)
        case RecordKind.SESSION_RECORD:
            yield "record", f"** record {inert(record.record_id)}: {inert(record_title(payload))}"
        case _:
            yield "quiet", f".. {aside(record)}"


def _call(entry: Entry, lines: int) -> Lines:
    payload = entry.record.payload
    name = inert(_text(payload, "name") or "unnamed tool")
    call_id = _text(payload, "call_id")
    yield "call", f"-> {name}" + (f"  [{inert(call_id)}]" if call_id else "")
    if entry.note:
        yield "odd", f"   {entry.note}"
    for key, value in argument_lines(payload.get("arguments")):
        text = inert(value)
        if "\n" in text:
            yield "text", f"  {inert(key)}:"
            yield from _block(value, "text", lines, indent="    ")
        else:
            yield from _block(f"{key}: {value}" if key else value, "text", lines)
    for number, result in enumerate(entry.results, 1):
        which = "" if len(entry.results) == 1 else f", result {number} of {len(entry.results)}"
        code = exit_code(result.payload)
        style = "failed" if entry.status == "failed" else "ok"
        yield style, f"<- {entry.status}" + (f" (exit code {code})" if code is not None else "") + which
        yield from _block(content_text(result.payload.get("output")), "text", lines)
    if not entry.results:
        yield ("quiet" if entry.status == "done" else "odd"), f"<- {entry.status}"


def aside(record: TrajectoryRecord) -> str:
    """One line about a state or an event: its type, and the few words that say the most."""
    payload = record.payload
    name = _text(payload, "type") or record.kind.value
    if name == "usage":
        counts = (("in", "input_tokens"), ("cached", "cached_input_tokens"), ("out", "output_tokens"))
        told = ", ".join(f"{label} {payload[key]}" for label, key in counts if isinstance(payload.get(key), int))
        return f"usage: {told}" if told else "usage"
    data = payload.get("data", payload.get("raw"))
    shown = content_text(data) if data not in (None, {}, "") else ""
    shown = inert(shown).replace("\n", " ")
    return inert(name) + (f": {shown[:160]}{'...' if len(shown) > 160 else ''}" if shown else "")


def record_title(payload: JsonObject) -> str:
    inner = payload.get("record")
    title = payload.get("title") or (inner.get("title") if isinstance(inner, dict) else None)
    return title if isinstance(title, str) and title else "(no title in this view)"


def _who(payload: JsonObject) -> str:
    who = inert(_text(payload, "role") or "unknown role")
    model = _text(payload, "model")
    marks = [inert(model)] if model else []
    marks += ["put there by the host"] if payload.get("meta") is True else []
    marks += ["summary of what came before"] if payload.get("compact_summary") is True else []
    return who + (f" ({', '.join(marks)})" if marks else "")


def _text(payload: JsonObject, key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _block(text: str, style: str, lines: int, *, indent: str = "  ") -> Lines:
    found = inert(text).rstrip("\n").split("\n") if text else []
    kept = found if lines <= 0 or len(found) <= lines else found[:lines]
    for line in kept:
        over = len(line) - WIDEST if lines > 0 else 0
        cut = f"{line[:WIDEST]} ... ({over} characters more)" if over > 0 else line
        yield style, f"{indent}{cut}".rstrip()
    if len(kept) < len(found):
        yield "quiet", f"{indent}... ({counted(len(found) - len(kept), 'line')} more)"
