"""`qiju temp-entry`: a bare path on standard output, and nothing made where `log` would refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qiju.place import Marker, write_marker
from qiju.staging import is_managed


def qiju(cwd: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """One call of the program in `cwd`, with nothing of this process's own identity in its environment."""
    keep = {key: value for key, value in os.environ.items() if key in {"PATH", "SYSTEMROOT", "TEMP", "TMP"}}
    env = keep | {"HOME": str(cwd / "user"), "USERPROFILE": str(cwd / "user"), "QIJU_HOME": str(cwd / "store")} | more
    call = [sys.executable, "-c", "from qiju.cli import main; main()", *words]
    return subprocess.run(call, cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_marker(tmp_path.resolve(), Marker("demo", default_agent="kiro"))
    return tmp_path.resolve()


def test_it_prints_the_bare_path_of_a_new_empty_file(root: Path) -> None:
    done = qiju(root, "temp-entry", "--agent", "Claude Code", "--project", "Demo")
    assert (done.returncode, done.stderr) == (0, "")
    path = Path(done.stdout.removesuffix("\n"))
    assert path.parent == root / ".qiju" / "tmp"
    assert path.name.startswith("qiju-entry.claude-code.")
    assert is_managed(path.name)
    assert path.read_bytes() == b""
    assert not (root / "store").exists()


@pytest.mark.parametrize(
    ("more", "label"),
    [({}, "kiro"), ({"QIJU_AGENT": "cursor"}, "cursor"), ({"CLAUDECODE": "1"}, "claude")],
)
def test_without_a_flag_the_label_is_the_agent_that_log_would_store(
    root: Path, more: dict[str, str], label: str
) -> None:
    assert f"qiju-entry.{label}." in qiju(root, "temp-entry", **more).stdout


def test_below_the_root_the_draft_lies_at_the_root(root: Path) -> None:
    (root / "sub").mkdir()
    done = qiju(root, "temp-entry", QIJU_PROJECT_ROOT=str(root / "sub"))
    assert Path(done.stdout.strip()).parent == root / "sub" / ".qiju" / "tmp"
    done = subprocess.run(
        [sys.executable, "-c", "from qiju.cli import main; main()", "temp-entry"],
        cwd=root / "sub",
        env={**os.environ, "QIJU_HOME": str(root / "store"), "QIJU_PROJECT_ROOT": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).parent == root / ".qiju" / "tmp"


def test_a_project_against_the_marker_is_refused_before_anything_is_made(root: Path) -> None:
    done = qiju(root, "temp-entry", "--project", "other", "--json-errors")
    assert (done.returncode, done.stdout) == (4, "")
    assert json.loads(done.stderr)["error"]["kind"] == "marker_conflict"
    assert not (root / ".qiju" / "tmp").exists()


def test_a_bare_directory_can_hold_a_draft_for_a_named_project(tmp_path: Path) -> None:
    done = qiju(tmp_path, "temp-entry", "--project", "demo")
    assert done.returncode == 0
    assert Path(done.stdout.strip()).parent == tmp_path.resolve() / ".qiju" / "tmp"
    assert "qiju-entry.agent." in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_linked_folder_is_a_clear_refusal(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / ".qiju" / "tmp").symlink_to(tmp_path / "elsewhere")
    done = qiju(root, "temp-entry")
    assert (done.returncode, done.stdout) == (4, "")
    assert "symbolic link" in done.stderr
    assert "hint:" in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_damaged_marker_is_named(root: Path) -> None:
    (root / ".qiju" / "config.json").write_text("{", encoding="utf-8")
    done = qiju(root, "temp-entry")
    assert done.returncode == 1
    assert "config.json" in done.stderr
    assert "Traceback" not in done.stderr
