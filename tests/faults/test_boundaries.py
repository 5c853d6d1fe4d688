"""Every write boundary of every writing command, on a disk that breaks there.

After each: the store opens and verifies, every acknowledged record is there, nothing half-done is visible, and the same
command run again on a healthy disk ends where an undisturbed run ends. The everyday run takes boundaries at even
distances; `-m slow` takes every one of them with every fault.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from broken_disk import FAULTS, FILE_FAULTS, KILLS, STOPPED
from program import Place

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the driver forks")

# Boundaries a command and fault in the everyday run.
EVERYDAY = {"error": 8, "full": 4, "torn": 8, "lost": 4, "file-error": 4, "file-full": 3, "file-stop": 6}
SECRET = "canary" + "word9481x"


class Scenario(NamedTuple):
    """A command: its words, what it reads from standard input, and the codes a run may end with on a broken disk."""

    words: list[str]
    given: dict[str, Any] | None = None
    gone: str = ""  # text that a finished run leaves nowhere


SCENARIOS = {
    "log": Scenario(
        ["log", "--source", "agent", "--agent", "a", "--project", "demo"],
        {"id": "new:1", "ts": "2026-03-01T00:00:00Z", "title": "new", "body_md": "acknowledged"},
    ),
    "import": Scenario(["import", "{folder}/import.jsonl"]),
    "maintain": Scenario(["maintain"]),
    "redact": Scenario(["redact", "--value", SECRET, "--reason", "test"], gone=SECRET),
    "delete": Scenario(["delete", "old:3", "--reason", "test", "--yes"], gone=SECRET),
    "migrate": Scenario(["migrate", "--from-qiju", "{folder}/predecessor"]),
    "export": Scenario(["export", "--format", "jsonl", "--output", "{folder}/out.jsonl"]),
    "backup": Scenario(["backup", "{folder}/copy.db"]),
    "trajectory": Scenario(["trajectory", "import", "--host", "claude", "{folder}/session.jsonl"]),
}


def record(number: int, session: str, **fields: Any) -> dict[str, Any]:
    base = {"schema_version": 2, "id": f"{session}:{number}", "ts": f"2024-01-{number:02}T00:00:00Z", "project": "demo"}
    base |= {"agent": "a", "source": "manual", "title": f"{session} {number}", "tags": ["x"], "search_terms": []}
    return {**base, "next_steps": [], "redactions": [], "body_md": f"body {number} Stra\u00dfe", **fields}


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store (nine records, six in the archive; a backup), and the files that commands read."""
    place = Place(tmp_path_factory.mktemp("template"))
    own = place.folder / "own.jsonl"
    own.write_text(
        lines([record(n, "old", body_md=f"{SECRET} {n}" if n == 3 else f"body {n} Stra\u00dfe") for n in range(1, 7)]),
        encoding="utf-8",
    )
    place.ok("import", str(own))
    place.ok("maintain")  # the month lies in the archive, as Parquet
    place.ok("backup")
    own.write_text(lines([record(n, "due", ts=f"2024-02-{n:02}T00:00:00Z") for n in range(1, 4)]), encoding="utf-8")
    place.ok("import", str(own))
    own.unlink()
    (place.folder / "import.jsonl").write_text(lines([record(n, "imported") for n in range(1, 9)]), encoding="utf-8")
    (place.folder / "out.jsonl").write_text("the old export\n", encoding="utf-8")
    long = place.folder / "predecessor" / "long"
    long.mkdir(parents=True)
    (long / "demo.jsonl").write_text(lines([record(n, "taken") for n in range(1, 5)]), encoding="utf-8")
    kinds = ["user", "assistant"] * 3
    said = [
        {
            "type": kind,
            "uuid": f"u{n}",
            "parentUuid": f"u{n - 1}" if n else None,
            "sessionId": "sess",
            "timestamp": "2026-03-01T00:00:00Z",
            "message": {"role": kind, "content": f"text {n}"},
        }
        for n, kind in enumerate(kinds)
    ]
    (place.folder / "session.jsonl").write_text(lines(said), encoding="utf-8")
    (place.folder / "given.json").write_text(json.dumps(SCENARIOS["log"].given), encoding="utf-8")
    shutil.move(place.home, place.folder / "home")
    shutil.move(place.project, place.folder / "project")
    return place.folder


