"""A damaged database gives up every row that can be read; what is lost is counted and named; nothing is guessed."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qiju.errors import StoreDamaged
from qiju.keeping import repair
from qiju.keeping.salvage import salvage
from qiju.keeping.verify import verify
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store, database_path

PAGE = 8192  # bytes; the page size of a store
RECORDS = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole") / "home"
    with Store.open(home) as store:
        for number in range(1, RECORDS + 1):
            fields = check({"title": f"t{number}", "body_md": f"body {number} " * 60, "source": "manual"})
            store.log(store.admit(fields, session_id="s", session_source="flag"), Home("demo", named=True))
        with store.db.write() as connection:
            gone = store.by_seq(9)
            assert gone is not None
            store.delete(connection, gone)
        store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home


def copied(whole: Path, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    for name in ("qiju.db", "store.key"):
        (home / name).write_bytes((whole / name).read_bytes())
    return home


def rows(path: Path) -> dict[int, tuple[object, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = connection.execute("SELECT seq, rev, id, tier, instant, title, body_md, digest FROM record").fetchall()
    connection.close()
    return {int(str(row[0])): row for row in found}


def wipe(home: Path, find: bytes) -> None:
    path = database_path(home)
    data = bytearray(path.read_bytes())
    page = data.index(find) // PAGE * PAGE
    data[page : page + PAGE] = b"\xa5" * PAGE
    path.write_bytes(bytes(data))


def test_a_sound_store_comes_out_equal(whole: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "qiju.db"
    done = salvage(database_path(whole), target)
    assert sum(done.lost.values()) == 0
    assert done.kept["record"] == RECORDS - 1
    assert rows(target) == rows(database_path(whole))
    with Store.open_for_reading(whole) as old, Store.open_for_reading(target.parent) as new:
        assert new.db.setting("commitment") == old.db.setting("commitment")
        assert new.db.setting("store_id") == old.db.setting("store_id")
        assert new.db.counter("rev") == old.db.counter("rev")
        assert verify(new).ok


def test_a_destroyed_page_costs_its_rows_only_and_they_are_named(whole: Path, tmp_path: Path) -> None:
    home = copied(whole, tmp_path)
    wipe(home, b"body 30 body 30")
    target = tmp_path / "new" / "qiju.db"
    done = salvage(database_path(home), target)
    assert 0 < done.lost["record"] < 16  # what one page holds
    assert "demo/s:30 (seq 30)" in done.lost_records
    before = rows(database_path(whole))
    for seq, row in rows(target).items():
        assert row == before[seq]
    assert done.kept["record"] + done.lost["record"] == RECORDS - 1
    with Store.open(target.parent) as new:
        report = verify(new)
        assert report.ok, report.faults
        fields = check({"title": "goes on", "source": "manual"})
        logged = new.log(new.admit(fields, session_id="s", session_source="flag"), Home("demo", named=True))
        assert logged.seq == RECORDS + 1


def test_doctor_puts_the_salvaged_store_in_place_and_keeps_the_damaged_one(whole: Path, tmp_path: Path) -> None:
    home = copied(whole, tmp_path)
    wipe(home, b"body 30 body 30")
    damaged = database_path(home).read_bytes()
    plan = repair.plan(home)
    assert "salvage" in {one.name for one in plan}
    done = repair.apply(home, plan)
    assert done.backup is not None
    assert done.backup.read_bytes() == damaged
    assert done.after >= done.before > RECORDS - 16
    assert done.left == ()
    assert not list(home.glob(".salvage-*"))
    with Store.open_for_reading(home) as store:
        assert store.db.value("PRAGMA journal_mode") == "wal"


def test_nothing_readable_is_said(tmp_path: Path) -> None:
    source = tmp_path / "qiju.db"
    source.write_bytes(b"\0" * 20000)
    with pytest.raises(StoreDamaged):
        salvage(source, tmp_path / "new" / "qiju.db")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=st.sets(st.integers(2, 400), min_size=1, max_size=3))
def test_whatever_pages_are_destroyed_no_readable_record_goes_missing(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, pages: set[int]
) -> None:
    home = copied(whole, tmp_path_factory.mktemp("random"))
    path = database_path(home)
    data = bytearray(path.read_bytes())
    for page in pages:
        begin = page % (len(data) // PAGE) * PAGE or PAGE
        data[begin : begin + PAGE] = b"\xa5" * PAGE
    path.write_bytes(bytes(data))
    target = home.parent / "new" / "qiju.db"
    try:
        done = salvage(path, target)
    except StoreDamaged:
        return  # the list of tables itself is gone; the test above covers what is said then
    before = rows(database_path(whole))
    found = rows(target)
    assert all(row == before[seq] for seq, row in found.items())
    # One more than there were when the tombstone of the deleted record is among what was destroyed.
    assert RECORDS - 1 <= len(found) + len(done.lost_records) <= RECORDS
    with Store.open_for_reading(target.parent) as new:
        assert verify(new).ok
