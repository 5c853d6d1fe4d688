"""`qiju redact` as a person meets it: what is refused, what is said, what the exit code means, what is left pending."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import remains

VALUE = "canary" + "-word-9481"


def body(place: Any, identity: str) -> str:
    return str(place.ok("show", identity).json()["body_md"])


@pytest.mark.parametrize("value", ["", " ", "\n", "\t", "\u200b", "\u2060\u00ad", "\u3164", "\u2800 "])
def test_a_value_that_cannot_be_seen_is_refused(place: Any, value: str) -> None:
    """Nothing changes, on the command line as on standard input."""
    identity = place.log(body_md="alpha beta")
    assert place.run("redact", f"--value={value}", "--reason", "t").code == 2
    assert place.run("redact", "--value-stdin", "--reason", "t", given=value).code == 2
    assert body(place, identity) == "alpha beta"


def test_a_short_value_needs_force_and_is_not_remembered(place: Any) -> None:
    """Remembered, it would be cut out of everything logged from then on."""
    identity = place.log(body_md="alpha pin-1 beta")
    refused = place.run("redact", "--value", "pin-1", "--reason", "t")
    assert refused.code == 4
    assert "pin-1" not in refused.err + refused.out
    done = place.ok("redact", "--value", "pin-1", "--reason", "t", "--force")
    assert done.json()["remembered"] is False
    assert body(place, identity) == "alpha [REDACTED:manual] beta"
    assert body(place, place.log(body_md="new pin-1 text")) == "new pin-1 text"


@pytest.mark.parametrize(
    ("value", "placeholder"),
    [(VALUE, "was " + VALUE), (VALUE, "WAS " + VALUE.upper()), ("REDACTED", "[REDACTED:manual]"), (VALUE, "a\nb")],
)
def test_a_placeholder_that_keeps_the_value_is_refused_before_anything_changes(
    place: Any, value: str, placeholder: str
) -> None:
    identity = place.log(body_md=f"x {value} y")
    done = place.run("redact", "--value", value, "--reason", "t", "--placeholder", placeholder)
    assert done.code == 2
    assert VALUE not in done.out + done.err
    assert body(place, identity) == f"x {value} y"


def test_the_reason_is_redacted_by_value_and_by_rules(place: Any) -> None:
    """A reason is written by hand in a hurry and may quote what leaked."""
    token = "gh" + "p_" + "x7Kq2Vt9Lm4Rb8Ns1W" + "d6Fy3Hj5Pc0Gz2TaUe"
    place.log(body_md=VALUE)
    place.ok("redact", "--value", VALUE, "--reason", f"{VALUE.upper()} and {token} leaked")
    audit = place.ok("redact", "--log").out
    assert VALUE.lower() not in audit.lower()
    assert token not in audit
    assert "leaked" in audit


def test_markers_are_never_broken(place: Any) -> None:
    """A part of one is left whole inside it, and a value that holds one is refused."""
    token = "gh" + "p_" + "x7Kq2Vt9Lm4Rb8Ns1W" + "d6Fy3Hj5Pc0Gz2TaUe"
    identity = place.log(body_md=f"a {token} b")
    text = body(place, identity)
    marker = text.removeprefix("a ").removesuffix(" b")
    digits = marker.rpartition(":")[2].rstrip("]")
    assert place.run("redact", "--value", f"x {marker}", "--reason", "t").code == 4
    assert place.run("redact", "--value", digits, "--reason", "t").code == 3
    assert body(place, identity) == text


def test_a_second_run_finds_nothing(place: Any) -> None:
    place.log(body_md=VALUE)
    place.ok("redact", "--value", VALUE, "--reason", "t")
    again = place.run("redact", "--value", VALUE, "--reason", "t", "--json-errors")
    assert again.code == 3
    assert json.loads(again.err.splitlines()[-1])["error"]["kind"] == "nothing_to_redact"


def test_the_command_line_is_warned_of_and_standard_input_is_not(place: Any) -> None:
    place.log(body_md=f"{VALUE} and other-value-1")
    assert "history" in place.ok("redact", "--value", VALUE, "--reason", "t").err
    assert place.ok("redact", "--value-stdin", "--reason", "t", given="other-value-1\r\n").err == ""


def test_a_dry_run_counts_and_changes_nothing(place: Any) -> None:
    """It says what the run then does."""
    identity = place.log(body_md=f"x {VALUE}")
    before = {path: path.read_bytes() for path in place.home.rglob("*.db")}
    planned = place.ok("redact", "--value", VALUE, "--reason", "t", "--dry-run").json()
    assert {path: path.read_bytes() for path in place.home.rglob("*.db")} == before
    assert body(place, identity) == f"x {VALUE}"
    done = place.ok("redact", "--value", VALUE, "--reason", "t").json()
    assert planned["counts"] == done["counts"]
    assert planned["counts"]["short"] == 1


def test_longer_words_and_other_spellings_are_told(place: Any) -> None:
    place.log(body_md=f"{VALUE}-longtail and {VALUE.upper()} and {VALUE}")
    report = place.ok("redact", "--value", VALUE, "--reason", "t").json()
    assert report["cut_longer_words"] == 1
    assert report["other_spellings_left"] == 1
    assert report["proof"]["passed"] is True


def test_words_of_qiju_itself_are_refused(place: Any) -> None:
    """They stand in the schema of every database, where no proof could tell them from the value."""
    place.log(body_md="the session_record of trajectory_event")
    assert place.run("redact", "--value", "session_record", "--reason", "t").code == 4


def test_digits_inside_digests_are_no_remainder(place: Any) -> None:
    """A number of six digits stands in some digest sooner or later; the record's own text is clean all the same."""
    place.log(body_md="one")
    digest = sqlite3.connect(f"file:{place.db}?mode=ro", uri=True).execute("SELECT digest FROM record").fetchone()[0]
    part = digest[10:17]
    place.log(body_md=f"code {part} end")
    report = place.ok("redact", "--value", part, "--reason", "t").json()
    assert report["proof"]["passed"] is True


