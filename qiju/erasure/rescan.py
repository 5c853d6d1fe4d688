"""`redact --rescan`: today's rules over everything stored, and seals for rows that were written by hand.

A record that is redacted by newer rules changes as one that is redacted by name: its text, its digest, its search rows.
A row without a digest was written through SQL: nothing has redacted it, nothing folded it for search, and its instant
is what SQL could make of its `ts`; it is redacted, completed and sealed. A row whose id is no id is left, and named.

Only what changes is written, a batch a transaction, so other writers never wait long. The erasure that follows cleans
the indexes and the WAL and proves that no old text is left there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import apsw

from qiju import jsontext, rows
from qiju import record as records
from qiju.erasure import audit, files, operation
from qiju.errors import InvalidRecord, QijuError
from qiju.jsontext import JsonValue
from qiju.record import Record, parse_ts
from qiju.redaction.values import Redaction
from qiju.rows import Stored
from qiju.trajectory import events

if TYPE_CHECKING:
    from qiju.redaction import Engine
    from qiju.store import Store

BATCH = 200  # rows looked at before the changed ones among them are written
FINGERPRINT = "rescan"  # marks a pending rescan; it is no fingerprint of a value
Step = Callable[[int], object]


class Report:
    """What a rescan did: records and events redacted, rows sealed, rows left as they are."""

    def __init__(self, *, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.looked = 0
        self.redacted = 0
        self.events = 0
        self.sealed = 0
        self.redactions: dict[str, int] = {}
        self.left: list[str] = []
        self.proof: dict[str, JsonValue] = {}
        self.remains: list[str] = []
        self.warnings: list[str] = []

    @property
    def changed(self) -> int:
        return self.redacted + self.events + self.sealed

    def counts(self) -> dict[str, JsonValue]:
        return {
            "looked_at": self.looked,
            "redacted": self.redacted,
            "events": self.events,
            "sealed": self.sealed,
            "by_rule": dict(sorted(self.redactions.items())),
        }

    def to_json(self) -> dict[str, JsonValue]:
        value: dict[str, JsonValue] = {**self.counts(), "left": list(self.left), "dry_run": self.dry_run}
        if self.proof:
            value |= {"proof": self.proof, "remains": list(self.remains)}
        return {**value, "warnings": list(self.warnings)}


class _Fresh(NamedTuple):
    record: Record
    found: list[Redaction]


def rescan(store: Store, reason: str, who: str, *, dry_run: bool = False, step: Step = lambda _: None) -> Report:
    """Look at every record and event; write what changes. Raises `StoreBusy`."""
    report = Report(dry_run=dry_run)
    if not dry_run:
        store.drain_spool()
    engine = store.engine()
    waiting = audit.pending(store.db, FINGERPRINT)
    audit_id = waiting
    for seqs in _batches(store, "record", "1"):
        audit_id = _records(store, engine, seqs, report, reason, who, audit_id)
        step(len(seqs))
    for seqs in _batches(store, "trajectory_event", "record_seq IS NULL"):
        audit_id = _events(store, engine, seqs, report, reason, who, audit_id)
        step(len(seqs))
    if dry_run or audit_id is None:
        return report
    _finish(store, report, audit_id, step, blind=waiting is not None)
    return report


def _finish(store: Store, report: Report, audit_id: int, step: Step, *, blind: bool) -> None:
    archived = files.Report()
    files.archive(store, operation.scope_of(store, ()), archived)
    report.remains += archived.problems
    checked = operation.settle(store, None, step, blind=blind)
    report.remains += checked.remains
    report.proof = {
        "passed": not report.remains,
        "index_integrity": not checked.indexes_wrong,
        "wal_cut": not checked.wal_held,
        "free_pages_zero": not checked.free_pages,
        "vacuumed": checked.vacuumed,
    }
    if not report.remains:
        with store.db.write() as connection:
            audit.finish(connection, audit_id, FINGERPRINT, report.counts())


def _batches(store: Store, table: str, where: str) -> Iterable[list[int]]:
    last = 0
    while True:
        with store.db.read() as connection:
            sql = f"SELECT seq FROM {table} WHERE seq > ? AND {where} ORDER BY seq LIMIT {BATCH}"
            seqs = [int(row[0]) for row in connection.execute(sql, (last,))]
        if not seqs:
            return
        yield seqs
        last = seqs[-1]


def _begun(connection: apsw.Connection, audit_id: int | None, reason: str, who: str) -> int:
    """The audit row of this run, written with its first change."""
    if audit_id is not None:
        return audit_id
    return audit.begin(
        connection, action=audit.RESCAN, who=who, reason=reason, placeholder="", fingerprint=FINGERPRINT, counts={}
    )


# --- records ---------------------------------------------------------------------------------------------------------


def _records(
    store: Store, engine: Engine, seqs: list[int], report: Report, reason: str, who: str, audit_id: int | None
) -> int | None:
    changed: list[tuple[Stored, _Fresh]] = []
    for seq in seqs:
        report.looked += 1
        try:
            stored = store.by_seq(seq)
            if stored is None:
                continue
            fresh = _fresh(engine, stored)
        except QijuError as error:
            report.left.append(f"record {seq}: {error}")
            continue
        except UnicodeDecodeError:
            report.left.append(f"record {seq}: holds bytes that are not UTF-8")
            continue
        if fresh.found or not stored.digest:
            changed.append((stored, fresh))
    if not changed:
        return audit_id
    if report.dry_run:
        for stored, fresh in changed:
            _count(report, stored, fresh)
        return audit_id
    with store.db.write() as connection:
        audit_id = _begun(connection, audit_id, reason, who)
        for stored, fresh in changed:
            now = store.by_seq(stored.seq)
            if now is None or now.rev != stored.rev:
                if now is None:
                    continue
                fresh = _fresh(engine, now)  # changed by another writer since it was looked at
            _store(store, connection, now, fresh)
            store.audit(connection, now.seq, [one.to_json() for one in fresh.found], audit.RESCAN)
            _count(report, now, fresh)
    return audit_id


def _count(report: Report, stored: Stored, fresh: _Fresh) -> None:
    report.redacted += bool(fresh.found)
    report.sealed += not stored.digest
    for one in fresh.found:
        report.redactions[one.rule] = report.redactions.get(one.rule, 0) + 1


def _fresh(engine: Engine, stored: Stored) -> _Fresh:
    """The record as today's rules leave it. Raises `InvalidRecord` for one that cannot be sealed."""
    record = stored.record
    if not stored.digest and not records.valid_id(record.id):
        raise InvalidRecord("its id is not <session>:<number>, so it cannot be sealed", hint="give it another id")
    fields = record.to_json()
    earlier = fields.pop("redactions", [])
    project = fields.pop("project")
    value, found = engine.redact_value(fields)
    if not isinstance(value, dict):
        raise InvalidRecord("the record is no JSON object")
    identity = value.get("id")
    if not isinstance(identity, str) or not records.valid_id(identity):
        identity = f"redacted:{stored.number or stored.seq}"
    listed = list(earlier) if isinstance(earlier, list) else []
    kept = _kept(listed, value, found)
    made: list[JsonValue] = [one.to_json() for one in found]
    new = {**value, "id": identity, "project": project, "redactions": [*kept, *made]}
    return _Fresh(records.build(records.check(new)), found)


