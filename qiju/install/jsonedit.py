"""Put one value into a JSON file that belongs to somebody else, and take it out again.

A settings file is edited by people and by its program: its order, indentation, line ends and spacing are not ours to
change. So nothing is parsed and dumped again. A value is inserted as a piece of text at the right place, in the style
the file already has, and every inserted piece is reported, so that removing the same pieces later gives back the file
byte for byte. When the file was reformatted in between, `remove_element` cuts the one element and its comma instead.

Texts are whole documents without byte order mark. Anything that is not strict JSON raises `NotPlainJson`.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class NotPlainJson(ValueError):
    """The text is not JSON of the expected shape (comments, a damaged file, another type)."""


class Child(NamedTuple):
    """A member or element: where it begins (its key, for a member), where its value begins, and where it ends."""

    key: str
    start: int
    value: int
    end: int


def parse(text: str) -> Any:
    """The document's value. Raises `NotPlainJson`."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NotPlainJson(str(error)) from error


def children(text: str, at: int) -> list[Child]:
    """The members of the object, or the elements of the array, that begins at `at`."""
    found: list[Child] = []
    is_object = text[at] == "{"
    position = _skip(text, at + 1)
    while text[position] not in "}]":
        if text[position] == ",":
            position = _skip(text, position + 1)
        start = position
        key = ""
        if is_object:
            key, position = _DECODER.raw_decode(text, position)
            position = _skip(text, _skip(text, position) + 1)  # past the colon
        _, end = _DECODER.raw_decode(text, position)
        found.append(Child(key, start, position, end))
        position = _skip(text, end)
    return found


def beginning(text: str) -> int:
    """Where the document's value begins."""
    return _skip(text, 0)


def member(text: str, at: int, key: str) -> Child | None:
    """The member `key` of the object at `at`."""
    return next((child for child in children(text, at) if child.key == key), None)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


class Style(NamedTuple):
    """How the file is written: its line end (empty when all is on one line) and one step of indentation."""

    newline: str
    step: str


def style_of(text: str) -> Style:
    """The style of a document; two spaces where it shows none."""
    newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text.strip() or not text.strip("{}[] \t\r\n") else ""
    match = re.search(r"\n([ \t]+)\S", text)
    return Style(newline, match.group(1) if match else "  ")


def add_child(text: str, at: int, depth: int, key: str | None, value: Any, style: Style) -> tuple[str, str]:
    """`text` with `value` as the last child of the container at `at`, and the piece that was inserted.

    `depth` is how deep the container lies (0 for the document itself); `key` is None for an array.
    """
    present = children(text, at)
    rendered = _rendered(value, depth + 1, style)
    if key is not None:
        rendered = f"{json.dumps(key, ensure_ascii=False)}: {rendered}"
    lead = style.newline + style.step * (depth + 1) if style.newline else ""
    if present:
        position = present[-1].end
        piece = f",{lead or ' '}{rendered}"
    else:
        position = at + 1
        piece = lead + rendered
        # An empty container on one line closes right after its bracket: give the bracket a line of its own.
        if style.newline and "\n" not in text[position : _skip(text, position)]:
            piece += style.newline + style.step * depth
    return text[:position] + piece + text[position:], piece


def _rendered(value: Any, depth: int, style: Style) -> str:
    if not style.newline:
        return json.dumps(value, ensure_ascii=False)
    text = json.dumps(value, ensure_ascii=False, indent=style.step)
    return text.replace("\n", style.newline + style.step * depth)


def take_pieces(text: str, pieces: list[str]) -> str | None:
    """`text` without the inserted pieces, last one first; None when one of them is not there exactly once."""
    for piece in reversed(pieces):
        if not piece or text.count(piece) != 1:
            return None
        text = text.replace(piece, "")
    return text


def remove_child(text: str, at: int, child: Child) -> str:
    """`text` without one child of the container at `at`, its comma and the space that led to it."""
    present = children(text, at)
    index = present.index(child)
    if index > 0:
        return text[: present[index - 1].end] + text[child.end :]
    if len(present) > 1:
        return text[: child.start] + text[present[1].start :]
    return text[: at + 1] + text[_skip(text, child.end) :]
