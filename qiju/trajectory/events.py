"""The SQL of `trajectory_event`, all of it, on an open database.

An event row holds a payload with its digest; a row of kind `session_record` holds neither, but names the record that it
stands for, so the record is stored once and its own digest counts. Numbers, revisions and tombstones come from the
schema's triggers: this module only reads what they say. Rows written by hand have no digest; they are served with the
one their payload has now.

Functions that read expect to be inside `db.read()`, functions that write inside `db.write()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import jsontext, rows
from qiju.errors import CursorRejected, StoreDamaged, VerificationFailed
from qiju.trajectory.selection import page_sql
from qiju.trajectory.sources import Sealed, SessionSummary, Snapshot, refuse_other
from qiju.trajectory.types import RecordKind, TrajectoryQuery, TrajectoryRecord

if TYPE_CHECKING:
    from qiju.db import Database
    from qiju.redaction import Redaction

EVENT = "seq, event_id, session_id, run_id, work_item_id, kind, ts, payload, digest, record_seq, revised"
START_AGAIN = "start again from the first page"
BATCH = 2000  # rows a long pass holds


class Event(NamedTuple):
    """One row; `event_id`, `payload` and `digest` are empty for a record, whose `record_seq` is set."""

    seq: int
    event_id: str
    session_id: str
    run_id: str | None
    work_item_id: str | None
    kind: str
    ts: str
    payload: str
    digest: str
    record_seq: int | None
    revised: int = 0


class EventProblem(NamedTuple):
    """Something `verify` found: `seq` of the event (0: the table as a whole), and a sentence without record text."""

    seq: int
    session_id: str
    message: str


# --- snapshots -------------------------------------------------------------------------------------------------------


def cut(db: Database) -> Snapshot:
    """The events as they are now. The state holds the change number and a digest of the last row, which tells a store
    that was restored to an earlier time and has gone another way since."""
    watermark = int(db.value("SELECT coalesce(max(seq), 0) FROM trajectory_event"))
    return Snapshot(watermark, f"{db.counter('rev')}:{_mark(db, watermark)}")


def confirm(db: Database, snapshot: Snapshot) -> None:
    """Raise `CursorRejected` when anything inside the snapshot was redacted, deleted, retagged or edited since."""
    rev_text, _colon, mark = snapshot.state.partition(":")
    if not rev_text.isdigit():
        raise CursorRejected("that is not a snapshot of this store", hint=START_AGAIN)
    rev = int(rev_text)
    changed = db.value(
        "SELECT EXISTS (SELECT 1 FROM trajectory_event WHERE revised = 1 AND rev > ?1 AND seq <= ?2)"
        " OR EXISTS (SELECT 1 FROM tombstone WHERE what = 'event' AND rev > ?1 AND seq <= ?2)",
        (rev, snapshot.watermark),
    )
    if changed:
        raise CursorRejected(
            "a record inside the snapshot was redacted, deleted, retagged or edited since", hint=START_AGAIN
        )
    if db.counter("rev") < rev or _mark(db, snapshot.watermark) != mark:
        raise CursorRejected("the store no longer holds the snapshot", hint=START_AGAIN)


def _mark(db: Database, seq: int) -> str:
    row = db.connection.execute(
        "SELECT e.session_id, e.event_id, e.digest, r.digest FROM trajectory_event AS e"
        " LEFT JOIN record AS r ON r.seq = e.record_seq WHERE e.seq = ?",
        (seq,),
    ).fetchone()
    return sha256("\0".join(map(str, row or ())).encode()).hexdigest()[:16]


# --- reading ---------------------------------------------------------------------------------------------------------


def select(db: Database, query: TrajectoryQuery, after: int, upto: int, count: int) -> list[TrajectoryRecord]:
    """At most `count` records in sequence order, each checked against its digest."""
    sql, bindings = page_sql("trajectory_event", query)
    found = [
        Event(*row)
        for row in db.connection.execute(
            f"SELECT {EVENT} FROM trajectory_event WHERE seq IN ({sql}) ORDER BY seq",
            {**bindings, "after": max(after, query.after_sequence or 0), "upto": upto, "count": count},
        )
    ]
    records = _records(db, [event.record_seq for event in found if event.record_seq is not None])
    return [_served(event, records) for event in found]


def select_records(db: Database, record_seqs: Sequence[int], upto: int) -> list[TrajectoryRecord]:
    """The events that stand for these records, in the order of the event sequence, each checked."""
    found = [
        Event(*row)
        for row in db.connection.execute(
            f"SELECT {EVENT} FROM trajectory_event WHERE record_seq IN (SELECT value FROM json_each(?))"
            " AND seq <= ? ORDER BY seq",
            (jsontext.canonical(list(record_seqs)), upto),
        )
    ]
    records = _records(db, [event.record_seq for event in found if event.record_seq is not None])
    return [_served(event, records) for event in found]


def _records(db: Database, seqs: Sequence[int]) -> dict[int, rows.Stored]:
    marks = jsontext.canonical(list(seqs))
    return {
        row[0]: rows.stored(row)
        for row in db.connection.execute(
            f"SELECT {rows.COLUMNS} FROM record WHERE seq IN (SELECT value FROM json_each(?))", (marks,)
        )
    }


def _served(event: Event, records: dict[int, rows.Stored]) -> TrajectoryRecord:
    if event.record_seq is None:
        return _event_record(event)
    stored = records.get(event.record_seq)
    if stored is None:
        raise StoreDamaged(f"event {event.seq} stands for a record that is not there", hint="run 'qiju verify'")
    digest = stored.record.digest()
    if stored.digest not in ("", digest):
        raise _mismatch(event.seq)
    return TrajectoryRecord(
        event.seq,
        stored.record.id,
        event.session_id,
        event.run_id,
        event.work_item_id,
        RecordKind.SESSION_RECORD,
        stored.record.ts or None,
        stored.record.to_json(),
        digest,
    )


def _event_record(event: Event) -> TrajectoryRecord:
    digest = sha256(event.payload.encode()).hexdigest()
    if event.digest not in ("", digest):
        raise _mismatch(event.seq)
    payload = jsontext.parse(event.payload, name=f"the payload of event {event.seq}")
    if not isinstance(payload, dict):
        raise StoreDamaged(f"event {event.seq} holds no JSON object", hint="run 'qiju verify'")
    if not event.digest:  # written by hand, perhaps not canonical
        digest = jsontext.digest(jsontext.canonical(payload))
    return TrajectoryRecord(
        event.seq,
        event.event_id or f"event-{event.seq}",
        event.session_id,
        event.run_id,
        event.work_item_id,
        RecordKind(event.kind),
        event.ts or None,
        payload,
        digest,
    )


def _mismatch(seq: int) -> VerificationFailed:
    return VerificationFailed(
        f"record {seq} of the trajectory does not match its digest",
        hint=f"run 'qiju verify'; read on behind it with after_sequence={seq}",
    )


def digest_of(db: Database, seq: int) -> str:
    """The stored digest of an event, or of the record it stands for."""
    return str(
        db.value(
            "SELECT coalesce(r.digest, e.digest) FROM trajectory_event AS e LEFT JOIN record AS r"
            " ON r.seq = e.record_seq WHERE e.seq = ?",
            (seq,),
        )
    )


def sessions(db: Database) -> Iterator[SessionSummary]:
    """Every session, in order of its first record."""
    for row in db.connection.execute(
        "SELECT session_id, count(*), min(seq), max(seq) FROM trajectory_event GROUP BY session_id ORDER BY min(seq)"
    ):
        yield SessionSummary(*row)


def events(db: Database, after: int = 0) -> Iterator[Event]:
    """Every event that is not a record, in sequence order, a batch in memory at a time; rows may be rewritten while
    this is consumed. What redaction, erasure and verification walk over."""
    while True:
        batch = [
            Event(*row)
            for row in db.connection.execute(
                f"SELECT {EVENT} FROM trajectory_event WHERE seq > ? AND record_seq IS NULL ORDER BY seq LIMIT {BATCH}",
                (after,),
            )
        ]
        yield from batch
        if len(batch) < BATCH:
            return
        after = batch[-1].seq


def verify(db: Database) -> Iterator[EventProblem]:
    """Check every event: payload against digest, records against their events, and name what was written by hand.

    The digests of records themselves are the record side's business.
    """
    # As a function of SQL: only what is wrong becomes a row, which takes a third off.
    db.connection.create_scalar_function("qiju_sealed", _sealed, 2, deterministic=True)
    try:
        for seq, session_id, digest in db.connection.execute(
            "SELECT seq, session_id, digest FROM trajectory_event"
            " WHERE record_seq IS NULL AND NOT qiju_sealed(CAST(payload AS BLOB), digest) ORDER BY seq"
        ):
            message = "the payload does not match its digest" if digest else "the event is unsealed (written by hand)"
            yield EventProblem(seq, session_id, message)
    finally:
        db.connection.create_scalar_function("qiju_sealed", None, 2)
    for seq, session_id in db.connection.execute(
        "SELECT seq, session_id FROM trajectory_event WHERE record_seq IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM record WHERE record.seq = record_seq)"
    ):
        yield EventProblem(seq, session_id, "the event stands for a record that is not there")
    for seq, session_id in db.connection.execute(
        "SELECT seq, session_id FROM record"
        " WHERE NOT EXISTS (SELECT 1 FROM trajectory_event WHERE record_seq = record.seq)"
    ):
        yield EventProblem(0, session_id, f"record {seq} has no event in the trajectory")


def _sealed(*values: Any) -> bool:
    """The SQL function: a payload as bytes, and the digest beside it."""
    return bool(sha256(values[0]).hexdigest() == values[1])


# --- writing ---------------------------------------------------------------------------------------------------------


def find(db: Database, session_id: str, event_id: str) -> Event | None:
    row = db.connection.execute(
        f"SELECT {EVENT} FROM trajectory_event WHERE session_id = ? AND event_id = ? AND record_seq IS NULL",
        (session_id, event_id),
    ).fetchone()
    return None if row is None else Event(*row)


def insert(db: Database, sealed: Sealed) -> int:
    """Store a sealed draft (redacted already) and return its sequence. Its `record_id` must be set and new."""
    db.connection.execute(
        "INSERT INTO trajectory_event (event_id, session_id, run_id, work_item_id, kind, ts, payload, digest)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            sealed.record_id,
            sealed.session_id,
            sealed.run_id,
            sealed.work_item_id,
            sealed.kind.value,
            sealed.ts or "",
            sealed.payload,
            sealed.digest,
        ),
    )
    return db.connection.last_insert_rowid()


def audit(db: Database, seq: int, redactions: Iterable[Redaction], action: str) -> None:
    """One audit row for each redaction made in an event; never the value."""
    db.connection.executemany(
        'INSERT INTO redaction_audit (action, event_seq, field, kind, rule, start, "end", placeholder)'
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((action, seq, one.field, one.type, one.rule, one.start, one.end, one.placeholder) for one in redactions),
    )


def same_or_conflict(event: Event, sealed: Sealed) -> None:
    """Raise `IdConflict` unless `sealed` is what is stored; what the writer left out is not compared. An event that was
    redacted since it came in stays as it is: the older text must not come back, nor stop what comes after it."""
    if event.revised:
        return
    refuse_other(sealed, RecordKind(event.kind), event.digest, event.run_id, event.work_item_id, event.ts)


def rewrite(db: Database, event: Event) -> Event:
    """Store the changed content of an event that is no record (redaction); sequence and kind stay. The digest is
    computed here, and an id that has become another's gets the sequence behind it. Open cursors over it are refused
    from then on. Returns the row as stored."""
    value = jsontext.parse(event.payload, name="the payload")
    payload = jsontext.canonical(value)
    other = find(db, event.session_id, event.event_id)
    event_id = event.event_id if other is None or other.seq == event.seq else f"{event.event_id}~{event.seq}"
    stored = event._replace(event_id=event_id, payload=payload, digest=sha256(payload.encode()).hexdigest())
    db.connection.execute(
        "UPDATE trajectory_event SET event_id = ?, session_id = ?, run_id = ?, work_item_id = ?, ts = ?, payload = ?,"
        " digest = ? WHERE seq = ? AND record_seq IS NULL",
        (
            stored.event_id,
            stored.session_id,
            stored.run_id,
            stored.work_item_id,
            stored.ts,
            stored.payload,
            stored.digest,
            stored.seq,
        ),
    )
    return stored


def delete(db: Database, seqs: Iterable[int]) -> int:
    """Delete events that are no records; each leaves a tombstone. Returns how many there were."""
    deleted = 0
    for seq in seqs:
        db.connection.execute("DELETE FROM trajectory_event WHERE seq = ? AND record_seq IS NULL", (seq,))
        deleted += db.connection.changes()
    return deleted
