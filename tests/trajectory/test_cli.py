"""`qiju trajectory`: pages across processes, exports with receipts, imports once, checks that name what is wrong."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from qiju.trajectory import JournalTrajectoryStore, RecordKind, TrajectoryDraft

TOKEN = "gh" + "p_" + "0aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC1aE3xk"


@pytest.fixture
def journal(place) -> Path:
    path = place.project / "a.journal"
    with JournalTrajectoryStore(path) as store:
        store.append_many(
            TrajectoryDraft(f"s{n % 2}", RecordKind.MESSAGE, {"role": "user", "content": f"text {n}"}, f"r{n}")
            for n in range(7)
        )
    return path


def paged(place, *words: str) -> list[dict]:
    records: list[dict] = []
    cursor: list[str] = []
    while True:
        page = place.ok("trajectory", "page", *words, *cursor).json()
        assert page["returned"] == len(page["records"])
        records += page["records"]
        if page["next_cursor"] is None:
            return records
        cursor = ["--cursor", page["next_cursor"]]


def test_what_is_logged_and_imported_is_paged_in_one_sequence(place, journal):
    """Records and facts, each page in a process of its own."""
    place.log(title="before")
    assert place.ok("trajectory", "import", str(journal), "--format", "journal").json()["added"] == 7
    place.log(title="after")
    records = paged(place, "--limit", "2")
    assert [record["sequence"] for record in records] == list(range(1, 10))
    assert [record["kind"] for record in records] == ["session_record", *["message"] * 7, "session_record"]
    assert records[-1]["payload"]["title"] == "after"
    only = paged(place, "--limit", "2", "--session", "s1", "--kind", "message", "--after", "3")
    assert [record["record_id"] for record in only] == ["r3", "r5"]
    lines = place.ok("trajectory", "page", "--format", "jsonl", "--limit", "3")
    assert len([json.loads(line) for line in lines.out.splitlines()]) == 3
    assert "--cursor" in lines.err


def test_the_default_page_is_public(place, journal):
    """Unknown keys and home folders are there only when the raw view is named."""
    with JournalTrajectoryStore(journal) as store:
        store.append(TrajectoryDraft("s9", RecordKind.MESSAGE, {"content": "/home/alicewong/x", "zq": 1}))
    place.ok("trajectory", "import", str(journal), "--format", "journal")
    public = place.ok("trajectory", "page", "--session", "s9")
    assert "alicewong" not in public.out
    assert public.json()["loss"]["entries"]
    raw = place.ok("trajectory", "page", "--session", "s9", "--view", "raw_private").json()
    assert raw["records"][0]["payload"]["zq"] == 1
    assert raw["loss"]["entries"] == []


def test_refused_cursors_exit_4(place, journal):
    """Of another query, another view, another store, altered, or over a record that changed."""
    place.ok("trajectory", "import", str(journal), "--format", "journal")
    cursor = place.ok("trajectory", "page", "--limit", "2").json()["next_cursor"]
    other = {"QIJU_HOME": str(place.folder / "other")}
    place.ok("trajectory", "import", str(journal), "--format", "journal", env=other)
    for words, env in (
        (["--session", "s1"], None),
        (["--view", "raw_private"], None),
        ([], other),
    ):
        done = place.run("trajectory", "page", "--limit", "2", "--cursor", cursor, *words, env=env)
        assert done.code == 4
        assert "hint:" in place.run("trajectory", "page", "--format", "jsonl", "--cursor", "x").err or done.err
    for text in (cursor[:-1], cursor + "A", "AAAA", "A" * 50_000):
        assert place.run("trajectory", "page", "--cursor", text).code == 4
    assert place.run("trajectory", "page", "--limit", "3", "--cursor", cursor).code == 0
    with sqlite3.connect(place.db) as stock:
        stock.execute("UPDATE trajectory_event SET payload = '{}' WHERE seq = 6")
    stock.close()
    done = place.run("trajectory", "page", "--limit", "3", "--cursor", cursor)
    assert done.code == 4
    error = json.loads(done.err)["error"]
    assert (error["kind"], error["exit_code"]) == ("cursor_rejected", 4)


def test_importing_twice_adds_nothing_and_a_dry_run_makes_no_store(place, journal):
    """The plan is what the run then does."""
    words = ("trajectory", "import", str(journal), "--format", "journal")
    plan = place.ok(*words, "--dry-run").json()
    assert not place.home.exists()
    done = place.ok(*words).json()
    assert (plan["added"], done["added"]) == (7, 7)
    again = place.ok(*words).json()
    assert (again["read"], again["added"], again["identical"]) == (7, 0, 7)
    assert place.ok(*words, "--dry-run").json()["identical"] == 7


def test_a_conflict_leaves_nothing_of_the_import(place, journal, tmp_path):
    """All or nothing: exit 4, and the records before the conflict are not there either."""
    place.ok("trajectory", "import", str(journal), "--format", "journal")
    second = tmp_path / "b.journal"
    with JournalTrajectoryStore(second) as store:
        store.append(TrajectoryDraft("s0", RecordKind.EVENT, {"new": 1}, "new"))
        store.append(TrajectoryDraft("s0", RecordKind.MESSAGE, {"other": "secret words"}, "r0"))
    done = place.run("trajectory", "import", str(second), "--format", "journal")
    assert done.code == 4
    assert "secret words" not in done.err
    assert len(paged(place)) == 7


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["import", "x"], 2),
        (["import", "x", "--host", "claude", "--format", "journal"], 2),
        (["import", "missing", "--format", "journal"], 3),
        (["import", ".", "--format", "run-folder"], 3),
        (["page", "--kind", "nonsense"], 2),
        (["page", "--limit", "0"], 2),
        (["page", "--view", "naked"], 2),
        (["page", "--source", "missing"], 3),
        (["page", "--selector", "legacy"], 2),
        (["verify", "missing"], 3),
        (["verify", "note.txt"], 1),
        (["verify", "note.txt", "--digest", "abc"], 2),
        (["reimport", "note.txt"], 1),
        (["export", "--output", ""], 2),
        (["export", "--output", "."], 4),
        (["export", "--output", "no/such/x"], 3),
    ],
)
def test_mistakes_have_their_exit_codes(place, words, code):
    """A sentence on standard error, nothing on standard output, and reading makes no store."""
    (place.project / "note.txt").write_text("hello", encoding="utf-8")
    done = place.run("trajectory", *words)
    assert (done.code, done.out) == (code, "")
    assert done.err
    assert words[0] == "import" or not place.db.exists()


def test_an_export_has_a_receipt_and_comes_back(place, journal, tmp_path):
    """Receipt as JSON on standard error or in a file; the raw file comes back with the same digests elsewhere."""
    place.log(title="mine", extra_key="kept")
    place.ok("trajectory", "import", str(journal), "--format", "journal")
    out = place.project / "out.json"
    done = place.ok("trajectory", "export", "--output", "out.json", "--view", "raw_private")
    assert done.out == ""
    receipt = json.loads(done.err)
    assert (receipt["record_count"], receipt["size_bytes"]) == (8, out.stat().st_size)
    assert receipt["loss"]["entries"] == []
    place.ok("trajectory", "export", "--receipt", "receipt.json", "--output", "out.json", "--view", "raw_private")
    receipt = json.loads((place.project / "receipt.json").read_text(encoding="utf-8"))
    checked = place.ok("trajectory", "verify", "out.json", "--digest", receipt["digest"], "--json").json()
    assert checked["ok"]
    assert checked["exact_reimport"]
    assert place.run("trajectory", "verify", "out.json", "--digest", "sha256:" + "0" * 64).code == 4
    other = {"QIJU_HOME": str(tmp_path / "other")}
    back = place.ok("trajectory", "reimport", "out.json", env=other).json()
    assert (back["added"], back["same_digest"], back["exact_reimport"]) == (8, 8, True)
    assert place.ok("trajectory", "reimport", "out.json", env=other).json()["identical"] == 8
    assert "kept" in place.ok("search", "--scope", "all", "--query", "mine", env=other).out


def test_a_public_export_says_that_it_is_a_projection(place, journal, tmp_path):
    """Coming back it is what it is, and says so."""
    with JournalTrajectoryStore(journal) as store:
        store.append(TrajectoryDraft("s9", RecordKind.MESSAGE, {"content": "/home/alicewong/x"}))
    place.ok("trajectory", "import", str(journal), "--format", "journal")
    done = place.ok("trajectory", "export")
    assert "alicewong" not in done.out
    assert json.loads(done.err)["loss"]["entries"]
    (place.project / "public.json").write_text(done.out, encoding="utf-8", newline="")
    back = place.ok("trajectory", "reimport", "public.json", env={"QIJU_HOME": str(tmp_path / "other")})
    assert back.json()["exact_reimport"] is False
    assert "projection" in back.err


def test_an_export_never_replaces_the_store(place, journal):
    """Whatever it reads from; the old file stays whole."""
    place.log(title="mine")
    for target in (place.db, place.home / "store.key", place.home):
        for source in ([], ["--source", str(journal)]):
            done = place.run("trajectory", "export", "--output", str(target), *source)
            assert done.code == 4, done
            assert str(target) in done.err
    assert len(paged(place)) == 1


def test_verify_names_damage(place, journal):
    """The journal's offset, the export's digest, the store's event; exit 4."""
    place.ok("trajectory", "import", str(journal), "--format", "journal")
    place.ok("trajectory", "export", "--output", "out.json", "--view", "raw_private")
    for words in ([], [str(journal)], ["out.json"]):
        assert place.ok("trajectory", "verify", *words, "--json").json()["records"] == 7
    raw = journal.read_bytes()
    at = raw.index(b"text 3")
    journal.write_bytes(raw.replace(b"text 3", b"TEXT 3"))
    done = place.run("trajectory", "verify", str(journal), "--json")
    assert done.code == 4
    problem = json.loads(done.out)["problems"][0]
    assert "offset" in problem
    assert abs(int(problem.rsplit(" ", 1)[1]) - at) < 500
    out = place.project / "out.json"
    out.write_bytes(out.read_bytes().replace(b"text 3", b"TEXT 3"))
    assert place.run("trajectory", "verify", "out.json").code == 4
    with sqlite3.connect(place.db) as stock:
        stock.execute("UPDATE trajectory_event SET payload = '{}' WHERE seq = 3")
    stock.close()
    done = place.run("trajectory", "verify")
    assert done.code == 4
    assert "event 3" in done.out
    assert "text" not in done.out + done.err


