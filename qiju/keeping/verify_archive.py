"""The archive's files against the bytes that were written and against the rows of the database.

A file whose rows have changed since (a redaction, a retag) is not damaged: the next `maintain` rewrites it. A file is
at fault when its bytes are not those that were written, when it contradicts a row that has not changed since, or when
it holds a record that the database has lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qiju import archive
from qiju.errors import QijuError
from qiju.keeping import partitions
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.keeping.verify import Report
    from qiju.store import Store

# Of what is found below `archive/` and is not a sound file of this store: the beginnings of what is no damage.
_HARMLESS = ("a leftover", "belongs to another store", "not a file of the archive", "Parquet of")


def check_archive(store: Store, report: Report) -> None:
    """Check every partition and name every stray below `archive/`. Reads the files, unless `report.quick`."""
    for stray in partitions.foreign(store.home, store.db.setting("store_id")):
        if stray.reason.startswith(_HARMLESS):
            report.notice("archive", str(stray.path), stray.reason)
        else:
            report.fault("archive", str(stray.path), stray.reason)
    files = 0
    for folder in partitions.folders(store.home):
        try:
            manifest = partitions.load(folder)
        except QijuError:
            continue  # named above
        if manifest is None or partitions.sound(folder, manifest):
            continue
        files += 1
        if not report.quick and manifest.store_id == store.db.setting("store_id"):
            _compare(store, report, folder / manifest.file)
    for path, sha256 in store.db.connection.execute("SELECT path, sha256 FROM archive_partition").fetchall():
        if not (store.home / str(path)).is_file():
            report.fault("archive", str(store.home / str(path)), f"is missing (SHA-256 {str(sha256)[:16]}...)")
    report.counts["archive_files"] = files


def _compare(store: Store, report: Report, file: Path) -> None:
    stale = 0
    try:
        for row in archive.read(file):
            found = store.db.connection.execute("SELECT rev, digest FROM record WHERE seq = ?", (row.seq,)).fetchone()
            if found is None:
                sql = "SELECT 1 FROM tombstone WHERE what = 'record' AND seq = ?"
                if store.db.value(sql, (row.seq,)) is None:
                    where = f"{row.project}/{row.id} (seq {row.seq})"
                    report.fault("archive", str(file), f"holds {where}, which the database has lost")
                stale += 1
            elif found[0] != row.rev:
                stale += 1
            elif found[1] and found[1] != row.digest:
                report.fault("archive", str(file), f"contradicts {row.project}/{row.id} (seq {row.seq})")
    except QijuError as error:
        report.fault("archive", str(file), str(error))
        return
    if stale:
        changed = counted(stale, "row has changed", "rows have changed")
        report.notice("archive", str(file), f"{changed} since; the next maintain rewrites it")
