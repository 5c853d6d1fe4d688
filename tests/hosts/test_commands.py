"""The four commands as a user calls them: words in; output, exit code and files out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from qiju import hosts, place, skills
from qiju.cli import frame
from qiju.db import Database
from qiju.install import purge
from tests.hosts.conftest import make_repository, tree


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands in one scratch home and project."""

    def __init__(self, top: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.user_home, self.home, self.root = top / "home", top / "store", top / "proj"
        self.user_home.mkdir()
        self.root.mkdir()
        make_repository(self.root)
        self._capsys, self._monkeypatch = capsys, monkeypatch
        known = {mark.partition("=")[0] for host in hosts.HOSTS for mark in host.marks}
        for name in [*known, *place.SESSION_VARIABLES, "QIJU_AGENT", "QIJU_PROJECT_ROOT", "QIJU_DEBUG"]:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(self.user_home))
        monkeypatch.setenv("QIJU_HOME", str(self.home))
        monkeypatch.chdir(self.root)

    def __call__(self, *words: str, stdin: str = "") -> Result:
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = frame.run(list(words))
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err
        return Result(code, captured.out, captured.err)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path.resolve(), capsys, monkeypatch)


def test_init_reports_each_host_in_the_predecessors_shape(shell: Shell) -> None:
    report = shell("init", "--host", "claude,agents", "--project", "demo", "--json").json
    assert [each["host"] for each in report] == ["claude", "agents"]
    first = report[0]
    keys = {"mode", "host", "project", "project_root", "qiju_home", "files", "messages"}
    assert keys <= set(first)
    assert (first["mode"], first["project"], first["project_root"]) == ("local", "demo", str(shell.root))
    assert str(shell.root / ".claude/skills/qiju-log/SKILL.md") in first["files"]
    assert place.is_uuid(first["uuid"])
    text = shell("init", "--host", "claude").out
    assert "Summary: 1 host wired (claude), 0 files written" in text


def test_init_without_a_host_says_how_it_chose(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    result = shell("init")
    assert result.code == 0
    assert "qiju init: host agents: no host was found" in result.err
    assert (shell.root / ".agents/skills/qiju-log/SKILL.md").exists()
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "host claude" in shell("init").err
    monkeypatch.setenv("CODEX_THREAD_ID", "x")
    result = shell("init")
    assert (result.code, "--host claude" in result.err) == (2, True)


def test_init_for_the_user_marks_no_project(shell: Shell) -> None:
    for words in (["--global"], ["--place", "global"]):
        result = shell("init", "--host", "claude", *words, "--json")
        assert (result.json[0]["mode"], result.json[0]["project"]) == ("global", None)
    assert (shell.user_home / ".claude/skills/qiju-log/SKILL.md").exists()
    assert not (shell.root / ".qiju").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["init", "--global", "--local"],
        ["init", "--place", "elsewhere"],
        ["init", "--host", "nope"],
        ["init", "--global", "--project", "x"],
        ["init", "--project", " "],
        ["update", "--host", "nope"],
        ["update", "--scan-projects", "--scan-root", "/does/not/exist"],
        ["update", "--scan-projects", "--scan-depth", "-1"],
        ["uninstall", "--user-only", "--project-only"],
        ["uninstall", "--user-only", "--project", "x"],
        ["uninstall", "--hosts", "claude,nope"],
    ],
    ids=" ".join,
)
def test_words_that_make_no_sense_change_nothing(shell: Shell, words: list[str]) -> None:
    before = tree(shell.root, shell.user_home)
    result = shell(*words)
    assert (result.code, result.out) == (2, "")
    assert f"qiju {words[0]}: " in result.err
    assert tree(shell.root, shell.user_home) == before


def test_a_dry_run_makes_no_store(shell: Shell) -> None:
    for words in (["init", "--host", "all", "--hooks"], ["update"], ["uninstall", "--purge-data"]):
        assert shell(*words, "--dry-run", "--json").json is not None
    assert not shell.home.exists()


