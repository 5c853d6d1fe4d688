"""Exports as canonical JSON that say where they come from and what they left out.

    {"exporter_id": ..., "format_version": ..., "privacy_view": ..., "provenance": {...},
     "records": [...], "session_id": ..., "summary": {"exact_reimport": ..., "loss": {...}, "record_count": n}}

The keys stand in canonical order and what is known only at the end stands last, so the same document can be streamed.
`provenance` names Qiju's version, the store, the snapshot, the view, the query and the version of the redaction rules.
A digest is `sha256:<hex>` over exactly the bytes written.

`export` and `reimport` hold a trajectory in memory; `export_file` holds one page. It stages beside the target, checks
the snapshot again after the last record, reads the staged bytes back, flushes, and only then replaces the target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from qiju import __version__, files, jsontext
from qiju.errors import InvalidRecord, UsageError, VerificationFailed
from qiju.trajectory.sources import Snapshot, canonical_payload
from qiju.trajectory.types import (
    ExportArtifact,
    ExportCancelled,
    FileExportReceipt,
    LossReport,
    LossTally,
    PrivacyView,
    Trajectory,
    TrajectoryQuery,
    TrajectoryRecord,
    required_text,
)

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.views import Projector, Scrub

EXPORTER_ID = "qiju.trajectory/canonical-json"
FORMAT_VERSION = "1"
CONTENT_TYPE = "application/vnd.qiju.trajectory+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class CanonicalTrajectoryExporter:
    """Canonical JSON exporter; exact for the selected projection.

    `scrub` replaces the scrubber of the public views (a callable of text and key name, see `qiju.trajectory.views`);
    without it the scrubber of this machine is used.
    """

    exporter_id = EXPORTER_ID
    format_version = FORMAT_VERSION

    def __init__(self, scrub: Scrub | None = None) -> None:
        self._scrub = scrub

    def export(self, trajectory: Trajectory, *, view: PrivacyView = PrivacyView.REDACTED_PUBLIC) -> ExportArtifact:
        """Export a trajectory held in memory. `exact_reimport` is True only for `RAW_PRIVATE` without losses.

        Raises `VerificationFailed` when a record does not match its digest.
        """
        projector = self._projector(view)
        for record in trajectory.records:
            check_digest(record)
        projected = projector.project_all(trajectory)
        state = sha256("".join(record.digest for record in projected.records).encode()).hexdigest()
        watermark = projected.records[-1].sequence if projected.records else 0
        provenance = provenance_of({"source": "trajectory"}, Snapshot(watermark, state), projector, None)
        chunks: list[bytes] = []
        loss = projector.loss()
        document = CanonicalDocument(chunks.append, projector.view, provenance)
        document.add_all(projected.records)
        document.finish(loss, projected.session_id)
        data = b"".join(chunks)
        return ExportArtifact(
            exporter_id=EXPORTER_ID,
            format_version=FORMAT_VERSION,
            content_type=CONTENT_TYPE,
            data=data,
            digest="sha256:" + sha256(data).hexdigest(),
            privacy_view=projector.view,
            exact_reimport=is_exact(projector.view, loss),
            provenance=provenance,
            loss=loss,
        )

    def export_file(
        self,
        reader: Any,
        query: TrajectoryQuery,
        target: Any,
        *,
        view: PrivacyView = PrivacyView.REDACTED_PUBLIC,
        cancelled: Any = None,
    ) -> FileExportReceipt:
        """Export a bounded snapshot through owned staging and atomic replacement.

        `reader` needs the bounded capability (`BoundedReadUnsupported` otherwise); `target` is a path; `cancelled` a
        callable, or an object with `is_set()`, asked before every record. The old file stays as it was, and no staging
        file is left, when anything fails: `ExportCancelled`, `CursorRejected`, `VerificationFailed`, `StorageFailed`,
        `Refused` for a symlink, folder or file of the source as target.
        """
        path = Path(target)
        asked = _asked(cancelled)
        with files.PathReplacement(path, protected=protected_paths(reader)) as staging:
            with staging.open("wb", buffering=1 << 18) as out:
                receipt = self.export_stream(reader, query, out, view=view, cancelled=asked)
            _validate(staging, receipt)
            if asked():
                raise _cancelled()
        return receipt

    def export_stream(
        self,
        reader: Any,
        query: TrajectoryQuery,
        out: BinaryIO,
        *,
        view: PrivacyView = PrivacyView.REDACTED_PUBLIC,
        cancelled: Any = None,
    ) -> FileExportReceipt:
        """The same document onto an open binary stream, which cannot be taken back: `export_file` is the safe form."""
        asked = _asked(cancelled)
        walk = _Walk(reader, query, PrivacyView(view))
        digest, size = sha256(), 0

        def put(data: bytes) -> None:
            nonlocal size
            digest.update(data)
            size += len(data)
            out.write(data)

        document = CanonicalDocument(put, walk.view, walk.provenance)
        for record in walk:
            if asked():
                raise _cancelled()
            document.add(record)
        loss = walk.loss()
        document.finish(loss, query.session_id if walk.view is PrivacyView.RAW_PRIVATE else None)
        return FileExportReceipt(document.count, size, "sha256:" + digest.hexdigest(), walk.view, loss=loss)

    def reimport(self, artifact: ExportArtifact) -> Trajectory:
        """The trajectory an artifact holds, as it was projected; `RAW_PRIVATE` gives the same records and digests.

        Its `loss` says what the export left out: the same count of records is no proof of equal data. `session_id` is
        '' when the records are from several sessions. Raises `VerificationFailed` when the bytes do not match their
        digest, are not canonical, or a record does not match its own; `InvalidRecord` for another format.
        """
        if "sha256:" + sha256(artifact.data).hexdigest() != artifact.digest:
            raise VerificationFailed("the export does not match its digest", hint="it was altered or cut; export again")
        document = _parsed(artifact.data)
        records = tuple(TrajectoryRecord.from_dict(value) for value in _list(document, "records"))
        for record in records:
            check_digest(record)
        _check_order(records)
        summary = document["summary"]
        if not isinstance(summary, dict) or summary.get("record_count") != len(records):
            raise VerificationFailed("the export does not hold the number of records it states")
        loss = summary.get("loss")
        if not isinstance(loss, dict):
            raise InvalidRecord("the export states no loss report")
        sessions = {record.session_id for record in records}
        session_id = document.get("session_id")
        if not isinstance(session_id, str):
            session_id = sessions.pop() if len(sessions) == 1 else ""
        return Trajectory(session_id, records, LossReport.from_dict(loss))

    def _projector(self, view: PrivacyView) -> Projector:
        from qiju.trajectory.scrub import scrub_plain
        from qiju.trajectory.views import Projector

        if self._scrub is None:
            self._scrub = scrub_plain()
        return Projector(view, self._scrub)


class CanonicalDocument:
    """Writes the canonical document piece by piece."""

    def __init__(self, put: Callable[[bytes], object], view: PrivacyView, provenance: dict[str, JsonValue]) -> None:
        self._put, self._view = put, view
        self.count = 0
        head: dict[str, JsonValue] = {
            "exporter_id": EXPORTER_ID,
            "format_version": FORMAT_VERSION,
            "privacy_view": view.value,
            "provenance": provenance,
        }
        put(jsontext.canonical(head)[:-1].encode() + b',"records":[')

    def add(self, record: TrajectoryRecord) -> None:
        text = jsontext.canonical(record.to_dict())
        self._put(("," + text if self.count else text).encode())
        self.count += 1

    def add_all(self, records: Iterable[TrajectoryRecord]) -> None:
        for record in records:
            self.add(record)

    def finish(self, loss: LossReport, session_id: str | None) -> None:
        summary: dict[str, JsonValue] = {
            "exact_reimport": is_exact(self._view, loss),
            "loss": loss.to_dict(),
            "record_count": self.count,
        }
        tail: dict[str, JsonValue] = {"session_id": session_id, "summary": summary}
        self._put(b"]," + jsontext.canonical(tail)[1:].encode())


class _Walk:
    """The records of a snapshot with its provenance and losses, from Qiju's readers or any other with `read_page`."""

    def __init__(self, reader: Any, query: TrajectoryQuery, view: PrivacyView) -> None:
        from qiju.trajectory.paging import iter_records

        self.view = view
        self._own = getattr(reader, "walk", None)
        if self._own is not None:
            self._walk = self._own(query, view=view)
            self.provenance = provenance_of(self._walk.provenance, self._walk.snapshot, self._walk.projector, query)
            self._records: Iterator[TrajectoryRecord] = iter(self._walk)
        else:
            self._tally = LossTally("qiju.loss/third-party")
            self._records = iter_records(reader, query, view=view)
            self.provenance = {"qiju_version": __version__, "source": "third-party", "view": view.value}

    def __iter__(self) -> Iterator[TrajectoryRecord]:
        return self._records

    def loss(self) -> LossReport:
        if self._own is not None:
            report: LossReport = self._walk.loss()
            return report
        if self.view is not PrivacyView.RAW_PRIVATE:
            # What another reader's projection left out is not known, and must not be taken for nothing.
            self._tally.add("*", "unknown_projection")
        return self._tally.report()


