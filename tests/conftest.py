"""A place of its own for each test, and the stock SQLite shell."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from program import Place

settings.register_profile(
    "qiju", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("qiju")

# A runner may start us with Ctrl-C ignored, which the processes under test would inherit: a handler undoes that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def shell() -> Callable[..., str]:
    """The stock `sqlite3` shell as a person has it; skipped where there is none."""
    import shutil

    program = shutil.which("sqlite3")
    if program is None:
        pytest.skip("no sqlite3 shell on this machine")

    def run(db: Path, sql: str, *, fails: bool = False) -> str:
        done = subprocess.run([program, str(db), sql], capture_output=True, text=True, encoding="utf-8", check=False)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    return run
