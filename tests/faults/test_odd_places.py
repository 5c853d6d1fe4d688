"""Places and times a store was not made for: synchronised folders, wrong clocks, foreign Git variables, odd names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from program import SESSION, Place, make_repository

CLOCK = "import sys, time; shift = float(sys.argv.pop(1)) * 86400e9; real = time.time_ns\n"
CLOCK += "time.time_ns = lambda: real() + int(shift); time.time = lambda: time.time_ns() / 1e9\n"
CLOCK += "from qiju.cli import main; sys.exit(main())"


def at(place: Place, days: float, *words: str, given: str = "") -> str:
    """A run on a clock that is so many days off; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", CLOCK, str(days), *words], cwd=place.project, env=place.env,
        input=given.encode("utf-8"), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode("utf-8")
    return done.stdout.decode("utf-8").strip()


def log_at(place: Place, days: float, title: str, **fields: str) -> str:
    given = json.dumps({"title": title, "body_md": "b", **fields})
    words = ["log", "--source", "agent", "--project", "demo", "--session-id", SESSION]
    return at(place, days, *words, given=given)


def titles(place: Place, *words: str) -> list[str]:
    return [row["title"] for row in place.ok("search", "--scope", "all", *words).json()]


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jumps", [[0, -400, 1], [0, 3000, 0.5], [-2, -1, -3], [5000, -5000, 0]])
def test_a_clock_that_jumps_changes_neither_numbers_nor_order(place: Place, jumps: list[float]) -> None:
    """Numbers go up whatever the clock says; time order is that of the stamps, on pages, too."""
    ids = [log_at(place, days, f"at {days}") for days in jumps]
    assert ids == [f"{SESSION}:{n}" for n in range(1, len(jumps) + 1)]
    newest_first = [f"at {days}" for days in sorted(jumps, reverse=True)]
    assert titles(place) == newest_first
    assert titles(place, "--session", SESSION) == [f"at {days}" for days in jumps]
    paged: list[str] = []
    cursor: list[str] = []
    while True:
        page = place.ok("search", "--scope", "all", "--page", "--limit", "1", *cursor).json()
        paged += [row["title"] for row in page["records"]]
        if page["next_cursor"] is None:
            break
        cursor = ["--cursor", page["next_cursor"]]
    assert paged == newest_first
    assert place.run("verify").code == 0


def test_a_clock_put_back_between_pages_does_not_disturb_them(place: Place) -> None:
    for number in range(4):
        log_at(place, number, f"n{number}")
    page = place.ok("search", "--scope", "all", "--page", "--limit", "2").json()
    log_at(place, -50, "earlier than all")
    log_at(place, 50, "later than all")
    rest = place.ok("search", "--scope", "all", "--cursor", page["next_cursor"]).json()
    assert [row["title"] for row in (*page["records"], *rest["records"])] == ["n3", "n2", "n1", "n0"]


def test_maintain_on_a_wrong_clock_moves_labels_and_no_content(place: Place) -> None:
    """A clock years ahead archives everything; back in the present all is found as it was."""
    log_at(place, 0, "one")
    before = place.ok("search", "--scope", "all").json()
    at(place, 4000, "maintain")
    assert place.ok("search", "--scope", "all").json() == before
    at(place, -4000, "maintain")
    assert place.ok("search", "--scope", "all").json() == before
    assert place.run("verify").code == 0


def test_a_spool_kept_on_a_wrong_clock_is_drained(place: Place) -> None:
    from qiju.db import Database

    place.log(title="first")
    (place.home / "config.toml").write_text("lock_wait = 0.05\n", encoding="utf-8")
    words = ["log", "--source", "agent", "--project", "demo"]
    with Database.open(place.db) as holder, holder.write():
        for days in ("3000", "-20000"):
            given = json.dumps({"title": f"held {days}", "body_md": "b"}).encode("utf-8")
            done = subprocess.run(
                [sys.executable, "-c", CLOCK, days, *words], cwd=place.project, env=place.env,
                input=given, capture_output=True, check=False,
            )  # fmt: skip
            assert done.returncode == 5, done.stderr
    place.log(title="last")
    assert sorted(titles(place)) == ["first", "held -20000", "held 3000", "last"]
    assert list((place.home / "spool").iterdir()) == []


