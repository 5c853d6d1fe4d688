"""Proof that a secret is gone from a database: every byte of the file, every index term, every free page.

Not every byte sequence that looks like the value is a remainder. Machine-made words (digests, UUIDs, times) may hold
the same digits, a marker may hold the same letters, and an index holds the words of other rows, in lower case. So each
hit is compared with what is live: it is explained when the same bytes, with their surroundings, stand in a live
machine-made column, or in a live block of an index whose terms are themselves proven. Anything else is a remainder.

The live file is read through SQLite's own file layer. Opening it a second time with Python would, on closing, drop the
locks that SQLite holds for this process, and another process could then take the WAL away under it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from qiju.errors import QijuError
from qiju.keeping.compact import INDEXES
from qiju.record import fold
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.db import Database
    from qiju.erasure.rows import Pieces
    from qiju.erasure.secret import Secret, Sought

SMALL_STORE = 5000  # records up to which every index is compared with every row
CHUNK = 4 * 1024 * 1024  # bytes read at once
_AROUND = 12  # bytes of a hit's surroundings that must agree, too
_SIDE = 100  # bytes kept on each side of a hit; a marker around it fits
_MOST = 10_000  # hits looked at

# Columns that hold no word of a person: made by the machine, or derived from text that is looked at itself.
_MACHINE = (
    ("record", ("digest", "folded")),
    ("project", ("uuid", "created_at")),
    ("project_root", ("registered_at",)),
    ("tombstone", ("deleted_at",)),
    ("trajectory_event", ("digest",)),
    ("redaction_audit", ("at", "fingerprint")),
    ("redacted_value", ("fingerprint", "at")),
    ("redaction_pending", ("at", "fingerprint")),
    ("spooled", ("name",)),
    ("file_manifest", ("sha256", "written_at")),
    ("archive_partition", ("digest", "sha256", "written_at", "month")),
    ("retag", ("at", "source_uuid", "undone_at")),
    ("taken_over", ("fingerprint",)),
    ("migration", ("name", "applied_at", "qiju_version")),
    ("record_fts_data", ("block",)),
    ("record_trigram_data", ("block",)),
    ("record_fts_idx", ("term",)),
    ("record_trigram_idx", ("term",)),
)


def remains_in_file(db: Database, sought: Sought) -> list[str]:
    """What is left of the text sought in the bytes of the database and its WAL."""
    if db.path is None:
        return []
    with db.read() as connection:
        connection.execute("SELECT count(*) FROM setting").fetchall()  # holds the snapshot, and the file with it
        found = _unexplained(connection, sought, _hits(_live_chunks(db.path), sought))
        left = [f"{counted(found, 'place')} in {db.path.name}"] if found else []
        wal = db.path.with_name(db.path.name + "-wal")
        if wal.exists() and (more := _unexplained(connection, sought, _hits(_file_chunks(wal), sought))):
            left.append(f"{counted(more, 'place')} in {wal.name}")
    return left


def _unexplained(connection: apsw.Connection, sought: Sought, hits: Iterator[tuple[bytes, int, int]]) -> int:
    known: dict[bytes, list[tuple[bytes, int]]] = {}
    left = 0
    for around, at, size in hits:
        needle = around[at : at + size]
        if needle not in known:
            known[needle] = _live_places(connection, needle)
        if not any(_agree(around, at, live, place, size) for live, place in known[needle]):
            left += 1
    return left


def index_holds(db: Database, sought: Sought) -> int:
    """How many blocks of the word index hold the bytes of the text sought, in old segments, too."""
    sql = "SELECT count(*) FROM record_fts_data WHERE instr(block, ?)"
    with db.read():
        return sum(int(db.value(sql, (needle,))) for needle in sought.needles)


def _live_places(connection: apsw.Connection, needle: bytes) -> list[tuple[bytes, int]]:
    """Each place of the needle in a machine-made column: the bytes of the column, and where."""
    found: list[tuple[bytes, int]] = []
    tables = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema")}
    for table, columns in _MACHINE:
        if table not in tables:
            continue
        for column in columns:
            sql = f"SELECT CAST({column} AS BLOB) FROM {table} WHERE instr(CAST({column} AS BLOB), ?) LIMIT {_MOST}"
            for (value,) in connection.execute(sql, (needle,)):
                at = value.find(needle)
                while at >= 0:
                    found.append((value, at))
                    at = value.find(needle, at + 1)
    return found


def _agree(around: bytes, at: int, live: bytes, place: int, size: int) -> bool:
    """Whether the surroundings on both sides are the same, as far as the live value and the bytes at hand reach."""
    before = min(at, place, _AROUND)
    after = min(len(around) - at - size, len(live) - place - size, _AROUND)
    return around[at - before : at + size + after] == live[place - before : place + size + after]


def _hits(chunks: Iterator[bytes], sought: Sought) -> Iterator[tuple[bytes, int, int]]:
    """Each hit with its surroundings: bytes, where the hit begins in them, its length."""
    keep = max(len(needle) for needle in sought.needles) + 2 * _SIDE  # what a hit at the edge still needs behind it
    tail, base, begin, count = b"", 0, 0, 0
    for chunk in chunks:
        data = tail + chunk
        end = base + len(data) - keep
        for at, size in _in_order(sought, data):
            if begin <= base + at < end:
                yield data[max(0, at - _SIDE) : at + size + _SIDE], min(at, _SIDE), size
                count += 1
        if count >= _MOST:
            return
        begin = max(begin, end)
        tail = data[-2 * keep :]
        base += len(data) - len(tail)
    for at, size in _in_order(sought, tail):
        if base + at >= begin:
            yield tail[max(0, at - _SIDE) : at + size + _SIDE], min(at, _SIDE), size


def _in_order(sought: Sought, data: bytes) -> list[tuple[int, int]]:
    return sorted(sought.hits(data)) if sought.in_bytes(data) else []


def _live_chunks(path: Path) -> Iterator[bytes]:
    with live_file(path) as file:
        size, at = file.xFileSize(), 0
        while at < size:
            data = file.xRead(min(CHUNK, size - at), at)
            at += len(data)
            yield data


@contextmanager
def live_file(path: Path) -> Iterator[apsw.VFSFile]:
    """The database's file through SQLite's own layer, which keeps this process's locks."""
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    try:
        yield file
    finally:
        file.xClose()


