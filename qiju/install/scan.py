"""Find projects on the disk that the registry does not know: set up by the predecessor, cloned, or moved.

The walk starts at the given folders, or at those where people keep their work, goes a limited depth, follows no links,
and skips folders that hold packages, caches and version control.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from qiju import hosts, skills
from qiju.place import marker_path
from qiju.place.root import MARKER_FOLDER

DEFAULT_DEPTH = 8
ROOTS_VARIABLE = "QIJU_PROJECT_SCAN_ROOTS"
WORK_FOLDERS = ("Development", "Projects", "work", "workspace")
VOLUMES = Path("/Volumes")

CACHES = (".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".venv", "__pycache__")
SKIPPED = frozenset(
    (*CACHES, ".git", ".hg", ".memory", ".qiju", ".svn", "Library", "node_modules", "site-packages", "target", "vendor")
)


def default_roots(env: Mapping[str, str], user_home: Path, cwd: Path) -> list[Path]:
    """Where a scan starts when nothing is said: the variable's folders, the working folder, the usual work folders."""
    named = [Path(part).expanduser() for part in env.get(ROOTS_VARIABLE, "").split(os.pathsep) if part]
    found = [*named, cwd, *(user_home / name for name in WORK_FOLDERS)]
    if VOLUMES.is_dir():
        found += [volume / name for volume in VOLUMES.iterdir() for name in (*WORK_FOLDERS, "workplace")]
    return found


def find_projects(starts: Iterable[Path], depth: int = DEFAULT_DEPTH) -> list[Path]:
    """Folders with a marker or with anything that Qiju or its predecessor put there, at most `depth` levels down."""
    found: dict[Path, None] = {}
    walked: set[Path] = set()
    for start in starts:
        try:
            start = start.resolve()
        except (OSError, RuntimeError):
            continue
        if not start.is_dir() or start in walked:
            continue
        walked.add(start)
        for folder, names, _ in os.walk(start):
            here = Path(folder)
            names[:] = sorted(name for name in names if name not in SKIPPED)
            if looks_enabled(here):
                found[here] = None
            if len(here.parts) - len(start.parts) >= depth:
                names[:] = []
    return list(found)


def looks_enabled(folder: Path) -> bool:
    """Whether `folder` is a project that Qiju or its predecessor was set up in."""
    if marker_path(folder).is_file() or (folder / MARKER_FOLDER / "short.jsonl").is_file():
        return True
    if any((folder / place / skills.FILE_NAME).is_file() for place in _SKILL_PLACES):
        return True
    return any((folder / path).is_file() for path in _LEFTOVER_FILES)


_SKILL_PLACES = tuple(
    dict.fromkeys(f"{host.project_skills}/{name}" for host in hosts.HOSTS for name in ("qiju", *skills.NAMES))
)
_LEFTOVER_FILES = tuple(
    leftover.path
    for host in hosts.HOSTS
    for leftover in host.leftovers
    if leftover.level == "project" and leftover.form == "file"
)
