"""Into the store: redacted, repeatable, also when the file has grown, and only what was named."""

from __future__ import annotations

import json
import sys

import pytest

from qiju.errors import NotFound, UsageError
from qiju.trajectory.readers import StoreTrajectoryReader
from qiju.trajectory.store import SqliteTrajectoryStore
from qiju.trajectory.types import PrivacyView, RecordKind
from qiju.transcripts import taking
from qiju.transcripts.taking import looks_like, take_in

TOKEN = "gh" + "p_" + "Zx81kQm2Vb7NcR4sTy60WfLp3dHg5JaE9uXo"


@pytest.fixture
def store(tmp_path):
    with SqliteTrajectoryStore.open(tmp_path / "home", writable=True) as opened:
        yield opened


def all_records(store, session="session-1", view=PrivacyView.RAW_PRIVATE):
    return StoreTrajectoryReader(store).read_session(session, view=view).records


def test_a_second_import_adds_nothing_and_a_grown_file_adds_what_is_new(claude, write, store):
    claude.user("one")
    claude.call("m1", "t1", command="ls")
    first = take_in(store, write(claude.lines), "claude")
    again = take_in(store, write(claude.lines), "claude")
    claude.result("t1", "x")
    grown = take_in(store, write(claude.lines, "renamed.jsonl"), "claude")
    assert (first.read, first.added, first.identical) == (3, 3, 0)
    assert (again.read, again.added, again.identical) == (3, 0, 3)
    assert (grown.read, grown.added, grown.identical) == (4, 1, 3)
    assert len(all_records(store)) == 4


def test_secrets_are_redacted_on_the_way_in_wherever_they_stand(claude, write, store, tmp_path):
    claude.user(f"my token is {TOKEN}")
    claude.call("m1", "t1", command="x", env={TOKEN: "v"})
    claude.result("t1", [{"type": "text", "text": TOKEN}], toolUseResult={"deep": [{"er": TOKEN}]})
    taken = take_in(store, write(claude.lines, tail='{"torn": "' + TOKEN), "claude")
    assert taken.redactions >= 4
    store.store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path
    take_in(store, write(claude.lines), "claude")
    assert sum(record.kind is RecordKind.MESSAGE for record in all_records(store)) == 1


def test_what_was_redacted_later_does_not_come_back(claude, write, store):
    """An import after `redact` must neither restore the text nor fail."""
    claude.user("call it bluebird")
    take_in(store, write(claude.lines), "claude")
    store.store.db.connection.execute(
        "UPDATE trajectory_event SET payload = replace(payload, 'bluebird', '[REDACTED]') WHERE kind = 'message'"
    )
    again = take_in(store, write(claude.lines), "claude")
    assert (again.added, again.identical) == (0, 2)
    (said,) = [
        payload
        for (payload,) in store.store.db.connection.execute(
            "SELECT payload FROM trajectory_event WHERE kind = 'message'"
        )
    ]
    assert "bluebird" not in said


def test_one_id_with_two_contents_in_two_files_keeps_both_and_says_so(claude, write, store):
    claude.user("this", uuid="u")
    take_in(store, write(claude.lines), "claude")
    claude.lines.clear()
    claude.user("that", uuid="u")
    taken = take_in(store, write(claude.lines), "claude")
    assert taken.report.anomalies["other_content"][0] >= 1
    said = [record.payload["content"] for record in all_records(store) if record.kind is RecordKind.MESSAGE]
    assert said == ["this", "that"]
    assert take_in(store, write(claude.lines), "claude").added == 0


def test_ids_are_keyed_with_the_stores_secret(write, store, tmp_path):
    path = write([{"type": "user", "timestamp": "2026-01-01T00:00:00Z", "message": {"content": "guess"}}])
    take_in(store, path, "claude")
    with SqliteTrajectoryStore.open(tmp_path / "other", writable=True) as other:
        take_in(other, path, "claude")
        ids = [{record.record_id for record in all_records(one, "session")} for one in (store, other)]
    assert ids[0].isdisjoint(ids[1])


def test_a_dry_run_counts_the_same_and_stores_nothing(claude, write, store):
    claude.user("one")
    assert take_in(store, write(claude.lines), "claude", dry_run=True).added == 2
    assert all_records(store) == ()


def test_a_long_import_goes_in_many_short_transactions(claude, write, store, monkeypatch):
    monkeypatch.setattr(taking, "BATCH", 3)
    for number in range(5):
        claude.user(str(number))
    steps = []
    take_in(store, write(claude.lines), "claude", step=steps.append)
    assert steps == [3, 3]


def test_a_folder_gives_its_transcripts_and_names_what_it_passes_over(claude, codex, write, store, tmp_path):
    claude.user("main")
    write(claude.lines, "p/session-1.jsonl")
    claude.user("sub", isSidechain=True, agentId="a1")
    write(claude.lines[-1:], "p/session-1/subagents/agent-a1.jsonl")
    write(codex.lines, "p/rollout.jsonl")
    write(["{}"], "p/history.jsonl")
    write(["{}"], "p/agent-a1.meta.json")
    taken = take_in(store, tmp_path / "p", "claude")
    assert taken.report.files == 2
    assert {record.run_id for record in all_records(store)} == {None, "a1"}
    assert taken.report.notes == [
        "not read, a transcript of codex: rollout.jsonl",
        "not read, no transcripts by their names: 2 files",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_links_inside_a_folder_are_named_and_not_followed(claude, write, store, tmp_path):
    claude.user("x")
    path = write(claude.lines, "p/a.jsonl")
    (tmp_path / "p" / "link.jsonl").symlink_to(path)
    taken = take_in(store, tmp_path / "p", "claude")
    assert taken.report.files == 1
    assert taken.report.notes == ["not read, a symbolic link: link.jsonl"]


def test_a_file_alone_leaves_its_neighbours_and_names_them(claude, write, store):
    claude.user("main")
    path = write(claude.lines, "session-1.jsonl")
    write(claude.lines, "session-1/subagents/agent-a1.jsonl")
    taken = take_in(store, path, "claude")
    assert taken.report.files == 1
    assert taken.report.notes == ["not read: 1 subagent files in session-1/subagents; import that folder, too"]


def test_the_other_hosts_file_is_refused_by_name(codex, write, store, tmp_path):
    with pytest.raises(UsageError, match="codex"):
        take_in(store, write(codex.lines), "claude")
    with pytest.raises(NotFound):
        take_in(store, tmp_path / "absent", "claude")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound):
        take_in(store, tmp_path / "empty", "codex")


def test_a_file_is_known_by_its_first_lines(claude, codex, write):
    claude.user("x")
    assert looks_like(write(claude.lines)) == "claude"
    assert looks_like(write(codex.lines)) == "codex"
    assert looks_like(write(["nonsense", "{}", '{"type": []}'])) == ""
    assert looks_like(write([{"type": "message", "role": "user", "content": []}])) == "codex"


def test_the_public_view_of_an_import_names_nobody(claude, write, store):
    claude.user("see /Users/annabelle/notes and annabelle@example.org", cwd="/Users/annabelle/work")
    claude.call("m1", "t1", "Write", file_path="/home/annabelle/x.py", content="y")
    take_in(store, write(claude.lines), "claude")
    records = all_records(store, view=PrivacyView.REDACTED_PUBLIC)
    assert "annabelle" not in json.dumps([record.to_dict() for record in records])
    assert [record.payload.get("role") for record in records if record.kind is RecordKind.MESSAGE] == ["user"]
