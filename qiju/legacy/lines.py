"""Values out of a JSONL file that may have been torn, glued, interleaved, or re-saved by an editor.

The predecessor appended each record as one line, without a transaction around it, so its files hold every trace a
crash or two writers can leave: a last line without an end, two records on one line, one record inside the halves of
another, a block of NULs where the disk lost a write. One bad line must not hide its neighbours, and nothing may go
without a trace: each piece of the file becomes a `Found` or a `Damage`, both with line numbers. Only bytes that are
there are used: a repair joins pieces or drops NULs, it never guesses text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from qiju import jsontext
from qiju.errors import InvalidJson
from qiju.jsontext import JsonValue, Number

# A torn line is looked through for whole records behind the tear; the bound keeps a hostile file from costing n^2.
_MAX_CANDIDATES = 2000
# A record spread over lines (an editor's pretty-print) is joined up to these bounds, then reported.
_MAX_JOINED_LINES = 10_000
_MAX_JOINED_CHARS = 32 * 1024 * 1024
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_BETWEEN = " \t\r\n\0,[]"
_RECORD_KEYS = ("ts", "title", "project", "body_md", "agent", "source")


class Found(NamedTuple):
    """One JSON object. `line`..`last_line` count from 1; `repair` says what was mended, or is empty."""

    line: int
    last_line: int
    value: dict[str, JsonValue]
    repair: str


class Damage(NamedTuple):
    """A piece that could not be read. `kind`: torn, invalid, not_object, encoding or unreadable."""

    line: int
    last_line: int
    kind: str
    message: str


class _Piece(NamedTuple):
    text: str
    value: JsonValue
    whole: bool
    repair: str
    reason: str
    complete: bool = False


class _Pending(NamedTuple):
    line: int
    last_line: int
    text: str


def read_values(path: Path) -> Iterator[Found | Damage]:
    """Yield every object of the file in its order, one line in memory at a time; OS errors become a `Damage`."""
    try:
        handle = path.open("rb")
    except OSError as error:
        yield Damage(0, 0, "unreadable", f"cannot be opened: {error.strerror or error}")
        return
    with handle:
        pending: _Pending | None = None
        number = 0
        while True:
            try:
                raw = handle.readline()
            except OSError as error:
                yield Damage(number + 1, number + 1, "unreadable", f"cannot be read further: {error.strerror or error}")
                break
            if not raw:
                break
            number += 1
            if number == 1:
                if _is_utf16(raw):
                    yield Damage(1, 1, "encoding", "the file is UTF-16; save it as UTF-8")
                    return
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            # A tear may split a character: its bytes are kept apart until the halves meet again.
            text = raw.decode("utf-8", "surrogateescape")
            results, pending = _line(text.rstrip("\r\n"), number, pending)
            yield from results
        if pending is not None:
            yield _torn(pending)


def _line(text: str, number: int, pending: _Pending | None) -> tuple[list[Found | Damage], _Pending | None]:
    """Read one line; `pending` is the torn piece that an earlier line left."""
    if not text.strip(_BETWEEN):
        return [], None if pending is None else _grown(pending, text, number)
    out: list[Found | Damage] = []
    pieces = _split(text, only_records=pending is not None)
    several = sum(piece.whole for piece in pieces) > 1
    for piece in pieces:
        if piece.whole and isinstance(piece.value, dict):
            notes = [piece.repair] if piece.repair else []
            notes += ["several records on one line"] if several else []
            out.append(Found(number, number, piece.value, "; ".join(notes)))
            # A writer that cut into another's line wrote one line; what comes later is not its other half.
            if pending is not None and number - pending.last_line > 1:
                out.append(_torn(pending))
                pending = None
        elif piece.whole:
            out.append(Damage(number, number, "not_object", "a JSON value that is not an object"))
        else:
            pending = _fragment(piece, number, pending, out)
    if pending is not None and (
        pending.last_line - pending.line > _MAX_JOINED_LINES or len(pending.text) > _MAX_JOINED_CHARS
    ):
        out.append(_torn(pending))
        pending = None
    return out, pending


def _fragment(piece: _Piece, number: int, pending: _Pending | None, out: list[Found | Damage]) -> _Pending | None:
    """Join a piece without an end to the torn piece before it, or let it wait for its own other half."""
    joined = _joined(pending, piece.text)
    if pending is not None and joined is not None:
        out.append(Found(pending.line, number, joined, f"put together from lines {pending.line} to {number}"))
        return None
    if not piece.text.startswith("{"):
        if pending is not None:
            return _grown(pending, piece.text, number)
        out.append(_bad(piece, number))
        return None
    if pending is not None:
        out.append(_torn(pending))
    if piece.complete:
        # Its end is there: what is wrong stands on this line, and no later line completes it.
        out.append(_bad(piece, number))
        return None
    return _Pending(number, number, piece.text)


def _split(text: str, *, only_records: bool) -> list[_Piece]:
    """Cut a line into whole objects and the fragments between them, which keep every character.

    With `only_records` (a torn piece is waiting) an object that does not look like a record is taken for a part of it.
    """
    first = _whole(text)
    if first is not None and (not only_records or _looks_like_record(first.value) or text.startswith("{")):
        return [first]
    pieces: list[_Piece] = []
    position, end = 0, len(text)
    while position < end:
        start = position
        while start < end and text[start] in _BETWEEN:
            start += 1
        if start == end:
            break
        piece, after = _value_at(text, start)
        if piece.whole and isinstance(piece.value, dict) and (not only_records or _looks_like_record(piece.value)):
            pieces.append(piece)
            position = after
            continue
        after = _next_record(text, start)
        begin = start if text[start] == "{" and not only_records else position
        pieces.append(_Piece(text[begin:after], None, False, "", piece.reason or "not JSON", piece.complete))
        position = after
    return pieces


def _whole(text: str) -> _Piece | None:
    try:
        return _Piece(text, jsontext.parse(text, name="line"), True, "", "")
    except InvalidJson:
        return None


def _value_at(text: str, position: int) -> tuple[_Piece, int]:
    """Decode the value that begins at `position`; a piece that is not whole carries the reason."""
    failed = _Piece("", None, False, "", "not JSON")
    try:
        _, end = _EXTENT.raw_decode(text, position)
    except json.JSONDecodeError as error:
        if "\0" in text:
            cleaned = _whole(text[position:].replace("\0", ""))
            if cleaned is not None and isinstance(cleaned.value, dict):
                return cleaned._replace(repair="NUL bytes dropped"), len(text)
        return failed._replace(reason=f"not JSON: {error.msg} at column {error.colno}"), position
    except RecursionError:
        return failed._replace(reason="nested too deeply"), position
    chunk = text[position:end]
    try:
        return _Piece(chunk, jsontext.parse(chunk, name="line"), True, "", ""), end
    except InvalidJson as error:
        reason = str(error)
    try:
        # Raw control characters and NaN are what the predecessor's decoder let through; they can be kept as text.
        loose = jsontext.parse(jsontext.canonical(_LOOSE.decode(chunk)), name="line")
        return _Piece(chunk, loose, True, "control characters or NaN kept as text", ""), end
    except (InvalidJson, ValueError, RecursionError):
        return failed._replace(text=chunk, reason=reason, complete=True), position


def _next_record(text: str, position: int) -> int:
    """Where the next whole record begins behind a tear, or the end of the text."""
    start = position
    for _ in range(_MAX_CANDIDATES):
        start = text.find('{"', start + 1)
        if start < 0:
            return len(text)
        piece, _after = _value_at(text, start)
        if piece.whole and _looks_like_record(piece.value):
            return start
    return len(text)


def _looks_like_record(value: JsonValue) -> bool:
    # An object nested in a torn record must not be taken for a record of its own.
    return isinstance(value, dict) and isinstance(value.get("id"), str) and sum(k in value for k in _RECORD_KEYS) >= 3


def _joined(pending: _Pending | None, fragment: str) -> dict[str, JsonValue] | None:
    if pending is None or not fragment.rstrip().endswith("}"):
        return None
    # A JSON string holds no raw line end, so pieces join without one whether the tear was inside a string or not.
    piece = _whole((pending.text + fragment).encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))
    return piece.value if piece is not None and isinstance(piece.value, dict) else None


def _grown(pending: _Pending, text: str, number: int) -> _Pending:
    return _Pending(pending.line, number, pending.text + text)


def _bad(piece: _Piece, number: int) -> Damage:
    if _NOT_UTF8.search(piece.text):
        return Damage(number, number, "encoding", "holds bytes that are not UTF-8")
    return Damage(number, number, "invalid", piece.reason)


def _torn(pending: _Pending) -> Damage:
    return Damage(pending.line, pending.last_line, "torn", "a record without its end")


def _is_utf16(raw: bytes) -> bool:
    return raw[:2] in (b"\xff\xfe", b"\xfe\xff") or raw[:2] == b"{\0" or raw[:2] == b"\0{"


def _integer(token: str) -> int | Number:
    value = int(token) if len(token) < 20 else 2**63
    return value if -(2**63) <= value < 2**63 and str(value) == token else Number(token)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


_EXTENT = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)
_LOOSE = json.JSONDecoder(
    strict=False, parse_int=_integer, parse_float=Number, parse_constant=str, object_pairs_hook=_pairs
)
