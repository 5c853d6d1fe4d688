"""A copy of records as a plain SQLite file, to be handed to any Datasette or opened anywhere.

Built with sqlite-utils on the standard library's SQLite, which must never touch the live store in a process that has
apsw open on it; this file is another one, so both may be loaded. Names are those of the live store (`record`,
`record_fts` with rowid = `record.seq`, `project`), rows are what the caller's privacy view let through, and the file is
not in WAL mode: a WAL file cannot be read from a folder that nobody may write to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from qiju.archive import Row
from qiju.errors import StorageFailed

BATCH_ROWS = 500
COLUMNS: dict[str, type] = {
    "seq": int,
    "id": str,
    "project": str,
    "tier": str,
    "ts": str,
    "instant": int,
    "session_id": str,
    "number": int,
    "agent": str,
    "source": str,
    "model": str,
    "model_effort": str,
    "title": str,
    "tags": str,
    "search_terms": str,
    "next_steps": str,
    "body_md": str,
    "redactions": str,
    "schema_version": int,
    "extra": str,
    "digest": str,
    "rev": int,
}
SEARCHED = ("title", "search_terms", "tags", "next_steps", "body_md")
VIEWS = {
    "recent": "SELECT seq, id, project, ts, agent, source, title, tags, next_steps, body_md FROM record "
    "ORDER BY instant DESC, seq DESC LIMIT 100",
    "short": "SELECT * FROM record WHERE tier = 'short'",
    "long": "SELECT * FROM record WHERE tier = 'long'",
    "archive": "SELECT * FROM record WHERE tier = 'archive'",
}


def build(path: Path, rows: Iterable[Row], *, about: dict[str, str]) -> int:
    """Write the copy to the empty file `path`; returns the number of records. `about` becomes the table of that name.

    Raises `StorageFailed` naming the path when the disk refuses; the caller throws the file away then.
    """
    import sqlite_utils

    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = OFF")  # the caller flushes the finished file and renames it
        database = sqlite_utils.Database(connection)
        count = _fill(database, rows, about)
        connection.execute("VACUUM")
        connection.execute("PRAGMA optimize")
    except sqlite3.Error as error:
        raise StorageFailed(f"cannot write {path}: {error}", hint="nothing was changed") from error
    finally:
        connection.close()
    return count


def _fill(database: Any, rows: Iterable[Row], about: dict[str, str]) -> int:
    record = database["record"]
    record.create(COLUMNS, pk="seq", not_null=set(COLUMNS) - {"instant"})
    record.insert_all(_documents(rows), batch_size=BATCH_ROWS)
    record.create_index(["id", "project"])  # not unique: a view may give two ids the same marker
    for columns in (["project", "instant"], ["instant"], ["session_id", "number"], ["agent"]):
        record.create_index(columns)
    # Written out: Datasette finds it by content="..." in double quotes, and the tokenizer is the live store's.
    database.execute(
        f"CREATE VIRTUAL TABLE record_fts USING fts5 ({', '.join(SEARCHED)}, "
        'content="record", content_rowid="seq", tokenize="porter unicode61")'
    )
    database.execute("INSERT INTO record_fts (record_fts) VALUES ('rebuild')")
    database.execute("INSERT INTO record_fts (record_fts) VALUES ('optimize')")
    database.execute(
        "CREATE TABLE project (slug TEXT PRIMARY KEY, records INTEGER NOT NULL, first_ts TEXT, last_ts TEXT)"
    )
    database.execute(
        "INSERT INTO project SELECT project, count(*), "
        "(SELECT ts FROM record AS r WHERE r.project = record.project ORDER BY instant, seq LIMIT 1), "
        "(SELECT ts FROM record AS r WHERE r.project = record.project ORDER BY instant DESC, seq DESC LIMIT 1) "
        "FROM record GROUP BY project"
    )
    for name, sql in VIEWS.items():
        database.create_view(name, sql)
    database["about"].create({"name": str, "value": str}, pk="name")
    database["about"].insert_all({"name": name, "value": value} for name, value in about.items())
    database.conn.commit()
    return int(record.count)


def _documents(rows: Iterable[Row]) -> Iterator[dict[str, object]]:
    for row in rows:
        session, colon, number = row.id.rpartition(":")
        numbered = bool(colon) and number.isascii() and number.isdigit() and len(number) < 19
        document = row._asdict()
        document["session_id"] = session if numbered else row.id
        document["number"] = int(number) if numbered else 0
        yield {name: document[name] for name in COLUMNS}
