"""Check a store from end to end and name what is wrong, row by row, so that one bad row never hides the good ones.

What is recomputed: every record's digest from its stored columns, every event's, the commitment over all of them, the
structure of every table and index (SQLite's own check), both search indexes against the rows they index (FTS5's own
check with content), and each archive file against the bytes that were written and against the rows. What is counted:
sequence numbers that are neither a row nor a tombstone, events and audit rows that point nowhere.

A *fault* means something was lost or altered. A *notice* is something to know that is no damage: rows written by hand
(unsealed), a redaction that is not proven yet, archive files that the next `maintain` rewrites.

FTS5 checks an index through a statement that needs the write lock, though it changes nothing. So that no writer waits
for it, it runs on a copy of the database, made for that and removed. `quick` leaves this out, and the comparison of
archive files with rows: it reads every row once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from qiju import rows
from qiju.errors import InvalidJson, QijuError, StorageFailed, StoreDamaged
from qiju.jsontext import JsonValue
from qiju.keeping.rowscan import scan
from qiju.record import folded, parse_ts, valid_id
from qiju.store import commitment_term
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.db import Database
    from qiju.store import Store

COPY_PREFIX = ".verify-"  # the copy's folder in the home; what a killed run leaves is named by doctor
MOST_LISTED = 1000  # faults listed of one check; the rest is counted
CHECKS = ("database", "records", "commitment", "events", "numbers", "references", "indexes", "archive", "spool")
Step = Callable[[int], object]

_TABLES = ("record", "trajectory_event", "tombstone", "project", "setting", "counter", "redaction_audit")
_SEARCH_TABLES = ("record_fts", "record_trigram")
_COLUMNS = rows.COLUMNS.removeprefix("seq, ")
_EXPLICIT_ZONE = ("Z", "z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Finding(NamedTuple):
    """`check` is one of `CHECKS`; `where` names a row, a range, a table or a file; no text of a record is in it."""

    check: str
    where: str
    message: str


class Report:
    """What was checked and what was found. `ok` without faults."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.faults: list[Finding] = []
        self.notices: list[Finding] = []
        self.unlisted: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.done: list[str] = []

    @property
    def ok(self) -> bool:
        return not self.faults

    def fault(self, check: str, where: str, message: str) -> None:
        if sum(one.check == check for one in self.faults[-MOST_LISTED:]) >= MOST_LISTED:
            self.unlisted[check] = self.unlisted.get(check, 0) + 1
        else:
            self.faults.append(Finding(check, where, message))

    def notice(self, check: str, where: str, message: str) -> None:
        self.notices.append(Finding(check, where, message))

    def to_json(self) -> dict[str, JsonValue]:
        bad = {one.check for one in self.faults}
        checks: list[JsonValue] = [{"check": name, "ok": name not in bad} for name in self.done]
        faults: list[JsonValue] = [dict(one._asdict()) for one in self.faults]
        notices: list[JsonValue] = [dict(one._asdict()) for one in self.notices]
        return {
            "ok": self.ok,
            "quick": self.quick,
            "checks": checks,
            "counts": dict(self.counts),
            "faults": faults,
            "faults_not_listed": dict(self.unlisted),
            "notices": notices,
        }


def verify(store: Store, *, quick: bool = False, step: Step | None = None) -> Report:
    """Check everything; a check that cannot be carried out is a fault and does not stop the others."""
    report = verify_database(store, quick=quick, step=step)
    _guarded("archive", lambda: _archive(store, report), report)
    _guarded("spool", lambda: _spool(store, report), report)
    return report


