"""Older histories as a bounded source: a private copy in a nameless temporary file, indexed, digest by digest.

The predecessor's files and run folders have no sequence, no digests and no snapshot. Reading them once into a file that
the operating system removes with this process gives them all three, with memory bounded by a record, and mends what a
torn line left. The files themselves are only read. When one of them changes afterwards, cursors are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from qiju import jsontext
from qiju.errors import CursorRejected, Refused, StorageFailed, VerificationFailed
from qiju.trajectory.index import Entry, SequenceIndex
from qiju.trajectory.sources import SessionSummary, Snapshot, seal
from qiju.trajectory.types import LossReport, LossTally, RecordKind, Trajectory, TrajectoryDraft, TrajectoryQuery
from qiju.trajectory.types import TrajectoryRecord as Record


class HistorySource:
    """A fixed copy of `drafts`, read from `files`. `loss` tells what could not be read, filled in by the reader of the
    drafts while they stream. `max_query_records` bounds `read_session`, in records."""

    def __init__(
        self,
        drafts: Iterable[TrajectoryDraft],
        files: Sequence[Path],
        loss: LossTally,
        *,
        source: str,
        max_query_records: int = 10000,
    ) -> None:
        self.max_query_records = max_query_records
        self._source = source
        # Reader-local: nothing in the files could carry an identity or a key from one reader to the next.
        self._key = os.urandom(32)
        self._files = [(path, _stamp(path)) for path in files]
        self._index: SequenceIndex | None = SequenceIndex()
        try:
            self._index.finish()
            self._index.add(_entries(drafts, self._index))
            self._last = self._index.last()
        except BaseException:
            self.close()
            raise
        self.loss: LossReport = loss.report()

    @property
    def source_id(self) -> str:
        return f"{self._source}:{self._key[:8].hex()}"

    @property
    def cursor_key(self) -> bytes:
        return self._key

    def cut(self) -> Snapshot:
        return Snapshot(self._last, "copy")

    @contextmanager
    def opened(self, snapshot: Snapshot, *, whole: bool = False) -> Iterator[None]:
        """Both forms compare size, time of change and identity of every file; the copy itself cannot change."""
        if any(_stamp(path) != stamp for path, stamp in self._files):
            raise CursorRejected("a file of the history has changed since it was read", hint="open the reader again")
        yield

    def select(self, snapshot: Snapshot, query: TrajectoryQuery, after: int, count: int) -> list[Record]:
        if self._index is None:
            raise StorageFailed("the reader is closed")
        entries = self._index.select(query, max(after, query.after_sequence or 0), snapshot.watermark, count)
        return [_record(entry) for entry in entries]

    def read_session(self, session_id: str) -> Trajectory:
        records = self.select(self.cut(), TrajectoryQuery(session_id=session_id), 0, self.max_query_records + 1)
        if len(records) > self.max_query_records:
            raise Refused(
                f"the session holds more than {self.max_query_records} records",
                hint="read it in pages: read_page(reader, TrajectoryQuery(session_id=...))",
            )
        return Trajectory(session_id, tuple(records), self.loss)

    def sessions(self) -> Iterator[SessionSummary]:
        if self._index is None:
            raise StorageFailed("the reader is closed")
        yield from self._index.sessions()

    def provenance(self) -> dict[str, jsontext.JsonValue]:
        return {"source": self._source, "source_id": self.source_id}

    @property
    def protected_paths(self) -> tuple[Path, ...]:
        return tuple(path for path, _stamp in self._files)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


def _entries(drafts: Iterable[TrajectoryDraft], index: SequenceIndex) -> Iterator[Entry]:
    """Number the drafts. The same record again is passed over; another one under the same id gets a mark behind it."""
    sequence = 0
    for draft in drafts:
        sealed = seal(draft)
        digest = bytes.fromhex(sealed.digest)
        given = record_id = sealed.record_id or f"record-{sequence + 1}"
        copies = 1
        while (known := index.find(sealed.session_id, record_id)) is not None and known.digest != digest:
            copies += 1
            record_id = f"{given}~{copies}"
        if known is not None:
            continue
        sequence += 1
        yield Entry(
            sequence,
            record_id,
            sealed.session_id,
            sealed.run_id,
            sealed.work_item_id,
            sealed.kind.value,
            sealed.ts,
            digest,
            0,
            len(sealed.payload),
            sealed.payload,
        )


def _record(entry: Entry) -> Record:
    text = entry.payload or ""
    payload = jsontext.parse(text, name="payload")
    if sha256(text.encode()).digest() != entry.digest or not isinstance(payload, dict):
        raise VerificationFailed(f"record {entry.seq} does not match its digest")
    return Record(
        entry.seq,
        entry.record_id,
        entry.session_id,
        entry.run_id,
        entry.work_item_id,
        RecordKind(entry.kind),
        entry.ts,
        payload,
        entry.digest.hex(),
    )


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
