"""The file as other people's tools see it: the stock shell, the standard library, sqlite-utils, Datasette."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlite_utils
from program import Place

from qiju import db as database
from qiju import migrate
from qiju.db import Database

INSERT = (
    "INSERT INTO record(id, ts, project, agent, source, title, body_md)"
    " VALUES ('hand:7', '2026-03-01T06:00:59.999999+02:00', 'by-hand', 'me', 'manual', 'Written by hand',"
    " 'deadlock found')"
)


@pytest.fixture
def made(place: Place) -> Path:
    """A store with one record that Qiju wrote."""
    place.log(title="Alpha", body_md="the lease broke", tags=["x"])
    return place.db


def integrity(path: Path) -> None:
    """FTS5's own check against the content, and SQLite's."""
    connection = sqlite3.connect(path)
    for table in ("record_fts", "record_trigram"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_the_schema_version_is_the_number_of_the_newest_migration() -> None:
    """The constant that spares the hot path a listing of the folder."""
    assert max(migrate.files(None)) == database.SCHEMA_VERSION


def test_the_stock_shell_reads_and_searches(made: Path, shell: Callable[..., str]) -> None:
    assert shell(made, "SELECT title FROM recent") == "Alpha\n"
    assert (
        shell(made, "SELECT title FROM short; SELECT count(*) FROM long; SELECT count(*) FROM archive")
        == "Alpha\n0\n0\n"
    )
    assert shell(made, "SELECT rowid FROM record_fts('lease')") == "1\n"
    assert (
        shell(made, "SELECT r.title FROM record_fts f JOIN record r ON r.seq = f.rowid WHERE record_fts MATCH 'leases'")
        == "Alpha\n"
    )
    assert shell(made, "PRAGMA application_id; PRAGMA user_version; PRAGMA journal_mode") == "1363757653\n1\nwal\n"


def test_a_row_inserted_by_hand_is_whole(place: Place, made: Path, shell: Callable[..., str]) -> None:
    """Triggers work out the instant, the numbers, the project, the event and the search rows."""
    shell(made, INSERT)
    facts = shell(
        made, "SELECT instant, session_id, number, tier, rev > 0, digest = '' FROM record WHERE id = 'hand:7'"
    )
    assert facts == "1772337659999999|hand|7|short|1|1\n"
    assert shell(made, "SELECT length(uuid), substr(uuid, 15, 1) FROM project WHERE slug = 'by-hand'") == "36|4\n"
    assert shell(made, "SELECT kind FROM trajectory_event WHERE session_id = 'hand'") == "session_record\n"
    assert [row["id"] for row in place.ok("search", "--scope", "all", "--query", "deadlock").json()] == ["hand:7"]
    assert place.ok("show", "hand:7").json()["title"] == "Written by hand"
    integrity(made)


def test_a_time_that_sql_cannot_read_sorts_by_its_insert(made: Path, shell: Callable[..., str]) -> None:
    shell(made, "INSERT INTO record(id, ts, project) VALUES ('x:1', 'March 1', 'p')")
    near = "abs(instant / 1000000 - strftime('%s', 'now')) < 100"
    assert shell(made, f"SELECT {near} FROM record WHERE id = 'x:1'") == "1\n"


@pytest.mark.parametrize("verb", ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "REPLACE"])
def test_no_insert_can_replace_a_row(made: Path, shell: Callable[..., str], verb: str) -> None:
    """A replaced row would leave the indexes without telling them; it is refused with a sentence."""
    shell(made, INSERT)
    for columns in ("id, ts, project", "seq, id, ts, project"):
        values = "'hand:7', '', 'by-hand'" if columns[0] == "i" else "2, 'other:1', '', 'by-hand'"
        said = shell(made, f"{verb} INTO record({columns}) VALUES ({values})", fails=True)
        assert "exists already" in said
    assert shell(made, "SELECT count(*) FROM record") == "2\n"
    integrity(made)


def test_update_or_replace_cannot_swallow_a_row(made: Path, shell: Callable[..., str]) -> None:
    shell(made, INSERT)
    said = shell(made, "UPDATE OR REPLACE record SET id = 'hand:7', project = 'by-hand' WHERE seq = 1", fails=True)
    assert "exists already" in said
    assert "seq never changes" in shell(made, "UPDATE record SET seq = 9 WHERE seq = 1", fails=True)
    integrity(made)


def test_sqlite_utils_replace_and_upsert_leave_the_index_whole(made: Path) -> None:
    """sqlite-utils turns recursive triggers on; the triggers must not depend on that setting."""
    other = sqlite_utils.Database(made)
    assert other["record"].detect_fts() == "record_fts"
    with pytest.raises(sqlite3.IntegrityError, match="exists already"):
        other["record"].insert({"seq": 1, "id": "a:1", "project": "p", "title": "new"}, replace=True)
    other["record"].update(1, {"title": "Changed by hand"})
    other["record"].insert({"id": "a:1", "project": "p", "title": "Zweite"})
    assert [row["seq"] for row in other["record"].search("changed")] == [1]
    assert list(other["record"].search("alpha")) == []
    other.close()
    integrity(made)


@pytest.mark.parametrize("recursive", ["ON", "OFF"])
def test_edits_by_hand_keep_indexes_numbers_and_seal_right(made: Path, recursive: str) -> None:
    """Content, folded text, tier and deletion, with recursive triggers on and off."""
    connection = sqlite3.connect(made)
    connection.execute(f"PRAGMA recursive_triggers = {recursive}")
    connection.execute("UPDATE record SET body_md = 'Stra\u00dfe', folded = 'strasse', digest = 'sealed' WHERE seq = 1")
    connection.execute("UPDATE record SET title = 'Neu' WHERE seq = 1")
    row = connection.execute("SELECT rev, revised, folded, digest FROM record").fetchone()
    assert row == (3, 1, "", "")
    connection.execute("UPDATE record SET tier = 'long'")
    assert connection.execute("SELECT rev, tier_rev FROM record").fetchone() == (3, 1)
    connection.commit()
    integrity(made)
    connection.execute("DELETE FROM record")
    assert connection.execute("SELECT what, rev, id FROM tombstone WHERE what = 'record'").fetchall()[0][:2] == (
        "record",
        4,
    )
    assert connection.execute("SELECT count(*) FROM trajectory_event").fetchone() == (0,)
    connection.commit()
    connection.close()
    integrity(made)


def test_late_and_far_future_records_are_marked(tmp_path: Path) -> None:
    """Records out of time order are marked; one date in 2099 does not make all later ones late."""
    with Database.open(tmp_path / "h" / "qiju.db") as db, db.write() as connection:
        for number, ts in enumerate(
            ("2026-01-02T00:00Z", "2026-01-01T00:00Z", "2099-01-01T00:00Z", "2026-01-02T00:00Z"), 1
        ):
            connection.execute("INSERT INTO record(id, ts, project) VALUES (?, ?, 'p')", (f"s:{number}", ts))
        assert [row[0] for row in connection.execute("SELECT late FROM record ORDER BY seq")] == [0, 1, 1, 0]


def test_malformed_lists_are_refused_at_the_insert(made: Path, shell: Callable[..., str]) -> None:
    said = shell(made, "INSERT INTO record(id, project, tags) VALUES ('a:1', 'p', 'not json')", fails=True)
    assert "CHECK constraint failed" in said


def test_a_fast_import_and_a_slow_one_build_the_same_index(tmp_path: Path) -> None:
    """The bulk path leaves out the row triggers of the search tables, and must end where they would."""
    from qiju import record
    from qiju.projects import Home, ensure
    from qiju.store import Store

    texts = ["lease", "Stra\u00dfe", 'a "quoted" tag', "\u4ee4\u724c"]
    with Store.open(tmp_path / "one") as one, Store.open(tmp_path / "two") as two:
        with one.bulk() as bulk:
            project = ensure(one.db.connection, Home("p"))
            for place, text in enumerate(texts, 1):
                fields = record.check({"id": f"s:{place}", "source": "agent", "title": text, "tags": [text]})
                bulk.add(one.admit(fields, session_id="s", session_source="t"), project)
        for place, text in enumerate(texts, 1):
            fields = record.check({"id": f"s:{place}", "source": "agent", "title": text, "tags": [text]})
            two.log(two.admit(fields, session_id="s", session_source="t"), Home("p"))
        for table in ("record_fts_vocab", "record_trigram_vocab"):
            terms = [
                store.db.connection.execute(f"SELECT term, doc FROM {table} ORDER BY 1, 2").fetchall()
                for store in (one, two)
            ]
            assert terms[0] == terms[1]
            assert terms[0]
        assert one.db.counter("bulk") == 0
    integrity(tmp_path / "one" / "qiju.db")
