"""Values redacted by hand are recognised again, and nothing stored tells what they were."""

from __future__ import annotations

import pytest

from qiju.redaction import Engine
from qiju.redaction.fingerprint import Remembered, fingerprints, tokens
from qiju.redaction.marker import subkey

KEY = subkey(b"s" * 32, "fingerprint")


def remembered(*values: str) -> Remembered:
    return Remembered(KEY, [entry for value in values for entry in fingerprints(KEY, value)])


def spans(matcher: Remembered, text: str) -> list[str]:
    return [text[start:end] for start, end in matcher(text)]


def test_tokens_split_at_white_space_quotes_equals_and_colons() -> None:
    text = "a b-c\t\"d\"='e':f`g` h\u3000i"
    assert [text[s:e] for s, e in tokens(text)] == ["a", "b-c", "d", "e", "f", "g", "h", "i"]


@pytest.mark.parametrize(
    "text",
    [
        "use acme-corp-x now",
        "acme-corp-x.",
        "(acme-corp-x)",
        '"acme-corp-x"',
        "k=acme-corp-x;",
        "k:acme-corp-x",
        "/srv/acme-corp-x/y",
        "?a=acme-corp-x&b",
        "**acme-corp-x**",
        "客户\uff1aacme-corp-x\u3002",
    ],
)
def test_a_word_is_found_in_its_wrappings(text: str) -> None:
    assert spans(remembered("acme-corp-x"), text) == ["acme-corp-x"]


@pytest.mark.parametrize("text", ["acme-corp", "acme-corp-xy", "acme corp x", "ACME-CORP-X"])
def test_other_words_are_not(text: str) -> None:
    assert spans(remembered("acme-corp-x"), text) == []


def test_a_value_with_spaces_is_found_by_its_sequence() -> None:
    matcher = remembered("Maria van Dongen")
    assert spans(matcher, "by Maria  van\nDongen, and (Maria van Dongen)") == ["Maria  van\nDongen", "Maria van Dongen"]
    assert spans(matcher, "Maria van Halen, van Dongen") == []


def test_a_value_with_separators_is_found() -> None:
    assert spans(remembered("user=x:secret"), "url user=x:secret end") == ["user=x:secret"]


def test_encoded_forms_are_found() -> None:
    assert spans(remembered("José & co"), "q=Jos%C3%A9%20%26%20co") == ["Jos%C3%A9%20%26%20co"]
    assert spans(remembered("hunter2-77"), "Basic aHVudGVyMi03Nw==") == ["aHVudGVyMi03Nw=="[:-2]]


def test_composed_and_decomposed_forms_are_one() -> None:
    assert spans(remembered("Jose\u0301"), "x Jos\u00e9 y") == ["Jos\u00e9"]


def test_stored_entries_hold_neither_value_nor_length() -> None:
    short, long = fingerprints(KEY, "abcdef"), fingerprints(KEY, "abcdef" * 9)
    assert {len(entry) for entry in short} == {len(entry) for entry in long}
    assert "abcdef" not in "".join(short)


def test_another_key_recognises_nothing() -> None:
    matcher = Remembered(subkey(b"t" * 32, "fingerprint"), fingerprints(KEY, "acme-corp-x"))
    assert spans(matcher, "acme-corp-x") == []


def test_the_engine_replaces_remembered_values() -> None:
    engine = Engine(b"s" * 32, remembered=remembered("acme-corp-x", "Maria van Dongen"))
    done = engine.redact_text("for acme-corp-x by Maria van Dongen")
    assert [f.rule for f in done.findings] == ["remembered", "remembered"]
    value, found = engine.redact_value({"acme-corp-x": "ab", "t": ["acme-corp-x"]})
    assert "acme" not in str(value)
    assert len(found) == 2


def test_short_values_are_recognised_too() -> None:
    assert Engine(b"s", remembered=remembered("ab")).redact_text("ab").findings


def test_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qiju.redaction.fingerprint.MEMORY", 100)
    matcher = remembered("acme-corp-x")
    matcher(" ".join(f"word{i}" for i in range(1000)))
    assert len(matcher._misses) <= 100
    assert spans(matcher, "acme-corp-x") == ["acme-corp-x"]
