"""Which folder a call belongs to: markers, repositories of every shape, and what must not capture a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qiju.errors import QijuError, UsageError
from qiju.place import Marker, Root, find_root, write_marker
from qiju.place.git import find_repository

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git on PATH")
needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder without links in its own path, so that results compare with `==`."""
    return tmp_path.resolve()


def env(base: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(base / "nobody"), **more}


def git_dir(path: Path, text: str = "") -> Path:
    """The least that makes a Git folder."""
    (path / "objects").mkdir(parents=True)
    (path / "refs").mkdir()
    (path / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (path / "config").write_text(text or "[core]\n\tbare = false\n", encoding="utf-8")
    return path


def repository(path: Path) -> Path:
    git_dir(path / ".git")
    return path


def linked(path: Path, common: Path, *, relative: bool = False) -> Path:
    """A linked worktree of the repository whose common Git folder is `common`."""
    inner = common / "worktrees" / path.name
    inner.mkdir(parents=True)
    path.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/side\n", encoding="utf-8")
    (inner / "commondir").write_text("../..\n", encoding="utf-8")
    (inner / "gitdir").write_text(f"{path / '.git'}\n", encoding="utf-8")
    target = os.path.relpath(inner, path) if relative else inner
    (path / ".git").write_text(f"gitdir: {target}\n", encoding="utf-8")
    return path


def mark(path: Path, name: str = "demo") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    write_marker(path, Marker(name))
    return path


def below(path: Path, *parts: str) -> Path:
    folder = path.joinpath(*parts or ("sub", "deep"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# --- the order -------------------------------------------------------------------------------------------------------


def test_the_variable_outweighs_everything(base: Path) -> None:
    named = below(base, "named")
    inside = below(mark(repository(base / "proj")))
    assert find_root(inside, env(base, QIJU_PROJECT_ROOT=str(named))) == Root(named, "env")


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_is_as_good_as_unset(base: Path, value: str) -> None:
    assert find_root(repository(base / "p"), env(base, QIJU_PROJECT_ROOT=value)) == Root(base / "p", "git")


def test_a_variable_that_names_no_folder_is_a_usage_error(base: Path) -> None:
    with pytest.raises(UsageError, match="QIJU_PROJECT_ROOT"):
        find_root(base, env(base, QIJU_PROJECT_ROOT=str(base / "absent")))


def test_the_nearest_marker_outweighs_the_repository(base: Path) -> None:
    top = mark(repository(base / "outer"), "outer")
    inner = mark(top / "pkg" / "a", "inner")
    assert find_root(below(inner), env(base)) == Root(inner, "marker")
    assert find_root(below(top, "pkg", "b"), env(base)) == Root(top, "marker")


def test_a_marker_above_a_repository_captures_it(base: Path) -> None:
    umbrella = mark(base / "umbrella")
    assert find_root(below(repository(umbrella / "repo")), env(base)) == Root(umbrella, "marker")


def test_a_data_folder_without_config_never_captures_a_project(base: Path) -> None:
    top = repository(base / "proj")
    stray = below(top, "stray")
    (stray / ".qiju" / "tmp").mkdir(parents=True)
    assert find_root(stray, env(base)) == Root(top, "git")
    (stray / ".qiju" / "config.json").mkdir()  # a folder of that name is no marker either
    assert find_root(stray, env(base)) == Root(top, "git")


def test_a_folder_with_neither_is_bare(base: Path) -> None:
    folder = below(base, "plain", "sub")
    assert find_root(folder, env(base)) == Root(folder, "bare")


def test_a_dot_git_that_is_no_repository_does_not_count(base: Path) -> None:
    top = repository(base / "proj")
    (below(top, "empty") / ".git").mkdir()
    (below(top, "text") / ".git").write_text("not a pointer\n", encoding="utf-8")
    (below(top, "bytes") / ".git").write_bytes(b"\xff\xfe\x00" * 10)
    for name in ("empty", "text", "bytes"):
        assert find_root(top / name, env(base)) == Root(top, "git")


@needs_links
def test_a_project_reached_through_links_is_one_root(base: Path) -> None:
    top = repository(base / "proj")
    below(top)
    (base / "alias").symlink_to(top)
    (base / "deep").symlink_to(top / "sub" / "deep")
    for path in (base / "alias", base / "alias" / "sub", base / "deep"):
        assert find_root(path, env(base)) == Root(top, "git")
    assert find_root(base, env(base, QIJU_PROJECT_ROOT=str(base / "alias"))).path == top


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a working directory from being deleted")
def test_a_deleted_working_directory_is_an_error_unless_the_root_is_named(base: Path) -> None:
    before = Path.cwd()
    gone = below(base, "gone")
    os.chdir(gone)
    try:
        gone.rmdir()
        with pytest.raises(QijuError, match="working directory"):
            find_root(None, env(base))
        assert find_root(None, env(base, QIJU_PROJECT_ROOT=str(base))) == Root(base, "env")
    finally:
        os.chdir(before)


def test_without_a_folder_the_process_s_own_is_taken(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(below(repository(base / "proj")))
    assert find_root(None, env(base)) == Root(base / "proj", "git")


# --- repositories by hand --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relative", [False, True])
def test_a_linked_worktree_belongs_to_its_main_repository(base: Path, relative: bool) -> None:
    main = repository(base / "main")
    side = linked(base / "elsewhere" / "side", main / ".git", relative=relative)
    assert find_root(below(side), env(base)) == Root(main, "git")
    mark(main)
    assert find_root(below(side), env(base)) == Root(main, "marker")


def test_a_committed_marker_in_a_worktree_stands_for_the_main_one(base: Path) -> None:
    main = mark(repository(base / "main"))
    side = mark(linked(base / "side", main / ".git"))
    assert find_root(below(side), env(base)) == Root(main, "marker")
    (main / ".qiju" / "config.json").unlink()
    assert find_root(below(side), env(base)) == Root(side, "marker")


def test_a_marker_above_only_the_worktree_does_not_take_it_from_its_repository(base: Path) -> None:
    main = mark(repository(base / "main"))
    side = linked(mark(base / "trees", "trees") / "side", main / ".git")
    assert find_root(side, env(base)) == Root(main, "marker")


def test_a_worktree_whose_main_repository_is_gone_stands_for_itself(base: Path) -> None:
    main = repository(base / "main")
    side = linked(base / "side", main / ".git")
    shutil.rmtree(main)
    assert find_root(below(side), env(base)) == Root(side, "git")


def test_a_submodule_is_a_project_of_its_own(base: Path) -> None:
    main = repository(base / "main")
    git_dir(main / ".git" / "modules" / "lib", "[core]\n\tworktree = ../../../lib\n")
    (below(main, "lib") / ".git").write_text("gitdir: ../.git/modules/lib\n", encoding="utf-8")
    assert find_root(below(main / "lib"), env(base)) == Root(main / "lib", "git")
    assert find_root(main, env(base)) == Root(main, "git")


def test_a_worktree_of_a_submodule_belongs_to_the_submodule(base: Path) -> None:
    main = repository(base / "main")
    modules = git_dir(main / ".git" / "modules" / "lib", '[Core] ; comment\n\tWorkTree = "../../../lib"\n')
    (below(main, "lib") / ".git").write_text("gitdir: ../.git/modules/lib\n", encoding="utf-8")
    side = linked(base / "libside", modules)
    assert find_root(side, env(base)) == Root(main / "lib", "git")


def test_a_bare_repository_is_its_own_root_and_owns_its_worktrees(base: Path) -> None:
    bare = git_dir(base / "demo.git", "[core]\n\tbare = true\n")
    side = linked(base / "side", bare)
    assert find_root(bare / "refs", env(base)) == Root(bare, "git")
    assert find_root(side, env(base)) == Root(bare, "git")


def test_a_bare_repository_kept_beside_its_worktrees_is_one_project_with_them(base: Path) -> None:
    folder = below(base, "proj")
    bare = git_dir(folder / ".bare", "[core]\n\tbare = true\n")
    (folder / ".git").write_text("gitdir: ./.bare\n", encoding="utf-8")
    side = linked(folder / "trunk", bare)
    for start in (folder, bare, side):
        assert find_root(start, env(base)) == Root(folder, "git")


def test_inside_the_git_folder_the_checkout_is_the_root(base: Path) -> None:
    main = repository(base / "main")
    assert find_root(below(main / ".git", "hooks"), env(base)) == Root(main, "git")
    linked(base / "side", main / ".git")
    assert find_root(main / ".git" / "worktrees" / "side", env(base)) == Root(main, "git")


# --- variables of git ------------------------------------------------------------------------------------------------


def test_a_git_dir_that_does_not_contain_the_folder_is_ignored(base: Path) -> None:
    other = repository(base / "other")
    top = repository(base / "proj")
    outside = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)}
    assert find_root(top, env(base, **outside)) == Root(top, "git")
    assert find_root(below(base, "plain"), env(base, **outside)) == Root(base / "plain", "bare")
    assert find_root(top, env(base, GIT_DIR=str(base / "absent"))) == Root(top, "git")


def test_a_git_dir_that_does_contain_the_folder_counts_when_nothing_lies_nearer(base: Path) -> None:
    store = git_dir(base / "store.git")
    tree = below(base, "tree")
    told = {"GIT_DIR": str(store), "GIT_WORK_TREE": str(tree)}
    assert find_root(below(tree), env(base, **told)) == Root(tree, "git")
    inner = repository(tree / "inner")
    assert find_root(below(inner), env(base, **told)) == Root(inner, "git")


def test_a_hook_s_own_git_dir_changes_nothing(base: Path) -> None:
    main = repository(base / "main")
    side = linked(base / "side", main / ".git")
    assert find_root(main, env(base, GIT_DIR=".git")) == Root(main, "git")
    assert find_root(side, env(base, GIT_DIR=str(main / ".git" / "worktrees" / "side"))) == Root(main, "git")


# --- the user's own folder -------------------------------------------------------------------------------------------


def test_dotfiles_under_git_do_not_capture_what_lies_below_home(base: Path) -> None:
    user = repository(base / "user")
    here = {"HOME": str(user)}
    assert find_root(user, here) == Root(user, "git")
    assert find_root(below(user, "notes"), here) == Root(user / "notes", "bare")
    told = {"GIT_DIR": str(git_dir(base / "dots.git")), "GIT_WORK_TREE": str(user)}
    assert find_root(below(user, "notes"), here | told) == Root(user / "notes", "bare")


def test_a_marker_in_home_serves_it_but_no_repository_below(base: Path) -> None:
    user = mark(base / "user")
    here = {"HOME": str(user)}
    assert find_root(user, here) == Root(user, "marker")
    assert find_root(below(user, "notes"), here) == Root(user, "marker")
    repo = repository(user / "src" / "repo")
    assert find_root(below(repo), here) == Root(repo, "git")
    assert find_root(below(mark(repo)), here) == Root(repo, "marker")


def test_a_store_in_the_predecessor_s_place_makes_no_project_of_home(base: Path) -> None:
    user = below(base, "user")
    (user / ".qiju" / "long").mkdir(parents=True)
    (user / ".qiju" / "config.toml").touch()
    assert find_root(below(user, "notes"), {"HOME": str(user)}).kind == "bare"


# --- the real git ----------------------------------------------------------------------------------------------------


def git(cwd: Path, *arguments: str) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    settings = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=cwd,
        env=clean | settings,
        check=True,
        capture_output=True,
    )


@needs_git
def test_real_worktrees_submodules_and_bare_repositories(base: Path) -> None:
    lib, main = below(base, "lib"), below(base, "main")
    for path in (lib, main):
        git(path, "init", "-q", ".")
        git(path, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", "../side")
    git(main, "submodule", "--quiet", "add", str(lib), "vendor/lib")
    git(main / "vendor" / "lib", "worktree", "add", "-q", str(base / "libside"))
    git(base, "clone", "-q", "--bare", "lib", "lib.git")
    git(base / "lib.git", "worktree", "add", "-q", str(base / "bareside"))
    git(base, "init", "-q", "--separate-git-dir", str(base / "apart.git"), "apart")

    expected = {
        "main": "main",
        "side": "main",
        "main/vendor/lib": "main/vendor/lib",
        "libside": "main/vendor/lib",
        "lib.git": "lib.git",
        "bareside": "lib.git",
        "apart": "apart",
    }
    found = {start: str(find_root(base / start, env(base)).path.relative_to(base).as_posix()) for start in expected}
    assert found == expected
    side = find_repository(base / "side")
    assert side is not None
    assert (side.top, side.common_dir) == (base / "side", main / ".git")
