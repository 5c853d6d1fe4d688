"""`uninstall --purge-data`: delete every record of the store, on purpose and only then.

The typed word comes before anything is touched; then a last backup, unless told not to; then the files that a store
consists of, by name. Nothing else in the home is deleted: a file that Qiju does not know may be anybody's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from qiju.errors import Refused, StorageFailed
from qiju.files import remove_tree

WORD = "yes"
QUESTION = f"Type '{WORD}' to permanently delete all Qiju session records: "

# The store, its key, and what is derived from it or waits to go into it. `backups`, which holds the last one, is apart.
STORE_FILES = ("qiju.db", "qiju.db-wal", "qiju.db-shm", "qiju.db-journal", "store.key")
STORE_FOLDERS = ("archive", "spool")
BACKUPS = "backups"


class Purged(NamedTuple):
    """What was deleted, or would be, and where the last backup lies (None: there is none)."""

    removed: list[Path]
    backup: Path | None


def confirm(ask: Callable[[str], str], *, yes: bool) -> None:
    """Raise `Refused` unless the word was typed or `--yes` given."""
    if yes:
        return
    try:
        answer = ask(QUESTION)
    except EOFError:
        answer = ""
    if answer.strip() != WORD:
        raise Refused("the records were not deleted: it was not confirmed", hint=f"type {WORD}, or pass --yes")


def targets(home: Path, *, with_backups: bool) -> list[Path]:
    """What a purge of `home` deletes."""
    names = (*STORE_FILES, *STORE_FOLDERS, *((BACKUPS,) if with_backups else ()))
    return [home / name for name in names if (home / name).exists() or (home / name).is_symlink()]


def purge(home: Path, backup: Path | None, *, with_backups: bool) -> Purged:
    """Delete the store of `home`. It must be closed. Raises `StorageFailed` naming the first file that stays."""
    removed = []
    for path in targets(home, with_backups=with_backups):
        try:
            # A link is removed itself; what it points to lies outside of the home and is not ours to delete.
            remove_tree(path)
        except OSError as error:
            raise StorageFailed(
                f"cannot delete {path}: {error.strerror}", hint="correct the permissions and purge again"
            ) from error
        removed.append(path)
    return Purged(removed, backup)
