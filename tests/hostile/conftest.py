"""One store for many hostile inputs: what is written stays, so that later inputs meet what earlier ones left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program import Place
from within import Within


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def within(folder: Path) -> Within:
    """The program in a place of its own, with three records of project `demo`."""
    made = Within(Place(folder / "own"))
    for number in range(3):
        record = {"title": f"lease {number}", "body_md": "text", "tags": ["Auth"], "next_steps": ["go on"]}
        words = ["log", "--source", "manual", "--agent", "codex", "--project", "demo", "--session-id", "s1"]
        made.ok(*words, given=json.dumps(record))
    return made
