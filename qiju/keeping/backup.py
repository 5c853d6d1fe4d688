"""A copy of the live store, taken while others write, and proven before it counts.

The copy is one snapshot through SQLite's own backup interface, in one file without a write-ahead log, so that it can be
moved and opened anywhere. It is then opened on its own and checked: structure, every record's digest, the commitment,
and the same counts as the snapshot had. Beside it lies a manifest (`<file>.json`) with the SHA-256 of the file's bytes,
which `restore` compares first. The store key is not in it; `with_key` writes it to `<file>.key`.

What Qiju keeps itself lies in `backups/` below the home and is what `--list` shows and `--keep` rotates: only whole
backups made by `backup`, never the copies made before a schema change or kept by a restore.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import apsw

import qiju
from qiju import storekey
from qiju.db import Database
from qiju.errors import NotFound, QijuError, Refused, StorageFailed, UsageError, VerificationFailed
from qiju.files import FileReplacement, PathReplacement, disk_error, sweep_folder, sync_folder
from qiju.jsontext import JsonValue
from qiju.store import Store, database_path

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = "backups"
FORMAT = 1
_NAME = re.compile(r"(qiju|before-schema-\d+|replaced)-(\d{8}T\d{6}Z)(?:-(\d+))?\.db\Z")
_STEP_PAGES = 2048


class Manifest(NamedTuple):
    """What a backup holds. `rev` and `watermark` (highest `seq`) are the store's at the snapshot; `size` in bytes."""

    created: str
    qiju_version: str
    schema: int
    store_id: str
    records: int
    watermark: int
    rev: int
    commitment: str
    sha256: str
    size: int


class Kept(NamedTuple):
    """A file in the backups folder. `kind` is backup, before-schema or replaced; `manifest` only of whole backups."""

    path: Path
    kind: str
    size: int
    manifest: Manifest | None
    has_key: bool


class Made(NamedTuple):
    """A backup that was made and proven. `rotated` are the older ones that went for it."""

    path: Path
    manifest: Manifest
    key: Path | None
    rotated: tuple[Path, ...]


def folder(home: Path) -> Path:
    """Where Qiju keeps its own backups."""
    return home / FOLDER


