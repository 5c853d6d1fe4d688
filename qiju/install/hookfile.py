"""Qiju's entry in a host's hook file: how it looks, how it is put in, found, and taken out.

`LAYOUTS` holds the ways in which hosts write a hook; a row of the host table names one of them. The entry is always
recognised by its command, so that it is found again however the host has reformatted its file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from qiju.hosts import HookFile
from qiju.install import jsonedit
from qiju.install.jsonedit import NotPlainJson

COMMAND_PREFIX = "qiju hook "
TIMEOUT_SECONDS = 10


class Layout(NamedTuple):
    """`entry` makes an element of an event's list; `base` is what a file of this layout must say at its top."""

    entry: Callable[[str], dict[str, Any]]
    base: dict[str, Any]


LAYOUTS: dict[str, Layout] = {
    "groups": Layout(
        lambda command: {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_SECONDS}]}, {}
    ),
    "flat": Layout(lambda command: {"command": command, "timeout": TIMEOUT_SECONDS}, {"version": 1}),
}


class Patched(NamedTuple):
    """The new text and the pieces of text that were inserted to make it."""

    text: str
    pieces: list[str]


def command_for(host: str, event: str) -> str:
    """The command line of a hook."""
    return f"{COMMAND_PREFIX}{event} --host {host}"


def is_ours(element: Any) -> bool:
    """Whether a hook entry, or one of a group's hooks, is Qiju's."""
    if not isinstance(element, dict):
        return False
    command = element.get("command")
    if isinstance(command, str) and command.startswith(COMMAND_PREFIX):
        return True
    inner = element.get("hooks")
    return isinstance(inner, list) and any(is_ours(each) for each in inner)


def add(text: str, hooks: HookFile, host: str) -> Patched:
    """`text` with one entry for each of the host's events that has none; `text` may be empty.

    Raises `NotPlainJson` when the file is not a JSON object with lists of hooks.
    """
    layout = LAYOUTS[hooks.layout]
    fresh = not text.strip()
    body = "{}\n" if fresh else text
    wanted = _shape(body)
    style = jsonedit.style_of(body)
    pieces: list[str] = []

    def put(at: int, depth: int, key: str | None, value: Any) -> None:
        nonlocal body
        body, piece = jsonedit.add_child(body, at, depth, key, value, style)
        pieces.append(piece)

    for key, value in layout.base.items():
        if key not in wanted:
            put(jsonedit.beginning(body), 0, key, value)
            wanted[key] = value
    for event, name in hooks.events:
        lists = wanted.setdefault("hooks", {})
        if any(is_ours(element) for element in lists.get(name, [])):
            continue
        entry = layout.entry(command_for(host, event))
        top = jsonedit.beginning(body)
        section = jsonedit.member(body, top, "hooks")
        events = jsonedit.member(body, section.value, name) if section else None
        if section is None:
            put(top, 0, "hooks", {name: [entry]})
        elif events is None:
            put(section.value, 1, name, [entry])
        else:
            put(events.value, 2, None, entry)
        lists.setdefault(name, []).append(entry)
    if not wanted.get("hooks"):
        wanted.pop("hooks", None)
    if jsonedit.parse(body) != wanted:
        raise NotPlainJson("the file has a key twice")
    return Patched(body, [body] if fresh else pieces)


def _shape(text: str) -> dict[str, Any]:
    """The parsed file, checked to be an object whose `hooks`, if any, maps names to lists."""
    value = jsonedit.parse(text)
    if not isinstance(value, dict):
        raise NotPlainJson("the file is not a JSON object")
    lists = value.get("hooks", {})
    if not isinstance(lists, dict) or not all(isinstance(each, list) for each in lists.values()):
        raise NotPlainJson("its hooks are not lists by event")
    return value


def holds_ours(text: str) -> bool:
    """Whether the file has an entry of Qiju's. Raises `NotPlainJson`."""
    return any(is_ours(element) for entries in _shape(text).get("hooks", {}).values() for element in entries)


def is_bare(text: str, hooks: HookFile) -> bool:
    """Whether the file says nothing but what its layout needs to be valid."""
    rest = {key: value for key, value in _shape(text).items() if key != "hooks" or value}
    return rest in ({}, LAYOUTS[hooks.layout].base)


def take(text: str, pieces: list[str]) -> str:
    """`text` without Qiju's entries: byte for byte as before where nobody reformatted it, else with as little change
    as possible. Raises `NotPlainJson`."""
    exact = jsonedit.take_pieces(text, pieces) if pieces else None
    # Also where the file has comments by now and could not be parsed: the pieces are text, and they are all there.
    if exact is not None and COMMAND_PREFIX not in exact:
        return exact
    while True:
        cut = _cut_one(text)
        if cut is None:
            return text
        text = cut


def _cut_one(text: str) -> str | None:
    """`text` without its first entry of Qiju's and without a list or section that this leaves empty."""
    top = jsonedit.beginning(text)
    _shape(text)
    section = jsonedit.member(text, top, "hooks")
    if section is None:
        return None
    for events in jsonedit.children(text, section.value):
        entries = jsonedit.children(text, events.value)
        for entry in entries:
            value = jsonedit.parse(text[entry.value : entry.end])
            if not is_ours(value):
                continue
            inner = value.get("hooks", [])
            others = [each for each in inner if not is_ours(each)]
            if others:
                return _cut_inner(text, entry)
            if len(entries) > 1:
                return jsonedit.remove_child(text, events.value, entry)
            if len(jsonedit.children(text, section.value)) > 1:
                return jsonedit.remove_child(text, section.value, events)
            return jsonedit.remove_child(text, top, section)
    return None


def _cut_inner(text: str, entry: jsonedit.Child) -> str:
    """A group that the user put other hooks into: only Qiju's hook leaves it."""
    group = jsonedit.member(text, entry.value, "hooks")
    if group is None:
        raise NotPlainJson("a group of hooks lost its list")
    mine = next(
        child
        for child in jsonedit.children(text, group.value)
        if is_ours(jsonedit.parse(text[child.value : child.end]))
    )
    return jsonedit.remove_child(text, group.value, mine)
