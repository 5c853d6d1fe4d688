"""`verify` passes what is sound, finds every altered byte of a payload, and reads past damage to the good rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qiju.cli.frame import run
from qiju.keeping.rowscan import scan
from qiju.keeping.verify import Report, verify
from qiju.migrate import PAGE_SIZE
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store, database_path


def log(store: Store, number: int, **more: Any) -> None:
    fields = check({"title": f"title {number}", "body_md": f"body {number} " * 20, "source": "manual", **more})
    store.log(store.admit(fields, session_id="s", session_source="flag"), Home("demo", named=True))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "home") as store:
        for number in range(1, 31):
            log(store, number, tags=["a", "b"], ts="2026-01-01T00:00:00Z", extra={"n": number, "straße": [None, {}]})
        log(store, 31, title="ﬁligree STRASSE straße", body_md="NFD: e\u0301 " * 5)
    return tmp_path / "home"


def checked(home: Path, *, quick: bool = False) -> Report:
    with Store.open_for_reading(home) as store:
        return verify(store, quick=quick)


def tamper(home: Path, sql: str, bindings: tuple[Any, ...] = ()) -> None:
    """Change a row behind the triggers' back, as a fault of the disk would."""
    connection = apsw.Connection(str(database_path(home)))
    connection.execute("PRAGMA foreign_keys = OFF")
    triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute(sql, bindings)
    for _, statement in triggers:
        connection.execute(str(statement))
    connection.close()


def faults(report: Report) -> set[str]:
    return {finding.check for finding in report.faults}


@pytest.mark.parametrize("quick", [False, True])
def test_a_sound_store_passes(home: Path, quick: bool) -> None:
    report = checked(home, quick=quick)
    assert report.ok, report.faults
    assert report.counts["records"] == 31
    assert report.to_json()["ok"] is True


def test_an_empty_store_and_no_store_pass(tmp_path: Path) -> None:
    assert checked(tmp_path / "none").ok
    assert not (tmp_path / "none").exists()
    Store.open(tmp_path / "empty").close()
    assert checked(tmp_path / "empty").ok


def test_verify_changes_nothing(home: Path) -> None:
    before = database_path(home).read_bytes()
    checked(home)
    assert database_path(home).read_bytes() == before


COLUMNS: list[tuple[str, Any]] = [
    ("title", "title 6"),
    ("body_md", "x"),
    ("tags", '["a","c"]'),
    ("search_terms", '["x"]'),
    ("next_steps", '["x"]'),
    ("extra", '{"n":7}'),
    ("redactions", '[{"a":1}]'),
    ("agent", "x"),
    ("source", "agent"),
    ("model", "m"),
    ("model_effort", "m"),
    ("ts", "2026-01-01T00:00:01Z"),
    ("schema_version", 3),
    ("digest", "0" * 64),
    ("id", "s:99"),
    ("instant", 5),
    ("number", 77),
    ("session_id", "t"),
]


@pytest.mark.parametrize(("column", "value"), COLUMNS, ids=[name for name, _ in COLUMNS])
def test_every_column_of_a_payload_is_covered_even_by_the_quick_check(home: Path, column: str, value: Any) -> None:
    tamper(home, f"UPDATE record SET {column} = ? WHERE seq = 5", (value,))
    report = checked(home, quick=True)
    assert any("seq 5" in finding.where for finding in report.faults), report.faults


def test_the_folded_text_is_covered(home: Path) -> None:
    tamper(home, "UPDATE record SET folded = 'x' WHERE seq = 31")
    assert any("seq 31" in finding.where for finding in checked(home, quick=True).faults)
    tamper(home, "UPDATE record SET folded = 'x' WHERE seq = 3")
    assert any("record_trigram" in finding.where for finding in checked(home).faults)


def test_a_row_that_vanished_is_a_gap_and_a_broken_commitment(home: Path) -> None:
    tamper(home, "DELETE FROM record WHERE seq = 5")
    report = checked(home)
    assert {"numbers", "commitment", "references", "indexes"} <= faults(report)
    assert any(finding.where == "record seq 5" for finding in report.faults)