def read_artifact(data: bytes) -> ExportArtifact:
    """An artifact from the bytes of an exported file. Raises `InvalidRecord` when they are no such export."""
    document = _parsed(data)
    view, provenance, summary = document["privacy_view"], document["provenance"], document["summary"]
    loss = summary.get("loss") if isinstance(summary, dict) else None
    if not isinstance(provenance, dict) or not isinstance(summary, dict) or not isinstance(loss, dict):
        raise InvalidRecord("the export lacks its provenance or summary")
    try:
        privacy_view = PrivacyView(str(view))
    except ValueError:
        raise InvalidRecord("the export names an unknown privacy view") from None
    report = LossReport.from_dict(loss)
    return ExportArtifact(
        exporter_id=EXPORTER_ID,
        format_version=FORMAT_VERSION,
        content_type=CONTENT_TYPE,
        data=data,
        digest="sha256:" + sha256(data).hexdigest(),
        privacy_view=privacy_view,
        # What the file says of itself is not enough: an exact one has no losses and is raw.
        exact_reimport=summary.get("exact_reimport") is True and is_exact(privacy_view, report),
        provenance=provenance,
        loss=report,
    )


def check_digest(record: TrajectoryRecord) -> None:
    """Raise `VerificationFailed` unless the record's digest is that of its payload."""
    if jsontext.digest(canonical_payload(record.payload)) != record.digest:
        raise VerificationFailed(f"record {record.sequence} does not match its digest")


