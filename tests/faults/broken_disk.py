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

What Python itself does to files (exports, Parquet, manifests, spool, markers) is watched through audit events, and
breaks at the n-th opening for writing, rename, link, removal or folder made:

    file-error  that operation fails, the later ones work
    file-full   no room: it and every later one that needs room fails
    file-stop   the process ends before the operation

A driver process imports the program once and forks for each run, so that thousands of runs are affordable.
"""

from __future__ import annotations

import errno
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
FILE_FAULTS = ("file-error", "file-full", "file-stop")
KILLS = ("stop", "torn", "lost", "file-stop")  # faults that end the process
_NEEDS_ROOM = ("open", "os.mkdir", "os.link", "os.symlink")
_WATCHED = (*_NEEDS_ROOM, "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.chmod")


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


class Files:
    """Python's own operations on files below `folder`; see the module."""

    def __init__(self, fault: str, at: int, folder: Path) -> None:
        self.fault, self.at, self.count, self.folder = fault, at, 0, str(folder)
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in _WATCHED:
            return
        if event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        path = os.fsdecode(args[0]) if isinstance(args[0], str | bytes | os.PathLike) else ""
        if path.startswith("/") and not path.startswith(self.folder):
            return
        self.count += 1
        if not self.at or self.count < self.at:
            return
        if self.fault == "file-full":
            if event in _NEEDS_ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        elif self.count == self.at:
            if self.fault == "file-stop":
                os._exit(STOPPED)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


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
        pending = store.db.value("SELECT count(*) FROM redaction_pending")
    spooled = sorted(path.name for path in (home / "spool").glob("*.json"))
    wrong = [" ".join(one) for one in report.faults]
    return {
        "records": found,
        "events": [list(row) for row in events],
        "wrong": wrong,
        "spooled": spooled,
        "pending": pending,
    }


def _child(job: dict[str, Any], folder: Path) -> None:
    """Run the program's words on the broken disk; never returns."""
    out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    given = os.open(job.get("given") or os.devnull, os.O_RDONLY)
    os.dup2(given, 0)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)  # the parent has read from its own
    os.environ["QIJU_HOME"] = str(folder / "home")
    os.chdir(folder / "project")
    on_files = job["fault"] in FILE_FAULTS
    disk = Disk(job["fault"], 0 if on_files else job["at"], job["at"])
    files = Files(job["fault"], 0, folder)
    from qiju.cli.frame import run

    files.count, files.at = 0, job["at"] if on_files else 0
    code = run([word.replace("{folder}", str(folder)) for word in job["words"]])
    sys.stdout.flush()
    files.at = 0
    (folder / "count").write_text(f"{disk.count} {files.count}", encoding="ascii")
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


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def run_job(job: dict[str, Any], template: Path, folder: Path) -> dict[str, Any]:
    """One run: a copy of the template, the fault, what it left, and what a second, undisturbed run makes of it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder)
    code = _forked(lambda: _child(job, folder))
    answer: dict[str, Any] = {"code": code, "out": (folder / "out").read_text(encoding="utf-8")}
    count = folder / "count"
    counts = count.read_text(encoding="ascii").split() if count.exists() else (0, 0)
    answer["count"], answer["file_count"] = (int(each) for each in counts)

    def look(name: str) -> None:
        (folder / name).write_text(json.dumps(state(folder / "home")), encoding="utf-8")
        os._exit(0)

    answer["files_after"] = _files(folder)
    for name in ("after", "again"):
        if name == "again":
            answer["again_code"] = _forked(partial(_child, {**job, "fault": "stop", "at": 0}, folder))
            answer["again_out"] = (folder / "out").read_text(encoding="utf-8")
        if _forked(partial(look, name)) == 0:
            answer[name] = json.loads((folder / name).read_text(encoding="utf-8"))
    answer["files"] = _files(folder)
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