def verify_database(store: Store, *, quick: bool = False, step: Step | None = None, alone: bool = False) -> Report:
    """Check the database alone: a copy somewhere has no archive and no spool of its own.

    `alone` says that no other process has it open.
    """
    report = Report(quick=quick)
    advance = step or (lambda _: None)
    checks: list[tuple[str, Callable[[], None]]] = [
        ("database", lambda: _database(store.db, report)),
        ("records", lambda: _records(store, report, advance)),
        ("events", lambda: _events(store.db, report, advance)),
        ("numbers", lambda: _numbers(store.db, report)),
        ("references", lambda: _references(store.db, report)),
    ]
    # One snapshot for all that is compared with one another.
    try:
        with store.db.read():
            for name, check in checks:
                _guarded(name, check, report)
    except StoreDamaged as error:
        # SQLite may refuse even to end a reading transaction over a damaged index.
        report.fault("database", "the database", str(error))
    if not quick:
        _guarded("indexes", lambda: _indexes(store.db, report, alone=alone), report)
    return report


def _guarded(name: str, check: Callable[[], None], report: Report) -> None:
    try:
        check()
    except (apsw.Error, QijuError, UnicodeDecodeError) as error:
        report.fault(name, "the store", f"the check could not be carried out: {error}")
    report.done.append(name)


def _database(db: Database, report: Report) -> None:
    if report.quick:
        for table in _TABLES:
            _pragma(db, f"PRAGMA quick_check('{table}')", table, report)
    else:
        _pragma(db, f"PRAGMA integrity_check({MOST_LISTED})", "the database", report)
    broken: list[tuple[Any, ...]] = db.connection.execute("PRAGMA foreign_key_check").fetchall()
    for table, rowid, parent, _number in broken:
        report.fault("references", f"{table} row {rowid}", f"refers to a row of {parent} that is not there")


def _pragma(db: Database, sql: str, where: str, report: Report) -> None:
    try:
        for row in db.connection.execute(sql):
            if row[0] != "ok":
                report.fault("database", where, str(row[0]))
    except apsw.Error as error:
        report.fault("database", where, str(error))


def _records(store: Store, report: Report, advance: Step) -> None:
    total = sealed = unsealed = commitment = 0
    for found in scan(store.db.connection, "record", _COLUMNS):
        total += 1
        if total % 512 == 0:
            advance(512)
        if found.values is None:
            report.fault("records", f"seq {found.rowid}", found.fault)
            continue
        row = (found.rowid, *found.values)
        digest = row[8]
        if not digest:
            unsealed += 1
            report.notice("records", _place(row), "written by hand: no digest, no redaction (qiju redact --rescan)")
            continue
        sealed += 1
        commitment += commitment_term(found.rowid, digest)
        for message in _wrong_in(row):
            report.fault("records", _place(row), message)
    report.counts |= {"records": total, "unsealed": unsealed}
    expected = store.db.setting("commitment") or f"{0:064x}"
    if expected != f"{commitment % (1 << 256):064x}":
        report.fault("commitment", f"{sealed} sealed records", "the commitment over their digests does not hold")
    report.done.append("commitment")


def _place(row: tuple[Any, ...]) -> str:
    return f"{row[12]}/{row[11]} (seq {row[0]})"


def _wrong_in(row: tuple[Any, ...]) -> Iterator[str]:
    """What is wrong with a sealed row of `rows.COLUMNS`, if anything."""
    try:
        if sha256(_canonical(row).encode("utf-8")).hexdigest() == row[8]:
            if row[9]:
                record = rows.stored(row).record
                if folded(record) != row[9]:
                    yield "its folded search text is not that of its content"
        else:
            record = rows.stored(row).record
            if record.digest() != row[8]:
                yield "its content does not match its digest"
            elif folded(record) != row[9]:
                yield "its folded search text is not that of its content"
    except (QijuError, InvalidJson, TypeError, UnicodeEncodeError):
        yield "a column does not hold what it should"
        return
    if _instant_differs(row[13], row[4]):
        yield "its instant is not that of its ts"
    if row[11] != f"{row[5]}:{row[6]}" and valid_id(row[11]):
        yield "its session and number are not those of its id"


