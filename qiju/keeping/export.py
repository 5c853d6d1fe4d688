"""`qiju export`: records out, under a view, as one whole file or none, with a receipt.

Every format is written from the same snapshot, oldest record first, beside its target; it takes the target's place only
after the snapshot was found unchanged. A redaction that comes in between starts the export again, because what was
already written may hold the value. A finished file is noted in the store before that last look, so that a redaction
a moment later names it. Standard output gets its bytes from a finished temporary file: half an export never leaves.
"""

from __future__ import annotations

import json
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from qiju import archive, jsontext, render
from qiju.errors import CursorRejected, StoreBusy, UsageError
from qiju.files import FileReplacement, FolderReplacement, PathReplacement
from qiju.keeping import dataset
from qiju.keeping.selection import Change, Changed, Selection
from qiju.keeping.viewing import Viewer
from qiju.query import Query
from qiju.trajectory.types import LossReport

if TYPE_CHECKING:
    from qiju.store import Store

FORMATS = ("jsonl", "json", "markdown", "parquet", "sqlite", "trajectory")
TO_PATH_ONLY = ("parquet", "sqlite")
WITH_CHANGES = ("jsonl", "json")
ATTEMPTS = 5
SPOOL_BYTES = 16 * 1024 * 1024  # an export to standard output up to this size never touches the disk
Progress = Callable[[int], object]


class Request(NamedTuple):
    """`output` None is standard output. `since_rev` makes it a change feed from that change number on."""

    format: str
    view: str
    output: Path | None
    since_rev: int | None = None


class Receipt(NamedTuple):
    """What was written: `digest` is `sha256:<hex>` of the file's bytes (of a folder: of its `export.json`).

    `rev` is the change number to give to the next `--since-rev`; `size_bytes` counts all files.
    """

    record_count: int
    size_bytes: int
    digest: str
    privacy_view: str
    loss: LossReport
    completed: bool
    format: str
    output: str
    watermark: int
    rev: int

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "loss": self.loss.to_dict()}


class Written(NamedTuple):
    """The part of a receipt that a format knows."""

    records: int
    size: int
    digest: str
    loss: LossReport


def check(request: Request) -> None:
    """Raise `UsageError` for a request that no run could carry out."""
    if request.output is None and request.format in TO_PATH_ONLY:
        raise UsageError(f"--format {request.format} needs --output PATH", hint="it is no text that could be printed")
    if request.since_rev is not None:
        if request.format not in WITH_CHANGES:
            raise UsageError(
                f"--since-rev gives changes and deletions, which --format {request.format} cannot hold",
                hint=f"use --format {' or '.join(WITH_CHANGES)}",
            )
        if request.since_rev < 0:
            raise UsageError(f"--since-rev must be 0 or more, not {request.since_rev}")


def export(
    store: Store, query: Query, request: Request, *, stdout: BinaryIO, timeout: float, progress: Progress
) -> Receipt:
    """Write what `query` selects; returns after the file is in place (or all of it went to `stdout`).

    Raises what `refuse_target` and the search raise, `StorageFailed`, and `StoreBusy` when records kept being changed
    while they were read. The old file is untouched then.
    """
    check(request)
    for _ in range(ATTEMPTS):
        selection = Selection(store.db, query, timeout=timeout)
        try:
            written = _once(store, selection, request, stdout, progress)
        except (Changed, CursorRejected):
            continue
        return Receipt(
            written.records,
            written.size,
            written.digest,
            request.view,
            written.loss,
            True,
            request.format,
            "-" if request.output is None else str(request.output),
            selection.snapshot.watermark,
            selection.snapshot.rev,
        )
    raise StoreBusy(
        f"records were redacted or changed {ATTEMPTS} times while they were being exported",
        hint="nothing was written; try again when the changes have ended",
    )


def _once(store: Store, selection: Selection, request: Request, stdout: BinaryIO, progress: Progress) -> Written:
    viewer = Viewer(store, request.view)
    if request.output is None:
        import tempfile

        with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
            written = _write_stream(store, selection, request, viewer, spool, progress)
            selection.check()
            spool.seek(0)
            shutil.copyfileobj(spool, stdout)
            stdout.flush()
        return written
    protected = own_files(store.home)
    if request.format == "parquet" and request.output.suffix != ".parquet":
        previous = dataset.owned(request.output)
        with FolderReplacement(request.output, owned=previous, protected=protected) as folder:
            written = _dataset(folder, selection, viewer, progress)
            _finish(store, selection, request, written)
        return written
    if request.format in TO_PATH_ONLY:
        with PathReplacement(request.output, protected=protected) as path:
            written = _single_file(path, selection, request, viewer, progress)
            _finish(store, selection, request, written)
        return written
    with FileReplacement(request.output, protected=protected) as out:
        written = _write_stream(store, selection, request, viewer, out, progress)
        _finish(store, selection, request, written)
    return written


def own_files(home: Path) -> list[Path]:
    """Files and folders of the store that no export may replace."""
    names = ("qiju.db", "qiju.db-wal", "qiju.db-shm", "store.key", "config.toml", "maintain.lock")
    return [home / name for name in (*names, "archive", "spool", "backups")]


