"""The passage that shows why a record was found."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju.record import fold
from qiju.search.snippet import CLOSE, GAP, OPEN, WIDTH, Pattern, Terms, passage

FILLER = "plain words of no interest " * 40


def test_the_match_is_marked_in_its_surroundings() -> None:
    text = passage({"title": "t", "body_md": f"{FILLER} the Deadlock came from {FILLER}"}, Terms(["deadlock"]))
    assert f"the {OPEN}Deadlock{CLOSE} came from" in text
    assert text.startswith(GAP)
    assert text.endswith(GAP)
    assert len(text) <= WIDTH + 4


def test_the_field_with_more_different_terms_wins() -> None:
    row = {"title": "pool", "body_md": "pool pool pool", "next_steps": ["check the pool of the worker"]}
    assert passage(row, Terms(["pool", "worker"])) == f"check the {OPEN}pool{CLOSE} of the {OPEN}worker{CLOSE}"


@pytest.mark.parametrize(
    ("body", "term", "marked"),
    [
        ("eine Straße hier", "strasse", "Straße"),
        ("cafe\u0301 au lait", "café", "café"),
        ("oﬃce", "ffic", "ﬃc"),
        ("修复了会话恢复逻辑", "会话", "会话"),
        ("İstanbul", "i\u0307st", "İst"),
    ],
)
def test_folded_matches_are_marked_as_written(body: str, term: str, marked: str) -> None:
    assert f"{OPEN}{marked}{CLOSE}" in passage({"body_md": body}, Terms([term]))


def test_line_breaks_do_not_break_the_line() -> None:
    assert "\n" not in passage({"body_md": "# Title\n\ndeadlock\n- item\n"}, Terms(["deadlock"]))


def test_a_pattern_marks_what_it_found() -> None:
    found = passage({"body_md": "error E7741 again"}, Pattern(re.compile(r"e\d+", re.I)))
    assert found == f"error {OPEN}E7741{CLOSE} again"


def test_without_a_match_the_body_begins() -> None:
    assert passage({"title": "t", "body_md": FILLER}, None).startswith("plain words")
    assert passage({"title": "only a title", "body_md": ""}, Terms(["absent"])) == "only a title"
    assert passage({}, None) == ""


@given(st.text(max_size=400), st.text(min_size=1, max_size=5))
def test_any_text_gives_one_line_and_a_mark_where_the_term_is(body: str, term: str) -> None:
    text = passage({"body_md": body}, Terms([fold(term)]))
    assert "\n" not in text
    if term.isalnum() and fold(term) in fold(body):
        assert OPEN in text


@pytest.mark.parametrize(
    ("body", "term", "marked"),
    [("lease jitter, again", "jitte", "jitter"), ("renewals", "renew", "renewals"), ("会话恢复逻辑", "会话", "会话")],
)
def test_a_beginning_is_marked_to_the_end_of_its_word(body: str, term: str, marked: str) -> None:
    """A ranked search showed `«jitte»r`: it looks for beginnings of words, which are no words to show."""
    assert f"{OPEN}{marked}{CLOSE}" in passage({"body_md": body}, Terms([term], beginnings=True))
