"""The one chokepoint: text in, redacted text and spans out.

All rules, the code detectors, the remembered values and the optional scanner look at the same original text. Their
spans are merged and replaced once, so no rule ever sees another rule's marker. The result is searched again: what only
became visible through the replacement is added, and if something still remains after a few rounds the call fails
rather than return text that was found to hold a secret.
"""

from __future__ import annotations

from typing import NamedTuple

from qiju.errors import QijuError

from . import assign, detectors, matching
from .marker import marker, subkey
from .rules import CONFIDENCE, Rule, builtin_rules
from .shadow import MASK, lower, shadow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from qiju.jsontext import JsonValue

    from .values import Redaction

    _Tried = list[tuple[Rule, list[str]]]

ROUNDS = 6
SHORTEST = 4  # characters; no rule matches less


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


class Engine:
    """A redactor with a store's key, user rules, an allow-list and, if asked for, the second scanner.

    `key` is the store's key; None makes markers without the keyed digits, for output that no key may be tied to.
    `allow` lists values that low-confidence rules leave alone when the whole value equals one. `remembered` is a
    callable from a text to the spans of values redacted by hand before (`qiju.redaction.fingerprint.Remembered`).
    """

    __slots__ = ("_allow", "_index", "_key", "_marker_key", "_remembered", "_second")

    def __init__(
        self,
        key: bytes | None,
        *,
        user_rules: Iterable[Rule] = (),
        allow: Iterable[str] = (),
        scanner: bool = False,
        remembered: Callable[[str], list[tuple[int, int]]] | None = None,
    ) -> None:
        self._key = key
        self._marker_key: bytes | None = None
        self._allow = frozenset(allow)
        self._remembered = remembered
        self._second: Callable[[str], list[Finding]] | None = None
        if scanner:
            from .scanner import scan

            self._second = scan
        self._index = matching.Index((*builtin_rules(), *user_rules))

    def find(self, text: str, name: str = "") -> list[Finding]:
        """Every span of `text` that must go, merged and in order; `name` is the key whose value the text is."""
        return self._look(text, name, None)[0]

    def redact_text(self, text: str, name: str = "") -> Redacted:
        """The text with each finding replaced by its marker. Raises RedactionFailed when it cannot be made clean."""
        found, tried = self._look(text, name, None)
        if not found:
            return Redacted(text, [], [])
        for _ in range(ROUNDS):
            done = replace(text, found, self.mark)
            # Replacing adds no keyword (markers are masked), so the rules that could match are still the same.
            residue, _ = self._look(done.text, name, tried)
            if not residue:
                return done
            found = merge([*found, *_back(residue, done)])
        raise RedactionFailed(
            "a text still shows secrets after redaction, so it was refused",
            hint="A rule keeps matching what replaced it; check the user rules, then report the text's shape.",
        )

    def redact_value(self, value: JsonValue, path: str = "") -> tuple[JsonValue, list[Redaction]]:
        """Every string of a JSON value, keys included; see `qiju.redaction.values`."""
        from .values import redact_value

        return redact_value(self, value, path)

    def mark(self, kind: str, value: str) -> str:
        """The marker that stands for `value`."""
        if self._marker_key is None and self._key is not None:
            self._marker_key = subkey(self._key, "marker")
        return marker(self._marker_key, kind, value)

    def _look(self, text: str, name: str, tried: _Tried | None) -> tuple[list[Finding], _Tried]:
        """Merged findings, and the rules that were tried."""
        if name and assign.gives_context(name):
            # A phone number under `phone` is one although nothing in the value says so.
            lead = f"{name}: "
            found, tried = self._scan(lead + text, tried)
            size = len(lead)
            found = [f._replace(start=max(f.start - size, 0), end=f.end - size) for f in found if f.end > size]
        else:
            found, tried = self._scan(text, tried)
        if name:
            found.extend(self._kept(text, assign.named(name, shadow(text))))
        return merge(found), tried

    def _scan(self, text: str, tried: _Tried | None) -> tuple[list[Finding], _Tried]:
        if len(text) < SHORTEST and self._remembered is None:
            return [], tried or []
        twin = shadow(text)
        low = lower(twin)
        if tried is None:
            tried = self._index.candidates(low)
        found = matching.run(tried, twin, low)
        found.extend(assign.find(twin, low))
        found.extend(detectors.find(twin, low))
        found = self._kept(text, found)
        if self._remembered is not None:
            found.extend(Finding("remembered", "literal", start, end, "high") for start, end in self._remembered(text))
        if self._second is not None:
            found.extend(self._second(text))
        if MASK in twin:
            found = [piece for one in found for piece in _outside_markers(one, twin)]
        return found, tried

    def _kept(self, text: str, found: list[Finding]) -> list[Finding]:
        """The findings that the allow-list leaves."""
        if not self._allow:
            return found
        return [f for f in found if f.confidence != "low" or text[f.start : f.end] not in self._allow]


def replace(text: str, found: list[Finding], mark: Callable[[str, str], str]) -> Redacted:
    """`text` with each of the merged findings replaced by its marker, `mark(kind, value)`."""
    parts: list[str] = []
    marks: list[tuple[int, int, str]] = []
    at = size = 0
    for one in found:
        placeholder = mark(one.kind, text[one.start : one.end])
        size += one.start - at
        parts.append(text[at : one.start])
        parts.append(placeholder)
        marks.append((size, size + len(placeholder), placeholder))
        size += len(placeholder)
        at = one.end
    parts.append(text[at:])
    return Redacted("".join(parts), found, marks)


def merge(found: list[Finding]) -> list[Finding]:
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
