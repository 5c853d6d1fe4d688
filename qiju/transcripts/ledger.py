"""Which ids a file has shown so far, in memory that does not grow with the file.

Pairing results with calls and finding repeats needs every id of a transcript, and a transcript may hold millions. The
ids' hashes therefore stand in a private temporary database that SQLite keeps in a few MB of cache and spills to a file
which vanishes with the connection. It is never the store's file, and holds hashes and line numbers only.
"""

from __future__ import annotations

from hashlib import blake2b

import apsw

SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
PRAGMA cache_size = -4096;
CREATE TABLE fact (scope TEXT, key INTEGER, count INTEGER, line INTEGER, PRIMARY KEY (scope, key)) WITHOUT ROWID;
CREATE TABLE alias (key INTEGER PRIMARY KEY, canonical INTEGER);
CREATE INDEX alias_canonical ON alias (canonical);
BEGIN;
"""


class Ledger:
    """Counts of ids per scope. A context manager; closing it frees the temporary file."""

    def __init__(self) -> None:
        self._connection = apsw.Connection("")
        self._connection.execute(SCHEMA).fetchall()  # a pragma returns rows; the rest runs once they are taken

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @staticmethod
    def key(text: str) -> int:
        """64 bits of the id: a chance collision in a million ids is one in thirty million."""
        return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)

    def call_key(self, name: str) -> int:
        """The key that all names of a call share."""
        key = self.key(name)
        row = self._connection.execute("SELECT canonical FROM alias WHERE key = ?", (key,)).fetchone()
        return _whole(row[0]) if row else key

    def note(self, scope: str, text: str, line: int) -> int:
        """Count `text` once more in `scope`; returns how often it had been seen before. `line` of the first stays."""
        return self.note_key(scope, self.key(text), line)

    def note_key(self, scope: str, key: int, line: int) -> int:
        rows = self._connection.execute(
            "INSERT INTO fact VALUES (?, ?, 1, ?) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count",
            (scope, key, line),
        ).fetchall()
        return _whole(rows[0][0]) - 1

    def seen(self, scope: str, text: str) -> int:
        """How often `text` was counted in `scope`."""
        row = self._connection.execute(
            "SELECT count FROM fact WHERE scope = ? AND key = ?", (scope, self.key(text))
        ).fetchone()
        return _whole(row[0]) if row else 0

    def alias(self, other: str, canonical: str) -> None:
        """`other` names the same call as `canonical`."""
        self._connection.execute("INSERT OR IGNORE INTO alias VALUES (?, ?)", (self.key(other), self.key(canonical)))

    def missing(self, scope: str, target: str, limit: int) -> tuple[int, list[int]]:
        """Ids counted in `scope` that `target` never showed, under any of their names: how many, the first lines."""
        condition = (
            "FROM fact AS f WHERE f.scope = :scope"
            " AND NOT EXISTS (SELECT 1 FROM fact AS t WHERE t.scope = :target AND t.key = f.key)"
            " AND NOT EXISTS (SELECT 1 FROM alias AS a JOIN fact AS t ON t.scope = :target AND t.key = a.canonical"
            " WHERE a.key = f.key)"
            " AND NOT EXISTS (SELECT 1 FROM alias AS a JOIN fact AS t ON t.scope = :target AND t.key = a.key"
            " WHERE a.canonical = f.key)"
        )
        values: dict[str, apsw.SQLiteValue] = {"scope": scope, "target": target, "limit": limit}
        [(count,)] = self._connection.execute(f"SELECT coalesce(sum(f.count), 0) {condition}", values).fetchall()
        lines = self._connection.execute(f"SELECT f.line {condition} ORDER BY f.line LIMIT :limit", values)
        return _whole(count), [_whole(line) for (line,) in lines]


def _whole(value: object) -> int:
    """A count or key from the ledger's own tables, which hold whole numbers only."""
    if not isinstance(value, int):
        raise TypeError("the ledger holds whole numbers only")
    return value
