"""Every string of a JSON value through the engine: values and object keys, at any depth, without recursion.

The key above a value is its context: `{"db_password": "..."}` says what the string alone does not. Numbers stay
numbers, since a reader may compute with them; only a number that its own key calls a password, a card or a phone
becomes a marker. Two keys that become equal both stay: the second one gets a suffix behind its marker.

Paths are those of the value as stored: `a.b[2]`, and `["odd.key"]` for a key that is no plain word; `a.~key[1]` is the
second key, in canonical order, of the object at `a`.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from qiju.jsontext import JsonValue, Number

from . import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .engine import Engine, Redacted


class Redaction(NamedTuple):
    """One marker in a stored value: `start`/`end` index the stored string at `field` and cover `placeholder`."""

    field: str
    type: str
    rule: str
    start: int
    end: int
    placeholder: str

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "field": self.field,
            "type": self.type,
            "rule": self.rule,
            "start": self.start,
            "end": self.end,
            "placeholder": self.placeholder,
        }


# A path as nested pairs, rendered only when something was found: deep values would otherwise cost their depth squared.
_Path = tuple["_Path | str", "str | int"] | str

_PLAIN = re.compile(r"[^\s.\[\]\"~][^\s.\[\]\"]*\Z")
_NUMBER_KINDS = {
    "card_number": frozenset(["card", "pan", "cc", "cardnumber", "creditcard", "ccnumber"]),
    "phone": frozenset(["phone", "mobile", "tel", "cell", "fax", "msisdn", "telephone", "cellphone", "phonenumber"]),
    "ssn": frozenset(("ssn", "sin", "tin")),
    "pin": frozenset(("pin", "otp", "cvv", "cvc")),
}


def key_path(path: str, key: str) -> str:
    """The path of the value under `key` of the object at `path`."""
    if _PLAIN.match(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def canonical_order(keys: list[str]) -> list[str]:
    """Keys in the order of canonical JSON: by UTF-16 code units."""
    return sorted(keys, key=lambda k: k.encode("utf-16-be", "surrogatepass"))


def redact_value(engine: Engine, value: JsonValue, path: str = "") -> tuple[JsonValue, list[Redaction]]:
    """A clean copy of `value` and what was replaced in it. Raises RedactionFailed as the engine does."""
    out: list[Redaction] = []
    root: list[JsonValue] = [None]
    todo: list[tuple[JsonValue, _Path, str, list[JsonValue] | dict[str, JsonValue], int | str]] = [
        (value, path, _last(path), root, 0)
    ]
    while todo:
        item, where, name, target, slot = todo.pop()
        fresh: JsonValue
        if isinstance(item, str):
            done = engine.redact_text(item, name)
            fresh = done.text
            if done.findings:
                _note(out, _render(where), done)
        elif isinstance(item, dict):
            keys = _clean_keys(engine, item, where, out)
            made: dict[str, JsonValue] = dict.fromkeys(keys.values())
            fresh = made
            for old, new in reversed(keys.items()):
                todo.append((item[old], (where, new), old, made, new))
        elif isinstance(item, list):
            listed: list[JsonValue] = [None] * len(item)
            fresh = listed
            for index in range(len(item) - 1, -1, -1):
                todo.append((item[index], (where, index), name, listed, index))
        elif isinstance(item, bool) or item is None:
            fresh = item
        else:
            kind = _number_kind(name, item)
            fresh = item
            if kind:
                token = item.token if isinstance(item, Number) else str(item)
                placeholder = engine.mark(kind, token)
                out.append(Redaction(_render(where), kind, "assigned-number", 0, len(placeholder), placeholder))
                fresh = placeholder
        target[slot] = fresh  # type: ignore[index]
    return root[0], out


def _clean_keys(engine: Engine, item: dict[str, JsonValue], where: _Path, out: list[Redaction]) -> dict[str, str]:
    """Old keys to new ones, in the object's order; the findings of keys are noted."""
    keys: dict[str, str] = {}
    found: list[tuple[str, Redacted]] = []
    taken: set[str] = set()
    # Keys that stay as they are keep their name, whatever comes before them.
    results = {key: engine.redact_text(key) for key in item}
    taken.update(key for key, done in results.items() if not done.findings)
    for key, done in results.items():
        new = done.text
        if done.findings:
            new = _free(new, taken)
            taken.add(new)
            found.append((new, done))
        keys[key] = new
    if found:
        order = {key: index for index, key in enumerate(canonical_order(list(keys.values())))}
        base = _render(where)
        for new, done in found:
            _note(out, f"{base}.~key[{order[new]}]" if base else f"~key[{order[new]}]", done)
    return keys


def _free(key: str, taken: set[str]) -> str:
    if key not in taken:
        return key
    number = 2
    while f"{key}~{number}" in taken:
        number += 1
    return f"{key}~{number}"


def _note(out: list[Redaction], field: str, done: Redacted) -> None:
    for finding, (start, end, placeholder) in zip(done.findings, done.markers, strict=True):
        out.append(Redaction(field, finding.kind, finding.rule, start, end, placeholder))


def _render(where: _Path) -> str:
    steps: list[str | int] = []
    while not isinstance(where, str):
        where, step = where
        steps.append(step)
    text = where
    parts = [text]
    for step in reversed(steps):
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(key_path(" " if text or len(parts) > 1 else "", step).removeprefix(" "))
    return "".join(parts)


def _last(path: str) -> str:
    """The key a path ends with, which is the name of the value there."""
    tail = re.sub(r"(?:\[\d+\])+\Z", "", path)
    return tail.rpartition(".")[2] if tail and not tail.endswith("]") else ""


def _number_kind(name: str, item: int | Number) -> str:
    """The kind of a number that its own key calls private; empty for all others."""
    if not name:
        return ""
    token = item.token if isinstance(item, Number) else str(item)
    if not token.isdigit():
        return ""
    if names.strength(name) == names.PASSWORD:
        return "password" if len(token) >= 4 else ""
    parts = set(names.words(name))
    if parts & _NUMBER_KINDS["card_number"] and 13 <= len(token) <= 19:
        from .personal import luhn

        return "card_number" if luhn(token) else ""
    if parts & _NUMBER_KINDS["phone"] and 10 <= len(token) <= 15:
        return "phone"
    if parts & _NUMBER_KINDS["ssn"] and len(token) == 9:
        return "ssn"
    if (
        parts & _NUMBER_KINDS["pin"]
        and parts <= _NUMBER_KINDS["pin"] | {"code", "number", "card"}
        and 3 <= len(token) <= 8
    ):
        return "pin"
    return ""
