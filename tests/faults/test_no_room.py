"""No room, no permission, no temporary folder, a size limit: refused in a sentence, and nothing is lost.

A disk of a few megabytes is mounted where that is allowed (root on Linux); everywhere else the limit on a file's size
stands for it. After every refusal the store verifies, every record it acknowledged is there, drafts and targets are as
they were, and the same command works once there is room again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from program import SESSION, Done, Place
from test_boundaries import SECRET, lines, record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits, mounts and permissions")

KIB = 1024
OLD = 12  # records in the store before anything is refused
BODY = "Stra\u00dfe " * 60
WRITING = ("log", "import", "export", "backup", "maintain", "redact", "delete")
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def fill(place: Place) -> None:
    """A store with records (some in the archive) and what the commands read."""
    source = place.folder / "own.jsonl"
    old = [record(n, "old", body_md=f"{SECRET} {n}" if n == 3 else f"{n} {BODY}") for n in range(1, OLD + 1)]
    source.write_text(lines(old), encoding="utf-8")
    place.ok("import", str(source))
    many = [record(n % 28 + 1, f"new{n // 28}", body_md=f"{n} {BODY * 4}") for n in range(280)]
    source.write_text(lines(many), encoding="utf-8")


def words(place: Place, name: str, target: Path) -> list[str]:
    return {
        "log": ["log", "--source", "agent", "--project", "demo", "--session-id", SESSION],
        "import": ["import", str(place.folder / "own.jsonl")],
        "export": ["export", "--format", "jsonl", "--output", str(target / "out.jsonl")],
        "backup": ["backup", str(target / "copy.db")],
        "maintain": ["maintain"],
        "redact": ["redact", "--value", SECRET, "--reason", "test"],
        "delete": ["delete", "old:5", "--yes", "--reason", "test"],
    }[name]


def limited(place: Place, *command: str, given: str = "", before: Sequence[str] = (), **options: Any) -> Done:
    """A run under a limit that `options` (of Popen) set, or the words `before` the command."""
    process = subprocess.Popen(
        [*before, *place.command(*command)], cwd=place.project, env=place.env, **PIPES, **options
    )
    out, err = process.communicate(given.encode("utf-8"), timeout=120)
    done = Done(process.returncode, out.decode("utf-8"), err.decode("utf-8"))
    assert "Traceback" not in done.out + done.err, done.err
    assert "a fault in Qiju itself" not in done.err, done.err
    return done


def ids(place: Place) -> set[str]:
    return {row["id"] for row in place.ok("search", "--scope", "all").json()}


def look_after(place: Place, name: str, done: Done, target: Path) -> None:
    """What must hold when there is room again; `done` is what the refused (or lucky) run said."""
    assert done.code in (0, 1, 4, 5), done
    assert done.code == 0 or done.err.startswith(f"qiju {name}: "), done
    verified = place.run("verify")
    assert verified.code == 0 or name in ("redact", "delete"), verified
    found = ids(place)
    old = {f"old:{n}" for n in range(1, OLD + 1)} - ({"old:5"} if name == "delete" else set())
    assert old <= found
    if name == "log":
        waiting = list((place.home / "spool").glob("*.json"))
        if done.code == 0:
            assert done.out.strip() in found
        else:
            assert done.out == ""
            # Kept, or not acknowledged in any way: never said to be kept and then gone.
            assert len(waiting) == ("kept in the spool" in done.err), done
    if name == "import":
        assert len(found - old) in ((280,) if done.code == 0 else (0,)), done
    if name in ("export", "backup") and done.code:
        assert sorted(path.name for path in target.iterdir() if path.suffix in (".jsonl", ".db")) == []
    given = json.dumps({"title": "new", "body_md": "b"}) if name == "log" else ""
    again = place.run(*words(place, name, target), given=given)
    refused = "exists already" in again.err and name == "backup" and done.code == 0
    assert again.code == 0 or refused or (again.code == 3 and name in ("redact", "delete") and done.code == 0), again
    assert place.run("verify").code == 0
    if name == "log":
        assert sum(row["title"] == "new" for row in place.ok("search", "--scope", "all").json()) in (1, 2)
        assert list((place.home / "spool").glob("*")) == []
    if name == "redact":
        assert not [path for path in place.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


# --- a limit on the size of a file -----------------------------------------------------------------------------------


def set_limit(size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [0, 40 * KIB, 400 * KIB])
@pytest.mark.parametrize("name", WRITING)
def test_a_limit_on_file_sizes_is_a_clean_refusal(place: Place, name: str, size: int) -> None:
    fill(place)
    target = place.folder / "target"
    target.mkdir()
    given = json.dumps({"title": "new", "body_md": "b"}) if name == "log" else ""
    done = limited(place, *words(place, name, target), given=given, preexec_fn=partial(set_limit, size))
    look_after(place, name, done, target)


@pytest.mark.parametrize("name", ["search", "show"])
def test_reading_needs_no_room_for_files(place: Place, name: str) -> None:
    fill(place)
    command = ["search", "--scope", "all", "--ids-only"] if name == "search" else ["show", "old:1"]
    done = limited(place, *command, preexec_fn=partial(set_limit, 64 * KIB))
    assert done.code == 0, done
    assert "old:1" in done.out


# --- a full disk -----------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of so many KiB; skipped where that is not allowed."""
    mounted: list[Path] = []

    def mount(size: int, *options: str) -> Path:
        if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
            pytest.skip("only root may mount a disk")
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}k,mode=700", "tmpfs", str(folder)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in reversed(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=True)


