"""Start-up is part of the product: what the hot commands load is a list, and it is short."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from program import SESSION, Place

HEAVY = {
    "asyncio",
    "dataclasses",
    "datasette",
    "importlib.metadata",
    "inspect",
    "logging",
    "platformdirs",
    "pyarrow",
    "pydantic",
    "rich",
    "sqlite3",
    "sqlite_utils",
    "subprocess",
    "tempfile",
    "typer",
    "uuid",
}

WATCH = """
import json, sys
from qiju.cli.frame import run
code = run(sys.argv[1:])
print(json.dumps(sorted(name for name in sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["search", "--scope", "all", "--query", "lease", "--limit", "5"],
        ["search", "--scope", "all", "--page"],
        ["search", "--scope", "all", "--format", "table"],
        ["show", f"{SESSION}:1"],
        ["log", "--source", "agent", "--project", "demo", "--session-id", SESSION],
        ["temp-entry"],
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_hot_commands_load_nothing_heavy(place: Place, words: list[str]) -> None:
    place.log(title="lease")
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *words],
        input=json.dumps({"title": "u", "body_md": "b"}),
        capture_output=True,
        text=True,
        cwd=place.project,
        env=place.env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert loaded & HEAVY == set()
    assert "apsw" in loaded or words[0] == "temp-entry"  # the watch itself works