def test_a_deleted_rows_bytes_count_as_found(place: Any) -> None:
    """No row holds the value any more, but old segments of the index do: the run cleans them instead of saying 3."""
    place.log(body_md=f"{VALUE} here")
    connection = sqlite3.connect(place.db)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("DELETE FROM record")
    connection.commit()
    connection.close()
    assert remains(place.home, VALUE)
    done = place.ok("redact", "--value", VALUE, "--reason", "t")
    assert done.json()["proof"]["passed"] is True
    assert remains(place.home, VALUE) == []


def test_an_open_reader_makes_it_incomplete_and_a_rerun_finishes_it(place: Any) -> None:
    """The WAL cannot be cut while somebody reads from it; who, is said, and the pending mark stays."""
    place.log(body_md=f"{VALUE} here")
    hold = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN');"
        " c.execute('SELECT count(*) FROM record').fetchall(); print('ready', flush=True); sys.stdin.read()"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", hold, str(place.db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    try:
        done = place.run("redact", "--value", VALUE, "--reason", "t")
        assert done.code == 4
        assert "write-ahead log" in done.err
        if sys.platform == "linux":
            assert str(reader.pid) in done.err
        assert place.run("redact", "--log").json()[-1]["pending"] is True
    finally:
        reader.communicate()
    assert place.ok("redact", "--value", VALUE, "--reason", "t").json()["proof"]["passed"] is True
    assert "pending" not in place.ok("redact", "--log").json()[-1]
    assert remains(place.home, VALUE) == []


