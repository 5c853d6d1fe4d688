"""JSON values: every string, keys included, at any depth, with the paths that are recorded."""

from __future__ import annotations

import re

from qiju.jsontext import JsonValue, Number
from qiju.redaction import Engine
from qiju.redaction.values import Redaction, canonical_order, key_path


def at(value: JsonValue, path: str) -> str:
    """The string a recorded path points to."""
    import json

    here: JsonValue = value
    for step in re.finditer(r'\.?~key\[(\d+)\]|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.\[]+)', path):
        if step[1] is not None:
            assert isinstance(here, dict)
            here = canonical_order(list(here))[int(step[1])]
        elif step[2] is not None:
            assert isinstance(here, list)
            here = here[int(step[2])]
        else:
            assert isinstance(here, dict)
            here = here[json.loads(step[3]) if step[3] else step[4]]
    assert isinstance(here, str)
    return here


def check(value: JsonValue, found: list[Redaction]) -> None:
    for one in found:
        assert at(value, one.field)[one.start : one.end] == one.placeholder


def test_strings_and_keys_at_every_depth(engine: Engine, github: str) -> None:
    value: JsonValue = {
        "title": "plain",
        "tags": ["a", f"x {github}"],
        "extra": {github: {"a.b": [1, {"c": f"{github} {github}"}]}, "z": None, "on": True},
    }
    clean, found = engine.redact_value(value)
    assert github not in str(clean)
    marker = engine.mark("github_token", github)
    assert clean == {
        "title": "plain",
        "tags": ["a", f"x {marker}"],
        "extra": {marker: {"a.b": [1, {"c": f"{marker} {marker}"}]}, "z": None, "on": True},
    }
    assert [one.field for one in found] == [
        "tags[1]",
        "extra.~key[0]",
        f'extra["{marker}"]["a.b"][1].c',
        f'extra["{marker}"]["a.b"][1].c',
    ]
    check(clean, found)


def test_start_path_is_put_in_front(engine: Engine, github: str) -> None:
    _, found = engine.redact_value([github, {"k": github}], "extra.list")
    assert [one.field for one in found] == ["extra.list[0]", "extra.list[1].k"]


def test_key_position_counts_in_canonical_order(engine: Engine, github: str) -> None:
    clean, found = engine.redact_value({"zz": 1, github: 2, "A": 3})
    assert [one.field for one in found] == ["~key[1]"]
    check(clean, found)


def test_two_keys_that_become_equal_both_stay() -> None:
    engine = Engine(None)
    first, second = ("gh" + "p_" + letter * 2 + "3f9Kq" * 7 for letter in "ab")
    clean, found = engine.redact_value({first: 1, second: 2, "[REDACTED:github_token]": 3})
    assert sorted(clean.values()) == [1, 2, 3]  # type: ignore[union-attr,type-var,arg-type]
    assert set(clean) == {"[REDACTED:github_token]", "[REDACTED:github_token]~2", "[REDACTED:github_token]~3"}  # type: ignore[arg-type]
    check(clean, found)


def test_the_key_is_the_context_of_its_value(engine: Engine, word: str) -> None:
    clean, found = engine.redact_value(
        {"db_password": word, "password_hint": word, "phone": "4155559065", "n": [{"api_key": "yXiRwemMazLWc7I4xIvb"}]}
    )
    assert [one.field for one in found] == ["db_password", "phone", "n[0].api_key"]
    assert clean["password_hint"] == word  # type: ignore[index,call-overload]


def test_numbers_keep_their_type_unless_their_key_calls_them_private(engine: Engine) -> None:
    value: JsonValue = {
        "n": 4242120491236382,
        "ratio": Number("1.50"),
        "tokens": 4096,
        "port": 5432,
        "max_password": 12345,
    }
    assert engine.redact_value(value) == (value, [])
    clean, found = engine.redact_value({"card": 4242120491236382, "password": 12345678, "ids": {"ssn": 781673953}})
    assert [one.type for one in found] == ["card_number", "password", "ssn"]
    check(clean, found)


def test_deep_nesting_needs_no_recursion(engine: Engine, github: str) -> None:
    inner: JsonValue = github
    for _ in range(20_000):
        inner = [inner]
    clean, found = engine.redact_value(inner)
    assert len(found) == 1
    for _ in range(20_000):
        assert isinstance(clean, list)
        clean = clean[0]
    assert clean == found[0].placeholder


def test_the_given_value_is_not_changed(engine: Engine, github: str) -> None:
    value: JsonValue = {"a": [github]}
    engine.redact_value(value)
    assert value == {"a": [github]}


def test_redacting_again_finds_nothing(engine: Engine, github: str, word: str) -> None:
    clean, _ = engine.redact_value({"password": word, github: [github]})
    assert engine.redact_value(clean) == (clean, [])


def test_odd_keys_are_quoted_in_paths() -> None:
    assert key_path("a", "b") == "a.b"
    assert key_path("", "b") == "b"
    assert key_path("a", "b.c") == 'a["b.c"]'
    assert key_path("a", "") == 'a[""]'
    assert key_path("a", "~key") == 'a["~key"]'
