"""A literal to be erased: every spelling it may have, where they stand in a text, and what takes their place.

Markers already in a text are never broken: what lies inside one is not an occurrence. Occurrences that touch or overlap
become one, so a value that repeats without a gap leaves one marker and no remainder.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple, Protocol

from qiju.errors import Refused, UsageError
from qiju.jsontext import JsonValue
from qiju.redaction.forms import check_placeholder, forms
from qiju.redaction.shadow import MARKER

PLACEHOLDER = "[REDACTED:manual]"
SHORTEST = 6  # characters, unless --force
_LONGEST_PLACEHOLDER = 200
_MARKER_BYTES = re.compile(MARKER.pattern.encode("ascii"))
_LONGEST_MARKER = 80  # bytes on each side of a hit in which a marker around it begins and ends


class Edit(NamedTuple):
    """`text[start:end]` of the old text became `size` characters."""

    start: int
    end: int
    size: int


class Sought(Protocol):
    """Text that must not be there any more: a secret, or passages of deleted records."""

    @property
    def needles(self) -> tuple[bytes, ...]: ...

    def in_text(self, text: str) -> bool: ...

    def spans(self, text: str) -> list[tuple[int, int]]: ...

    def hits(self, data: bytes) -> list[tuple[int, int]]: ...

    def in_bytes(self, data: bytes) -> bool: ...


class Secret:
    """The literal with its spellings, longest first."""

    __slots__ = ("_needles", "forms", "literal", "placeholder", "quick")

    def __init__(self, literal: str, placeholder: str = PLACEHOLDER) -> None:
        self.literal = literal
        self.placeholder = placeholder
        self.forms = tuple(forms(literal))
        # A spelling that contains another one is found by the shorter one.
        shortest: list[str] = []
        for form in reversed(self.forms):
            if not any(known in form for known in shortest):
                shortest.append(form)
        self.quick = tuple(shortest)
        wide = {unicodedata.normalize(kind, literal) for kind in ("NFC", "NFD")} | {literal}
        encoded = {form.encode("utf-8", "surrogatepass") for form in self.quick}
        for text in wide:
            encoded |= {text.encode("utf-16-le", "surrogatepass"), text.encode("utf-16-be", "surrogatepass")}
        self._needles = tuple(sorted(encoded, key=lambda needle: (-len(needle), needle)))

    @property
    def needles(self) -> tuple[bytes, ...]:
        """The bytes of every spelling, in UTF-8 and UTF-16."""
        return self._needles

    def in_text(self, text: str) -> bool:
        """Whether any spelling occurs, markers not looked at: quick, for sifting."""
        return any(form in text for form in self.quick)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it stands outside markers; overlapping and touching places are one."""
        found: list[tuple[int, int]] = []
        for form in self.forms:
            at = text.find(form)
            while at >= 0:
                found.append((at, at + len(form)))
                at = text.find(form, at + 1)
        if not found:
            return []
        markers = [match.span() for match in MARKER.finditer(text)] if "[REDACTED" in text else []
        found = sorted(one for one in found if not any(one[0] < end and start < one[1] for start, end in markers))
        merged: list[tuple[int, int]] = []
        for start, end in found:
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def replace(self, text: str) -> tuple[str, list[Edit]]:
        """The text with the placeholder in its place, and what was changed."""
        return self._replaced(text, self.placeholder)

    def word(self, text: str) -> str:
        """The same for an id or a name, which takes no white space."""
        mark = re.sub(r"\s+", "-", self.placeholder.strip()) or "redacted"
        return self._replaced(text, mark)[0]

    def name(self, text: str) -> str:
        """The same for a file or a project, which takes no punctuation either."""
        return self._replaced(text, "redacted")[0]

    def _replaced(self, text: str, mark: str) -> tuple[str, list[Edit]]:
        if not self.in_text(text):
            return text, []
        parts: list[str] = []
        edits: list[Edit] = []
        at = 0
        for start, end in self.spans(text):
            parts += (text[at:start], mark)
            edits.append(Edit(start, end, len(mark)))
            at = end
        parts.append(text[at:])
        return "".join(parts), edits

    def clean(self, text: str) -> str:
        """A message without the value, in whatever case."""
        cleaned = self.replace(text)[0]
        return re.sub(re.escape(self.literal), self.placeholder.replace("\\", r"\\"), cleaned, flags=re.IGNORECASE)

    def clean_json(self, value: JsonValue) -> JsonValue:
        """The same for every string of an answer, keys included."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, list):
            return [self.clean_json(item) for item in value]
        if isinstance(value, dict):
            return {self.clean(key): self.clean_json(item) for key, item in value.items()}
        return value

    def hits(self, data: bytes) -> list[tuple[int, int]]:
        """Where its bytes stand outside markers, as (start, length), in no order."""
        return [(at, size) for at, size in places(data, self._needles) if not _inside_marker(data, at, at + size)]

    def in_bytes(self, data: bytes) -> bool:
        """Whether its bytes stand anywhere outside a marker."""
        return any(needle in data for needle in self._needles) and bool(self.hits(data))


def places(data: bytes, needles: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """Where any of the needles stands, as (start, length), in no order."""
    found = []
    for needle in needles:
        at = data.find(needle)
        while at >= 0:
            found.append((at, len(needle)))
            at = data.find(needle, at + 1)
    return found


def _inside_marker(data: bytes, start: int, end: int) -> bool:
    first = max(0, start - _LONGEST_MARKER)
    around = data[first : end + _LONGEST_MARKER]
    if b"[REDACTED" not in around:
        return False
    return any(m.start() + first < end and start < m.end() + first for m in _MARKER_BYTES.finditer(around))


def checked(literal: str, placeholder: str, *, force: bool) -> Secret:
    """A secret from what a person gave. Raises `UsageError` and `Refused`; no message holds the value."""
    if not _visible(literal):
        raise UsageError(
            "the value to be redacted is empty, blank or invisible", hint="give it on standard input with --value-stdin"
        )
    try:
        literal.encode("utf-8")
        placeholder.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError("the value or the placeholder is not valid text (UTF-8)") from error
    if not _visible(placeholder) or any(unicodedata.category(letter) == "Cc" for letter in placeholder):
        raise UsageError("the placeholder is empty or holds control characters", hint="leave --placeholder out")
    if len(placeholder) > _LONGEST_PLACEHOLDER:
        raise UsageError(f"the placeholder is longer than {_LONGEST_PLACEHOLDER} characters")
    check_placeholder(literal, placeholder)
    secret = Secret(literal, placeholder)
    if secret.in_text(placeholder):
        raise UsageError("the placeholder contains the value to be redacted", hint="give another --placeholder")
    if MARKER.search(literal) or "[REDACTED" in literal:
        raise Refused(
            "the value holds a marker of an earlier redaction; markers are never broken",
            hint="give the part before or behind the marker",
        )
    if any(form in own_words() for form in secret.forms):
        raise Refused(
            "the value is one of Qiju's own words (a column, a rule, a kind) and cannot be told from them",
            hint="give more of the text around it",
        )
    if len(literal) < SHORTEST and not force:
        raise Refused(
            f"the value has fewer than {SHORTEST} characters and would be cut out of many words",
            hint="look first with --dry-run --force, then give --force",
        )
    return secret


def _visible(text: str) -> bool:
    """Whether there is anything to see: white space, controls, format characters and fillers are not."""
    fillers = "\u115f\u1160\u2800\u3164\uffa0"
    return any(unicodedata.category(letter)[0] not in "ZC" and letter not in fillers for letter in text)


_FIXED = (
    *("capture", "import", "migrate", "trajectory", "literal", "rescan", "delete", "restore", "remembered", "manual"),
    *("agent", "commitment", "store_id", "key_id", "SQLite format 3"),
)
_own: str | None = None


def own_words() -> str:
    """Every word that the store itself writes into any database: its schema, and the names of rules and kinds."""
    global _own
    if _own is None:
        from qiju.db import Database
        from qiju.hosts import HOSTS
        from qiju.redaction.rules import builtin_rules, detectors

        with Database.in_memory() as empty:
            ddl = [str(row[0]) for row in empty.connection.execute("SELECT sql FROM sqlite_schema WHERE sql <> ''")]
            names = [str(row[0]) for row in empty.connection.execute("SELECT name FROM sqlite_schema")]
        rules = [word for rule in builtin_rules() for word in (rule.id, rule.kind)]
        rules += [word for detector in detectors() for word in (detector.id, detector.kind)]
        _own = "\n".join((*ddl, *names, *rules, *_FIXED, *(host.name for host in HOSTS)))
    return _own