def test_what_cannot_be_read_or_reached_is_named(place: Any, tmp_path: Path) -> None:
    """Damaged Parquet is left as it is; a folder that is gone is named; both end as 4 and can be finished later."""
    identity = place.log(body_md=f"x {VALUE}")
    damaged = place.home / "archive" / "project=demo" / "month=2025-01" / "entries.parquet"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(os.urandom(500))
    kept = damaged.read_bytes()
    done = place.run("redact", "--value", VALUE, "--reason", "t")
    assert done.code == 4
    assert "entries.parquet" in done.err
    assert damaged.read_bytes() == kept
    assert VALUE not in body(place, identity)
    damaged.unlink()
    connection = sqlite3.connect(place.db)
    connection.execute("INSERT INTO project_root (path, project) VALUES (?, 'demo')", (str(tmp_path / "gone"),))
    connection.commit()
    done = place.run("redact", "--value", VALUE, "--reason", "t")
    assert done.code == 4
    assert str(tmp_path / "gone") in done.err
    connection.execute("DELETE FROM project_root WHERE path LIKE '%/gone'")
    connection.commit()
    connection.close()
    assert place.ok("redact", "--value", VALUE, "--reason", "t").json()["proof"]["passed"] is True


def test_an_export_elsewhere_is_named_and_left(place: Any, tmp_path: Path) -> None:
    place.log(body_md=VALUE)
    target = tmp_path / "out" / "x.jsonl"
    target.parent.mkdir()
    place.ok("export", "--format", "jsonl", "--view", "raw_private", "--output", str(target))
    connection = sqlite3.connect(place.db)
    connection.execute("INSERT OR IGNORE INTO file_manifest (path, kind) VALUES (?, 'export')", (str(target),))
    connection.commit()
    connection.close()
    done = place.ok("redact", "--value", VALUE, "--reason", "t")
    assert str(target) in done.err
    assert VALUE in target.read_text("utf-8")


def test_a_folder_given_with_project_is_looked_through(place: Any, tmp_path: Path) -> None:
    place.log(body_md="x")
    other = tmp_path / "elsewhere"
    (other / ".qiju").mkdir(parents=True)
    (other / ".qiju" / "short.jsonl").write_text(json.dumps({"body_md": VALUE}) + "\n", encoding="utf-8")
    place.ok("redact", "--value", VALUE, "--reason", "t", "--project", str(other))
    assert remains(other, VALUE) == []


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_an_unwritable_temporary_folder_does_not_matter(place: Any, tmp_path: Path) -> None:
    place.log(body_md=VALUE)
    locked = tmp_path / "ro"
    locked.mkdir(mode=0o500)
    place.ok("redact", "--value", VALUE, "--reason", "t", env={"TMPDIR": str(locked), "SQLITE_TMPDIR": str(locked)})


def test_nothing_is_written_outside_the_home_and_the_project(place: Any, tmp_path: Path) -> None:
    """A temporary folder that does not exist shows that none is used."""
    place.log(body_md=VALUE)
    gone = str(tmp_path / "no" / "such")
    place.ok("redact", "--value", VALUE, "--reason", "t", env={"TMPDIR": gone, "SQLITE_TMPDIR": gone})
    assert [path.name for path in place.home.iterdir() if "qiju-tmp" in path.name] == []


