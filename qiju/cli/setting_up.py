"""What `init`, `update` and `uninstall` share: the store, also beside a damaged marker, the user's level, output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from qiju.cli.context import Context, inert
from qiju.db import LOCK_WAIT, Database
from qiju.errors import BadConfiguration, QijuError, Refused
from qiju.install.run import Report
from qiju.install.setup import linked_worktree
from qiju.install.skillfiles import Place
from qiju.place import user_folder, working_directory
from qiju.store import database_path


def user_level(context: Context) -> Place:
    """The user's level. Raises `QijuError` where the system knows no home folder of the user."""
    home = user_folder(context.env)
    if home is None:
        raise QijuError("your home folder is not known", hint="Set HOME.")
    return Place(None, context.env, home)


def open_database(context: Context, *, change: bool, create: bool) -> Database:
    """The store's database: for writing, or for reading only, or an empty one in memory when there is none to make.

    A damaged marker or configuration is said and passed over: these commands repair such things.
    """
    try:
        lock_wait = context.config.lock_wait
    except BadConfiguration as error:
        context.note(str(error))
        lock_wait = LOCK_WAIT
    path = database_path(context.home)
    if not change:
        return Database.open_for_reading(path, lock_wait=lock_wait)
    if not create and not path.exists():
        return Database.in_memory()
    return Database.open(path, lock_wait=lock_wait)


def check_path(path: Path) -> Path:
    """`path`, or `Refused` when its name has bytes that are no text: neither JSON nor the store could hold it."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refused(
            f"the folder name {path.name!a} is not valid UTF-8", hint="Rename the folder, then try again."
        ) from error
    return path


def worktree_here(root: Path | None) -> Path | None:
    """The linked worktree that this call comes from, when `root` is its main repository."""
    top = linked_worktree(working_directory(), root) if root is not None else None
    return check_path(top) if top is not None else None


def finish(context: Context, report: Report, text: str, *, as_json: bool) -> int:
    """Print a report, say its warnings, and raise what failed."""
    if as_json:
        from qiju import jsontext

        sys.stdout.write(jsontext.pretty(report.value) + "\n")
    else:
        sys.stdout.write(inert_lines(text) + "\n")
    for warning in dict.fromkeys(report.warnings):
        context.note(inert(warning))
    report.raise_failures()
    return 0


def inert_lines(text: str) -> str:
    """Several lines, each safe for a terminal: folder names are text of other people, too."""
    return "\n".join(inert(line) for line in text.split("\n"))


def change_line(change: dict[str, Any]) -> str:
    """One line for a planned or made change."""
    kept = f" (your version: {change['backup']})" if change.get("backup") else ""
    return f"  [{change['action']}] {change['path']}{kept}"
