"""Conditions for the index are necessary ones: whatever a pattern or literal finds satisfies its condition."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.record import fold
from qiju.search import trigrams
from qiju.search.trigrams import All, Condition, Either, Piece
from qiju.search.watch import FLAGS


def holds(condition: Condition | None, folded: str) -> bool:
    """Whether a text with this folding satisfies a condition."""
    if condition is None:
        return True
    if isinstance(condition, Piece):
        return condition.text in folded
    each = (holds(part, folded) for part in condition.parts)
    return all(each) if isinstance(condition, All) else any(each)


PARTS = [
    "dead", "lock", "i", "k", "s", "ß", "ﬁ", "é", "Σ", "ı", "İ", "ſ", "会话", "a", "\\.", "\\n", ".", "\\w", "[ab]",
    "[^x]",
    "[A-D]", "(dead|live)", "(?:ab|)", "x?", "y*", "z+", "(?:lo)+ck", "d{2,3}", "(?=de)", "(?!zz)", "(?<=d)e", "(q)\\1",
    "(?i:go)", "(?-i:Go)", "^", "$", "\\b", "(?>ab)c", "a++", "(?:dead){1}", "(?P<n>no)(?P=n)", "(u)?(?(1)v|w)",
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_a_pattern_finds_satisfies_its_condition(data: st.DataObject) -> None:
    source = "".join(data.draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5)))
    try:
        compiled = re.compile(source, FLAGS)
    except re.error:  # parts that do not go together, such as a group named twice
        return
    condition = trigrams.pattern(source, FLAGS)
    if condition is None:
        return
    letters = "deadlockivegoabcßſıİiIkKsSſﬁéÉσςΣ会话quvwnxyz.\n "
    for text in data.draw(st.lists(st.text(letters, max_size=14) | st.from_regex(compiled), min_size=3, max_size=8)):
        text = unicodedata.normalize("NFC", text)
        if compiled.search(text):
            assert holds(condition, fold(text)), (source, text, condition)


def test_every_letter_that_a_literal_meets_is_among_its_spellings() -> None:
    """Exhaustive over all letters of this Python: `re` decides what a literal meets, `spellings` must know it."""
    cased = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000
        and (chr(code).lower() != chr(code) or chr(code).upper() != chr(code) or chr(code).casefold() != chr(code))
    ]
    everything = "".join(cased)
    missing = [
        (letter, other)
        for letter in cased
        for other in re.findall(re.escape(letter), everything, FLAGS)
        if unicodedata.is_normalized("NFC", other) and fold(other) not in trigrams.spellings(letter)
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("deadlock", True),
        ("dead.*lock", True),
        ("(deadlock|livelock)", True),
        ("(deadlock|)", False),
        ("(?:deadlock)?", False),
        (r"\w+", False),
        ("[a-z]{9}", False),
        ("会话恢复", True),
        ("(?=deadlock)", True),
        ("(?!deadlock)", False),
        ("ab", False),
    ],
)
def test_what_can_be_asked_is_asked_and_in_doubt_nothing(source: str, expected: bool) -> None:
    assert (trigrams.pattern(source, FLAGS) is not None) is expected


def test_a_condition_is_never_syntax() -> None:
    assert trigrams.match_text(trigrams.literal('a"b OR')) == '("a""b" AND """b " AND "b O" AND " OR")'  # type: ignore[arg-type]
    whole = trigrams.either([trigrams.literal("abc"), trigrams.every([trigrams.literal("def"), None])])
    assert whole is not None
    assert trigrams.match_text(whole) == '("abc" OR "def")'
    assert isinstance(whole, Either)


def test_a_long_literal_asks_for_a_bounded_number_of_pieces_from_end_to_end() -> None:
    condition = trigrams.literal("".join(map(chr, range(0x4E00, 0x4E00 + 5000))))
    assert isinstance(condition, All)
    assert len(condition.parts) == trigrams.MOST_PIECES
    assert condition.parts[-1] == Piece("".join(map(chr, range(0x4E00 + 4997, 0x4E00 + 5000))))


@pytest.mark.parametrize(
    ("source", "expected"),
    [("deadlock", False), ("dead.*lock", False), ("(a+)+$", True), ("a*b*", True), ("(a|aa)+", True), (r"(a)\1", True)],
)
def test_a_pattern_that_can_run_away_is_known(source: str, expected: bool) -> None:
    assert trigrams.runs_away(source, FLAGS) is expected


def test_nesting_beyond_reason_asks_for_nothing() -> None:
    assert trigrams.pattern("(" * 90 + "abc" + ")" * 90, FLAGS) is not None
    assert trigrams.runs_away("(" * 90 + "a*b*" + ")" * 90, FLAGS)
