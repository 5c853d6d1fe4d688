"""Drafts: private, never reached through a link, and deleted only when they are surely Qiju's own."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qiju import staging
from qiju.errors import Refused, StorageFailed
from qiju.staging import allocate, is_managed, safe_cleanup, staging_dir, sweep

NAME = "qiju-entry.codex." + "0123456789abcdef" * 2 + ".json"
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="modes and links as POSIX has them")


@pytest.fixture(params=["by handle", "by path"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty root; everything must hold on systems that open folders by handle and on those that cannot."""
    if request.param == "by path":
        monkeypatch.setattr(staging, "_BY_FOLDER", False)
    elif not staging._BY_FOLDER:
        pytest.skip("this system cannot open folders by handle")
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def draft(root: Path, name: str = NAME, text: str = "{}", age: float = 0.0) -> Path:
    path = staging_dir(root) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    written = path.stat().st_mtime - age
    os.utime(path, (written, written))
    return path


# --- allocate --------------------------------------------------------------------------------------------------------


def test_a_draft_is_an_empty_file_of_its_own_with_a_managed_name(root: Path) -> None:
    paths = {allocate(root, "codex") for _ in range(20)}
    assert len(paths) == 20
    for path in paths:
        assert path.parent == root / ".qiju" / "tmp"
        assert path.read_bytes() == b""
        assert re.fullmatch(r"qiju-entry\.codex\.[0-9a-f]{32}\.json", path.name)
        assert is_managed(path.name)


@pytest.mark.parametrize(
    ("agent", "label"),
    [
        ("Claude Code", "claude-code"),
        ("-a", "a"),
        ("", "agent"),
        ("../../x", "x"),
        ("日本", "agent"),
        ("é" * 99, "agent"),
    ],
)
def test_the_label_is_the_agent_s_name_made_harmless(root: Path, agent: str, label: str) -> None:
    assert allocate(root, agent).name.startswith(f"qiju-entry.{label}.")


def test_a_long_agent_s_name_is_cut(root: Path) -> None:
    assert len(allocate(root, "x" * 500).name) < 100