def _kept(earlier: list[JsonValue], value: JsonValue, found: list[Redaction]) -> list[JsonValue]:
    """Earlier entries, their places found again in the texts that changed now."""
    from qiju.erasure.rewriting import at_path

    touched = {one.field for one in found}
    kept: list[JsonValue] = []
    used: dict[str, int] = {}
    for entry in earlier:
        if not isinstance(entry, dict) or (field := entry.get("field")) not in touched:
            kept.append(entry)
            continue
        text, mark = at_path(value, str(field)), entry.get("placeholder")
        if text is None or not isinstance(mark, str):
            kept.append(entry)
            continue
        key = f"{field}\0{mark}"
        at = text.find(mark, used.get(key, 0))
        if at < 0:
            continue  # taken over by a larger redaction now
        used[key] = at + len(mark)
        kept.append({**entry, "start": at, "end": at + len(mark)})
    return kept


def _store(store: Store, connection: apsw.Connection, stored: Stored, fresh: _Fresh) -> None:
    new = fresh.record
    if new.id != stored.record.id and (other := store.find(new.id, new.project)) and other.seq != stored.seq:
        session = records.split_id(new.id)[0]
        new = new._replace(id=f"{session}:{store.next_number(session)}")
    instant = None if stored.digest else parse_ts(new.ts)
    store.replace(connection, stored, new, instant)
    if not stored.digest:
        session, number = records.split_id(new.id)
        connection.execute(
            "UPDATE record SET session_id = ?, number = ? WHERE seq = ? AND (session_id <> ? OR number <> ?)",
            (session, number, stored.seq, session, number),
        )
        _seal_unchanged(connection, stored, new)


