"""The passage of a record that shows why it was found, with each match between « and ».

The best field is the one whose best window holds the most different terms; on a tie body, next steps, search terms,
tags, the other names, title last, since a title stands in every hit anyway. Folding may change a text's length (ß,
NFD), so places found in the folded text are led back to the written one letter by letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from unicodedata import combining, normalize

from qiju.jsontext import JsonValue
from qiju.values import NamedTuple

WIDTH = 160  # characters of a passage, marks and ellipses not counted
OPEN, CLOSE, GAP = "«", "»", "…"
LONGEST = 200_000  # characters of a field that are looked at
MOST_MATCHES = 400  # of one field
_FIRST_CJK = "\u2e80"  # scripts from here on are written without spaces between words
_ORDER = ("body_md", "next_steps", "search_terms", "tags", "agent", "model", "model_effort", "title")


class _Match(NamedTuple):
    start: int
    end: int
    term: int


class Terms:
    """Finds literal terms (folded) in written text. With `beginnings` a match goes on to the end of its word."""

    def __init__(self, terms: Sequence[str], *, beginnings: bool = False) -> None:
        self.terms = [term for term in terms if term]
        self.end = _word_end if beginnings else _whole

    def matches(self, text: str) -> list[_Match]:
        folded, places = _folded(text)
        found: list[_Match] = []
        for number, term in enumerate(self.terms):
            at = folded.find(term)
            while at >= 0 and len(found) < MOST_MATCHES:
                end = at + len(term)
                found.append(_Match(places[at], places[end - 1] + 1, number) if places else _Match(at, end, number))
                at = folded.find(term, end)
        return [match._replace(end=self.end(text, match.end)) for match in sorted(found)]


class Pattern:
    """Finds a regular expression, which has already matched this record within its time."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern

    def matches(self, text: str) -> list[_Match]:
        found = self.pattern.search(text)
        return [_Match(found.start(), found.end(), 0)] if found and found.end() > found.start() else []


def passage(row: dict[str, JsonValue], finder: Terms | Pattern | None) -> str:
    """The best passage of a record as shown. Without a finder, or without a match, the beginning of its body."""
    best: tuple[int, str, list[_Match], int] = (0, "", [], 0)
    if finder is not None:
        for text in _texts(row):
            matches = finder.matches(text)
            score, start = _window(matches)
            if score > best[0]:
                best = (score, text, matches, start)
    score, text, matches, start = best
    if not score:
        return _cut(str(row.get("body_md") or row.get("title") or ""), 0, [])
    return _cut(text, start, matches)


def _texts(row: dict[str, JsonValue]) -> Iterable[str]:
    for name in _ORDER:
        value = row.get(name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and item:
                yield normalize("NFC", item[:LONGEST])


def _window(matches: list[_Match]) -> tuple[int, int]:
    """(most different terms in one window, where that window's first match starts)."""
    best, start = 0, 0
    for place, first in enumerate(matches):
        held = {match.term for match in matches[place : place + 64] if match.end - first.start <= WIDTH} or {first.term}
        if len(held) > best:
            best, start = len(held), first.start
    return best, start


def _cut(text: str, first: int, matches: list[_Match]) -> str:
    """`WIDTH` characters of the text from a little before `first`, on one line, at word ends where there are some."""
    begin = max(0, min(first - WIDTH // 5, len(text) - WIDTH))
    if begin:
        space = max(text.find(" ", begin, first), text.find("\n", begin, first))
        begin = space + 1 if begin <= space < first else begin
    end = min(len(text), begin + WIDTH)
    if end < len(text):
        space = max(text.rfind(" ", begin + WIDTH // 2, end), text.rfind("\n", begin + WIDTH // 2, end))
        end = space if space > 0 else end
    end = _whole(text, end)
    parts, at = [GAP if begin else ""], begin
    for match in matches:
        if match.start < at or match.start >= end:
            continue
        shown = text[match.start : min(match.end, end)]
        parts += [text[at : match.start], OPEN, shown, CLOSE]
        at = match.start + len(shown)
    parts += [text[at:end], GAP if end < len(text) else ""]
    return " ".join("".join(parts).split())


def _whole(text: str, end: int) -> int:
    """`end`, moved behind marks that belong to the letter before it."""
    while end < len(text) and (combining(text[end]) or text[end] in "\u200d\ufe0f"):
        end += 1
    return end


def _word_end(text: str, end: int) -> int:
    """The end of the word that `end` lies in or behind; Chinese and Japanese have none, so there it stays."""
    while end < len(text) and text[end].isalnum() and text[end] < _FIRST_CJK:
        end += 1
    return _whole(text, end)


def _folded(text: str) -> tuple[str, list[int]]:
    """The folded text, and for each of its characters the place it came from; no list where both are the same."""
    if text.isascii():
        return text.lower(), []
    letters = [letter.casefold() for letter in text]
    return "".join(letters), [place for place, letter in enumerate(letters) for _ in letter]
