"""Redact again what an older copy of the store brings back: every record and event through the engine of today.

Used by `restore`, on the copy, before it goes live. The engine knows the values redacted since by their fingerprints
(`redacted_value`); the values themselves are nowhere. Afterwards the search indexes are merged and the file is written
anew, so that no segment and no free page of the copy holds what was replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from qiju import jsontext
from qiju.errors import InvalidRecord
from qiju.jsontext import JsonValue
from qiju.keeping.normalise import relocate
from qiju.record import Record

if TYPE_CHECKING:
    from qiju.rows import Stored
    from qiju.store import Store


def redact_again(store: Store) -> int:
    """Redact every record and event; returns how many changed. The store is nobody else's: a copy not yet live."""
    with store.db.write() as connection:
        changed = 0
        seqs: list[tuple[Any, ...]] = connection.execute("SELECT seq FROM record ORDER BY seq").fetchall()
        for (seq,) in seqs:
            stored = store.by_seq(int(seq))
            if stored is not None and stored.digest:
                changed += _record(store, connection, stored)
        changed += _events(store, connection)
    if changed:
        clean(store)
    return changed


def clean(store: Store) -> None:
    """Leave nothing of replaced text in index segments and free pages of the file."""
    connection = store.db.connection
    for table in ("record_fts", "record_trigram"):
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
    connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)")


def _record(store: Store, connection: apsw.Connection, stored: Stored) -> int:
    value = stored.record.to_json()
    earlier = value.pop("redactions", [])
    redacted, found = store.engine().redact_value(value)
    if not found or not isinstance(redacted, dict):
        return 0
    made: list[JsonValue] = [one.to_json() for one in found]
    # The text moved under the earlier entries; each gets the place of its marker again.
    redacted["redactions"] = earlier
    relocate(redacted)
    kept = redacted["redactions"]
    redacted["redactions"] = [*(kept if isinstance(kept, list) else []), *made]
    try:
        new = Record.from_json(redacted)
    except InvalidRecord:
        # An id that was the value is no id any more: the record keeps its number under a session of its own.
        redacted["id"] = f"redacted-{stored.seq}:{stored.number or 1}"
        new = Record.from_json(redacted)
    store.replace(connection, stored, new)
    store.audit(connection, stored.seq, made, "restore")
    return 1


def _events(store: Store, connection: apsw.Connection) -> int:
    changed = 0
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT seq, payload FROM trajectory_event WHERE record_seq IS NULL AND payload <> '{}' ORDER BY seq"
    ).fetchall()
    for seq, payload in rows:
        redacted, found = store.engine().redact_value(jsontext.parse(payload, name="payload"))
        if found:
            text = jsontext.canonical(redacted)
            connection.execute(
                "UPDATE trajectory_event SET payload = ?, digest = ? WHERE seq = ?", (text, jsontext.digest(text), seq)
            )
            changed += 1
    return changed
