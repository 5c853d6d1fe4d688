"""`qiju trajectory import`, `show`, `draft` and `export --format atif` as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TOKEN = "gh" + "p_" + "Zx81kQm2Vb7NcR4sTy60WfLp3dHg5JaE9uXo"


@pytest.fixture
def session(claude, write, place):
    claude.user(f"fix /home/annabelle/app with {TOKEN}", cwd="/home/annabelle/app")
    claude.call("m1", "t1", "Bash", command="make")
    claude.result("t1", "Exit code 2\n\x1b[31mno rule", is_error=True)
    claude.call("m2", "t2", "Write", file_path="src/a.py", content="x")
    claude.result("t2", "ok")
    path = write(claude.lines)
    done = place.ok("trajectory", "import", "--host", "claude", str(path))
    assert done.json()["added"] == 6
    return path


def test_import_reports_on_standard_output_and_tells_oddities_beside_it(session, claude, write, place):
    claude.result("t9", "orphan")
    done = place.ok("trajectory", "import", "--host", "claude", str(write(claude.lines)))
    report = done.json()
    assert (report["read"], report["added"], report["identical"]) == (7, 1, 6)
    assert report["report"]["anomalies"]["orphan_result"]["count"] == 1
    assert "results without a call: 1 (session.jsonl:6)" in done.err
    dry = place.ok("trajectory", "import", "--host", "claude", str(session), "--dry-run").json()
    assert (dry["added"], dry["dry_run"]) == (0, True)


def test_import_of_the_wrong_thing_is_refused_with_the_right_way(session, codex, write, place):
    assert place.run("trajectory", "import", "--host", "claude", "absent.jsonl").code == 3
    wrong = place.run("trajectory", "import", "--host", "claude", str(write(codex.lines, "r.jsonl")))
    assert wrong.code == 2
    assert "--host codex" in wrong.err
    assert place.run("trajectory", "import", str(session)).code == 2


def test_show_is_plain_and_stable_in_a_pipe(session, place):
    one = place.ok("trajectory", "show", "session-1")
    two = place.ok("trajectory", "show", "sess", env={"FORCE_COLOR": "1", "COLUMNS": "20"})
    assert one.out == two.out
    assert one.out.startswith("session session-1\n\n== before the first message")
    assert "-> Bash  [t1]\n  command: make\n<- failed (exit code 2)\n  Exit code 2\n  \\x1b[31mno rule\n" in one.out
    assert "\x1b" not in one.out
    assert TOKEN not in one.out
    assert place.ok("trajectory", "show", "session-1", "--lines", "1").out.count("line more") == 1
    public = place.ok("trajectory", "show", "session-1", "--view", "redacted_public")
    assert "annabelle" not in public.out
    assert "values are not shown" in public.err


def test_show_names_what_it_cannot_find(session, claude, write, place):
    assert place.run("trajectory", "show", "nothing").code == 3
    claude.session = "session-2"
    claude.user("x")
    place.ok("trajectory", "import", "--host", "claude", str(write(claude.lines[-1:])))
    both = place.run("trajectory", "show", "session")
    assert both.code == 4
    assert "session-1, session-2" in both.err


def test_the_page_is_public_unless_asked_and_replaces_whole_files_only(session, place):
    target = place.project / "page.html"
    done = place.ok("trajectory", "show", "session-1", "--html", "page.html")
    assert done.out == "page.html\n"
    html = target.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert html.endswith("</html>\n")
    assert "annabelle" not in html
    assert TOKEN not in html
    place.ok("trajectory", "show", "session-1", "--html", "page.html", "--view", "raw_private")
    assert "annabelle" in target.read_text(encoding="utf-8")
    assert place.run("trajectory", "show", "session-1", "--html", str(place.home / "qiju.db")).code == 4
    assert place.run("trajectory", "show", "session-1", "--html", "x.html", "--lines", "3").code == 2
    assert [path.name for path in place.project.iterdir() if path.name.startswith(".page")] == []


def test_a_draft_is_taken_by_log_as_it_is(session, place):
    path = Path(place.ok("trajectory", "draft", "session-1").out.strip())
    assert path.parent == place.project / ".qiju" / "tmp"
    written = json.loads(path.read_text(encoding="utf-8"))
    assert "- `make`, exit code 2: \\x1b[31mno rule" in written["body_md"]
    assert "- src/a.py" in written["body_md"]
    logged = place.ok(
        "log", "--source", "manual", "--body", str(path), "--cleanup", "--project", "demo", "--session-id", "session-1"
    )
    assert not path.exists()
    shown = place.ok("trajectory", "show", "session-1").out
    assert f"** record {logged.out.strip()}: fix /home/annabelle/app" in shown


def test_atif_goes_out_with_a_receipt_and_comes_back_into_another_store(session, place):
    done = place.ok("trajectory", "export", "--format", "atif", "--session", "session-1", "--output", "out.json")
    receipt = json.loads(done.err.splitlines()[-1])
    data = (place.project / "out.json").read_bytes()
    assert receipt["size_bytes"] == len(data)
    assert receipt["loss"]["policy_id"] == "qiju.loss/atif-1.8"
    document = json.loads(data)
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "agent"]
    assert b"annabelle" not in data
    assert TOKEN.encode() not in data
    same = place.ok("trajectory", "export", "--format", "atif", "--session", "session-1")
    assert same.out.encode() == data
    again = place.run("trajectory", "import", "--format", "atif", "out.json")
    assert again.code == 4
    other = place.ok("trajectory", "import", "--format", "atif", "out.json", "--home", str(place.folder / "other"))
    assert other.json()["added"] == 6
    assert place.run("trajectory", "export", "--format", "atif").code == 2
    assert place.run("trajectory", "export", "--format", "atif", "--session", "nobody").code == 3
