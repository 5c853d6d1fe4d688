"""Running pattern rules over a shadow text: which rules can match at all, where, and what their matches mean.

Three things keep this quick. A rule runs only when one of its keywords occurs, and keywords are looked for only when
their rarest three characters do. Most rules are tried only where a match can begin: at their keywords, at the digits
of a number, before an at sign. And rules that ignore case are written in lower case and search the lower-case text,
where the regular-expression module can jump to a literal.
"""

from __future__ import annotations

import re

from . import validators
from .lazy import lazily
from .rules import BEFORE, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .engine import Finding

SHORT = 400  # below this many characters, trying every keyword is quicker than breaking the text up


class Index:
    """The rules by keyword."""

    __slots__ = ("_always", "_by_gram", "_short", "_table")

    def __init__(self, rules: Iterable[Rule]) -> None:
        table: dict[str, list[Rule]] = {}
        self._always: list[tuple[Rule, list[str]]] = []
        for rule in rules:
            for keyword in rule.keywords:
                table.setdefault(keyword, []).append(rule)
            if not rule.keywords:
                self._always.append((rule, []))
        self._table = list(table.items())
        self._short = [pair for pair in self._table if len(pair[0]) < 3]
        self._by_gram: dict[_Gram, list[tuple[str, list[Rule]]]] = {}
        for pair in self._table:
            if len(pair[0]) >= 3:
                self._by_gram.setdefault(_rarest(pair[0]), []).append(pair)

    def candidates(self, low: str) -> list[tuple[Rule, list[str]]]:
        """The rules of which a keyword occurs in a lower-case text, each once, with those keywords."""
        chosen: dict[str, tuple[Rule, list[str]]] = {}
        if len(low) < SHORT:
            near = self._table
        else:
            grams = set(zip(low, low[1:], low[2:], strict=False))
            near = [
                pair
                for gram in self._by_gram.keys() & grams
                for pair in self._by_gram[gram]
                if len(pair[0]) == 3 or grams.issuperset(zip(pair[0], pair[0][1:], pair[0][2:], strict=False))
            ]
            near.extend(self._short)
        for keyword, group in near:
            if keyword in low:
                for rule in group:
                    entry = chosen.get(rule.id)
                    if entry is None:
                        chosen[rule.id] = (rule, [keyword])
                    else:
                        entry[1].append(keyword)
        return [*self._always, *chosen.values()]


_Gram = tuple[str, str, str]


def _rarest(keyword: str) -> _Gram:
    """The triple of a keyword that ordinary text is least likely to hold: punctuation, digits, rare letters."""

    def rarity(at: int) -> int:
        return sum(4 if not c.isalpha() else c not in "etaoinsrhldcu" for c in keyword[at : at + 3])

    best = max(range(len(keyword) - 2), key=rarity)
    return keyword[best], keyword[best + 1], keyword[best + 2]


# The field `within`: where a rule of that kind may begin. One pass over the text serves all rules of a kind.
_DIGITS = lazily(r"[0-9(][-0-9 ().AB]{6,60}[0-9Xx]")
_HEX = lazily(r"[a-f0-9]{32,}")
_LOCAL_PART = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-")
LOCAL_PART = 64


def _digit_starts(twin: str) -> list[int]:
    """The first digits (or opening brackets) of the numbers in groups of digits."""
    word = BEFORE["word"]
    out: list[int] = []
    for match in _DIGITS.finditer(twin):
        start = match.start()
        for at, char in enumerate(match[0], start):
            if char in "0123456789(" and not (at and twin[at - 1] in word):
                out.append(at)
    return out


def _hex_starts(twin: str) -> list[int]:
    return [match.start() for match in _HEX.finditer(twin)]


