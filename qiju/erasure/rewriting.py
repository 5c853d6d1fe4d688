"""JSON values and records with a secret taken out: strings, keys and numbers, at any depth.

A record keeps a list of the redactions made in it, with the field and the place of each marker in the stored text.
Taking something out in front of a marker moves it, and renaming a key renames paths, so the list is carried along: each
changed string remembers its edits under its old path. What was taken out now is added to the list.

Two keys that become equal both stay, the second with a suffix, as at capture.
"""

from __future__ import annotations

from typing import NamedTuple

from qiju import jsontext
from qiju import record as records
from qiju.erasure.secret import Edit, Secret
from qiju.jsontext import JsonValue, Number
from qiju.record import Record
from qiju.redaction.values import Redaction, canonical_order, key_path

KIND = "literal"
RULE = "literal"


class Rewritten(NamedTuple):
    """`moved` maps the old path of each changed or renamed string to its new path and its edits."""

    value: JsonValue
    found: list[Redaction]
    moved: dict[str, tuple[str, list[Edit]]]

    @property
    def places(self) -> int:
        return len(self.found)


def rewrite(secret: Secret, value: JsonValue) -> Rewritten:
    """A copy of `value` without the secret. Numbers whose digits hold it become the placeholder."""
    found: list[Redaction] = []
    moved: dict[str, tuple[str, list[Edit]]] = {}
    root: list[JsonValue] = [None]
    todo: list[tuple[JsonValue, str, str, list[JsonValue] | dict[str, JsonValue], int | str]] = [
        (value, "", "", root, 0)
    ]
    while todo:
        item, old_path, path, target, slot = todo.pop()
        fresh: JsonValue = item
        if isinstance(item, str):
            fresh, edits = secret.replace(item)
            if edits or path != old_path:
                moved[old_path] = (path, edits)
            _note(secret, found, path, edits)
        elif isinstance(item, bool) or item is None:
            pass
        elif isinstance(item, int | Number):
            token = item.token if isinstance(item, Number) else str(item)
            if secret.spans(token):
                fresh = secret.placeholder
                _note(secret, found, path, [Edit(0, len(token), len(secret.placeholder))])
        elif isinstance(item, dict):
            names = _keys(secret, item, old_path, path, found, moved)
            made: dict[str, JsonValue] = dict.fromkeys(names.values())
            fresh = made
            for old, new in names.items():
                todo.append((item[old], key_path(old_path, old), key_path(path, new), made, new))
        else:
            listed: list[JsonValue] = [None] * len(item)
            fresh = listed
            for index, part in enumerate(item):
                todo.append((part, f"{old_path}[{index}]", f"{path}[{index}]", listed, index))
        target[slot] = fresh  # type: ignore[index]
    return Rewritten(root[0] if found else value, found, moved)


def _note(secret: Secret, found: list[Redaction], path: str, edits: list[Edit]) -> None:
    shift = 0
    for edit in edits:
        start = edit.start + shift
        found.append(Redaction(path, KIND, RULE, start, start + edit.size, secret.placeholder))
        shift += edit.size - (edit.end - edit.start)


def _keys(
    secret: Secret,
    item: dict[str, JsonValue],
    old_path: str,
    path: str,
    found: list[Redaction],
    moved: dict[str, tuple[str, list[Edit]]],
) -> dict[str, str]:
    """Old keys to new ones, in the object's order."""
    results = {key: secret.replace(key) for key in item}
    if not any(edits for _, edits in results.values()):
        if path != old_path:
            for index in range(len(item)):
                moved[_key_place(old_path, index)] = (_key_place(path, index), [])
        return {key: key for key in item}
    taken = {key for key, (_, edits) in results.items() if not edits}
    names: dict[str, str] = {}
    for key, (new, edits) in results.items():
        if edits:
            new = distinct(new, taken)
            taken.add(new)
        names[key] = new
    before = {key: index for index, key in enumerate(canonical_order(list(item)))}
    after = {key: index for index, key in enumerate(canonical_order(list(names.values())))}
    for key, new in names.items():
        place = _key_place(path, after[new])
        moved[_key_place(old_path, before[key])] = (place, results[key][1])
        _note(secret, found, place, results[key][1])
    return names


