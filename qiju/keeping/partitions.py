"""The archive's month partitions on disk: `archive/project=<slug>/month=<YYYY-MM>/records-<hash>.parquet` + manifest.

The rows live in the database; a partition is a second, independent copy of a cold month. What makes it safe to rewrite
at any moment, and to be killed at any moment:

- A file's name carries the beginning of its own SHA-256, so a new version never overwrites an old one, and any file can
  prove by itself that Qiju wrote it whole.
- `manifest.json` names the one valid file. It is replaced atomically after the file was read back field by field;
  until then the old file is the valid one. Files that prove themselves but are not named are leftovers and may go.
- Everything else below `archive/` (damaged, renamed, the predecessor's, another store's) is somebody's only copy as far
  as we can know: it is named in reports and never touched.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from qiju import archive
from qiju.errors import Refused
from qiju.files import (
    FileReplacement,
    disk_error,
    make_private_folder,
    rename_over,
    sync_file,
    sync_folder,
    temporary_beside,
)

ARCHIVE = "archive"
MANIFEST = "manifest.json"
MANIFEST_FORMAT = 1
_FILE_NAME = re.compile(r"records-([0-9a-f]{16})\.parquet\Z")
_MONTH = re.compile(r"\d{4}-\d\d\Z")
_KEEP = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
# Names that Windows gives to devices, whatever their ending.
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(10))})
_LONGEST_NAME = 160  # bytes of an encoded name; the rest becomes a hash


class Manifest(NamedTuple):
    """What a partition holds: `digest` is SHA-256 over its records' digests, one a line, in `seq` order."""

    store_id: str
    project: str
    month: str
    file: str
    rows: int
    rev: int
    digest: str
    sha256: str
    size: int


class Foreign(NamedTuple):
    """A file below `archive/` that is not (or no longer) provably ours, and why."""

    path: Path
    reason: str


def name_for(project: str) -> str:
    """A folder name for any project name: one name a project, on every file system, whatever the shell wrote into it.

    Lower case, digits, `-`, `_`, single inner dots and letters beyond ASCII stay; the rest is percent-encoded, so that
    no two names meet on a file system that folds case or normalises.
    """
    import unicodedata

    stable = unicodedata.normalize("NFC", project) == project == project.casefold()
    parts = []
    for index, letter in enumerate(project):
        plain_dot = letter == "." and 0 < index < len(project) - 1 and project[index - 1] != "."
        kept = letter in _KEEP or plain_dot or (stable and letter > "\x7f" and letter.isalnum())
        # `quote` leaves letters and dots alone, which is just what must not stay here.
        parts.append(letter if kept else quote(letter, safe="") if not letter.isascii() else f"%{ord(letter):02X}")
    name = "".join(parts)
    if name.split(".")[0] in _DEVICES:
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name.encode()) > _LONGEST_NAME:
        head = name.encode()[: _LONGEST_NAME - 18].decode("utf-8", "ignore").rsplit("%", 1)[0]
        name = f"{head}%~{hashlib.sha256(project.encode()).hexdigest()[:16]}"
    return name


def folder_of(home: Path, project: str, month: str) -> Path:
    """Where the partition of a project's month lies. `month` is YYYY-MM, UTC."""
    return home / ARCHIVE / f"project={name_for(project)}" / f"month={month}"


def rows_digest(digests: Iterable[str]) -> str:
    """The digest of a partition from its records' digests in `seq` order."""
    total = hashlib.sha256()
    for digest in digests:
        total.update(digest.encode("ascii") + b"\n")
    return total.hexdigest()


def load(folder: Path) -> Manifest | None:
    """The manifest of a partition, or None when there is none. Raises `Refused` when it cannot be understood."""
    path = folder / MANIFEST
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Refused(
            f"{path} cannot be read: {error}", hint="move it away; the next maintain writes a new one"
        ) from error
    try:
        if value["format"] != MANIFEST_FORMAT:
            raise ValueError(f"format {value['format']}")
        manifest = Manifest(**{name: value[name] for name in Manifest._fields})
        if not (_FILE_NAME.match(manifest.file) and _MONTH.match(manifest.month) and isinstance(manifest.rows, int)):
            raise ValueError("names no file of ours")
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(
            f"{path} is not a manifest of this format: {error}", hint="written by another version?"
        ) from error
    return manifest


class Prepared(NamedTuple):
    """A partition written and read back, under a temporary name: `publish` makes it the valid one."""

    folder: Path
    temporary: Path
    manifest: Manifest


