"""The ATIF exporter: one session of a reader, as the same two calls that the canonical exporter has."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from qiju.errors import NotFound, UsageError
from qiju.files import FileReplacement
from qiju.trajectory.types import ExportCancelled, FileExportReceipt, PrivacyView, TrajectoryQuery
from qiju.transcripts.atif import atif_bytes, to_atif

if TYPE_CHECKING:
    from qiju.trajectory.readers import StoreTrajectoryReader


class AtifExporter:
    """Exports the records of one session as an ATIF document. The document is in memory: it is one JSON value."""

    exporter_id = "qiju.atif"

    def export_file(
        self,
        reader: StoreTrajectoryReader,
        query: TrajectoryQuery,
        target: Path,
        *,
        view: PrivacyView = PrivacyView.REDACTED_PUBLIC,
        cancelled: Callable[[], bool] | None = None,
    ) -> FileExportReceipt:
        """Write the document to `target` as a whole or not at all. Raises as `export_stream`, and `Refused` for a
        symlink, a folder or a file of the source as target, `StorageFailed` when the disk refuses."""
        data, receipt = self._document(reader, query, PrivacyView(view), cancelled)
        with FileReplacement(target, protected=reader.protected_paths) as out:
            out.write(data)
        return receipt

    def export_stream(
        self,
        reader: StoreTrajectoryReader,
        query: TrajectoryQuery,
        out: BinaryIO,
        *,
        view: PrivacyView = PrivacyView.REDACTED_PUBLIC,
        cancelled: Callable[[], bool] | None = None,
    ) -> FileExportReceipt:
        """Write the document to an open binary stream.

        Raises `UsageError` when the query names no session, `NotFound` when nothing matches it, `VerificationFailed`,
        `CursorRejected`, `ExportCancelled` when `cancelled`, asked before every record, says so.
        """
        data, receipt = self._document(reader, query, PrivacyView(view), cancelled)
        out.write(data)
        return receipt

    def _document(
        self,
        reader: StoreTrajectoryReader,
        query: TrajectoryQuery,
        view: PrivacyView,
        cancelled: Callable[[], bool] | None,
    ) -> tuple[bytes, FileExportReceipt]:
        if query.session_id is None:
            raise UsageError("an ATIF document holds one session", hint="name it: --session ID")
        walk = reader.walk(query, view=view)
        records = []
        for record in walk:
            if cancelled is not None and cancelled():
                raise ExportCancelled("the export was cancelled", hint="the old file, if any, is as it was")
            records.append(record)
        if not records:
            raise NotFound(
                f"nothing of session {query.session_id!r} matches", hint="'qiju trajectory sessions' lists sessions"
            )
        document, loss = to_atif(records[0].session_id, view.value, records, walk.loss())
        data = atif_bytes(document)
        digest = "sha256:" + sha256(data).hexdigest()
        return data, FileExportReceipt(len(records), len(data), digest, view, loss=loss)