def _key_place(path: str, index: int) -> str:
    return f"{path}.~key[{index}]" if path else f"~key[{index}]"


def distinct(key: str, taken: set[str]) -> str:
    """The key, or the first of `key~2`, `key~3`, ... that is free."""
    number, candidate = 2, key
    while candidate in taken:
        candidate, number = f"{key}~{number}", number + 1
    return candidate


def rewrite_fields(secret: Secret, fields: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], int]:
    """A record's JSON object without the secret, its list of redactions carried along; and how many places changed."""
    rest = {name: value for name, value in fields.items() if name != "redactions"}
    done = rewrite(secret, rest)
    value = done.value
    assert isinstance(value, dict)
    earlier = fields.get("redactions", [])
    listed = earlier if isinstance(earlier, list) else []
    kept: list[JsonValue] = [_carried(entry, done, value) for entry in listed]
    cleaned = rewrite(secret, kept)
    if not done.places and not cleaned.places:
        return fields, 0
    entries = cleaned.value if isinstance(cleaned.value, list) else []
    added: list[JsonValue] = [one.to_json() for one in done.found]
    return {**value, "redactions": [*entries, *added]}, done.places + cleaned.places


def _carried(entry: JsonValue, done: Rewritten, value: JsonValue) -> JsonValue:
    """One recorded redaction with its path and place as they are now."""
    if not isinstance(entry, dict) or not isinstance(field := entry.get("field"), str) or field not in done.moved:
        return entry
    path, edits = done.moved[field]
    start, end = entry.get("start"), entry.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        return {**entry, "field": path}
    start, end = _shifted(start, edits, at_end=False), _shifted(end, edits, at_end=True)
    changed: dict[str, JsonValue] = {**entry, "field": path, "start": start, "end": end}
    inside = any(edit.start < _int(entry, "end") and _int(entry, "start") < edit.end for edit in edits)
    text = at_path(value, path)
    if inside and text is not None:
        changed["placeholder"] = text[start:end]
    return changed


def _int(entry: dict[str, JsonValue], name: str) -> int:
    value = entry[name]
    assert isinstance(value, int)
    return value


def _shifted(at: int, edits: list[Edit], *, at_end: bool) -> int:
    shift = 0
    for edit in edits:
        if at >= edit.end:
            shift += edit.size - (edit.end - edit.start)
        elif at > edit.start:
            return edit.start + shift + (edit.size if at_end else 0)
        else:
            break
    return at + shift


def at_path(value: JsonValue, path: str) -> str | None:
    """The string at a path of `value` (a key for `~key[i]`), or None."""
    todo: list[tuple[JsonValue, str]] = [(value, "")]
    while todo:
        item, where = todo.pop()
        if where == path and isinstance(item, str):
            return item
        if isinstance(item, dict):
            for index, key in enumerate(canonical_order(list(item))):
                if _key_place(where, index) == path:
                    return key
                if path.startswith(inner := key_path(where, key)):
                    todo.append((item[key], inner))
        elif isinstance(item, list):
            todo.extend((part, inner) for i, part in enumerate(item) if path.startswith(inner := f"{where}[{i}]"))
    return None


def rewrite_record(secret: Secret, record: Record, *, identity: str, project: str) -> tuple[Record, int]:
    """The record without the secret, under the id and project given; and how many places changed."""
    fields, count = rewrite_fields(secret, {**record.to_json(), "id": "", "project": ""})
    count += (identity != record.id) + (project != record.project)
    return records.build({**fields, "id": identity, "project": project}), count


def rewrite_text(secret: Secret, text: str) -> tuple[str, int]:
    """A JSON text (a column) without the secret, canonical when it changed."""
    done = rewrite(secret, jsontext.parse(text))
    return (jsontext.canonical(done.value), done.places) if done.places else (text, 0)
