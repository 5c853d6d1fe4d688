"""A literal in its spellings: what counts as an occurrence, what takes its place, what is refused."""

from __future__ import annotations

import base64
import unicodedata
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju import jsontext
from qiju.erasure.rewriting import rewrite, rewrite_fields
from qiju.erasure.secret import PLACEHOLDER, Secret, checked
from qiju.errors import QijuError, Refused, UsageError
from qiju.redaction.forms import strings

VALUE = "tok-" + '77\u00e9/x"y'
WORDS = st.text(alphabet='ab\u00e9 "\\/[]:REDACTED', max_size=12)
TEXTS = st.lists(st.one_of(WORDS, st.just(VALUE), st.just("[REDACTED:email:0123abcd]"))).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(-5, 5), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        unicodedata.normalize("NFD", VALUE),
        jsontext.canonical(VALUE)[1:-1],
        urllib.parse.quote(VALUE, safe=""),
        urllib.parse.quote_plus(VALUE),
        *(base64.b64encode(b"z" * lead + VALUE.encode() + b"zz").decode() for lead in range(3)),
    ],
)
def test_every_spelling_is_replaced(written: str) -> None:
    secret = Secret(VALUE)
    text, edits = secret.replace(f"before {written} behind")
    assert len(edits) == 1
    assert PLACEHOLDER in text
    assert text.startswith("before ")
    assert text.endswith(" behind")
    assert not secret.in_text(text)


def test_touching_and_overlapping_places_leave_one_marker() -> None:
    assert Secret("abcabc").replace("x abcabcabcabcabc y")[0] == f"x {PLACEHOLDER} y"


def test_markers_are_left_whole() -> None:
    marker = "[REDACTED:github_token:517e8802]"
    assert Secret("517e8802").replace(f"{marker} 517e8802")[0] == f"{marker} {PLACEHOLDER}"
    assert Secret("517e8802").in_bytes(marker.encode()) is False
    assert Secret("517e8802").in_bytes(b"\0\x01517e8802") is True


def test_a_message_is_cleaned_in_any_case() -> None:
    assert "CANARY" not in Secret("canary-9").clean("path /x/CANARY-9/y")


@pytest.mark.parametrize("value", ["", " \n", "\u200b\u200d", "\u3164"])
def test_what_cannot_be_seen_is_refused(value: str) -> None:
    with pytest.raises(UsageError):
        checked(value, PLACEHOLDER, force=True)


@pytest.mark.parametrize("value", ["short", "[REDACTED:x] and more", "trajectory_event", "secret"])
def test_what_cannot_be_told_apart_is_refused(value: str) -> None:
    with pytest.raises(QijuError) as caught:
        checked(value, "[gone]", force=False)
    assert isinstance(caught.value, Refused)
    assert value not in str(caught.value) + caught.value.hint or value in ("short", "secret")


@given(VALUES)
def test_nothing_of_the_value_is_left_in_any_json(value: jsontext.JsonValue) -> None:
    """Whatever the shape: no spelling outside markers, no entry lost, and a second pass finds nothing."""
    secret = Secret(VALUE)
    done = rewrite(secret, value)
    assert all(not secret.spans(text) for text in strings(done.value))
    assert _shape(done.value) == _shape(value)
    assert rewrite(secret, done.value).places == 0
    if not done.places:
        assert done.value is value


def _shape(value: jsontext.JsonValue) -> object:
    if isinstance(value, dict):
        return "object", len(value), sorted(map(repr, map(_shape, value.values())))
    if isinstance(value, list):
        return ["list", *map(_shape, value)]
    return type(value).__name__


@given(TEXTS, TEXTS, TEXTS)
def test_recorded_places_follow_the_text(before: str, between: str, behind: str) -> None:
    """Markers recorded at capture keep their places in the stored text when something in front of them goes."""
    marker = "[REDACTED:email:0123abcd]"
    text = f"{before}|{marker}|{between}|{marker}|{behind}"
    first = len(before) + 1
    second = first + len(marker) + 1 + len(between) + 1
    entries: list[jsontext.JsonValue] = [
        {"field": "body_md", "start": at, "end": at + len(marker), "placeholder": marker} for at in (first, second)
    ]
    fields, count = rewrite_fields(Secret(VALUE), {"body_md": text, "redactions": entries})
    body, listed = fields["body_md"], fields["redactions"]
    assert isinstance(body, str)
    assert isinstance(listed, list)
    assert len(listed) == 2 + count
    for entry in listed:
        assert isinstance(entry, dict)
        assert body[entry["start"] : entry["end"]] == entry["placeholder"]  # type: ignore[misc]


def test_a_renamed_key_takes_its_recorded_places_along() -> None:
    """Paths name keys; the entry of a marker below a renamed key points to the new path."""
    secret = Secret("acme-key")
    marker = "[REDACTED:email:0123abcd]"
    fields: dict[str, jsontext.JsonValue] = {
        "more": {"acme-key": [f"x {marker}"], "b": 1},
        "redactions": [{"field": "more.acme-key[0]", "start": 2, "end": 2 + len(marker), "placeholder": marker}],
    }
    changed, _count = rewrite_fields(secret, fields)
    entry = changed["redactions"][0]  # type: ignore[index,call-overload]
    assert entry["field"] == f'more["{PLACEHOLDER}"][0]'  # type: ignore[index,call-overload]
    assert entry["start"] == 2  # type: ignore[index,call-overload]