def _instant_differs(ts: str, instant: int) -> bool:
    """Whether a time with an explicit zone is another instant; a time without one was local when it was stored."""
    if not (ts.endswith(_EXPLICIT_ZONE) or ts[-6:-5] in ("+", "-")):
        return False
    try:
        # The C parser agrees with ours nearly always, and where it does, its answer is the right one at once.
        if (datetime.fromisoformat(ts) - _EPOCH) // _MICROSECOND == instant:
            return False
    except (ValueError, TypeError):
        pass
    expected = parse_ts(ts)
    return expected is not None and expected != instant


_quote = encode_basestring


def _canonical(row: tuple[Any, ...]) -> str:
    """The record's canonical JSON straight from its columns: JSON columns are stored canonical already.

    Only a shortcut: when its digest is the stored one, it is the canonical text; otherwise the long way decides.
    """
    model = f'"model":{_quote(row[16])},' if row[16] else ""
    effort = f'"model_effort":{_quote(row[17])},' if row[17] else ""
    parts = (
        f'"agent":{_quote(row[14])},"body_md":{_quote(row[22])}',
        f'"id":{_quote(row[11])},{model}{effort}"next_steps":{row[21]},"project":{_quote(row[12])},'
        f'"redactions":{row[23]},"schema_version":{row[24]},"search_terms":{row[20]},"source":{_quote(row[15])},'
        f'"tags":{row[19]},"title":{_quote(row[18])},"ts":{_quote(row[13])}',
    )
    if row[25] == "{}":
        return f"{{{parts[0]},{parts[1]}}}"
    # Unknown keys most often stand between `body_md` and `id` (extra); if not all do, the long way is taken.
    if all("body_md" < key < "id" for key in _keys(row[25])):
        return f"{{{parts[0]},{row[25][1:-1]},{parts[1]}}}"
    return rows.stored(row).record.canonical()


def _keys(text: str) -> list[str]:
    try:
        return list(_KEYS.decode(text))
    except (ValueError, RecursionError):
        return [""]  # not JSON, or not an object: the long way says what is wrong


# Only the keys are of interest; numbers stay text, since some are too long to be made ints quickly.
_KEYS = JSONDecoder(parse_int=str, parse_float=str)


def _events(db: Database, report: Report, advance: Step) -> None:
    total = 0
    for found in scan(db.connection, "trajectory_event", "session_id, event_id, kind, payload, digest, record_seq"):
        total += 1
        if total % 512 == 0:
            advance(512)
        where = f"event seq {found.rowid}"
        if found.values is None:
            report.fault("events", where, found.fault)
            continue
        _session, event_id, _kind, payload, digest, record_seq = found.values
        if record_seq is not None or not digest:
            if record_seq is None:
                report.notice("events", f"{where} ({event_id})", "written by hand: no digest")
            continue
        if sha256(payload.encode("utf-8", "surrogatepass")).hexdigest() != digest:
            report.fault("events", f"{where} ({event_id})", "its payload does not match its digest")
    report.counts["events"] = total


