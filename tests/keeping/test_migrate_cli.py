"""The command line of `migrate` and `projects merge`: one mode a call, reports as JSON, plans that change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qiju.cli.frame import run
from qiju.place.marker import Marker, write_marker
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("user", "root"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("QIJU_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("QIJU_PROJECT_ROOT", str(tmp_path / "root"))
    return tmp_path / "home"


def log(home: Path, project: str, title: str) -> None:
    with Store.open(home) as store:
        fields = check({"title": title, "source": "manual"})
        store.log(store.admit(fields, session_id="s", session_source="flag"), Home(project, named=True))


def old_store(folder: Path, *lines: str) -> Path:
    (folder / "long").mkdir(parents=True)
    (folder / "long" / "demo.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder


def old(identity: str, **more: Any) -> str:
    lists: dict[str, Any] = {name: [] for name in ("tags", "search_terms", "next_steps", "redactions")}
    record = {"id": identity, "ts": "2026-01-01T00:00:00Z", "project": "demo", "agent": "a", "source": "manual"}
    return json.dumps({**record, **lists, "schema_version": 2, "title": identity, "body_md": "", **more})


def call(capsys: Any, *words: str, code: int = 0) -> tuple[Any, str]:
    assert run(list(words)) == code, capsys.readouterr()
    said = capsys.readouterr()
    return (json.loads(said.out) if said.out.strip() else None), said.err


def projects(home: Path) -> dict[str, int]:
    with Store.open_for_reading(home) as store:
        rows = store.db.connection.execute("SELECT project, count(*) FROM record GROUP BY project").fetchall()
        return {str(slug): int(str(count)) for slug, count in rows}


@pytest.mark.parametrize(
    "words",
    [
        ("--from-kedu", "--retag-from", "a"),
        ("--from-qiju", ".", "--project", "a"),
        ("--project-root", ".", "--retag-from", "a"),
        ("--project-root", "."),
    ],
)
def test_one_mode_at_a_time(home: Path, capsys: Any, words: tuple[str, ...]) -> None:
    call(capsys, "migrate", *words, code=2)
    assert not home.exists()


def test_taking_over_names_damage_on_standard_error_and_succeeds(home: Path, tmp_path: Path, capsys: Any) -> None:
    source = old_store(tmp_path / "old", old("s:1"), '{"torn', old("s:2"))
    plan, _ = call(capsys, "migrate", "--from-qiju", str(source), "--dry-run")
    assert not home.exists()
    report, said = call(capsys, "migrate", "--from-qiju", str(source))
    assert {**plan, "dry_run": False} == report
    assert "demo.jsonl, line 2: a record without its end" in said
    assert projects(home) == {"demo": 2}


def test_kedu_is_read_from_the_users_folder(home: Path, tmp_path: Path, capsys: Any) -> None:
    old_store(tmp_path / "user" / ".kedu", old("s:1", title="kedu"))
    report, _ = call(capsys, "migrate", "--from-kedu")
    assert (report["mode"], report["added"]) == ("from-kedu", 1)
    call(capsys, "migrate", "--from-qiju", str(tmp_path / "nothing-here"), code=3)


def test_retag_moves_into_the_markers_project_and_is_undone(home: Path, tmp_path: Path, capsys: Any) -> None:
    log(home, "wrong", "one")
    call(capsys, "migrate", "--retag-from", "wrong", code=4)
    marker = write_marker(tmp_path / "root", Marker("right"))
    plan, _ = call(capsys, "migrate", "--retag-from", "wrong", "--dry-run")
    assert (plan["records"], projects(home)) == (1, {"wrong": 1})
    report, said = call(capsys, "migrate", "--retag-from", "wrong")
    assert projects(home) == {"right": 1}
    assert f"qiju projects undo {report['move']}" in said
    with Store.open_for_reading(home) as store:
        assert store.db.value("SELECT uuid FROM project WHERE slug = 'right'") == marker.uuid
    call(capsys, "projects", "undo", str(report["move"]))
    assert projects(home) == {"wrong": 1}


def test_merge_lists_and_undo(home: Path, capsys: Any) -> None:
    log(home, "a", "one")
    log(home, "b", "two")
    plan, _ = call(capsys, "projects", "merge", "a", "--into", "b", "--dry-run")
    assert (plan["records"], projects(home)) == (1, {"a": 1, "b": 1})
    call(capsys, "projects", "merge", "a", "--into", "b")
    assert projects(home) == {"b": 2}
    moves, _ = call(capsys, "projects", "moves", "--json")
    assert [(move["source"], move["target"], move["records"]) for move in moves] == [("a", "b", 1)]
    call(capsys, "projects", "undo", "--dry-run")
    assert projects(home) == {"b": 2}
    call(capsys, "projects", "undo")
    assert projects(home) == {"a": 1, "b": 1}
    call(capsys, "projects", "undo", code=4)
    call(capsys, "projects", "merge", "nowhere", "--into", "b", code=3)


def test_without_an_option_names_become_slugs_and_the_marker_gets_an_identity(
    home: Path, tmp_path: Path, capsys: Any
) -> None:
    log(home, "myproj", "slug")
    with Store.open(home) as store, store.db.write() as connection:
        connection.execute("INSERT INTO project (slug) VALUES ('MyProj')")
        stored = store.by_seq(1)
        assert stored is not None
        store.replace(connection, stored, stored.record._replace(project="MyProj"))
    folder = tmp_path / "root" / ".qiju"
    folder.mkdir()
    (folder / "config.json").write_text('{"schema_version": 1, "project": "MyProj"}', encoding="utf-8")
    plan, _ = call(capsys, "migrate", "--dry-run")
    assert projects(home) == {"MyProj": 1}
    report, _ = call(capsys, "migrate")
    assert [move["to_project"] for move in report["moves"]] == ["myproj"]
    assert plan["moves"][0]["records"] == 1
    assert projects(home) == {"myproj": 1}
    marker = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert marker["project"] == "myproj"
    assert marker["uuid"]
    again, _ = call(capsys, "migrate")
    assert (again["moves"], again["marker"]["changed"]) == ([], False)