def protected_paths(reader: Any) -> tuple[Path, ...]:
    """The files a reader reads from: never a target."""
    paths = getattr(reader, "protected_paths", ())
    return tuple(paths() if callable(paths) else paths)


def _parsed(data: bytes) -> dict[str, JsonValue]:
    document = jsontext.parse(data, name="the export")
    names = {"exporter_id", "format_version", "privacy_view", "provenance", "records", "session_id", "summary"}
    if not isinstance(document, dict) or document.get("exporter_id") != EXPORTER_ID or set(document) != names:
        raise InvalidRecord("this is no trajectory export of Qiju")
    if required_text(document, "format_version") != FORMAT_VERSION:
        raise InvalidRecord("the export has another format version", hint=f"this Qiju reads {FORMAT_VERSION}")
    if jsontext.canonical(document).encode() != data:
        raise VerificationFailed("the export is not canonical JSON: its bytes were altered")
    return document


def _list(document: dict[str, JsonValue], name: str) -> list[JsonValue]:
    value = document[name]
    if not isinstance(value, list):
        raise InvalidRecord(f"`{name}` of the export is no list")
    return value


def _check_order(records: tuple[TrajectoryRecord, ...]) -> None:
    if any(left.sequence >= right.sequence for left, right in pairwise(records)):
        raise VerificationFailed("the records of the export are not in the order of their sequence")


def is_exact(view: PrivacyView, loss: LossReport) -> bool:
    return view is PrivacyView.RAW_PRIVATE and loss.lossless


def provenance_of(
    origin: dict[str, JsonValue], snapshot: Snapshot, projector: Projector, query: TrajectoryQuery | None
) -> dict[str, JsonValue]:
    from qiju.trajectory.scrub import rules_version

    value: dict[str, JsonValue] = {
        **origin,
        "qiju_version": __version__,
        "view": projector.view.value,
        "policy": projector.policy,
        "rules": rules_version(),
        "snapshot": {"watermark": snapshot.watermark, "state": snapshot.state},
    }
    if query is not None:
        value["query"] = {
            "session_id": projector.identifier("session_id", query.session_id),
            "run_id": projector.identifier("run_id", query.run_id),
            "work_item_id": projector.identifier("work_item_id", query.work_item_id),
            "kinds": [kind.value for kind in query.kinds],
            "after_sequence": query.after_sequence,
        }
    return value


def _validate(staging: Path, receipt: FileExportReceipt) -> None:
    """Read back what was written, before it may replace anything."""
    digest, size = sha256(), 0
    with staging.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
    if size != receipt.size_bytes or "sha256:" + digest.hexdigest() != receipt.digest:
        raise VerificationFailed(
            "the disk does not give back what was written", hint="check the disk; nothing was replaced"
        )


def _asked(cancelled: Any) -> Callable[[], bool]:
    if cancelled is None:
        return lambda: False
    if callable(cancelled):
        return lambda: bool(cancelled())
    if hasattr(cancelled, "is_set"):
        return lambda: bool(cancelled.is_set())
    raise UsageError("`cancelled` is a callable or has is_set()")


def _cancelled() -> ExportCancelled:
    return ExportCancelled("the export was cancelled", hint="the old file, if any, is as it was")