def test_a_bare_folder_gets_an_identity(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare folder"
    bare.mkdir()
    monkeypatch.chdir(bare)
    assert shell("init", "--host", "claude").code == 0
    marker = place.read_marker(bare)
    assert marker is not None
    assert marker.uuid


def test_a_linked_worktree_gets_its_own_skills_and_its_main_repositorys_identity(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that runs in the worktree reads that folder alone; update and uninstall know both."""
    worktree = tmp_path.resolve() / "tree"
    own = shell.root / ".git" / "worktrees" / "tree"
    own.mkdir(parents=True)
    worktree.mkdir()
    (own / "HEAD").write_text("ref: refs/heads/x\n", encoding="utf-8")
    (own / "commondir").write_text("../..\n", encoding="utf-8")
    (worktree / ".git").write_text(f"gitdir: {own}\n", encoding="utf-8")
    before = tree(shell.root, worktree)
    monkeypatch.chdir(worktree)
    report = shell("init", "--host", "claude", "--hooks", "--json").json
    assert report[0]["project_root"] == str(shell.root)
    for folder in (shell.root, worktree):
        assert (folder / ".claude/skills/qiju-log/SKILL.md").exists()
        assert (folder / ".claude/settings.local.json").exists()
    assert not (worktree / ".qiju").exists()
    (worktree / ".claude/skills/qiju-log/SKILL.md").unlink()
    projects = shell("update", "--json").json["projects"]
    assert {(each["path"], each["status"]) for each in projects} == {
        (str(shell.root), "unchanged"),
        (str(worktree), "updated"),
    }
    shell("uninstall", "--no-scan-projects")
    assert tree(shell.root, worktree) == before


def test_errors_are_json_when_json_was_asked_for(shell: Shell) -> None:
    shell("init", "--host", "claude", "--project", "one")
    result = shell("init", "--host", "claude", "--project", "two", "--json")
    assert (result.code, result.out) == (4, "")
    assert json.loads(result.err)["error"]["kind"] == "marker_conflict"


def test_update_report_has_the_predecessors_keys(shell: Shell) -> None:
    assert "no project is registered" in shell("update").out
    shell("init", "--host", "claude")
    report = shell("update", "--json").json
    assert {"dry_run", "projects", "global_hosts", "warnings", "notes"} <= set(report)
    assert {"path", "slug", "hosts", "status"} <= set(report["projects"][0])
    assert "claude  →  unchanged" in shell("update").out


def test_update_with_a_scan_registers_what_it_finds(shell: Shell, tmp_path: Path) -> None:
    shell("init", "--host", "claude")
    for path in shell.home.iterdir():
        path.unlink()
    assert shell("update", "--json", "--scan-projects", "--scan-root", str(tmp_path)).json["projects"]
    assert [each["path"] for each in shell("update", "--json").json["projects"]] == [str(shell.root)]


def test_uninstall_takes_only_the_named_project(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By folder, by name, or by default every registered one: never another than asked for."""
    others = {}
    shell("init", "--host", "claude", "--project", "first")
    for name in ("second", "third"):
        others[name] = tmp_path.resolve() / name
        others[name].mkdir()
        monkeypatch.chdir(others[name])
        shell("init", "--host", "claude")
    monkeypatch.chdir(shell.root)
    shell("uninstall", "--project-root", str(others["second"]))
    assert not (others["second"] / ".claude").exists()
    assert (others["third"] / ".claude").exists()
    assert (shell.root / ".claude").exists()
    shell("uninstall", "--project", "third")
    assert not (others["third"] / ".claude").exists()
    assert shell("uninstall", "--project", "unknown").code == 3
    assert shell("uninstall", "--project", "third", "--project-root", str(shell.root)).code == 4
    assert (shell.root / ".claude").exists()
    monkeypatch.chdir(others["third"])
    shell("uninstall", "--no-scan-projects")
    assert (shell.root / ".claude").exists()
    shell("uninstall", "--project-only")
    assert not (shell.root / ".claude").exists()


def test_a_damaged_marker_is_named_and_does_not_stop_the_removal(shell: Shell) -> None:
    shell("init", "--host", "claude")
    (shell.root / ".qiju" / "config.json").write_text("{", encoding="utf-8")
    result = shell("uninstall", "--no-scan-projects")
    assert result.code == 0
    assert "config.json" in result.err
    assert not (shell.root / ".claude").exists()
    assert (shell.root / ".qiju" / "config.json").read_text(encoding="utf-8") == "{"


def test_uninstall_without_a_store_makes_none(shell: Shell) -> None:
    assert shell("uninstall", "--no-scan-projects", "--yes").code == 0
    assert not shell.home.exists()


# --- purge -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["", "y\n", "Yes please\n", "no\n"])
def test_a_purge_that_is_not_confirmed_touches_nothing(shell: Shell, answer: str) -> None:
    shell("init", "--host", "claude")
    before = tree(shell.root, shell.home)
    result = shell("uninstall", "--purge-data", "--no-scan-projects", stdin=answer)
    assert result.code == 4
    assert purge.QUESTION in result.err
    after = tree(shell.root, shell.home)
    assert {path: after[path] for path in before} == before


def test_yes_alone_purges_nothing(shell: Shell) -> None:
    shell("init", "--host", "claude")
    shell("uninstall", "--yes", "--no-scan-projects")
    assert (shell.home / "qiju.db").exists()


def test_a_purge_keeps_a_last_backup_and_every_file_it_does_not_know(shell: Shell) -> None:
    """The record is gone from the store and comes back from the backup."""
    shell("init", "--host", "claude", "--project", "demo")
    body = shell.root / "r.json"
    body.write_text(json.dumps({"title": "precious", "body_md": "b" * 50}), encoding="utf-8")
    assert shell("log", "--source", "agent", "--body", str(body)).code == 0
    (shell.home / "notes.txt").write_text("mine", encoding="utf-8")
    (shell.home / "archive").mkdir()
    result = shell("uninstall", "--purge-data", "--no-scan-projects", "--json", stdin="yes\n")
    assert result.code == 0
    assert "a last backup is kept" in result.err
    assert {path.name for path in shell.home.iterdir()} == {"notes.txt", "backups"}
    kept = Path(result.json["purged"]["backup"])
    with Database.open_for_reading(kept) as db:
        assert db.value("SELECT title FROM record") == "precious"


def test_a_backup_that_fails_keeps_the_records(shell: Shell) -> None:
    shell("init", "--host", "claude")
    (shell.home / "backups").write_text("in the way", encoding="utf-8")
    result = shell("uninstall", "--purge-data", "--yes", "--no-scan-projects")
    assert result.code != 0
    assert (shell.home / "qiju.db").exists()


def test_a_purge_without_backup_removes_the_old_ones_too(shell: Shell) -> None:
    shell("init", "--host", "claude")
    (shell.home / "backups").mkdir()
    (shell.home / "backups" / "old.db").write_bytes(b"x")
    report = shell("uninstall", "--purge-data", "--no-backup", "--yes", "--no-scan-projects", "--json").json
    assert report["purged"]["executed"] is True
    assert not list(shell.home.iterdir())


def test_a_purge_refuses_a_linked_archive_and_touches_nothing_behind_it(shell: Shell, tmp_path: Path) -> None:
    """Links inside the home are not followed, by a purge least of all."""
    shell("init", "--host", "claude")
    (tmp_path / "big disk").mkdir()
    (tmp_path / "big disk" / "other").write_bytes(b"x")
    (shell.home / "archive").symlink_to(tmp_path / "big disk")
    done = shell("uninstall", "--purge-data", "--no-backup", "--yes", "--no-scan-projects")
    assert done.code == 4
    assert "symbolic link" in done.err
    assert (shell.home / "qiju.db").exists()
    assert (tmp_path / "big disk" / "other").exists()


# --- hooks -----------------------------------------------------------------------------------------------------------


def call_hook(shell: Shell, *words: str, payload: Any = None, close: bool = True) -> Result:
    """A hook needs real file descriptors, so that this one is a process."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from qiju.cli import main; main()", "hook", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdin is not None
    process.stdin.write(b"" if payload is None else json.dumps(payload).encode())
    if close:
        out, err = process.communicate(timeout=60)
    else:
        process.stdin.flush()
        process.wait(timeout=60)
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
    return Result(process.returncode, out.decode(), err.decode())


def test_a_hook_reminds_the_agent_and_says_nothing_where_there_is_no_project(shell: Shell, tmp_path: Path) -> None:
    shell("init", "--host", "claude", "--project", "demo", "--hooks")
    settings = json.loads((shell.root / ".claude/settings.local.json").read_text(encoding="utf-8"))
    command = settings["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    assert command.split()[:2] == ["qiju", "hook"]
    result = call_hook(shell, *command.split()[2:], payload={"cwd": str(shell.root), "session_id": "s"})
    assert result.code == 0
    assert result.out.count("\n") == 1
    said = result.json["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    assert "'demo'" in said["additionalContext"]
    assert list(call_hook(shell, "sessionStart", "--host", "cursor").json) == ["additional_context"]
    bare = tmp_path / "bare"
    bare.mkdir()
    assert call_hook(shell, "session-start", payload={"cwd": str(bare)}).out == "{}\n"


@pytest.mark.parametrize(
    "words",
    [["nonsense"], [], ["session-start", "--host"], ["--unknown", "x"], ["session-start", "--home", ""], ["a", "b"]],
)
def test_a_hook_never_blocks_its_host(shell: Shell, words: list[str]) -> None:
    """Exit 2 would mean "block": a mistake in the words, too, is exit 0 and one line of JSON."""
    result = call_hook(shell, *words)
    assert result.code == 0
    assert isinstance(result.json, dict)
    assert result.out.count("\n") == 1


def test_a_hook_does_not_wait_for_an_input_that_nobody_closes(shell: Shell) -> None:
    assert call_hook(shell, "session-end", close=False).code == 0


def test_at_the_end_a_hook_speaks_only_of_sessions_without_a_record(shell: Shell) -> None:
    shell("init", "--host", "claude", "--project", "demo")
    body = shell.root / "r.json"
    body.write_text(json.dumps({"title": "t", "body_md": "b" * 50}), encoding="utf-8")
    payload = {"session_id": "11111111-1111-4111-8111-111111111111"}
    assert "no record" in call_hook(shell, "SessionEnd", payload=payload).json["systemMessage"]
    words = ["log", "--source", "agent", "--session-id", payload["session_id"], "--body", str(body)]
    assert shell(*words).code == 0
    assert call_hook(shell, "SessionEnd", payload=payload).out == "{}\n"
    start = call_hook(shell, "SessionStart", payload=payload).json["hookSpecificOutput"]["additionalContext"]
    assert "holds 1 session record of" in start


# --- the whole way ---------------------------------------------------------------------------------------------------


def test_the_installed_skills_are_the_packages(shell: Shell) -> None:
    shell("init", "--host", "all")
    for host in hosts.HOSTS:
        for name in skills.NAMES:
            assert (shell.root / host.project_skills / name / "SKILL.md").read_bytes() == skills.installed(name)


def test_the_reference_page_is_generated_from_the_table() -> None:
    script = Path(__file__).parents[2] / "scripts" / "docs_hosts.py"
    assert subprocess.run([sys.executable, str(script), "--check"], check=False).returncode == 0
