"""Records that could not be written for a held lock or a full disk, kept until the next write stores them.

What lies here is redacted already: a spool file holds exactly what the store would have held. One file a record, its
name ordered by time; the next write stores them first, in that order, notes each name in its own transaction (so that a
crash between the commit and the removal cannot store one twice) and then removes the files.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from qiju import jsontext
from qiju.errors import InvalidJson, StorageFailed
from qiju.jsontext import JsonValue
from qiju.values import NamedTuple

FOLDER = "spool"
_SUFFIX = ".json"


class Entry(NamedTuple):
    """One spool file. `value` is None when it cannot be read as JSON; such a file is left where it is, and named."""

    path: Path
    value: JsonValue


def folder(home: Path) -> Path:
    """Where the spool of a home lies."""
    return home / FOLDER


def keep(home: Path, value: dict[str, JsonValue]) -> Path:
    """Write one entry durably. Raises `StorageFailed` when even that is impossible."""
    place = folder(home)
    name = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}"
    temporary, target = place / f"{name}.tmp", place / f"{name}{_SUFFIX}"
    try:
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)
            place.chmod(0o700)  # a umask may have taken the owner's own permissions away
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if hasattr(os, "fchmod"):
                    os.fchmod(descriptor, 0o600)
                file.write(jsontext.canonical(value).encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(place)
    except OSError as error:
        raise StorageFailed(
            f"the record could not be kept in {place} either: {error.strerror}",
            hint="free some space, then log it again",
        ) from error
    return target


def pending(home: Path) -> list[Path]:
    """The entries' files, oldest first."""
    try:
        names = [entry.name for entry in os.scandir(folder(home)) if entry.name.endswith(_SUFFIX) and entry.is_file()]
    except FileNotFoundError:
        return []
    return [folder(home) / name for name in sorted(names)]


def load(path: Path) -> Entry | None:
    """One entry, or None when another process has stored and removed it meanwhile."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error
    try:
        return Entry(path, jsontext.parse(data, name=str(path)))
    except InvalidJson:
        return Entry(path, None)


def remove(paths: list[Path]) -> None:
    """Remove stored entries. One that cannot be removed stays; the store knows it by name."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            continue
    if paths:
        _sync_folder(paths[0].parent)


def _sync_folder(place: Path) -> None:
    if os.name == "nt":  # Windows has no handle on a folder to flush
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
