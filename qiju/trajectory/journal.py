"""A portable single-file journal of trajectory records: what an agent runtime can write without touching the database.

One writer holds a lock file beside the journal; any number of readers, in other processes, need no lock. An append is
acknowledged when its frames are on the disk. Opening checks every frame that the kept index does not vouch for, cuts a
torn tail off (writer) or leaves it out (reader), and refuses damage anywhere else (`qiju.trajectory.frames`).

A snapshot is a length of the file, the last sequence in it, and the SHA-256 of all bytes up to there. A reader
remembers where each record lies and what its frame's digest was, so a page checks the file's identity, its length and
the frames it reads; `opened(whole=True)` hashes the whole snapshot again, at the speed of the disk and the hash.
"""

from __future__ import annotations

import hmac
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import apsw

from qiju import files, jsontext
from qiju.errors import CursorRejected, NotFound, Refused, StorageFailed, StoreDamaged
from qiju.trajectory import frames
from qiju.trajectory.filelock import WriterLock
from qiju.trajectory.frame_records import (
    entry_of,
    meta_bytes,
    record_of,
    seal_of_block,
    seal_of_frame,
    sealed_of,
)
from qiju.trajectory.index import Entry, SequenceIndex, drop, open_kept
from qiju.trajectory.sources import Sealed, SessionSummary, Snapshot, now, refuse_other, seal
from qiju.trajectory.types import (
    Trajectory,
    TrajectoryDraft,
    TrajectoryQuery,
    TrajectoryRecord,
)

CHUNK_BYTES = 1 << 22  # of frames written and flushed at once
CHUNK_RECORDS = 4096
KEPT_BEHIND = 512  # entries the kept index may lag behind a running writer
KNOWN_SNAPSHOTS = 64


class RecoveredTail(NamedTuple):
    """A torn tail that was cut off when the journal was opened: where it began, and how many bytes it had."""

    offset: int
    size_bytes: int


