"""The one chokepoint: text in, redacted text and spans out.

All rules, the code detectors, the remembered values and the optional scanner look at the same original text. Their
spans are merged and replaced once, so no rule ever sees another rule's marker. The result is searched again: what only
became visible through the replacement is added, and if something still remains after a few rounds the call fails
rather than return text that was found to hold a secret.
"""

from __future__ import annotations

from typing import NamedTuple

from qiju.errors import QijuError

from . import assign, detectors, validators
from .marker import marker, subkey
from .rules import BEFORE, CONFIDENCE, Rule, builtin_rules
from .shadow import MASK, lower, shadow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from qiju.jsontext import JsonValue

    from .values import Redaction

ROUNDS = 6


class RedactionFailed(QijuError):
    """The text could not be made clean; nothing of it may be stored."""

    kind = "redaction_failed"
    exit_code = 4
    meaning = "the text could not be redacted, so it was not stored"


class Finding(NamedTuple):
    """A span `[start, end)` of the given text that must go, in characters. Never holds the value."""

    rule: str
    kind: str
    start: int
    end: int
    confidence: str
    version: int = 1


class Redacted(NamedTuple):
    """`markers[i]` stands for `findings[i]`: `text[start:end] == placeholder` for each `(start, end, placeholder)`."""

    text: str
    findings: list[Finding]
    markers: list[tuple[int, int, str]]


_RANK = {"high": 3, "medium": 2, "low": 1}


class Engine:
    """A redactor with a store's key, user rules, an allow-list and, if asked for, the second scanner.

    `allow` lists values that low-confidence rules leave alone when the whole value equals one. `remembered` is a
    callable from a text to the spans of values redacted by hand before (`qiju.redaction.fingerprint.Remembered`).
    """

    __slots__ = ("_allow", "_always", "_marker_key", "_remembered", "_scan", "_table")

    def __init__(
        self,
        key: bytes,
        *,
        user_rules: Iterable[Rule] = (),
        allow: Iterable[str] = (),
        scanner: bool = False,
        remembered: Callable[[str], list[tuple[int, int]]] | None = None,
    ) -> None:
        self._marker_key = subkey(key, "marker")
        self._allow = frozenset(allow)
        self._remembered = remembered
        self._scan: Callable[[str], list[Finding]] | None = None
        if scanner:
            from .scanner import scan

            self._scan = scan
        table: dict[str, list[Rule]] = {}
        always: list[Rule] = []
        for rule in (*builtin_rules(), *user_rules):
            for keyword in rule.keywords:
                table.setdefault(keyword, []).append(rule)
            if not rule.keywords:
                always.append(rule)
        self._table = list(table.items())
        self._always = always

    def find(self, text: str) -> list[Finding]:
        """Every span of `text` that must go, merged and in order."""
        return _merge(self._scan_once(text))

    def redact_text(self, text: str) -> Redacted:
        """The text with each finding replaced by its marker. Raises RedactionFailed when it cannot be made clean."""
        found = self.find(text)
        if not found:
            return Redacted(text, [], [])
        for _ in range(ROUNDS):
            done = self._replace(text, found)
            residue = self.find(done.text)
            if not residue:
                return done
            found = _merge([*found, *_back(residue, done)])
        raise RedactionFailed(
            "a text still shows secrets after redaction, so it was refused",
            hint="A rule keeps matching what replaced it; check the user rules, then report the text's shape.",
        )

    def redact_value(self, value: JsonValue, path: str = "") -> tuple[JsonValue, list[Redaction]]:
        """Every string of a JSON value, keys included; see `qiju.redaction.values`."""
        from .values import redact_value

        return redact_value(self, value, path)

    def find_named(self, name: str, value: str) -> list[Finding]:
        """`find`, for a text known to be the value of the key `name`."""
        found = self._scan_once(value)
        found.extend(self._kept(value, assign.named(name, shadow(value))))
        return _merge(found)

    def mark(self, kind: str, value: str) -> str:
        """The marker that stands for `value`."""
        return marker(self._marker_key, kind, value)

    def redact_named(self, name: str, value: str) -> Redacted:
        """`redact_text`, for a text known to be the value of the key `name`."""
        found = self.find_named(name, value)
        if not found:
            return Redacted(value, [], [])
        for _ in range(ROUNDS):
            done = self._replace(value, found)
            residue = self.find_named(name, done.text)
            if not residue:
                return done
            found = _merge([*found, *_back(residue, done)])
        raise RedactionFailed("a text still shows secrets after redaction, so it was refused")

    def _scan_once(self, text: str) -> list[Finding]:
        if len(text) < 4:
            return []
        twin = shadow(text)
        low = lower(twin)
        found: list[Finding] = []
        rules = list(self._always)
        for keyword, group in self._table:
            if keyword in low:
                rules.extend(group)
        seen: set[str] = set()
        for rule in rules:
            if rule.id not in seen:
                seen.add(rule.id)
                found.extend(self._kept(text, _run(rule, twin)))
        found.extend(self._kept(text, assign.find(twin, low)))
        found.extend(self._kept(text, detectors.find(twin, low)))
        if self._remembered is not None:
            found.extend(Finding("remembered", "literal", s, e, "high") for s, e in self._remembered(text))
        if self._scan is not None:
            found.extend(f for f in self._scan(text))
        if MASK in twin:
            found = [piece for one in found for piece in _outside_markers(one, twin)]
        return found

    def _kept(self, text: str, found: list[Finding]) -> list[Finding]:
        if not self._allow:
            return found
        return [f for f in found if f.confidence != "low" or text[f.start : f.end] not in self._allow]

    def _replace(self, text: str, found: list[Finding]) -> Redacted:
        parts: list[str] = []
        marks: list[tuple[int, int, str]] = []
        at = size = 0
        for one in found:
            placeholder = marker(self._marker_key, one.kind, text[one.start : one.end])
            size += one.start - at
            parts.append(text[at : one.start])
            parts.append(placeholder)
            marks.append((size, size + len(placeholder), placeholder))
            size += len(placeholder)
            at = one.end
        parts.append(text[at:])
        return Redacted("".join(parts), found, marks)


