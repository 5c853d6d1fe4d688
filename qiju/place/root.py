"""Which folder a call belongs to.

In this order: `$QIJU_PROJECT_ROOT`; the nearest folder upward with a `.qiju/config.json`; the top level of the Git
repository, where a linked worktree stands for its main repository; else the working folder alone, a *bare directory*
that has no identity of its own. A `.qiju` folder without `config.json` holds data and never makes a project.

The user's own folder is special, because everything lies below it:

- a marker there serves it and every folder below that is not in a Git repository; a repository goes first;
- a Git repository there (dotfiles) serves only that very folder, not what happens to lie below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qiju.errors import UsageError
from qiju.place.git import Repository, repository_at, repository_named
from qiju.place.home import real_path, user_folder, without_links, working_directory
from qiju.values import NamedTuple

MARKER_FOLDER = ".qiju"
MARKER_NAME = "config.json"


class Root(NamedTuple):
    """A project's folder, absolute and without links, and what made it one: `env`, `marker`, `git` or `bare`."""

    path: Path
    kind: str


def marker_path(root: Path) -> Path:
    """Where the marker of a root lies, whether or not it exists."""
    return root / MARKER_FOLDER / MARKER_NAME


def find_root(cwd: Path | None, env: Mapping[str, str]) -> Root:
    """The root that `cwd` (None: the process's working folder) belongs to.

    Raises UsageError when `$QIJU_PROJECT_ROOT` is not a folder, QijuError when the working folder has been deleted.
    """
    named = env.get("QIJU_PROJECT_ROOT", "")
    if named.strip():
        folder = real_path(named, env, named="QIJU_PROJECT_ROOT")
        if not folder.is_dir():
            raise UsageError(
                f"QIJU_PROJECT_ROOT names {folder}, which is not a folder",
                hint="Correct the variable, or unset it to have the project found from the working directory.",
            )
        return Root(folder, "env")
    return _upward(working_directory() if cwd is None else without_links(cwd, "the working directory"), env)


def _upward(start: Path, env: Mapping[str, str]) -> Root:
    user = user_folder(env)
    told = repository_named(env, start)
    repository: Repository | None = None
    folder = start
    while True:
        if marker_path(folder).is_file() and not (folder == user and repository is not None):
            return Root(_owner_of_marker(folder), "marker")
        if repository is None:
            # What lies nearest counts, so that variables left over from an outer repository do not claim an inner one.
            repository = repository_at(folder)
            if repository is None and told is not None and told.top == folder:
                repository = told
            if repository is not None and repository.main == user and start != user:
                repository = None
            if repository is not None and repository.main != folder:
                folder = repository.main
                continue
        if folder.parent == folder:
            break
        folder = folder.parent
    return Root(repository.main, "git") if repository is not None else Root(start, "bare")


def _owner_of_marker(folder: Path) -> Path:
    """A committed marker appears in every worktree; the main repository's copy of it is the one that counts."""
    repository = repository_at(folder)
    if repository is not None and repository.main != folder and marker_path(repository.main).is_file():
        return repository.main
    return folder
