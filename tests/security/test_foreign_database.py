"""SQLite files of others below the home, with names that would be SQL: cleaned like any other, and nothing else run."""

from __future__ import annotations

import sqlite3

import pytest
from program import Place

SECRET = "canary" + "word5520z"
TABLES = ['a"b', "x; DROP TABLE kept", 'q" (x) VALUES (1); DROP TABLE kept; --', "select", "'", "\u00fcber"]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("column", ['c"d', 'v" = 1; DROP TABLE kept; --', "order"])
def test_names_that_would_be_sql_are_names(place: Place, table: str, column: str) -> None:
    place.log(title=f"t {SECRET}")
    path = place.home / "notes.sqlite"
    name, field = (text.replace('"', '""') for text in (table, column))
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE kept (x)")
    connection.execute("INSERT INTO kept VALUES ('stays')")
    connection.execute(f'CREATE TABLE "{name}" ("{field}" TEXT)')
    connection.execute(f'INSERT INTO "{name}" VALUES (?)', (f"holds {SECRET}",))
    connection.commit()
    connection.close()
    place.ok("redact", "--value", SECRET, "--reason", "r")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT x FROM kept").fetchall() == [("stays",)]
    (text,) = connection.execute(f'SELECT "{field}" FROM "{name}"').fetchone()
    connection.close()
    assert text == "holds [REDACTED:manual]"
    assert SECRET.encode() not in path.read_bytes()
