"""Does this row match? The one meaning of a search, whatever path brought the row here.

A row is compared by its folded text: the eight fields, one a line, lists one item a line, case-folded after NFC. A
literal term holds no line break, so finding it in that text is finding it within one field. Where the store keeps the
folded text (FTS5 would fold otherwise), that is used; plain ASCII folds by `lower()`, which is ten times as fast.

Patterns run over the unfolded NFC text, under a watch that really ends them (`qiju.search.watch`).
"""

from __future__ import annotations

from collections.abc import Callable

from qiju import query as asked
from qiju.record import fold, nfc
from qiju.values import NamedTuple

# The columns a candidate is read with, in the order of `Row`.
COLUMNS = (
    "record.seq, record.instant, record.digest, record.folded, record.agent, record.model, record.model_effort, "
    "record.title, record.body_md, record.tags, record.search_terms, record.next_steps"
)


class Row(NamedTuple):
    """A candidate. `tags`, `search_terms` and `next_steps` are the JSON arrays as stored."""

    seq: int
    instant: int
    digest: str
    folded: str
    agent: str
    model: str
    model_effort: str
    title: str
    body_md: str
    tags: str
    search_terms: str
    next_steps: str


Verify = Callable[[Row], bool]

Finder = Callable[[str], bool]
"""Searches one text by a compiled pattern; raises `SearchTimeout`."""


def items(stored: str, sealed: bool) -> list[str]:
    """The items of a list column. What Qiju wrote is canonical and is mostly split without a parser."""
    if stored == "[]":
        return []
    if sealed and "\\" not in stored:
        return stored[2:-2].split('","')
    import json

    try:
        return [item if isinstance(item, str) else json.dumps(item) for item in json.loads(stored)]
    except (ValueError, RecursionError):  # SQLite takes deeper and looser JSON from a hand than Python reads
        return [stored]


def fields(row: Row) -> list[str]:
    """The searched fields as stored; each item of a list counts as a field of its own."""
    sealed = bool(row.digest)
    return [
        row.agent,
        row.model,
        row.model_effort,
        row.title,
        row.body_md,
        *items(row.tags, sealed),
        *items(row.search_terms, sealed),
        *items(row.next_steps, sealed),
    ]


def folded(row: Row) -> str:
    """The text that literals are looked for in."""
    if row.folded:
        return row.folded
    text = "\n".join(fields(row))
    return text.lower() if text.isascii() else fold(text)


def exact(row: Row) -> str:
    """The same from the fields alone: the stored folded text writes NUL as another character."""
    return fold("\n".join(fields(row)))


def any_of(terms: tuple[str, ...]) -> Verify:
    text_of = _text_of(terms)
    if len(terms) == 1:
        only = terms[0]
        return lambda row: only in text_of(row)

    def verify(row: Row) -> bool:
        text = text_of(row)
        return any(term in text for term in terms)

    return verify


def all_of(terms: tuple[str, ...]) -> Verify:
    text_of = _text_of(terms)

    def verify(row: Row) -> bool:
        text = text_of(row)
        return all(term in text for term in terms)

    return verify


def phrase(text: str) -> Verify:
    """The whole of `text`, stripped, within one field; a line break in it must not join two fields."""
    wanted = fold(text.strip())
    if "\n" not in wanted:
        return any_of((wanted,))
    return lambda row: any(wanted in fold(field) for field in fields(row))


def pattern(find: Finder) -> Verify:
    return lambda row: find(nfc("\n".join(fields(row))))


def literal(query: asked.Query, match: str) -> Verify:
    """The check for a literal query under `match`, which is any, all or phrase."""
    if match == "phrase":
        return phrase(query.text)
    terms = asked.terms(query.text)
    return all_of(terms) if match == "all" else any_of(terms)


def _text_of(terms: tuple[str, ...]) -> Callable[[Row], str]:
    return exact if any("\0" in term for term in terms) else folded
