"""Backups are whole, proven and rotated; a restore checks first, loses nothing silently, and brings no secret back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from qiju import storekey
from qiju.cli.frame import run
from qiju.db import SCHEMA_VERSION
from qiju.errors import NewerSchema, NotFound, Refused, StoreDamaged, UsageError, VerificationFailed
from qiju.keeping import backup as backups
from qiju.keeping.restore import restore
from qiju.keeping.verify import verify
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store, database_path


def log(home: Path, title: str, **more: Any) -> int:
    with Store.open(home) as store:
        fields = check({"title": title, "body_md": f"body of {title}", "source": "manual", **more})
        return store.log(store.admit(fields, session_id="s", session_source="flag"), Home("demo", named=True)).seq


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for number in range(1, 6):
        log(tmp_path / "home", f"t{number}")
    return tmp_path / "home"


def make(home: Path, target: Path | None = None, **options: Any) -> backups.Made:
    with Store.open_for_reading(home) as store:
        return backups.backup(store, target, **options)


def titles(home: Path) -> list[str]:
    with Store.open_for_reading(home) as store:
        return [str(row[0]) for row in store.db.connection.execute("SELECT title FROM record ORDER BY seq")]


def sound(home: Path) -> bool:
    with Store.open_for_reading(home) as store:
        report = verify(store)
        assert report.ok, report.faults
        return True


def test_a_backup_is_one_file_with_everything_and_a_manifest(home: Path) -> None:
    made = make(home)
    assert made.path.parent == home / "backups"
    assert (made.manifest.records, made.manifest.watermark) == (5, 5)
    assert backups.read_manifest(made.path) == made.manifest
    names = sorted(path.name for path in made.path.parent.iterdir())
    assert names == [made.path.name, made.path.name + ".json"]
    copy = apsw.Connection(str(made.path), flags=apsw.SQLITE_OPEN_READONLY)
    assert copy.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
    assert copy.execute("SELECT count(*) FROM record").fetchall() == [(5,)]
    copy.close()
    assert made.path.stat().st_mode & 0o777 == 0o600


def test_a_backup_made_while_another_writes_is_one_snapshot(home: Path) -> None:
    writer = Store.open(home)
    wrote = []

    def write_meanwhile(_pages: int) -> None:
        if not wrote:
            wrote.append(log(home, "meanwhile"))

    with writer, Store.open_for_reading(home) as store:
        made = backups.backup(store, step=write_meanwhile)
    assert wrote
    assert made.manifest.records == 5
    assert titles(home)[-1] == "meanwhile"


def test_the_key_is_left_out_unless_asked_for(home: Path, tmp_path: Path) -> None:
    key = storekey.read(home)
    assert key is not None
    made = make(home)
    assert made.key is None
    assert all(key not in path.read_bytes() for path in made.path.parent.iterdir())
    with_key = make(home, tmp_path / "out.db", with_key=True)
    assert with_key.key is not None
    assert with_key.key.read_bytes() == key
    assert key not in with_key.path.read_bytes()


def test_only_the_newest_stay_and_other_files_are_left_alone(home: Path) -> None:
    folder = home / "backups"
    made = [make(home).path for _ in range(3)]
    names = ("before-schema-2-20260101T000000Z.db", "notes.txt", "replaced-20250101T000000Z.db")
    strays = [folder / name for name in names]
    for path in strays:
        path.write_bytes(b"x")
    last = make(home, keep=2)
    assert last.rotated == tuple(made[:2])
    left = {path for path in folder.iterdir() if path.suffix != ".json"}
    assert left == {made[2], last.path, *strays}
    assert [kept.kind for kept in backups.listed(home)] == ["replaced", "before-schema", "backup", "backup"]
    with pytest.raises(UsageError):
        make(home, keep=0)


def test_a_backup_replaces_no_file_and_needs_a_store(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "there.db"
    target.write_bytes(b"mine")
    with pytest.raises(Refused, match="exists already"):
        make(home, target)
    assert target.read_bytes() == b"mine"
    with pytest.raises(NotFound):
        make(tmp_path / "none")


def test_a_damaged_store_gives_no_backup(home: Path) -> None:
    path = database_path(home)
    with Store.open(home) as store:
        store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    at = data.index(b"body of t3")
    path.write_bytes(data[:at] + b"B" + data[at + 1 :])
    with pytest.raises(VerificationFailed, match="demo/s:3"):
        make(home)
    assert list((home / "backups").iterdir()) == []


def test_a_restore_brings_the_records_back_and_keeps_the_replaced_store(home: Path) -> None:
    made = make(home)
    log(home, "newer")
    done = restore(home, made.path)
    assert titles(home) == ["t1", "t2", "t3", "t4", "t5"]
    assert (done.records, done.left_behind, done.returned) == (5, 1, 0)
    assert done.replaced is not None
    kept = apsw.Connection(str(done.replaced), flags=apsw.SQLITE_OPEN_READONLY)
    assert kept.execute("SELECT count(*) FROM record").fetchall() == [(6,)]
    kept.close()
    assert sound(home)
    assert not list(home.glob(".restore-*"))


def test_numbers_given_out_since_the_backup_are_not_given_again(home: Path) -> None:
    made = make(home)
    assert log(home, "newer") == 6
    with Store.open_for_reading(home) as store:
        rev = store.db.counter("rev")
    restore(home, made.path)
    assert log(home, "after") == 7
    with Store.open_for_reading(home) as store:
        assert store.db.counter("rev") > rev + 1
        gone = store.db.connection.execute("SELECT seq, rev, id FROM tombstone WHERE what = 'record'").fetchall()
    ((seq, gone_rev, identity),) = gone
    assert (seq, identity) == (6, "s:6")
    assert gone_rev > rev
    assert sound(home)


def test_a_record_deleted_since_comes_back_and_is_said(home: Path) -> None:
    made = make(home)
    with Store.open(home) as store, store.db.write() as connection:
        stored = store.by_seq(2)
        assert stored is not None
        store.delete(connection, stored)
    done = restore(home, made.path)
    assert done.returned == 1
    assert any("deleted since" in note for note in done.notes)
    assert titles(home) == ["t1", "t2", "t3", "t4", "t5"]
    assert sound(home)


def test_an_open_connection_sees_the_restored_store_and_goes_on_writing(home: Path) -> None:
    made = make(home)
    log(home, "newer")
    with Store.open(home) as other:
        assert other.db.value("SELECT count(*) FROM record") == 6
        restore(home, made.path)
        assert other.db.value("SELECT count(*) FROM record") == 5
        fields = check({"title": "through the old handle", "source": "manual"})
        other.log(other.admit(fields, session_id="s", session_source="flag"), Home("demo", named=True))
    assert titles(home)[-1] == "through the old handle"
    assert sound(home)


def test_values_redacted_since_the_backup_do_not_come_back(home: Path) -> None:
    log(home, "hunter2-77", body_md="the word hunter2-77 stands here, hunter2-77", extra={"k": ["hunter2-77"]})
    made = make(home)
    _remember(home, "hunter2-77")
    done = restore(home, made.path)
    assert done.redacted_again == 1
    with Store.open_for_reading(home) as store:
        stored = store.by_seq(6)
        assert stored is not None
        assert "hunter2-77" not in stored.record.canonical()
        for entry in stored.record.redactions:
            assert isinstance(entry, dict)
            if entry["field"] == "body_md":
                assert stored.record.body_md[entry["start"] : entry["end"]] == entry["placeholder"]  # type: ignore[misc]
    for path in (database_path(home), database_path(home).with_name("qiju.db-wal")):
        assert not path.exists() or b"hunter2" not in path.read_bytes()
    assert sound(home)


def _remember(home: Path, value: str) -> None:
    """Redact a value everywhere in the live store, as `qiju redact` does, and remember its fingerprint."""
    from qiju.keeping.reapply import redact_again
    from qiju.redaction.fingerprint import fingerprints

    with Store.open(home) as store, store.db.write() as connection:
        known = fingerprints(store.key("fingerprint"), value)
        connection.executemany("INSERT INTO redacted_value (fingerprint) VALUES (?)", [(one,) for one in known])
    with Store.open(home) as store:
        assert redact_again(store) == 1


def test_what_was_registered_since_stays_known(home: Path, tmp_path: Path) -> None:
    made = make(home)
    root = tmp_path / "root"
    root.mkdir()
    with Store.open(home) as store:
        fields = check({"title": "elsewhere", "source": "manual"})
        store.log(store.admit(fields, session_id="t", session_source="flag"), Home("later", root=str(root)))
    restore(home, made.path)
    with Store.open_for_reading(home) as store:
        assert store.db.value("SELECT project FROM project_root WHERE path = ?", (str(root),)) == "later"


def _flip(path: Path, find: bytes) -> None:
    data = path.read_bytes()
    at = data.index(find)
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def _newer(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 7}")
    connection.close()


REFUSED: list[tuple[str, Callable[[Path], object], type[Exception]]] = [
    ("a flipped byte", lambda path: _flip(path, b"body of t3"), VerificationFailed),
    ("a newer schema", _newer, NewerSchema),
    ("cut short", lambda path: path.write_bytes(path.read_bytes()[:8192]), VerificationFailed),
    ("no database", lambda path: path.write_bytes(b"text"), StoreDamaged),
]


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize(("name", "spoil", "error"), REFUSED, ids=[one[0] for one in REFUSED])
def test_a_backup_that_does_not_check_out_changes_nothing(
    home: Path, name: str, spoil: Callable[[Path], object], error: type[Exception], manifest: bool
) -> None:
    made = make(home)
    log(home, "newer")
    spoil(made.path)
    if not manifest:
        backups.manifest_path(made.path).unlink()
    before = database_path(home).read_bytes()
    with pytest.raises(error):
        restore(home, made.path)
    assert database_path(home).read_bytes() == before
    assert titles(home)[-1] == "newer"
    assert not list((home / "backups").glob("replaced-*"))


def test_a_store_damaged_beyond_reading_is_set_aside_byte_for_byte(home: Path) -> None:
    made = make(home)
    log(home, "newer")
    damaged = b"\0" * 5000
    database_path(home).write_bytes(damaged)
    done = restore(home, made.path)
    assert done.replaced is not None
    assert done.replaced.read_bytes() == damaged
    assert titles(home) == ["t1", "t2", "t3", "t4", "t5"]
    assert sound(home)
    assert log(home, "goes on") == 6


def test_a_restore_into_an_empty_home_takes_the_key_beside_the_backup(home: Path, tmp_path: Path) -> None:
    made = make(home, tmp_path / "out.db", with_key=True)
    elsewhere = tmp_path / "elsewhere"
    done = restore(elsewhere, made.path)
    assert (done.records, done.replaced) == (5, None)
    assert storekey.read(elsewhere) == storekey.read(home)
    assert sound(elsewhere)
    with Store.open_for_reading(elsewhere) as store:
        assert store.db.value("PRAGMA journal_mode") == "wal"


def test_another_key_is_said(home: Path, tmp_path: Path) -> None:
    made = make(home, tmp_path / "out.db")
    done = restore(tmp_path / "elsewhere", made.path)
    assert any("another store key" in note for note in done.notes)


def test_a_dry_run_checks_and_changes_nothing(home: Path, tmp_path: Path) -> None:
    made = make(home)
    log(home, "newer")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and path.suffix != ".db-shm"}
    done = restore(home, made.path, dry_run=True)
    assert (done.left_behind, done.dry_run) == (1, True)
    assert {path: path.read_bytes() for path in before} == before
    assert not list((home / "backups").glob("replaced-*"))
    restore(tmp_path / "none", made.path, dry_run=True)
    assert not (tmp_path / "none").exists()


def test_a_name_from_the_list_is_enough(home: Path, capsys: Any) -> None:
    assert run(["backup", "--home", str(home), "--json"]) == 0
    name = Path(json.loads(capsys.readouterr().out)["path"]).name
    assert run(["backup", "--list", "--home", str(home)]) == 0
    assert name in capsys.readouterr().out
    assert run(["restore", name, "--home", str(home)]) == 0
    assert "5 records restored" in capsys.readouterr().out
    assert run(["restore", "no-such", "--home", str(home)]) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("moment", [0, 1, 2])
def test_a_killed_restore_leaves_the_old_store_or_the_new_one_whole(home: Path, moment: int) -> None:
    made = make(home)
    log(home, "newer")
    script = "import sys; from qiju.cli.frame import run; sys.exit(run(sys.argv[1:]))"
    program = subprocess.Popen(
        [sys.executable, "-c", script, "restore", str(made.path), "--home", str(home)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # At its first trace, at the copy of the old store, and a moment after that.
    traces = [".restore-*", "backups/replaced-*", "backups/replaced-*.json"]
    deadline = time.monotonic() + 30
    while not list(home.glob(traces[moment])) and program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    program.kill()
    program.wait()
    assert len(titles(home)) in (5, 6)
    assert sound(home)
    restore(home, made.path)
    assert titles(home) == ["t1", "t2", "t3", "t4", "t5"]
    assert sound(home)


def test_a_restore_waits_for_a_writer_and_gives_up_cleanly(home: Path) -> None:
    from qiju.errors import StoreBusy
    from qiju.place.config import load_config

    made = make(home)
    log(home, "newer")
    (home / "config.toml").write_text("lock_wait = 0.2\n", encoding="utf-8")
    with Store.open(home) as writer, writer.db.write(), pytest.raises(StoreBusy):
        restore(home, made.path, load_config(home, None, None))
    assert titles(home)[-1] == "newer"
    assert sound(home)
