"""Git's layout on disk, as far as it says where a repository begins and to whom a checkout belongs.

Only files are read: starting `git` would cost more than a whole search, and Qiju works where it is not installed. A
`.git` folder is an ordinary checkout. A `.git` file points elsewhere: to a folder with a `commondir` (a linked
worktree, which belongs to its main repository) or without one (a submodule or a separated Git folder, each a repository
of its own). A folder that is itself a Git folder is a bare repository.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from qiju.values import NamedTuple

_LONGEST_POINTER = 16 * 1024


class Repository(NamedTuple):
    """`top` is the checkout's own top level, `main` that of the repository it belongs to (equal but for worktrees).

    `common_dir` is the Git folder shared by all its worktrees (the one with `info/exclude`). A bare repository has
    its Git folder as both tops.
    """

    top: Path
    main: Path
    common_dir: Path


def repository_at(folder: Path) -> Repository | None:
    """The repository whose top level is `folder`, or None. `folder` has no links in it."""
    entry = folder / ".git"
    if entry.is_dir():
        if _is_git_dir(entry):
            # `.git` may be a link to a Git folder elsewhere; the checkout still begins here.
            common = _common_dir(entry.resolve())
            return Repository(folder, folder, common)
    elif entry.is_file():
        git_dir = _pointed_to(entry)
        if git_dir is not None:
            return _checkout(folder, git_dir)
    if _is_git_dir(folder):
        common = _common_dir(folder)
        main = _main_top(common)
        return Repository(main, main, common)
    return None


def repository_named(env: Mapping[str, str], cwd: Path) -> Repository | None:
    """The repository that `GIT_DIR` and `GIT_WORK_TREE` name, when it contains `cwd`; any other is ignored.

    Hooks and tools for dotfiles leave these variables set for whatever they start, so alone they prove nothing.
    """
    if not env.get("GIT_DIR"):
        return None
    git_dir = _followed(cwd / env["GIT_DIR"])
    if git_dir is None or not _is_git_dir(git_dir):
        return None
    common = _common_dir(git_dir)
    main = _main_top(common)
    top = _followed(cwd / env["GIT_WORK_TREE"]) if env.get("GIT_WORK_TREE") else main
    if top is None or not cwd.is_relative_to(top):
        return None
    return Repository(top, main if common != git_dir else top, common)


def find_repository(start: Path) -> Repository | None:
    """The repository that contains `start`, searched upward."""
    for folder in (start, *start.parents):
        repository = repository_at(folder)
        if repository is not None:
            return repository
    return None


def _checkout(folder: Path, git_dir: Path) -> Repository:
    common = _common_dir(git_dir)
    linked = common != git_dir
    # A worktree whose main repository is out of reach (moved, or not mounted here) can only stand for itself.
    main = _main_top(common) if linked and _is_git_dir(common) else folder
    return Repository(folder, main, common)


def _is_git_dir(path: Path) -> bool:
    if not (path / "HEAD").is_file() and not (path / "HEAD").is_symlink():
        return False
    return (path / "commondir").is_file() or ((path / "objects").is_dir() and (path / "refs").is_dir())


def _pointed_to(entry: Path) -> Path | None:
    text = _first_line(entry)
    if text is None or not text.startswith("gitdir:"):
        return None
    return _followed(entry.parent / text.removeprefix("gitdir:").strip())


def _common_dir(git_dir: Path) -> Path:
    text = _first_line(git_dir / "commondir")
    return (_followed(git_dir / text) if text else None) or git_dir


def _main_top(common: Path) -> Path:
    """The top level that owns a common Git folder; the folder itself when the repository is bare."""
    if common.name == ".git":
        return common.parent
    # A submodule's Git folder lies inside its superproject's and names the way back to the checkout.
    for name in ("config.worktree", "config"):
        worktree = _core_worktree(common / name)
        if worktree:
            followed = _followed(common / worktree)
            if followed is not None and followed.is_dir():
                return followed
    # The habit of keeping a bare repository beside its worktrees, with a `.git` file pointing to it.
    beside = common.parent / ".git"
    if beside.is_file() and _pointed_to(beside) == common:
        return common.parent
    return common


def _core_worktree(config: Path) -> str:
    try:
        text = os.fsdecode(config.read_bytes())
    except OSError:
        return ""
    section = value = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            section = line[1:].partition("]")[0].strip().lower()
        elif section == "core":
            key, equals, rest = line.partition("=")
            if equals and key.strip().lower() == "worktree":
                value = rest.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return value


def _first_line(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_LONGEST_POINTER)).split("\n", 1)[0].rstrip("\r")
    except OSError:
        return None


def _followed(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return None
