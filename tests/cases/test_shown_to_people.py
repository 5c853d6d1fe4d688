"""What a terminal, a pipe and a script get to see: whole ids, one line a record, no colours but on a terminal."""

from __future__ import annotations

import json

import pytest
from program import Place
from within import Within

SESSION = "7f3d5a52-0f6c-4a5a-9d3b-27f7c1d0a001"
RECORD = {
    "title": "first\nsecond\tthird " + "表" * 60,
    "body_md": "b",
    "tags": ["one\ntwo", "long" * 60],
    "next_steps": ["look\n- [x] forged and done", "look", "LOOK"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Within:
    made = Within(Place(tmp_path_factory.mktemp("shown") / "own"))
    words = ["log", "--source", "manual", "--project", "demo", "--agent", "codex"]
    made.ok(*words, "--session-id", SESSION, given=json.dumps(RECORD))
    for number in range(80):
        made.ok(*words, "--session-id", "fill", given=json.dumps({"title": f"t{number}", "body_md": "w" * 3_000}))
    return made


@pytest.mark.parametrize("columns", ["0", "1", "5", "20", "39", "60", "100000", "-3", "abc", ""])
def test_an_id_is_whole_in_a_table_of_any_width(store: Within, columns: str) -> None:
    done = store.ok("search", "--session", SESSION, "--project", "demo", "--format", "table", env={"COLUMNS": columns})
    assert f"{SESSION}:1" in done.out


def test_one_record_is_one_line_and_a_step_forges_no_other(store: Within) -> None:
    here = ["search", "--session", SESSION, "--project", "demo"]
    assert store.ok(*here, "--format", "jsonl").out.count("\n") == 1
    assert store.ok(*here, "--format", "summary").out.count("\n") == 1
    steps = store.ok(*here, "--format", "actions").out.splitlines()
    assert len(steps) == 2
    assert all(step.startswith("- [ ] ") for step in steps)


@pytest.mark.parametrize(
    "env", [{"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, {}]
)
@pytest.mark.parametrize("form", ["json", "jsonl", "table", "summary", "markdown", "actions"])
def test_a_pipe_gets_no_colour(store: Within, env: dict[str, str], form: str) -> None:
    done = store.ok("search", "--project", "demo", "--format", form, env={"TERM": "xterm-256color", **env})
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize("form", ["json", "jsonl", "table", "summary", "actions", "markdown"])
def test_a_reader_that_goes_away_is_no_failure(store: Within, form: str) -> None:
    import subprocess

    words = ("search", "--project", "demo", "--format", form)
    child = store.place.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PYTHONUNBUFFERED": "1"})
    assert child.stdout is not None
    child.stdout.read(1)
    child.stdout.close()
    assert child.stderr is not None
    said = child.stderr.read()
    child.stderr.close()
    assert child.wait(60) in (0, 141)
    assert said == b""


@pytest.mark.parametrize(
    "odd", ["", " ", ":", ":1", "x", "x:", "x:0", "x:-1", "x:1.5", "x:y", "a:b:3", "x:01", "x\ny:1"]
)
def test_an_id_is_a_session_and_a_number_or_refused(store: Within, odd: str) -> None:
    done = store.run("log", "--source=manual", "--project=odd", given=json.dumps({"title": "odd", "id": odd}))
    if done.code == 0:
        identity = done.out.strip()
        assert store.ok("show", "--project=odd", identity).json()["id"] == identity
        assert identity.rpartition(":")[2].isdigit()
    else:
        assert done.code == 1
        assert "id" in done.err


@pytest.mark.parametrize("ts", ["2016-12-31T23:59:60Z", "2026-03-01T24:00:00Z", "2026-03-01T10:00:59.9999999995Z",
                                "20260301T100000Z", "2026-W09-7", "2026-060", "2026-03-01T10:00:00+25:00", "1767225600",
                                "March 1", ""])  # fmt: skip
def test_an_unusual_time_is_kept_as_written_or_replaced_aloud(store: Within, ts: str) -> None:
    done = store.ok("log", "--source=manual", "--project=times", given=json.dumps({"title": "t", "ts": ts}))
    kept = store.ok("show", "--project=times", done.out.strip()).json()["ts"]
    assert kept == ts or "ts" in done.err
    assert ":60" not in kept or kept == ts
