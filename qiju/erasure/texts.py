"""Text files without a secret: JSON documents and lines as JSON, so that they stay valid; all else byte for byte.

A file is read a line at a time and written beside itself, then renamed into place. What is JSON is taken apart, so that
two keys that become equal both stay and the recorded redactions of a record keep their places; a line that is no JSON
is replaced as text. The old file stays untouched when anything fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qiju import jsontext
from qiju.erasure.rewriting import rewrite, rewrite_fields
from qiju.errors import InvalidJson
from qiju.files import FileReplacement
from qiju.jsontext import JsonValue

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret

WHOLE = 64 * 1024 * 1024  # bytes up to which a file is tried as one JSON document


def clean(path: Path, secret: Secret) -> None:
    """Write the file anew without the secret. Raises `StorageFailed` naming it when the disk refuses."""
    if path.stat().st_size <= WHOLE:
        data = path.read_bytes()
        lines: Iterator[bytes] = iter((_document(data, secret),)) if _is_document(data) else _lines(data, secret)
    else:
        lines = _file_lines(path, secret)
    with FileReplacement(path) as out:
        for line in lines:
            out.write(line)


def hidden(data: bytes, secret: Secret) -> int:
    """How many JSON values, document or lines, hold the secret once their escapes are undone."""
    if _is_document(data):
        return int(without(secret, value := jsontext.parse(data)) is not value)
    count = 0
    for line in data.splitlines():
        try:
            value = jsontext.parse(line)
        except (InvalidJson, RecursionError):
            continue
        count += without(secret, value) is not value
    return count


def clean_name(secret: Secret, path: Path) -> Path:
    """A free path beside `path` whose name does not hold the secret."""
    wanted = secret.name(path.name)
    candidate, number = path.with_name(wanted), 2
    while candidate.exists():
        stem, dot, suffix = wanted.partition(".")
        candidate, number = path.with_name(f"{stem}-{number}{dot}{suffix}"), number + 1
    return candidate


def _is_document(data: bytes) -> bool:
    """Whether the bytes are one JSON value; several lines with a value each are not."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        jsontext.parse(data)
    except (InvalidJson, RecursionError):
        return False
    return True


def _document(data: bytes, secret: Secret) -> bytes:
    value = without(secret, jsontext.parse(data))
    pretty = b"\n" in data.strip()
    text = jsontext.pretty(value) if pretty else jsontext.canonical(value)
    return text.encode("utf-8") + (b"\n" if data.endswith(b"\n") else b"")


def _lines(data: bytes, secret: Secret) -> Iterator[bytes]:
    for line in data.splitlines(keepends=True):
        yield _line(line, secret)


def _file_lines(path: Path, secret: Secret) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            yield _line(line, secret)


def _line(line: bytes, secret: Secret) -> bytes:
    body = line.rstrip(b"\r\n")
    if body.lstrip()[:1] in (b"{", b"["):
        try:
            value = jsontext.parse(body)
        except (InvalidJson, RecursionError):
            return _raw(line, secret)
        changed = without(secret, value)
        if changed is not value:
            return jsontext.canonical(changed).encode("utf-8") + line[len(body) :]
    return _raw(line, secret)


def _raw(data: bytes, secret: Secret) -> bytes:
    """Bytes with every hit replaced, in UTF-8 or UTF-16 as it stands there."""
    spans = sorted((at, at + size) for at, size in secret.hits(data)) if secret.in_bytes(data) else []
    if not spans:
        return data
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        if start < at:
            continue
        found = data[start:end]
        kind = "utf-8" if b"\0" not in found else "utf-16-le" if found[1:2] == b"\0" else "utf-16-be"
        parts += (data[at:start], secret.placeholder.encode(kind))
        at = end
    parts.append(data[at:])
    return b"".join(parts)


def without(secret: Secret, value: JsonValue) -> JsonValue:
    """A JSON value without the secret; the same object when it did not hold it.

    Records keep their list of redactions in order; a trajectory record gets the digest of its new payload.
    """
    if isinstance(value, list):
        return _list_without(secret, value)
    if not isinstance(value, dict):
        done = rewrite(secret, value)
        return done.value if done.places else value
    if isinstance(value.get("redactions"), list) and "body_md" in value:
        changed, count = rewrite_fields(secret, value)
        return _renamed(secret, value, changed) if count else value
    inner = {
        name: without(secret, part)
        for name, part in value.items()
        if (name == "records" and isinstance(part, list)) or (name == "payload" and isinstance(part, dict))
    }
    done = rewrite(secret, {name: part for name, part in value.items() if name not in inner})
    if not done.places and all(part is value[name] for name, part in inner.items()):
        return value
    assert isinstance(done.value, dict)
    whole = {**done.value, **inner}
    if "payload" in inner and isinstance(whole.get("digest"), str):
        whole["digest"] = jsontext.digest(jsontext.canonical(inner["payload"]))
    return whole


def _list_without(secret: Secret, value: list[JsonValue]) -> JsonValue:
    parts = [without(secret, part) for part in value]
    return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts


def _renamed(secret: Secret, old: dict[str, JsonValue], new: dict[str, JsonValue]) -> JsonValue:
    """Id and project of a record as the store itself would spell them."""
    for name, spell in (("id", secret.word), ("project", secret.name)):
        text = old.get(name)
        if isinstance(text, str):
            new[name] = spell(text)
    return new
