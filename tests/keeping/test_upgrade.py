"""Schema upgrades: one program migrates and the others wait, a killed one leaves the old version, a backup comes first.

Version 1 is the first released schema, so the steps beyond it are made up here and handed to the runner as a folder.
"""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

import qiju.db
from qiju import migrate
from qiju.cli.frame import run
from qiju.db import SCHEMA_VERSION, Database
from qiju.errors import NewerSchema, QijuError
from qiju.keeping import backup as backups
from qiju.keeping.restore import restore
from qiju.keeping.verify import verify
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store, database_path

# Enough work that a migration can be caught in the middle.
SLOW = """
CREATE TABLE added (n INTEGER PRIMARY KEY, text TEXT NOT NULL);
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
INSERT INTO added SELECT n, hex(randomblob(100)) FROM numbers;
ALTER TABLE record ADD COLUMN note TEXT NOT NULL DEFAULT '';
"""
OPEN = """
import sys
from pathlib import Path
from qiju.db import Database
Database.open(Path(sys.argv[1]), migrations=Path(sys.argv[2])).close()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "home") as store:
        for number in range(1, 4):
            fields = check({"title": f"t{number}", "source": "manual"})
            store.log(store.admit(fields, session_id="s", session_source="flag"), Home("demo", named=True))
    return tmp_path / "home"


def steps(tmp_path: Path, *sql: str) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    for number, path in migrate.files(None).items():
        shutil.copyfile(path, folder / path.name)
        last = number
    for number, text in enumerate(sql, start=last + 1):
        (folder / f"{number:04d}_made_up.sql").write_text(text, encoding="utf-8")
    return folder


def version(home: Path) -> int:
    connection = apsw.Connection(str(database_path(home)), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return int(str(connection.execute("PRAGMA user_version").fetchall()[0][0]))
    finally:
        connection.close()


def before_schema(home: Path) -> list[Path]:
    return sorted((home / "backups").glob("before-schema-*.db")) if (home / "backups").is_dir() else []


def start(home: Path, migrations: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, str(database_path(home)), str(migrations)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_several_new_programs_at_once_migrate_once_and_all_succeed(home: Path, tmp_path: Path) -> None:
    migrations = steps(tmp_path, SLOW.format(rows=20_000), "CREATE TABLE third (n INTEGER)")
    programs = [start(home, migrations) for _ in range(5)]
    results = [(program.wait(timeout=60), *program.communicate()) for program in programs]
    assert [code for code, _out, _err in results] == [0] * 5, results
    assert version(home) == 3
    connection = apsw.Connection(str(database_path(home)))
    assert connection.execute("SELECT version FROM migration ORDER BY version").fetchall() == [(1,), (2,), (3,)]
    assert connection.execute("SELECT count(*) FROM added").fetchall() == [(20_000,)]
    connection.close()
    # One backup of each version that was left behind, whole.
    assert [path.name.split("-")[2] for path in before_schema(home)] == ["2", "3"]
    for path in before_schema(home):
        copy = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert copy.execute("SELECT count(*) FROM record").fetchall() == [(3,)]
        copy.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("after", [0.05, 0.2, 0.4])
def test_a_killed_migration_leaves_one_version_or_the_other_and_the_next_start_completes(
    home: Path, tmp_path: Path, after: float
) -> None:
    migrations = steps(tmp_path, SLOW.format(rows=200_000))
    program = start(home, migrations)
    # Killed after the backup appeared, that is inside the transaction, and a moment later each time.
    deadline = time.monotonic() + 30
    while not before_schema(home) and program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(after)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    assert version(home) in (1, 2)
    connection = apsw.Connection(str(database_path(home)))
    tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'added'").fetchall()
    connection.close()
    assert tables == [(version(home) - 1,)]
    Database.open(database_path(home), migrations=migrations).close()
    assert version(home) == 2


def test_a_step_that_fails_changes_nothing_and_can_be_tried_again(home: Path, tmp_path: Path) -> None:
    migrations = steps(tmp_path, "CREATE TABLE second (n INTEGER); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(QijuError):
        Database.open(database_path(home), migrations=migrations)
    assert version(home) == 1
    (migrations / "0002_made_up.sql").write_text("CREATE TABLE second (n INTEGER);", encoding="utf-8")
    Database.open(database_path(home), migrations=migrations).close()
    assert version(home) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits")
def test_a_disk_that_is_full_leaves_the_old_version(home: Path, tmp_path: Path) -> None:
    migrations = steps(tmp_path, SLOW.format(rows=50_000))
    limit = database_path(home).stat().st_size // 512 + 200
    script = f'ulimit -f {limit}; trap \'\' XFSZ; exec "$0" -c "$1" "$2" "$3"'
    words = ["bash", "-c", script, sys.executable, OPEN, str(database_path(home)), str(migrations)]
    done = subprocess.run(
        words, capture_output=True, check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode != 0
    assert version(home) == 1
    Database.open(database_path(home), migrations=migrations).close()
    assert version(home) == 2


def test_an_empty_store_needs_no_backup(tmp_path: Path) -> None:
    Store.open(tmp_path / "home").close()
    Database.open(database_path(tmp_path / "home"), migrations=steps(tmp_path, "CREATE TABLE second (n)")).close()
    assert before_schema(tmp_path / "home") == []


def test_a_newer_store_is_refused_and_not_touched(home: Path, tmp_path: Path) -> None:
    Database.open(database_path(home), migrations=steps(tmp_path, "CREATE TABLE second (n)")).close()
    before = database_path(home).read_bytes()
    for opening in (Store.open, Store.open_for_reading):
        with pytest.raises(NewerSchema, match="schema 2"):
            opening(home)
    assert database_path(home).read_bytes() == before


@pytest.fixture
def upgraded(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an old store, and a program whose newest schema is 2."""
    folder = steps(tmp_path, "ALTER TABLE record ADD COLUMN note TEXT NOT NULL DEFAULT ''")
    monkeypatch.setattr(migrate, "schema_folder", lambda: folder.parent)
    monkeypatch.setattr(qiju.db, "SCHEMA_VERSION", 2)
    return home