@posix_only
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_file_and_folder_are_private_whatever_the_umask(root: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        path = allocate(root, "codex")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@posix_only
def test_a_folder_left_open_by_an_older_version_is_closed(root: Path) -> None:
    staging_dir(root).mkdir(parents=True)
    staging_dir(root).chmod(0o755)
    allocate(root, "codex")
    assert stat.S_IMODE(staging_dir(root).stat().st_mode) == 0o700


@posix_only
@pytest.mark.parametrize("linked", [".qiju", ".qiju/tmp"])
def test_a_linked_folder_is_refused_and_nothing_is_made_behind_it(root: Path, tmp_path: Path, linked: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (root / linked).parent.mkdir(exist_ok=True)
    (root / linked).symlink_to(target)
    with pytest.raises(Refused, match="symbolic link"):
        allocate(root, "codex")
    with pytest.raises(Refused, match="symbolic link"):
        sweep(staging_dir(root), 0.0)
    assert list(target.iterdir()) == []


def test_a_root_that_is_gone_is_not_made_again(root: Path) -> None:
    with pytest.raises(StorageFailed, match="not there"):
        allocate(root / "gone", "codex")
    assert not (root / "gone").exists()


def test_a_file_in_the_folder_s_place_is_a_clear_error(root: Path) -> None:
    (root / ".qiju").touch()
    with pytest.raises(StorageFailed) as caught:
        allocate(root, "codex")
    assert "--body -" in caught.value.hint


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on PATH")
def test_git_does_not_see_a_draft(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    allocate(root, "codex")
    shown = subprocess.run(["git", "status", "--porcelain"], cwd=root, check=True, capture_output=True, text=True)
    assert shown.stdout == ""


# --- clean up --------------------------------------------------------------------------------------------------------


def test_a_draft_is_deleted(root: Path) -> None:
    path = allocate(root, "codex")
    other = allocate(root, "codex")
    assert safe_cleanup(path, staging_dir(root)) is None
    assert not path.exists()
    assert other.exists()


@pytest.mark.parametrize("name", ["notes.json", NAME + ".bak", "qiju-entry.codex.json", "x" + NAME, NAME.upper()])
def test_a_file_with_another_name_is_kept(root: Path, name: str) -> None:
    path = draft(root, name)
    assert "name" in (safe_cleanup(path, staging_dir(root)) or "")
    assert path.exists()


def test_a_draft_elsewhere_is_kept(root: Path) -> None:
    allocate(root, "codex")
    above = root / NAME
    inner = staging_dir(root) / "inner"
    inner.mkdir()
    for path in (above, inner / NAME):
        path.touch()
        assert "does not lie in the staging folder" in (safe_cleanup(path, staging_dir(root)) or "")
        assert path.exists()


def test_another_root_s_draft_is_kept(root: Path, tmp_path: Path) -> None:
    allocate(root, "codex")
    other = draft(tmp_path / "other")
    assert "does not lie" in (safe_cleanup(other, staging_dir(root)) or "")
    assert other.exists()


@posix_only
def test_a_link_is_kept_and_so_is_what_it_points_to(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept", encoding="utf-8")
    allocate(root, "codex")
    link = staging_dir(root) / NAME
    link.symlink_to(target)
    assert safe_cleanup(link, staging_dir(root)) == "it is a symbolic link"
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "kept"


@posix_only
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_kept(root: Path, make: Callable[[Path], None]) -> None:
    allocate(root, "codex")
    path = staging_dir(root) / NAME
    make(path)
    assert safe_cleanup(path, staging_dir(root)) == "it is not a regular file"
    assert path.exists()


@posix_only
@pytest.mark.parametrize("linked", [".qiju", ".qiju/tmp"])
def test_nothing_is_deleted_through_a_linked_folder(root: Path, tmp_path: Path, linked: str) -> None:
    victim = draft(tmp_path / "victim")
    (root / linked).parent.mkdir(exist_ok=True)
    (root / linked).symlink_to(tmp_path / "victim" / linked)
    assert "symbolic link" in (safe_cleanup(staging_dir(root) / NAME, staging_dir(root)) or "")
    assert victim.exists()


@posix_only
def test_a_draft_named_through_a_link_to_its_project_is_deleted(root: Path, tmp_path: Path) -> None:
    path = allocate(root, "codex")
    (tmp_path / "alias").symlink_to(root)
    assert safe_cleanup(staging_dir(tmp_path / "alias") / path.name, staging_dir(root)) is None
    assert not path.exists()


@posix_only
def test_a_folder_swapped_for_a_link_after_it_was_opened_redirects_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not staging._BY_FOLDER:
        pytest.skip("this system cannot open folders by handle")
    victim = draft(tmp_path / "victim")
    mine = draft(tmp_path / "mine")
    folder = mine.parent
    check = staging._Folder.status

    def swap(opened: staging._Folder, name: str) -> os.stat_result:
        found = check(opened, name)
        folder.rename(folder.with_name("moved"))
        folder.symlink_to(victim.parent)
        return found

    monkeypatch.setattr(staging._Folder, "status", swap)
    assert safe_cleanup(mine, folder) is None
    assert victim.exists()
    assert not (folder.with_name("moved") / NAME).exists()


def test_what_is_gone_already_is_said(root: Path) -> None:
    path = allocate(root, "codex")
    path.unlink()
    assert safe_cleanup(path, staging_dir(root)) == "it is not there any more"
    assert "does not exist" in (safe_cleanup(path, staging_dir(root / "absent")) or "")


# --- sweep -----------------------------------------------------------------------------------------------------------


def test_only_old_drafts_are_swept(root: Path) -> None:
    old = draft(root, text="{...}", age=7200)
    young = draft(root, "qiju-entry.kiro." + "f" * 32 + ".json", age=10)
    foreign = draft(root, "notes.json", age=7200)
    (staging_dir(root) / ("qiju-entry.dir." + "a" * 32 + ".json")).mkdir()
    planned = sweep(staging_dir(root), 3600, dry_run=True)
    assert [item.path for item in planned] == [old]
    assert old.exists()
    assert planned[0].size == 5
    assert 7190 < planned[0].age < 7300
    assert [item.path for item in sweep(staging_dir(root), 3600)] == [old]
    assert not old.exists()
    assert young.exists()
    assert foreign.exists()
    assert sweep(staging_dir(root), 3600) == []


def test_a_draft_from_the_future_stays(root: Path) -> None:
    path = draft(root, age=-9999)
    assert sweep(staging_dir(root), 0) == []
    assert [item.path for item in sweep(staging_dir(root), 0, now=path.stat().st_mtime + 1)] == [path]


@posix_only
def test_a_link_is_never_swept(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.touch()
    staging_dir(root).mkdir(parents=True)
    (staging_dir(root) / NAME).symlink_to(target)
    assert sweep(staging_dir(root), -1e9) == []
    assert (staging_dir(root) / NAME).is_symlink()
    assert target.exists()


def test_a_folder_that_is_not_there_has_nothing_to_sweep(root: Path) -> None:
    assert sweep(staging_dir(root), 0) == []
    assert not (root / ".qiju").exists()


def test_a_draft_that_vanishes_meanwhile_does_not_stop_the_sweep(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = draft(root, "qiju-entry.a." + "0" * 32 + ".json", age=100)
    second = draft(root, "qiju-entry.b." + "0" * 32 + ".json", age=100)
    found = staging._Folder.names

    def names(opened: staging._Folder) -> list[str]:
        listed = found(opened)
        first.unlink()
        return listed

    monkeypatch.setattr(staging._Folder, "names", names)
    assert [item.path for item in sweep(staging_dir(root), 10)] == [second]
    assert not second.exists()


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [NAME, "qiju-entry.my.agent." + "0" * 32 + ".json"])
def test_names_of_this_and_the_predecessor_s_version_are_managed(name: str) -> None:
    assert is_managed(name)


@pytest.mark.parametrize(
    "name",
    ["", "qiju-entry..json", "qiju-entry." + "0" * 32 + ".json", "qiju-entry.a." + "0" * 31 + ".json",
     "qiju-entry.a." + "g" * 32 + ".json", "qiju-entry.a\n." + "0" * 32 + ".json"],
)  # fmt: skip
def test_other_names_are_not_managed(name: str) -> None:
    assert not is_managed(name)
