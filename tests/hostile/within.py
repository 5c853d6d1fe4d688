"""The program inside this process, so that thousands of hostile inputs take seconds, and what every answer must be.

`Within` calls the same entry as the installed program, with streams, environment and folder of its own. Every call is
held to the contract: a known exit code, no traceback, no fault reported as Qiju's own, and nothing on standard error
that could steer a terminal.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from program import Done, Place

from qiju.cli.frame import run

CODES = {0, 1, 2, 3, 4, 5}
_CONTROLS = (
    *range(9),
    *range(11, 32),
    *range(127, 160),
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
STEERING = frozenset(map(chr, _CONTROLS))


class Within:
    """Runs commands of the program in a `Place`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.calls = 0

    def run(self, *words: str, given: str | bytes = b"", env: Mapping[str, str] | None = None) -> Done:
        """One call, held to the contract; a fault is run again to show where it happens."""
        done = self._call(words, given, env)
        if "a fault in Qiju itself" in done.err or "Traceback (most recent call last)" in done.out + done.err:
            self._call(words, given, {**(env or {}), "QIJU_DEBUG": "1"})
            raise AssertionError(done.err)
        assert done.code in CODES, done
        assert not STEERING & set(done.err), repr(done.err)
        return done

    def ok(self, *words: str, given: str | bytes = b"", env: Mapping[str, str] | None = None) -> Done:
        """One call that must succeed."""
        done = self.run(*words, given=given, env=env)
        assert done.code == 0, done
        return done

    def _call(self, words: tuple[str, ...], given: str | bytes, env: Mapping[str, str] | None) -> Done:
        self.calls += 1
        data = given.encode("utf-8") if isinstance(given, str) else given
        with _streams(data) as (out, err), _surroundings({**self.place.env, **(env or {})}, self.place.project):
            try:
                code = run(list(words))
            except SystemExit as stop:  # Typer's own way out of --help
                code = stop.code if isinstance(stop.code, int) else 1
            sys.stdout.flush()
            sys.stderr.flush()
            return Done(code, out.getvalue().decode("utf-8"), err.getvalue().decode("utf-8"))


@contextlib.contextmanager
def _streams(data: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    kept = sys.stdout, sys.stderr  # wrappers close their buffer when they go, and the answer is read afterwards
    try:
        yield out, err
    finally:
        for stream in kept:
            with contextlib.suppress(ValueError):
                stream.detach()
        sys.stdin, sys.stdout, sys.stderr = before


@contextlib.contextmanager
def _surroundings(env: Mapping[str, str], folder: Path) -> Iterator[None]:
    before, at = dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(at)
        os.environ.clear()
        os.environ.update(before)


def everything_below(folder: Path) -> set[str]:
    """Every path below a folder, links not followed."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