def leave(folder: Path, free: int) -> Path:
    """Fill the disk but for `free` bytes; returns the file to delete afterwards."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass
    os.truncate(filler, max(0, filler.stat().st_size // 4096 * 4096 - free))
    return filler


@pytest.mark.parametrize("free", [0, 12 * KIB, 64 * KIB, 300 * KIB])
@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_is_a_clean_refusal(place: Place, disk: Callable[[int], Path], name: str, free: int) -> None:
    folder = disk(12 * KIB)
    place.home = folder / "store"
    place.env["QIJU_HOME"] = str(place.home)
    fill(place)
    target = folder / "target"
    target.mkdir()
    filler = leave(folder, free)
    given = json.dumps({"title": "new", "body_md": "b"}) if name == "log" else ""
    done = limited(place, *words(place, name, target), given=given)
    filler.unlink()
    look_after(place, name, done, target)


@pytest.mark.parametrize("command", [("search", "--scope", "all", "--ids-only"), ("show", "old:1")])
def test_a_full_disk_can_be_read(place: Place, disk: Callable[[int], Path], command: tuple[str, ...]) -> None:
    folder = disk(12 * KIB)
    place.home = folder / "store"
    place.env["QIJU_HOME"] = str(place.home)
    fill(place)
    leave(folder, 0)
    done = limited(place, *command)
    assert done.code == 0, done
    assert "old:1" in done.out


def test_a_draft_stays_when_its_record_cannot_be_stored(place: Place, disk: Callable[[int], Path]) -> None:
    """`log --cleanup` on a full disk: not even the spool has room, so the draft must stay."""
    folder = disk(12 * KIB)
    place.home = folder / "store"
    place.env["QIJU_HOME"] = str(place.home)
    place.log(title="first")
    draft = Path(place.ok("temp-entry").out.strip())
    draft.write_text(json.dumps({"title": "new", "body_md": BODY}), encoding="utf-8")
    filler = leave(folder, 0)
    command = [*words(place, "log", folder), "--body", str(draft), "--cleanup"]
    done = limited(place, *command)
    assert done.code == 1, done
    assert draft.exists()
    filler.unlink()
    assert place.run(*command).code == 0
    assert not draft.exists()


# --- no permission ---------------------------------------------------------------------------------------------------


def bound() -> list[str]:
    """What stands before a command so that permissions bind it: root, too, without the right to pass over them."""
    if os.geteuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root is bound by no permission here")
    without = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={without}", f"--inh-caps={without}"]


def close_for_writing(place: Place) -> None:
    """Everything readable for all, nothing writable for anybody but root."""
    for path in (place.home, *place.home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.parametrize("name", WRITING)
def test_a_store_that_may_not_be_written_is_refused(place: Place, name: str) -> None:
    fill(place)
    target = place.folder / "target"
    target.mkdir(mode=0o777)
    target.chmod(0o777)
    before = {path.name: path.read_bytes() for path in place.home.iterdir() if path.is_file()}
    close_for_writing(place)
    given = json.dumps({"title": "new", "body_md": "b"}) if name == "log" else ""
    done = limited(place, *words(place, name, target), given=given, before=bound())
    if name in ("export", "backup"):  # these only read the store
        assert done.code == 0, done
    else:
        assert done.code == 1, done
        assert "cannot be" in done.err or "cannot write" in done.err or "cannot open" in done.err, done.err
        assert "hint: " in done.err
    place.home.chmod(0o700)
    assert {path.name: path.read_bytes() for path in place.home.iterdir() if path.is_file()} == before


def test_a_read_only_store_shows_what_is_still_in_its_log(place: Place) -> None:
    """The WAL of a writer that is under way is read, too."""
    from qiju.db import Database

    place.log(title="first")
    with Database.open(place.db):
        place.log(title="in the log")
        assert place.db.with_name("qiju.db-wal").stat().st_size > 0
        close_for_writing(place)
        done = limited(place, "search", "--scope", "all", before=bound())
        assert done.code == 0, done
        assert {row["title"] for row in done.json()} == {"first", "in the log"}
        place.home.chmod(0o700)
        place.db.chmod(0o600)


def test_a_folder_that_may_not_be_written_takes_no_export(place: Place) -> None:
    fill(place)
    target = place.folder / "closed"
    target.mkdir()
    target.chmod(0o555)
    close_for_writing(place)
    for name in ("export", "backup"):
        done = limited(place, *words(place, name, target), before=bound())
        assert done.code == 1, done
        assert "permission" in done.err.casefold(), done.err
    assert list(target.iterdir()) == []


def test_a_read_only_disk_is_read_and_refuses_to_be_written(place: Place, disk: Callable[[int], Path]) -> None:
    folder = disk(12 * KIB)
    place.home = folder / "store"
    place.env["QIJU_HOME"] = str(place.home)
    fill(place)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    for command in (("search", "--scope", "all", "--ids-only"), ("show", "old:1"), ("verify",), ("doctor",)):
        done = limited(place, *command)
        assert done.code == 0, done
    for name in WRITING:
        given = json.dumps({"title": "new", "body_md": "b"}) if name == "log" else ""
        done = limited(place, *words(place, name, folder), given=given)
        assert done.code == 1, (name, done)
        assert "hint: " in done.err, done.err


# --- no temporary folder ---------------------------------------------------------------------------------------------

WITHOUT = (
    "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: []; from qiju.cli import main; sys.exit(main())"
)


def without_temporary_folder(place: Place, *command: str, given: str = "", before: Sequence[str] = ()) -> Done:
    process = subprocess.Popen(
        [*before, sys.executable, "-c", WITHOUT, *command], cwd=place.project, env=place.env, **PIPES
    )
    out, err = process.communicate(given.encode("utf-8"), timeout=120)
    done = Done(process.returncode, out.decode("utf-8"), err.decode("utf-8"))
    assert "Traceback" not in done.err, done.err
    return done


def test_without_a_temporary_folder_everything_but_a_private_copy_works(place: Place) -> None:
    fill(place)
    target = place.folder / "target"
    target.mkdir()
    for name in WRITING:
        given = json.dumps({"title": "new", "body_md": "b"}) if name == "log" else ""
        done = without_temporary_folder(place, *words(place, name, target), given=given)
        assert done.code == 0, (name, done)
    for command in (("search", "--scope", "all"), ("show", "old:1"), ("export",), ("verify",)):
        assert without_temporary_folder(place, *command).code == 0
    close_for_writing(place)
    done = without_temporary_folder(place, "search", "--scope", "all", before=bound())
    assert done.code == 1
    assert "TMPDIR" in done.err
