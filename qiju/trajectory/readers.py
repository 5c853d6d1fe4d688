"""Readers: a store under a privacy view, in whole sessions, bounded pages or one full iteration.

A reader adds the view, the cursors and the promise of one fixed snapshot to whatever store stands behind it. It
observes: it executes nothing and changes nothing. `default_reader` picks the store for a place: the canonical SQLite
store when there is one, else a journal, else a supported older history.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from qiju.errors import AmbiguousId, BoundedReadUnsupported, NotFound, UsageError
from qiju.trajectory import frames, paging
from qiju.trajectory.sources import SessionSource, SessionSummary, SnapshotSource
from qiju.trajectory.types import (
    LossReport,
    LossTally,
    PrivacyView,
    Trajectory,
    TrajectoryCursor,
    TrajectoryPage,
    TrajectoryQuery,
    TrajectoryRecord,
)
from qiju.trajectory.views import Projector, Scrub, Scrubbed

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue

DATABASE = "qiju.db"
JOURNAL_SUFFIX = ".journal"
SELECTORS = ("trajectory", "legacy")
VERIFY_PAGES = ("addressed", "full")


class StoreTrajectoryReader:
    """Reader adapter for any conforming trajectory store.

    `store` is a `SqliteTrajectoryStore`, a `JournalTrajectoryStore`, an open `qiju.store.Store`, or any object with
    `read_session(session_id) -> Trajectory`; only those with the snapshot capability (`SnapshotSource`) can be paged.
    `verify_pages="full"` checks every byte of the snapshot on each page of a journal; `"addressed"` (default) checks
    the file's identity and length and the frames a page reads. `scrub` replaces the public views' scrubber.
    """

    def __init__(self, store: SessionSource, *, verify_pages: str = "addressed", scrub: Scrub | None = None) -> None:
        if verify_pages not in VERIFY_PAGES:
            raise UsageError(f"verify_pages is one of {', '.join(VERIFY_PAGES)}")
        self._store = _adapted(store)
        self._whole = verify_pages == "full"
        self._scrub = scrub

    @classmethod
    def from_journal(cls, path: str | Path, *, verify_pages: str = "addressed") -> StoreTrajectoryReader:
        """Open a validated read-only journal without materialising its history.

        Raises `NotFound`, `StoreDamaged` (names the offset), `StorageFailed`.
        """
        from qiju.trajectory.journal import JournalTrajectoryStore

        return cls(JournalTrajectoryStore(path, read_only=True), verify_pages=verify_pages)

    def read_session(self, session_id: str, *, view: PrivacyView = PrivacyView.REDACTED_PUBLIC) -> Trajectory:
        """All records of one session under `view`, empty when there are none, with the losses of the view.

        Raises `Refused` for a session too large to hold in memory (page it), `VerificationFailed` for a record that
        does not match its digest.
        """
        return self.projector(view).project_all(self._store.read_session(session_id))

    def read_page(
        self,
        query: TrajectoryQuery,
        cursor: TrajectoryCursor | None = None,
        *,
        view: PrivacyView = PrivacyView.REDACTED_PUBLIC,
    ) -> TrajectoryPage:
        """At most `query.limit` records (default 100) of one snapshot, in sequence order.

        Without `cursor` a snapshot is cut now; `next_cursor` and `snapshot` of the page lead back into it, whatever is
        written afterwards. Raises `CursorRejected` when the cursor was made by another store, query or view, was
        altered, or when something inside its snapshot was redacted, deleted, retagged or edited since;
        `VerificationFailed` for a record that does not match its digest; `BoundedReadUnsupported` when the store has
        no snapshots.
        """
        return paging.page_of(self._source(), query, cursor, self.projector(view), whole=self._whole)

    def walk(self, query: TrajectoryQuery, *, view: PrivacyView = PrivacyView.REDACTED_PUBLIC) -> SnapshotWalk:
        """Cut a snapshot and return an iterable over all of it; see `iter_records`."""
        return SnapshotWalk(self._source(), query, self.projector(view), self.loss)

    @property
    def loss(self) -> LossReport:
        """What the store itself could not take from an older history, before any view."""
        report = getattr(self._store, "loss", None)
        return report if isinstance(report, LossReport) else LossReport()

    @property
    def store(self) -> SessionSource:
        return self._store

    @property
    def protected_paths(self) -> tuple[Path, ...]:
        """The files this reader reads from, which no export may replace."""
        return tuple(getattr(self._store, "protected_paths", ()))

    def close(self) -> None:
        """Release files, locks and temporary indexes; safe to call twice."""
        close = getattr(self._store, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> StoreTrajectoryReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _source(self) -> SnapshotSource:
        if not isinstance(self._store, SnapshotSource):
            raise BoundedReadUnsupported(
                "the store has no bounded snapshots",
                hint="read it session by session (read_session), or import it into a Qiju store first",
            )
        return self._store

    def sessions(self) -> Iterator[SessionSummary]:
        """The sessions of the store, in order of their first record, as they are stored."""
        listed = getattr(self._store, "sessions", None)
        if listed is None:
            raise BoundedReadUnsupported("the store does not list its sessions")
        return iter(listed())

    def projector(self, view: PrivacyView) -> Projector:
        """A projector with this reader's scrubber; its losses start at none."""
        view = PrivacyView(view)
        if self._scrub is None and view is not PrivacyView.RAW_PRIVATE:
            from qiju.trajectory.scrub import scrub_for

            self._scrub = scrub_for(self._store)
        return Projector(view, self._scrub or _untouched)


