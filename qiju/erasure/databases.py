"""SQLite files without a secret: backups of a store, public copies, and whatever else lies below the home.

A backup is a store of its own: the same row transaction, the same index cleaning and the same proof run in it, then
VACUUM, since nobody writes to it meanwhile. Another SQLite file is cleaned table by table, its FTS indexes are built
anew. Both happen inside SQLite's own transactions, so a killed run leaves the file whole.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from qiju.db import APPLICATION_ID, SCHEMA_VERSION, Database
from qiju.erasure import candidates, indexes, proof, rows
from qiju.erasure.rewriting import rewrite_text
from qiju.errors import QijuError, StoreDamaged
from qiju.store import Store
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret

MAGIC = b"SQLite format 3\0"
_BUSY = 5000  # milliseconds
_MOST_TWINS = 1000


def is_store(path: Path) -> bool:
    """Whether it is a Qiju store of the schema this program knows (a backup, a replaced store)."""
    with path.open("rb") as file:
        header = file.read(100)
    version, application = int.from_bytes(header[60:64], "big"), int.from_bytes(header[68:72], "big")
    return header.startswith(MAGIC) and application == APPLICATION_ID and version == SCHEMA_VERSION


def holds(path: Path, secret: Secret) -> int:
    """How many rows, or places in the bytes, hold the secret. Raises `StoreDamaged`, `StoreBusy`."""
    if is_store(path):
        with Database.open(path) as db:
            found = candidates.find(db, secret)
            # A run that was killed between the rows and the indexes leaves it in old segments, which no row explains.
            left = 0 if found.variants else proof.index_holds(db, secret)
            return found.count or len(proof.remains_in_file(db, secret)) or left
    connection = _opened(path)
    try:
        return _rows_of(connection, secret, change=False) or proof.file_holds(path, secret)
    except (apsw.Error, UnicodeDecodeError) as error:
        raise StoreDamaged(f"{path} cannot be read as SQLite: {error}") from error
    finally:
        connection.close()


def clean(path: Path, secret: Secret) -> list[str]:
    """Clean the file where it lies; returns what is left, in words. Raises `StoreDamaged`, `StoreBusy`."""
    if is_store(path):
        return _clean_store(path, secret)
    change(path, lambda connection: _rows_of(connection, secret, change=True), always=True)
    left = proof.file_holds(path, secret)
    return [f"{counted(left, 'place')} in {path}"] if left else []


def change(path: Path, work: Callable[[apsw.Connection], object], *, always: bool = False) -> None:
    """Change rows of a SQLite file in one transaction, then build its indexes anew and shrink it, if rows changed or
    `always`.

    Raises `StoreDamaged`.
    """
    connection = _opened(path)
    try:
        before = connection.total_changes()
        connection.execute("BEGIN IMMEDIATE")
        work(connection)
        changed = always or connection.total_changes() != before
        # In the same transaction: a later run finds no row any more that would tell it to clean the indexes.
        for table in _fts(connection) if changed else ():
            for order in ("rebuild", "optimize"):
                connection.execute(f"INSERT INTO {quoted(table)} ({quoted(table)}) VALUES (?)", (order,))
        connection.execute("COMMIT")
        if changed:
            _shrink(connection)
    except (apsw.Error, UnicodeDecodeError) as error:
        raise StoreDamaged(f"{path} cannot be cleaned: {error}") from error
    finally:
        connection.close()


def _clean_store(path: Path, secret: Secret) -> list[str]:
    with Database.open(path) as db:
        store = Store(db, path.parent)
        found = candidates.find(db, secret)
        with db.write() as connection:
            done = rows.erase(store, connection, secret, found)
        indexes.merge(db)
        indexes.vacuum(db)
        reader = indexes.cut_wal(db)
        checked = proof.DatabaseProof(db, secret, reader)
        left = [f"{path}: {what}" for what in (*done.problems, *checked.remains)]
    refresh(path)
    return left


def refresh(path: Path) -> None:
    """Let the manifest beside a backup tell the new bytes."""
    from qiju.keeping.backup import refresh_manifest

    refresh_manifest(path)


def quoted(name: str) -> str:
    """A table's or column's name as SQL takes it: other people's databases may have any."""
    return '"' + name.replace('"', '""') + '"'


def _opened(path: Path) -> apsw.Connection:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(_BUSY)
        connection.execute("PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA schema_version").fetchall()
    except apsw.Error as error:
        raise StoreDamaged(f"{path} cannot be read as SQLite: {error}") from error
    return connection


def _shrink(connection: apsw.Connection) -> None:
    connection.execute("VACUUM")
    connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchall()


def _fts(connection: apsw.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%USING%fts5%'"
    return [str(row[0]) for row in connection.execute(sql) if "fts5vocab" not in str(row[0])]


def _tables(connection: apsw.Connection) -> list[str]:
    """Ordinary tables: no virtual ones, and none that stand behind one."""
    shadows = {
        f"{name}_{part}" for name in _fts(connection) for part in ("data", "idx", "docsize", "config", "content")
    }
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    names = [str(row[0]) for row in connection.execute(sql)]
    return [name for name in names if not name.startswith("sqlite_") and name not in shadows]


def _rows_of(connection: apsw.Connection, secret: Secret, *, change: bool) -> int:
    count = 0
    for table in _tables(connection):
        columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]
        keys = _key(connection, table)
        listed = ", ".join(map(quoted, columns))
        where = " AND ".join(f"{key} = ?" for key in keys)
        sql = f"SELECT {', '.join(keys)}, {listed} FROM {quoted(table)}"
        for row in connection.execute(sql).fetchall():
            key, values = row[: len(keys)], row[len(keys) :]
            changes = {
                name: new for name, old in zip(columns, values, strict=True) if (new := _value(old, secret)) != old
            }
            if not changes:
                continue
            count += 1
            if change:
                _update(connection, table, changes, where, key)
    return count


def _update(connection: apsw.Connection, table: str, changes: dict[str, Any], where: str, key: tuple[Any, ...]) -> None:
    """Change one row; a name that has become another row's gets a number behind it."""
    names = ", ".join(f"{quoted(name)} = ?" for name in changes)
    sql = f"UPDATE {quoted(table)} SET {names} WHERE {where}"
    values = list(changes.values())
    for number in range(2, _MOST_TWINS):
        try:
            connection.execute(sql, (*values, *key))
        except apsw.ConstraintError:
            values = [f"{value}~{number}" if isinstance(value, str) else value for value in changes.values()]
        else:
            return
    connection.execute(sql, (*values, *key))


def _key(connection: apsw.Connection, table: str) -> list[str]:
    try:
        connection.execute(f"SELECT rowid FROM {quoted(table)} LIMIT 1").fetchall()
    except apsw.SQLError:
        info: list[tuple[Any, ...]] = connection.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
        return [quoted(str(row[1])) for row in info if row[5]]
    return ["rowid"]


def _value(value: Any, secret: Secret) -> Any:
    if isinstance(value, bytes):
        return secret.placeholder.encode() if secret.in_bytes(value) else value
    if not isinstance(value, str) or not (secret.in_text(value) or "\\" in value):
        return value
    if value[:1] in ("{", "["):
        try:
            return rewrite_text(secret, value)[0]
        except QijuError:
            pass  # no JSON after all
    return secret.replace(value)[0]