def test_a_deleted_record_is_no_gap(home: Path) -> None:
    with Store.open(home) as store, store.db.write() as connection:
        stored = store.by_seq(5)
        assert stored is not None
        store.delete(connection, stored)
    assert checked(home).ok


def test_an_index_that_lost_a_row_is_found(home: Path) -> None:
    connection = apsw.Connection(str(database_path(home)))
    connection.execute("INSERT INTO record_trigram (record_trigram) VALUES ('delete-all')")
    connection.close()
    report = checked(home)
    assert [(finding.check, finding.where) for finding in report.faults] == [("indexes", "record_trigram")]


def test_rows_written_by_hand_are_named_and_are_no_fault(home: Path) -> None:
    connection = apsw.Connection(str(database_path(home)))
    connection.execute("INSERT INTO record (id, ts, project, title) VALUES ('x:1', '2026-01-01', 'demo', 'by hand')")
    connection.close()
    report = checked(home)
    assert report.ok, report.faults
    assert report.counts["unsealed"] == 1
    assert any("demo/x:1" in notice.where for notice in report.notices)


def test_an_orphaned_event_and_an_altered_event_are_named(home: Path) -> None:
    with Store.open(home) as store, store.db.write() as connection:
        columns, values = "event_id, session_id, kind, payload, digest", "'e', 's', 'event', '{}', ?"
        connection.execute(f"INSERT INTO trajectory_event ({columns}) VALUES ({values})", ("0" * 64,))
    tamper(home, "UPDATE trajectory_event SET record_seq = 999 WHERE record_seq = 4")
    report = checked(home)
    assert {"events", "references"} <= faults(report)


def test_text_that_is_not_utf8_is_one_named_row(home: Path) -> None:
    tamper(home, "UPDATE record SET body_md = CAST(x'ff41' AS TEXT) WHERE seq = 7")
    report = checked(home, quick=True)
    named = [finding.where for finding in report.faults if finding.check == "records"]
    assert named == ["seq 7"]
    assert report.counts["records"] == 31


def _overwrite(home: Path, find: bytes, change: Callable[[bytearray, int], None]) -> None:
    path = database_path(home)
    data = bytearray(path.read_bytes())
    change(data, data.index(find))
    path.write_bytes(bytes(data))


def test_a_destroyed_page_hides_no_other_rows(home: Path) -> None:
    def wipe(data: bytearray, at: int) -> None:
        page = at // PAGE_SIZE * PAGE_SIZE
        data[page : page + PAGE_SIZE] = b"\xa5" * PAGE_SIZE

    _overwrite(home, b"body 12 body 12 body 12", wipe)
    report = checked(home)
    assert not report.ok
    with Store.open_for_reading(home) as store:
        rows = list(scan(store.db.connection, "record", "title"))
    good = [row.rowid for row in rows if row.values is not None]
    bad = [row.rowid for row in rows if row.values is None]
    assert 12 in bad
    assert len(good) >= 8  # a page holds some twenty of these rows; the others are read
    assert len(good) + len(bad) == 31


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(1, 30), offset=st.integers(0, 100), bit=st.integers(0, 7))
def test_a_flipped_bit_in_a_payload_is_always_found(home: Path, number: int, offset: int, bit: int) -> None:
    path = database_path(home)
    whole = path.read_bytes()
    try:
        wanted = (f"body {number} " * 20).encode()

        def flip(data: bytearray, at: int) -> None:
            data[at + offset % len(wanted)] ^= 1 << bit

        _overwrite(home, wanted, flip)
        report = checked(home, quick=True)
        assert any(f"seq {number}" in finding.where for finding in report.faults), report.faults
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("kept", [4096 * 20, 4096, 100, 10])
def test_a_truncated_file_is_a_failed_check_not_a_crash(home: Path, kept: int, capsys: Any) -> None:
    path = database_path(home)
    path.write_bytes(path.read_bytes()[:kept])
    assert run(["verify", "--home", str(home)]) == 4
    assert "Traceback" not in capsys.readouterr().err


