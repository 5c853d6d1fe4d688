"""Replace a file or a folder as a whole, or leave the old one exactly as it was.

Every file Qiju hands out is written beside its target, flushed to the disk, renamed into place, and the folder's entry
flushed too. A failure, an interruption or a full disk leaves the old file and no temporary one. What must never be a
target (a symlink, a folder, the store's own files) is refused by name before anything is written.

A process killed outright cannot clean up after itself, so each run first sweeps the temporary files of earlier runs on
the same target that nobody has written to for an hour.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from qiju.errors import NotFound, Refused, StorageFailed

TEMPORARY_MARK = ".qiju-tmp-"
ABANDONED_AFTER = 3600.0  # seconds without a write after which a temporary file has no living owner
RENAME_ATTEMPTS = 20  # Windows refuses to replace a file that a virus scanner or reader holds for a moment


def refuse_target(target: Path, *, protected: Iterable[Path] = (), folder: bool = False) -> None:
    """Raise when `target` may not be replaced: a symlink, the wrong kind, inside no folder, or protected.

    Raises `NotFound` for a missing parent, `Refused` for everything else.
    """
    if not target.name:
        raise Refused(f"the output path {target} is a folder that has no name here", hint="name a file inside it")
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        mode = 0
    except OSError as error:
        raise disk_error(error, target) from error
    if mode and stat.S_ISLNK(mode):
        raise Refused(f"the output path {target} is a symbolic link", hint="name the real file; links are not followed")
    if mode and stat.S_ISDIR(mode) and not folder:
        raise Refused(f"the output path {target} is a folder", hint="name a file inside it")
    if mode and not stat.S_ISDIR(mode) and folder:
        raise Refused(f"the output path {target} is a file", hint="name a folder, or a path that does not exist yet")
    if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Refused(f"the output path {target} is not a regular file", hint="name a regular file")
    if not target.parent.is_dir():
        raise NotFound(f"the folder of the output path {target} does not exist", hint=f"mkdir -p '{target.parent}'")
    resolved = target.parent.resolve() / target.name
    for path in protected:
        if resolved == path.resolve() or _same_file(target, path) or (folder and resolved in path.resolve().parents):
            raise Refused(f"the output path {target} belongs to the store itself", hint="write the export elsewhere")


def _same_file(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False


def disk_error(error: OSError, path: Path) -> StorageFailed:
    """The operating system's refusal as a sentence that names the path."""
    hints = {
        errno.ENOSPC: "free some space and run it again; nothing was changed",
        errno.EDQUOT: "the quota is used up; nothing was changed",
        errno.EFBIG: "the file would pass the size limit; nothing was changed",
        errno.EACCES: "check the permissions of the folder",
        errno.EPERM: "check the permissions of the folder",
        errno.EROFS: "the file system is read-only",
    }
    reason = error.strerror or type(error).__name__
    return StorageFailed(f"cannot write {path}: {reason}", hint=hints.get(error.errno or 0, ""))


def sync_folder(folder: Path) -> None:
    """Flush the entries of `folder`; a no-op where folders cannot be opened (Windows)."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network and FUSE file systems cannot flush a folder; the rename itself has still happened.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(handle)


def rename_over(source: Path, target: Path) -> None:
    """`os.replace`, patient on Windows while another program holds the target for a moment."""
    for attempt in range(RENAME_ATTEMPTS):
        try:
            source.replace(target)
            return
        except PermissionError:
            if sys.platform != "win32" or attempt == RENAME_ATTEMPTS - 1:
                raise
            time.sleep(0.05)


def temporary_beside(target: Path) -> Path:
    """A fresh name in the target's folder that sorts out of sight and tells whose leftover it would be."""
    return target.with_name(f"{_hidden(target)}{TEMPORARY_MARK}{os.getpid()}-{os.urandom(4).hex()}")


def _hidden(target: Path) -> str:
    # File systems count 255 bytes, not characters: a long name in CJK must leave room for the mark.
    return "." + os.fsencode(target.name)[:150].decode("utf-8", "ignore")


def sweep_abandoned(target: Path) -> list[Path]:
    """Remove leftovers of killed runs on `target` that nobody has written to for an hour; returns what went."""
    prefix = f"{_hidden(target)}{TEMPORARY_MARK}"
    gone = []
    for path in target.parent.iterdir():
        if path.name.startswith(prefix) and _last_write(path) < _abandoned():
            remove_tree(path)
            gone.append(path)
    return gone


def sweep_folder(folder: Path) -> None:
    """Remove every leftover of a killed run from a folder that is Qiju's own, whatever its target was."""
    for path in folder.iterdir():
        if TEMPORARY_MARK in path.name and path.name.startswith(".") and _last_write(path) < _abandoned():
            remove_tree(path)


def _abandoned() -> float:
    return time.time() - ABANDONED_AFTER


def _last_write(path: Path) -> float:
    try:
        latest = path.lstat().st_mtime
        if path.is_dir() and not path.is_symlink():
            latest = max([latest, *(child.lstat().st_mtime for child in path.rglob("*"))])
    except FileNotFoundError:
        return time.time()
    return latest


