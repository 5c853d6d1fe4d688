"""Every row of a table that can still be read, and the name of every row that cannot.

A damaged page stops an ordinary `SELECT` at the first bad row and hides all behind it. Here the scan goes on: it takes
the numbers of the rows from wherever they can still be had (the table itself, else an index that lists them, else the
range that was ever given out) and reads the rest one by one. `verify` and `salvage` both stand on this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw

_BATCH = 256


class Scanned(NamedTuple):
    """One row: `values` in the order asked for, or None with the reason in `fault`."""

    rowid: int
    values: tuple[Any, ...] | None
    fault: str


def scan(connection: apsw.Connection, table: str, columns: str, *, key: str = "seq") -> Iterator[Scanned]:
    """Yield the rows of `table` in the order of `key`, its integer primary key; `columns` is SQL without the key.

    Table, columns and key are the program's own words, never a user's.
    """
    sql = f"SELECT {key}, {columns} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_BATCH}"
    last = -(2**63)
    while True:
        try:
            rows = _rows(connection, sql, last)
        except (apsw.Error, UnicodeDecodeError):
            yield from _one_by_one(connection, table, columns, key, last)
            return
        for row in rows:
            yield Scanned(row[0], row[1:], "")
        if len(rows) < _BATCH:
            return
        last = rows[-1][0]


def _one_by_one(connection: apsw.Connection, table: str, columns: str, key: str, last: int) -> Iterator[Scanned]:
    """From the first batch with a bad row on: walk the numbers, read each row alone."""
    sql = f"SELECT {columns} FROM {table} WHERE {key} = ?"
    certain = False
    for rowid, certain in _numbers(connection, table, key, last):
        try:
            row = connection.execute(sql, (rowid,)).fetchone()
        except UnicodeDecodeError:
            yield Scanned(rowid, None, "holds bytes that are not UTF-8")
        except apsw.Error as error:
            yield Scanned(rowid, None, f"cannot be read: {error}")
        else:
            if row is not None:
                yield Scanned(rowid, row, "")
            elif certain:
                yield Scanned(rowid, None, "an index names it, but the table does not hold it")


def _numbers(connection: apsw.Connection, table: str, key: str, last: int) -> Iterator[tuple[int, bool]]:
    """The numbers after `last`, and whether a row of that number is certain to have been there."""
    known: set[int] = set()
    for index in _indexes(connection, table):
        try:
            sql = f'SELECT {key} FROM {table} INDEXED BY "{index}" WHERE {key} > ?'
            known.update(int(row[0]) for row in _rows(connection, sql, last))
        except apsw.Error:
            continue
    try:
        sql = f"SELECT {key} FROM {table} NOT INDEXED WHERE {key} > ?"
        known.update(int(row[0]) for row in _rows(connection, sql, last))
    except apsw.Error:
        pass  # the indexes and the range have to do
    top = _top(connection, table)
    if top is not None and top - max(last, 0) < 10_000_000:
        for number in range(max(last, 0) + 1, max(top, max(known, default=0)) + 1):
            yield number, number in known
        return
    for number in sorted(known):
        yield number, True


def _rows(connection: apsw.Connection, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
    return connection.execute(sql, bindings).fetchall()


def _indexes(connection: apsw.Connection, table: str) -> list[str]:
    """Names of the table's whole indexes: a partial one does not list every row."""
    try:
        sql = "SELECT name FROM pragma_index_list(?) WHERE partial = 0 AND name NOT LIKE 'sqlite_autoindex%'"
        rows = _rows(connection, sql, table)
    except apsw.Error:
        return []
    return [name for (name,) in rows]


def _top(connection: apsw.Connection, table: str) -> int | None:
    """The highest number ever given out, where the table counts them."""
    try:
        rows = _rows(connection, "SELECT seq FROM sqlite_sequence WHERE name = ?", table)
    except apsw.Error:
        return None
    return int(rows[0][0]) if rows else None