def test_a_backup_of_an_older_schema_is_restored_through_a_migrated_copy(home: Path, tmp_path: Path) -> None:
    with Store.open_for_reading(home) as store:
        made = backups.backup(store)
    folder = steps(tmp_path, "ALTER TABLE record ADD COLUMN note TEXT NOT NULL DEFAULT ''")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "schema_folder", lambda: folder.parent)
        patch.setattr(qiju.db, "SCHEMA_VERSION", 2)
        before = made.path.read_bytes()
        assert restore(home, made.path).records == 3
        assert made.path.read_bytes() == before
        assert version(home) == 2


def test_reading_migrates_a_store_that_can_be_written_and_names_the_backup(upgraded: Path, capsys: Any) -> None:
    assert run(["projects", "--home", str(upgraded)]) == 0
    (kept,) = before_schema(upgraded)
    assert f"brought from schema 1 to 2; as it was, it is kept in {kept}" in capsys.readouterr().err
    with Store.open_for_reading(upgraded) as store:
        assert store.db.value("SELECT count(*) FROM record WHERE note = ''") == 3
    assert run(["projects", "--home", str(upgraded)]) == 0
    assert capsys.readouterr().err == ""


# --- stores of released schemas --------------------------------------------------------------------------------------

FIXTURES = Path(__file__).parent / "data" / "schemas"


def fixtures() -> dict[int, Path]:
    """Stores of released schemas by version, packed; `scripts/schema_fixture.py` writes one at a release."""
    return {int(path.name.split(".")[0]): path for path in sorted(FIXTURES.glob("*.db.gz"))}


def test_every_schema_before_the_newest_has_a_store_that_was_written_with_it() -> None:
    assert set(range(1, SCHEMA_VERSION)) <= set(fixtures())


def test_stores_of_every_released_schema_open_whole(tmp_path: Path) -> None:
    # The store of today stands in for a release until there is one: the script that writes fixtures is tested with it.
    made = tmp_path / "made" / "0001.db.gz"
    script = Path(__file__).parents[2] / "scripts" / "schema_fixture.py"
    subprocess.run([sys.executable, str(script), "--output", str(made)], check=True, capture_output=True)
    for number, packed in {**fixtures(), 0: made}.items():
        home = tmp_path / f"home-{number}"
        home.mkdir()
        database_path(home).write_bytes(gzip.decompress(packed.read_bytes()))
        with Store.open(home) as store:
            report = verify(store)
            assert report.ok, (number, report.faults)
            assert report.counts["records"] == 3
            assert store.find("fixture:2", "demo") is not None


def test_an_old_store_in_a_folder_that_cannot_be_written_is_still_read(
    upgraded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # File modes do not bind everybody who runs this, so the answer of the system is made up.
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = database_path(upgraded).read_bytes()
    with Store.open_for_reading(upgraded) as store:
        assert store.db.value("SELECT count(*) FROM record WHERE note = ''") == 3
    assert before_schema(upgraded) == []
    assert database_path(upgraded).read_bytes() == before
