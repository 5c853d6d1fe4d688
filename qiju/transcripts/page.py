"""A session as one HTML file that needs nothing else and trusts nothing in it.

Every character of data is text: escaped, with control characters and direction overrides shown as marks, never inside a
script, a style, a link or an attribute. The page's own style and script are admitted by their hashes in a content
security policy that allows nothing else, so that even an escaping fault could load or run nothing. Folding works
without the script; search and the kind switches need it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from qiju.trajectory.types import RecordKind
from qiju.transcripts.terminal import aside, record_title
from qiju.transcripts.words import UNSAFE, argument_lines, content_text, exit_code, inert, mark
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.types import LossReport, TrajectoryRecord
    from qiju.transcripts.turns import Entry, Turn

    JsonObject = dict[str, JsonValue]

LONG = 12  # lines above which a message is folded
KINDS = {
    "message": "messages",
    "reasoning": "thinking",
    "tool": "tools",
    "aside": "states and events",
}


@cache
def _resource(name: str) -> str:
    return (files("qiju.transcripts") / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "'sha256-" + b64encode(sha256(text.encode()).digest()).decode() + "'"


def policy() -> str:
    """The content security policy of every page: our style, our script, nothing else, from nowhere."""
    style, script = _hash(_resource("page.css")), _hash(_resource("page.js"))
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"


def page(session_id: str, view: str, turns: Iterable[Turn], loss: Iterable[LossReport] = ()) -> Iterator[str]:
    """The page in pieces, in order. `loss` is read after the last turn, when the reading knows what it left out."""
    title = f"Session {session_id}"
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy())}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(inert(title))}</title>\n<style>{_resource('page.css')}</style>\n</head>\n<body>\n"
        f'<header><h1>{text(title)}</h1>\n<div class="about"><p>Privacy view: {text(view)}. '
        "Written by Qiju; nothing on this page is loaded from elsewhere.</p></div></header>\n"
    )
    yield (
        '<nav id="tools" hidden><div><input type="search" id="find" placeholder="Search this session ( / )" '
        'aria-label="Search this session" autocomplete="off" spellcheck="false">'
        '<output id="told" for="find"></output>'
        + "".join(
            f'<button type="button" data-kind="{kind}" aria-pressed="true">{label}</button>'
            for kind, label in KINDS.items()
        )
        + '<button type="button" id="open">unfold all</button><button type="button" id="close">fold all</button>'
        "</div></nav>\n<main>\n"
    )
    empty = True
    for turn in turns:
        empty = False
        yield from section(turn)
    if empty:
        yield "<p>This session has no entries in this view.</p>\n"
    yield "</main>\n<footer>\n"
    for report in loss:
        yield from _losses(report)
    yield f"</footer>\n<script>{_resource('page.js')}</script>\n</body>\n</html>\n"


def _losses(report: LossReport) -> Iterator[str]:
    if report.entries:
        count = sum(entry.count for entry in report.entries)
        yield f"<details><summary>{count} values are not shown in this view</summary>\n<ul>\n"
        for entry in report.entries:
            yield f"<li>{text(entry.field)}: {text(entry.reason)}, {entry.count}</li>\n"
        yield "</ul></details>\n"


def text(value: str) -> str:
    """Data as HTML text: escaped, acting characters as marked-up code points."""
    safe = escape(value.replace("\r\n", "\n"))
    return UNSAFE.sub(lambda found: f'<i class="ctl">{mark(found[0])}</i>', safe)


def section(turn: Turn) -> Iterator[str]:
    name = f"Turn {turn.number}" if turn.number else "Before the first message"
    if turn.run:
        name = f"Subagent {turn.run}, {name[0].lower()}{name[1:]}"
    if turn.part > 1:
        name += f", part {turn.part}"
    yield f"<section>\n<h2>{text(name)}</h2>\n"
    for entry in turn.entries:
        yield article(entry)
    yield "</section>\n"


def article(entry: Entry) -> str:
    record, payload = entry.record, entry.record.payload
    match record.kind:
        case RecordKind.MESSAGE:
            role = payload.get("role")
            return _article(record, _role_class(role), "message", _message(payload))
        case RecordKind.REASONING:
            withheld = " (withheld by the host)" if payload.get("withheld") else ""
            body = _folded(f"thinking{withheld}", content_text(payload.get("text")), open_lines=0)
            return _article(record, "reasoning", "reasoning", body)
        case RecordKind.STEERING:
            said = content_text(payload.get("text") or payload.get("content"))
            status = payload.get("status")
            who = f"steering ({status})" if isinstance(status, str) else "steering"
            return _article(record, "steering", "message", f'<div class="who">{text(who)}</div>{_say(said)}')
        case RecordKind.TOOL_CALL:
            return _article(record, "call", "tool", _call(entry))
        case RecordKind.TOOL_RESULT:
            call_id = payload.get("call_id")
            name = text(call_id) if isinstance(call_id, str) else "no id"
            head = f'<span class="odd">{text(entry.note)}</span> <code>{name}</code>'
            body = f"<details><summary>{head}</summary>{_pre(content_text(payload.get('output')))}</details>"
            return _article(record, "result", "tool", body)
        case RecordKind.SESSION_RECORD:
            return _article(record, "record", "message", _authored(record))
        case _:
            return _article(record, "aside", "aside", text(aside(record)))


def _article(record: TrajectoryRecord, name: str, kind: str, body: str) -> str:
    # The sequence is the store's own number, so it may stand in an attribute; nothing from the data ever does.
    at = f'<a class="at" href="#s{record.sequence}">{text(record.ts or "")} #{record.sequence}</a>'
    return f'<article class="{name}" id="s{record.sequence}" data-kind="{kind}">{at}{body}</article>\n'


def _role_class(role: JsonValue) -> str:
    return role if role in ("user", "assistant") and isinstance(role, str) else "other"


def _message(payload: JsonObject) -> str:
    role, model = payload.get("role"), payload.get("model")
    who = role if isinstance(role, str) else "unknown role"
    who += f" ({model})" if isinstance(model, str) else ""
    who += ", put there by the host" if payload.get("meta") is True else ""
    who += ", summary of what came before" if payload.get("compact_summary") is True else ""
    said = content_text(payload.get("content"))
    if said.count("\n") >= 4 * LONG:
        return _folded(who, said, open_lines=LONG)
    return f'<div class="who">{text(who)}</div>{_say(said)}'


def _say(said: str) -> str:
    """Prose, with what stands between code fences (and the fences) set as code."""
    return "".join(
        _pre(piece) if code else f'<div class="say">{text(piece)}</div>'
        for code, piece in _pieces(said)
        if piece.strip()
    )


def _pieces(said: str) -> Iterator[tuple[bool, str]]:
    """The text in runs of prose and fenced code; a fence that is never closed leaves the rest prose."""
    lines: list[str] = []
    fenced = False
    for line in said.split("\n"):
        mark = line.strip()
        if fenced and mark == "```":
            yield True, "\n".join([*lines, line])
            lines, fenced = [], False
        elif not fenced and mark.startswith("```") and mark.count("`") == 3:
            yield False, "\n".join(lines)
            lines, fenced = [line], True
        else:
            lines.append(line)
    yield False, "\n".join(lines)


def _pre(said: str) -> str:
    return f"<pre>{text(said)}</pre>"


def _folded(head: str, said: str, *, open_lines: int) -> str:
    lines = said.split("\n")
    first = "\n".join(lines[:open_lines])
    shown = _say(first) if open_lines else ""
    rest = "\n".join(lines[open_lines:])
    label = f"{counted(len(lines) - open_lines, 'line')} more" if open_lines else head
    title = f'<div class="who">{text(head)}</div>' if open_lines else ""
    return f"{title}{shown}<details><summary>{text(label)}</summary>{_say(rest)}</details>"


def _call(entry: Entry) -> str:
    payload = entry.record.payload
    name = payload.get("name")
    arguments = list(argument_lines(payload.get("arguments")))
    brief = next((value for _, value in arguments if value.strip()), "").strip().split("\n")[0][:120]
    status = entry.status
    style = {"ok": "ok", "failed": "failed", "no result": "odd"}.get(status, "who")
    note = f' <span class="odd">{text(entry.note)}</span>' if entry.note else ""
    head = (
        f'<span class="who">{text(name if isinstance(name, str) else "unnamed tool")}</span> '
        f'<code>{text(brief)}</code> <span class="{style}">{status}</span>{note}'
    )
    rows = "".join(f"<dt>{text(key or 'input')}</dt><dd>{_pre(value)}</dd>" for key, value in arguments)
    for number, result in enumerate(entry.results, 1):
        which = "result" if len(entry.results) == 1 else f"result {number}"
        code = exit_code(result.payload)
        which += f", exit code {code}" if code is not None else ""
        rows += f"<dt>{which}</dt><dd>{_pre(content_text(result.payload.get('output')))}</dd>"
    return f"<details{' open' if status == 'failed' else ''}><summary>{head}</summary><dl>{rows}</dl></details>"


def _authored(record: TrajectoryRecord) -> str:
    inner = record.payload.get("record", record.payload)
    head = f'<div class="who">record {text(record.record_id)}: {text(record_title(record.payload))}</div>'
    body = inner.get("body_md") if isinstance(inner, dict) else None
    if isinstance(body, str) and body:
        head += f"<details><summary>body</summary>{_say(body)}</details>"
    return head
