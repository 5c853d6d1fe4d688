"""Opening, locking, migrating: what a store does when the world around it is not friendly."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import threading
import time
from pathlib import Path

import apsw
import pytest
from program import Place

from qiju import migrate
from qiju.db import JOURNAL_LIMIT, Database
from qiju.errors import NewerSchema, QijuError, StoreBusy, StoreDamaged

INSERT = "INSERT INTO record(id, project, title) VALUES (?, 'p', 't')"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "qiju.db"


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
@pytest.mark.parametrize("umask", [0o000, 0o077, 0o022])
def test_files_are_private_whatever_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Database.open(path) as db, db.write() as connection:
            connection.execute(INSERT, ("a:1",))
            modes = [stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()]
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert modes == [0o600] * 3
    finally:
        os.umask(before)


def test_the_connection_is_durable_and_erases(path: Path) -> None:
    with Database.open(path) as db:
        pragmas = {
            name: db.value(f"PRAGMA {name}")
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys", "temp_store")
        }
        assert db.value("PRAGMA journal_size_limit") == JOURNAL_LIMIT
    wanted = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "temp_store": 2}
    assert pragmas == wanted


def test_a_block_that_raises_leaves_nothing(path: Path) -> None:
    with Database.open(path) as db:
        with pytest.raises(ZeroDivisionError), db.write() as connection:
            connection.execute(INSERT, ("a:1",))
            raise ZeroDivisionError
        assert db.value("SELECT count(*) FROM record") == 0


def test_an_inner_block_is_undone_alone(path: Path) -> None:
    with Database.open(path) as db:
        with db.write() as connection:
            connection.execute(INSERT, ("a:1",))
            with pytest.raises(ZeroDivisionError), db.write():
                connection.execute(INSERT, ("a:2",))
                raise ZeroDivisionError
        assert db.value("SELECT group_concat(id) FROM record") == "a:1"


def test_reads_inside_a_block_are_one_snapshot(path: Path) -> None:
    with Database.open(path) as one, Database.open(path) as two, one.read():
        assert one.value("SELECT count(*) FROM record") == 0
        with two.write() as connection:
            connection.execute(INSERT, ("a:1",))
        assert one.value("SELECT count(*) FROM record") == 0


def test_a_held_lock_is_waited_for(path: Path) -> None:
    with Database.open(path) as holder, Database.open(path, lock_wait=20) as waiting:
        released: list[float] = []

        def hold(ready: threading.Event) -> None:
            with Database.open(path) as own, own.write():
                ready.set()
                time.sleep(0.5)
                released.append(time.monotonic())

        ready = threading.Event()
        thread = threading.Thread(target=hold, args=(ready,))
        thread.start()
        ready.wait()
        with waiting.write() as connection:
            assert released or time.monotonic() > 0
            connection.execute(INSERT, ("a:1",))
        thread.join()
        assert released
        assert holder.value("SELECT count(*) FROM record") == 1


def test_a_lock_held_too_long_names_the_holder(path: Path) -> None:
    with Database.open(path) as holder, Database.open(path, lock_wait=0.1) as waiting, holder.write():
        with pytest.raises(StoreBusy) as caught, waiting.write():
            pass
        if sys.platform == "linux":
            assert f"process {os.getpid()}" in str(caught.value)
        assert caught.value.retryable


def test_a_newer_schema_is_refused_and_left_alone(place: Place) -> None:
    place.log()
    connection = sqlite3.connect(place.db)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = place.db.read_bytes()
    for opening in (Database.open, Database.open_for_reading):
        with pytest.raises(NewerSchema, match="schema 99"):
            opening(place.db)
    assert place.db.read_bytes() == before
    assert place.run("search", "--scope", "all").code == 4


def test_a_file_of_somebody_else_is_refused(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreDamaged, match="not a Qiju store"):
        Database.open(path)


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    with pytest.raises(StoreDamaged):
        Database.open(path)


def test_reading_without_a_store_creates_nothing(path: Path) -> None:
    with Database.open_for_reading(path) as db:
        assert db.value("SELECT count(*) FROM record") == 0
    assert not path.parent.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_a_forked_child_is_refused_and_harms_nothing(path: Path) -> None:
    with Database.open(path) as db:
        with db.write() as connection:
            connection.execute(INSERT, ("a:1",))
        child = os.fork()
        if child == 0:
            try:
                with db.read():
                    os._exit(1)
            except QijuError:
                db.close()
                os._exit(42)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
        with db.write() as connection:
            connection.execute(INSERT, ("a:2",))
        assert db.value("SELECT count(*) FROM record") == 2


def next_schema(folder: Path, sql: str = "ALTER TABLE record ADD COLUMN invented TEXT NOT NULL DEFAULT 'x';") -> Path:
    """A folder of migrations with one more than there is."""
    folder.mkdir()
    for file in migrate.files(None).values():
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / f"{len(migrate.files(None)) + 1:04}_invented.sql").write_text(sql, encoding="utf-8")
    return folder


def test_a_store_with_records_is_backed_up_before_its_schema_changes(path: Path, tmp_path: Path) -> None:
    with Database.open(path) as db, db.write() as connection:
        connection.execute(INSERT, ("a:1",))
    migrations = next_schema(tmp_path / "migrations")
    with Database.open(path, migrations=migrations) as db:
        assert db.value("SELECT invented FROM record") == "x"
        assert db.version() == max(migrate.files(migrations))
    (copy,) = (path.parent / "backups").iterdir()
    old = apsw.Connection(str(copy))
    assert old.execute("SELECT id FROM record").fetchall() == [("a:1",)]
    assert old.execute("PRAGMA user_version").fetchone() == (max(migrate.files(None)),)
    old.close()


def test_a_migration_that_fails_changes_nothing(path: Path, tmp_path: Path) -> None:
    with Database.open(path) as db, db.write() as connection:
        connection.execute(INSERT, ("a:1",))
    migrations = next_schema(tmp_path / "migrations", "CREATE TABLE half (x); SELECT no_such_function();")
    with pytest.raises(QijuError):
        Database.open(path, migrations=migrations)
    with Database.open(path) as db:
        assert db.value("SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == 0
        assert db.value("SELECT count(*) FROM record") == 1


def test_several_programs_at_once_make_one_store(place: Place) -> None:
    """Eight processes meet where there is no store yet; all of them log."""
    runs = []
    for number in range(8):
        body = place.folder / f"{number}.json"
        body.write_text(f'{{"title": "first {number}", "body_md": "b"}}', encoding="utf-8")
        words = ["log", "--source", "agent", "--project", "p", "--session-id", "s", "--body", str(body)]
        runs.append(place.start(*words))
    assert [run.wait(60) for run in runs] == [0] * 8
    found = place.ok("search", "--scope", "all").json()
    assert sorted(row["id"] for row in found) == [f"s:{n}" for n in range(1, 9)]
