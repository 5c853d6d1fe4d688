"""The database's side of the archive: what a partition ought to hold, and bringing its file up to that.

A partition is current when its manifest counts the same rows with the same highest `rev` and the same digest as the
database, and its file is there byte for byte. Anything else (a redaction, a retag, a late row, a killed run, a lost
file) makes it stale, and it is written anew from the rows; nothing has to remember that it became so.

A file becomes the valid one under the write lock, after another look at the rows: a redaction that comes in while a
month is being compressed must not be undone by a file that still holds the value.

One thing stops a rewrite: rows in the old file that this store neither holds nor has deleted. After a loss of the
database that file may be the only copy, so it is named and left for `qiju import`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qiju import archive
from qiju.errors import QijuError, Refused, StoreBusy
from qiju.keeping import partitions, tiers
from qiju.rows import COLUMNS, stored
from qiju.wording import counted

if TYPE_CHECKING:
    import apsw

    from qiju.db import Database

_ROW = f"SELECT {', '.join(archive.NAMES)} FROM record WHERE seq = ?"
_STORED = f"SELECT {COLUMNS} FROM record WHERE seq = ?"

ATTEMPTS = 5


class Wanted(NamedTuple):
    """What a partition ought to hold: `digest` as in its manifest; `moving` are those rows still in the long tier."""

    seqs: Sequence[int]
    moving: Sequence[int]
    rev: int
    digest: str


class Outcome(NamedTuple):
    """`state` is current, written or removed; `moved` records changed their label; `size` in bytes of the file."""

    project: str
    month: str
    state: str
    path: Path
    rows: int
    moved: int
    size: int


def row(connection: apsw.Connection, seq: int) -> archive.Row | None:
    """One record as an archive row; one written by hand gets the digest of what it holds now."""
    values = connection.execute(_ROW, (seq,)).fetchone()
    if values is None:
        return None
    found = archive.Row(*values)
    if found.digest:
        return found
    whole = stored(connection.execute(_STORED, (seq,)).fetchone() or ())
    return archive.row_of(
        whole.record,
        seq=seq,
        rev=found.rev,
        tier=found.tier,
        instant=found.instant,
        digest=whole.record.digest(),
    )


def rows(connection: apsw.Connection, seqs: Sequence[int]) -> Iterator[archive.Row]:
    """The records of a partition in order, labelled as the archive will have them."""
    for seq in seqs:
        found = row(connection, seq)
        if found is not None:
            yield found._replace(tier="archive")


def wanted(connection: apsw.Connection, project: str, month: str, *, with_long: bool) -> Wanted:
    """What the partition of a month ought to hold; `with_long` counts the sealed rows that are about to move there."""
    first, after = tiers.month_bounds(month)
    tier = "(tier = 'archive' OR (tier = 'long' AND digest <> ''))" if with_long else "tier = 'archive'"
    seqs, moving, digests = array("q"), array("q"), []
    highest = 0
    for seq, rev, digest, label in connection.execute(
        f"SELECT seq, rev, digest, tier FROM record WHERE project = ? AND instant >= ? AND instant < ? AND {tier} "
        "ORDER BY seq",
        (project, first, after),
    ):
        seqs.append(seq)
        if label == "long":
            moving.append(seq)
        if not digest:
            found = row(connection, seq)
            digest = found.digest if found is not None else ""
        digests.append(digest)
        highest = max(highest, rev)
    return Wanted(seqs, moving, highest, partitions.rows_digest(digests))


def bring_up_to_date(db: Database, home: Path, project: str, month: str, *, with_long: bool) -> Outcome:
    """Write, leave or remove the partition of a month, then move its rows' labels. Safe to be killed anywhere.

    Raises `Refused` when the folder holds rows or a manifest that are not this store's, `StorageFailed`,
    `StoreDamaged` when a row or the file written cannot be read back, `StoreBusy` when the rows never held still;
    labels have not moved then.
    """
    folder = partitions.folder_of(home, project, month)
    for _ in range(ATTEMPTS):
        manifest = partitions.load(folder)
        prepared = None
        # One snapshot for writing and reading back; a partition is bounded by a month, and writers are not held up.
        with db.read() as connection:
            store_id = db.setting("store_id")
            if manifest is not None and manifest.store_id != store_id:
                raise Refused(
                    f"{folder} belongs to another store", hint=f"move it away, or take it over: qiju import '{folder}'"
                )
            want = wanted(connection, project, month, with_long=with_long)
            current = manifest is not None and _is_current(folder, manifest, want)
            if not current:
                _refuse_strangers(connection, folder, manifest)
                if want.seqs:
                    prepared = partitions.prepare(home, store_id, project, month, partial(rows, connection, want.seqs))
        try:
            if _settle(db, home, want, manifest, prepared, folder, (project, month), with_long=with_long):
                break
        finally:
            if prepared is not None:
                partitions.discard(prepared)
    else:
        raise StoreBusy(f"the records of {project} in {month} changed again and again", hint="run it again later")
    moved = tiers.move(db, want.moving, "long", "archive", lambda _: None)
    valid = prepared.manifest if prepared is not None else manifest
    state = "current" if current else "written" if prepared is not None else "removed"
    if valid is None or state == "removed":
        return Outcome(project, month, state, folder, 0, moved, 0)
    return Outcome(project, month, state, folder / valid.file, valid.rows, moved, valid.size)


def _settle(
    db: Database,
    home: Path,
    want: Wanted,
    manifest: partitions.Manifest | None,
    prepared: partitions.Prepared | None,
    folder: Path,
    key: tuple[str, str],
    *,
    with_long: bool,
) -> bool:
    """Under the write lock: make the file valid, unless its rows changed since they were read.

    The lock is what keeps a redaction from slipping in between: it either commits before, and the rows are read again,
    or after, and then it brings this partition up to date itself.
    """
    with db.write() as connection:
        if wanted(connection, *key, with_long=with_long) != want:
            return False
        if prepared is not None:
            if not partitions.publish(prepared):
                return False
            _note(connection, home, folder, *key, prepared.manifest)
        elif not want.seqs:
            partitions.drop(folder)
            _note(connection, home, folder, *key, None)
        else:
            assert manifest is not None
            partitions.sweep(folder, keep=manifest.file)
            _note(connection, home, folder, *key, manifest)
    return True


def is_current(db: Database, home: Path, project: str, month: str, *, with_long: bool) -> bool:
    """Whether nothing would be written; raises as `bring_up_to_date` does for what it would refuse."""
    folder = partitions.folder_of(home, project, month)
    manifest = partitions.load(folder)
    with db.read() as connection:
        want = wanted(connection, project, month, with_long=with_long)
        if manifest is None:
            return not want.seqs
        return manifest.store_id == db.setting("store_id") and _is_current(folder, manifest, want)


def _is_current(folder: Path, manifest: partitions.Manifest, want: Wanted) -> bool:
    told = (manifest.rows, manifest.rev, manifest.digest)
    return told == (len(want.seqs), want.rev, want.digest) and not partitions.sound(folder, manifest)


def _refuse_strangers(connection: apsw.Connection, folder: Path, manifest: partitions.Manifest | None) -> None:
    """Raise when the valid file holds rows that the store neither has, nor has changed, nor has deleted."""
    if manifest is None or partitions.sound(folder, manifest):
        return  # no file, or one damaged beyond what can be compared; damaged bytes are left to lie, under their name
    path = folder / manifest.file
    strangers = 0
    for found in archive.read(path):
        known = connection.execute(
            "SELECT 1 FROM record WHERE seq = ? AND (revised = 1 OR (id = ? AND project = ?)) "
            "UNION ALL SELECT 1 FROM tombstone WHERE what = 'record' AND seq = ?",
            (found.seq, found.id, found.project, found.seq),
        ).fetchone()
        strangers += known is None
    if strangers:
        raise Refused(
            f"{path} holds {counted(strangers, 'record')} that the store neither has nor has deleted",
            hint=f"take them over first: qiju import '{folder}'",
        )


def _note(
    connection: apsw.Connection,
    home: Path,
    folder: Path,
    project: str,
    month: str,
    manifest: partitions.Manifest | None,
) -> None:
    """Keep the partition's facts in the database too, where `verify` and `redact` look for them."""
    if manifest is None:
        connection.execute("DELETE FROM archive_partition WHERE project = ? AND month = ?", (project, month))
        return
    path = (folder / manifest.file).relative_to(home).as_posix()
    connection.execute(
        "INSERT INTO archive_partition (project, month, path, rows, rev, digest, sha256) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, month) DO UPDATE SET "
        "path = excluded.path, rows = excluded.rows, rev = excluded.rev, digest = excluded.digest, "
        "sha256 = excluded.sha256, written_at = excluded.written_at WHERE sha256 <> excluded.sha256",
        (project, month, path, manifest.rows, manifest.rev, manifest.digest, manifest.sha256),
    )


def stale(db: Database, home: Path, project: str | None) -> Iterator[tuple[str, str]]:
    """Project and month of every partition that is there or ought to be: each is to be brought up to date."""
    asked = set(tiers.archived_months(db, project))
    for folder in partitions.folders(home):
        try:
            manifest = partitions.load(folder)
        except QijuError:
            continue  # named by `partitions.foreign`
        if manifest is None or (project is not None and manifest.project != project):
            continue
        # A folder moved by hand would otherwise be looked for where it is not, and written a second time.
        if partitions.folder_of(home, manifest.project, manifest.month) == folder:
            asked.add((manifest.project, manifest.month))
    yield from sorted(asked)
