"""Readers of every place: which one is chosen, that reading changes nothing, and what older histories give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qiju.errors import AmbiguousId, CursorRejected, NotFound, UsageError
from qiju.trajectory import (
    JournalTrajectoryStore,
    LossEntry,
    PrivacyView,
    RecordKind,
    SqliteTrajectoryStore,
    StoreTrajectoryReader,
    TrajectoryQuery,
    default_reader,
    exchange_from_records,
    iter_records,
    read_page,
)
from qiju.trajectory.importing import open_journal, open_run_folder

RAW = PrivacyView.RAW_PRIVATE


def lines(path: Path, *values: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def run_folder(folder: Path, run_id: str = "run-7") -> Path:
    folder.mkdir(parents=True)
    manifest = {"run_id": run_id, "status": "completed", "updated_at": "2026-03-01T00:00:09Z", "seed": None}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    lines(
        folder / "events.jsonl",
        {"run_id": run_id, "step_id": 0, "phase": "start", "ok": True, "ts": "2026-03-01T00:00:01Z", "new": 1.5},
        {"run_id": run_id, "step_id": 1, "phase": "act", "ok": True, "ts": "2026-03-01T00:00:02Z"},
        {"run_id": run_id, "step_id": 2, "phase": "end", "ok": True, "ts": "2026-03-01T00:00:03Z"},
    )
    lines(
        folder / "steps.jsonl",
        {
            "step_id": 0,
            "decision": {"mode": "act"},
            "actions": [{"name": "read", "args": {"path": "a"}}, {"name": "run", "args": {}, "why": "x"}],
            "action_results": [{"status": "success", "output": "text"}, {"status": "error", "error": "no"}],
            "state_diff": {"k": 1},
        },
        {"step_id": 1, "actions": ["a bare word"], "action_results": [1]},
    )
    return folder


def predecessor(home: Path) -> Path:
    lines(
        home / "long" / "demo.jsonl",
        {"id": "s1:1", "ts": "2026-03-01T00:00:00Z", "project": "demo", "title": "one", "own": 1},
        {"id": "s1:2", "ts": "2026-03-02T00:00:00Z", "project": "demo", "title": "two"},
    )
    with (home / "long" / "demo.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "s1:3", "title": "torn')
    project = home.parent / "project"
    lines(
        project / ".qiju" / "short.jsonl",
        {"id": "s1:2", "ts": "2026-03-02T00:00:00Z", "project": "demo", "title": "two"},
        {"id": "s2:1", "ts": "2026-03-03T00:00:00Z", "project": "demo", "title": "short only"},
        {"id": "s1:1", "ts": "2026-03-01T00:00:00Z", "project": "demo", "title": "another one"},
    )
    (home / "registry.d").mkdir()
    (home / "registry.d" / "p.json").write_text(json.dumps({"path": str(project), "slug": "demo"}), encoding="utf-8")
    return home


def everything(reader: StoreTrajectoryReader) -> list:
    return list(iter_records(reader, TrajectoryQuery(limit=2), view=RAW))


def snapshot_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_the_canonical_store_comes_first(tmp_path, draft):
    """A home with a database is read from it, whatever else lies there; `legacy` is the explicit way back."""
    predecessor(tmp_path / "home")
    with JournalTrajectoryStore(tmp_path / "home" / "trajectory.journal") as journal:
        journal.append(draft(1))
    with SqliteTrajectoryStore.open(tmp_path / "home", writable=True) as store:
        store.append(draft(2))
    with default_reader(tmp_path / "home") as reader:
        assert [record.record_id for record in everything(reader)] == ["r2"]
    with default_reader(tmp_path / "home" / "qiju.db") as reader:
        assert [record.record_id for record in everything(reader)] == ["r2"]
    with default_reader(str(tmp_path / "home"), selector="legacy") as reader:
        assert {record.session_id for record in everything(reader)} == {"s1", "s2"}


def test_a_journal_comes_second(tmp_path, draft):
    """Alone in a folder, by the name trajectory.journal among several, or by its own path."""
    with JournalTrajectoryStore(tmp_path / "a.journal") as journal:
        journal.append(draft(1))
    for place in (tmp_path, tmp_path / "a.journal"):
        with default_reader(place) as reader:
            assert [record.record_id for record in everything(reader)] == ["r1"]
    with JournalTrajectoryStore(tmp_path / "b.journal") as journal:
        journal.append(draft(2))
    with pytest.raises(AmbiguousId):
        default_reader(tmp_path)
    with JournalTrajectoryStore(tmp_path / "trajectory.journal") as journal:
        journal.append(draft(3))
    with default_reader(tmp_path) as reader:
        assert [record.record_id for record in everything(reader)] == ["r3"]


def test_nothing_readable_is_not_found(tmp_path):
    """And nothing is created while looking; an unknown selector is a usage error."""
    (tmp_path / "note.txt").write_text("x", encoding="utf-8")
    for place in (tmp_path, tmp_path / "note.txt", tmp_path / "missing"):
        with pytest.raises(NotFound):
            default_reader(place)
    with pytest.raises(UsageError):
        default_reader(tmp_path, selector="newest")
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_a_run_folder_tells_calls_results_and_states(tmp_path):
    """Events before the step they carry; named actions pair with their results; what cannot be paired stays whole."""
    folder = run_folder(tmp_path / "runs" / "one")
    before = snapshot_of(tmp_path)
    with default_reader(folder) as reader:
        records = everything(reader)
    assert snapshot_of(tmp_path) == before
    assert [record.kind.value for record in records] == [
        "state",
        "event",
        "state",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "event",
        "state",
        "event",
    ]
    assert {record.run_id for record in records} == {"run-7"}
    log, anomalies = exchange_from_records(records)
    assert anomalies == ()
    (batch,) = log.batch_ids
    assert [(call.name, result.is_error) for call, result in log.outcomes(batch)] == [("read", False), ("run", True)]
    calls = log.declared_calls(batch)
    assert calls[0].arguments == {"path": "a"}
    assert calls[1].arguments == {"name": "run", "args": {}, "why": "x"}
    unpaired = records[8].payload
    assert unpaired["actions"] == ["a bare word"]
    assert records[2].payload["state_diff"] == {"k": 1}


def test_a_folder_of_run_folders_is_read_in_order(tmp_path):
    """One session a run."""
    run_folder(tmp_path / "b", "run-b")
    run_folder(tmp_path / "a", "run-a")
    with default_reader(tmp_path) as reader:
        assert [one.session_id for one in reader.sessions()] == ["run-a", "run-b"]


def test_a_torn_line_of_a_run_is_counted(tmp_path):
    """It hides nothing else, is in the loss report, and makes no export exact."""
    folder = run_folder(tmp_path / "one")
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step_id": 3, "pha')
    with default_reader(folder) as reader:
        assert len(everything(reader)) == 10
        assert reader.loss.entries == (LossEntry("events.jsonl", "torn", 1),)
        assert not reader.read_session("run-7", view=RAW).loss.lossless


def test_a_run_folder_without_manifest_is_not_one(tmp_path):
    """Said, not guessed."""
    lines(tmp_path / "events.jsonl", {"x": 1})
    with pytest.raises(NotFound):
        default_reader(tmp_path)


def test_the_predecessors_store_gives_each_record_once(tmp_path):
    """Short and long tier; the same record in both is one, another under the same id is kept beside it."""
    home = predecessor(tmp_path / "old")
    before = snapshot_of(tmp_path)
    with default_reader(home) as reader:
        records = everything(reader)
        assert reader.loss.entries == (LossEntry("demo.jsonl", "torn", 1),)
    assert snapshot_of(tmp_path) == before
    assert [(record.record_id, record.payload["title"]) for record in records] == [
        ("s1:2", "two"),
        ("s2:1", "short only"),
        ("s1:1", "another one"),
        ("s1:1~2", "one"),
    ]
    assert all(record.kind is RecordKind.SESSION_RECORD for record in records)
    assert records[3].payload["own"] == 1


def test_a_history_that_changes_ends_its_cursors(tmp_path):
    """The pages would no longer be of the files; opening again gives the new state."""
    home = predecessor(tmp_path / "old")
    with default_reader(home) as reader:
        page = read_page(reader, TrajectoryQuery(limit=1), view=RAW)
        lines(home / "long" / "more.jsonl", {"id": "s9:1", "title": "new"})
        lines(home / "long" / "demo.jsonl", {"id": "s1:1", "title": "rewritten"})
        with pytest.raises(CursorRejected):
            read_page(reader, TrajectoryQuery(limit=1), page.next_cursor, view=RAW)
    with default_reader(home) as reader:
        assert "rewritten" in [record.payload["title"] for record in everything(reader)]


def test_a_history_cursor_belongs_to_its_reader(tmp_path):
    """Nothing in the files could carry it to another."""
    home = predecessor(tmp_path / "old")
    with default_reader(home) as one, default_reader(home) as other:
        page = read_page(one, TrajectoryQuery(limit=1), view=RAW)
        assert len(read_page(one, TrajectoryQuery(limit=1), page.next_cursor, view=RAW).records) == 1
        with pytest.raises(CursorRejected):
            read_page(other, TrajectoryQuery(limit=1), page.next_cursor, view=RAW)


def test_closing_twice_is_fine(tmp_path, draft):
    """For every kind of reader."""
    with JournalTrajectoryStore(tmp_path / "a.journal") as journal:
        journal.append(draft(1))
    run_folder(tmp_path / "run")
    for place in (tmp_path / "a.journal", tmp_path / "run"):
        reader = default_reader(place)
        reader.close()
        reader.close()


def test_journals_and_run_folders_come_into_the_store(tmp_path, store, draft):
    """Redacted, complete, and only once; a run that goes on adds what is new."""
    with JournalTrajectoryStore(tmp_path / "a.journal") as journal:
        journal.append_many([draft(number) for number in range(1, 1200)])
    for expected in (1199, 0):
        history = open_journal(tmp_path / "a.journal", store.store)
        assert store.import_drafts(history.drafts).added == expected
        history.close()
    folder = run_folder(tmp_path / "run")
    assert store.import_drafts(open_run_folder(folder, store.store).drafts).added == 10
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"step_id": 3, "phase": "late"}) + "\n")
    assert store.import_drafts(open_run_folder(folder, store.store).drafts).added == 1
    assert len(everything(StoreTrajectoryReader(store))) == 1210


def test_every_reader_gives_the_same_records(tmp_path, store, draft):
    """Store and journal, whole or paged, with the same query and view."""
    drafts = [draft(number, session=f"s{number % 2}") for number in range(1, 30)]
    store.append_many(drafts)
    with JournalTrajectoryStore(tmp_path / "a.journal") as journal:
        journal.append_many(drafts)
        for query in (TrajectoryQuery(limit=4), TrajectoryQuery("s1", kinds=("message",), limit=3)):
            for view in PrivacyView:
                one = list(iter_records(StoreTrajectoryReader(store), query, view=view))
                assert one == list(iter_records(StoreTrajectoryReader(journal), query, view=view))
                assert one
