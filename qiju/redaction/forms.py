"""A literal in all the ways it may be written down: for erasing it, and for proving that it is gone.

Raw, JSON-escaped (with and without ASCII escapes, once and twice), URL-encoded, HTML-escaped, base64 at each of its
three alignments, and each of these for the composed and the decomposed Unicode form. Base64 forms are cut to the
characters that depend on the value alone, so that they are found inside a longer encoded text.
"""

from __future__ import annotations

import re

from qiju.errors import UsageError
from qiju.jsontext import JsonValue
from qiju.record import nfc

from .shadow import MARKER
from .values import _free

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST_BASE64 = 6  # shorter cores occur everywhere by chance


def forms(value: str) -> list[str]:
    """All encodings of `value`, longest first, without repetition; the value itself is among them."""
    import html
    import json
    import unicodedata
    from urllib.parse import quote, quote_plus

    out: list[str] = []
    for spelling in dict.fromkeys((value, unicodedata.normalize("NFC", value), unicodedata.normalize("NFD", value))):
        raw = spelling.encode("utf-8", "surrogatepass")
        out.append(spelling)
        for ascii_only in (False, True):
            once = json.dumps(spelling, ensure_ascii=ascii_only)[1:-1]
            twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
            out += [once, once.replace("/", "\\/"), twice, _upper_escapes(once)]
        for encoded in (
            quote(raw, safe=""),
            quote(raw, safe="/"),
            quote(raw, safe="!'()*~"),
            quote_plus(raw),
            quote_plus(raw, safe="/"),
        ):
            out += [encoded, _lower_escapes(encoded)]
        out += [
            html.escape(spelling),
            html.escape(spelling, quote=False),
            html.escape(spelling).replace("&#x27;", "&#39;"),
        ]
        out += _base64_cores(raw)
    return sorted(dict.fromkeys(f for f in out if f), key=lambda f: (-len(f), f))


def _upper_escapes(text: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})", lambda m: "\\u" + m[1].upper(), text)


def _lower_escapes(text: str) -> str:
    return re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), text)


def _base64_cores(raw: bytes) -> list[str]:
    from base64 import b64encode

    out: list[str] = []
    for lead in range(3):
        encoded = b64encode(b"\0" * lead + raw).decode("ascii").rstrip("=")
        first = -(-lead * 8 // 6)
        last = (lead + len(raw)) * 8 // 6
        core = encoded[first:last]
        if len(core) >= SHORTEST_BASE64:
            out += [core, core.replace("+", "-").replace("/", "_")]
    return out


def contains(data: bytes, spelled: Iterable[str]) -> bool:
    """Whether any of the forms occurs in `data`, as UTF-8."""
    return any(form.encode("utf-8", "surrogatepass") in data for form in spelled)


def check_placeholder(literal: str, placeholder: str) -> None:
    """Raises UsageError when the placeholder would keep the value, or part of a marker is to be redacted."""
    folded = literal.casefold()
    if folded and folded in placeholder.casefold():
        raise UsageError(
            "the placeholder contains the value to be redacted",
            hint="Give another --placeholder; words of the marker itself cannot be redacted.",
        )


def replace_literal(value: JsonValue, literal: str, marker: str) -> tuple[JsonValue, int]:
    """A copy of `value` with every form of `literal` replaced in strings and keys, and how many were.

    Longest forms go first; what already stands as a marker is left whole; two keys that become equal both stay, the
    second with a suffix. The value is untouched when the count is 0. Raises UsageError for an empty literal.
    """
    if not literal:
        raise UsageError("the value to be redacted is empty")
    pattern = re.compile("|".join((MARKER.pattern, re.escape(marker), *(f"({re.escape(f)})" for f in forms(literal)))))
    count = 0

    def swap(match: re.Match[str]) -> str:
        nonlocal count
        if match.lastindex is None:
            return match[0]
        count += 1
        return marker

    root: list[JsonValue] = [None]
    todo: list[tuple[JsonValue, list[JsonValue] | dict[str, JsonValue], int | str]] = [(value, root, 0)]
    while todo:
        item, target, slot = todo.pop()
        fresh: JsonValue = item
        if isinstance(item, str):
            fresh = pattern.sub(swap, item)
        elif isinstance(item, dict):
            changed = {key: pattern.sub(swap, key) for key in item}
            taken = {key for key, new in changed.items() if key == new}
            made: dict[str, JsonValue] = {}
            for key, new in changed.items():
                if new != key:
                    new = _free(new, taken)
                    taken.add(new)
                made[new] = None
                todo.append((item[key], made, new))
            fresh = made
        elif isinstance(item, list):
            listed: list[JsonValue] = [None] * len(item)
            todo.extend((part, listed, index) for index, part in enumerate(item))
            fresh = listed
        target[slot] = fresh  # type: ignore[index]
    return (root[0], count) if count else (value, 0)


_TOKEN_CHAR = r"[A-Za-z0-9_-]"


def cut_tokens(value: JsonValue, literal: str) -> int:
    """How often `literal` stands inside a longer word, whose rest would stay readable after a replacement."""
    inside = re.compile(f"(?<={_TOKEN_CHAR}){re.escape(literal)}|{re.escape(literal)}(?={_TOKEN_CHAR})")
    return sum(1 for text in strings(value) for _ in inside.finditer(text))


def case_variants(value: JsonValue, literal: str) -> int:
    """How often the literal occurs in another case, which a replacement leaves."""
    import unicodedata

    folded = unicodedata.normalize("NFC", literal).casefold()
    count = 0
    for text in strings(value):
        plain = nfc(text)
        count += plain.casefold().count(folded) - plain.count(unicodedata.normalize("NFC", literal))
    return max(count, 0)


def strings(value: JsonValue) -> Iterable[str]:
    """Every string of a JSON value, keys included, in no particular order."""
    todo: list[JsonValue] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            for key, part in item.items():
                yield key
                todo.append(part)
        elif isinstance(item, list):
            todo.extend(item)
