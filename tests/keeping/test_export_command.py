"""`qiju export` and `qiju import` as a person meets them: streams, receipts, exit codes, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_export_to_a_pipe_and_import_from_one(place: Any) -> None:
    place.log(title="会话", big=2**70, nothing=None)
    done = place.ok("export", "--view", "raw_private")
    receipt = json.loads(done.err)
    assert (receipt["record_count"], receipt["completed"], receipt["privacy_view"]) == (1, True, "raw_private")
    other = {"QIJU_HOME": str(place.folder / "other")}
    report = place.ok("import", "-", given=done.out, env=other).json()
    assert (report["read"], report["added"], report["stored"]) == (1, 1, 1)
    again = place.ok("export", "--view", "raw_private", env=other)
    assert again.out == done.out
    assert str(2**70) in again.out


def test_a_receipt_goes_to_a_file_when_asked(place: Any) -> None:
    place.log()
    done = place.ok("export", "--output", "out.jsonl", "--receipt", "receipt.json")
    assert (done.out, done.err) == ("", "")
    receipt = json.loads((place.project / "receipt.json").read_text(encoding="utf-8"))
    assert receipt["size_bytes"] == (place.project / "out.jsonl").stat().st_size
    assert place.run("export", "--output", "same", "--receipt", "same").code == 4


def test_filters_of_search_select(place: Any) -> None:
    first = place.log(title="alpha", tags=["x"])
    place.log(title="beta", project="other")
    for words in (["--query", "ALPHA"], ["--tags", "x"], ["--project", "demo"], ["--scope", "demo"]):
        lines = place.ok("export", *words).out.splitlines()
        assert [json.loads(line)["id"] for line in lines] == [first], words
    assert len(place.ok("export").out.splitlines()) == 2
    assert place.ok("export", "--tier", "archive").out == ""
    assert "no record matched" in place.ok("export", "--tier", "archive").err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--format", "sqlite"], 2),
        (["--format", "parquet", "--since-rev", "0", "--output", "x"], 2),
        (["--output", ""], 2),
        (["--output", "."], 4),
        (["--output", "no/such/folder"], 3),
        (["--format", "nonsense"], 2),
        (["--query", "(", "--regex"], 2),
        (["--since-rev", "999"], 4),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(place: Any, words: list[str], code: int) -> None:
    place.log()
    done = place.run("export", *words)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("qiju export: ")
    error = json.loads(place.run("export", *words, "--json-errors").err)["error"]
    assert error["exit_code"] == code


def test_the_database_is_never_overwritten(place: Any) -> None:
    place.log()
    before = place.db.read_bytes()[:100]
    for target in (place.db, place.home, f"{place.db}-wal"):
        assert place.run("export", "--output", str(target)).code == 4
    assert place.db.read_bytes()[:100] == before
    assert len(place.ok("export").out.splitlines()) == 1


def test_without_a_store_nothing_is_made(place: Any) -> None:
    assert place.ok("export").out == ""
    place.ok("export", "--output", "out.jsonl")
    assert place.run("import", "missing.jsonl").code == 3
    assert place.run("import", "--dry-run", "missing.jsonl").code == 3
    empty = place.folder / "empty"
    place.ok("export", env={"QIJU_HOME": str(empty)})
    assert not empty.exists()


def test_import_reports_and_exits_by_what_it_found(place: Any) -> None:
    good = {"id": "s:1", "project": "demo", "source": "manual", "title": "t", "ts": "2026-01-01T00:00:00Z"}
    (place.project / "good").write_text(json.dumps(good), encoding="utf-8")
    (place.project / "bad").write_text(json.dumps({**good, "title": "x"}) + "\n{", encoding="utf-8")
    assert place.ok("import", "good").json()["stored"] == 1
    done = place.run("import", "good", "bad", "missing")
    report = done.json()
    assert done.code == 4
    assert "nothing of these files was stored" in done.err
    assert [report[name] for name in ("read", "added", "identical", "conflicting", "invalid")] == [3, 0, 1, 1, 1]
    assert report["files"][2]["error"]["kind"] == "not_found"
    assert place.run("import", "-", "-").code == 2
    assert place.run("import").code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_leaves_the_old_file_and_no_other(place: Any) -> None:
    for number in range(12):
        place.log(session=f"s{number}", body_md="q" * 40000)
    target: Path = place.project / "out.jsonl"
    for delay in (0.05, 0.2, 0.35):
        target.write_bytes(b"old\n")
        process = place.start("export", "--output", str(target))
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        code = process.wait(30)
        lines = target.read_bytes().count(b"\n")
        assert lines in (1, 12)
        assert code == 0 if lines == 12 else code != 0
        assert [path.name for path in place.project.iterdir() if "tmp" in path.name] == []


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_reader_that_leaves_early_is_no_fault(place: Any) -> None:
    for number in range(4):
        place.log(session=f"s{number}", body_md="q" * 60000)
    reading, writing = os.pipe()
    process = place.start("export", stdout=writing, stderr=-1)
    os.close(writing)
    os.read(reading, 10)
    os.close(reading)
    _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err


def test_hot_commands_load_neither_pyarrow_nor_sqlite_utils(place: Any) -> None:
    place.log()
    code = (
        "import sys; from qiju.cli.frame import run; run(sys.argv[1:]); "
        "heavy = {'pyarrow', 'sqlite_utils', 'sqlite3', 'rich'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    for words in (["search", "--query", "t"], ["export"], ["maintain"], ["import", "-"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=place.env,
            cwd=place.project,
            input=b"",
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
