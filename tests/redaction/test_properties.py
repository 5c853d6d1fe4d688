"""What must hold for any text."""

from __future__ import annotations

import json
import string

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qiju.redaction import Engine
from qiju.redaction.shadow import lower, shadow
from qiju.redaction.values import redact_value

ENGINE = Engine(b"p" * 32)
BASE62 = string.ascii_letters + string.digits
HEX = "0123456789abcdef"

FRAGMENTS = st.sampled_from(
    [
        "password", "token=", "api_key: ", "secret ", "-----BEGIN PRIVATE " + "KEY-----\n", "://a:", "@h.io", '"',
        "'", "`", "\\n", "\\\"", "\x1b[31m", "[REDACTED:x:01234567]", "[REDACTED", "|a|b|\n|--|--|\n", ",", "\n",
        " is ", "密码", "：", "&k=", "curl -u ", "gh" + "p_", "sk" + "-", "eyJ", "4000 0000 ", "a@b.io", "1.2.3.4",
        "Bearer ", "{", "}", "<password>", "İ", "\u200b",
    ]
)  # fmt: skip
TEXTS = st.lists(st.one_of(FRAGMENTS, st.text(max_size=12), st.text(BASE62, max_size=44)), max_size=14).map("".join)


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = ENGINE.redact_text(text)
    again = ENGINE.redact_text(once.text)
    assert again.text == once.text
    assert not again.findings


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_spans_describe_both_texts(text: str) -> None:
    done = ENGINE.redact_text(text)
    at = out = 0
    for finding, (start, end, placeholder) in zip(done.findings, done.markers, strict=True):
        assert at <= finding.start < finding.end <= len(text)
        assert text[at : finding.start] == done.text[out:start]
        assert done.text[start:end] == placeholder
        at, out = finding.end, end
    assert text[at:] == done.text[out:]


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_the_searched_text_keeps_every_offset(text: str) -> None:
    twin = shadow(text)
    assert len(twin) == len(text)
    assert len(lower(twin)) == len(text)


PREFIXED = st.one_of(
    st.text(BASE62, min_size=36, max_size=36).map(lambda t: "gh" + "p_" + t),
    st.text(BASE62 + "_-", min_size=60, max_size=90).map(lambda t: "sk-" + "ant-api03-" + t),
    st.text(HEX, min_size=64, max_size=64).map(lambda t: "dop" + "_v1_" + t),
    st.text(BASE62, min_size=24, max_size=24).map(lambda t: "sk" + "_live_" + t),
)
BETWEEN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="%"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(BETWEEN, PREFIXED, BETWEEN)
def test_no_token_survives_between_any_neighbours(before: str, token: str, after: str) -> None:
    assume(len(set(token[-24:])) >= 8)
    if before and before[-1].isascii() and before[-1].isalnum():
        before += " "
    if before.endswith("\\"):  # an escape would take the first character of the token
        before += " "
    assert token not in ENGINE.redact_text(before + token + after).text


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(JSON)
def test_json_keeps_its_shape_and_becomes_stable(value: object) -> None:
    clean, _ = redact_value(ENGINE, value)  # type: ignore[arg-type]
    assert _shape(clean) == _shape(value)
    again, found = redact_value(ENGINE, clean)
    assert not found
    assert again == clean
    json.dumps(clean)


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return [_shape(part) for part in value.values()]
    if isinstance(value, list):
        return [_shape(part) for part in value]
    return None