def test_the_command_prints_the_list_and_fails(home: Path, capsys: Any) -> None:
    assert run(["verify", "--home", str(home)]) == 0
    assert capsys.readouterr().out.startswith("sound: 31 records")
    tamper(home, "UPDATE record SET title = 'x' WHERE seq = 5")
    assert run(["verify", "--quick", "--home", str(home)]) == 4
    said = capsys.readouterr()
    assert "FAULT   records: demo/s:5 (seq 5): its content does not match its digest" in said.out
    assert "1 fault found" in said.err
    assert run(["verify", "--json", "--quick", "--home", str(home)]) == 4
    said = capsys.readouterr()
    assert json.loads(said.out)["ok"] is False
    assert json.loads(said.err)["error"]["kind"] == "verification_failed"


def test_a_damaged_spool_file_is_named(home: Path) -> None:
    (home / "spool").mkdir()
    (home / "spool" / "00000000000000000001-1-aa.json").write_text('{"torn', encoding="utf-8")
    report = checked(home, quick=True)
    assert faults(report) == {"spool"}


def test_archive_files_are_compared_with_their_bytes_and_the_rows(home: Path) -> None:
    from qiju.keeping import cold

    with Store.open(home) as store:
        store.db.connection.execute("UPDATE record SET tier = 'archive' WHERE seq <= 10")
        outcome = cold.bring_up_to_date(store.db, home, "demo", "2026-01", with_long=False)
    assert checked(home).ok
    data = bytearray(outcome.path.read_bytes())
    data[len(data) // 2] ^= 1
    outcome.path.write_bytes(bytes(data))
    report = checked(home, quick=True)
    assert faults(report) == {"archive"}
    assert str(outcome.path) in report.faults[0].where
    outcome.path.unlink()
    assert faults(checked(home, quick=True)) == {"archive"}


def test_archive_rows_that_changed_since_are_stale_and_lost_ones_a_fault(home: Path) -> None:
    from qiju.keeping import cold

    with Store.open(home) as store:
        store.db.connection.execute("UPDATE record SET tier = 'archive' WHERE seq <= 10")
        cold.bring_up_to_date(store.db, home, "demo", "2026-01", with_long=False)
        with store.db.write() as connection:
            stored = store.by_seq(3)
            assert stored is not None
            store.replace(connection, stored, stored.record._replace(title="changed"))
    report = checked(home)
    assert report.ok, report.faults
    assert any("1 row has changed" in notice.message for notice in report.notices)
    tamper(home, "DELETE FROM record WHERE seq = 5")
    assert any("which the database has lost" in finding.message for finding in checked(home).faults)


def test_foreign_damaged_parquet_is_a_fault_and_stays(home: Path) -> None:
    month = home / "archive" / "project=demo" / "month=2025-01"
    month.mkdir(parents=True)
    (month / "entries.parquet").write_bytes(b"\x01" * 500)
    assert faults(checked(home)) == {"archive"}
    assert (month / "entries.parquet").read_bytes() == b"\x01" * 500


def test_the_report_is_json(home: Path) -> None:
    tamper(home, "UPDATE record SET title = 'x' WHERE seq = 5")
    value = checked(home, quick=True).to_json()
    assert json.loads(json.dumps(value))["faults"][0]["where"].startswith("demo/s:5")


def test_writers_do_not_wait_for_the_check_of_the_indexes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from qiju.keeping import verify as module

    logged: list[int] = []
    check_indexes = module._check_indexes

    def write_meanwhile(connection: apsw.Connection, report: Report) -> None:
        connection.execute("BEGIN IMMEDIATE")
        with Store.open(home) as other:
            other.db.lock_wait = 0.0
            log(other, 100)
            logged.append(1)
        connection.execute("ROLLBACK")
        check_indexes(connection, report)

    monkeypatch.setattr(module, "_check_indexes", write_meanwhile)
    assert checked(home).ok
    assert logged == [1]
    assert not list(home.glob(".verify-*"))