class Driver:
    """The process that forks for each run."""

    def __init__(self, template: Path, folder: Path) -> None:
        program = Path(__file__).with_name("broken_disk.py")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("QIJU", "CLAUDE", "CODEX"))}
        env |= {"HOME": str(template / "user"), "PYTHONWARNINGS": "ignore"}
        self.template = template
        self.process = subprocess.Popen(
            [sys.executable, str(program), str(template), str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True, encoding="utf-8",
        )  # fmt: skip

    def run(self, scenario: Scenario, fault: str, at: int) -> dict[str, Any]:
        job = {"words": scenario.words, "fault": fault, "at": at, "gone": scenario.gone}
        job["given"] = str(self.template / "given.json") if scenario.given else None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def driver(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    made = Driver(template, tmp_path_factory.mktemp("run") / "work")
    yield made
    assert made.process.stdin is not None
    assert made.process.stdout is not None
    made.process.stdin.close()
    made.process.wait(30)
    made.process.stdout.close()


def held(state: dict[str, Any], *, tiers: bool = False) -> list[list[str]]:
    return [row if tiers else [row[0], row[1], row[3]] for row in state["records"]]


def check(name: str, fault: str, at: int, answer: dict[str, Any], calm: dict[str, Any], before: dict[str, Any]) -> None:
    """What must hold after a run on a disk that broke at the `at`-th operation."""
    told = (name, fault, at, answer["code"], answer["out"][-600:])
    assert "Traceback" not in answer["out"], told
    assert answer["code"] in (0, 1, 4, 5, STOPPED), told
    if fault in KILLS:
        assert answer["code"] in (0, 4, STOPPED), told
    after, again = answer.get("after"), answer.get("again")
    assert after is not None, ("the store does not open", *told)
    assert again is not None, ("the store does not open after the second run", *told)
    # A partition cleaned by a redaction that says it is not complete does not match its manifest yet.
    wrong = [each for each in after["wrong"] if not (after["pending"] and each.startswith("archive "))]
    assert wrong == [], (told, wrong)
    old, new = held(before), held(calm["after"])
    found = held(after)
    # Nothing half-done: every record is as it was or as the whole run leaves it.
    assert [row for row in found if row not in old and row not in new] == [], told
    if name not in ("redact", "delete"):
        assert [row for row in old if row not in found] == [], told
    if name in ("import", "migrate"):
        assert len(found) in (len(old), len(new)) or name == "migrate", told
    if answer["code"] == 0:
        assert found == new, told
        assert after["events"] == calm["after"]["events"], told
        assert not answer.get("left"), told
    if name == "export":
        kept = [each for each in answer["files"] if ".qiju-tmp" in each]
        assert fault in KILLS or kept == [], told
    # The second run, on a healthy disk, ends where an undisturbed one ends.
    whole = name == "backup" and "copy.db" in answer["files_after"]
    assert answer["again_code"] in ((4,) if whole else (0, 3)), (
        *told,
        answer["again_code"],
        answer["again_out"][-600:],
    )
    assert again["wrong"] == [], (told, again["wrong"])
    assert again["pending"] == 0, told
    assert held(again, tiers=True) == held(calm["after"], tiers=True), told
    assert again["events"] == calm["after"]["events"], told
    assert again["spooled"] == [], told
    assert not answer.get("left"), told


def boundaries(count: int, most: int | None) -> list[int]:
    if most is None or count <= most:
        return list(range(1, count + 1))
    return sorted({1, count, *(1 + round(n * (count - 1) / (most - 1)) for n in range(most))})


def run_all(driver: Driver, name: str, faults: tuple[str, ...], most: int | None, *, in_turn: bool = False) -> int:
    """Run the boundaries (at most `most`) with each fault, or with `in_turn` each boundary with one of them."""
    scenario = SCENARIOS[name]
    calm = driver.run(scenario, "stop", 0)
    assert calm["code"] == 0, calm["out"]
    assert calm["after"]["wrong"] == []
    assert calm["count"] > 0
    assert calm["file_count"] > 0 or name in ("log", "import", "migrate", "trajectory")
    before = driver.run(Scenario(["path"]), "stop", 0)["after"]
    runs, wrong = 0, []
    for number, fault in enumerate(faults):
        for at in boundaries(calm["file_count" if fault in FILE_FAULTS else "count"], most):
            if in_turn and at % len(faults) != number:
                continue
            runs += 1
            try:
                check(name, fault, at, driver.run(scenario, fault, at), calm, before)
            except AssertionError as error:
                wrong.append(f"{fault} at {at}: {error}")
    assert not wrong, f"{name}: {len(wrong)} of {runs} runs\n" + "\n".join(wrong[:20])
    return runs


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_breaking_disk_harms_nothing(driver: Driver, name: str) -> None:
    """Boundaries at even distances, each with a fault; over the run all kinds of fault take their turn."""
    runs = 0
    for fault, most in EVERYDAY.items():
        runs += run_all(driver, name, (fault,), most)
    assert runs >= len(EVERYDAY)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_boundary_with_every_fault(driver: Driver, name: str, record_property: Any) -> None:
    """All of them. `pytest -m slow tests/faults -rA` prints how many runs that were."""
    runs = run_all(driver, name, (*FAULTS, *FILE_FAULTS), None)
    record_property("runs", runs)
    print(f"{name}: {runs} runs")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_boundary_with_the_faults_in_turn(driver: Driver, name: str, record_property: Any) -> None:
    """Every boundary once: a tenth of the runs of the full matrix."""
    runs = run_all(driver, name, FAULTS, None, in_turn=True) + run_all(driver, name, FILE_FAULTS, None, in_turn=True)
    record_property("runs", runs)
    print(f"{name}: {runs} runs")