class JournalTrajectoryStore:
    """Durable local store with framed append, recovery of a torn tail, and a derived index.

    `path` is the journal; `<path>.lock` and `<path>.index` lie beside it and may be removed while nobody writes.
    `recover_partial_tail=False` makes a torn tail an error. `max_query_records` bounds `read_session`, in records.
    `read_only` opens without lock, changes nothing, and sees what is there when a snapshot is cut. An object belongs
    to one thread.

    Raises `NotFound` (read-only, no such file), `StoreBusy` (another writer), `StoreDamaged` (names the offset),
    `StorageFailed` (the disk refused).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        recover_partial_tail: bool = True,
        max_query_records: int = 10000,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self.recover_partial_tail = recover_partial_tail
        self.max_query_records = max_query_records
        self.recovered: RecoveredTail | None = None
        self._pending: dict[tuple[str, str], Entry] = {}
        self._known: OrderedDict[str, None] = OrderedDict()
        self._index: SequenceIndex | None = None
        self._lock = None if read_only else WriterLock(_beside(self.path, ".lock"))
        self._handle = -1
        self._end, self._last = frames.HEADER.size, 0
        self._hash: frames.Digest = sha256()
        try:
            self._open_file()
            self._open_index()
            self._extend()
        except BaseException:
            self.close()
            raise

    # Writing

    def append(self, draft: TrajectoryDraft) -> TrajectoryRecord:
        """Append one record and return it when it is durable. A draft whose `record_id` is in the session already
        gives that record when the content is the same. Raises `IdConflict` when it is not, `InvalidRecord` for a
        payload that is no JSON, `StorageFailed` when the disk refuses: nothing is appended then."""
        sealed = seal(draft)
        known = self._same(sealed)
        if known is not None:
            return self._read(known)
        self._write([sealed])
        return self._read(self._last_entry)

    def append_many(self, drafts: Iterable[TrajectoryDraft]) -> int:
        """Append drafts, a few MiB at a time, and return how many were new. Each chunk is whole or absent; when a draft
        is refused (errors as in `append`), the chunks before it stay, and a second run adds only what is missing."""
        added = size = 0
        chunk: list[Sealed] = []
        coming: dict[tuple[str, str], Sealed] = {}
        for draft in drafts:
            sealed = seal(draft)
            if sealed.record_id is not None:
                key = (sealed.session_id, sealed.record_id)
                earlier = coming.get(key)
                if earlier is not None:
                    refuse_other(sealed, earlier.kind, earlier.digest, earlier.run_id, earlier.work_item_id, earlier.ts)
                    continue
                if self._same(sealed) is not None:
                    continue
                coming[key] = sealed
            chunk.append(sealed)
            size += len(sealed.payload)
            if size >= CHUNK_BYTES or len(chunk) >= CHUNK_RECORDS:
                added += self._write(chunk)
                chunk, coming, size = [], {}, 0
        return added + (self._write(chunk) if chunk else 0)

    def _same(self, sealed: Sealed) -> Entry | None:
        """The entry of the record that this is again; None when it is new."""
        if sealed.record_id is None:
            return None
        key = (sealed.session_id, sealed.record_id)
        entry = self._pending.get(key) or self._live_index().find(*key)
        if entry is not None:
            stored = self._read(entry)
            refuse_other(sealed, stored.kind, stored.digest, stored.run_id, stored.work_item_id, stored.ts)
        return entry

    def _write(self, chunk: list[Sealed]) -> int:
        """Append a chunk, whole or not at all; returns how many records it has."""
        if self.read_only:
            raise Refused("the journal was opened read-only", hint="open it without read_only to append")
        index = self._live_index()
        blocks: list[bytes] = []
        entries: list[Entry] = []
        end = self._end
        for sequence, sealed in enumerate(chunk, self._last + 1):
            record_id = sealed.record_id or f"{self.journal_id[:6].hex()}-{sequence}"
            sealed = sealed._replace(record_id=record_id, ts=now() if sealed.ts is None else sealed.ts)
            block = frames.encode(sequence, meta_bytes(sealed), sealed.payload.encode())
            entries.append(entry_of(sequence, end, len(block), sealed, seal_of_block(block)))
            blocks.append(block)
            end += len(block)
        raw = b"".join(blocks)
        self._append_bytes(raw)
        self._hash.update(raw)
        self._end, self._last = end, entries[-1].seq
        self._last_entry = entries[-1]
        self._pending.update(((entry.session_id, entry.record_id), entry) for entry in entries)
        if len(self._pending) >= KEPT_BEHIND:
            self._flush_index(index)
        return len(entries)

    def _append_bytes(self, raw: bytes) -> None:
        """Write and flush, or leave the file as it was."""
        try:
            os.lseek(self._handle, self._end, os.SEEK_SET)
            view = memoryview(raw)
            while view:
                view = view[os.write(self._handle, view) :]
            os.fsync(self._handle)
        except OSError as error:
            try:
                os.ftruncate(self._handle, self._end)
            finally:
                self.close()  # after a failed flush nobody knows what the disk holds; opening again finds out
            raise files.disk_error(error, self.path) from error

    # Reading

    def read_session(self, session_id: str) -> Trajectory:
        """All records of one session, checked; empty when there are none. Raises `Refused` above `max_query_records`,
        because a whole session is held in memory: page it instead."""
        snapshot = self.cut()
        query = TrajectoryQuery(session_id=session_id)
        records = self.select(snapshot, query, 0, self.max_query_records + 1)
        if len(records) > self.max_query_records:
            raise Refused(
                f"the session holds more than {self.max_query_records} records",
                hint="read it in pages: read_page(reader, TrajectoryQuery(session_id=...))",
            )
        return Trajectory(session_id, tuple(records))

    def sessions(self) -> Iterator[SessionSummary]:
        """The sessions of the journal as it is now, in order of their first record."""
        self.cut()
        yield from self._live_index().sessions()

    def __len__(self) -> int:
        return self._last

    @property
    def source_id(self) -> str:
        return "journal:" + self.journal_id.hex()

    @property
    def cursor_key(self) -> bytes:
        # Whoever can read the journal could forge a cursor for it, and would gain nothing that it does not show.
        return hmac.digest(self.journal_id, b"qiju/cursor", "sha256")

    def cut(self) -> Snapshot:
        """Fix the journal as it is now. Raises `StoreDamaged` when what was appended since is damaged."""
        if self.read_only:
            self._extend()
        else:
            self._flush_index(self._live_index(), needed=True)
        state = f"{self._end}:{self._hash.hexdigest()}"
        self._remember(state)
        return Snapshot(self._last, state)

    @contextmanager
    def opened(self, snapshot: Snapshot, *, whole: bool = False) -> Iterator[None]:
        length, _colon, commitment = snapshot.state.partition(":")
        if not length.isdigit() or (int(length) > self._end and self._extend() < int(length)):
            raise CursorRejected("the journal is shorter than the snapshot")
        self._check_identity(int(length))
        if whole or snapshot.state not in self._known:
            if self._hash_up_to(int(length)).hexdigest() != commitment:
                self._known.pop(snapshot.state, None)
                raise CursorRejected("the journal has changed inside the snapshot")
            self._remember(snapshot.state)
        yield

    def select(self, snapshot: Snapshot, query: TrajectoryQuery, after: int, count: int) -> list[TrajectoryRecord]:
        entries = self._live_index().select(query, max(after, query.after_sequence or 0), snapshot.watermark, count)
        return [self._read(entry) for entry in entries]

    def provenance(self) -> dict[str, jsontext.JsonValue]:
        return {"source": "journal", "source_id": self.source_id}

    @property
    def protected_paths(self) -> tuple[Path, ...]:
        return (self.path, _beside(self.path, ".lock"), _beside(self.path, ".index"))

    def close(self) -> None:
        """Release file, index and lock; safe to call twice."""
        if self._index is not None:
            if not self.read_only and self._handle >= 0:
                self._flush_index(self._index)
            self._index.close()
            self._index = None
        if self._handle >= 0:
            self._file.close()
            self._handle = -1
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> JournalTrajectoryStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Inside

    def _open_file(self) -> None:
        try:
            if not self.read_only and (not self.path.exists() or self.path.stat().st_size == 0):
                # Written beside and renamed: no reader ever sees half a header.
                with files.FileReplacement(self.path) as out:
                    out.write(frames.header(os.urandom(32)))
            mode = os.O_RDONLY if self.read_only else os.O_RDWR
            self._handle = os.open(self.path, mode | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise NotFound(f"there is no journal at {self.path}") from None
        except OSError as error:
            raise StorageFailed(f"cannot open the journal {self.path}: {error.strerror}") from error
        self._file = os.fdopen(self._handle, "rb", buffering=0)
        self._identity = _identity(os.fstat(self._handle))
        self.journal_id = frames.read_header(self._file.read(frames.HEADER.size) or b"")

    def _open_index(self) -> None:
        kept_at = _beside(self.path, ".index")
        if self.read_only:
            self._index = SequenceIndex()
            if kept_at.exists():
                self._copy_kept(self._index, kept_at)
        else:
            self._index = open_kept(kept_at) or SequenceIndex()
        self._end, self._last, self._hash = frames.HEADER.size, 0, self._hash_up_to(frames.HEADER.size)
        if not self._resume(self._index):
            self._index.clear()

    def _copy_kept(self, index: SequenceIndex, kept_at: Path) -> None:
        try:
            kept = SequenceIndex(kept_at, read_only=True)
            try:
                index.copy_from(kept)
            finally:
                kept.close()
        except apsw.Error:
            # Its writer is busy with it, or it is no index: the private one is built from the journal itself.
            index.close()
            self._index = SequenceIndex()

    def _resume(self, index: SequenceIndex) -> bool:
        """Go on where the index ends, if every byte it covers is as it was."""
        stamp = index.stamp()
        try:
            end, last = int(stamp["end"]), int(stamp["last"])
        except (KeyError, ValueError):
            return False
        size = os.fstat(self._handle).st_size
        if stamp.get("journal") != self.journal_id.hex() or end > size or last != index.last():
            return False
        covered = self._hash_up_to(end)
        if covered.hexdigest() != stamp.get("sha256"):
            return False
        self._end, self._last, self._hash = end, last, covered
        return True

    def _extend(self) -> int:
        """Take in what was appended since; returns the new end."""
        index = self._live_index()
        size = os.fstat(self._handle).st_size
        if size < self._end:
            # A writer took back what a full disk had refused, or a recovery cut a tail: what was seen of it is void.
            index.clear()
            self._known.clear()
            self._end, self._last, self._hash = frames.HEADER.size, 0, self._hash_up_to(frames.HEADER.size)
        if size <= self._end:
            return self._end
        covered = self._hash.copy()
        scan = frames.Scan(self._file, self._end, size, next_sequence=self._last + 1, hash_into=covered)
        first = self._last == 0
        index.add(
            (entry_of(f.sequence, f.offset, f.length, sealed_of(f), seal_of_frame(f)) for f in scan),
            lambda: self._stamp(scan.good, (scan.next_sequence or 1) - 1, covered.hexdigest()),
        )
        if first:
            index.finish()
        self._end, self._last, self._hash = scan.good, (scan.next_sequence or 1) - 1, covered
        if scan.torn:
            self._tail(size)
        return self._end

    def _tail(self, size: int) -> None:
        if not self.recover_partial_tail:
            raise StoreDamaged(
                f"the journal ends in a partial record at offset {self._end}",
                hint="open it with recover_partial_tail=True to cut that off; it was never acknowledged",
            )
        if self.read_only:
            return
        try:
            os.ftruncate(self._handle, self._end)
            os.fsync(self._handle)
        except OSError as error:
            raise files.disk_error(error, self.path) from error
        self.recovered = RecoveredTail(self._end, size - self._end)

    def _stamp(self, end: int, last: int, commitment: str) -> dict[str, str]:
        return {"journal": self.journal_id.hex(), "end": str(end), "last": str(last), "sha256": commitment}

    def _flush_index(self, index: SequenceIndex, *, needed: bool = False) -> None:
        """Bring the index up to date. A reader that is just copying it only delays that, unless it is needed now."""
        if not self._pending:
            return
        try:
            index.add(self._pending.values(), lambda: self._stamp(self._end, self._last, self._hash.hexdigest()))
        except apsw.BusyError:
            if not needed:
                return
            self._rebuild()
        except apsw.Error:
            self._rebuild()
        self._pending.clear()

    def _rebuild(self) -> None:
        """Go on with a private index when the kept one cannot be used; the next opening keeps a new one."""
        if self._index is not None:
            self._index.close()
        drop(_beside(self.path, ".index"))
        self._index = SequenceIndex()
        self._end, self._last, self._hash = frames.HEADER.size, 0, self._hash_up_to(frames.HEADER.size)
        self._extend()

    def _live_index(self) -> SequenceIndex:
        if self._index is None:
            raise StorageFailed("the journal is closed")
        return self._index

    def _read(self, entry: Entry) -> TrajectoryRecord:
        self._file.seek(entry.place)
        raw = self._file.read(entry.length) or b""
        frame = frames.decode(raw, entry.place)
        if frame is None or frame.sequence != entry.seq or seal_of_frame(frame) != entry.digest:
            raise CursorRejected(
                f"the journal has changed at offset {entry.place}",
                hint="verify the journal; a record that was stored is never rewritten by Qiju",
            )
        return record_of(frame.sequence, sealed_of(frame))

    def _check_identity(self, length: int) -> None:
        """The file at the path is the one that was opened, and still as long as the snapshot."""
        try:
            there = _identity(self.path.stat())
        except OSError:
            raise CursorRejected("the journal is no longer where it was") from None
        if there != self._identity:
            raise CursorRejected("the journal was replaced by another file")
        if os.fstat(self._handle).st_size < length:
            raise CursorRejected("the journal is shorter than the snapshot")

    def _hash_up_to(self, length: int) -> frames.Digest:
        digest = sha256()
        self._file.seek(0)
        left = length
        while left and (block := self._file.read(min(frames.BLOCK, left))):
            digest.update(block)
            left -= len(block)
        return digest

    def _remember(self, state: str) -> None:
        self._known[state] = None
        self._known.move_to_end(state)
        if len(self._known) > KNOWN_SNAPSHOTS:
            self._known.popitem(last=False)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino
