"""Between a frame's bytes and a trajectory record: what a frame's meta says, and what the index keeps of it."""

from __future__ import annotations

import json
from hashlib import sha256

from qiju import jsontext
from qiju.errors import InvalidJson, StoreDamaged
from qiju.trajectory import frames
from qiju.trajectory.index import Entry
from qiju.trajectory.sources import Sealed
from qiju.trajectory.types import RecordKind, TrajectoryRecord

REQUIRED = ("session_id", "record_id")
OPTIONAL = ("run_id", "work_item_id", "ts")


def meta_bytes(sealed: Sealed) -> bytes:
    # Texts and null only, under keys in order: what the plain encoder writes is canonical, and it is quick.
    meta = {
        "kind": sealed.kind.value,
        "record_id": sealed.record_id,
        "run_id": sealed.run_id,
        "session_id": sealed.session_id,
        "ts": sealed.ts,
        "work_item_id": sealed.work_item_id,
    }
    return json.dumps(meta, ensure_ascii=False, separators=(",", ":")).encode()


def sealed_of(frame: frames.Frame) -> Sealed:
    """The record in a frame whose checksums have held. Raises `StoreDamaged` when they vouch for something else."""
    try:
        meta = json.loads(frame.meta)
        kind = RecordKind(meta["kind"])
        payload = frame.payload.decode("utf-8")
        texts = [meta[name] for name in REQUIRED], [meta[name] for name in OPTIONAL]
    except (ValueError, KeyError, TypeError):
        raise _no_record(frame.offset) from None
    (session_id, record_id), (run_id, work_item_id, ts) = texts
    if not all(isinstance(text, str) and text for text in texts[0]):
        raise _no_record(frame.offset)
    if not all(text is None or isinstance(text, str) for text in texts[1]):
        raise _no_record(frame.offset)
    return Sealed(session_id, record_id, run_id, work_item_id, kind, ts, payload, frame.digest.hex())


def record_of(sequence: int, sealed: Sealed) -> TrajectoryRecord:
    """The record as it is served. Raises `StoreDamaged` when its payload is no JSON object."""
    try:
        payload = jsontext.parse(sealed.payload, name="payload")
    except InvalidJson:
        payload = None
    if not isinstance(payload, dict):
        raise StoreDamaged(f"record {sequence} of the journal is no JSON object")
    return TrajectoryRecord(
        sequence,
        str(sealed.record_id),
        sealed.session_id,
        sealed.run_id,
        sealed.work_item_id,
        sealed.kind,
        sealed.ts,
        payload,
        sealed.digest,
    )


def entry_of(sequence: int, offset: int, length: int, sealed: Sealed, digest: bytes) -> Entry:
    return Entry(
        sequence,
        str(sealed.record_id),
        sealed.session_id,
        sealed.run_id,
        sealed.work_item_id,
        sealed.kind.value,
        None,
        digest,
        offset,
        length,
    )


def seal_of_block(block: bytes) -> bytes:
    """What the index remembers of a frame: a digest over its header, which holds the payload's, and its meta."""
    return sha256(frames.head_and_meta(block)).digest()


def seal_of_frame(frame: frames.Frame) -> bytes:
    return sha256(frame.head + frame.meta).digest()


def _no_record(offset: int) -> StoreDamaged:
    return StoreDamaged(f"the journal holds something that is no record at offset {offset}")