def _run(rule: Rule, twin: str) -> list[Finding]:
    pattern = rule.compiled()
    search = pattern.search
    guard = BEFORE[rule.before]
    check = getattr(validators, rule.validator) if rule.validator else None
    found: list[Finding] = []
    at = 0
    while True:
        match = search(twin, at)
        if match is None:
            return found
        begin = match.start()
        start, end = match.span(rule.group)
        if start < 0 or start == end:
            at = max(match.end(), begin + 1)
            continue
        if guard is not None and begin and guard.match(twin, begin - 1) and not _percent(twin, begin):
            at = begin + 1
            continue
        if check is not None and not check(match[rule.group], twin, start, end):
            at = begin + 1
            continue
        found.append(Finding(rule.id, rule.kind, start, end, rule.confidence, rule.version))
        at = end if rule.group else match.end()


def _percent(twin: str, at: int) -> bool:
    """Whether the characters before are a percent escape such as `%3D`, which separates words in a URL."""
    return at >= 3 and twin[at - 3] == "%" and twin[at - 2] in "2357" and twin[at - 1] in "0123456789ABCDEFabcdef"


def _merge(found: list[Finding]) -> list[Finding]:
    """Overlapping spans become one, named by the most confident (then longest) finding."""
    if len(found) < 2:
        return found
    found.sort(key=lambda f: (f.start, -f.end))
    out = [found[0]]
    best = found[0]
    for one in found[1:]:
        last = out[-1]
        if one.start < last.end:
            if (CONFIDENCE[one.confidence], one.end - one.start) > (CONFIDENCE[best.confidence], best.end - best.start):
                best = one
            end = max(last.end, one.end)
            out[-1] = Finding(best.rule, best.kind, last.start, end, best.confidence, best.version)
        else:
            out.append(one)
            best = one
    return out


def _outside_markers(one: Finding, twin: str) -> list[Finding]:
    """The parts of a span that no existing marker covers."""
    if MASK not in twin[one.start : one.end]:
        return [one]
    out: list[Finding] = []
    at = one.start
    while at < one.end:
        while at < one.end and twin[at] == MASK:
            at += 1
        stop = twin.find(MASK, at, one.end)
        stop = one.end if stop < 0 else stop
        if twin[at:stop].strip(" \t\r\n\"'`,;:=|()[]{}<>&@/."):
            out.append(one._replace(start=at, end=stop))
        at = stop
    return out


def _back(residue: list[Finding], done: Redacted) -> list[Finding]:
    """Spans of the replaced text as spans of the given text."""
    out: list[Finding] = []
    for one in residue:
        shift = 0
        for finding, (start, end, _) in zip(done.findings, done.markers, strict=True):
            if end <= one.start:
                shift += (finding.end - finding.start) - (end - start)
            elif start >= one.end:
                break
            else:
                raise RedactionFailed("a rule matched the marker of another one, so the text was refused")
        out.append(one._replace(start=one.start + shift, end=one.end + shift))
    return out
