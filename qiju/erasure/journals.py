"""Trajectory journals without a secret: frame by frame, each with its checksums and digest made anew.

A journal is append-only for its writer; an erasure is the one thing that may rewrite it, whole and under its writer's
lock. The index beside it vouches for the old frames and is dropped: opening the journal builds another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qiju import jsontext
from qiju.erasure.rewriting import rewrite
from qiju.files import FileReplacement
from qiju.trajectory import frames

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret

MAGIC = frames.MAGIC


def clean(path: Path, secret: Secret) -> None:
    """Write the journal anew without the secret. Raises `StoreBusy` while somebody writes it, `StoreDamaged`."""
    from qiju.trajectory.filelock import WriterLock
    from qiju.trajectory.index import drop

    lock = WriterLock(path.with_name(path.name + ".lock"))
    try:
        with path.open("rb") as source, FileReplacement(path) as out:
            head = source.read(frames.HEADER.size)
            frames.read_header(head)
            out.write(head)
            for frame in frames.Scan(source, frames.HEADER.size, path.stat().st_size):
                meta, payload = (_json(secret, part) for part in (frame.meta, frame.payload))
                out.write(frames.encode(frame.sequence, meta, payload))
        drop(path.with_name(path.name + ".index"))
    finally:
        lock.release()


def _json(secret: Secret, data: bytes) -> bytes:
    from qiju.erasure.texts import without

    value = jsontext.parse(data)
    changed = without(secret, value)
    return data if changed is value else jsontext.canonical(rewrite(secret, changed).value).encode("utf-8")
