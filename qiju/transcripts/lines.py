"""A transcript's lines as JSON values, or as a named trouble; never an exception about one line, never a lost line.

Hosts write these files while they run and crash while they write them: a line may be cut off, padded with NUL bytes,
hold half a surrogate pair, or be one base64 image of many MB. One line at a time is in memory, and no more of it than
`MAX_LINE` bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from qiju.errors import InvalidJson, NotFound, StorageFailed, UsageError
from qiju.jsontext import parse

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue

MAX_LINE = 64 << 20  # bytes; a longer line is described, not held
WHITE = b" \t\r\n"
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")

# A whole pair, then half a pair, then any other escape: leftmost matching keeps an escaped backslash from misleading
# it.
ESCAPES = re.compile(
    r"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


class Line(NamedTuple):
    """`value` when the line could be read; else `trouble` (a name of `report.ANOMALIES`) and `raw`, the text as found.

    `number` counts from 1; `size` is the line's length in bytes; `digest` is 64 hex digits over its bytes without the
    surrounding white space; `repaired` tells that half a surrogate pair was read as U+FFFD.
    """

    number: int
    size: int
    digest: str
    value: JsonValue = None
    trouble: str = ""
    raw: str = ""
    repaired: bool = False


def read_lines(path: Path, *, limit: int = MAX_LINE) -> Iterator[Line]:
    """The lines of `path` that are not blank, one at a time; `limit` in bytes.

    Raises `NotFound`, `StorageFailed` (the system refuses to read) or `UsageError` (UTF-16, a folder).
    """
    try:
        with path.open("rb") as file:
            yield from _lines(file, path, limit)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a transcript") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror or type(error).__name__}") from error


def _lines(file: BinaryIO, path: Path, limit: int) -> Iterator[Line]:
    number = 0
    while piece := file.readline(limit + 1):
        number += 1
        if number == 1:
            if piece.startswith(WIDE_MARKS):
                raise UsageError(f"{path} is UTF-16, not UTF-8", hint="convert it first: iconv -f UTF-16 -t UTF-8")
            piece = piece.removeprefix(b"\xef\xbb\xbf")
        if len(piece) > limit and not piece.endswith(b"\n"):
            yield _oversized(file, piece, number, limit)
            continue
        text = piece.strip(WHITE)
        if text:
            yield _read(text, number)


def _oversized(file: BinaryIO, piece: bytes, number: int, limit: int) -> Line:
    digest, size = sha256(), 0
    while piece:
        digest.update(piece)
        size += len(piece)
        piece = b"" if piece.endswith(b"\n") else file.readline(limit + 1)
    return Line(number, size, digest.hexdigest(), trouble="oversized_line")


def _read(piece: bytes, number: int) -> Line:
    digest, size = sha256(piece).hexdigest(), len(piece)
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError:
        raw = piece.decode("utf-8", "backslashreplace")
        return Line(number, size, digest, trouble="not_utf8", raw=raw)
    try:
        return Line(number, size, digest, parse(text, name=f"line {number}"))
    except InvalidJson:
        pass
    mended = ESCAPES.sub(lambda found: r"\ufffd" if found["half"] else found[0], text)
    if mended != text:
        try:
            return Line(number, size, digest, parse(mended, name=f"line {number}"), repaired=True)
        except InvalidJson:
            pass
    return Line(number, size, digest, trouble="torn_line", raw=text)
