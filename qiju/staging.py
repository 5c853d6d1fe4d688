"""Drafts: the files in which an agent prepares a record before `qiju log` takes it.

They lie in `.qiju/tmp` of the project, because hosts let an agent write there without asking, and hold text that
nobody has redacted yet. So the folder is private, tells Git to overlook it, and is reached without following a symbolic
link: a cloned repository may contain any link it likes. A file is deleted only when Qiju gave it its name and it lies
in that folder itself, and the check and the deletion go through one open folder, so that no swap in between can
redirect them.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from qiju.errors import Refused, StorageFailed
from qiju.place.root import MARKER_FOLDER
from qiju.values import NamedTuple

STAGING_FOLDER = "tmp"
_PREFIX = "qiju-entry."
_SUFFIX = ".json"
_HEX = frozenset("0123456789abcdef")
_LABEL = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST_LABEL = 40
_GONE = "it is not there any more"
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: int = getattr(os, "O_DIRECTORY", 0)

# Without these (Windows) folders are named by path: links are still refused, but not a swap within the same instant.
_BY_FOLDER = bool(_NO_FOLLOW and _FOLDER) and {os.open, os.mkdir, os.stat, os.unlink} <= os.supports_dir_fd


class Swept(NamedTuple):
    """A draft that was swept, or would be: `size` in bytes, `age` in seconds since its last write."""

    path: Path
    size: int
    age: float


def staging_dir(root: Path) -> Path:
    """Where the drafts of a root lie, whether or not the folder exists."""
    return root / MARKER_FOLDER / STAGING_FOLDER


def is_managed(name: str) -> bool:
    """Whether a file name is one that `allocate` (or the predecessor) gives: `qiju-entry.<agent>.<32 hex>.json`."""
    if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
        return False
    agent, dot, digits = name[len(_PREFIX) : -len(_SUFFIX)].rpartition(".")
    return bool(dot and agent) and len(digits) == 32 and _HEX.issuperset(digits) and agent.isprintable()


def allocate(root: Path, agent: str) -> Path:
    """Make an empty draft below `root` (a project's root, or the home) and return its path.

    The file has mode 0600 and its folder 0700, whatever the umask. `agent` only labels the file. Raises Refused when
    the folder is reached through a symbolic link, StorageFailed when the disk does not take it.
    """
    folder = staging_dir(root)
    name = f"{_PREFIX}{_label(agent)}.{os.urandom(16).hex()}{_SUFFIX}"
    try:
        with _Folder(folder, make=True) as opened:
            opened.create(name)
    except FileNotFoundError as error:
        raise StorageFailed(f"{root}: is not there any more, so no draft can be made in it") from error
    except OSError as error:
        raise StorageFailed(
            f"{folder}: no draft can be made there ({error.strerror})",
            hint="Give the record on standard input instead: `qiju log ... --body -`.",
        ) from error
    return folder / name


def safe_cleanup(path: Path, staging: Path) -> str | None:
    """Delete a draft after its record is stored. Returns None when it is gone, else why it was left alone.

    Only a regular file with a managed name that is a direct child of `staging` is ever deleted.
    """
    if not is_managed(path.name):
        return "its name is not one that `qiju temp-entry` gives"
    try:
        with _Folder(staging) as opened:
            if not opened.is_same(path.parent):
                return f"it does not lie in the staging folder {staging}"
            status = opened.status(path.name)
            if _is_link(status):
                return "it is a symbolic link"
            if not stat.S_ISREG(status.st_mode):
                return "it is not a regular file"
            if not opened.unlink(path.name):
                return _GONE
    except FileNotFoundError:
        return _GONE if staging.is_dir() else f"the staging folder {staging} does not exist"
    except Refused as error:
        return str(error)
    except OSError as error:
        return error.strerror or "the operating system refused"
    return None


def sweep(staging: Path, older_than_s: float, dry_run: bool = False, *, now: float | None = None) -> list[Swept]:
    """Delete drafts nobody has written to for `older_than_s` seconds, and return them by name.

    With `dry_run` nothing is deleted. Other files, links and younger drafts stay; a missing folder is empty. `now` is
    the time to measure from, in seconds since the epoch. Raises Refused when the folder is reached through a symbolic
    link, StorageFailed when it cannot be read or a draft cannot be deleted.
    """
    at = time.time() if now is None else now
    swept: list[Swept] = []
    try:
        with _Folder(staging) as opened:
            for name in sorted(opened.names()):
                status = _old_draft(opened, name, at - older_than_s) if is_managed(name) else None
                if status is not None:
                    if not dry_run and not opened.unlink(name):
                        continue
                    swept.append(Swept(staging / name, status.st_size, at - status.st_mtime))
    except FileNotFoundError:
        return swept
    except OSError as error:
        raise StorageFailed(f"{staging}: cannot be swept ({error.strerror})") from error
    return swept


def _old_draft(opened: _Folder, name: str, before: float) -> os.stat_result | None:
    """The status of a draft last written to before that time; None for all else, and for one that has just gone."""
    try:
        status = opened.status(name)
    except FileNotFoundError:
        return None
    old = stat.S_ISREG(status.st_mode) and not _is_link(status) and status.st_mtime < before
    return status if old else None


def _label(agent: str) -> str:
    characters = [character if character in _LABEL else "-" for character in agent.strip().lower()]
    return "".join(characters).strip("-")[:_LONGEST_LABEL].rstrip("-") or "agent"


def _is_link(status: os.stat_result) -> bool:
    """A symbolic link, or one of Windows' junctions and other reparse points."""
    reparse = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_file_attributes", 0) & reparse)


class _Folder:
    """An open staging folder: every step to it and in it refuses links; held by a handle where the system has one.

    Used with `with`. `make` creates what is missing of `.qiju/tmp` (never the root). Raises FileNotFoundError, Refused
    for a link on the way, and OSError for the rest.
    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self.path = path
        self._make = make
        self._handle: int | None = None

    def __enter__(self) -> _Folder:
        root = self.path.parent.parent
        if not _BY_FOLDER:
            self._enter_by_path()
            return self
        handle = os.open(root, os.O_RDONLY | _FOLDER)
        try:
            for step in (self.path.parent, self.path):
                handle = self._step(handle, step)
            if self._make:
                self._secure(handle)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def _step(self, handle: int, path: Path) -> int:
        if self._make:
            try:
                os.mkdir(path.name, 0o700 if path == self.path else 0o777, dir_fd=handle)
            except FileExistsError:
                pass
        if _is_link(os.stat(path.name, dir_fd=handle, follow_symlinks=False)):
            raise _linked(path)
        inner = os.open(path.name, os.O_RDONLY | _FOLDER | _NO_FOLLOW, dir_fd=handle)
        os.close(handle)
        return inner

    def _secure(self, handle: int) -> None:
        if stat.S_IMODE(os.fstat(handle).st_mode) != 0o700:
            os.fchmod(handle, 0o700)
        self._hide(handle)

    def _enter_by_path(self) -> None:
        if self._make and not self.path.parent.parent.is_dir():
            raise FileNotFoundError(self.path.parent.parent)
        for step in (self.path.parent, self.path):
            if self._make:
                step.mkdir(mode=0o700, exist_ok=True)
            if _is_link(step.lstat()):
                raise _linked(step)
        if self._make:
            self.path.chmod(0o700)
            self._hide(None)

    def _hide(self, handle: int | None) -> None:
        """A `.gitignore` inside, so that `git add` in a project without `qiju init` does not publish a draft."""
        name = ".gitignore" if handle is not None else str(self.path / ".gitignore")
        try:
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600, dir_fd=handle)
        except FileExistsError:
            return
        try:
            if hasattr(os, "fchmod"):
                os.fchmod(file, 0o600)
            os.write(file, b"*\n")
        finally:
            os.close(file)

    def create(self, name: str) -> None:
        file = os.open(self._named(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600, dir_fd=self._handle)
        try:
            if hasattr(os, "fchmod"):
                # A strict umask would otherwise take the owner's own permission away.
                os.fchmod(file, 0o600)
        finally:
            os.close(file)

    def is_same(self, folder: Path) -> bool:
        """Whether `folder`, links followed, is this very folder."""
        mine = os.fstat(self._handle) if self._handle is not None else self.path.stat()
        return os.path.samestat(mine, folder.stat())

    def names(self) -> list[str]:
        # pathlib cannot list a folder by its handle.
        return os.listdir(self.path if self._handle is None else self._handle)  # noqa: PTH208

    def status(self, name: str) -> os.stat_result:
        return os.stat(self._named(name), dir_fd=self._handle, follow_symlinks=False)

    def unlink(self, name: str) -> bool:
        """Delete a file; False when somebody else has just done it."""
        try:
            os.unlink(self._named(name), dir_fd=self._handle)
        except FileNotFoundError:
            return False
        return True

    def _named(self, name: str) -> str:
        return name if self._handle is not None else str(self.path / name)


def _linked(path: Path) -> Refused:
    return Refused(
        f"{path} is a symbolic link; drafts are neither made nor deleted through it",
        hint="Replace the link by a folder, or give the record on standard input: `qiju log ... --body -`.",
    )
