"""The pieces of a file of records, one JSON text each, with the line where it begins.

Two layouts come in: JSON lines (with what editors do to them: a byte order mark, CRLF, blank lines) and one JSON list,
however it is broken into lines. The reader cuts, it does not parse: a piece that is not JSON is found out by whoever
parses it, and stays one piece, so that a bad line never hides a good one. Only one piece is in memory at a time, and a
piece has a size limit, so memory does not grow with the file.

A file in UTF-16 or UTF-32 is refused by name: guessing would store mojibake.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from qiju.errors import InvalidRecord

MAX_PIECE = 64 * 1024 * 1024  # bytes; a record is text somebody wrote, and 64 MiB of it is a mistake
CHUNK = 1024 * 1024  # bytes read at once

_FOREIGN_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class Piece(NamedTuple):
    """`data` is the piece without its line end, or None when it was longer than `MAX_PIECE`. `line` counts from 1."""

    line: int
    data: bytes | None


def read_pieces(source: BinaryIO, *, name: str) -> Iterator[Piece]:
    """Cut a file into its JSON texts. `name` is what messages call the file.

    Raises `InvalidRecord` for UTF-16 and UTF-32, and for a list that does not end.
    """
    head = source.read(CHUNK)
    refuse_foreign_encoding(head, name)
    head = head.removeprefix(codecs.BOM_UTF8)
    if head.lstrip()[:1] == b"[":
        yield from _list_items(head, source, name)
    else:
        yield from _lines(head, source)


def refuse_foreign_encoding(head: bytes, name: str) -> None:
    """Raise `InvalidRecord` when the first bytes of a file are those of UTF-16 or UTF-32."""
    encoding = next((label for mark, label in _FOREIGN_MARKS if head.startswith(mark)), "")
    if not encoding and head[:2] in (b"{\0", b"[\0", b"\0{", b"\0["):
        encoding = "UTF-16"
    if encoding:
        raise InvalidRecord(
            f"{name} is written in {encoding}; records are UTF-8",
            hint=f"convert it first: iconv -f {encoding} -t UTF-8 IN > OUT",
        )


def _lines(head: bytes, source: BinaryIO) -> Iterator[Piece]:
    number = 1
    rest = head
    overlong = False
    while True:
        *whole, rest = rest.split(b"\n")
        for line in whole:
            if overlong or len(line) > MAX_PIECE:
                yield Piece(number, None)
                overlong = False
            elif line.strip():
                yield Piece(number, line.removesuffix(b"\r"))
            number += 1
        if len(rest) > MAX_PIECE:
            overlong, rest = True, b""
        chunk = source.read(CHUNK)
        if not chunk:
            break
        # A line much longer than a chunk is collected first: joining and splitting it again each time would be n^2.
        if b"\n" not in chunk and not overlong:
            parts = [rest, chunk]
            size = len(rest) + len(chunk)
            while size <= MAX_PIECE and (chunk := source.read(CHUNK)):
                parts.append(chunk)
                size += len(chunk)
                if b"\n" in chunk:
                    break
            rest = b"".join(parts)
        elif overlong:
            rest = chunk if b"\n" in chunk else b""
        else:
            rest += chunk
    if overlong:
        yield Piece(number, None)
    elif rest.strip():
        yield Piece(number, rest.removesuffix(b"\r"))


_STRUCTURE = re.compile(rb'["\\{}\[\],\n]')
_IN_STRING = re.compile(rb'["\\\n]')


class _ListCutter:
    """Follows strings and depth through a JSON list, across chunks, and hands out the items of the list."""

    def __init__(self) -> None:
        self.line = 1
        self.depth = 0
        self.in_string = False
        self.item: list[bytes] = []
        self.size = 0
        self.first_line = 0
        self.closed = False

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        position = begin = 0
        while position < len(chunk):
            match = (_IN_STRING if self.in_string else _STRUCTURE).search(chunk, position)
            if match is None:
                break
            at = match.start()
            mark = chunk[at : at + 1]
            position = at + 1
            if mark == b"\n":
                self.line += 1
            elif mark == b"\\" and self.in_string:
                position = at + 2
            elif mark == b'"':
                self.in_string = not self.in_string
            elif mark in b"{[":
                self.depth += 1
                if self.depth == 1:
                    begin = position
            elif mark in b"}]":
                self.depth -= 1
                if self.depth == 0:
                    yield from self._finish(chunk[begin:at])
                    self.closed, begin = True, position
                    break
            elif mark == b"," and self.depth == 1:
                yield from self._finish(chunk[begin:at])
                begin = position
            if self.first_line == 0 and self.depth >= 1 and mark not in b"[,\n":
                self.first_line = self.line
        self._keep(chunk[begin:])

    def _keep(self, part: bytes) -> None:
        self.size += len(part)
        if self.size <= MAX_PIECE:
            self.item.append(part)
        else:
            self.item.clear()

    def _finish(self, part: bytes) -> Iterator[Piece]:
        self._keep(part)
        data = b"".join(self.item)
        if self.size > MAX_PIECE:
            yield Piece(self.first_line or self.line, None)
        elif data.strip():
            yield Piece(self.first_line or self.line, data.strip())
        self.item.clear()
        self.size = self.first_line = 0


def _list_items(head: bytes, source: BinaryIO, name: str) -> Iterator[Piece]:
    cutter = _ListCutter()
    chunk = head
    skip = b""
    while chunk:
        # A chunk that ends in the middle of an escape takes its second half from the next one.
        more = source.read(CHUNK)
        while more and chunk.endswith(b"\\"):
            chunk, more = chunk + more, source.read(CHUNK)
        yield from cutter.feed(chunk)
        chunk = more
        if cutter.closed:
            skip = b"".join(cutter.item) + chunk
            break
    if not cutter.closed:
        raise InvalidRecord(
            f"{name} is a JSON list without an end (line {cutter.line})", hint="the file was cut short; export it again"
        )
    if skip.strip():
        raise InvalidRecord(f"{name}: text after the end of the JSON list (line {cutter.line})")
