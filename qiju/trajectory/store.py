"""The canonical trajectory store: the trajectory half of a Qiju store.

Whatever comes in passes the store's redaction engine first, every string of it: payload, keys, ids. Then it is sealed
(canonical JSON, digest) and written. A draft of kind `session_record` becomes a Qiju record, which the schema puts into
the event sequence by reference; every other kind becomes an event row. An import is one transaction: all or nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from qiju import record as records
from qiju import storekey
from qiju.errors import InvalidRecord, Refused
from qiju.place.slug import slugify
from qiju.projects import Home, ensure
from qiju.store import Bulk, Store, database_path
from qiju.trajectory import events
from qiju.trajectory.sources import Sealed, SessionSummary, Snapshot, now, plain, seal
from qiju.trajectory.types import RecordKind, Trajectory, TrajectoryDraft, TrajectoryQuery, TrajectoryRecord

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.redaction import Redaction

ACTION = "trajectory"  # the word in the redaction audit


class Imported(NamedTuple):
    """What an import did; `read = added + identical`. `redactions` counts what was replaced in what was added."""

    read: int
    added: int
    identical: int
    redactions: int

    def to_dict(self) -> dict[str, JsonValue]:
        return dict(self._asdict())


class SqliteTrajectoryStore:
    """The trajectory half of an open `qiju.store.Store`. `max_query_records` bounds `read_session`, in records.

    Not shared between threads. Closing it closes the store only when `open` opened it.
    """

    def __init__(self, store: Store, *, max_query_records: int = 10000) -> None:
        self.store = store
        self.max_query_records = max_query_records
        self._owned = False

    @classmethod
    def open(cls, home: Path, *, writable: bool = False) -> SqliteTrajectoryStore:
        """The store of a home, with the home's configuration (its redaction rules count for the public view, too).
        Raises what `Store.open` and `Store.open_for_reading` raise, and `BadConfiguration`."""
        from qiju.place.config import load_config

        config = load_config(home)
        opened = cls(Store.open(home, config) if writable else Store.open_for_reading(home, config))
        opened._owned = True
        return opened

    # Writing

    def append(self, draft: TrajectoryDraft) -> TrajectoryRecord:
        """Redact, store and return one record, durable when this returns. A draft whose id the session holds already
        gives that record when the content is the same.

        Raises `IdConflict` when it is not, `InvalidRecord` for a payload that is no JSON (or, as `session_record`, no
        record), `RedactionFailed`, `StoreBusy`, `StorageFailed`; nothing is stored then.
        """
        with self.store.bulk() as bulk:
            sequence, _added, _redactions = self._add(draft, bulk)
        with self.store.db.read():
            return events.select(self.store.db, TrajectoryQuery(), sequence - 1, sequence, 1)[0]

    def append_many(self, drafts: Iterable[TrajectoryDraft]) -> int:
        """Store drafts in one transaction and return how many were new. Raises as `append`; then none is stored."""
        return self.import_drafts(drafts).added

    def import_drafts(
        self,
        drafts: Iterable[TrajectoryDraft],
        *,
        dry_run: bool = False,
        stored: Callable[[str], object] | None = None,
    ) -> Imported:
        """Store drafts in one transaction and say what became of them; idempotent for drafts with record ids.

        `dry_run` does the same work and takes it back. `stored` is told the digest of each draft as it is stored.
        Raises as `append`; then none is stored.
        """
        read = added = redactions = 0
        try:
            with self.store.bulk() as bulk:
                for draft in drafts:
                    sequence, new, made = self._add(draft, bulk)
                    read, added, redactions = read + 1, added + new, redactions + made
                    if stored is not None:
                        stored(events.digest_of(self.store.db, sequence))
                if dry_run:
                    raise _TakenBack
        except _TakenBack:
            pass
        return Imported(read, added, read - added, redactions)

    def _add(self, draft: TrajectoryDraft, bulk: Bulk) -> tuple[int, bool, int]:
        """Sequence, whether it is new, and the number of redactions made."""
        if draft.kind is RecordKind.SESSION_RECORD:
            return self._add_record(draft, bulk)
        sealed, redactions = self._admit(draft)
        db = self.store.db
        if draft.record_id is not None:
            known = events.find(db, sealed.session_id, str(sealed.record_id))
            if known is not None:
                events.same_or_conflict(known, sealed)
                return known.seq, False, 0
        sequence = events.insert(db, sealed._replace(ts=sealed.ts or now()))
        events.audit(db, sequence, redactions, ACTION)
        return sequence, True, len(redactions)

    def _admit(self, draft: TrajectoryDraft) -> tuple[Sealed, list[Redaction]]:
        engine = self.store.engine()
        payload, redactions = engine.redact_value(plain(draft.payload))
        if not isinstance(payload, dict):
            raise InvalidRecord("the payload of a trajectory draft is a JSON object")

        def clean(text: str | None) -> str | None:
            return None if text is None else engine.redact_text(text).text

        redacted = TrajectoryDraft(
            str(clean(draft.session_id)),
            draft.kind,
            payload,
            record_id=clean(draft.record_id) or str(uuid.uuid4()),
            run_id=clean(draft.run_id),
            work_item_id=clean(draft.work_item_id),
            ts=clean(draft.ts),
        )
        return seal(redacted), redactions

    def _add_record(self, draft: TrajectoryDraft, bulk: Bulk) -> tuple[int, bool, int]:
        fields = records.check(draft.payload)
        fields.setdefault("source", "agent")
        project = fields.get("project")
        if not isinstance(project, str) or not project:
            raise InvalidRecord("a session_record needs the project it belongs to", hint='give its payload a "project"')
        if draft.record_id is not None:
            fields.setdefault("id", draft.record_id)
        admitted = self.store.admit(fields, session_id=draft.session_id, session_source="import")
        slug = str(admitted.fields.get("project") or project)
        home_of = Home(slug if slug == slugify(slug) else slugify(slug), named=True)
        logged = bulk.add(admitted, ensure(self.store.db.connection, home_of), action=ACTION)
        sequence = self.store.db.value("SELECT seq FROM trajectory_event WHERE record_seq = ?", (logged.seq,))
        return int(sequence), logged.created, logged.redactions if logged.created else 0

    # Reading

    def read_session(self, session_id: str) -> Trajectory:
        """All records of one session, checked; empty when there are none. Raises `Refused` above `max_query_records`,
        because a whole session is held in memory: page it instead."""
        query = TrajectoryQuery(session_id=session_id)
        with self.store.db.read():
            watermark = events.cut(self.store.db).watermark
            found = events.select(self.store.db, query, 0, watermark, self.max_query_records + 1)
        if len(found) > self.max_query_records:
            raise Refused(
                f"the session holds more than {self.max_query_records} records",
                hint="read it in pages: read_page(reader, TrajectoryQuery(session_id=...))",
            )
        return Trajectory(session_id, tuple(found))

    def sessions(self) -> list[SessionSummary]:
        """The sessions of the store, in order of their first record."""
        with self.store.db.read():
            return list(events.sessions(self.store.db))

    def count(self) -> int:
        """How many records the trajectory of this store has."""
        with self.store.db.read():
            return int(self.store.db.value("SELECT count(*) FROM trajectory_event"))

    def verify(self) -> list[events.EventProblem]:
        """What is wrong with the events; empty when nothing is. See `qiju.trajectory.events.verify`."""
        with self.store.db.read():
            return list(events.verify(self.store.db))

    @property
    def source_id(self) -> str:
        return "store:" + self.store.db.setting("store_id")

    @property
    def cursor_key(self) -> bytes:
        return self.store.key("cursor")

    def cut(self) -> Snapshot:
        with self.store.db.read():
            return events.cut(self.store.db)

    @contextmanager
    def opened(self, snapshot: Snapshot, *, whole: bool = False) -> Iterator[None]:
        """One read transaction for the page. Triggers note every change, so both forms of the check see all of it."""
        with self.store.db.read():
            events.confirm(self.store.db, snapshot)
            yield

    def select(self, snapshot: Snapshot, query: TrajectoryQuery, after: int, count: int) -> list[TrajectoryRecord]:
        return events.select(self.store.db, query, after, snapshot.watermark, count)

    def provenance(self) -> dict[str, JsonValue]:
        return {"source": "store", "source_id": self.source_id}

    @property
    def protected_paths(self) -> tuple[Path, ...]:
        return store_files(self.store.home)

    def close(self) -> None:
        if self._owned:
            self.store.close()

    def __enter__(self) -> SqliteTrajectoryStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def store_files(home: Path) -> tuple[Path, ...]:
    """The files of a home that no export may replace."""
    database = database_path(home)
    beside = tuple(database.with_name(database.name + suffix) for suffix in ("-wal", "-shm"))
    return (database, *beside, storekey.path(home))


class _TakenBack(Exception):
    """Ends a dry run's transaction."""
