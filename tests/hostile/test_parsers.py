"""The functions that take text from outside, given any text: a value or their documented error, in bounded time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import HALVES, JSON, NUMBERS, TEXTS, TIMES

from qiju import cursor, jsontext, query, record
from qiju.errors import CursorRejected, InvalidJson, InvalidRecord, QijuError, UsageError
from qiju.place.slug import same_name, slugify
from qiju.redaction.engine import Engine
from qiju.search import trigrams, watch
from qiju.trajectory.exchange import ExchangeLog


def said(error: QijuError) -> None:
    """A refusal is a sentence that can be printed."""
    assert str(error)
    str(error).encode("utf-8")


JSON_LIKE = st.one_of(
    st.text(st.sampled_from('{}[]",:\\/ubnrt0123456789.eE+-trufalsn \n\ud800é\u2028'), max_size=60),
    JSON.map(json.dumps),
    HALVES,
)


@settings(max_examples=200)
@given(text=JSON_LIKE)
def test_json_is_read_as_python_reads_it_or_refused_with_its_place(text: str) -> None:
    try:
        value = jsontext.parse(text)
    except InvalidJson as error:
        said(error)
        return
    assert jsontext.parse(jsontext.canonical(value)) == value
    assert jsontext.parse(jsontext.line(value)) == value
    assert jsontext.parse(jsontext.pretty(value)) == value
    json.loads(text)  # whatever Qiju takes is JSON for others, too


@settings(max_examples=150)
@given(data=st.binary(max_size=80) | JSON_LIKE.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        jsontext.parse(data)
    except InvalidJson as error:
        said(error)


FIELDS = st.sampled_from((*record.FIELDS, "extra", "x"))


@settings(max_examples=150)
@given(value=JSON | st.dictionaries(FIELDS, JSON, max_size=8))
def test_any_json_is_a_record_or_refused_by_field(value: Any) -> None:
    parsed = jsontext.parse(json.dumps(value))
    try:
        whole = record.Record.from_json(parsed)
    except InvalidRecord as error:
        said(error)
        return
    assert record.Record.from_json(jsontext.parse(whole.canonical())) == whole


ISO = st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?", fullmatch=True)


@settings(max_examples=150)
@given(text=st.sampled_from(TIMES + NUMBERS) | TEXTS | ISO)
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    instant = record.parse_ts(text)
    assert instant is None or abs(instant) < 2**62
    for bound in (query.since, query.until):
        try:
            assert abs(bound(text)) < 2**62
        except UsageError as error:
            said(error)


@settings(max_examples=150)
@given(text=TEXTS)
def test_any_name_has_one_safe_slug_or_is_refused(text: str) -> None:
    try:
        slug = slugify(text)
    except QijuError as error:
        said(error)
        return
    assert slugify(slug) == slug
    assert same_name(text, text)
    assert slug not in ("", ".", "..")
    assert len(slug.encode("utf-8")) <= 255
    assert slug.isprintable()
    assert not set('/\\:*?"<>|') & set(slug)
    assert not slug.startswith("-")


@settings(max_examples=150)
@given(token=st.text(st.sampled_from("AZaz09-_=.~%"), max_size=60) | HALVES, tail=st.text(max_size=3))
def test_any_text_is_a_rejected_cursor(token: str, tail: str) -> None:
    good = cursor.encode("search", b"k" * 32, {"seq": 5, "name": "é", "raw": b"\0"})
    for forged in (token, good + token, good[: len(token)] + token, token + good, good[:-1] + tail):
        if forged == good:
            continue
        with pytest.raises(CursorRejected):
            cursor.decode(forged, "search", b"k" * 32)


@settings(max_examples=150)
@given(text=TEXTS | st.text(st.sampled_from("ab|()[]{}*+?^$.\\dwWsb,0-9:<=!iP#\n"), max_size=24))
def test_any_pattern_compiles_or_is_a_usage_error_and_its_condition_is_bounded(text: str) -> None:
    try:
        watch.compiled(text)
    except UsageError as error:
        said(error)
        return
    condition = trigrams.pattern(watch.source(text), watch.FLAGS)
    assert condition is None or trigrams.leaves(condition) <= trigrams.MOST_LEAVES


@settings(max_examples=120)
@given(text=TEXTS | st.lists(TEXTS, max_size=4).map(" ".join))
def test_any_text_is_redacted_and_what_is_found_is_where_it_says(text: str) -> None:
    engine = Engine(b"k" * 32)
    done = engine.redact_text(text)
    for one in done.redactions if hasattr(done, "redactions") else ():
        assert done.text[one.start : one.end] == one.placeholder
    assert engine.redact_text(done.text).text == done.text


EXCHANGE = dict.fromkeys(("log_id", "items", "queued_steering", "schema_version"), JSON)


@settings(max_examples=120)
@given(value=JSON | st.fixed_dictionaries({}, optional=EXCHANGE))
def test_any_json_is_an_exchange_or_a_typed_refusal(value: Any) -> None:
    try:
        ExchangeLog.from_dict(value)
    except QijuError as error:
        said(error)


def test_marks_are_never_letters_or_spaces() -> None:
    """What `nfc` looks for before it sorts: no mark that has an order may escape its pattern."""
    import re
    import sys
    import unicodedata

    marks = "".join(chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code)))
    assert re.fullmatch(record._RUN_OF_MARKS, marks)
    for letter in map(chr, range(sys.maxunicode + 1)):
        if not unicodedata.combining(letter) and not 0xD800 <= ord(letter) <= 0xDFFF:
            parts = unicodedata.normalize("NFD", letter)
            assert not unicodedata.combining(parts[0]) or ord(letter) in record._TWO_MARKS


MARKS = st.text(
    st.sampled_from("a\u0301\u0323\u0f71\u0f72\u0f73\u0344\u0345\u05b0\u3099\u200d\u20ddé각か"), max_size=300
)


@settings(max_examples=60)
@given(marks=MARKS, times=st.integers(1, 30), form=st.sampled_from(["NFC", "NFKC"]))
def test_sorted_marks_come_to_the_same_text(marks: str, times: int, form: Any) -> None:
    import unicodedata

    text = ("x" + marks * times) + "z" * 1_001
    assert record.nfc(text, form) == unicodedata.normalize(form, text)


# --- growth: four times the input may cost about four times as much, not sixteen ------------------------------------

ENGINE = Engine(b"k" * 32)
GROWING: dict[str, Callable[[int], object]] = {
    "arrays side by side": lambda n: jsontext.parse("[" + "[]," * n + "0]"),
    "escapes": lambda n: jsontext.parse('"' + "\\u00e9" * n + '"'),
    "a refusal at the end": lambda n: refused("[" + "1,\n" * n + "]"),
    "a repeated key at the end": lambda n: refused("{" + "".join(f'"k{i}":1,' for i in range(n)) + '"k0":1}'),
    "half a character at the end": lambda n: refused("[" + '"x",' * n + '"\\ud800"]'),
    "folding": lambda n: record.fold("ßé\u0301İ" * n),
    "combining marks": lambda n: record.fold("a" + "\u0301\u0323" * n),
    "marks that come apart": lambda n: record.fold("\u0f73" * n),
    "marks in a name": lambda n: slugify("a" + "\u0301\u0323" * n),
    "redaction of marks": lambda n: ENGINE.redact_text("password=" + "\u0301\u0323" * n),
    "redaction of one long word": lambda n: ENGINE.redact_text("a1B2" * n),
    "redaction of punctuation": lambda n: ENGINE.redact_text("=:'\"@.-_/" * n),
    "redaction of digits": lambda n: ENGINE.redact_text("4111 1111-" * n),
    "redaction of assignments": lambda n: ENGINE.redact_text("password=" * n),
    "redaction of addresses": lambda n: ENGINE.redact_text("a@a.a" * n),
    "redaction of white space": lambda n: ENGINE.redact_text(" \t\n" * n),
    "tags": lambda n: query.tagged(json.dumps([f"t{i}" for i in range(n)]), "t-none"),
    "a pattern of alternatives": lambda n: trigrams.pattern("|".join(f"word{i}" for i in range(n // 50)), watch.FLAGS),
}


def refused(text: str) -> None:
    with pytest.raises(InvalidJson):
        jsontext.parse(text)


@pytest.mark.parametrize("name", sorted(GROWING))
def test_time_grows_with_the_input_and_not_with_its_square(name: str) -> None:
    work = GROWING[name]

    def spent(size: int) -> float:
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            work(size)
            best = min(best, time.process_time() - began)
        return best

    work(500)  # rules and patterns are compiled once
    small = 2_000
    while spent(small) < 0.004 and small < 200_000:
        small *= 2
    for _ in range(3):  # a busy machine can slow one of the two; it does not do so each time
        if spent(4 * small) < 9 * max(spent(small), 0.002):
            return
    pytest.fail(f"{name}: four times the input took more than nine times as long, three times over")
