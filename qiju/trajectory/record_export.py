"""Chosen records of a store as a trajectory document: what `qiju export --format trajectory` writes.

The caller chooses records (by the filters of a search) and owns the file; here they become the `session_record`s of
one snapshot, in the order of the event sequence, under a privacy view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from qiju.trajectory import events
from qiju.trajectory.exporter import CanonicalDocument, provenance_of
from qiju.trajectory.scrub import scrub_with
from qiju.trajectory.store import SqliteTrajectoryStore
from qiju.trajectory.types import FileExportReceipt, PrivacyView
from qiju.trajectory.views import Projector, Scrubbed

if TYPE_CHECKING:
    from qiju.store import Store

BATCH = 500  # records held at once


def export_records_as_trajectory(
    store: Store,
    record_seqs: Iterable[int],
    out: BinaryIO,
    *,
    view: PrivacyView = PrivacyView.REDACTED_PUBLIC,
) -> FileExportReceipt:
    """Write the records with these `record.seq` (ascending) to `out` as one canonical document.

    `view` may be given by its name. The receipt's digest and size are of the bytes written; making the file whole
    (staging, flushing, replacing) is the caller's part. Records that were stored after the call began are left out.
    Raises `CursorRejected` when one of them is redacted or deleted meanwhile, `VerificationFailed` for one that does
    not match its digest: what was written then is no export.
    """
    source = SqliteTrajectoryStore(store)
    chosen = PrivacyView(view)
    raw = chosen is PrivacyView.RAW_PRIVATE
    projector = Projector(chosen, (lambda text, _name, _names: Scrubbed(text)) if raw else scrub_with(store.engine()))
    snapshot = source.cut()
    digest, size = sha256(), 0

    def put(data: bytes) -> None:
        nonlocal size
        digest.update(data)
        size += len(data)
        out.write(data)

    document = CanonicalDocument(put, chosen, provenance_of(source.provenance(), snapshot, projector, None))
    remaining = iter(record_seqs)
    while batch := list(islice(remaining, BATCH)):
        with source.opened(snapshot):
            records = events.select_records(store.db, _ascending(batch), snapshot.watermark)
        document.add_all(projector.project(record) for record in records)
    with source.opened(snapshot):
        pass
    loss = projector.loss()
    document.finish(loss, None)
    return FileExportReceipt(document.count, size, "sha256:" + digest.hexdigest(), chosen, loss=loss)


def _ascending(seqs: Sequence[int]) -> Sequence[int]:
    return sorted(seqs)
