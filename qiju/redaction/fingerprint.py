"""Values redacted by hand stay recognised, without being kept: keyed fingerprints of their tokens.

A token is a maximal run without white space, also split at quotes, `=` and `:`. A value of several tokens is kept by
its sequence. The stored strings are HMACs under the store's fingerprint sub-key, so the database alone lets nobody
test a guess; not even lengths are kept. Matching costs one HMAC per distinct token of a text, and words met before are
answered from memory, so the number of remembered values does not matter.

Stored form: `<hex>` for one token; `<n>:<hex of the first>:<hex of the sequence>` for n tokens.
"""

from __future__ import annotations

import re
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(r"[^\s\"'`=:\u2018\u2019\u201c\u201d\u00ab\u00bb\u300c\u300d\u300e\u300f\uff1a\uff1d]+")
_PIECE = re.compile(r"[^\s/&,;@()|<>\[\]{}#?!\\+*~%$^\u3001\u3002\uff0c\uff1b\uff08\uff09\uff01\uff1f]+")
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

    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    return digest(key, plain.encode("utf-8", "surrogatepass"), "sha256").hex()[:HEX]


class Remembered:
    """The matcher: called with a text, it answers the spans `[start, end)` of remembered values.

    `key` is the sub-key of purpose `fingerprint`, `stored` what `fingerprints` returned earlier.
    """

    __slots__ = ("_by_first", "_key", "_memory", "_single")

    def __init__(self, key: bytes, stored: Iterable[str]) -> None:
        self._key = key
        self._single: set[str] = set()
        self._by_first: dict[str, list[tuple[int, str]]] = {}
        self._memory: dict[str, str] = {}
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
        out: list[tuple[int, int]] = []
        spans = tokens(text)
        for index, (start, end) in enumerate(spans):
            found = self._token(text, start, end)
            if found is not None:
                out.append(found)
            if self._by_first:
                last = self._sequence(text, spans, index)
                if last:
                    out.append(last)
        return out

    def _token(self, text: str, start: int, end: int) -> tuple[int, int] | None:
        """The part of a token that is remembered: whole, without punctuation at its edges, or a piece of it."""
        run = text[start:end]
        mac = self._known(run)
        if mac in self._single:
            return start, end
        trimmed = run.strip(_EDGES)
        if not trimmed:
            return None
        if trimmed != run:
            offset = start + run.index(trimmed)
            if self._known(trimmed.rstrip("=")) in self._single:
                return offset, offset + len(trimmed)
        if trimmed.isalnum():
            return None
        for piece in _PIECE.finditer(run):
            if piece.end() - piece.start() < len(run) and self._known(piece[0]) in self._single:
                return start + piece.start(), start + piece.end()
        return None

    def _sequence(self, text: str, spans: list[tuple[int, int]], index: int) -> tuple[int, int] | None:
        start, end = spans[index]
        first = text[start:end]
        candidates = [first]
        bare = first.lstrip(_EDGES)
        if bare and bare != first:
            candidates.append(bare)
        for word in candidates:
            for count, whole in self._by_first.get(self._known(word), ()):
                chosen = spans[index : index + count]
                if len(chosen) < count:
                    continue
                parts = [word, *(text[s:e] for s, e in chosen[1:])]
                begin = end - len(word)
                if _mac(self._key, _join(parts)) == whole:
                    return begin, chosen[-1][1]
                last = parts[-1].rstrip(_EDGES)
                if last and last != parts[-1] and _mac(self._key, _join([*parts[:-1], last])) == whole:
                    return begin, chosen[-1][0] + len(last)
        return None

    def _known(self, word: str) -> str:
        mac = self._memory.get(word)
        if mac is None:
            if len(self._memory) >= MEMORY:
                self._memory.clear()
            mac = _mac(self._key, word)
            if len(word) <= 64:
                self._memory[word] = mac
        return mac
