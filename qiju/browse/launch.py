"""Start the child that serves the store, wait for it, and end it in every way a person or a system may ask for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qiju.errors import QijuError, Refused, UsageError

USUAL_PORT = 8001  # Datasette's own
INSTALL = "pip install 'qiju[browse]' (or: uv tool install 'qiju[browse]', pipx inject qiju 'datasette<1')"
_START = (
    "import sys; sys.path.append(sys.argv[1]); from pathlib import Path; from qiju.browse.serve import main; "
    "sys.exit(main(Path(sys.argv[2]), int(sys.argv[3])))"
)
_PULSE = 0.5  # seconds
_PATIENCE = 10.0  # seconds the child has to end by itself


def check_installed() -> None:
    """Raises `QijuError` with the install command when Datasette is missing."""
    if find_spec("datasette") is None:
        raise QijuError("Datasette, which browse serves the store with, is not installed", hint=INSTALL)


class Server:
    """The child. `port` is the one it listens on. Use it as a context manager, which ends it."""

    def __init__(self, database: Path, port: int | None) -> None:
        """Start serving `database`; `port` None is the usual one, or a free one when that is taken; 0 is a free one.

        Raises `UsageError` for a port that cannot be, `Refused` when it is taken, `QijuError` when the child fails.
        """
        if port is not None and not 0 <= port <= 65535:
            raise UsageError(f"--port {port} is no port", hint="1 to 65535, or 0 for a free one")
        self.port = 0
        wanted = [USUAL_PORT, 0] if port is None else [port]
        for number in wanted:
            answer = self._start(database, number)
            if "port" in answer:
                self.port = int(answer["port"])
                return
            self.close()
        if answer.get("error") == "port":
            raise Refused(
                f"port {port} cannot be had: {answer.get('why', 'it is taken')}",
                hint="another --port, or --port 0 for a free one",
            )
        raise QijuError(
            f"Datasette did not start{': ' + str(answer['why']) if 'why' in answer else ''}",
            hint="QIJU_DEBUG=1 shows what it said",
        )

    def _start(self, database: Path, port: int) -> dict[str, Any]:
        # -P: nothing of the folder that browse is called in is ever imported.
        # A session of its own: Ctrl-C reaches the parent alone, which then ends the child in order.
        package = str(Path(__file__).parents[2])
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, package, str(database), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("QIJU_DEBUG") else subprocess.DEVNULL,
            **_apart(),
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        answer = json.loads(line) if line else {}
        return answer if isinstance(answer, dict) else {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def wait(self) -> str:
        """Until the child ends by itself; what it said last ('' when nothing)."""
        assert self._child.stdout is not None
        while True:
            try:
                self._child.wait(_PULSE)  # in short waits: on Windows, Ctrl-C is seen only between them
                break
            except subprocess.TimeoutExpired:
                continue
        line = self._child.stdout.readline()
        said = json.loads(line) if line else {}
        return str(said.get("why", ""))

    def close(self) -> None:
        """End the child: its input closes, it finishes what it is sending, and goes. Safe to call twice."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.close()
        try:
            child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _apart() -> dict[str, Any]:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
