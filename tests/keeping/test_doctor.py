"""`doctor` names what is wrong and changes nothing; `--fix` repairs after a backup and proves that nothing is gone."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from qiju import storekey
from qiju.cli.frame import run
from qiju.db import SCHEMA_VERSION
from qiju.keeping import filesystem, repair
from qiju.keeping.doctor import Finding, Subject, examine
from qiju.keeping.verify import verify
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store, database_path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    (tmp_path / "root").mkdir()
    monkeypatch.setenv("QIJU_PROJECT_ROOT", str(tmp_path / "root"))
    with Store.open(tmp_path / "home") as store:
        for number in range(1, 21):
            fields = check({"title": f"t{number}", "body_md": f"body {number} " * 20, "source": "manual"})
            store.log(store.admit(fields, session_id="s", session_source="flag"), Home("demo", named=True))
        store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return tmp_path / "home"


def look(home: Path, **env: str) -> list[Finding]:
    user = home.parent / "user"
    root = home.parent / "root"
    return examine(Subject(home, {"HOME": str(user), "PATH": os.environ["PATH"], **env}, user, root, None))


def said(findings: list[Finding], check_name: str, *statuses: str) -> list[str]:
    return [f.message for f in findings if f.check == check_name and (not statuses or f.status in statuses)]


def execute(home: Path, sql: str) -> None:
    connection = apsw.Connection(str(database_path(home)))
    connection.execute(sql)
    connection.close()


def without_triggers(home: Path, sql: str) -> None:
    connection = apsw.Connection(str(database_path(home)))
    triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute(sql)
    for _, statement in triggers:
        connection.execute(str(statement))
    connection.close()


def sound(home: Path) -> bool:
    with Store.open_for_reading(home) as store:
        report = verify(store)
        assert report.ok, report.faults
        return True


def test_a_healthy_store_has_no_failed_check_and_nothing_changes(home: Path) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and path.suffix != ".db-shm"}
    found = look(home)
    assert [f for f in found if f.status == "fail"] == []
    assert said(found, "store") == [f"20 records in 1 project, {database_path(home).stat().st_size // 1024} KiB"]
    assert {path: path.read_bytes() for path in before} == before
    assert repair.plan(home) == []


def test_no_store_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    found = look(tmp_path / "none")
    assert [f for f in found if f.status == "fail"] == []
    assert not (tmp_path / "none").exists()
    assert repair.plan(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (filesystem.FileSystem(filesystem.NETWORK, "nfs4", "/mnt"), "network"),
        (filesystem.FileSystem(filesystem.CLOUD, "Dropbox", "/d"), "Dropbox"),
        (filesystem.FileSystem(filesystem.MEMORY, "tmpfs", "/t"), "memory"),
    ],
)
def test_a_risky_file_system_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, kind: filesystem.FileSystem, word: str
) -> None:
    monkeypatch.setattr(filesystem, "kind_of", lambda _path: kind)
    (message,) = said(look(home), "file system", "warn")
    assert word in message


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_open_permissions_are_named_and_closed(home: Path) -> None:
    home.chmod(0o755)
    storekey.path(home).chmod(0o644)
    assert len(said(look(home), "permissions", "warn")) == 2
    repair.apply(home, repair.plan(home))
    assert said(look(home), "permissions") == []
    assert storekey.path(home).stat().st_mode & 0o777 == 0o600


def test_a_newer_schema_is_refused_by_name_and_left_alone(home: Path) -> None:
    execute(home, f"PRAGMA user_version = {SCHEMA_VERSION + 3}")
    before = database_path(home).read_bytes()
    (message,) = said(look(home), "schema", "fail")
    assert f"schema {SCHEMA_VERSION + 3}" in message
    assert database_path(home).read_bytes() == before


def test_unsealed_rows_pending_redactions_and_the_spool_are_named(home: Path) -> None:
    execute(home, "INSERT INTO record (id, ts, project, title) VALUES ('x:1', '2026-01-01', 'demo', 'by hand')")
    execute(home, "INSERT INTO redaction_pending (fingerprint) VALUES ('f')")
    (home / "spool").mkdir(mode=0o700)
    (home / "spool" / "00000000000000000001-1-aa.json").write_text("{}", encoding="utf-8")
    found = look(home)
    assert said(found, "unsealed", "warn")
    assert said(found, "redaction", "fail")
    assert said(found, "spool", "warn")


def test_a_missing_or_other_key_is_named(home: Path) -> None:
    path = storekey.path(home)
    path.write_bytes(b"\1" * 32)
    assert said(look(home), "key", "warn")
    path.unlink()
    assert said(look(home), "key", "fail")
    assert not path.exists()


def test_predecessors_and_skills_are_found(home: Path) -> None:
    user, root = home.parent / "user", home.parent / "root"
    for name in (".qiju", ".kedu"):
        (user / name / "long").mkdir(parents=True)
        (user / name / "long" / "demo.jsonl").write_text("{}\n", encoding="utf-8")
    skill = root / ".claude" / "skills" / "qiju-log" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: qiju-log\n---\nsomebody's own\n", encoding="utf-8")
    found = look(home)
    assert len(said(found, "predecessor", "info")) == 2
    assert {f.hint for f in found if f.check == "predecessor"} == {
        "qiju migrate --from-qiju ~/.qiju",
        "qiju migrate --from-kedu",
    }
    (skills,) = [f for f in found if f.check == "skills" and f.facts]
    listed = skills.facts["skills"]
    assert isinstance(listed, list)
    assert [one["path"] for one in listed if isinstance(one, dict)] == [str(skill)]


def test_a_registered_folder_that_is_gone_is_named(home: Path) -> None:
    execute(home, "INSERT INTO project_root (path, project) VALUES ('/nowhere/at/all', 'demo')")
    assert any("/nowhere/at/all" in message for message in said(look(home), "projects", "warn"))


def test_leftovers_of_killed_runs_are_named_and_removed_when_old(home: Path) -> None:
    old, young = home / ".restore-1", home / ".restore-2"
    for path in (old, young):
        path.mkdir()
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    assert len(said(look(home), "leftovers", "warn")) == 1
    repair.apply(home, repair.plan(home))
    assert (old.exists(), young.exists()) == (False, True)


REPAIRABLE = {
    "a search index that lost its entries": (
        lambda home: execute(home, "INSERT INTO record_trigram (record_trigram) VALUES ('delete-all')"),
        "search indexes",
    ),
    "an event that is missing": (
        lambda home: without_triggers(
            home,
            "DELETE FROM trajectory_event WHERE record_seq = 4;"
            "INSERT INTO tombstone (what, seq, rev, id) VALUES ('event', 4, 99, '')",
        ),
        "events",
    ),
    "a folded text that is wrong": (
        lambda home: without_triggers(home, "UPDATE record SET folded = 'zzz' WHERE seq = 3"),
        "folded",
    ),
    "a row deleted by hand": (lambda home: execute(home, "DELETE FROM record WHERE seq = 7"), "commitment"),
    "a row changed by hand": (
        lambda home: execute(home, "UPDATE record SET title = 'by hand' WHERE seq = 7"),
        "commitment",
    ),
    "a journal mode that was changed": (lambda home: execute(home, "PRAGMA journal_mode = DELETE"), "journal"),
}


@pytest.mark.parametrize("name", REPAIRABLE)
def test_what_follows_from_the_records_is_repaired(home: Path, name: str) -> None:
    spoil, expected = REPAIRABLE[name]
    spoil(home)
    plan = repair.plan(home)
    assert expected in {one.name for one in plan}
    done = repair.apply(home, plan)
    assert done.backup is not None
    assert done.backup.exists()
    assert done.before == done.after > 0
    assert done.left == ()
    assert sound(home)
    assert repair.plan(home) == []


def test_content_that_does_not_match_its_digest_is_never_guessed(home: Path) -> None:
    without_triggers(home, "UPDATE record SET title = 'altered' WHERE seq = 5")
    done = repair.apply(home, repair.plan(home))
    assert any("demo/s:5" in left for left in done.left)


def test_the_commands_print_fail_and_fix(home: Path, capsys: Any) -> None:
    options = ["--home", str(home)]
    assert run(["doctor", *options]) == 0
    assert "20 records" in capsys.readouterr().out
    execute(home, "INSERT INTO record_fts (record_fts) VALUES ('delete-all')")
    assert run(["doctor", "--fix", "--dry-run", *options]) == 0
    assert "plan  search indexes" in capsys.readouterr().out
    assert run(["verify", *options]) == 4
    capsys.readouterr()
    assert run(["doctor", "--fix", *options]) == 0
    assert "20 records could be read before, 20 after" in capsys.readouterr().out
    assert run(["verify", *options]) == 0
    capsys.readouterr()
    assert run(["doctor", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    database_path(home).write_bytes(b"not a database at all, but long enough to look at" * 10)
    assert run(["doctor", "--json", *options]) == 4
    assert json.loads(capsys.readouterr().out)["ok"] is False
    assert run(["doctor", "--dry-run", *options]) == 2
