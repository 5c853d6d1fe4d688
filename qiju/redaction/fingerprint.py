"""Values redacted by hand stay recognised, without being kept: keyed fingerprints of their tokens.

A token is a maximal run without white space, also split at quotes, `=` and `:`. A value of several tokens is kept by
its sequence. The stored strings are HMACs under the store's fingerprint sub-key, so the database alone lets nobody
test a guess; not even lengths are kept. Matching costs one HMAC per distinct token of a text, and words met before are
answered from memory, so the number of remembered values does not matter.

Stored form: `<hex>` for one token; `<n>:<hex of the first>:<hex of the sequence>` for n tokens.
"""

from __future__ import annotations

from typing import NamedTuple

from qiju.record import nfc

from .lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = lazily(r"[^\s\"'`=:\u2018\u2019\u201c\u201d\u00ab\u00bb\u300c\u300d\u300e\u300f\uff1a\uff1d]+")
_PIECE = lazily(r"[^\s/&,;@()|<>\[\]{}#?!\\+*~%$^\u3001\u3002\uff0c\uff1b\uff08\uff09\uff01\uff1f]+")
_EDGES = ".,;!?()[]{}<>*_|\\/#&\u3001\u3002\uff0c\uff1b\uff08\uff09\uff01\uff1f"
MEMORY = 50_000  # words answered from memory before it starts anew
HEX = 32  # hexadecimal digits kept of each HMAC


def tokens(text: str) -> list[tuple[int, int]]:
    """Spans of the tokens of `text`."""
    return [match.span() for match in _TOKEN.finditer(text)]


def fingerprints(key: bytes, value: str) -> list[str]:
    """What to store so that `value` is recognised again; `key` is the sub-key of purpose `fingerprint`.

    Holds the value itself and, for one that is encoded differently, its URL-encoded and base64 forms. Empty for a
    value without a token.
    """
    out: list[str] = []
    for form in _spellings(value):
        parts = [form[s:e] for s, e in tokens(form)]
        if not parts:
            continue
        if len(parts) == 1:
            out.append(_mac(key, parts[0]))
        else:
            out.append(f"{len(parts)}:{_mac(key, parts[0])}:{_mac(key, _join(parts))}")
    return list(dict.fromkeys(out))


def _spellings(value: str) -> list[str]:
    from base64 import b64encode, urlsafe_b64encode
    from urllib.parse import quote

    raw = value.encode("utf-8", "surrogatepass")
    encoded = b64encode(raw).decode("ascii")
    forms = [value, value.strip(), quote(raw, safe="")]
    if len(raw) >= 6:
        forms += [encoded.rstrip("="), urlsafe_b64encode(raw).decode("ascii").rstrip("=")]
    return list(dict.fromkeys(f for f in forms if f))


def _join(parts: list[str]) -> str:
    return "\x1f".join(parts)


def _mac(key: bytes, text: str) -> str:
    from hmac import digest

    plain = text if text.isascii() else nfc(text)
    return digest(key, plain.encode("utf-8", "surrogatepass"), "sha256").hex()[:HEX]


class _Hit(NamedTuple):
    """What a word is: the remembered part of it, and the sequences it may begin as (offset, count, fingerprint)."""

    single: tuple[int, int] | None
    firsts: list[tuple[int, int, str]]


class Remembered:
    """The matcher: called with a text, it answers the spans `[start, end)` of remembered values.

    `key` is the sub-key of purpose `fingerprint`, `stored` what `fingerprints` returned earlier.
    """

    __slots__ = ("_by_first", "_hits", "_key", "_misses", "_single")

    def __init__(self, key: bytes, stored: Iterable[str]) -> None:
        self._key = key
        self._single: set[str] = set()
        self._by_first: dict[str, list[tuple[int, str]]] = {}
        # Words met before: those that are (or may begin) something remembered, and all others.
        self._hits: dict[str, _Hit] = {}
        self._misses: set[str] = set()
        for entry in stored:
            count, colon, rest = entry.partition(":")
            if not colon:
                self._single.add(entry)
                continue
            first, _, whole = rest.partition(":")
            self._by_first.setdefault(first, []).append((int(count), whole))

    def __len__(self) -> int:
        return len(self._single) + sum(len(v) for v in self._by_first.values())

    def __call__(self, text: str) -> list[tuple[int, int]]:
        if not self._single and not self._by_first:
            return []
        words = set(_TOKEN.findall(text))
        for word in words - self._misses - self._hits.keys():
            self._learn(word)
        if not (self._hits.keys() & words):
            return []
        out: list[tuple[int, int]] = []
        spans = tokens(text)
        for index, (start, end) in enumerate(spans):
            hit = self._hits.get(text[start:end])
            if hit is None:
                continue
            if hit.single is not None:
                out.append((start + hit.single[0], start + hit.single[1]))
            for offset, count, whole in hit.firsts:
                found = self._sequence(text, spans[index : index + count], offset, count, whole)
                if found is not None:
                    out.append(found)
        return out

    def _learn(self, word: str) -> None:
        single = self._part(word)
        firsts: list[tuple[int, int, str]] = []
        if self._by_first:
            bare = len(word) - len(word.lstrip(_EDGES))
            for offset in {0, bare if bare < len(word) else 0}:
                mac = _mac(self._key, word[offset:])
                firsts += [(offset, count, whole) for count, whole in self._by_first.get(mac, ())]
        if single is None and not firsts:
            if len(self._misses) >= MEMORY:
                self._misses.clear()
            if len(word) <= 64:
                self._misses.add(word)
        else:
            if len(self._hits) >= MEMORY:
                self._hits.clear()
            self._hits[word] = _Hit(single, firsts)

    def _part(self, run: str) -> tuple[int, int] | None:
        """The part of a word that is remembered: whole, without punctuation at its edges, or a piece of it."""
        if not self._single:
            return None
        if _mac(self._key, run) in self._single:
            return 0, len(run)
        trimmed = run.strip(_EDGES)
        if not trimmed:
            return None
        if trimmed != run and _mac(self._key, trimmed) in self._single:
            offset = run.index(trimmed)
            return offset, offset + len(trimmed)
        if not trimmed.isalnum():
            for piece in _PIECE.finditer(run):
                if piece.end() - piece.start() < len(run) and _mac(self._key, piece[0]) in self._single:
                    return piece.span()
        return None

    def _sequence(
        self, text: str, chosen: list[tuple[int, int]], offset: int, count: int, whole: str
    ) -> tuple[int, int] | None:
        """The span of a remembered sequence that begins with the first of the chosen words."""
        if len(chosen) < count:
            return None
        begin = chosen[0][0] + offset
        parts = [text[begin : chosen[0][1]], *(text[start:end] for start, end in chosen[1:])]
        if _mac(self._key, _join(parts)) == whole:
            return begin, chosen[-1][1]
        last = parts[-1].rstrip(_EDGES)
        if last and last != parts[-1] and _mac(self._key, _join([*parts[:-1], last])) == whole:
            return begin, chosen[-1][0] + len(last)
        return None
