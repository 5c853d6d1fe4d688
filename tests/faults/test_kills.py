"""Real processes killed (-9) at random moments: what they leave is whole, and the next run finishes.

The boundaries of `test_boundaries` are exact; here the moment is random and the whole program takes part: spool,
Parquet, manifests, exports and backups beside the database. Each round copies a prepared place, starts a command, kills
it, and then looks as a user would: the store opens, verification finds nothing, every record whose id was printed is
there, nothing half-done is visible, the same command run again ends where an undisturbed run ends, and `maintain` an
hour later leaves no temporary file.

`-m slow` kills a thousand; QIJU_TEST_KILLS sets another number. The seed is printed when a round fails.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from program import Place
from test_boundaries import SCENARIOS, SECRET, lines, record

from qiju.files import TEMPORARY_MARK

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX's")

EVERYDAY = 60  # kills of the everyday run, all commands together
SLOW = 1000
HELD_BACK = 4  # records that wait in the spool when a round begins
LATER = 7200.0  # seconds by which leftovers are made older before the last maintain


class Round(NamedTuple):
    """A command as it is run: `given` goes to standard input, `acknowledges` says its output is an id of a record."""

    words: list[str]
    given: str = ""
    gone: str = ""


def scenario(name: str, folder: Path) -> Round:
    one = SCENARIOS[name]
    words = [word.replace("{folder}", str(folder)) for word in one.words]
    return Round(words, json.dumps(one.given) if one.given else "", one.gone)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with archived, long and due records, a backup, and records that wait in the spool."""
    from qiju.db import Database

    place = Place(tmp_path_factory.mktemp("template") / "work")
    body = "Stra\u00dfe " * 200
    own = place.folder / "own.jsonl"
    old = [record(n, "old", body_md=f"{SECRET} {n} {body}" if n == 3 else f"{n} {body}") for n in range(1, 16)]
    own.write_text(lines(old), encoding="utf-8")
    place.ok("import", str(own))
    place.ok("maintain")
    place.ok("backup")
    due = [record(n, "due", ts=f"2024-02-{n:02}T00:00:00Z", body_md=body) for n in range(1, 16)]
    own.write_text(lines(due), encoding="utf-8")
    place.ok("import", str(own))
    own.unlink()
    (place.home / "config.toml").write_text("lock_wait = 0.05\n", encoding="utf-8")
    with Database.open(place.db) as holder, holder.write():
        for number in range(HELD_BACK):
            text = json.dumps({"title": f"held {number}", "body_md": body})
            assert place.run("log", "--source", "agent", "--project", "demo", given=text).code == 5
    (place.home / "config.toml").unlink()
    many = [record(n % 28 + 1, f"imported{n // 28}", body_md=body) for n in range(150)]
    (place.folder / "import.jsonl").write_text(lines(many), encoding="utf-8")
    (place.folder / "out.jsonl").write_text("the old export\n", encoding="utf-8")
    long = place.folder / "predecessor" / "long"
    long.mkdir(parents=True)
    (long / "demo.jsonl").write_text(lines([record(n, "taken", body_md=body) for n in range(1, 29)]), encoding="utf-8")
    said = [
        {
            "type": kind,
            "uuid": f"u{n}",
            "parentUuid": f"u{n - 1}" if n else None,
            "sessionId": "sess",
            "timestamp": "2026-03-01T00:00:00Z",
            "message": {"role": kind, "content": f"text {n} {body}"},
        }
        for n, kind in enumerate(["user", "assistant"] * 60)
    ]
    (place.folder / "session.jsonl").write_text(lines(said), encoding="utf-8")
    return place.folder


