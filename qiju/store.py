"""The store: records in, records out. The home of record SQL.

The life of a record here: `admit` completes and redacts it (`qiju.admission`). Then, in one transaction, the spool is
drained, the project is found or registered, the number is given, and the row, its audit and the commitment are written;
triggers add search rows, the trajectory event and the numbers `seq` and `rev`. When the write lock or the disk refuses,
the admitted record goes to the spool.

The commitment is one number over all sealed records: the sum, modulo 2^256, of SHA-256("seq:digest"). It changes with
every record and can be kept up to date without reading the others; `qiju verify` recomputes it. It finds what happened
to the file by accident, not what somebody who may write the file does on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from qiju import record as records
from qiju import rows, spool, storekey
from qiju.admission import Admitted, admit, differences, from_spool, spool_value, twin_key
from qiju.db import LOCK_WAIT, Database
from qiju.errors import IdConflict, ReadOnlyStore, StorageFailed, StoreBusy, StoreDamaged
from qiju.jsontext import JsonValue
from qiju.projects import Home, Project, ensure, find
from qiju.record import Record
from qiju.rows import Stored
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.place.config import Config
    from qiju.redaction import Engine

_INSERT = (
    f"INSERT INTO record ({', '.join(rows.CONTENT)}, instant, session_id, number, session_source, tier)"
    f" VALUES ({', '.join('?' * (len(rows.CONTENT) + 5))}) RETURNING seq"
)
_UPDATE = f"UPDATE record SET {', '.join(f'{name} = ?' for name in rows.CONTENT)} WHERE seq = ?"
_SELECT = f"SELECT {rows.COLUMNS} FROM record"
_COMMITMENT_MODULUS = 1 << 256


class Logged(NamedTuple):
    """What became of a record. `created` is False when the very same record was there already."""

    id: str
    seq: int
    project: str
    digest: str
    redactions: int
    created: bool
    session_source: str
    notes: tuple[str, ...]


class Spooled(StoreBusy):
    """The write lock was not to be had; the record is kept in the spool."""

    kind = "spooled"
    meaning = "the store is busy; the record is kept and will be stored by the next write"


class SpooledForRoom(StorageFailed):
    """The store could not be written; the record is kept in the spool."""

    kind = "spooled"
    meaning = "the store cannot be written; the record is kept and will be stored by the next write"


class Store:
    """An open store. `with Store.open(home) as store:`; see `Database` for what may be shared."""

    def __init__(self, db: Database, home: Path, config: Config | None = None, *, writable: bool = False) -> None:
        self.db = db
        self.home = home
        self.config = config
        self.writable = writable
        self.warnings: list[str] = []
        self._key: bytes | None = None
        self._engine: Engine | None = None
        self._remembered = (0, "")

    @classmethod
    def open(cls, home: Path, config: Config | None = None) -> Store:
        """Open for writing; made and migrated when needed. Raises what `Database.open` raises."""
        lock_wait = LOCK_WAIT if config is None else config.lock_wait
        return cls(Database.open(database_path(home), lock_wait=lock_wait), home, config, writable=True)

    @classmethod
    def open_for_reading(cls, home: Path, config: Config | None = None) -> Store:
        """Open for reading; without a store, an empty one. Nothing is created."""
        lock_wait = LOCK_WAIT if config is None else config.lock_wait
        return cls(Database.open_for_reading(database_path(home), lock_wait=lock_wait), home, config)

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # --- key and engine ----------------------------------------------------------------------------------------------

    def key(self, purpose: str) -> bytes:
        """The subkey for a purpose: `cursor`, `fingerprint`, `id`. Makes the store key when there is none yet."""
        return storekey.subkey(self._root_key(), purpose)

    def _root_key(self) -> bytes:
        if self._key is None:
            key = storekey.read(self.home)
            if key is None and self.db.path is None:
                key = bytes(storekey.LENGTH)  # an empty store in memory: there is nothing to protect
            self._key = self._new_key() if key is None else key
        return self._key

    def _new_key(self) -> bytes:
        if self.db.setting("key_id"):
            self.warnings.append(
                f"{storekey.path(self.home)} was missing and has been made anew: open cursors end, equal secrets get"
                " other markers than before, and values redacted before are not recognised when they come back"
            )
        return storekey.create(self.home)

    def engine(self) -> Engine:
        """The redaction engine with this store's key, rules, allow-list and remembered values."""
        if self._engine is None:
            from qiju.redaction import Engine, Remembered, load_user_rules

            key = self._root_key()
            self._remembered = self._redacted_by_name()
            known = self.db.connection.execute("SELECT fingerprint FROM redacted_value")
            values = [str(row[0]) for row in known]
            remembered = Remembered(self.key("fingerprint"), values) if values else None
            settings = self.config.redaction if self.config else None
            self._engine = Engine(
                key,
                user_rules=load_user_rules(settings.rules) if settings and settings.rules else (),
                allow=settings.allow if settings else (),
                scanner=settings.scanner if settings else False,
                remembered=remembered,
            )
        return self._engine

    def refresh_engine(self) -> bool:
        """Whether values were redacted by name since the engine was made; it is made anew then.

        Long work admits records a while before it stores them: what was redacted in between must not come back.
        """
        if self._engine is None or self._remembered == self._redacted_by_name():
            return False
        self._engine = None
        return True

    def _redacted_by_name(self) -> tuple[int, str]:
        row = self.db.connection.execute("SELECT count(*), coalesce(max(at), '') FROM redacted_value").fetchall()[0]
        return int(str(row[0])), str(row[1])

    # --- writing -----------------------------------------------------------------------------------------------------

    def admit(self, fields: dict[str, JsonValue], *, session_id: str, session_source: str) -> Admitted:
        """The one way in: see `qiju.admission.admit`."""
        return admit(self.engine(), fields, session_id=session_id, session_source=session_source)

    def log(self, admitted: Admitted, home_of: Home) -> Logged:
        """Store one record. `home_of` says which project it belongs to.

        Raises `IdConflict`; `Spooled` or `SpooledForRoom` when the store refused and the record was kept instead.
        """
        try:
            logged, drained = self._log(admitted, home_of)
        except (StoreBusy, StorageFailed) as error:
            if isinstance(error, ReadOnlyStore):
                raise
            path = spool.keep(self.home, spool_value(admitted, home_of))
            kept = "; the record, redacted, is kept in the spool and the next write stores it"
            hint = f"do not log it again: any later 'qiju log' stores it ({path.name})"
            failure = Spooled if isinstance(error, StoreBusy) else SpooledForRoom
            raise failure(f"{error}{kept}", hint=hint) from error
        spool.remove(drained)
        return logged

    def _log(self, admitted: Admitted, home_of: Home) -> tuple[Logged, list[Path]]:
        with self.db.write() as connection:
            self._seal_key(connection)
            drained, twins = self._drain(connection)
            twin = twins.get(twin_key(admitted))
            if twin is not None and "id" not in admitted.given:
                return twin._replace(created=False), drained  # the retry of a record that waited in the spool
            project = ensure(connection, home_of)
            logged = self._insert(connection, admitted, project, action="capture")
        return logged, drained

    def drain_spool(self) -> list[str]:
        """Store what waits in the spool; the names of files that could not be read. Raises `StoreBusy`."""
        if not spool.pending(self.home):
            return []
        with self.db.write() as connection:
            drained, _twins = self._drain(connection)
        spool.remove(drained)
        return [path.name for path in spool.pending(self.home)]

    def _drain(self, connection: apsw.Connection) -> tuple[list[Path], dict[str, Logged]]:
        done: list[Path] = []
        twins: dict[str, Logged] = {}
        for path in spool.pending(self.home):
            if self.db.value("SELECT 1 FROM spooled WHERE name = ?", (path.name,)):
                done.append(path)
                continue
            entry = spool.load(path)
            if entry is None:
                continue
            parsed = from_spool(entry.value)
            if parsed is None:
                self.warnings.append(f"the spool file {path} is not readable and was left where it is")
                continue
            admitted, home_of = parsed
            try:
                with self.db.write():
                    logged = self._insert(connection, admitted, ensure(connection, home_of), action="capture")
            except IdConflict as error:
                self.warnings.append(f"the spool file {path} was left where it is: {error}")
                continue
            connection.execute("INSERT INTO spooled (name, seq) VALUES (?, ?)", (path.name, logged.seq))
            twins[twin_key(admitted)] = logged
            done.append(path)
        return done, twins

    def _insert(self, connection: apsw.Connection, admitted: Admitted, project: Project, *, action: str) -> Logged:
        logged = self.place(connection, admitted, project, action=action)
        if not logged.created:
            return logged
        self.commit_terms(added=[(logged.seq, logged.digest)])
        return logged._replace(notes=(*logged.notes, *project.notes))

    def place(
        self, connection: apsw.Connection, admitted: Admitted, project: Project, *, action: str, tier: str = "short"
    ) -> Logged:
        """An admitted record as a row with its audit, or the very same record that is there already.

        The caller brings the commitment up to date. Raises `IdConflict` when the id exists with other content.
        """
        fields = dict(admitted.fields, project=project.slug)
        if "id" in fields:
            known = self.find(str(fields["id"]), project.slug)
            if known is not None:
                return self._same(known, fields, admitted, project)
        else:
            fields["id"] = f"{admitted.session_id}:{self.next_number(admitted.session_id)}"
        record = records.build(fields)
        seq, digest = self.insert_row(
            connection, record, admitted.instant, admitted.session_id, admitted.session_source, tier=tier
        )
        if admitted.redactions:
            self.audit(connection, seq, record.redactions[-admitted.redactions :], action)
        return Logged(
            record.id, seq, project.slug, digest, admitted.redactions, True, admitted.session_source, admitted.notes
        )

    def insert_row(
        self,
        connection: apsw.Connection,
        record: Record,
        instant: int | None,
        session_id: str,
        session_source: str,
        *,
        tier: str,
    ) -> tuple[int, str]:
        """One row; its seq and digest. The caller writes audit and commitment in the same transaction."""
        number = records.split_id(record.id)[1]
        values = rows.content(record)
        seq = self.db.value(_INSERT, (*values, instant, session_id, number, session_source, tier))
        return int(seq), str(values[15])

    def _same(self, known: Stored, fields: dict[str, JsonValue], admitted: Admitted, project: Project) -> Logged:
        differing = differences(known.record, records.build(fields), admitted.given)
        if differing:
            raise IdConflict(
                f"{known.record.id} exists in project {project.slug} with other content:"
                f" {', '.join(differing)} {'differs' if len(differing) == 1 else 'differ'}",
                hint="leave id out to have a new one given; nothing was changed",
            )
        return Logged(
            known.record.id, known.seq, project.slug, known.digest, 0, False, known.session_source, admitted.notes
        )

    def next_number(self, session_id: str) -> int:
        """The next free number of a session, store-wide, deleted records included. Only inside a write."""
        highest = self.db.value(
            "SELECT max(number) FROM (SELECT max(number) AS number FROM record WHERE session_id = ?1"
            " UNION ALL SELECT max(number) FROM tombstone WHERE session_id = ?1)",
            (session_id,),
        )
        return int(highest or 0) + 1

    def audit(self, connection: apsw.Connection, seq: int, redactions: Sequence[JsonValue], action: str) -> None:
        """One audit row for each redaction made in a record."""
        for one in redactions:
            if isinstance(one, dict):
                connection.execute(
                    'INSERT INTO redaction_audit (action, record_seq, field, kind, rule, start, "end", placeholder)'
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        action,
                        seq,
                        *(one.get(name) for name in ("field", "type", "rule", "start", "end", "placeholder")),
                    ),
                )

    def replace(self, connection: apsw.Connection, old: Stored, new: Record, instant: int | None = None) -> str:
        """Give a stored row other content: indexes, digest, commitment and `rev` follow. Returns the new digest."""
        values = rows.content(new)
        connection.execute(_UPDATE, (*values, old.seq))
        if new.id != old.record.id:
            session_id, number = records.split_id(new.id)
            connection.execute(
                "UPDATE record SET session_id = ?, number = ? WHERE seq = ?", (session_id, number, old.seq)
            )
        if instant is not None and instant != old.instant:
            connection.execute("UPDATE record SET instant = ? WHERE seq = ?", (instant, old.seq))
        self.commit_terms(added=[(old.seq, values[15])], removed=[(old.seq, old.digest)])
        return str(values[15])

    def delete(self, connection: apsw.Connection, stored: Stored) -> None:
        """Delete one row; triggers leave its tombstone."""
        connection.execute("DELETE FROM record WHERE seq = ?", (stored.seq,))
        self.commit_terms(removed=[(stored.seq, stored.digest)])

    def commit_terms(self, *, added: Iterable[tuple[int, str]] = (), removed: Iterable[tuple[int, str]] = ()) -> None:
        """Bring the commitment up to date: (seq, digest) pairs; unsealed rows ('' as digest) do not count."""
        difference = sum(commitment_term(seq, digest) for seq, digest in added if digest)
        self.commit_by(difference - sum(commitment_term(seq, digest) for seq, digest in removed if digest))

    def commit_by(self, difference: int) -> None:
        """Add a sum of terms to the commitment. Only inside a write."""
        total = int(self.db.setting("commitment") or "0", 16) + difference
        self.set("commitment", f"{total % _COMMITMENT_MODULUS:064x}")

    def set(self, name: str, value: str) -> None:
        """Write a setting. Only inside a write."""
        self.db.connection.execute(
            "INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2",
            (name, value),
        )

    def _seal_key(self, connection: apsw.Connection) -> None:
        """Note which key this store is written with, so that its loss is noticed."""
        key_id = self.key("id").hex()[:16]
        if self.db.setting("key_id") != key_id:
            self.set("key_id", key_id)

    @contextmanager
    def bulk(self) -> Iterator[Bulk]:
        """Many records in one transaction, their search rows built at its end instead of row by row."""
        with self.db.write() as connection:
            self._seal_key(connection)
            drained, _twins = self._drain(connection)
            connection.execute("UPDATE counter SET value = 1 WHERE name = 'bulk'")
            bulk = Bulk(self, connection)
            yield bulk
            bulk.finish()
            connection.execute("UPDATE counter SET value = 0 WHERE name = 'bulk'")
        spool.remove(drained)

    # --- reading -----------------------------------------------------------------------------------------------------

    def find(self, identity: str, project: str) -> Stored | None:
        """The record with this id in this project."""
        row = self.db.connection.execute(f"{_SELECT} WHERE id = ? AND project = ?", (identity, project)).fetchone()
        return None if row is None else rows.stored(row)

    def by_id(self, identity: str, project: str | None = None) -> list[Stored]:
        """The records with exactly this id, one a project."""
        found = self.db.connection.execute(
            f"{_SELECT} WHERE id = ?1 AND (?2 IS NULL OR project = ?2) ORDER BY project", (identity, project)
        )
        return [rows.stored(row) for row in found]

    def ids_with_prefix(self, prefix: str, project: str | None = None, limit: int = 20) -> list[tuple[str, str]]:
        """(id, project) of records whose id begins with `prefix`, in order, at most `limit`."""
        found = self.db.connection.execute(
            "SELECT id, project FROM record WHERE id >= ?1 AND id < ?2 AND (?3 IS NULL OR project = ?3)"
            " ORDER BY id, project LIMIT ?4",
            (prefix, prefix + "\U0010ffff", project, limit),
        )
        return [(str(row[0]), str(row[1])) for row in found]

    def by_seq(self, seq: int) -> Stored | None:
        """The record with this sequence number."""
        row = self.db.connection.execute(f"{_SELECT} WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else rows.stored(row)

    def listed(self, seq: int) -> Stored | None:
        """The same for a list: what is damaged in it is left out, and named in `warnings`."""
        try:
            return self.by_seq(seq)
        except StoreDamaged as error:
            self.warnings.append(f"{error}; it is listed without that")
        row = self.db.connection.execute(f"{_SELECT} WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else rows.stored(row, leniently=True)

    def project_of(self, home_of: Home) -> str | None:
        """The slug of a project as the store knows it, or None when it holds nothing of it yet."""
        project = find(self.db.connection, home_of)
        return None if project is None else project.slug


class Bulk:
    """An import under way inside one transaction. See `Store.bulk`."""

    def __init__(self, store: Store, connection: apsw.Connection) -> None:
        self._store = store
        self._connection = connection
        self._terms = 0  # what the added records add to the commitment: one number, however many they are
        self._first = 0

    def add(self, admitted: Admitted, project: Project, *, action: str = "import", tier: str = "short") -> Logged:
        """Store one record. Raises `IdConflict` when its id exists with other content; nothing of it is stored then."""
        logged = self._store.place(self._connection, admitted, project, action=action, tier=tier)
        if logged.created:
            self._first = self._first or logged.seq
            self._terms += commitment_term(logged.seq, logged.digest)
        return logged

    def finish(self) -> None:
        """Build the search rows of what was added, and bring the commitment up to date."""
        if not self._first:
            return
        # A large import leaves many segments, which every later search would have to look into.
        largely = 4 * (int(self._store.db.value("SELECT max(seq) FROM record")) - self._first) >= self._first
        for table, columns, source in (
            ("record_fts", "title, search_terms, tags, next_steps, body_md", "record"),
            ("record_trigram", "text", "record_search_text"),
        ):
            self._connection.execute(
                f"INSERT INTO {table} (rowid, {columns}) SELECT seq, {columns} FROM {source} WHERE seq >= ?",
                (self._first,),
            )
            if largely:
                self._connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        self._store.commit_by(self._terms)
        self._terms = self._first = 0


def database_path(home: Path) -> Path:
    """Where the database of a home lies."""
    return home / "qiju.db"


def commitment_term(seq: int, digest: str) -> int:
    """What one sealed record adds to the commitment."""
    from hashlib import sha256

    return int.from_bytes(sha256(f"{seq}:{digest}".encode("ascii")).digest(), "big")
