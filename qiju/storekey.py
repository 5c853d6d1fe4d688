"""The store key: 32 random bytes in a file of their own beside the database, never in it.

Markers, cursors and fingerprints are keyed with it, so a copy of the database alone lets nobody test guesses against
them. Each purpose has a key of its own, derived by HMAC.
"""

from __future__ import annotations

import os
from pathlib import Path

from qiju.errors import ReadOnlyStore, StorageFailed

NAME = "store.key"
LENGTH = 32


def path(home: Path) -> Path:
    """Where the key of a home lies."""
    return home / NAME


def read(home: Path) -> bytes | None:
    """The key, or None when there is none. Raises `StorageFailed` when the file is not a key."""
    try:
        key = path(home).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed(f"{path(home)} cannot be read: {error.strerror}", hint="check its permissions") from error
    if len(key) != LENGTH:
        raise StorageFailed(
            f"{path(home)} is not a store key: {len(key)} bytes instead of {LENGTH}",
            hint="restore it from 'qiju backup --with-key', or move it away to have a new one made",
        )
    return key


def create(home: Path) -> bytes:
    """Make the key, mode 0600; when another process was faster, its key."""
    key = os.urandom(LENGTH)
    # Not the pid alone: in containers every program has the same one, and a killed run's file would be in the way.
    temporary = path(home).with_name(f"{NAME}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, 0o600)  # a umask may have taken the owner's own permissions away
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path(home))  # never replaces: the first key wins
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not path(home).exists():
                temporary.replace(path(home))
        temporary.unlink(missing_ok=True)
        _sync_folder(home)
    except PermissionError as error:
        raise ReadOnlyStore(f"{path(home)} cannot be written", hint="check the permissions of the folder") from error
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageFailed(f"{path(home)} cannot be written: {error.strerror}") from error
    made = read(home)
    if made is None:
        raise StorageFailed(f"{path(home)} vanished as it was made", hint="is it a link to nowhere? remove it")
    return made


def _sync_folder(home: Path) -> None:
    # A record names the key it was redacted with: the key must not be what a power cut takes.
    if os.name == "nt":
        return
    descriptor = os.open(home, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def subkey(key: bytes, purpose: str) -> bytes:
    """The key for one purpose: `marker`, `cursor`, `fingerprint` or `id`."""
    import hmac

    return hmac.digest(key, f"qiju/{purpose}".encode(), "sha256")
