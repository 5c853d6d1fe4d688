"""The program as tests use it: a process in a HOME, a store and a project of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SESSION = "11111111-1111-4111-8111-111111111111"


class Done(NamedTuple):
    """What a run of the program left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def make_repository(folder: Path) -> None:
    """As much of a Git repository as Qiju looks for."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")


class Place:
    """HOME, QIJU_HOME and a project below one temporary folder; `run` calls the program there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = folder / "user"
        self.home = folder / "store"
        self.project = folder / "proj"
        self.user.mkdir(parents=True)
        make_repository(self.project)
        kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH")
        kept += tuple(name for name in os.environ if name.startswith("COVERAGE_"))  # so that processes are measured
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"HOME": str(self.user), "USERPROFILE": str(self.user), "QIJU_HOME": str(self.home), "TZ": "UTC"}

    @property
    def db(self) -> Path:
        return self.home / "qiju.db"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "qiju", *words]

    def start(self, *words: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[bytes]:
        """A run that goes on in the background."""
        options: dict[str, Any] = {"cwd": self.project, "stdin": subprocess.DEVNULL, **more}
        return subprocess.Popen(self.command(*words), env={**self.env, **(env or {})}, **options)

    def run(
        self,
        *words: str,
        given: str | bytes | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """One run to its end. A traceback in what it says fails the test whatever it is about."""
        data = given.encode("utf-8") if isinstance(given, str) else given
        done = subprocess.run(
            self.command(*words),
            input=b"" if data is None else data,
            capture_output=True,
            cwd=cwd or self.project,
            env={**self.env, **(env or {})},
            check=False,
            timeout=120,
        )
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        assert "Traceback (most recent call last)" not in out + err, err
        return Done(done.returncode, out, err)

    def ok(self, *words: str, **more: Any) -> Done:
        """A run that must succeed."""
        done = self.run(*words, **more)
        assert done.code == 0, done
        return done

    def log(self, *words: str, session: str = SESSION, project: str = "demo", **fields: Any) -> str:
        """Log a record with these fields; its id."""
        record = {"title": "t", "body_md": "b", **fields}
        options = ["--source", "manual", "--agent", "codex", "--session-id", session]
        options += ["--project", project] if project else []
        return self.ok("log", *options, *words, given=json.dumps(record)).out.strip()
