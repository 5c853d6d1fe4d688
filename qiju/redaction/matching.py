"""Running pattern rules over a shadow text: which rules can match at all, where, and what their matches mean.

Three things keep this quick. A rule runs only when one of its keywords occurs, and keywords are looked for only when
their rarest three characters do. Rules about digits, addresses or long hexadecimal runs search only around such runs.
And rules that ignore case are written in lower case and search the lower-case text, where the regular-expression
module can jump to a literal.
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
        self._always: list[Rule] = []
        for rule in rules:
            for keyword in rule.keywords:
                table.setdefault(keyword, []).append(rule)
            if not rule.keywords:
                self._always.append(rule)
        self._table = list(table.items())
        self._short = [pair for pair in self._table if len(pair[0]) < 3]
        self._by_gram: dict[tuple[str, str, str], list[tuple[str, list[Rule]]]] = {}
        for pair in self._table:
            if len(pair[0]) >= 3:
                self._by_gram.setdefault(_rarest(pair[0]), []).append(pair)

    def candidates(self, low: str) -> list[Rule]:
        """The rules of which a keyword occurs in a lower-case text, each once."""
        chosen = {rule.id: rule for rule in self._always}
        if len(low) < SHORT:
            near = self._table
        else:
            grams = set(zip(low, low[1:], low[2:], strict=False))
            near = [pair for gram in self._by_gram.keys() & grams for pair in self._by_gram[gram]]
            near.extend(self._short)
        for keyword, group in near:
            if keyword in low:
                for rule in group:
                    chosen[rule.id] = rule
        return list(chosen.values())


def _rarest(keyword: str) -> tuple[str, str, str]:
    """The triple of a keyword that ordinary text is least likely to hold: punctuation, digits, rare letters."""

    def rarity(at: int) -> int:
        return sum(4 if not c.isalpha() else c not in "etaoinsrhldcu" for c in keyword[at : at + 3])

    best = max(range(len(keyword) - 2), key=rarity)
    return keyword[best], keyword[best + 1], keyword[best + 2]


# The field `within`: around which runs a rule can match at all, and how far before and behind to look.
_RUNS = {
    "digits": (lazily(r"[0-9][-0-9 ().AB]{6,60}[0-9Xx]"), 2, 48),
    "hex": (lazily(r"[a-f0-9]{32}"), 1, 80),
    "at": (lazily("@"), 66, 340),
}
WITHIN = frozenset(_RUNS)


def _areas(kind: str, twin: str) -> list[tuple[int, int]]:
    pattern, before, behind = _RUNS[kind]
    out: list[tuple[int, int]] = []
    for match in pattern.finditer(twin):
        start, end = max(0, match.start() - before), match.end() + behind
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def run(rules: Iterable[Rule], twin: str, low: str) -> list[Finding]:
    """The findings of `rules` in a shadow text; `low` is its lower case."""
    found: list[Finding] = []
    known: dict[str, list[tuple[int, int]]] = {}
    whole = [(0, len(twin))]
    for rule in rules:
        if rule.anchored:
            _at_keywords(rule, low, twin, found)
            continue
        areas = whole
        if rule.within:
            areas = (
                known[rule.within] if rule.within in known else known.setdefault(rule.within, _areas(rule.within, twin))
            )
        subject = low if rule.on_lower() else twin
        for start, stop in areas:
            _search(rule, subject, twin, start, stop, found)
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


def _at_keywords(rule: Rule, low: str, twin: str, found: list[Finding]) -> None:
    """The matches of a rule of which each begins with one of its keywords."""
    places: list[int] = []
    for keyword in rule.keywords:
        at = low.find(keyword)
        while at >= 0:
            places.append(at)
            at = low.find(keyword, at + 1)
    if len(rule.keywords) > 1:
        places = sorted(set(places))
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


def _search(rule: Rule, subject: str, twin: str, at: int, stop: int, found: list[Finding]) -> None:
    search = rule.compiled().search
    guard = BEFORE[rule.before]
    refused = Refused()
    while (match := search(subject, at, stop)) is not None:
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