def prepare(home: Path, store_id: str, project: str, month: str, rows: Callable[[], Iterable[archive.Row]]) -> Prepared:
    """Write a partition beside the valid one and read it back field by field.

    `rows` is called twice and must give the same rows in `seq` order both times. Raises `StorageFailed`,
    `StoreDamaged` (it read back differently) or `InvalidRecord` (a row that the schema cannot hold, named), with
    nothing left behind. The caller publishes the result or discards it.
    """
    folder = folder_of(home, project, month)
    try:
        make_private_folder(folder)
        temporary = temporary_beside(folder / "records.parquet")
        try:
            digests: list[str] = []
            totals = archive.write(temporary, _noting(rows(), digests), view="raw_private")
            temporary.chmod(0o600)
            archive.compare(temporary, rows())
            sync_file(temporary)
            sha256 = file_sha256(temporary)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise disk_error(error, folder) from error
    manifest = Manifest(
        store_id=store_id,
        project=project,
        month=month,
        file=f"records-{sha256[:16]}.parquet",
        rows=totals.rows,
        rev=totals.rev,
        digest=rows_digest(digests),
        sha256=sha256,
        size=totals.size,
    )
    return Prepared(folder, temporary, manifest)


def publish(prepared: Prepared) -> bool:
    """Make a prepared partition the valid one; leftovers of ours go. Raises `StorageFailed`; the old one is valid then.

    False when another process's sweep took the temporary file for a leftover: prepare it again.
    """
    folder, manifest = prepared.folder, prepared.manifest
    try:
        rename_over(prepared.temporary, folder / manifest.file)
        sync_folder(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise disk_error(error, folder) from error
    text = json.dumps({"format": MANIFEST_FORMAT, **manifest._asdict()}, ensure_ascii=False, indent=2) + "\n"
    with FileReplacement(folder / MANIFEST) as out:
        out.write(text.encode())
    sweep(folder, keep=manifest.file)
    return True


def discard(prepared: Prepared) -> None:
    """Throw a prepared partition away; one that was published stays."""
    prepared.temporary.unlink(missing_ok=True)


def _noting(rows: Iterable[archive.Row], digests: list[str]) -> Iterator[archive.Row]:
    for row in rows:
        digests.append(row.digest)
        yield row


def drop(folder: Path) -> None:
    """Remove a partition that has no rows any more: its manifest first, then the files that prove themselves ours."""
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
        sweep(folder, keep="")
        for path in (folder, folder.parent):
            if path.exists() and not any(path.iterdir()):
                path.rmdir()
    except OSError as error:
        raise disk_error(error, folder) from error


def sweep(folder: Path, *, keep: str) -> None:
    """Remove leftovers: files of ours that the manifest no longer names, and temporary files of killed runs."""
    for path in folder.iterdir():
        if path.name != keep and (proves_itself(path) or path.name.startswith(".records.parquet.qiju-tmp-")):
            path.unlink(missing_ok=True)
    sync_folder(folder)


def proves_itself(path: Path) -> bool:
    """Whether a file's name carries the hash of its bytes, as only a whole file of ours does."""
    match = _FILE_NAME.match(path.name)
    if match is None or path.is_symlink() or not path.is_file():
        return False
    return file_sha256(path).startswith(match[1])


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sound(folder: Path, manifest: Manifest) -> str:
    """'' when the file that the manifest names is there, byte for byte; else what is wrong with it."""
    path = folder / manifest.file
    try:
        if path.is_symlink() or not path.is_file():
            return f"{path} is missing"
        if path.stat().st_size != manifest.size or file_sha256(path) != manifest.sha256:
            return f"{path} is damaged: its bytes are not those that were written"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return ""


def folders(home: Path) -> Iterator[Path]:
    """Every month folder below the archive, in the order of names."""
    root = home / ARCHIVE
    for project in sorted(root.glob("project=*")) if root.is_dir() else ():
        if project.is_dir() and not project.is_symlink():
            for month in sorted(project.glob("month=*")):
                if month.is_dir() and not month.is_symlink():
                    yield month


def foreign(home: Path, store_id: str) -> list[Foreign]:
    """Files below `archive/` that are not provably this store's: damaged, another store's or program's, strays."""
    root = home / ARCHIVE
    if not root.is_dir():
        return []
    known: set[Path] = set()
    found: list[Foreign] = []
    for folder in folders(home):
        try:
            manifest = load(folder)
        except Refused as error:
            found.append(Foreign(folder / MANIFEST, str(error)))
            known.add(folder / MANIFEST)
            continue
        if manifest is None:
            continue
        known.add(folder / MANIFEST)
        if manifest.store_id != store_id:
            found.append(Foreign(folder / MANIFEST, "belongs to another store"))
            known.add(folder / manifest.file)
        elif problem := sound(folder, manifest):
            found.append(Foreign(folder / manifest.file, problem))
            known.add(folder / manifest.file)
        else:
            known.add(folder / manifest.file)
    for path in sorted(root.rglob("*")):
        if path not in known and not path.is_dir() and not path.name.startswith("."):
            found.append(Foreign(path, _stray(path)))
    return found


def _stray(path: Path) -> str:
    if path.suffix != ".parquet":
        return "not a file of the archive"
    if path.stat().st_size == 0:
        return "an empty file"
    if proves_itself(path):
        return "a leftover of an interrupted run; the next maintain removes it"
    from qiju.errors import QijuError

    try:
        return "Parquet of this format without a manifest" if archive.is_ours(path) else "Parquet of unknown origin"
    except QijuError:
        return "damaged: not readable as Parquet"
