"""Taking other histories into the store: journals, run folders, and exports of this format.

Each opens as a stream of drafts with a report that is complete when the stream is exhausted. What comes in passes the
store's redaction like everything else; the files are only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qiju.errors import NotFound, StorageFailed
from qiju.trajectory.exporter import CanonicalTrajectoryExporter, read_artifact
from qiju.trajectory.journal import JournalTrajectoryStore
from qiju.trajectory.run_folder import run_folder_drafts
from qiju.trajectory.sources import SnapshotSource
from qiju.trajectory.types import LossReport, LossTally, Trajectory, TrajectoryDraft, TrajectoryQuery, TrajectoryRecord

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.store import Store
    from qiju.trajectory.store import SqliteTrajectoryStore

BATCH = 500


class OpenedHistory(NamedTuple):
    """`drafts` to store; `report()` gives further keys for the import's report once they are through; `close` frees
    what was open."""

    drafts: Iterator[TrajectoryDraft]
    report: Callable[[], dict[str, JsonValue]]
    close: Callable[[], None] = lambda: None


HistoryReader = Callable[[Path, "Store"], OpenedHistory]


def open_journal(path: Path, _store: Store) -> OpenedHistory:
    """The records of a journal, as they were appended. Raises `NotFound`, `StoreDamaged`, `StorageFailed`."""
    journal = JournalTrajectoryStore(path, read_only=True)
    return OpenedHistory(_drafts_of(journal), lambda: _losses(LossReport()), journal.close)


def open_run_folder(path: Path, _store: Store) -> OpenedHistory:
    """The drafts of one run folder. Raises `NotFound` when it is none."""
    if not path.is_dir():
        raise NotFound(f"{path} is no run folder", hint="give the folder that holds manifest.json")
    loss = LossTally("qiju.loss/run-folder-import")
    return OpenedHistory(run_folder_drafts(path, loss), lambda: _losses(loss.report()))


def read_export(path: Path) -> tuple[Trajectory, bool]:
    """The trajectory of an exported file, and whether it is exact. Raises as `reimport` does."""
    try:
        artifact = read_artifact(path.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    return CanonicalTrajectoryExporter().reimport(artifact), artifact.exact_reimport


def draft_of(record: TrajectoryRecord) -> TrajectoryDraft:
    """A record as the draft that stores it again under its own id."""
    return TrajectoryDraft(
        record.session_id,
        record.kind,
        record.payload,
        record_id=record.record_id,
        run_id=record.run_id,
        work_item_id=record.work_item_id,
        ts=record.ts,
    )


def reimport_into(
    store: SqliteTrajectoryStore, trajectory: Trajectory, *, dry_run: bool = False
) -> dict[str, JsonValue]:
    """Store the records of an export again and say how many came out with the digest they went in with."""
    digests: list[str] = []
    imported = store.import_drafts(
        (draft_of(record) for record in trajectory.records), dry_run=dry_run, stored=digests.append
    )
    same = sum(digest == record.digest for digest, record in zip(digests, trajectory.records, strict=True))
    return {**imported.to_dict(), "same_digest": same, **_losses(trajectory.loss)}


def _drafts_of(source: SnapshotSource) -> Iterator[TrajectoryDraft]:
    snapshot, after = source.cut(), 0
    while True:
        with source.opened(snapshot):
            records = source.select(snapshot, TrajectoryQuery(), after, BATCH)
        yield from map(draft_of, records)
        if len(records) < BATCH:
            return
        after = records[-1].sequence


def _losses(loss: LossReport) -> dict[str, JsonValue]:
    return {"loss": loss.to_dict()}