def _seal_unchanged(connection: apsw.Connection, stored: Stored, new: Record) -> None:
    """The digest, when the content was already what it ought to be, so that no trigger saw a change."""
    values = dict(zip(rows.CONTENT, rows.content(new), strict=True))
    connection.execute(
        "UPDATE record SET digest = ?, folded = ? WHERE seq = ? AND digest = ''",
        (values["digest"], values["folded"], stored.seq),
    )


# --- events ----------------------------------------------------------------------------------------------------------


def _events(
    store: Store, engine: Engine, seqs: list[int], report: Report, reason: str, who: str, audit_id: int | None
) -> int | None:
    changed: list[tuple[events.Event, list[Redaction]]] = []
    for seq in seqs:
        report.looked += 1
        try:
            one = _event(store, engine, seq)
        except QijuError as error:
            report.left.append(f"event {seq}: {error}")
            continue
        if one is not None:
            changed.append(one)
    for event, found in changed:
        report.events += bool(found)
        report.sealed += not event.digest
        for one_found in found:
            report.redactions[one_found.rule] = report.redactions.get(one_found.rule, 0) + 1
    if not changed or report.dry_run:
        return audit_id
    with store.db.write() as connection:
        audit_id = _begun(connection, audit_id, reason, who)
        for event, found in changed:
            if _event(store, engine, event.seq) is None:
                continue
            events.rewrite(store.db, event)
            events.audit(store.db, event.seq, found, audit.RESCAN)
    return audit_id


def _event(store: Store, engine: Engine, seq: int) -> tuple[events.Event, list[Redaction]] | None:
    """The event as today's rules leave it, when that is another one or it was not sealed."""
    row = store.db.connection.execute(
        f"SELECT {events.EVENT} FROM trajectory_event WHERE seq = ? AND record_seq IS NULL", (seq,)
    ).fetchone()
    if row is None:
        return None
    event = events.Event(*row)
    payload, found = engine.redact_value(jsontext.parse(event.payload, name="its payload"))

    def clean(text: str | None) -> str | None:
        return None if text is None else engine.redact_text(text).text

    words = (event.event_id, event.session_id, event.run_id, event.work_item_id, event.ts)
    cleaned = [clean(word) for word in words]
    if not found and cleaned == list(words) and event.digest:
        return None
    changed = event._replace(
        event_id=str(cleaned[0]),
        session_id=str(cleaned[1]),
        run_id=cleaned[2],
        work_item_id=cleaned[3],
        ts=str(cleaned[4]),
        payload=jsontext.canonical(payload),
    )
    return changed, found
