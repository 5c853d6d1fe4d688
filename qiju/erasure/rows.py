"""The row transaction: records, events, ids, slugs and the registry change together, and a pending mark stays behind.

A slug that holds the secret gets another one under the same UUID, so folders with a marker keep their project. An id
that holds it is replaced by one that is free; the record keeps its sequence number, so that its place in every order
stays. Rows written by hand stay unsealed: sealing them is `--rescan`'s, which redacts them by today's rules first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from qiju import jsontext, rows
from qiju import record as records
from qiju.erasure.candidates import SMALL, Candidates, Table, changed_since, small_rows
from qiju.erasure.rewriting import rewrite, rewrite_record, rewrite_text
from qiju.errors import QijuError
from qiju.place.slug import distinct_slug
from qiju.record import Record
from qiju.rows import Stored
from qiju.trajectory import events

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret
    from qiju.store import Store


class Renamed(NamedTuple):
    """A record whose id changed: its new id, and where it lies."""

    seq: int
    project: str
    id: str


class Pieces(NamedTuple):
    """Index pieces (three ASCII characters) that a change took from a row and gave to it; `rev` of the row then."""

    seq: int
    rev: int
    gone: frozenset[str]
    came: frozenset[str]


class Changed:
    """What the transaction did. Nothing in it holds the secret."""

    def __init__(self) -> None:
        self.tiers: dict[str, int] = {}
        self.places = 0
        self.events = 0
        self.tables: dict[str, int] = {}
        self.renamed: list[Renamed] = []
        self.projects: list[str] = []
        self.roots = 0
        self.problems: list[str] = []
        self.pieces: list[Pieces] = []

    @property
    def records(self) -> int:
        return sum(self.tiers.values())

    @property
    def count(self) -> int:
        return self.records + self.events + sum(self.tables.values())


def erase(store: Store, connection: apsw.Connection, secret: Secret, found: Candidates) -> Changed:
    """Change every row that holds the secret. Only inside a write; the caller adds audit and pending mark."""
    done = Changed()
    done.problems.extend(found.problems)
    slugs = _new_slugs(connection, secret, done)
    more_records, more_events = changed_since(connection, found)
    seqs = {*found.records, *more_records}
    for old in slugs:
        seqs.update(int(row[0]) for row in connection.execute("SELECT seq FROM record WHERE project = ?", (old,)))
    for seq in sorted(seqs):
        _record(store, connection, secret, slugs, seq, done)
    for seq in sorted({*found.events, *more_events}):
        _event(store, secret, seq, done)
    for table in SMALL:
        _small(connection, table, secret, slugs, done)
    _drop_old_slugs(connection, slugs)
    return done


# --- projects --------------------------------------------------------------------------------------------------------


def _new_slugs(connection: apsw.Connection, secret: Secret, done: Changed) -> dict[str, str]:
    """Old slug to new one, the new rows made. The UUID follows when the old row goes."""
    taken = {str(row[0]) for row in connection.execute("SELECT slug FROM project")}
    slugs: dict[str, str] = {}
    for old in sorted(taken):
        if not secret.spans(old):
            continue
        new = distinct_slug(secret.name(old), taken)
        taken.add(new)
        slugs[old] = new
        connection.execute("INSERT INTO project (slug) VALUES (?)", (new,))
        done.projects.append(new)
    return slugs


def _drop_old_slugs(connection: apsw.Connection, slugs: dict[str, str]) -> None:
    for old, new in slugs.items():
        connection.execute("UPDATE project_root SET project = ? WHERE project = ?", (new, old))
        row = connection.execute("SELECT uuid, name, created_at FROM project WHERE slug = ?", (old,)).fetchone()
        connection.execute("DELETE FROM project WHERE slug = ?", (old,))
        if row is not None:
            connection.execute("UPDATE project SET uuid = ?, name = ?, created_at = ? WHERE slug = ?", (*row, new))


# --- records and events ----------------------------------------------------------------------------------------------


def _record(
    store: Store, connection: apsw.Connection, secret: Secret, slugs: dict[str, str], seq: int, done: Changed
) -> None:
    try:
        stored = store.by_seq(seq)
    except (QijuError, UnicodeDecodeError):
        done.problems.append(f"record {seq}: a column holds something that cannot be read (qiju verify)")
        return
    if stored is None:
        return
    project = slugs.get(stored.record.project, stored.record.project)
    identity = _new_id(store, secret, stored, project)
    new, places = rewrite_record(secret, stored.record, identity=identity, project=project)
    session = secret.word(stored.session_id)
    source = secret.word(stored.session_source)
    if not places and (session, source) == (stored.session_id, stored.session_source):
        return
    if places:
        _write(store, connection, stored, new)
    if not records.valid_id(identity) and session != stored.session_id:
        connection.execute("UPDATE record SET session_id = ? WHERE seq = ?", (session, seq))
    if source != stored.session_source:
        connection.execute("UPDATE record SET session_source = ? WHERE seq = ?", (source, seq))
    rev = int(store.db.value("SELECT rev FROM record WHERE seq = ?", (seq,)))
    done.pieces.append(_pieces(seq, rev, stored.record, new))
    done.tiers[stored.tier] = done.tiers.get(stored.tier, 0) + 1
    done.places += places
    if identity != stored.record.id:
        done.renamed.append(Renamed(seq, project, identity))


def _pieces(seq: int, rev: int, old: Record, new: Record) -> Pieces:
    """Only pieces of ASCII lines count, which every folding spells alike; and only when no other line has them, too."""
    before, after = records.search_text(old), records.search_text(new)
    if before.isascii() and after.isascii():
        had, has = _plain(before), _plain(after)
        return Pieces(seq, rev, had - has, has - had)
    return Pieces(seq, rev, _plain(before) - _any(after), _plain(after) - _any(before))


def _plain(text: str) -> frozenset[str]:
    return _cut(line.lower() for line in text.splitlines() if line.isascii())


def _any(text: str) -> frozenset[str]:
    return _cut((*text.lower().splitlines(), *records.fold(text).splitlines()))


def _cut(lines: Iterable[str]) -> frozenset[str]:
    found = {line[at : at + 3] for line in lines for at in range(len(line) - 2)}
    return frozenset(piece for piece in found if piece.isascii() and piece.isprintable())


def _write(store: Store, connection: apsw.Connection, stored: Stored, new: Record) -> None:
    if stored.digest:
        store.replace(connection, stored, new)
        return
    values = dict(zip(rows.CONTENT, rows.content(new), strict=True)) | {"digest": "", "folded": ""}
    names = ", ".join(f"{name} = ?" for name in values)
    connection.execute(f"UPDATE record SET {names} WHERE seq = ?", (*values.values(), stored.seq))
    if new.id != stored.record.id and records.valid_id(new.id):
        session, number = records.split_id(new.id)
        connection.execute("UPDATE record SET session_id = ?, number = ? WHERE seq = ?", (session, number, stored.seq))


def _new_id(store: Store, secret: Secret, stored: Stored, project: str) -> str:
    """The record's id, or a free one when it holds the secret."""
    old = stored.record.id
    new = secret.word(old)
    if new == old and project == stored.record.project:
        return old
    if records.valid_id(old) and not records.valid_id(new):
        new = f"redacted:{records.split_id(old)[1]}"
    other = store.find(new, project)
    if other is None or other.seq == stored.seq:
        return new
    if records.valid_id(new):
        session = records.split_id(new)[0]
        return f"{session}:{store.next_number(session)}"
    return f"{new}~{stored.seq}"


