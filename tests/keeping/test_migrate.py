"""Taking over a predecessor's store: everything comes, once, redacted, said; and a second run changes nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qiju.errors import NotFound
from qiju.keeping.migrate import Origin, Report, take_over
from qiju.keeping.verify import verify
from qiju.store import Store

DATA = Path(__file__).parent / "data" / "predecessor"
SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def old(identity: str, title: str, *, project: str = "demo", ts: str = "2026-01-01T00:00:00Z", **more: Any) -> str:
    record = {"schema_version": 2, "id": identity, "ts": ts, "project": project, "agent": "codex", "source": "manual"}
    lists: dict[str, Any] = {"tags": [], "search_terms": [], "next_steps": [], "redactions": [], "body_md": "b"}
    return json.dumps({**record, **lists, "title": title, **more}, ensure_ascii=False) + "\n"


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, source: Path, *, dry_run: bool = False, **origin: Any) -> Report:
    with Store.open_for_reading(home) if dry_run else Store.open(home) as store:
        return take_over(store, Origin(source, **origin), dry_run=dry_run)


def content(home: Path) -> list[tuple[Any, ...]]:
    sql = "SELECT seq, id, project, tier, ts, title, body_md, redactions, extra, digest FROM record ORDER BY seq"
    with Store.open_for_reading(home) as store:
        return store.db.connection.execute(sql).fetchall()


def titles(home: Path) -> dict[str, str]:
    return {f"{row[2]}/{row[1]}": row[5] for row in content(home)}


def adds_up(report: Report) -> bool:
    replaced = len(report.replaced)
    return report.read == report.added + report.identical + report.copies + replaced + report.invalid


def test_a_real_store_is_taken_over_whole(home: Path, tmp_path: Path) -> None:
    source, root = tmp_path / "old", tmp_path / "project"
    shutil.copytree(DATA / "home", source)
    shutil.copytree(DATA / "project" / "dot-qiju", root / ".qiju")
    report = run(home, source, roots=[root])
    assert (report.read, report.added, report.copies, report.invalid) == (12, 10, 2, 0)
    assert adds_up(report)
    found = {row[1]: row for row in content(home)}
    assert [row[1] for row in content(home)][:3] == ["s1:1", "s1:2", "s1:3"]
    assert {identity: found[identity][3] for identity in ("s1:1", "s2:1", "s2:2")} == {
        "s1:1": "archive",
        "s2:1": "long",
        "s2:2": "short",
    }
    assert found["s1:1"][4] == "2024-03-01T10:00:00+08:00"
    assert json.loads(found["s1:2"][8]) == {"e": {}, "l": [], "n": {"a": 4}}
    with Store.open_for_reading(home) as store:
        audit = store.db.connection.execute("SELECT actor, reason, counts FROM redaction_audit").fetchall()
        assert audit == [("predecessor", "leak", '{"long":1,"short":1}')]
        assert store.db.value("SELECT project FROM project_root WHERE path = ?", (str(root.resolve()),)) == "myproj"


def test_a_second_run_changes_nothing(home: Path) -> None:
    run(home, DATA / "home")
    before = content(home)
    report = run(home, DATA / "home")
    assert (report.added, report.identical, report.audit_events) == (0, 10, 0)
    assert adds_up(report)
    assert content(home) == before


def test_a_dry_run_writes_nothing_and_says_what_the_run_does(home: Path) -> None:
    plan = run(home, DATA / "home", dry_run=True).to_json()
    assert not home.exists()
    done = run(home, DATA / "home").to_json()
    assert {**plan, "dry_run": False} == done


def test_recorded_redactions_point_at_their_placeholders(home: Path) -> None:
    run(home, DATA / "home")
    rows = {row[1]: row for row in content(home)}
    (entry,) = json.loads(rows["s2:1"][7])
    assert rows["s2:1"][6][entry["start"] : entry["end"]] == entry["placeholder"]
    (entry,) = json.loads(rows["s3:1"][7])
    assert entry == {"field": "*", "placeholder": "[REDACTED:manual]", "type": "retroactive"}


def test_offsets_hold_when_the_text_is_redacted_again_on_the_way_in(home: Path, tmp_path: Path) -> None:
    mark = "[REDACTED:pii:b60dc0cad411b78c]"
    entry = {"field": "body_md", "type": "github_token", "start": 400, "end": 440, "placeholder": mark}
    body = f"first {SECRET} then {mark} end"
    gone = {**entry, "placeholder": "[REDACTED:pii:0000000000000000]"}
    source = tmp_path / "old"
    write(source / "long" / "demo.jsonl", old("s:1", "t", body_md=body, redactions=[entry, gone]))
    report = run(home, source)
    ((*_, text, redactions, _extra, _digest),) = content(home)
    assert SECRET not in text
    entries = json.loads(redactions)
    assert len(entries) == 3
    placed = [one for one in entries if "start" in one]
    assert len(placed) == 2
    assert all(text[one["start"] : one["end"]] == one["placeholder"] for one in placed)
    assert (report.redactions, report.offsets_placed, report.offsets_dropped) == (1, 1, 1)


def test_secrets_in_every_place_are_redacted_on_the_way_in(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    write(
        source / "long" / "demo.jsonl",
        old("s:1", "t", extra={f"key {SECRET}": [SECRET]}, redactions=[{"field": "title", "note": SECRET}]),
        old("s:2", SECRET, ts=SECRET),
    )
    write(source / "redaction_log.jsonl", json.dumps({"ts": "2026-01-01T00:00:00Z", "reason": SECRET}) + "\n")
    run(home, source)
    with Store.open(home) as store:
        store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in home.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path.name


def test_same_id_with_other_content_is_kept_under_a_marked_id_and_said(home: Path, tmp_path: Path) -> None:
    source, root = tmp_path / "old", tmp_path / "root"
    write(source / "long" / "demo.jsonl", old("s:1", "from long"))
    write(root / ".qiju" / "short.jsonl", old("s:1", "from short"))
    write(root / ".qiju" / "config.json", '{"project": "demo"}')
    report = run(home, source, roots=[root])
    found = titles(home)
    assert found.pop("demo/s:1") == "from short"
    assert list(found.values()) == ["from long"]
    (conflict,) = report.conflicts
    assert (conflict["id"], f"demo/{conflict['kept_as']}") == ("s:1", next(iter(found)))
    before = content(home)
    assert run(home, source, roots=[root]).added == 0
    assert content(home) == before


def test_a_tier_found_only_by_the_second_run_changes_no_stored_record(home: Path, tmp_path: Path) -> None:
    source, root = tmp_path / "old", tmp_path / "root"
    write(source / "long" / "demo.jsonl", old("s:1", "from long"), old("s:2", "same"))
    run(home, source)
    write(root / ".qiju" / "short.jsonl", old("s:1", "from short"), old("s:2", "same"))
    report = run(home, source, roots=[root])
    assert (report.added, len(report.conflicts)) == (1, 1)
    assert titles(home)["demo/s:1"] == "from long"
    assert run(home, source, roots=[root]).added == 0


def test_what_was_redacted_deleted_or_moved_here_does_not_come_back(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    write(source / "long" / "demo.jsonl", *(old(f"s:{n}", f"t{n}") for n in (1, 2, 3)))
    run(home, source)
    with Store.open(home) as store, store.db.write() as connection:
        for seq, change in ((1, {"title": "[REDACTED]"}), (2, {"project": "other"})):
            stored = store.by_seq(seq)
            assert stored is not None
            store.replace(connection, stored, stored.record._replace(**change))
        gone = store.by_seq(3)
        assert gone is not None
        store.delete(connection, gone)
    assert run(home, source).added == 0
    assert titles(home) == {"demo/s:1": "[REDACTED]", "other/s:2": "t2"}


def test_mixed_case_files_and_names_are_one_project(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    write(source / "long" / "MyProj.jsonl", old("s:1", "up", project="MyProj"))
    write(source / "long" / "myproj.jsonl", old("s:2", "low", project="myproj", ts="2026-01-02T00:00:00Z"))
    run(home, source)
    assert titles(home) == {"myproj/s:1": "up", "myproj/s:2": "low"}


def test_damage_is_named_with_file_and_line_and_stops_nothing(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    torn, glued = '{"id": "s:2", "title": "tor\n', old("s:4", "glued").strip() + old("s:5", "glued too")
    bad = ('{"id": 5}\n', old("s:6", "x", tags="no list"))
    write(source / "long" / "demo.jsonl", old("s:1", "good"), torn, old("s:3", "also"), glued, *bad)
    report = run(home, source)
    assert sorted(titles(home).values()) == ["also", "glued", "glued too", "good"]
    problems = [(Path(str(one["file"])).name, one["line"], one["kind"]) for one in report.problems]
    assert problems == [("demo.jsonl", 2, "torn"), ("demo.jsonl", 5, "invalid"), ("demo.jsonl", 6, "invalid")]
    assert adds_up(report)


def test_times_are_kept_as_written_and_unreadable_ones_too(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    write(source / "long" / "demo.jsonl", old("s:1", "a", ts="2026-01-01"), old("s:2", "b", ts="last spring"))
    run(home, source)
    assert {row[1]: row[4] for row in content(home)} == {"s:1": "2026-01-01", "s:2": "last spring"}


def test_ids_of_any_other_shape_get_one_and_it_is_said(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    write(source / "long" / "demo.jsonl", old("note", "a"), old("my note", "b"), old("s:01", "c"), old("s:7", "d"))
    report = run(home, source)
    assert titles(home) == {"demo/note:1": "a", "demo/my-note:1": "b", "demo/s:01:1": "c", "demo/s:7": "d"}
    assert [one["id"] for one in report.renamed] == ["note:1", "my-note:1", "s:01:1"]


def test_projects_of_any_script_and_the_source_untouched(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    file = write(source / "long" / "项目.jsonl", old("s:1", "会话恢复", project="项目"))
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    run(home, source)
    assert titles(home) == {"项目/s:1": "会话恢复"}
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert [path.name for path in source.rglob("*")] == ["long", "项目.jsonl"]


def test_brand_words_are_rewritten_in_keys_values_and_project_names(home: Path, tmp_path: Path) -> None:
    source, root = tmp_path / ".kedu", tmp_path / "root"
    extra = {"kedu_env": "KEDU_HOME"}
    write(source / "long" / "kedu-tools.jsonl", old("s:1", "Kedu", project="kedu-tools", extra=extra))
    write(root / ".kedu" / "short.jsonl", old("s:2", "about kedu", project="kedu-tools"))
    report = run(home, source, roots=[root], folder=".kedu", brand=True)
    assert titles(home) == {"qiju-tools/s:1": "Qiju", "qiju-tools/s:2": "about qiju"}
    assert json.loads(content(home)[0][8]) == {"extra": {"qiju_env": "QIJU_HOME"}}
    assert report.mode == "from-kedu"


def test_nothing_there_is_said(home: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no predecessor's store"):
        run(home, tmp_path / "nowhere")


def test_a_copy_that_a_redaction_missed_does_not_bring_the_value_back(home: Path, tmp_path: Path) -> None:
    source, root = tmp_path / "old", tmp_path / "root"
    entry = {"field": "*", "type": "retroactive", "placeholder": "[REDACTED:manual]"}
    write(source / "long" / "demo.jsonl", old("s:1", "t", body_md="is [REDACTED:manual]", redactions=[entry]))
    write(root / ".qiju" / "short.jsonl", old("s:1", "t", body_md="is hunter2-77"))
    write(root / ".qiju" / "config.json", '{"project": "demo"}')
    report = run(home, source, roots=[root])
    assert [row[6] for row in content(home)] == ["is [REDACTED:manual]"]
    assert len(report.replaced) == 1
    assert adds_up(report)


def test_a_killed_run_is_completed_by_the_next_one(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "old"
    write(source / "long" / "demo.jsonl", *(old(f"s:{n}", f"t{n}", body_md="word " * 20) for n in range(1, 401)))
    script = (
        "import sys; from qiju.keeping import migrate; migrate.BATCH = 50;"
        "from qiju.cli.frame import run; sys.exit(run(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", script, "migrate", "--from-qiju", str(source), "--home", str(home)]
    program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    # Killed once the first records are stored, in the middle of the next transaction.
    while not _count(home) and program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    program.kill()
    program.wait()
    stored = _count(home)
    assert stored > 0
    report = run(home, source)
    assert (report.added, report.identical) == (400 - stored, stored)
    with Store.open_for_reading(home) as store:
        assert verify(store).ok
        assert store.db.value("SELECT count(DISTINCT id) FROM record") == 400


def _count(home: Path) -> int:
    if not (home / "qiju.db").exists():
        return 0
    with apsw.Connection(str(home / "qiju.db"), flags=apsw.SQLITE_OPEN_READWRITE) as connection:
        try:
            return int(str(connection.execute("SELECT count(*) FROM record").fetchall()[0][0]))
        except apsw.Error:
            return 0  # not made yet


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEY = st.text("xyzü -_", min_size=1, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(extras=st.lists(st.dictionaries(KEY, JSON, max_size=3), min_size=1, max_size=4))
def test_any_unknown_keys_come_back_equal(
    tmp_path_factory: pytest.TempPathFactory, extras: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    lines = [old(f"s:{n}", f"t{n}", **extra) for n, extra in enumerate(extras, start=1)]
    write(folder / "old" / "long" / "demo.jsonl", *lines)
    report = run(folder / "home", folder / "old")
    assert (report.added, report.problems) == (len(extras), [])
    if report.redactions:
        return  # a text that happened to look like a secret
    found = [json.loads(row[8]) for row in content(folder / "home")]
    assert found == extras


def test_what_another_process_does_meanwhile_is_noticed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between deciding and storing: the same record taken over, an id taken, a value redacted by name."""
    from qiju.projects import Home
    from qiju.record import check
    from qiju.redaction.fingerprint import fingerprints

    source = tmp_path / "old"
    write(source / "long" / "demo.jsonl", old("s:1", "one"), old("s:2", "two"), old("s:3", "hunter2-77"))
    Store.open(home).close()
    done: list[int] = []
    original = Store.bulk

    def bulk(self: Store) -> Any:
        if not done:
            done.append(1)
            with Store.open(home) as other:
                fields = check({"id": "s:1", "title": "somebody else's", "source": "manual"})
                other.log(other.admit(fields, session_id="", session_source=""), Home("demo", named=True))
                with other.db.write() as connection:
                    known = fingerprints(other.key("fingerprint"), "hunter2-77")
                    connection.executemany("INSERT INTO redacted_value (fingerprint) VALUES (?)", [(k,) for k in known])
            other_source = tmp_path / "again"
            shutil.copytree(source, other_source)
            (other_source / "long" / "demo.jsonl").write_text(old("s:2", "two"), encoding="utf-8")
            run(home, other_source)
        return original(self)

    monkeypatch.setattr(Store, "bulk", bulk)
    report = run(home, source)
    found = titles(home)
    assert found["demo/s:1"] == "somebody else's"
    assert (report.added, report.identical, len(report.conflicts)) == (2, 1, 1)
    assert "hunter2-77" not in found["demo/s:3"]
    assert len(found) == 4