def manifest_path(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def key_path(path: Path) -> Path:
    return path.with_name(path.name + ".key")


def fresh_name(home: Path, prefix: str) -> Path:
    """A name in the backups folder that nothing has yet. Makes the folder. Raises `StorageFailed`."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    place = folder(home)
    try:
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)
            place.chmod(0o700)
        sweep_folder(place)
    except OSError as error:
        raise disk_error(error, place) from error
    number = 1
    while True:
        path = place / f"{prefix}-{stamp}{'' if number == 1 else f'-{number}'}.db"
        if not path.exists():
            return path
        number += 1


def backup(
    store: Store,
    target: Path | None = None,
    *,
    prefix: str = "qiju",
    with_key: bool = False,
    keep: int | None = None,
    step: Callable[[int], object] | None = None,
) -> Made:
    """Make a backup at `target`, else in the backups folder, and prove it.

    Raises `NotFound` without a store, `Refused` for a target that exists, `StorageFailed`, and `VerificationFailed`
    when the copy does not check out; nothing is left behind then.
    """
    if store.db.path is None:
        raise NotFound(f"there is no store in {store.home} yet", hint="'qiju log' makes one")
    if keep is not None and keep < 1:
        raise UsageError("--keep needs a number of at least 1")
    key = storekey.read(store.home)
    if with_key and key is None:
        raise NotFound(f"{storekey.path(store.home)} is not there", hint="leave --with-key out")
    path = fresh_name(store.home, prefix) if target is None else _target(store.home, target)
    with PathReplacement(path, protected=[database_path(store.home), storekey.path(store.home)]) as temporary:
        copy_database(store.db, temporary, step)
        manifest = prove(temporary, store.home)
        # Its companions first: the backup gets its name last, and a run cut short leaves nothing in the next one's way.
        _write_manifest(path, manifest)
        written_key = _write_key(path, key) if with_key and key is not None else None
    gone = rotate(store.home, keep, prefix) if keep is not None else ()
    return Made(path, manifest, written_key, gone)


def _target(home: Path, target: Path) -> Path:
    if target.is_dir():
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        target = target / f"qiju-{stamp}.db"
    if target.exists() or target.is_symlink():
        raise Refused(f"{target} exists already", hint="give another name; a backup never replaces a file")
    read_manifest(target)  # raises when the file of that name is somebody else's
    kept = key_path(target)
    if kept.is_symlink() or (kept.exists() and kept.stat().st_size != storekey.LENGTH):
        raise Refused(f"{kept} exists already and is not a store key", hint="give the backup another name")
    return target


def copy_database(db: Database, target: Path, step: Callable[[int], object] | None = None) -> None:
    """Copy one snapshot of an open store into the (empty) file `target`, which ends up without a write-ahead log."""
    copy = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        copy.execute("PRAGMA synchronous = OFF")  # the file is flushed as a whole before it gets its name
        # The read transaction holds the snapshot, so writers do not make the copy begin anew.
        with db.read() as connection:
            connection.execute("SELECT count(*) FROM setting").fetchall()
            with copy.backup("main", connection, "main") as run:
                while not run.done:
                    run.step(_STEP_PAGES)
                    if step is not None:
                        step(_STEP_PAGES)
        copy.execute("PRAGMA journal_mode = DELETE")
    except (apsw.FullError, apsw.IOError) as error:
        raise StorageFailed(f"cannot write {target}: {error}", hint="free some space and run it again") from error
    finally:
        copy.close()


def prove(path: Path, home: Path) -> Manifest:
    """Open a copy on its own, check it, and say what it holds. Raises `VerificationFailed`."""
    from qiju.keeping.verify import verify_database

    with Store(Database.open_for_reading(path), home) as copied:
        report = verify_database(copied, quick=True)
        if not report.ok:
            first = report.faults[0]
            raise VerificationFailed(
                f"the copy does not check out ({first.check}: {first.where}: {first.message})",
                hint="the store itself may be damaged: run 'qiju verify'",
            )
        return describe(copied.db, path)


def describe(db: Database, path: Path) -> Manifest:
    """The manifest of an open copy that lies at `path`."""
    from qiju.keeping.partitions import file_sha256
    from qiju.record import format_instant

    return Manifest(
        format_instant(time.time_ns() // 1000),
        qiju.__version__,
        db.version(),
        db.setting("store_id"),
        int(db.value("SELECT count(*) FROM record")),
        int(db.value("SELECT seq FROM sqlite_sequence WHERE name = 'record'") or 0),
        db.counter("rev"),
        db.setting("commitment"),
        file_sha256(path),
        path.stat().st_size,
    )


def _write_manifest(path: Path, manifest: Manifest) -> None:
    text = json.dumps({"format": FORMAT, **manifest._asdict()}, indent=2) + "\n"
    with FileReplacement(manifest_path(path)) as out:
        out.write(text.encode("utf-8"))


def _write_key(path: Path, key: bytes) -> Path:
    with FileReplacement(key_path(path)) as out:
        out.write(key)
    return key_path(path)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest beside a backup, or None without one. Raises `Refused` when it cannot be understood."""
    place = manifest_path(path)
    try:
        value = json.loads(place.read_text(encoding="utf-8"))
        if value["format"] != FORMAT:
            raise ValueError(f"format {value['format']}")
        return Manifest(**{name: value[name] for name in Manifest._fields})
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed(f"{place} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"{place} is not a backup's manifest: {error}", hint="move it away to have the backup checked without it"
        ) from error


def refresh_manifest(path: Path) -> None:
    """Write the manifest of a backup anew after its content was changed on purpose (a redaction)."""
    before = read_manifest(path)
    if before is None:
        return
    db = Database.open_for_reading(path)
    try:
        _write_manifest(path, describe(db, path)._replace(created=before.created))
    finally:
        db.close()


def listed(home: Path) -> list[Kept]:
    """What lies in the backups folder, oldest first."""
    found: list[tuple[tuple[str, int], Kept]] = []
    try:
        names = sorted(entry.name for entry in os.scandir(folder(home)) if entry.is_file(follow_symlinks=False))
    except FileNotFoundError:
        return []
    for name in names:
        match = _NAME.match(name)
        if match is None:
            continue
        path = folder(home) / name
        kind = "backup" if match[1] == "qiju" else match[1].rstrip("-0123456789")
        try:
            manifest = read_manifest(path)
        except QijuError:
            manifest = None
        kept = Kept(path, kind, path.stat().st_size, manifest, key_path(path).is_file())
        found.append(((match[2], int(match[3] or 1)), kept))
    found.sort(key=lambda one: one[0])
    return [kept for _when, kept in found]


def rotate(home: Path, keep: int, prefix: str = "qiju") -> tuple[Path, ...]:
    """Remove the oldest backups made by `backup` so that `keep` remain; returns what went."""
    own = [kept.path for kept in listed(home) if kept.path.name.startswith(f"{prefix}-")]
    gone = tuple(own[:-keep])
    try:
        for path in gone:
            for file in (path, manifest_path(path), key_path(path)):
                file.unlink(missing_ok=True)
        if gone:
            sync_folder(folder(home))
    except OSError as error:
        raise disk_error(error, folder(home)) from error
    return gone


def to_json(kept: Kept) -> dict[str, JsonValue]:
    manifest: JsonValue = None if kept.manifest is None else dict(kept.manifest._asdict())
    return {
        "path": str(kept.path),
        "kind": kept.kind,
        "size": kept.size,
        "key": kept.has_key,
        "manifest": manifest,
    }
