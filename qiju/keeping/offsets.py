"""Recorded redactions that came with a record, after another redaction moved the texts they point into.

An entry's `start` and `end` cover its placeholder in the stored text. When today's rules replace something in front of
it, the placeholder stands elsewhere: it is looked for and the entry follows it, or loses its place.
"""

from __future__ import annotations

from qiju.erasure.rewriting import at_path
from qiju.jsontext import JsonValue


def settle(fields: dict[str, JsonValue], made: int) -> dict[str, JsonValue]:
    """The record's fields with each entry of `redactions` pointing at its placeholder.

    The last `made` entries were written just now and are right. An entry that names no place is left as it is.
    """
    entries = fields.get("redactions")
    if not isinstance(entries, list) or not made or made == len(entries):
        return fields
    taken = {place for entry in entries[len(entries) - made :] if (place := _place(entry)) is not None}
    settled: list[JsonValue] = []
    for entry in entries[: len(entries) - made]:
        place = _place(entry)
        if place is None or not isinstance(entry, dict):
            settled.append(entry)
            continue
        field, start, end = place
        text, placeholder = at_path(fields, field), str(entry["placeholder"])
        if text is None or text[start:end] == placeholder:
            taken.add(place)
            settled.append(entry)
            continue
        found = text.find(placeholder)
        while found >= 0 and (field, found, found + len(placeholder)) in taken:
            found = text.find(placeholder, found + 1)
        moved = {name: value for name, value in entry.items() if name not in ("start", "end")}
        if found >= 0:
            taken.add((field, found, found + len(placeholder)))
            moved.update(start=found, end=found + len(placeholder))
        settled.append(moved)
    return {**fields, "redactions": [*settled, *entries[len(entries) - made :]]}


def _place(entry: JsonValue) -> tuple[str, int, int] | None:
    if not isinstance(entry, dict):
        return None
    field, start, end, placeholder = (entry.get(name) for name in ("field", "start", "end", "placeholder"))
    if isinstance(field, str) and isinstance(start, int) and isinstance(end, int) and isinstance(placeholder, str):
        return field, start, end
    return None
