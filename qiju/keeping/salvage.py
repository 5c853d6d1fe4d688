"""Everything that can still be read of a damaged database, in a new one, with a count of what could not.

Rows are read one by one past the damage (`rowscan`) and written as they are, numbers included: the triggers, which
would number them anew, are put aside meanwhile and are back before the file is used. What follows from the rows is made
from them: search indexes, the events that stand for records, the commitment. A record that is lost keeps its number as
a tombstone, named by id where an index still knows it.

A row that can be read but does not match its digest is carried over as it is: `verify` names it here as it did there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from qiju.db import Database
from qiju.errors import StoreDamaged
from qiju.jsontext import JsonValue
from qiju.keeping.rowscan import Scanned, scan
from qiju.store import commitment_term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Parents before children. Each with the integer key it is walked by; '' walks what a plain SELECT still gives.
_TABLES: tuple[tuple[str, str], ...] = (
    ("setting", "rowid"),
    ("counter", "rowid"),
    ("project", "rowid"),
    ("project_root", "rowid"),
    ("record", "seq"),
    ("tombstone", ""),
    ("trajectory_event", "seq"),
    ("redaction_audit", "audit_id"),
    ("redacted_value", "rowid"),
    ("redaction_pending", "pending_id"),
    ("spooled", "rowid"),
    ("file_manifest", "rowid"),
    ("archive_partition", ""),
    ("retag", "retag_id"),
    ("retag_record", ""),
    ("taken_over", ""),
)
_INDEXES = ("record_fts", "record_trigram")


class Salvaged(NamedTuple):
    """Rows by table: `kept` and `lost`; `lost_records` are ids (or numbers) of records that could not be read."""

    kept: dict[str, int]
    lost: dict[str, int]
    lost_records: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        names: list[JsonValue] = list(self.lost_records)
        return {"kept": dict(self.kept), "lost": dict(self.lost), "lost_records": names}


def salvage(source: Path, target: Path, *, step: Callable[[int], object] | None = None) -> Salvaged:
    """Write what can be read of `source` into the new store `target`; the source is only read.

    Raises `StoreDamaged` when not even the list of tables can be read.
    """
    try:
        old = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
        old.execute("PRAGMA query_only = ON")
        present = {str(row[0]) for row in old.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except apsw.Error as error:
        raise StoreDamaged(
            f"nothing of {source} can be read: {error}", hint="'qiju backup --list' lists backups to restore"
        ) from error
    kept: dict[str, int] = {}
    lost: dict[str, int] = {}
    gone: list[Scanned] = []
    try:
        with Database.open(target) as new:
            new.connection.execute("PRAGMA foreign_keys = OFF")
            with new.write() as connection:
                triggers: list[tuple[Any, ...]] = connection.execute(
                    "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
                ).fetchall()
                for name, _sql in triggers:
                    connection.execute(f'DROP TRIGGER "{name}"')
                for table, key in _TABLES:
                    if table in present:
                        missing = _carry_over(old, connection, table, key, kept, lost, step)
                        gone += missing if table == "record" else []
                _number_on(old, connection)
                names = _bury(old, connection, gone)
                unknown = _derive(new, connection)
                lost["record"] = lost.get("record", 0) + len(unknown)
                names += [f"seq {seq}" for seq in unknown]
                for _name, sql in triggers:
                    connection.execute(sql)
            new.connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
    finally:
        old.close()
    return Salvaged(kept, lost, tuple(names))


def _carry_over(
    old: apsw.Connection,
    new: apsw.Connection,
    table: str,
    key: str,
    kept: dict[str, int],
    lost: dict[str, int],
    step: Callable[[int], object] | None,
) -> list[Scanned]:
    """Copy one table; returns the rows that could not be read."""
    here = [str(row[1]) for row in new.execute(f"PRAGMA table_info({table})")]
    there = {str(row[1]) for row in old.execute(f"PRAGMA table_info({table})")}
    names = [name for name in here if name in there]
    columns = ", ".join(f'"{name}"' for name in names)
    insert = f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})"
    kept[table] = lost[table] = 0
    unread: list[Scanned] = []
    for number, found in enumerate(scan(old, table, columns, key=key) if key else _plain(old, table, columns), start=1):
        if step is not None and number % 256 == 0:
            step(256)
        if found.values is None:
            lost[table] += 1
            unread.append(found)
            continue
        try:
            new.execute(insert, found.values)
            kept[table] += 1
        except apsw.Error as error:
            # A damaged value that the table's own rules refuse (no JSON where JSON belongs).
            lost[table] += 1
            unread.append(Scanned(found.rowid, None, str(error)))
    return unread


def _plain(old: apsw.Connection, table: str, columns: str) -> Iterator[Scanned]:
    """The rows of a table without row numbers, up to the first that cannot be read."""
    cursor = old.execute(f"SELECT {columns} FROM {table}")
    number = 0
    while True:
        number += 1
        try:
            row = cursor.fetchone()
        except (apsw.Error, UnicodeDecodeError) as error:
            yield Scanned(number, None, f"cannot be read from here on: {error}")
            return
        if row is None:
            return
        yield Scanned(number, row, "")


def _bury(old: apsw.Connection, new: apsw.Connection, gone: list[Scanned]) -> list[str]:
    """Tombstones for lost records; their names as far as an index still knows them."""
    known: dict[int, tuple[str, str]] = {}
    try:
        rows: list[tuple[Any, ...]] = old.execute("SELECT seq, id, project FROM record INDEXED BY record_id").fetchall()
        known = {int(seq): (str(identity), str(project)) for seq, identity, project in rows}
    except (apsw.Error, UnicodeDecodeError):
        pass  # the numbers have to do
    names = []
    for one in gone:
        identity, project = known.get(one.rowid, (f"lost:{one.rowid}", ""))
        names.append(f"{project}/{identity} (seq {one.rowid})" if project else f"seq {one.rowid}")
        new.execute(
            "INSERT OR IGNORE INTO tombstone (what, seq, rev, id, project) VALUES ('record', ?,"
            " (SELECT value FROM counter WHERE name = 'rev'), ?, ?)",
            (one.rowid, identity, project),
        )
    return names


def _number_on(old: apsw.Connection, new: apsw.Connection) -> None:
    """Numbers given out stay given out, those of lost rows at the end of a table, too."""
    try:
        rows: list[tuple[Any, ...]] = old.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
    except apsw.Error:
        return
    for name, top in rows:
        new.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (top, name))


def _derive(new: Database, connection: apsw.Connection) -> list[int]:
    """Make what follows from the rows, and put the counters beyond everything that was given out.

    Returns the numbers of records that nothing in the file knows of any more.
    """
    unknown: list[int] = []
    connection.execute(
        "UPDATE counter SET value = max(value, (SELECT coalesce(max(rev), 0) FROM record),"
        " (SELECT coalesce(max(rev), 0) FROM tombstone), (SELECT coalesce(max(rev), 0) FROM trajectory_event))"
        " WHERE name = 'rev'"
    )
    connection.execute("UPDATE counter SET value = 0 WHERE name = 'bulk'")
    connection.execute(
        "INSERT INTO project (slug) SELECT DISTINCT project FROM record WHERE project NOT IN (SELECT slug FROM project)"
    )
    connection.execute("DELETE FROM project_root WHERE project NOT IN (SELECT slug FROM project)")
    connection.execute(
        "INSERT OR IGNORE INTO tombstone (what, seq, rev, id, session_id)"
        " SELECT 'event', seq, (SELECT value FROM counter WHERE name = 'rev'), event_id, session_id"
        " FROM trajectory_event WHERE record_seq IS NOT NULL AND record_seq NOT IN (SELECT seq FROM record)"
    )
    connection.execute(
        "DELETE FROM trajectory_event WHERE record_seq IS NOT NULL AND record_seq NOT IN (SELECT seq FROM record)"
    )
    for table, what in (("record", "record"), ("trajectory_event", "event")):
        # Numbers that no row and no tombstone accounts for were given to rows that are lost.
        top = int(new.value("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)) or 0)
        present: set[int] = {int(str(row[0])) for row in connection.execute(f"SELECT seq FROM {table}")}
        present |= {int(str(row[0])) for row in connection.execute("SELECT seq FROM tombstone WHERE what = ?", (what,))}
        rev = new.counter("rev")
        absent = [seq for seq in range(1, top + 1) if seq not in present]
        connection.executemany(
            "INSERT INTO tombstone (what, seq, rev, id) VALUES (?, ?, ?, ?)",
            [(what, seq, rev, f"lost:{seq}") for seq in absent],
        )
        unknown += absent if what == "record" else []
    connection.execute(
        "INSERT INTO trajectory_event (session_id, kind, record_seq, rev)"
        " SELECT session_id, 'session_record', seq, rev FROM record"
        " WHERE seq NOT IN (SELECT record_seq FROM trajectory_event WHERE record_seq IS NOT NULL) ORDER BY seq"
    )
    for table in _INDEXES:
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
    total = 0
    for seq, digest in connection.execute("SELECT seq, digest FROM record WHERE digest <> ''"):
        total += commitment_term(int(str(seq)), str(digest))
    connection.execute(
        "INSERT OR REPLACE INTO setting (name, value) VALUES ('commitment', ?)", (f"{total % (1 << 256):064x}",)
    )
    return unknown
