"""The bytes of a journal: a header, then frames of length, checksum and payload; and a torn tail told from damage.

    header   16 bytes magic, 32 bytes journal id (random), 12 bytes reserved, 4 bytes CRC-32
    frame    `FRAME`: 4 bytes magic, CRC-32 of all that follows up to the payload, CRC-32 of the fields that follow,
             length of the payload, length of the meta, sequence, SHA-256 of the payload; all big-endian
             meta (canonical JSON: ids, kind, ts), payload (canonical JSON)

The payload's SHA-256 is the record's digest, so checking a frame checks the record. Frames are only ever appended. A
killed writer leaves a short last frame; a machine that lost power may leave one that is long enough but ends in NUL
bytes, which JSON never does. Both are a *torn tail*: never acknowledged, safe to cut off. Everything else that does not
check is *damage*, because a frame that was whole may have been acknowledged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from qiju.errors import StoreDamaged

if TYPE_CHECKING:
    from typing import BinaryIO

MAGIC = b"qiju journal 1\r\n"
HEADER = struct.Struct(">16s32s12sI")
FRAME_MAGIC = b"\xf1QJ1"
FRAME = struct.Struct(">4sIIIIQ32s")
COVERED, FIELDS = 8, 12  # where, in the frame header, the bytes begin that the two checksums cover
BLOCK = 1 << 20  # bytes read at once
LARGEST = 1 << 30  # bytes of one payload; a length beyond it is never trusted


class Frame(NamedTuple):
    """One whole, checked frame; `offset` and `length` in bytes of the file."""

    offset: int
    length: int
    sequence: int
    digest: bytes
    head: bytes
    meta: bytes
    payload: bytes


def header(journal_id: bytes) -> bytes:
    fields = HEADER.pack(MAGIC, journal_id, bytes(12), 0)[:-4]
    return fields + crc32(fields).to_bytes(4, "big")


def read_header(raw: bytes) -> bytes:
    """The journal id. Raises `StoreDamaged` when these are not a journal's first bytes."""
    if len(raw) < HEADER.size or not raw.startswith(MAGIC):
        raise StoreDamaged("the file is not a Qiju journal")
    _magic, journal_id, _reserved, checksum = HEADER.unpack(raw[: HEADER.size])
    if crc32(raw[: HEADER.size - 4]) != checksum:
        raise StoreDamaged("the journal is damaged at offset 0: its header does not match its checksum")
    return bytes(journal_id)


def encode(sequence: int, meta: bytes, payload: bytes) -> bytes:
    digest = sha256(payload).digest()
    fields = FRAME.pack(FRAME_MAGIC, 0, 0, len(payload), len(meta), sequence, digest)[FIELDS:]
    covered = crc32(fields).to_bytes(4, "big") + fields + meta
    return b"".join((FRAME_MAGIC, crc32(covered).to_bytes(4, "big"), covered, payload))


def decode(raw: bytes, offset: int = 0) -> Frame | None:
    """The frame that `raw` is, checked; None when anything in it does not match."""
    lengths = _lengths(raw, 0)
    if lengths is None or FRAME.size + sum(lengths) != len(raw):
        return None
    _magic, covered_crc, _crc, _length, meta_length, sequence, digest = FRAME.unpack_from(raw)
    at = FRAME.size + meta_length
    payload = raw[at:]
    if crc32(raw[COVERED:at]) != covered_crc or sha256(payload).digest() != digest:
        return None
    return Frame(offset, len(raw), sequence, digest, raw[: FRAME.size], raw[FRAME.size : at], payload)


def _lengths(raw: bytes | memoryview, at: int) -> tuple[int, int] | None:
    """Payload and meta length of the frame header at `at`, or None when it is no frame header."""
    if len(raw) - at < FRAME.size:
        return None
    magic, _covered_crc, crc, payload_length, meta_length, _sequence, _digest = FRAME.unpack_from(raw, at)
    if magic != FRAME_MAGIC or crc32(raw[at + FIELDS : at + FRAME.size]) != crc or payload_length > LARGEST:
        return None
    return payload_length, meta_length


def head_and_meta(block: bytes) -> bytes:
    """The part of an encoded frame before its payload, which holds the payload's digest."""
    return block[: FRAME.size + FRAME.unpack_from(block)[4]]


