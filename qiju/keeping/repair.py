"""`doctor --fix`: a plan that can be read first, a backup, the repairs, and the proof that no record went missing.

What is repaired is what follows from the records (indexes, events, the commitment, folded text) and what lies around
them (permissions, leftovers, the spool, an overgrown log). A record's content is never guessed: a record that does not
match its digest stays as it is and stays named. Only a database whose pages are damaged is replaced, by a new one that
holds everything that can still be read (`salvage`); the damaged file is kept byte for byte.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from qiju.db import Database
from qiju.errors import QijuError, StoreDamaged, VerificationFailed
from qiju.jsontext import JsonValue
from qiju.keeping import backup as backups
from qiju.keeping.doctor import LARGE_WAL, leftovers, loose_permissions
from qiju.keeping.restore import put_in_place, set_aside
from qiju.keeping.rowscan import scan
from qiju.keeping.verify import Report, verify_database
from qiju.store import Store, commitment_term, database_path
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.place.config import Config

# What SQLite's integrity check says of damage that the rows themselves do not share.
_SEARCH_DAMAGE = "malformed inverted index"
_INDEX_DAMAGE = ("missing from index", "wrong # of entries in index", "non-unique entry in index")


class Repair(NamedTuple):
    """One thing to put right. `touches` says whether the database changes, which is when a backup is taken first."""

    name: str
    what: str
    touches: bool


class Done(NamedTuple):
    """What was done. `records` are the readable ones before and after; `left` are faults that no repair mends."""

    plan: tuple[Repair, ...]
    backup: Path | None
    salvaged: JsonValue
    before: int
    after: int
    left: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        plan: list[JsonValue] = [{"name": one.name, "what": one.what} for one in self.plan]
        return {
            "plan": plan,
            "backup": None if self.backup is None else str(self.backup),
            "salvaged": self.salvaged,
            "records_before": self.before,
            "records_after": self.after,
            "left": list(self.left),
            "notes": list(self.notes),
        }


def plan(home: Path, config: Config | None = None) -> list[Repair]:
    """What `apply` would do now; nothing is changed. Raises `NewerSchema`."""
    repairs = [Repair("permissions", f"close {path} to others", False) for path, _mode in loose_permissions(home)]
    repairs += [Repair("leftovers", f"remove {path}", False) for path in leftovers(home)]
    live = database_path(home)
    if not live.exists() or live.stat().st_size == 0:
        return repairs
    try:
        with Store.open_for_reading(home, config) as store:
            report = verify_database(store)
            mode = store.db.value("PRAGMA journal_mode")
    except StoreDamaged:
        return [*repairs, _SALVAGE]
    repairs += _from_faults(report)
    if mode != "wal" and os.access(live, os.W_OK):
        repairs.append(Repair("journal", "set the journal mode to wal", True))
    wal = live.with_name(live.name + "-wal")
    if wal.is_file() and wal.stat().st_size > LARGE_WAL:
        repairs.append(Repair("log", "cut the write-ahead log back", False))
    from qiju import spool

    if waiting := spool.pending(home):
        repairs.append(Repair("spool", f"store what waits in the spool: {counted(len(waiting), 'record')}", True))
    return repairs


_SALVAGE = Repair(
    "salvage", "write everything that can be read into a new database, keep the damaged one in the backups folder", True
)
_REBUILD = Repair("search indexes", "build both search indexes anew from the records", True)
_REINDEX = Repair("indexes", "build the indexes of all tables anew", True)
_EVENTS = Repair("events", "give every record its trajectory event, drop events of records that are gone", True)
_FOLDED = Repair("folded", "work out the folded search text of records anew", True)
_COMMITMENT = Repair("commitment", "compute the commitment anew over the digests, all of which hold", True)


def _from_faults(report: Report) -> list[Repair]:
    found: list[Repair] = []
    pages = [one for one in report.faults if one.check == "database"]
    other = [f for f in pages if _SEARCH_DAMAGE not in f.message and not any(m in f.message for m in _INDEX_DAMAGE)]
    if other or any(one.check == "records" and "cannot be read" in one.message for one in report.faults):
        return [_SALVAGE]
    if any(_SEARCH_DAMAGE in one.message for one in pages) or any(one.check == "indexes" for one in report.faults):
        found.append(_REBUILD)
    if any(mark in one.message for one in pages for mark in _INDEX_DAMAGE):
        found.append(_REINDEX)
    if any(one.check == "references" and "event" in f"{one.where} {one.message}" for one in report.faults):
        found.append(_EVENTS)
    records = [one for one in report.faults if one.check == "records"]
    if any("folded" in one.message for one in records):
        found.append(_FOLDED)
    broken = any(one.check == "commitment" for one in report.faults)
    sure = all("folded" in one.message for one in records) and not any(one.check == "numbers" for one in report.faults)
    if broken and sure:
        found.append(_COMMITMENT)
    return found


def apply(home: Path, repairs: list[Repair], config: Config | None = None) -> Done:
    """Carry the plan out. Raises `VerificationFailed` when a record went missing, naming the backup."""
    names = {one.name for one in repairs}
    notes: list[str] = []
    live = database_path(home)
    backup: Path | None = None
    before: dict[tuple[str, str], str] = {}
    salvaged: JsonValue = None
    for path, mode in loose_permissions(home) if "permissions" in names else ():
        path.chmod(mode & 0o700)
    for path in leftovers(home) if "leftovers" in names else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if any(one.touches for one in repairs):
        backup = _back_up(home, config, damaged="salvage" in names)
        before = _identities(live)
        if "salvage" in names:
            salvaged = _salvage(home, live, notes)
        else:
            _mend(home, config, names, notes)
    if "log" in names:
        with Database.open(live) as db:
            db.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
    after = _identities(live) if before else {}
    missing = sorted(f"{project}/{identity}" for project, identity in before if (project, identity) not in after)
    if missing:
        raise VerificationFailed(
            f"went missing in the repair: {counted(len(missing), 'record')}, {missing[0]} among them",
            hint=f"the store as it was is kept: qiju restore {backup}",
        )
    return Done(tuple(repairs), backup, salvaged, len(before), len(after), tuple(_left(home, config)), tuple(notes))


def _back_up(home: Path, config: Config | None, *, damaged: bool) -> Path:
    """A proven backup; of a store that does not check out, a copy of its bytes."""
    if not damaged:
        try:
            with Store.open_for_reading(home, config) as store:
                return backups.backup(store).path
        except VerificationFailed:
            pass  # that is why it is being repaired
    return set_aside(home, database_path(home), keep=True)


def _identities(live: Path) -> dict[tuple[str, str], str]:
    """Project, id and digest of every record that can be read."""
    connection = apsw.Connection(str(live), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA query_only = ON")
        rows = (found.values for found in scan(connection, "record", "project, id, digest"))
        return {(str(row[0]), str(row[1])): str(row[2]) for row in rows if row is not None}
    except apsw.Error:
        return {}
    finally:
        connection.close()


def _salvage(home: Path, live: Path, notes: list[str]) -> JsonValue:
    from qiju.keeping.salvage import salvage

    work = home / f".salvage-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        work.mkdir(mode=0o700)
        done = salvage(live, work / "qiju.db")
        put_in_place(live, Store(Database.open(work / "qiju.db"), home))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if done.lost_records:
        notes.append(
            f"not readable: {counted(len(done.lost_records), 'record')}; a backup or the archive may hold them"
            " ('qiju import' takes both)"
        )
    return done.to_json()


def _mend(home: Path, config: Config | None, names: set[str], notes: list[str]) -> None:
    with Store.open(home, config) as store:
        if "journal" in names:
            mode = store.db.value("PRAGMA journal_mode = WAL")
            if mode != "wal":
                notes.append("the journal mode cannot be set here: put the store on a local disk")
        with store.db.write() as connection:
            if "indexes" in names:
                connection.execute("REINDEX")
            if "search indexes" in names:
                for table in ("record_fts", "record_trigram"):
                    connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
            if "folded" in names:
                _fold_anew(store, connection)
            if "events" in names:
                _mend_events(connection)
            if "commitment" in names:
                _commit_anew(store, connection)
        if "spool" in names:
            notes += [f"the spool file {name} cannot be read; it was left" for name in store.drain_spool()]
            notes += store.warnings


def _fold_anew(store: Store, connection: apsw.Connection) -> None:
    from qiju.record import folded

    seqs: list[tuple[Any, ...]] = connection.execute("SELECT seq FROM record WHERE digest <> ''").fetchall()
    for (seq,) in seqs:
        try:
            stored = store.by_seq(int(seq))
        except QijuError:
            continue  # stays named as damaged
        if stored is not None and stored.folded != folded(stored.record) and stored.record.digest() == stored.digest:
            connection.execute("UPDATE record SET folded = ? WHERE seq = ?", (folded(stored.record), seq))
    # The index may have held the wrong text, or never have: neither can be told, so it is made from the rows.
    connection.execute("INSERT INTO record_trigram (record_trigram) VALUES ('rebuild')")


def _mend_events(connection: apsw.Connection) -> None:
    connection.execute(
        "DELETE FROM trajectory_event WHERE record_seq IS NOT NULL AND record_seq NOT IN (SELECT seq FROM record)"
    )
    connection.execute(
        "INSERT INTO trajectory_event (session_id, kind, record_seq)"
        " SELECT session_id, 'session_record', seq FROM record WHERE seq NOT IN"
        " (SELECT record_seq FROM trajectory_event WHERE record_seq IS NOT NULL) ORDER BY seq"
    )


def _commit_anew(store: Store, connection: apsw.Connection) -> None:
    total = 0
    for seq, digest in connection.execute("SELECT seq, digest FROM record WHERE digest <> ''"):
        total += commitment_term(int(str(seq)), str(digest))
    store.set("commitment", f"{total % (1 << 256):064x}")


def _left(home: Path, config: Config | None) -> list[str]:
    """Faults that are still there."""
    if not database_path(home).exists():
        return []
    try:
        with Store.open_for_reading(home, config) as store:
            report = verify_database(store)
    except StoreDamaged as error:
        return [str(error)]
    return [f"{one.check}: {one.where}: {one.message}" for one in report.faults]