def make_private_folder(folder: Path) -> None:
    """Make a folder and what is missing above it, for the owner alone whatever the umask."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)


def remove_tree(path: Path) -> None:
    """Remove a file or a whole folder; one that is already gone is fine."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        pass


class PathReplacement:
    """`with PathReplacement(target) as path:` for writers that want a path (SQLite, Parquet).

    The file is private (0600) unless `mode` says otherwise (permission bits); an existing target keeps its bits. Any
    exception in the block, `KeyboardInterrupt` included, removes the temporary file and leaves the target alone.
    Raises what `refuse_target` raises, and `StorageFailed` when the disk refuses.
    """

    def __init__(self, target: Path, *, protected: Iterable[Path] = (), mode: int = 0o600) -> None:
        refuse_target(target, protected=protected)
        self.target = target
        self.mode = mode
        self.temporary = temporary_beside(target)

    def __enter__(self) -> Path:
        try:
            sweep_abandoned(self.target)
            if self.target.exists():
                self.mode = stat.S_IMODE(self.target.stat().st_mode)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            os.close(os.open(self.temporary, flags, 0o600))
        except OSError as error:
            raise disk_error(error, self.target) from error
        return self.temporary

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                sync_file(self.temporary)
                self.temporary.chmod(self.mode)
                rename_over(self.temporary, self.target)
                sync_folder(self.target.parent)
        except OSError as failure:
            raise disk_error(failure, self.target) from failure
        finally:
            for suffix in ("", "-journal", "-wal", "-shm"):
                remove_tree(self.temporary.with_name(self.temporary.name + suffix))
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise disk_error(error, self.target) from error


class FileReplacement:
    """`with FileReplacement(target) as out: out.write(...)`: the same promise, with an open binary file."""

    def __init__(self, target: Path, *, protected: Iterable[Path] = (), mode: int = 0o600) -> None:
        self._path = PathReplacement(target, protected=protected, mode=mode)

    def __enter__(self) -> BinaryIO:
        path = self._path.__enter__()
        try:
            self._file = path.open("wb")
        except OSError as error:
            remove_tree(path)
            raise disk_error(error, self._path.target) from error
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError as failure:
            # A full disk may refuse only this last flush; the target must stay as it was then, too.
            if error is None:
                kind, error, traceback = type(failure), failure, failure.__traceback__
        self._path.__exit__(kind, error, traceback)


def sync_file(path: Path) -> None:
    """Flush a finished file to the disk."""
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class FolderReplacement:
    """A whole folder, swapped in when complete: no reader ever sees a mix of old and new parts.

    `owned` lists the names (relative, posix) that the old folder may hold; anything else in it is somebody's own file,
    and the folder is refused rather than thrown away. Between the two renames of the swap there is an instant without a
    target; a process killed exactly there leaves the old folder beside it, and `recover_folder` puts it back.
    """

    def __init__(self, target: Path, *, owned: Iterable[str] = (), protected: Iterable[Path] = ()) -> None:
        recover_folder(target)
        refuse_target(target, protected=protected, folder=True)
        known = set(owned)
        for path in sorted(target.rglob("*")) if target.exists() else ():
            name = path.relative_to(target).as_posix()
            if path.is_symlink() or (not path.is_dir() and name not in known):
                raise Refused(
                    f"the output folder {target} holds a file that is not part of an export: {name}",
                    hint="name another folder, or move that file away",
                )
        self.target = target
        self.temporary = temporary_beside(target)

    def __enter__(self) -> Path:
        try:
            sweep_abandoned(self.target)
            self.temporary.mkdir(mode=0o700)
            self.temporary.chmod(0o700)  # a umask may have taken the owner's own permissions away
        except OSError as error:
            raise disk_error(error, self.target) from error
        return self.temporary

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                for path in self.temporary.rglob("*"):
                    path.chmod(0o700 if path.is_dir() else 0o600)
                    if path.is_dir():
                        sync_folder(path)
                    else:
                        sync_file(path)
                sync_folder(self.temporary)
                self._swap()
        except OSError as failure:
            raise disk_error(failure, self.target) from failure
        finally:
            remove_tree(self.temporary)
        if isinstance(error, OSError):
            raise disk_error(error, self.target) from error

    def _swap(self) -> None:
        old = _old_name(self.target)
        if self.target.exists():
            rename_over(self.target, old)
        try:
            rename_over(self.temporary, self.target)
        except BaseException:
            if old.exists():
                rename_over(old, self.target)
            raise
        sync_folder(self.target.parent)
        remove_tree(old)


def _old_name(target: Path) -> Path:
    return target.with_name(f"{_hidden(target)}.qiju-old")


def recover_folder(target: Path) -> None:
    """Finish a swap that was cut short: the old folder comes back when no new one is in place, else it goes."""
    if not target.name:
        return
    old = _old_name(target)
    if not old.is_dir():
        return
    if target.exists():
        remove_tree(old)
    else:
        rename_over(old, target)