class SnapshotWalk:
    """One iteration over a snapshot. `loss()` is complete after exhaustion; before that everything is partial."""

    def __init__(self, source: SnapshotSource, query: TrajectoryQuery, projector: Projector, loss: LossReport) -> None:
        self.snapshot = source.cut()
        self.projector = projector
        projector.add_loss(loss)
        origin = getattr(source, "provenance", None)
        self.provenance: dict[str, JsonValue] = origin() if origin is not None else {"source": "store"}
        self._records: Generator[TrajectoryRecord] = paging.walk_of(source, self.snapshot, query, projector)

    def __iter__(self) -> Iterator[TrajectoryRecord]:
        return self._records

    def __next__(self) -> TrajectoryRecord:
        return next(self._records)

    def loss(self) -> LossReport:
        return self.projector.loss()

    def close(self) -> None:
        """Stop early; claims nothing about the records that were not read."""
        self._records.close()


def default_reader(root: str | Path, *, selector: str = "trajectory") -> StoreTrajectoryReader:
    """Select canonical data with bounded compatibility for older histories, or explicit rollback to those.

    `root` is a Qiju home, a folder with one journal (`trajectory.journal` when there are several), a predecessor's
    home, a run folder or a folder of run folders; or the path of a database or journal itself. `selector="legacy"`
    passes over database and journals. Raises `NotFound` when nothing readable is there, `UsageError` for another
    selector, `AmbiguousId` for several journals none of which has that name.
    """
    if selector not in SELECTORS:
        raise UsageError(f"unknown selector {selector!r}", hint="selectors: " + ", ".join(SELECTORS))
    place = Path(root).expanduser()
    if selector == "trajectory":
        if place.is_file():
            return _open_file(place)
        if (place / DATABASE).is_file():
            return _open_database(place / DATABASE)
        journal = _journal_in(place)
        if journal is not None:
            return StoreTrajectoryReader.from_journal(journal)
    reader = _history(place)
    if reader is None:
        raise NotFound(
            f"no trajectories at {place}",
            hint="give a Qiju home, a journal, a run folder, or the home of the predecessor",
        )
    return reader


def _open_file(path: Path) -> StoreTrajectoryReader:
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(frames.MAGIC):
        return StoreTrajectoryReader.from_journal(path)
    if head.startswith(b"SQLite format 3\0") and path.name == DATABASE:
        return _open_database(path)
    raise NotFound(
        f"{path} is neither a store nor a journal", hint=f"a store is a file {DATABASE} in a home of its own"
    )


def _open_database(path: Path) -> StoreTrajectoryReader:
    from qiju.trajectory.store import SqliteTrajectoryStore

    return StoreTrajectoryReader(SqliteTrajectoryStore.open(path.parent))


def _journal_in(folder: Path) -> Path | None:
    if not folder.is_dir():
        return None
    journals = sorted(path for path in folder.iterdir() if path.name.endswith(JOURNAL_SUFFIX) and path.is_file())
    named = [path for path in journals if path.name == "trajectory" + JOURNAL_SUFFIX]
    if len(journals) > 1 and not named:
        raise AmbiguousId(
            f"{folder} holds {len(journals)} journals", hint="name one: " + ", ".join(path.name for path in journals)
        )
    return next(iter(named or journals), None)


def _history(place: Path) -> StoreTrajectoryReader | None:
    from qiju.trajectory import predecessor, run_folder
    from qiju.trajectory.history import HistorySource

    loss = LossTally("qiju.loss/history")
    runs = [place] if run_folder.is_run_folder(place) else []
    if not runs and place.is_dir():
        runs = sorted(path for path in place.iterdir() if path.is_dir() and run_folder.is_run_folder(path))
    if runs:
        found = [path for folder in runs for path in run_folder.run_folder_files(folder)]
        drafts = (draft for folder in runs for draft in run_folder.run_folder_drafts(folder, loss))
        return StoreTrajectoryReader(HistorySource(drafts, found, loss, source="run-folder"))
    if predecessor.is_home(place):
        found = predecessor.predecessor_files(place)
        return StoreTrajectoryReader(
            HistorySource(predecessor.predecessor_drafts(place, loss), found, loss, source="predecessor")
        )
    return None


def _adapted(store: SessionSource) -> SessionSource:
    """An open `qiju.store.Store` is taken as its trajectory half."""
    if hasattr(store, "read_session"):
        return store
    from qiju.store import Store
    from qiju.trajectory.store import SqliteTrajectoryStore

    if isinstance(store, Store):
        return SqliteTrajectoryStore(store)
    raise UsageError("the store has no read_session(session_id)")


def _untouched(text: str, _name: str, _names: frozenset[str]) -> Scrubbed:
    """For the raw view, which never asks."""
    return Scrubbed(text)