class Scan:
    """One pass over the frames in `[start, end)` of a file, in blocks; memory is bounded by the largest frame.

    After iteration `good` is the offset behind the last whole frame, and `torn` is True when the bytes from there to
    `end` are a torn tail. Damage raises `StoreDamaged` naming the offset. `hash_into` (a hashlib object) is fed the
    bytes of every whole frame, so that a commitment to the file needs no second pass. `next_sequence` is the sequence
    the first frame must have, when known: frames count up by one.
    """

    def __init__(
        self,
        file: BinaryIO,
        start: int,
        end: int,
        *,
        next_sequence: int | None = None,
        hash_into: Digest | None = None,
    ) -> None:
        self.file, self.good, self.end = file, start, end
        self.torn = False
        self.next_sequence = next_sequence
        self.hash_into = hash_into

    def __iter__(self) -> Iterator[Frame]:
        for buffer, base in self._blocks():
            at = 0
            while (lengths := _lengths(buffer, at)) is not None:
                length = FRAME.size + lengths[0] + lengths[1]
                if len(buffer) - at < length:
                    break
                frame = decode(buffer[at : at + length], base + at)
                if frame is None or self.next_sequence not in (None, frame.sequence):
                    break
                self.next_sequence = frame.sequence + 1
                at += length
                self.good = base + at
                yield frame

    def check(self) -> int:
        """Check the frames as iteration does, from `next_sequence` (1 when not set), without making anything of them;
        returns how many there are. Little more is done than hashing."""
        count, expected = 0, self.next_sequence or 1
        unpack, size, hashed, crc = FRAME.unpack_from, FRAME.size, sha256, crc32
        for buffer, base in self._blocks():
            last, at = len(buffer) - size, 0
            while at <= last:
                # The second checksum lets a frame be told from junk before all of it is there; the first covers it.
                magic, covered_crc, _crc, length, meta_length, sequence, digest = unpack(buffer, at)
                payload = at + size + meta_length
                behind = payload + length
                if (
                    hashed(buffer[payload:behind]).digest() != digest
                    or crc(buffer[at + COVERED : payload]) != covered_crc
                ):
                    break
                if sequence != expected or magic != FRAME_MAGIC:
                    break
                expected += 1
                at = behind
                count += 1
            self.good = base + at
            self.next_sequence = expected
        return count

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        """Stretches of the file that begin where the last whole frame ended; the consumer moves `good`. What is left
        over at the end is judged."""
        buffer, base = b"", self.good  # buffer holds the file's bytes from base on
        while True:
            self.file.seek(base + len(buffer))
            fresh = self.file.read(min(BLOCK, self.end - base - len(buffer)))
            if not fresh:
                self.end = base + len(buffer)  # the file is shorter than when it was measured
            buffer = buffer + fresh if buffer else fresh
            yield buffer, base
            at = self.good - base
            if self.hash_into is not None:
                self.hash_into.update(buffer[:at])
            buffer, base = buffer[at:], self.good
            if at == 0 and not self._more(buffer, base):
                break
        if buffer:
            self._judge(buffer, base)

    def _more(self, buffer: bytes, base: int) -> bool:
        """Whether reading on can complete the frame at the front of `buffer`."""
        if base + len(buffer) >= self.end:
            return False
        if len(buffer) < FRAME.size:
            return True
        lengths = _lengths(buffer, 0)
        return lengths is not None and len(buffer) < FRAME.size + sum(lengths)

    def _judge(self, buffer: bytes, base: int) -> None:
        """Tell a torn tail from damage at `base`; `buffer` may stop before the end of the file."""
        self.file.seek(self.end - 1)
        ends_in_nul = self.file.read(1) == b"\0"
        lengths = _lengths(buffer, 0)
        if lengths is None:
            short = self.end - base < FRAME.size
        else:
            short = self.end - base < FRAME.size + sum(lengths)
        if not (short or ends_in_nul) or self._frame_follows(base + 1):
            raise StoreDamaged(
                f"the journal is damaged at offset {base}",
                hint="records before it can be read from a copy cut at that offset; nothing was changed",
            )
        self.torn = True

    def _frame_follows(self, start: int) -> bool:
        """Whether any whole frame begins at or after `start`; then what lies before it is no tail."""
        tail, base = b"", start
        while base < self.end:
            self.file.seek(base)
            block = self.file.read(min(BLOCK, self.end - base))
            if not block:
                return False
            window, window_base = tail + block, base - len(tail)
            at = window.find(FRAME_MAGIC)
            while at >= 0:
                self.file.seek(window_base + at)
                lengths = _lengths(self.file.read(FRAME.size), 0)
                if lengths is not None and window_base + at + FRAME.size + sum(lengths) <= self.end:
                    self.file.seek(window_base + at)
                    if decode(self.file.read(FRAME.size + sum(lengths))) is not None:
                        return True
                at = window.find(FRAME_MAGIC, at + 1)
            base += len(block)
            tail = window[-3:]
        return False


if TYPE_CHECKING:
    from typing import Protocol

    class Digest(Protocol):
        """What hashlib hands out."""

        def update(self, data: bytes, /) -> object: ...
        def hexdigest(self) -> str: ...
        def copy(self) -> Digest: ...