def _file_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            yield data


def file_holds(path: Path, sought: Sought) -> int:
    """How many places of an ordinary file hold the text sought text's bytes."""
    return sum(1 for _ in _hits(_file_chunks(path), sought))


# --- index terms -----------------------------------------------------------------------------------------------------


def stale_terms(db: Database, secret: Secret) -> list[str]:
    """Indexes that know a term of the value which no live row holds."""
    left = []
    with db.read() as connection:
        for term, word in _words(secret):
            known = connection.execute("SELECT 1 FROM record_fts_vocab WHERE term = ?", (term,)).fetchone()
            if known and not _word_is_live(connection, word):
                left.append("a word of the value in record_fts that no record holds")
                break
        for piece in _trigrams(secret):
            row = connection.execute(
                "SELECT doc FROM record_trigram_instance WHERE term = ? LIMIT 1", (piece,)
            ).fetchone()
            if row and not _piece_is_live(connection, piece, int(row[0])):
                left.append("a piece of the value in record_trigram that no record holds")
                break
    return left


def _words(secret: Secret) -> list[tuple[str, str]]:
    """(term, word) pairs: the words of the value as the index spells them, told by FTS5 itself."""
    own = apsw.Connection(":memory:")
    try:
        own.execute(
            "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize='porter unicode61');"
            "CREATE VIRTUAL TABLE v USING fts5vocab (t, instance)"
        )
        found: dict[str, str] = {}
        for form in secret.forms:
            own.execute("INSERT INTO t (rowid, x) VALUES (1, ?)", (form,))
            for (term,) in own.execute("SELECT DISTINCT term FROM v").fetchall():
                found.setdefault(str(term), form)
            own.execute("DELETE FROM t")
        return list(found.items())
    finally:
        own.close()


def _word_is_live(connection: apsw.Connection, form: str) -> bool:
    """Whether each word of the spelling that the index finds stands in a row."""
    own = apsw.Connection(":memory:")
    try:
        own.execute(
            "CREATE VIRTUAL TABLE t USING fts5 (x, tokenize='unicode61');"
            "CREATE VIRTUAL TABLE v USING fts5vocab (t, row)"
        )
        own.execute("INSERT INTO t (x) VALUES (?)", (form,))
        words = [str(row[0]) for row in own.execute("SELECT term FROM v")]
    finally:
        own.close()
    for word in words:
        sql = "SELECT rowid FROM record_fts WHERE record_fts MATCH ? LIMIT 1"
        row = connection.execute(sql, ('"' + word.replace('"', '""') + '"',)).fetchone()
        if row and not connection.execute("SELECT 1 FROM record WHERE seq = ?", (row[0],)).fetchone():
            return False
    return True


def _trigrams(secret: Secret) -> list[str]:
    low = fold(secret.literal)
    return list(dict.fromkeys(low[at : at + 3] for at in range(len(low) - 2)))[:200]


def _piece_is_live(connection: apsw.Connection, piece: str, seq: int) -> bool:
    row = connection.execute("SELECT text FROM record_search_text WHERE seq = ?", (seq,)).fetchone()
    return row is not None and piece in fold(str(row[0]))


# --- integrity and free pages ----------------------------------------------------------------------------------------