def test_a_torn_tail_is_told_and_is_no_damage(place, journal):
    """It was never acknowledged."""
    journal.write_bytes(journal.read_bytes()[:-5])
    checked = place.ok("trajectory", "verify", str(journal), "--json").json()
    assert checked["records"] == 6
    assert checked["torn_tail"]["size_bytes"] > 0
    assert place.ok("trajectory", "import", str(journal), "--format", "journal").json()["added"] == 6


def test_other_histories_are_read_where_they_lie(place, journal):
    """`--source`: nothing is stored."""
    page = place.ok("trajectory", "page", "--source", str(journal), "--limit", "3").json()
    assert page["watermark"] == 7
    going_on = place.ok(
        "trajectory", "page", "--source", str(journal), "--limit", "3", "--cursor", page["next_cursor"]
    ).json()
    assert [record["sequence"] for record in going_on["records"]] == [4, 5, 6]
    listed = place.ok("trajectory", "sessions", "--source", str(journal), "--json").json()
    assert [(one["session_id"], one["records"]) for one in listed] == [("s0", 4), ("s1", 3)]
    assert not place.home.exists()


def test_what_comes_in_is_redacted(place, journal):
    """By the same engine as records; no file of the home holds the secret."""
    with JournalTrajectoryStore(journal) as store:
        store.append(TrajectoryDraft("s9", RecordKind.TOOL_RESULT, {"output": f"key {TOKEN}"}))
    done = place.ok("trajectory", "import", str(journal), "--format", "journal")
    assert done.json()["redactions"] == 1
    for path in place.home.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


def test_session_ids_cannot_steer_a_terminal(place):
    """Control characters of an id are shown, not obeyed."""
    path = place.project / "x.journal"
    with JournalTrajectoryStore(path) as store:
        store.append(TrajectoryDraft("s\x1b[31m\u202e\n", RecordKind.EVENT, {}))
    done = place.ok("trajectory", "sessions", "--source", str(path))
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert len(done.out.splitlines()) == 1


def test_an_empty_store_is_an_empty_result(place):
    """Exit 0, and nothing is made."""
    assert place.ok("trajectory", "sessions", "--json").json() == []
    assert place.ok("trajectory", "page").json()["records"] == []
    assert place.ok("trajectory", "verify").out.startswith("store: 0")
    assert not place.home.exists()
