"""One writer at a time, across processes and systems: an advisory lock on a small file beside the data.

The operating system frees the lock when its holder dies, so a killed writer blocks nobody. The file holds the writer's
process id for the message; it stays behind when the lock is released, because removing it would race with the next one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from qiju.errors import StorageFailed, StoreBusy

LOCKED_BYTE = 1 << 30  # far behind the text, because Windows refuses to read bytes that another process has locked


class WriterLock:
    """Held from construction to `release()`. Raises `StoreBusy` at once when another writer holds it, naming its
    process when that can be read, and `StorageFailed` when the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Whoever plants a link here would have its target emptied below.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
            self._handle = os.open(path, flags, 0o600)
            if hasattr(os, "fchmod") and os.fstat(self._handle).st_uid == os.geteuid():
                os.fchmod(self._handle, 0o600)
        except OSError as error:
            raise StorageFailed(f"cannot open the lock file {path}: {error.strerror}") from error
        try:
            _lock(self._handle)
        except OSError:
            holder = os.read(self._handle, 20).decode("ascii", "replace").strip()
            os.close(self._handle)
            by = f" (process {holder})" if holder.isdigit() else ""
            raise StoreBusy(
                f"another writer{by} holds the journal {path.with_suffix('').name}",
                hint="one writer at a time; readers are not affected",
            ) from None
        os.ftruncate(self._handle, 0)
        os.write(self._handle, b"%d\n" % os.getpid())

    def release(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)  # closing frees the lock
            self._handle = -1


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        import msvcrt

        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(handle, 0, os.SEEK_SET)

else:

    def _lock(handle: int) -> None:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
