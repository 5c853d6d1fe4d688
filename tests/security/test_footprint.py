"""Where Qiju writes: its home, the project's `.qiju`, declared skill folders, and targets a call names. Nothing else.

Every command runs in a scratch HOME, working folder and TMPDIR whose listings are compared before and after, under a
umask that would leave everything open and one that would leave nothing.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from program import SESSION, Place

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permission bits")

SECRET = "canary" + "word8812y"
LINE = (
    '{"id": "in:1", "title": "t", "project": "demo", "source": "agent", "ts": "2020-01-01T00:00:00Z", "body_md": "b"}\n'
)
CLAUDE = '{"type": "user", "uuid": "u", "sessionId": "s", "timestamp": "2026-03-01T00:00:00Z", '
CLAUDE += '"message": {"role": "user", "content": "text"}}\n'

INSTALLED = {"store", "proj/.qiju", "proj/.claude", "proj/.git/info", "user/.claude"}

# Commands in the order of a life, with the top folders below the scratch folder in which each may write.
LIFE: list[tuple[list[str], set[str]]] = [
    (["path"], set()),
    (["search", "--scope", "all"], set()),
    (["doctor"], set()),
    (["projects"], set()),
    (["stats"], set()),
    (["verify"], set()),
    (["temp-entry"], {"proj/.qiju"}),
    (["log", "--source", "agent", "--project", "demo", "--session-id", SESSION], {"store"}),
    (["import", "../in/in.jsonl"], {"store"}),
    (["search", "--scope", "all", "--query", "b", "--page", "--limit", "1"], set()),
    (["search", "--scope", "all", "--query", "b", "--snippet"], set()),
    (["show", "in:1"], set()),
    (["export"], set()),
    (["export", "--format", "jsonl", "--output", "../target/o.jsonl"], {"store", "target"}),
    (["export", "--format", "parquet", "--output", "../target/o.parquet"], {"store", "target"}),
    (["export", "--format", "parquet", "--output", "../target/folder"], {"store", "target"}),
    (["export", "--format", "sqlite", "--output", "../target/o.db"], {"store", "target"}),
    (["export", "--format", "markdown", "--output", "../target/o.md", "--receipt", "../target/r"], {"store", "target"}),
    (["maintain", "--dry-run"], set()),
    (["maintain"], {"store"}),
    (["maintain", "--compact"], {"store"}),
    (["backup"], {"store"}),
    (["backup", "../target/copy.db", "--with-key"], {"target"}),
    (["backup", "--list"], set()),
    (["restore", "../target/copy.db", "--dry-run"], {"store"}),
    (["restore", "../target/copy.db"], {"store"}),
    (["trajectory", "import", "--host", "claude", "../in/session.jsonl"], {"store"}),
    (["trajectory", "sessions"], set()),
    (["trajectory", "page"], set()),
    (["trajectory", "export", "--output", "../target/t.jsonl"], {"store", "target"}),
    (["redact", "--value", SECRET, "--reason", "r", "--dry-run"], {"store"}),
    (["redact", "--value", SECRET, "--reason", "r"], {"store", "proj/.qiju"}),
    (["redact", "--rescan"], {"store", "proj/.qiju"}),
    (["delete", "in:1", "--yes", "--reason", "r"], {"store"}),
    (["verify"], set()),
    (["doctor"], set()),
    (["init", "--host", "claude", "--dry-run"], set()),
    (["init", "--host", "claude"], INSTALLED),
    (["update", "--no-scan-projects"], INSTALLED),
    (["uninstall", "--yes", "--no-scan-projects"], INSTALLED),
]  # fmt: skip
SQLITES = ("qiju.db-wal", "qiju.db-shm")  # beside the database while somebody reads it


def listing(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Every path below `folder` with kind and mode, size, and content."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
        found[path.relative_to(folder).as_posix()] = (facts.st_mode, facts.st_size, facts.st_uid, content)
    return found


def scratch(place: Place) -> None:
    (place.folder / "tmp").mkdir()
    (place.folder / "target").mkdir()
    (place.folder / "in").mkdir()
    (place.folder / "in" / "in.jsonl").write_text(LINE + LINE.replace("in:1", "in:2").replace('"b"', f'"{SECRET}"'))
    (place.folder / "in" / "session.jsonl").write_text(CLAUDE)
    place.env |= {"TMPDIR": str(place.folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        place.env[name] = str(place.folder / "user" / name.lower())


def run(place: Place, words: list[str], mask: int) -> int:
    given = json.dumps({"title": "t", "body_md": f"b {SECRET}"}).encode() if words[0] == "log" else b""
    limits = {} if sys.platform == "win32" else {"preexec_fn": partial(os.umask, mask)}
    done = subprocess.run(
        place.command(*words), cwd=place.project, env=place.env, input=given, capture_output=True, check=False, **limits
    )  # type: ignore[call-overload]  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 3), (words, done)
    return int(done.returncode)


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_every_command_writes_only_where_it_may(place: Place, mask: int) -> None:
    """The whole life of a store; what a command may not touch is byte for byte as before, modes included."""
    scratch(place)
    for words, allowed in LIFE:
        before = listing(place.folder)
        run(place, words, mask)
        after = listing(place.folder)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        changed -= {f"store/{name}" for name in SQLITES}
        wrong = {
            name for name in changed
            if not any(name == top or name.startswith(f"{top}/") or top.startswith(f"{name}/") for top in allowed)
        }  # fmt: skip
        assert wrong == set(), (words, sorted(wrong))
        assert not any((place.folder / "tmp").iterdir()), words
        if sys.platform != "win32":
            hold_private(place, words)


def hold_private(place: Place, words: list[str]) -> None:
    """Everything of the store's, drafts, and what was handed out is for the owner alone, whatever the umask."""
    folders = [place.home, place.project / ".qiju" / "tmp", place.folder / "target"]
    for folder in folders:
        for path in folder.rglob("*") if folder.exists() else ():
            mode = stat.S_IMODE(path.lstat().st_mode)
            wanted = 0o700 if path.is_dir() else 0o600
            assert mode == wanted, (words, str(path), oct(mode))
    if place.home.exists():
        assert stat.S_IMODE(place.home.stat().st_mode) == 0o700


@posix_only
@pytest.mark.parametrize("mask", [0o277, 0o777])
def test_a_strict_umask_does_not_lock_the_owner_out(place: Place, mask: int) -> None:
    scratch(place)
    for words in (
        ["temp-entry"],
        ["log", "--source", "agent", "--project", "demo"],
        ["import", "../in/in.jsonl"],
        ["maintain"],
        ["backup"],
        ["export", "--format", "jsonl", "--output", "../target/o.jsonl"],
        ["export", "--format", "parquet", "--output", "../target/folder"],
    ):
        run(place, words, mask)
        hold_private_but_for_parents(place)


def hold_private_but_for_parents(place: Place) -> None:
    for folder in (place.home, place.project / ".qiju" / "tmp", place.folder / "target"):
        for path in folder.rglob("*") if folder.exists() else ():
            assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600), str(path)


def test_reading_makes_no_store(place: Place) -> None:
    scratch(place)
    before = listing(place.folder)
    for words in (
        ["search"],
        ["show", "x:1"],
        ["projects"],
        ["stats"],
        ["verify"],
        ["export"],
        ["path"],
        ["doctor"],
        [],
    ):
        done = place.run(*words)
        assert done.code in (0, 3), done
    assert listing(place.folder) == before