# --- folders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["Dropbox", "OneDrive - Firm", "Nextcloud"])
def test_a_synchronised_home_is_warned_of_when_the_store_is_made(place: Place, folder: str) -> None:
    """Once, by the command that makes the store; later by `doctor` alone."""
    place.env["QIJU_HOME"] = str(place.folder / folder / "qiju")
    words = ["log", "--source", "agent", "--project", "demo"]
    first = place.ok(*words, given='{"title": "t", "body_md": "b"}')
    assert "is synchronised by" in first.err
    second = place.ok(*words, given='{"title": "t2", "body_md": "b"}')
    assert "synchronised" not in second.err
    assert "is synchronised by" in place.run("doctor").out


def test_an_ordinary_home_is_not_warned_of(place: Place) -> None:
    done = place.ok("log", "--source", "agent", "--project", "demo", given='{"title": "t", "body_md": "b"}')
    assert "network" not in done.err
    assert "synchronised" not in done.err


def test_git_variables_of_another_repository_do_not_decide_the_project(place: Place) -> None:
    """As in a Git hook that calls an agent elsewhere: the folder one stands in counts."""
    other = place.folder / "other"
    make_repository(other)
    place.log(project="")
    env = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index")}
    inside = place.ok("log", "--source", "agent", given='{"title": "t2", "body_md": "b"}', env=env)
    assert inside.out
    rows = place.ok("search", "--scope", "all").json()
    assert {row["project"] for row in rows} == {"proj"}
    assert not (other / ".qiju").exists()


@pytest.mark.parametrize("value", ["", "relative/.git", "/nowhere/.git", "\udcff"])
def test_git_variables_that_lead_nowhere_are_no_obstacle(place: Place, value: str) -> None:
    if value == "\udcff" and sys.platform == "darwin":
        pytest.skip("macOS takes no such name")
    assert place.run("search", "--scope", "all", env={"GIT_DIR": value}).code == 0


# --- names -----------------------------------------------------------------------------------------------------------

NAMES = [
    "con", "NUL", "aux.txt", "com1", "..", ".", "-", "--project", "a/b", "a\\b", "C:", "x" * 300, "\u5b57" * 300,
    "\u0301", "\u202e", "' OR 1=1 --", "%s%n", "$(id)", "<b>", "a\tb", "trailing.", "trailing ", "\U0001f600" * 80,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_project_name_is_stored_apart_or_refused_in_a_sentence(place: Place, name: str) -> None:
    """Whatever becomes of it: nothing outside the home, and its record is found under the name that was given."""
    given = '{"title": "odd", "body_md": "b", "ts": "2020-01-01T00:00:00Z"}'
    done = place.run("log", "--source", "agent", f"--project={name}", given=given)
    if done.code:
        assert done.code in (1, 2, 4), done
        assert "hint: " in done.err or name in done.err, done
        return
    found = place.ok("search", f"--project={name}").json()
    assert [row["title"] for row in found] == ["odd"]
    place.ok("maintain")
    assert place.run("verify").code == 0
    assert sorted(path.name for path in place.folder.iterdir()) == ["proj", "store", "user"]
    (folder,) = (place.home / "archive").iterdir()
    assert len(folder.name.encode("utf-8")) <= 255


@pytest.mark.parametrize("name", NAMES)
def test_an_odd_session_or_agent_is_stored_as_given_or_refused(place: Place, name: str) -> None:
    given = '{"title": "odd", "body_md": "b"}'
    words = ["log", "--source", "agent", "--project", "demo", f"--session-id={name}", f"--agent={name}"]
    done = place.run(*words, given=given)
    if done.code:
        assert done.code in (1, 2, 4), done
        return
    identity = done.out.rstrip("\n")
    assert place.ok("show", "--", identity).json()["id"] == identity
    assert place.ok("temp-entry", f"--agent={name}").out.startswith(str(place.project))


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not take")
@pytest.mark.parametrize(
    "name", ["x" * 250, "\u5b57" * 80, "-rf", "new\nline.jsonl", "a b'c\"d$e.jsonl", "\x1b[31m.jsonl"]
)
def test_odd_file_names_are_only_names(place: Place, name: str) -> None:
    place.log(title="one")
    target = place.project / name
    place.ok("export", "--format", "jsonl", "--view", "raw_private", f"--output={target}")
    assert target.read_text(encoding="utf-8").count("\n") == 1
    done = place.ok("import", "--", str(target))
    assert "\x1b" not in done.out + done.err
    backup = Path(f"{target}"[:-1] + "b")
    made = place.run("backup", "--", str(backup))
    if made.code == 0:
        assert backup.exists()
        place.ok("restore", "--dry-run", "--", str(backup))
    else:
        assert "long" in made.err.casefold(), made  # its manifest's name is longer than the file system allows
