"""The words of a fact: its text for a reader's eyes, made inert, and what a result says of its own success.

Transcripts hold whatever a tool printed. Control characters, escape sequences and direction overrides are shown as
marks instead of being obeyed, so that a page or a terminal shows the same text that a search would find.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qiju.jsontext import canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qiju.jsontext import JsonValue

    JsonObject = dict[str, JsonValue]

# C0 but tab and newline, DEL and C1; line and paragraph separators; direction overrides, isolates and marks; zero-width
# characters but the joiners that scripts and emoji need; byte order mark; interlinear marks; tag characters; the halves
# of surrogate pairs.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def mark(character: str) -> str:
    """The visible mark for a character that must not act: its escape, as the other commands write it."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def inert(text: str) -> str:
    """`text` with line ends as newlines and every acting character as a mark."""
    return UNSAFE.sub(lambda found: mark(found[0]), text.replace("\r\n", "\n"))


def content_text(value: JsonValue) -> str:
    """Content, output or arguments as plain text: parts one below the other, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        return "\n".join(_part_text(part) for part in value if isinstance(part, dict))
    return canonical(value)


def _part_text(part: JsonObject) -> str:
    text = part.get("text")
    if isinstance(text, str):
        return text
    if part.keys() <= {"type", "media_type", "bytes"}:
        told = [str(part["media_type"])] if part.get("media_type") else []
        told += [f"{part['bytes']} bytes"] if "bytes" in part else []
        return f"[{', '.join([str(part.get('type')), *told])}, not kept]"
    return canonical(part)


def argument_lines(arguments: JsonValue) -> Iterator[tuple[str, str]]:
    """The arguments of a call as (name, text); a call with anything but named arguments has one, without a name."""
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            if isinstance(value, list):
                yield name, "\n".join(item if isinstance(item, str) else canonical(item) for item in value)
            else:
                yield name, content_text(value)
    elif arguments is not None:
        yield "", content_text(arguments)


EXIT_CODE = (
    re.compile(r"\A(?:Error: )?Exit code:? (-?\d+)\b"),
    re.compile(r"(?m)\AChunk ID: .*\n(?:.*\n){0,4}?Process exited with code (-?\d+)$"),
    re.compile(r"\A(?:Wall time: .*\n)?Process exited with code (-?\d+)\b"),
)


def exit_code(payload: JsonObject) -> int | None:
    """The exit code that a tool result states, wherever its host writes it; None when it states none."""
    stated = [payload.get("exit_code")]
    for holder in (payload.get("output"), payload.get("host_result"), payload.get("data")):
        if isinstance(holder, dict):
            inner = holder.get("metadata")
            stated += [holder.get("exit_code"), holder.get("exitCode")]
            stated += [inner.get("exit_code")] if isinstance(inner, dict) else []
    for value in stated:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    text = content_text(payload.get("output"))[:600]
    for pattern in EXIT_CODE:
        if found := pattern.search(text):
            return int(found[1])
    return None


def failed(payload: JsonObject) -> bool | None:
    """Whether a tool result says that its call failed; None when it does not say."""
    if payload.get("is_error") is True:
        return True
    code = exit_code(payload)
    if code is not None:
        return code != 0
    return False if payload.get("is_error") is False else None
