"""A literal's encodings, and replacing all of them in a JSON value."""

from __future__ import annotations

import base64
import json
import unicodedata
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.errors import UsageError
from qiju.jsontext import JsonValue
from qiju.redaction.forms import case_variants, check_placeholder, contains, cut_tokens, forms, replace_literal

MARK = "[REDACTED:literal:0123abcd]"
VALUE = 'José "Ex"/am&ple +1'


@pytest.mark.parametrize(
    "encode",
    [
        lambda v: v,
        lambda v: json.dumps(v),
        lambda v: json.dumps(v, ensure_ascii=False),
        lambda v: json.dumps(json.dumps(v)),
        lambda v: json.dumps(v).replace("\\u00e9", "\\u00E9"),
        lambda v: quote(v),
        lambda v: quote(v, safe=""),
        lambda v: quote(v, safe="").lower().replace("jos", "Jos").replace("ex", "Ex").replace("%22e", "%22E"),
        quote_plus,
        lambda v: unicodedata.normalize("NFD", v),
        lambda v: quote(unicodedata.normalize("NFD", v), safe=""),
        lambda v: base64.b64encode(v.encode()).decode(),
        lambda v: base64.b64encode(b"x" + v.encode() + b"yz").decode(),
        lambda v: base64.b64encode(b"xy" + v.encode() + b"z").decode(),
        lambda v: base64.urlsafe_b64encode(b"xyz" + v.encode() + b"a").decode(),
    ],
)
def test_every_encoding_is_contained(encode: object) -> None:
    assert contains(encode(VALUE).encode(), forms(VALUE))  # type: ignore[operator]


def test_longest_forms_come_first_and_none_twice() -> None:
    found = forms(VALUE)
    assert [len(f) for f in found] == sorted((len(f) for f in found), reverse=True)
    assert len(found) == len(set(found))
    assert VALUE in found


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=5, max_size=24), st.binary(max_size=5), st.binary(max_size=5))
def test_base64_of_any_surrounding_is_contained(value: str, before: bytes, after: bytes) -> None:
    raw = value.encode("utf-8", "surrogatepass")
    if len(raw) >= 6:
        assert contains(base64.b64encode(before + raw + after), forms(value))


def test_values_keys_and_depths_are_replaced_and_counted() -> None:
    lit = "sk-test-" + "ABC1"
    value: JsonValue = {"title": "k", "extra": {lit: {lit: [{"x": f"pre {lit} post"}]}, f"a {lit}": 1, f"b {lit}": 2}}
    clean, count = replace_literal(value, lit, MARK)
    assert count == 5
    assert clean == {"title": "k", "extra": {MARK: {MARK: [{"x": f"pre {MARK} post"}]}, f"a {MARK}": 1, f"b {MARK}": 2}}
    assert lit in str(value)


def test_two_keys_that_become_equal_both_stay() -> None:
    clean, count = replace_literal({"José": 1, "Jose\u0301": 2, MARK: 3}, "José", MARK)
    assert count == 2
    assert sorted(clean.values()) == [1, 2, 3]  # type: ignore[union-attr,type-var,arg-type]


def test_nothing_found_returns_the_value_itself() -> None:
    value: JsonValue = {"a": ["b", 1]}
    assert replace_literal(value, "absent", MARK) == (value, 0)


@pytest.mark.parametrize("literal", ["REDACTED", "manual", "0123", "[REDACTED:manual]"])
def test_existing_markers_are_never_broken(literal: str) -> None:
    text = "see [REDACTED:manual] and [REDACTED:password:01234567]"
    assert replace_literal([text], literal, "X") == ([text], 0)


def test_replacing_again_changes_nothing() -> None:
    once, _ = replace_literal({"a": "tok-77 and dG9rLTc3"}, "tok-77", MARK)
    assert replace_literal(once, "tok-77", MARK) == (once, 0)


@pytest.mark.parametrize(
    ("literal", "placeholder"),
    [("hunter2", "was hunter2"), ("Hunter2", "was hunter2"), ("mno", "QmnoZ"), ("REDACTED", MARK)],
)
def test_a_placeholder_that_keeps_the_value_is_refused(literal: str, placeholder: str) -> None:
    with pytest.raises(UsageError):
        check_placeholder(literal, placeholder)


def test_an_empty_literal_is_refused() -> None:
    with pytest.raises(UsageError):
        replace_literal("x", "", MARK)


def test_cut_tokens_counts_values_inside_longer_words() -> None:
    assert cut_tokens({"a": "tok-77 and tok-77-longtail", "xtok-77": "tok-77."}, "tok-77") == 2


def test_case_variants_are_counted() -> None:
    assert case_variants(["José Example, JOSÉ EXAMPLE, Jose\u0301 Example"], "José Example") == 1
