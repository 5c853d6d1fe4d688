"""Putting a hook into a settings file of somebody else, and taking it out again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju import hosts
from qiju.install import hookfile, jsonedit
from qiju.install.jsonedit import NotPlainJson

WITH_HOOKS = [host for host in hosts.HOSTS if host.hooks]

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
entries = st.lists(
    st.fixed_dictionaries({"hooks": st.just([{"type": "command", "command": "other"}])})
    | st.fixed_dictionaries({"command": st.text(max_size=9)}),
    max_size=3,
)
sections = st.dictionaries(st.sampled_from(["SessionStart", "SessionEnd", "sessionStart", "Stop"]), entries, max_size=3)


def without_whitespace_pieces(document: dict[str, Any], section: dict[str, Any] | None) -> dict[str, Any]:
    rest = {key: value for key, value in document.items() if key != "hooks"}
    return rest if section is None else {**rest, "hooks": section}


@pytest.mark.parametrize("host", WITH_HOOKS, ids=lambda host: host.name)
@given(
    document=st.dictionaries(st.text(max_size=6), values, max_size=3),
    section=st.none() | sections,
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    crlf=st.booleans(),
    ending=st.sampled_from(["", "\n", "\n\n"]),
)
def test_adding_then_taking_gives_back_the_same_text(
    host: hosts.Host, document: dict[str, Any], section: dict[str, Any] | None, indent: Any, crlf: bool, ending: str
) -> None:
    """Whatever else is in the file and however it is written; and in between the JSON is what it should be."""
    assert host.hooks is not None
    value = without_whitespace_pieces(document, section)
    text = json.dumps(value, indent=indent, ensure_ascii=False) + ending
    if crlf:
        text = text.replace("\n", "\r\n")
    patched = hookfile.add(text, host.hooks, host.name)
    assert hookfile.holds_ours(patched.text)
    again = hookfile.add(patched.text, host.hooks, host.name)
    assert (again.text, again.pieces) == (patched.text, [])
    assert hookfile.take(patched.text, patched.pieces) == text


@pytest.mark.parametrize("host", WITH_HOOKS, ids=lambda host: host.name)
def test_a_reformatted_file_loses_only_the_hook(host: hosts.Host) -> None:
    """The host has rewritten the file: the entry is cut out, other hooks and their formatting stay."""
    assert host.hooks is not None
    value = {"a": [1, {"b": 2}], "hooks": {"Stop": [{"command": "x"}]}}
    patched = hookfile.add(json.dumps(value), host.hooks, host.name)
    rewritten = json.dumps(json.loads(patched.text), indent=4)
    rest = json.loads(hookfile.take(rewritten, patched.pieces))
    assert {key: rest[key] for key in value} == value


def test_exact_pieces_leave_a_file_that_has_comments_by_now() -> None:
    host = hosts.row("claude")
    assert host.hooks is not None
    patched = hookfile.add('{\n  "a": 1\n}\n', host.hooks, host.name)
    assert hookfile.take("// mine\n" + patched.text, patched.pieces) == '// mine\n{\n  "a": 1\n}\n'
    with pytest.raises(NotPlainJson):
        hookfile.take("// mine\n" + patched.text.replace("  ", "    "), patched.pieces)


def test_a_hook_of_the_users_in_the_same_group_stays() -> None:
    ours = {"type": "command", "command": hookfile.command_for("claude", "session-start")}
    text = json.dumps({"hooks": {"SessionStart": [{"hooks": [ours, {"type": "command", "command": "mine"}]}]}})
    left = json.loads(hookfile.take(text, []))
    assert left == {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "mine"}]}]}}


@pytest.mark.parametrize(
    "text",
    ["// comment\n{}", "[]", "{", '{"hooks": []}', '{"hooks": {"SessionStart": {}}}', '{"a": 1,}', "[" * 100_000],
)
def test_a_file_that_is_not_plain_json_is_refused(text: str) -> None:
    host = hosts.row("claude")
    assert host.hooks is not None
    with pytest.raises(NotPlainJson):
        hookfile.add(text, host.hooks, host.name)


def test_a_key_that_occurs_twice_is_not_edited_on_a_guess() -> None:
    """Which of two sections a host reads is its own affair: such a file is left to its owner."""
    host = hosts.row("claude")
    assert host.hooks is not None
    with pytest.raises(NotPlainJson):
        hookfile.add('{"hooks": {}, "hooks": {"SessionStart": []}}', host.hooks, host.name)


def test_only_exact_pieces_are_taken() -> None:
    assert jsonedit.take_pieces("abcabc", ["b"]) is None
    assert jsonedit.take_pieces("abc", ["b", ""]) is None
    assert jsonedit.take_pieces("abc", ["a", "b"]) == "c"