def unsound_indexes(db: Database, tables: tuple[str, ...] = INDEXES) -> list[str]:
    """FTS5's own check of each index against the rows. It counts as writing, so other writers would wait for it: it
    runs on a private copy of the snapshot beside the store, which is gone afterwards."""
    from qiju.files import remove_tree, temporary_beside
    from qiju.keeping.backup import copy_database

    if db.path is None or not tables:
        return []
    copy = temporary_beside(db.path)
    try:
        copy_database(db, copy)
        connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; PRAGMA temp_store = MEMORY"
            ).fetchall()
            return _checked(connection, tables)
        finally:
            connection.close()
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            remove_tree(copy.with_name(copy.name + suffix))


def _checked(connection: apsw.Connection, tables: tuple[str, ...]) -> list[str]:
    left = []
    for table in tables:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except apsw.Error:
            left.append(f"{table} does not agree with the records (qiju doctor --fix rebuilds it)")
    return left


def wrong_pieces(db: Database, pieces: list[Pieces]) -> list[str]:
    """The substring index, compared with what was changed: its structure as a whole, and for every changed row each
    piece that the change took away or brought.

    FTS5's own comparison of that index with all rows costs more than building it anew; this compares the same, for the
    rows that the erasure touched. Rows that somebody changed since are theirs.
    """
    wrong = 0
    with db.read() as connection:
        told = connection.execute("PRAGMA integrity_check(record_trigram)").fetchall()
        if told != [("ok",)]:
            return ["record_trigram is not whole (qiju doctor --fix rebuilds it)"]
        sql = "SELECT 1 FROM record_trigram WHERE record_trigram MATCH ? AND rowid = ?"
        for one in pieces:
            if db.value("SELECT rev FROM record WHERE seq = ?", (one.seq,)) != one.rev:
                continue
            for piece in (*one.gone, *one.came):
                quoted = '"' + piece.replace('"', '""') + '"'
                found = connection.execute(sql, (quoted, one.seq)).fetchone() is not None
                wrong += found != (piece in one.came)
    return [f"record_trigram does not agree with {wrong} changed pieces (qiju doctor --fix rebuilds it)"] * (wrong > 0)


def dirty_free_pages(db: Database) -> int:
    """How many pages of the free list hold anything but zeros."""
    if db.path is None:
        return 0
    with db.read() as connection:
        connection.execute("SELECT count(*) FROM setting").fetchall()
        with live_file(db.path) as file:
            return _dirty(file)


def _dirty(file: Any) -> int:
    header = file.xRead(100, 0)
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    pages = file.xFileSize() // page
    trunk, dirty, seen = int.from_bytes(header[32:36], "big"), 0, set()
    while trunk and trunk <= pages and trunk not in seen:
        seen.add(trunk)
        data = file.xRead(page, (trunk - 1) * page)
        count = min(int.from_bytes(data[4:8], "big"), (page - 8) // 4)
        for index in range(count):
            leaf = int.from_bytes(data[8 + 4 * index : 12 + 4 * index], "big")
            if 0 < leaf <= pages and any(file.xRead(page, (leaf - 1) * page)):
                dirty += 1
        # Behind its list a trunk page may keep numbers of pages it listed before; text makes larger numbers.
        rest = data[8 + 4 * count :]
        dirty += any(int.from_bytes(rest[i : i + 4], "big") > pages for i in range(0, len(rest), 4))
        trunk = int.from_bytes(data[0:4], "big")
    return dirty


class DatabaseProof:
    """The four parts for one database; `remains` says in words what failed, `retry` whether VACUUM may help.

    `pieces` are what a row transaction changed; without them (nobody knows any more, or the rows were deleted) both
    indexes are compared with all rows.
    """

    def __init__(
        self,
        db: Database,
        secret: Secret | None,
        reader: str,
        also: Sought | None = None,
        pieces: list[Pieces] | None = None,
    ) -> None:
        sought = [each for each in (secret, also) if each is not None]
        self.bytes_left = [left for each in sought for left in remains_in_file(db, each)]
        self.terms_left = [] if secret is None else stale_terms(db, secret)
        self.indexes_wrong = _guarded(db, pieces)
        self.wal_held = reader
        self.free_pages = dirty_free_pages(db)
        self.vacuumed = False

    @property
    def retry(self) -> bool:
        return bool(self.bytes_left or self.free_pages)

    @property
    def remains(self) -> list[str]:
        left = [*self.bytes_left, *self.terms_left, *self.indexes_wrong]
        if self.wal_held:
            left.append(f"the write-ahead log cannot be cut: {self.wal_held} still reads the store")
        if self.free_pages:
            left.append(f"{self.free_pages} free pages are not zero")
        return left


def _guarded(db: Database, pieces: list[Pieces] | None) -> list[str]:
    try:
        if pieces is None or db.value("SELECT count(*) FROM record") <= SMALL_STORE:
            return unsound_indexes(db)
        return [*unsound_indexes(db, ("record_fts",)), *wrong_pieces(db, pieces)]
    except (QijuError, apsw.Error) as error:
        return [f"the indexes could not be checked: {error}"]