class Trial:
    """One copy of the template, in which a command is run, killed and looked after."""

    def __init__(self, template: Path, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder, symlinks=True)
        self.folder = folder
        self.home = folder / "store"
        kept = ("PATH", "LANG", "VIRTUAL_ENV", "PYTHONPATH")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"HOME": str(folder / "user"), "QIJU_HOME": str(self.home), "TMPDIR": str(folder / "tmp")}
        (folder / "tmp").mkdir(exist_ok=True)

    def start(self, one: Round) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "qiju", *one.words], cwd=self.folder / "proj", env=self.env, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(one.given.encode("utf-8"))
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, *words: str, given: str = "") -> tuple[int, str]:
        process = self.start(Round(list(words), given))
        out, _ = process.communicate(timeout=120)
        text = out.decode("utf-8")
        assert "Traceback (most recent call last)" not in text, text
        return process.returncode, text

    def records(self) -> dict[tuple[str, str], str]:
        from qiju.store import Store

        with Store.open_for_reading(self.home) as store:
            rows = store.db.connection.execute("SELECT project, id, digest, title FROM record").fetchall()
        # What waited in the spool gets a session of its own each time it is logged: it is told by its title.
        return {(str(p), str(t) if str(t).startswith("held ") else str(i)): str(d) for p, i, d, t in rows}

    def verify(self) -> list[str]:
        from qiju.keeping.verify import verify
        from qiju.store import Store

        with Store.open(self.home) as store:
            return [" ".join(one) for one in verify(store).faults]

    def maintain(self) -> None:
        code, said = self.run("maintain")
        assert code == 0, said

    def events(self) -> int:
        from qiju.store import Store

        with Store.open_for_reading(self.home) as store:
            return int(store.db.value("SELECT count(*) FROM trajectory_event WHERE record_seq IS NULL"))

    def leftovers(self) -> list[str]:
        found = [path for path in self.folder.rglob("*") if _is_temporary(path)]
        return sorted(path.relative_to(self.folder).as_posix() for path in found)

    def holding(self, text: str) -> list[str]:
        return [path.name for path in self.home.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def _is_temporary(path: Path) -> bool:
    name = path.name
    return (
        TEMPORARY_MARK in name
        or name.startswith((".restore-", ".salvage-", ".verify-", "qiju-read-"))
        or name.endswith((".tmp", ".qiju-old"))  # a journal is SQLite's, which deletes it at the next write
    )


class Calm(NamedTuple):
    """What an undisturbed run takes and leaves. `seconds` is its duration."""

    seconds: float
    before: dict[tuple[str, str], str]
    after: dict[tuple[str, str], str]
    events: int
    out: str


def undisturbed(template: Path, folder: Path, name: str) -> Calm:
    trial = Trial(template, folder)
    before = trial.records()
    one = scenario(name, folder)
    began = time.monotonic()
    process = trial.start(one)
    out = process.communicate(timeout=120)[0].decode("utf-8")
    assert process.returncode == 0, out
    target = {"export": folder / "out.jsonl"}.get(name)
    text = target.read_text(encoding="utf-8") if target else ""
    return Calm(time.monotonic() - began, before, trial.records(), trial.events(), text)


def check(name: str, trial: Trial, calm: Calm, code: int, printed: str) -> None:
    """Everything that must hold after a kill."""
    one = scenario(name, trial.folder)
    acknowledged = printed.strip() if name == "log" else ""
    spooled = {path.name for path in (trial.home / "spool").glob("*.json")}
    wrong = trial.verify()
    if name in ("redact", "delete"):  # one cut short says that it is pending; a partition then awaits its manifest
        wrong = [each for each in wrong if not each.startswith("archive ")]
    assert wrong == []
    found = trial.records()
    for key, digest in found.items():
        assert digest in (calm.before.get(key), calm.after.get(key)), ("half-done", key)
    if name not in ("redact", "delete"):
        assert all(key in found for key in calm.before), "a record is gone"
    if acknowledged:
        assert ("demo", acknowledged) in found, "an acknowledged record is gone"
    held = {title for _project, title in found if title.startswith("held ")}
    assert len(held) + len(spooled) >= HELD_BACK, "a record that waited in the spool is gone"
    if name == "import":
        assert sum(identity.startswith("imported") for _p, identity in found) in (0, 150)
    if name == "export":
        assert (trial.folder / "out.jsonl").read_text(encoding="utf-8") in ("the old export\n", calm.out)
    copy = trial.folder / "copy.db"
    if name == "backup" and copy.exists():
        assert trial.run("restore", str(copy), "--dry-run")[0] == 0, "half a backup bears the name of a whole one"
        assert copy.with_name("copy.db.json").exists()
    again, said = trial.run(*one.words, given=one.given)
    expected = (4,) if name == "backup" and copy.exists() and "exists already" in said else (0, 3)
    assert again in expected, said
    if list((trial.home / "spool").glob("*.json")):
        trial.maintain()  # drains the spool for the commands that do not
    assert trial.verify() == []
    final = trial.records()
    assert {key for key in calm.after if not key[1].startswith("held ")} <= set(final)
    assert {title for _p, title in final if title.startswith("held ")} == {f"held {n}" for n in range(HELD_BACK)}
    assert len([1 for _p, title in final if title.startswith("held ")]) == HELD_BACK
    assert list((trial.home / "spool").glob("*.json")) == []
    assert trial.events() == calm.events or name != "trajectory"
    if one.gone:
        assert trial.holding(one.gone) == []
    # An hour and more later, everything temporary goes, where Qiju looks again: in its home, and beside a target.
    past = time.time() - LATER
    left = trial.leftovers()
    for each in left:
        os.utime(trial.folder / each, (past, past))
    if left:
        trial.maintain()
    if left and name in ("export", "backup"):
        copy.unlink(missing_ok=True)
        assert trial.run(*one.words, given=one.given)[0] == 0
    assert trial.leftovers() == []


def kill_rounds(template: Path, folder: Path, name: str, rounds: int) -> tuple[int, int]:
    """Kill `rounds` runs of a command; how many really died, and how many ended before the signal came."""
    calm = undisturbed(template, folder, name)
    killed = ended = 0
    seed = int(os.environ.get("QIJU_TEST_SEED", random.randrange(1 << 30)))
    chance = random.Random(seed)
    most = rounds * 3
    while killed < rounds and killed + ended < most:
        trial = Trial(template, folder)
        process = trial.start(scenario(name, folder))
        # Starting takes a while in which nothing is written: most of the moments lie behind it.
        time.sleep(calm.seconds * (chance.uniform(0.35, 1.0) if chance.random() < 0.9 else chance.uniform(0.0, 0.35)))
        process.send_signal(signal.SIGKILL)
        out = process.communicate(timeout=60)[0].decode("utf-8", "replace")
        killed += process.returncode == -signal.SIGKILL
        ended += process.returncode != -signal.SIGKILL
        printed = out if process.returncode == 0 or out.endswith("\n") else ""
        try:
            check(name, trial, calm, process.returncode, printed.splitlines()[0] if printed else "")
        except AssertionError as error:
            raise AssertionError(f"{name}, round {killed + ended}, QIJU_TEST_SEED={seed}: {error}") from error
    return killed, ended


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_killed_run_loses_nothing_and_the_next_one_finishes(template: Path, tmp_path: Path, name: str) -> None:
    """Sixty kills over the nine commands."""
    killed, _ended = kill_rounds(template, tmp_path / "work", name, max(1, EVERYDAY // len(SCENARIOS)))
    assert killed > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_thousand_kills(template: Path, tmp_path: Path, name: str, record_property: Any) -> None:
    """A thousand of them. `-rA` prints how many were killed and how many had ended before."""
    wanted = int(os.environ.get("QIJU_TEST_KILLS", SLOW))
    killed, ended = kill_rounds(template, tmp_path / "work", name, -(-wanted // len(SCENARIOS)))
    record_property("kills", killed)
    print(f"{name}: {killed} killed, {ended} had ended")
    assert killed > 0