def test_other_writers_get_through_while_it_runs(place: Any) -> None:
    """Ten records are logged during a redaction that has many rows to change; none has to wait for all of it."""
    lines = [
        json.dumps(
            {"id": f"big:{n}", "project": "demo", "source": "agent", "title": f"m{n}", "body_md": f"{VALUE} w{n} " * 60}
        )
        for n in range(1, 400)
    ]
    (place.folder / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    place.ok("import", str(place.folder / "x.jsonl"))
    running = place.start(
        "redact", "--value", VALUE, "--reason", "t", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for number in range(10):
        place.log(title=f"during {number}")
    assert running.wait(timeout=100) == 0
    assert remains(place.home, VALUE) == []
    place.ok("verify")


def test_the_value_does_not_come_back_by_import(place: Any) -> None:
    """An export from before, imported again, and a record logged anew are redacted by the fingerprint."""
    place.log(id="s:1", body_md=f"x {VALUE} y", extra={"pass": VALUE})
    target = place.folder / "before.jsonl"
    place.ok("export", "--format", "jsonl", "--view", "raw_private", "--output", str(target))
    place.ok("redact", "--value", VALUE, "--reason", "t")
    text = target.read_text("utf-8").replace('"s:1"', '"s:2"')
    target.write_text(text, encoding="utf-8")
    place.ok("import", str(target))
    logged = place.log(body_md=f"again `{VALUE}`, and {VALUE}.")
    assert VALUE not in body(place, logged)
    assert remains(place.home, VALUE) == []
    rules = {entry["rule"] for entry in place.ok("show", "s:2").json()["redactions"]}
    assert "remembered" in rules


def test_a_value_of_several_words_is_remembered_by_their_sequence(place: Any) -> None:
    place.log(body_md="call Jane Q. Example now")
    place.ok("redact", "--value", "Jane Q. Example", "--reason", "t")
    again = place.log(body_md="Jane Q. Example called; Jane did, Example did not")
    assert "Jane Q. Example" not in body(place, again)
    assert "Jane did, Example did not" in body(place, again)


def test_the_fingerprint_is_of_this_store_alone(place: Any) -> None:
    """The audit holds a keyed digest: the same value in another store has another one, and no plain hash of it."""
    import hashlib

    place.log(body_md=VALUE)
    place.ok("redact", "--value", VALUE, "--reason", "t")
    audit = place.ok("redact", "--log").out
    for name in ("sha256", "sha1", "md5"):
        assert hashlib.new(name, VALUE.encode()).hexdigest()[:16] not in audit


def test_a_cursor_over_a_redacted_record_is_refused(place: Any) -> None:
    for number in range(4):
        place.log(session=f"s{number}", body_md=f"anchor{number}-word")
    page = place.ok("search", "--project", "demo", "--page", "--limit", "2").json()
    place.ok("redact", "--value", "anchor2-word", "--reason", "t")
    assert place.run("search", "--project", "demo", "--page", "--cursor", page["next_cursor"]).code == 4


def test_leftovers_of_killed_runs_go_and_living_writers_are_named(place: Any) -> None:
    place.log(body_md=VALUE)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = place.home / f".x.jsonl.qiju-tmp-{int(dead.stdout)}-00000000"
    left.write_text(VALUE, encoding="utf-8")
    living = place.home / f".y.jsonl.qiju-tmp-{os.getpid()}-00000000"
    living.write_text(VALUE, encoding="utf-8")
    done = place.run("redact", "--value", VALUE, "--reason", "t")
    assert done.code == 4
    assert str(os.getpid()) in done.err
    assert not left.exists()
    living.unlink()
    assert place.ok("redact", "--value", VALUE, "--reason", "t").json()["proof"]["passed"] is True


def test_the_time_of_the_row_transaction_is_what_others_wait(place: Any) -> None:
    """The search for candidates holds no lock: with a writer in the way it still ends, and the redaction after it."""
    place.log(body_md=VALUE)
    holder = sqlite3.connect(place.db, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    planned = place.ok("redact", "--value", VALUE, "--reason", "t", "--dry-run").json()
    assert planned["counts"]["short"] == 1
    running = place.start(
        "redact", "--value", VALUE, "--reason", "t", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(1.0)
    assert running.poll() is None
    holder.execute("ROLLBACK")
    holder.close()
    assert running.wait(timeout=60) == 0


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error there")
def test_a_reader_that_goes_away_is_no_failure(place: Any) -> None:
    """`qiju redact ... --dry-run | head` said that a file had a broken pipe."""
    place.log(body_md="a planted value", project="")
    call = place.command("redact", "--value-stdin", "--reason", "r", "--dry-run")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(
            call, cwd=place.project, env=place.env, input=b"planted", stdout=gone, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (0, b"")
