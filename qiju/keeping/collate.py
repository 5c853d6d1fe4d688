"""One record out of the copies that the predecessor kept of it in several tiers and projects.

The predecessor appended every record to two files and moved it to a third, none of it in one transaction, so the same
id stands in several places: mostly equal, sometimes not. The rules, which no order of files or folders influences:

- Copies with the same content are one record. A copy from Parquet counts as the same when it differs only by what that
  archive loses; the exact copy is kept. The record belongs to the hottest tier it stood in.
- A copy that was redacted later stands for the copy that the redaction missed: the value must not come back through it.
- Other differences are kept: the copy that the predecessor's search showed (short before long before archive) keeps
  the id; the others' session gets `~` and eight hex digits of a keyed digest of their own content: `s~1f0c93aa:7`.
  A search by the session's prefix still finds them.

Drafts are packed, because sorting by time needs all of them at once.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

from qiju import jsontext
from qiju.jsontext import JsonValue
from qiju.legacy.parquet import loosely_equal

_RANK = {"short": 0, "long": 1, "archive": 2}


class Candidate(NamedTuple):
    """A copy as found, under the slug and id it will have. `instant`: microseconds, None when `ts` is no time."""

    project: str
    id: str
    instant: int | None
    tier: str
    exact: bool
    source: str
    packed: bytes


class Decision(NamedTuple):
    """A record to take over. `marked_from` is the id it was found under when that went to another copy, else ''."""

    project: str
    id: str
    instant: int | None
    tier: str
    packed: bytes
    sources: tuple[str, ...]
    marked_from: str
    replaced: tuple[str, ...]


def pack(value: JsonValue) -> bytes:
    return zlib.compress(jsontext.canonical(value).encode("utf-8"), 1)


def unpack(packed: bytes) -> dict[str, JsonValue]:
    value = jsontext.parse(zlib.decompress(packed), name="draft")
    assert isinstance(value, dict)
    return value


def _text(candidate: Candidate) -> bytes:
    return zlib.decompress(candidate.packed)


def collate(candidates: Iterable[Candidate], mark: Callable[[bytes], str]) -> list[Decision]:
    """Decide all copies; the result is in time order, records without a time first. `mark`: hex of a keyed digest."""
    copies: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in candidates:
        copies.setdefault((candidate.project, candidate.id), []).append(candidate)
    decisions: list[Decision] = []
    for group in copies.values():
        decisions.extend(_decide(group, mark) if len(group) > 1 else [_decision(group)])
    decisions.sort(key=lambda d: (d.instant is not None, d.instant or 0, d.project, d.id))
    return decisions


def marked_id(identity: str, digest: str) -> str:
    """The id under which another copy is kept beside the one that has `identity`; `digest` is hex of at least 8."""
    session, _, number = identity.rpartition(":")
    return f"{session}~{digest[:8]}:{number}"


def _decide(group: list[Candidate], mark: Callable[[bytes], str]) -> list[Decision]:
    # Exact copies go first, so that each inexact one meets the exact copy it may be the shadow of.
    ordered = sorted(group, key=lambda c: (not c.exact, _RANK[c.tier], _text(c), c.source))
    kinds: list[list[Candidate]] = []
    for candidate in ordered:
        same = next((kind for kind in kinds if _same(kind[0], candidate)), None)
        if same is None:
            kinds.append([candidate])
        else:
            same.append(candidate)
    kinds, replaced = _redacted_win(kinds)
    kinds.sort(key=lambda kind: (min(_RANK[c.tier] for c in kind), _text(kind[0])))
    decisions = [_decision(kinds[0], replaced=replaced)]
    for kind in kinds[1:]:
        decisions.append(_decision(kind, marked=marked_id(kind[0].id, mark(_text(kind[0])))))
    return decisions


def _decision(kind: list[Candidate], *, marked: str = "", replaced: tuple[str, ...] = ()) -> Decision:
    first = kind[0]
    tier = min((c.tier for c in kind), key=_RANK.__getitem__)
    sources = tuple(sorted(c.source for c in kind))
    found_as = first.id if marked else ""
    return Decision(first.project, marked or first.id, first.instant, tier, first.packed, sources, found_as, replaced)


def _same(kept: Candidate, other: Candidate) -> bool:
    if kept.packed == other.packed:
        return True
    return not (kept.exact and other.exact) and loosely_equal(unpack(kept.packed), unpack(other.packed))


def _redacted_win(kinds: list[list[Candidate]]) -> tuple[list[list[Candidate]], tuple[str, ...]]:
    """Drop every kind that another kind is a later redaction of; returns the rest and the places of the dropped."""
    values = [unpack(kind[0].packed) for kind in kinds]
    dropped = {
        i
        for i, value in enumerate(values)
        for j, other in enumerate(values)
        if i != j and is_redaction_of(other, value)
    }
    kept = [kind for i, kind in enumerate(kinds) if i not in dropped]
    return kept, tuple(sorted(c.source for i in dropped for c in kinds[i]))


def is_redaction_of(redacted: dict[str, JsonValue], plain: dict[str, JsonValue]) -> bool:
    """Whether `redacted` is `plain` with text replaced by the placeholders of redactions that `plain` has not had."""
    noted, before = redacted.get("redactions"), plain.get("redactions")
    if not isinstance(noted, list) or not isinstance(before, list) or len(noted) <= len(before):
        return False
    if not all(loosely_equal(left, right) for left, right in zip(noted, before, strict=False)):
        return False
    later = [entry for entry in noted[len(before) :] if isinstance(entry, dict)]
    marks = {entry.get("placeholder") for entry in later}
    words = sorted((mark for mark in marks if isinstance(mark, str) and mark), key=len, reverse=True)
    if not words:
        return False
    cut = re.compile("|".join(map(re.escape, words)))
    rest = {key: value for key, value in redacted.items() if key != "redactions"}
    other = {key: value for key, value in plain.items() if key != "redactions"}
    return _covers(rest, other, cut)


def _covers(redacted: JsonValue, plain: JsonValue, cut: re.Pattern[str]) -> bool:
    if isinstance(redacted, str) and isinstance(plain, str):
        return _covers_text(cut.split(redacted), plain)
    if isinstance(redacted, list) and isinstance(plain, list):
        return len(redacted) == len(plain) and all(map(lambda a, b: _covers(a, b, cut), redacted, plain))
    if isinstance(redacted, dict) and isinstance(plain, dict):
        # Nulls are no difference: a copy that went through Parquet has lost them.
        left = {key: value for key, value in redacted.items() if value is not None}
        right = {key: value for key, value in plain.items() if value is not None}
        return left.keys() == right.keys() and all(_covers(left[key], right[key], cut) for key in left)
    return loosely_equal(redacted, plain)


def _covers_text(pieces: list[str], plain: str) -> bool:
    """Whether `plain` is the pieces in their order with any text between them."""
    if len(pieces) == 1:
        return loosely_equal(pieces[0], plain)
    if not plain.startswith(pieces[0]) or not plain.endswith(pieces[-1]):
        return False
    at, end = len(pieces[0]), len(plain) - len(pieces[-1])
    for piece in pieces[1:-1]:
        at = plain.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return at <= end