def _numbers(db: Database, report: Report) -> None:
    """Every number ever given out is a row or a tombstone; no row's `rev` lies beyond the counter."""
    for table, what in (("record", "record"), ("trajectory_event", "event")):
        top = db.value("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)) or 0
        listed = f"SELECT seq FROM {table} UNION SELECT seq FROM tombstone WHERE what = '{what}' UNION SELECT {top} + 1"
        gaps = db.connection.execute(
            f"SELECT previous + 1, seq - 1 FROM (SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS previous"
            f" FROM ({listed})) WHERE seq > previous + 1 LIMIT {MOST_LISTED}"
        )
        for first, last in gaps.fetchall():
            name = f"seq {first}" if first == last else f"seq {first} to {last}"
            report.fault("numbers", f"{table} {name}", "was given out, but is neither a row nor a tombstone")
        report.counts[f"{what}_tombstones"] = int(
            db.value("SELECT count(*) FROM tombstone WHERE what = ?", (what,)) or 0
        )
    highest = db.value("SELECT max(rev) FROM record") or 0
    if highest > db.counter("rev"):
        report.fault("numbers", "counter rev", f"is {db.counter('rev')}, but a record has {highest}")
    twice = db.connection.execute("SELECT rev FROM record GROUP BY rev HAVING count(*) > 1 LIMIT 1").fetchone()
    if twice is not None:
        report.fault("numbers", f"rev {twice[0]}", "belongs to several records")


_POINTING_NOWHERE = (
    (
        "trajectory events",
        "SELECT record_seq FROM trajectory_event WHERE record_seq IS NOT NULL"
        " AND record_seq NOT IN (SELECT seq FROM record)",
        "refers to a record that is not there",
    ),
    (
        "records",
        "SELECT seq FROM record WHERE seq NOT IN"
        " (SELECT record_seq FROM trajectory_event WHERE record_seq IS NOT NULL)",
        "has no trajectory event",
    ),
    (
        "redaction audit",
        "SELECT DISTINCT record_seq FROM redaction_audit WHERE record_seq IS NOT NULL"
        " AND record_seq NOT IN (SELECT seq FROM record)"
        " AND record_seq NOT IN (SELECT seq FROM tombstone WHERE what = 'record')",
        "refers to a record that never was",
    ),
    (
        "deleted records",
        "SELECT seq FROM tombstone WHERE what = 'record' AND seq IN (SELECT seq FROM record)",
        "stands as deleted and is there",
    ),
)


def _references(db: Database, report: Report) -> None:
    for where, sql, message in _POINTING_NOWHERE:
        for (seq,) in db.connection.execute(f"{sql} LIMIT {MOST_LISTED}").fetchall():
            report.fault("references", f"{where}, seq {seq}", message)
    pending = int(db.value("SELECT count(*) FROM redaction_pending") or 0)
    if pending:
        report.notice("references", "redaction", f"{pending} not proven yet: run the same redact again")


def _indexes(db: Database, report: Report, *, alone: bool) -> None:
    """FTS5's check with content: on a copy that nobody waits for, unless nobody else has this database open."""
    if alone or db.path is None or db.private:
        before = db.value("PRAGMA query_only")
        db.connection.execute("PRAGMA query_only = OFF")
        try:
            _check_indexes(db.connection, report)
        finally:
            db.connection.execute(f"PRAGMA query_only = {before}")
        return
    import os
    import shutil

    from qiju.keeping.backup import copy_database

    work = db.path.parent / f"{COPY_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    try:
        work.mkdir(mode=0o700)
        copy_database(db, work / "copy.db")
        connection = apsw.Connection(str(work / "copy.db"), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _check_indexes(connection, report)
        finally:
            connection.close()
    except (OSError, StorageFailed) as error:
        if isinstance(error, StoreDamaged):
            raise
        report.notice("indexes", "the search indexes", f"not compared with the records: no room for a copy ({error})")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _check_indexes(connection: apsw.Connection, report: Report) -> None:
    for table in _SEARCH_TABLES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except apsw.BusyError:
            raise
        except apsw.Error:
            report.fault("indexes", table, "does not agree with the records (qiju doctor --fix rebuilds it)")


def _archive(store: Store, report: Report) -> None:
    from qiju.keeping.verify_archive import check_archive

    check_archive(store, report)


def _spool(store: Store, report: Report) -> None:
    from qiju import spool

    waiting = spool.pending(store.home)
    for path in waiting:
        entry = spool.load(path)
        if entry is not None and entry.value is None:
            report.fault("spool", str(path), "a record that was kept for later cannot be read")
    if waiting:
        waits = counted(len(waiting), "record waits", "records wait")
        report.notice("spool", str(spool.folder(store.home)), f"{waits} for the next write")
    report.counts["spooled"] = len(waiting)
