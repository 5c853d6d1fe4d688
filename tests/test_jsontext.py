"""Strict JSON: what is refused, where, and that nothing is altered on the way through."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju import jsontext
from qiju.errors import InvalidJson, InvalidRecord
from qiju.jsontext import Number

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


def tokens(value: object) -> object:
    """Numbers as their tokens, so that 10**30 and Number("1000...") compare."""
    if isinstance(value, Number):
        return int(value.token)
    if isinstance(value, list):
        return [tokens(item) for item in value]
    if isinstance(value, dict):
        return {key: tokens(item) for key, item in value.items()}
    return value


@given(values)
def test_what_json_writes_comes_back_equal(value: object) -> None:
    """Any JSON value survives parse and every layout of output."""
    parsed = jsontext.parse(json.dumps(value))
    assert tokens(parsed) == value
    for text in (jsontext.canonical(parsed), jsontext.line(parsed), jsontext.pretty(parsed)):
        assert tokens(jsontext.parse(text)) == value
        assert json.loads(text) == value


@given(values)
def test_canonical_is_a_fixed_point_and_ignores_layout(value: object) -> None:
    """White space and key order of the source do not show in the canonical text."""
    text = jsontext.canonical(jsontext.parse(json.dumps(value, indent=3)))
    assert text == jsontext.canonical(jsontext.parse(text))
    assert text == jsontext.canonical(jsontext.parse(json.dumps(value, ensure_ascii=False)))


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,5})?", fullmatch=True))
def test_a_number_keeps_its_token(token: str) -> None:
    """1.50 stays 1.50, 1e400 and -0 stay what they are."""
    assert jsontext.canonical(jsontext.parse(f"[{token}]")) == f"[{token}]"


def test_a_number_of_five_thousand_digits_is_kept() -> None:
    """Python refuses to convert such a number; the token needs no conversion."""
    token = "9" * 5000
    assert jsontext.canonical(jsontext.parse(token)) == token


def test_keys_are_ordered_by_utf16_units() -> None:
    """RFC 8785: U+1F600 (a surrogate pair) comes before U+FB33."""
    assert jsontext.canonical({"\ufb33": 1, "\U0001f600": 2, "a": 3}) == '{"a":3,"\U0001f600":2,"\ufb33":1}'


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1,\n "a": 2}', 2, 2),
        ('{"a": {"b": 1, "c": [1], "b": 2}}', 1, 26),
        ('{"a": NaN}', 1, 7),
        ("[1, -Infinity]", 1, 5),
        ('{"a": "\\ud83d"}', 1, 7),
        ('{"\\udc81": 1}', 1, 2),
        ("[1,\n 2,\n]", *((2, 3) if sys.version_info >= (3, 13) else (3, 1))),  # the comma, or what follows it
        ('{"a": "b\n"}', 1, 9),
        ("[1] 2", 1, 5),
        ("{'a': 1}", 1, 2),
    ],
)
def test_a_fault_is_named_with_line_and_column(text: str, line: int, column: int) -> None:
    """Every refusal says where, so that an agent can mend the text."""
    for source in (text, text.encode("utf-8")):
        with pytest.raises(InvalidJson) as caught:
            jsontext.parse(source)
        assert (caught.value.line, caught.value.column) == (line, column)
        assert f"line {line} column {column}" in str(caught.value)


@pytest.mark.parametrize("data", ["[]".encode("utf-16"), "[]".encode("utf-16-le"), "[]".encode("utf-32")])
def test_other_encodings_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(InvalidJson, match=r"UTF-(16|32)"):
        jsontext.parse(data)


def test_bytes_that_are_not_utf8_are_named_with_their_place() -> None:
    with pytest.raises(InvalidJson, match="line 2 column 3: byte 0xff"):
        jsontext.parse(b'{"a":\n "\xff"}')


def test_a_byte_order_mark_is_skipped() -> None:
    assert jsontext.parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_nothing_is_not_json(text: str) -> None:
    with pytest.raises(InvalidJson, match="empty"):
        jsontext.parse(text)


@pytest.mark.parametrize("depth", [jsontext.MAX_DEPTH + 1, 5_000, 100_000])
def test_deep_nesting_is_refused_not_crashed_on(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(InvalidJson, match="deeper than 200"):
            jsontext.parse(text)


def test_the_greatest_depth_round_trips() -> None:
    text = "[" * jsontext.MAX_DEPTH + "]" * jsontext.MAX_DEPTH
    assert jsontext.canonical(jsontext.parse(text)) == text


def test_what_is_not_json_cannot_be_written() -> None:
    with pytest.raises(InvalidRecord, match="NaN"):
        jsontext.canonical([float("nan")])  # type: ignore[list-item]
    with pytest.raises(InvalidRecord, match="bytes"):
        jsontext.canonical([b"x"])  # type: ignore[list-item]
