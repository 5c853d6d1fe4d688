"""Start-up: what one call of a hot command costs as a whole process, against a bare interpreter.

    python scripts/bench/startup.py                          medians of nine, commands in turn
    python scripts/bench/startup.py --predecessor PROGRAM    also against the predecessor's search

The store holds 1,000 records. Ratios of CPU time (user and system) of processes run in turn; peak memory of the call.
Bytecode is compiled first, as an installation does. Exits 1 when a promise is not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

RECORDS = 1_000
BODY = "The worker renews its lease with full jitter after a failover. " * 20
MOST_MEMORY = 30.0  # MiB
MIB = 1024 * 1024 if sys.platform == "darwin" else 1024  # what ru_maxrss counts in


class Cost(NamedTuple):
    """CPU seconds and peak MiB of one process."""

    cpu: float
    peak: float


class Call(NamedTuple):
    """A command of a figure, and how many times a bare start it may cost."""

    name: str
    words: list[str]
    most: float


def cost(words: list[str], env: dict[str, str], cwd: Path) -> Cost:
    """Run one process to its end; its output is thrown away."""
    process = subprocess.Popen(words, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(words)} failed with exit code {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / MIB)


def prepared(folder: Path, env: dict[str, str]) -> str:
    """A store of `RECORDS` records; the id of one."""
    lines = [
        json.dumps(
            {
                "schema_version": 2,
                "id": f"s{number % 50}:{number + 1}",
                "ts": f"2026-01-{1 + number % 28:02}T00:{number // 60 % 60:02}:{number % 60:02}Z",
                "project": "demo",
                "agent": "a",
                "source": "agent",
                "title": f"record {number}",
                "tags": ["x"],
                "search_terms": [],
                "next_steps": [],
                "redactions": [],
                "body_md": BODY,
            }
        )
        for number in range(RECORDS)
    ]
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "qiju", "import", str(folder / "records.jsonl")],
        env=env,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    predecessor = folder / "predecessor" / "long"
    predecessor.mkdir(parents=True)
    (predecessor / "demo.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "new.json").write_text(json.dumps({"title": "timed", "body_md": BODY}), encoding="utf-8")
    return "s1:2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--predecessor", help="the predecessor's program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qiju-startup-") as name:
        folder = Path(name)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("QIJU", "PYTHONDONTWRITEBYTECODE"))}
        env |= {"QIJU_HOME": str(folder / "home"), "PYTHONPYCACHEPREFIX": str(folder / "pyc")}
        identity = prepared(folder, env)
        qiju = [sys.executable, "-m", "qiju"]
        calls = [
            Call("search --limit 5", [*qiju, "search", "--scope", "all", "--query", "jitter", "--limit", "5"], 6.0),
            Call("show ID", [*qiju, "show", identity], 6.0),
            Call(
                "log", [*qiju, "log", "--source", "agent", "--project", "demo", "--body", str(folder / "new.json")], 8.0
            ),
        ]
        if options.predecessor:
            words = [options.predecessor, "search", "--scope", "all", "--query", "jitter", "--limit", "5"]
            calls.append(Call("predecessor: search --limit 5", words, float("inf")))
        bare = [sys.executable, "-c", "pass"]
        costs: dict[str, list[Cost]] = {call.name: [] for call in calls}
        bares: list[float] = []
        for turn in range(options.rounds + 1):
            started = cost(bare, env, folder).cpu
            for call in calls:
                own = {**env, "QIJU_HOME": str(folder / "predecessor")} if call.name.startswith("pre") else env
                used = cost(call.words, own, folder)
                if turn:  # the first round fills caches
                    costs[call.name].append(used)
            if turn:
                bares.append(started)
        kept = True
        base = statistics.median(bares)
        for call in calls:
            ratio = statistics.median(used.cpu for used in costs[call.name]) / base
            peak = statistics.median(used.peak for used in costs[call.name])
            good = ratio <= call.most and (peak < MOST_MEMORY or call.most == float("inf"))
            kept = kept and good
            bound = "" if call.most == float("inf") else f" (at most {call.most:g}; below {MOST_MEMORY:g} MiB)"
            print(f"{call.name:30} {ratio:5.2f} bare starts, peak {peak:4.1f} MiB{bound}{'' if good else '  NOT KEPT'}")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
