"""A redaction killed at any moment leaves a mark; the same call finishes it and proves it."""

from __future__ import annotations

import json
import random
import subprocess
import time
from typing import Any

import pytest

from .conftest import VALUE, remains


def prepared(place: Any) -> None:
    """Some records with the value, one cold month, a backup, an export, a draft."""
    lines = [
        json.dumps(
            {"id": f"k:{n}", "source": "agent", "project": "demo", "ts": f"2024-01-02T10:{n % 60:02d}:00Z",
             "title": f"t{n}", "body_md": f"{VALUE} and word{n} " * 20, "extra": {VALUE: n}}
        )
        for n in range(1, 61)
    ]  # fmt: skip
    (place.folder / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    place.ok("import", str(place.folder / "x.jsonl"))
    (place.folder / "x.jsonl").unlink()
    place.ok("maintain")
    place.ok("backup")
    place.ok("export", "--format", "jsonl", "--view", "raw_private", "--output", str(place.home / "kept.jsonl"))
    staging = place.project / ".qiju" / "tmp"
    staging.mkdir(parents=True, exist_ok=True)
    (staging / f"qiju-entry.codex.{'0' * 32}.json").write_text(json.dumps({"title": VALUE}), encoding="utf-8")


def killed_after(place: Any, seconds: float) -> bool:
    """Start a redaction and kill it; whether it was still running."""
    running = place.start(
        "redact", "--value-stdin", "--reason", "t",
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    running.stdin.write(VALUE.encode())
    running.stdin.close()
    try:
        running.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
        return True
    return False


def finished(place: Any) -> None:
    """The same call again: exit 0, or 3 when the killed one had got to its very end; then nothing is left."""
    done = place.run("redact", "--value-stdin", "--reason", "t", given=VALUE)
    assert done.code in (0, 3), done
    assert remains(place.folder, VALUE) == []
    assert not any(entry.get("pending") for entry in place.ok("redact", "--log").json())
    place.ok("verify")


def duration(place: Any) -> float:
    """How long a whole redaction takes here and now, on a copy of the place."""
    import shutil

    copy = place.folder / "copy-of-store"
    shutil.copytree(place.home, copy)
    begin = time.monotonic()
    place.ok("redact", "--value-stdin", "--reason", "t", given=VALUE, env={"QIJU_HOME": str(copy)})
    elapsed = time.monotonic() - begin
    shutil.rmtree(copy)
    return elapsed


@pytest.mark.parametrize("part", [0.45, 0.8])
def test_a_rerun_finishes_a_killed_redaction(place: Any, part: float) -> None:
    prepared(place)
    killed_after(place, part * duration(place))
    finished(place)


@pytest.mark.slow
def test_killed_again_and_again_it_still_ends_clean(place: Any) -> None:
    """Each run may die where it likes; the last one that lives settles all of it."""
    prepared(place)
    whole = duration(place)
    chance = random.Random(7)
    for _ in range(4):
        killed_after(place, chance.uniform(0.25, 0.95) * whole)
    finished(place)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_fifty_random_kills(place: Any, seed: int) -> None:
    prepared(place)
    killed_after(place, random.Random(seed).uniform(0.1, 1.0) * duration(place))
    finished(place)
