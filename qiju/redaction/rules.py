"""Rules are data: `rules/*.json`, loaded on the first scan and compiled one by one when a keyword of theirs occurs.

A rule's pattern starts with its literal where it has one and carries no look-behind: the boundary in front is the
field `before`, checked by the engine, which lets the regular-expression module jump to the literal. Quantifiers are
bounded. Strings each rule must and must not match are kept in `rules/examples/`, away from the loading path.

User rules (configuration tables) become the same `Rule`; a bad one is refused by its id before anything is stored.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from qiju.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# What may not stand directly before a match. `word` is the usual: a token never starts inside a word.
_WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
BEFORE: dict[str, frozenset[str]] = {
    "word": frozenset(_WORD),
    "ident": frozenset(_WORD + "_-"),
    "digits": frozenset(_WORD + "_.+-"),
    "colon": frozenset(":"),
    "any": frozenset(),
}
CONFIDENCE = {"high": 3, "medium": 2, "low": 1}
RULE_SETS = ("tokens", "structures", "personal")


class Rule(NamedTuple):
    """One pattern. `group` is the part that is replaced; `validator` names a function of `qiju.redaction.validators`.

    `anchored`: every match begins with a keyword, so it is tried only there. `within`: see `qiju.redaction.matching`.
    """

    id: str
    version: int
    kind: str
    keywords: tuple[str, ...]
    pattern: str
    group: int = 0
    validator: str = ""
    confidence: str = "high"
    before: str = "word"
    case: bool = True
    description: str = ""
    source: str = "builtin"
    within: str = ""
    anchored: bool = False

    def compiled(self) -> re.Pattern[str]:
        """The expression, compiled once per process."""
        slot = (self.pattern, self.case, self.source)
        found = _COMPILED.get(slot)
        if found is None:
            flags = 0 if self.source == "user" else re.ASCII
            if self.source == "user" and not self.case:
                flags |= re.IGNORECASE
            found = _COMPILED[slot] = re.compile(self.pattern, flags)
        return found

    def on_lower(self) -> bool:
        """Whether the expression is written in lower case and searched in the lower-case text: much quicker."""
        return not self.case and self.source == "builtin"


class Detector(NamedTuple):
    """A rule written in code (`qiju.redaction.detectors`, `assign`), listed with the others so that it has an id."""

    id: str
    version: int
    kind: str
    description: str


_COMPILED: dict[tuple[str, bool, str], re.Pattern[str]] = {}
_builtin: tuple[Rule, ...] | None = None
_detectors: tuple[Detector, ...] | None = None


_HERE = __file__.removesuffix("rules.py")  # pathlib alone would cost more than loading the rules


def rules_dir() -> Path:
    """The folder of the rule files."""
    from pathlib import Path

    return Path(_HERE, "rules")


def _read(name: str) -> list[dict[str, object]]:
    with open(f"{_HERE}rules/{name}.json", "rb") as file:
        entries: list[dict[str, object]] = json.loads(file.read())
    return entries


def builtin_rules() -> tuple[Rule, ...]:
    """All pattern rules of the package, loaded once."""
    global _builtin
    if _builtin is None:
        loaded: list[Rule] = []
        for name in RULE_SETS:
            loaded.extend(_from_entry(entry) for entry in _read(name))
        _builtin = tuple(loaded)
    return _builtin


def detectors() -> tuple[Detector, ...]:
    """The rules that are code, with their ids and descriptions."""
    global _detectors
    if _detectors is None:
        _detectors = tuple(
            Detector(str(e["id"]), int(str(e["version"])), str(e["kind"]), str(e["description"]))
            for e in _read("detectors")
        )
    return _detectors


def _from_entry(entry: Mapping[str, object], source: str = "builtin") -> Rule:
    # The files are validated by the tests; a loop over known fields is enough here and quick.
    get = entry.get
    return Rule(
        str(entry["id"]),
        int(str(get("version", 1))),
        str(get("kind") or "secret"),
        tuple(get("keywords", ())),  # type: ignore[arg-type]
        str(entry["pattern"]),
        int(str(get("group", 0))),
        str(get("validator", "")),
        str(get("confidence", "high")),
        str(get("before", "word")),
        bool(get("case", True)),
        str(get("description", "")),
        source,
        str(get("within", "")),
        bool(get("anchored", False)),
    )


_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,38}\Z")
_FIELDS = {"id", "version", "kind", "keywords", "pattern", "group", "confidence", "before", "case", "description"}


def load_user_rules(tables: Iterable[Mapping[str, object]]) -> list[Rule]:
    """Rules from configuration tables (`id` and `pattern` required; `kind`, `keywords`, `group`, ... as the built-in).

    Raises UsageError that names the rule: missing or unknown field, bad expression, one that matches nothing or the
    empty string, or one whose time grows faster than its input.
    """
    out: list[Rule] = []
    seen = {rule.id for rule in builtin_rules()} | {d.id for d in detectors()}
    for position, table in enumerate(tables, start=1):
        rule = _checked(table, position)
        if rule.id in seen:
            raise UsageError(f"redaction rule {rule.id!r}: the id is already used", hint="Choose another id.")
        seen.add(rule.id)
        out.append(rule)
    return out


def _checked(table: Mapping[str, object], position: int) -> Rule:
    ident = table.get("id")
    if not isinstance(ident, str) or not _ID.match(ident):
        raise UsageError(
            f"redaction rule number {position}: `id` must be lower-case letters, digits and hyphens",
            hint='Give every rule an id, such as id = "acme-token".',
        )

    def bad(why: str, hint: str = "") -> UsageError:
        return UsageError(f"redaction rule {ident!r}: {why}", hint=hint or "Correct the rule in the configuration.")

    unknown = sorted(set(table) - _FIELDS)
    if unknown:
        raise bad(f"unknown field {unknown[0]!r}", f"Known fields: {', '.join(sorted(_FIELDS))}.")
    pattern = table.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        raise bad("`pattern` is missing")
    kind = table.get("kind", "custom")
    if not isinstance(kind, str) or not _KIND.match(kind):
        raise bad("`kind` must be a short lower-case word")
    keywords = table.get("keywords", [])
    if not isinstance(keywords, list | tuple) or not all(isinstance(k, str) and k for k in keywords):
        raise bad("`keywords` must be a list of strings")
    group = table.get("group", 0)
    if not isinstance(group, int) or isinstance(group, bool) or group < 0:
        raise bad("`group` must be a number of a group, 0 for the whole match")
    version = table.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise bad("`version` must be a positive number")
    confidence = table.get("confidence", "high")
    if confidence not in CONFIDENCE:
        raise bad("`confidence` must be high, medium or low")
    before = table.get("before", "any")
    if before not in BEFORE:
        raise bad(f"`before` must be one of {', '.join(BEFORE)}")
    case = table.get("case", True)
    if not isinstance(case, bool):
        raise bad("`case` must be true or false")
    try:
        compiled = re.compile(pattern, 0 if case else re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise bad(f"the pattern is not a valid regular expression ({error})") from None
    if group > compiled.groups:
        raise bad(f"the pattern has no group {group}")
    if compiled.match(""):
        raise bad("the pattern matches the empty text")
    if _is_slow(pattern):
        raise bad(
            "the pattern can take time that grows much faster than its input",
            "Bound repetitions, such as {1,64}, and do not nest them.",
        )
    return Rule(
        ident,
        version,
        kind,
        tuple(k.lower() for k in keywords),
        pattern,
        group,
        "",
        str(confidence),
        str(before),
        case,
        str(table.get("description", "")),
        "user",
    )


def _is_slow(pattern: str) -> bool:
    """Whether the expression repeats a repetition, or chains unbounded ones over overlapping characters."""
    from ._slow import risky

    return risky(pattern)
