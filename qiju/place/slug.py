"""Project names and the slugs made of them.

A slug is the display name of a project and, in the archive, the name of a folder. It must therefore be safe as a file
name on every system, and it must not let two projects share one history: the predecessor turned every name it could not
spell into the same word. Here a name that survives as it is keeps its spelling; a name that had to give up a character
gets a short digest of the whole name, so that `a/b`, `a b` and `a-b` stay three projects.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container

from qiju.record import nfc

MAX_BYTES = 80
"""Longest slug in UTF-8 bytes: file systems allow 255 for one name, and `project=`, `.bak` and `-2` need room."""

_DIGEST_CHARACTERS = 8
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_PUNCTUATION = frozenset("._-")
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{port}{number}" for port in ("com", "lpt") for number in range(10)]
)

# Characters that draw nothing although Unicode counts them as letters or marks: fillers, joiners, variation selectors.
_BLANK_LETTERS = frozenset(
    [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x3164, 0xFFA0, *range(0x180B, 0x180E), *range(0xFE00, 0xFE10)]
)


def name_key(name: str) -> str:
    """What makes two names the same name: NFKC, case folded, without invisible characters and outer white space.

    Two names with equal keys are one project; two names with different keys are two projects, whatever they look like
    after `slugify` has made them safe.
    """
    if name.isascii() and name.isprintable():
        return name.strip().lower()
    previous = None
    # Folding can produce text that NFKC changes again (and the reverse), so this runs until it holds still.
    while name != previous:
        previous = name
        name = nfc("".join(c for c in name if not _is_invisible(c)), "NFKC").casefold()
    return name.strip()


def slugify(name: str) -> str:
    """The slug of a project name: file-safe, never empty, at most `MAX_BYTES` bytes, never beginning with `-` or `.`.

    The rule: take `name_key(name)`. If it consists of letters, digits, marks, `.`, `_` and `-` in any script, is short
    enough, neither begins with `-`, `.` or a mark nor ends with `.`, and is no device name of Windows (`con`,
    `nul.txt`), it *is* the slug. Otherwise every run of other characters becomes one `-`, the rest is put right, and
    `-` with eight hex digits of the SHA-256 of the key is appended. So two different names never get one slug, with one
    meant exception: a slug that is handed in as a name comes back unchanged and names its own project.
    """
    key = name_key(name)
    if _is_safe(key):
        return key
    # Only unusual names pay for the import.
    from hashlib import sha256

    suffix = "-" + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    parts: list[str] = []
    for character in key:
        # Nothing that may not stand first: what is stripped later would leave a mark behind it in its place.
        first = not parts and (character in "-." or unicodedata.category(character)[0] == "M")
        if _may_stay(character) and not first:
            parts.append(character)
        elif parts and parts[-1] != "-":
            parts.append("-")
    base = _cut("".join(parts).strip("-."), MAX_BYTES - len(suffix)) or "project"
    if _is_device(base):
        base = base.replace(".", "-")
    return base + suffix


def distinct_slug(name: str, taken: Container[str]) -> str:
    """The slug of `name`, or the first of `slug-2`, `slug-3`, ... that is not among `taken`."""
    slug = slugify(name)
    if slug not in taken:
        return slug
    number = 2
    while True:
        suffix = f"-{number}"
        candidate = _cut(slug, MAX_BYTES - len(suffix)) + suffix
        if candidate not in taken:
            return candidate
        number += 1


def same_name(one: str, other: str) -> bool:
    """Whether two spellings name one project."""
    return name_key(one) == name_key(other)


def _is_safe(key: str) -> bool:
    if not key or key[0] in "-." or key[-1] == "." or _is_device(key):
        return False
    if _PLAIN.issuperset(key):
        return len(key) <= MAX_BYTES
    return (
        unicodedata.category(key[0])[0] != "M"
        and all(_may_stay(character) for character in key)
        and len(key.encode()) <= MAX_BYTES
    )


def _may_stay(character: str) -> bool:
    return character in _PUNCTUATION or unicodedata.category(character)[0] in "LMN"


def _is_device(key: str) -> bool:
    # Windows looks only at what stands before the first dot: `nul.txt` is the null device, too.
    return key.partition(".")[0] in _DEVICES


def _is_invisible(character: str) -> bool:
    """Control, format and filler characters. A line end or a tab separates words, so it stays to be replaced."""
    category = unicodedata.category(character)
    return (
        category == "Cf"
        or (category == "Cc" and not character.isspace())
        or ord(character) in _BLANK_LETTERS
        or 0xE0100 <= ord(character) <= 0xE01EF
    )


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes of `text`, cut between characters, without a `-` or `.` left dangling at the end."""
    if len(text.encode("utf-8")) > limit:
        text = text.encode("utf-8")[:limit].decode("utf-8", "ignore")
    return text.rstrip("-.")