def _local_part_starts(twin: str) -> list[int]:
    """Where the word before each at sign begins."""
    out: list[int] = []
    sign = twin.find("@")
    while sign >= 0:
        at = sign
        floor = max(0, sign - LOCAL_PART)
        while at > floor and twin[at - 1] in _LOCAL_PART:
            at -= 1
        while at < sign and twin[at] in "._%+-":
            at += 1
        if at < sign:
            out.append(at)
        sign = twin.find("@", sign + 1)
    return out


_STARTS = {"digits": _digit_starts, "hex": _hex_starts, "at": _local_part_starts}
WITHIN = frozenset(_STARTS)


def run(tried: Iterable[tuple[Rule, list[str]]], twin: str, low: str) -> list[Finding]:
    """The findings in a shadow text of rules, each with the keywords of it that occur; `low` is its lower case."""
    found: list[Finding] = []
    known: dict[str, list[int]] = {}
    for rule, keywords in tried:
        if rule.within:
            if rule.within not in known:
                known[rule.within] = _STARTS[rule.within](twin)
            _at_places(rule, known[rule.within], low, twin, found)
        elif rule.anchored:
            _at_places(rule, _occurrences(keywords, low), low, twin, found)
        else:
            _search(rule, low if rule.on_lower() else twin, twin, found)
    return found


class Refused:
    """Candidates that were examined and refused: a long run is not examined again from each of its characters.

    Without this, a text of nothing but `token=token=...` costs its length times the length of a value.
    """

    __slots__ = ("_count", "_until")
    LONG = 120
    MOST = 6

    def __init__(self) -> None:
        self._count = 0
        self._until = 0

    def go_on(self, start: int, end: int) -> int:
        """Where to go on after a refusal, or 0 to go on as usual."""
        if end - start < self.LONG:
            return 0
        if start >= self._until:
            self._count = 0
        self._until = max(end, self._until)
        self._count += 1
        if self._count <= self.MOST:
            return 0
        self._count = 0
        return self._until


def _occurrences(keywords: list[str], low: str) -> list[int]:
    places: list[int] = []
    for keyword in keywords:
        at = low.find(keyword)
        while at >= 0:
            places.append(at)
            at = low.find(keyword, at + 1)
    return sorted(set(places)) if len(keywords) > 1 else places


def _at_places(rule: Rule, places: list[int], low: str, twin: str, found: list[Finding]) -> None:
    """The matches of a rule that begin at one of the places."""
    subject = low if rule.on_lower() else twin
    match_at = rule.compiled().match
    guard = BEFORE[rule.before]
    done = 0
    refused = Refused()
    for at in places:
        if at < done or (at and twin[at - 1] in guard and not _percent(twin, at)):
            continue
        match = match_at(subject, at)
        if match is not None:
            done = _take(rule, match, twin, found) or refused.go_on(at, match.end()) or done


def _search(rule: Rule, subject: str, twin: str, found: list[Finding]) -> None:
    search = rule.compiled().search
    guard = BEFORE[rule.before]
    refused = Refused()
    at = 0
    while (match := search(subject, at)) is not None:
        begin = match.start()
        if begin and twin[begin - 1] in guard and not _percent(twin, begin):
            at = begin + 1
        else:
            at = _take(rule, match, twin, found) or refused.go_on(begin, match.end()) or begin + 1


def _take(rule: Rule, match: re.Match[str], twin: str, found: list[Finding]) -> int:
    """Note a match that its validator accepts; where to go on, or 0 when it was none."""
    from .engine import Finding

    start, end = match.span(rule.group)
    if start < 0 or start == end:
        return 0
    if rule.validator and not validators.find(rule.validator)(twin[start:end], twin, start, end):
        return 0
    found.append(Finding(rule.id, rule.kind, start, end, rule.confidence, rule.version))
    return max(end, match.start() + 1)


def _percent(twin: str, at: int) -> bool:
    """Whether the characters before are a percent escape such as `%3D`, which separates words in a URL."""
    return at >= 3 and twin[at - 3] == "%" and twin[at - 2] in "2357" and twin[at - 1] in "0123456789ABCDEFabcdef"
