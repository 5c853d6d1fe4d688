"""A disk that breaks at a chosen moment, and the program run on it.

`Disk` is a SQLite VFS: it counts every write, sync, truncate and delete, and at the n-th one does what its `fault`
says. What was written since a file's last sync is remembered, so that losing power can be played: `lost` puts a random
part of it back as it was.

    error   that operation fails with an I/O error, the later ones work
    dead    it and everything after it fails
    full    no room: it and every later write fails
    short   half of the write arrives, then an I/O error
    stop    the process ends before the operation
    torn    the process ends in the middle of the write
    lost    the process ends, and a random part of what was not synced is gone

A driver process imports the program once and forks for each run, so that thousands of runs are affordable.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import apsw

STOPPED = 137
FAULTS = ("error", "dead", "full", "short", "stop", "torn", "lost")


class Disk(apsw.VFS):
    """See the module. `at` counts from 1; 0 only counts."""

    def __init__(self, fault: str, at: int, seed: int) -> None:
        self.fault, self.at, self.count = fault, at, 0
        self.random = random.Random(seed)
        self.unsynced: dict[str, list[tuple[int, bytes, int]]] = {}
        self.base = next(name for name in apsw.vfs_names() if name in ("unix", "win32"))
        super().__init__("broken", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.strike(None)
        self.unsynced.pop(filename, None)
        super().xDelete(filename, syncdir)

    def excepthook(self, *_error: Any) -> bool:
        """What SQLite does not ask about (a delete that failed) is not printed either."""
        return False

    def strike(self, half: Any) -> None:
        """One operation: `half` does the first half of a write."""
        self.count += 1
        late = self.count > self.at and self.fault in ("dead", "full")
        if not self.at or (self.count != self.at and not late):
            return
        if self.fault == "full":
            if half is not None:
                raise apsw.FullError("no room")
            return
        if self.fault in ("short", "torn") and half is not None:
            half()
        if self.fault in ("error", "dead", "short"):
            raise apsw.IOError("broken")
        if self.fault == "lost":
            self.lose()
        os._exit(STOPPED)

    def lose(self) -> None:
        """Put a random part of what was never synced back as it was, newest first."""
        for path, writes in self.unsynced.items():
            if not os.path.exists(path):  # noqa: PTH110
                continue
            with open(path, "r+b") as file:
                for offset, before, size in reversed(writes):
                    if self.random.random() < 0.7:
                        file.seek(offset)
                        file.write(before)
                        if self.random.random() < 0.5:
                            file.truncate(max(size, offset + len(before)))


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.path = "" if name is None else name if isinstance(name, str) else name.filename()
        super().__init__(disk.base, name, flags)

    def excepthook(self, *_error: Any) -> bool:
        return False

    def xWrite(self, data: bytes, offset: int) -> None:
        write = super().xWrite
        self.disk.strike(lambda: write(bytes(data)[: len(data) // 2], offset))
        size = self.xFileSize()
        old = b""
        if offset < size:
            old = self.xRead(min(len(data), size - offset), offset)
        self.disk.unsynced.setdefault(self.path, []).append((offset, old, size))
        write(data, offset)

    def xSync(self, flags: int) -> None:
        self.disk.strike(None)
        super().xSync(flags)
        self.disk.unsynced.pop(self.path, None)

    def xTruncate(self, newsize: int) -> None:
        self.disk.strike(None)
        super().xTruncate(newsize)


def state(home: Path) -> dict[str, Any]:
    """What a store holds and what its own verification says, read on a healthy disk."""
    from qiju.keeping.verify import verify
    from qiju.store import Store

    with Store.open(home) as store:
        report = verify(store)
        records = store.db.connection.execute("SELECT id, project, tier, digest FROM record ORDER BY id, project")
        found = [list(row) for row in records]
        events = store.db.connection.execute(
            "SELECT session_id, event_id, digest FROM trajectory_event WHERE record_seq IS NULL ORDER BY 1, 2"
        ).fetchall()
    spooled = sorted(path.name for path in (home / "spool").glob("*.json"))
    wrong = [" ".join(one) for one in report.faults]
    return {"records": found, "events": [list(row) for row in events], "wrong": wrong, "spooled": spooled}


def _child(job: dict[str, Any], folder: Path) -> None:
    """Run the program's words on the broken disk; never returns."""
    out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    given = os.open(job.get("given") or os.devnull, os.O_RDONLY)
    os.dup2(given, 0)
    os.environ["QIJU_HOME"] = str(folder / "home")
    os.chdir(folder / "project")
    disk = Disk(job["fault"], job["at"], job["at"])
    from qiju.cli.frame import run

    code = run([word.replace("{folder}", str(folder)) for word in job["words"]])
    sys.stdout.flush()
    (folder / "count").write_text(str(disk.count), encoding="ascii")
    os._exit(code)


def _forked(work: Any) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - a forked child reports and ends, whatever it was
            traceback.print_exc()
        os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_job(job: dict[str, Any], template: Path, folder: Path) -> dict[str, Any]:
    """One run: a copy of the template, the fault, what it left, and what a second, undisturbed run makes of it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder)
    code = _forked(lambda: _child(job, folder))
    answer: dict[str, Any] = {"code": code, "out": (folder / "out").read_text(encoding="utf-8")}
    count = folder / "count"
    answer["count"] = int(count.read_text(encoding="ascii")) if count.exists() else None

    def look(name: str) -> None:
        (folder / name).write_text(json.dumps(state(folder / "home")), encoding="utf-8")
        os._exit(0)

    for name in ("after", "again"):
        if name == "again":
            answer["again_code"] = _forked(partial(_child, {**job, "fault": "stop", "at": 0}, folder))
            answer["again_out"] = (folder / "out").read_text(encoding="utf-8")
        if _forked(partial(look, name)) == 0:
            answer[name] = json.loads((folder / name).read_text(encoding="utf-8"))
    answer["files"] = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    if job.get("gone"):
        answer["left"] = [name for name in answer["files"] if job["gone"].encode() in (folder / name).read_bytes()]
    return answer


def main() -> None:
    """Jobs as JSON lines on standard input, answers as JSON lines on standard output."""
    import qiju.cli.app
    import qiju.cli.log
    import qiju.keeping.verify  # noqa: F401 - imported once, before the forks

    template, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for line in sys.stdin:
        print(json.dumps(run_job(json.loads(line), template, folder)), flush=True)


if __name__ == "__main__":
    main()