def _finish(store: Store, selection: Selection, request: Request, written: Written) -> None:
    """Note the file where a later redaction looks, then make sure that nothing was redacted before."""
    if store.writable:
        from qiju.registry import ManifestRow, Registry

        detail = {"view": request.view, "records": written.records, "rev": selection.snapshot.rev}
        path = str(request.output.resolve()) if request.output is not None else ""
        row = ManifestRow(path, "export", (request.format,), "", written.digest.removeprefix("sha256:"), detail)
        Registry(store.db).store_rows([row])
    selection.check()


# --- formats ---------------------------------------------------------------------------------------------------------


class _Counted:
    """A binary stream that knows how much went through it, and its hash."""

    def __init__(self, out: Any) -> None:
        self.out = out
        self.size = 0
        self.hash = sha256()

    def write(self, text: str) -> None:
        data = text.encode("utf-8")
        self.size += len(data)
        self.hash.update(data)
        self.out.write(data)

    @property
    def digest(self) -> str:
        return f"sha256:{self.hash.hexdigest()}"


def _write_stream(
    store: Store, selection: Selection, request: Request, viewer: Viewer, out: Any, progress: Progress
) -> Written:
    if request.format == "trajectory":
        return _trajectory(store, selection, request, out, progress)
    counted = _Counted(out)
    if request.since_rev is not None:
        values: Iterable[dict[str, Any]] = _changes(selection, request.since_rev, viewer)
    else:
        values = _values(selection, viewer)
    write = {"jsonl": _jsonl, "json": _json, "markdown": _markdown}[request.format]
    records = write(values, counted, progress)
    return Written(records, counted.size, counted.digest, viewer.loss())


def _values(selection: Selection, viewer: Viewer) -> Iterator[dict[str, Any]]:
    for batch in selection.batches():
        yield from viewer.values(batch)


def _changes(selection: Selection, since: int, viewer: Viewer) -> Iterator[dict[str, Any]]:
    for change in selection.changes(since):
        yield _change(change, viewer)


def _change(change: Change, viewer: Viewer) -> dict[str, Any]:
    head: dict[str, Any] = {"change": change.kind, "rev": change.rev, "seq": change.seq}
    if change.row is None:
        return {**head, "id": viewer.text(change.id), "project": viewer.text(change.project), "at": change.at}
    return {**head, "record": next(viewer.values([change.row]))}


def _jsonl(values: Iterable[dict[str, Any]], out: _Counted, progress: Progress) -> int:
    count = 0
    for value in values:
        out.write(jsontext.line(value) + "\n")
        count += 1
        progress(1)
    return count


def _json(values: Iterable[dict[str, Any]], out: _Counted, progress: Progress) -> int:
    count = 0
    for count, value in enumerate(values, start=1):
        out.write("[\n  " if count == 1 else ",\n  ")
        out.write(jsontext.pretty(value).replace("\n", "\n  "))
        progress(1)
    out.write("\n]\n" if count else "[]\n")
    return count


def _markdown(values: Iterable[dict[str, Any]], out: _Counted, progress: Progress) -> int:
    count = 0
    for count, value in enumerate(values, start=1):
        out.write(("\n---\n\n" if count > 1 else "") + render.markdown(value))
        progress(1)
    return count


def _trajectory(store: Store, selection: Selection, request: Request, out: Any, progress: Progress) -> Written:
    from qiju.trajectory.record_export import export_records_as_trajectory
    from qiju.trajectory.types import PrivacyView

    seqs = array("q")
    for batch in selection.batches():
        seqs.extend(row.seq for row in batch)
        progress(len(batch))
    receipt = export_records_as_trajectory(store, sorted(seqs), out, view=PrivacyView(request.view))
    return Written(receipt.record_count, receipt.size_bytes, receipt.digest, receipt.loss)


def _viewed(selection: Selection, viewer: Viewer, progress: Progress) -> Iterator[list[archive.Row]]:
    for batch in selection.batches():
        yield viewer.rows(batch)
        progress(len(batch))


def _dataset(folder: Path, selection: Selection, viewer: Viewer, progress: Progress) -> Written:
    parts = dataset.write(folder, _viewed(selection, viewer, progress), viewer.view)
    loss = viewer.loss()
    described = dataset.describe(parts, viewer.view, selection.snapshot.rev, loss.to_dict())
    text = (json.dumps(described, ensure_ascii=False, indent=2) + "\n").encode()
    (folder / dataset.DESCRIPTION).write_bytes(text)
    size = sum(part.size for part in parts) + len(text)
    return Written(sum(part.rows for part in parts), size, f"sha256:{sha256(text).hexdigest()}", loss)


def _single_file(path: Path, selection: Selection, request: Request, viewer: Viewer, progress: Progress) -> Written:
    batches = _viewed(selection, viewer, progress)
    if request.format == "parquet":
        count = archive.write_groups(path, archive.joined(batches), view=viewer.view).rows
    else:
        from qiju.keeping import public_copy

        about = {
            "made_by": "qiju export --format sqlite",
            "privacy_view": viewer.view,
            "rev": str(selection.snapshot.rev),
        }
        count = public_copy.build(path, chain.from_iterable(batches), about=about)
    with path.open("rb") as handle:
        import hashlib

        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return Written(count, path.stat().st_size, f"sha256:{digest}", viewer.loss())