def _event(store: Store, secret: Secret, seq: int, done: Changed) -> None:
    found = store.db.connection.execute(
        f"SELECT {events.EVENT} FROM trajectory_event WHERE seq = ? AND record_seq IS NULL", (seq,)
    ).fetchone()
    if found is None:
        return
    event = events.Event(*found)
    try:
        payload = rewrite(secret, jsontext.parse(event.payload))
    except QijuError:
        done.problems.append(f"event {seq}: its payload cannot be read (qiju verify)")
        return
    changed = event._replace(
        event_id=secret.word(event.event_id),
        session_id=secret.word(event.session_id),
        run_id=event.run_id and secret.word(event.run_id),
        work_item_id=event.work_item_id and secret.word(event.work_item_id),
        ts=secret.word(event.ts),
    )
    if changed == event and not payload.places:
        return
    events.rewrite(store.db, changed._replace(payload=jsontext.canonical(payload.value)))
    if not event.digest:  # written by hand: it stays unsealed
        store.db.connection.execute("UPDATE trajectory_event SET digest = '' WHERE seq = ?", (seq,))
    done.events += 1
    done.places += payload.places


# --- the small tables ------------------------------------------------------------------------------------------------


def _small(connection: apsw.Connection, table: Table, secret: Secret, slugs: dict[str, str], done: Changed) -> None:
    if table.name == "archive_partition":
        # Partitions of a renamed project are written anew under its new name, and noted then.
        for row in list(small_rows(connection, table, secret)):
            connection.execute("DELETE FROM archive_partition WHERE project = ? AND month = ?", row[:2])
            done.tables[table.name] = done.tables.get(table.name, 0) + 1
        return
    columns = (*table.text, *table.json, *table.slugs)
    where = " AND ".join(f"{name} = ?" for name in table.key)
    for row in list(small_rows(connection, table, secret)):
        key, values = row[: len(table.key)], row[len(table.key) :]
        changes = {
            name: new
            for name, old in zip(columns, values, strict=True)
            if (new := _small_value(table, name, old, secret, slugs)) != old
        }
        if table.name == "project":
            changes.pop("slug", None)  # the row goes when everything that refers to it has moved
        if "path" in changes and "path" in table.key:
            changes["path"] = _free_path(connection, table.name, str(changes["path"]))
        if changes:
            names = ", ".join(f"{name} = ?" for name in changes)
            connection.execute(f"UPDATE {table.name} SET {names} WHERE {where}", (*changes.values(), *key))
            done.tables[table.name] = done.tables.get(table.name, 0) + 1


def _small_value(table: Table, name: str, old: Any, secret: Secret, slugs: dict[str, str]) -> Any:
    if not isinstance(old, str):
        return old
    if name in table.json:
        return rewrite_text(secret, old)[0]
    if name in table.slugs:
        return slugs.get(old) or secret.name(old)
    return secret.replace(old)[0] if name in ("reason", "name", "actor") else secret.word(old)


def _free_path(connection: apsw.Connection, table: str, path: str) -> str:
    number, candidate = 2, path
    while connection.execute(f"SELECT 1 FROM {table} WHERE path = ?", (candidate,)).fetchone():
        candidate, number = f"{path}~{number}", number + 1
    return candidate
