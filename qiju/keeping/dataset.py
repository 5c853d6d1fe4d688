"""A folder of Parquet files, one a month, as `qiju export --format parquet` writes it.

`month=<YYYY-MM>/records-0001.parquet`: any Parquet tool reads `month` as a column from the folder's name. The project
is a column, not a folder: many small projects would make thousands of tiny files, and no name has to survive a path.
`export.json` names every file with its rows, size and SHA-256; a later export over the same folder replaces only what
it names.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import archive
from qiju.files import sync_file
from qiju.keeping.partitions import file_sha256
from qiju.keeping.tiers import month_bounds
from qiju.record import format_instant

if TYPE_CHECKING:
    import pyarrow as pa

DESCRIPTION = "export.json"
FORMAT = 1
NO_MONTH = "none"  # records without an instant


class Part(NamedTuple):
    """One file: its path below the folder (posix), rows, bytes, SHA-256."""

    path: str
    rows: int
    size: int
    sha256: str


def owned(folder: Path) -> list[str]:
    """The files that an earlier export put into `folder`, by their names below it; empty when none did."""
    try:
        described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        names = [str(part["path"]) for part in described["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [DESCRIPTION, *names]


def month_of(instant: int | None) -> str:
    """YYYY-MM (UTC) of an instant in microseconds."""
    return NO_MONTH if instant is None else format_instant(instant)[:7]


def write(folder: Path, batches: Iterable[list[archive.Row]], view: str) -> list[Part]:
    """Write rows, which come ordered by instant, into `folder`. Without rows, one empty file carries the schema."""
    from concurrent.futures import Future, ThreadPoolExecutor

    months = _Months(folder, view)
    pending: Future[None] | None = None
    try:
        # Compression runs beside the reading of the next group: pyarrow lets go of the interpreter meanwhile.
        with ThreadPoolExecutor(max_workers=1) as pool, _uncollected():
            for group in _by_month(batches):
                table = archive.batch(group, months.schema)
                if pending is not None:
                    pending.result()
                pending = pool.submit(months.put, month_of(group[0].instant), table)
            if pending is not None:
                pending.result()
        return months.finish()
    except BaseException as error:
        months.abandon(error)
        raise


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cycle collector: rows hold no cycles, and looking through each new one costs a tenth of the work."""
    import gc

    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Months:
    """The files of a data set, one open at a time."""

    def __init__(self, folder: Path, view: str) -> None:
        self.folder = folder
        self.view = view
        self.schema = archive.schema(view)
        self.month = ""
        self.parts: list[Part] = []
        self._writer: archive.Writer | None = None

    def put(self, month: str, table: pa.RecordBatch) -> None:
        """Write rows that lie within one month."""
        if self._writer is None or month != self.month:
            self._close()
            self.month = month
            place = self.folder / f"month={month}"
            place.mkdir(exist_ok=True)
            self._writer = archive.Writer(place / "records-0001.parquet", view=self.view)
        self._writer.write_batch(table, 0)

    def finish(self) -> list[Part]:
        self._close()
        if not self.parts:
            self._writer = archive.Writer(self.folder / "records-0001.parquet", view=self.view)
            self._close()
        return self.parts

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        writer.__exit__(None, None, None)
        sync_file(writer.path)
        name = writer.path.relative_to(self.folder).as_posix()
        self.parts.append(Part(name, writer.rows, writer.path.stat().st_size, file_sha256(writer.path)))

    def abandon(self, error: BaseException) -> None:
        """Let go of the open file; the caller throws the folder away."""
        if self._writer is not None:
            self._writer.__exit__(type(error), error, error.__traceback__)


def _by_month(batches: Iterable[list[archive.Row]]) -> Iterator[list[archive.Row]]:
    """Groups that are bounded and lie within one month."""
    for group in archive.joined(batches):
        begin = 0
        while begin < len(group):
            end = len(group)
            first = group[begin].instant
            if first is not None:
                _, after = month_bounds(month_of(first))
                # Rows come by instant, so the end of a month is found without looking at each.
                end = bisect_left(group, after, lo=begin, key=_instant)
            yield group[begin:end]
            begin = end


def _instant(row: archive.Row) -> int:
    return row.instant if row.instant is not None else 2**63


def describe(parts: list[Part], view: str, rev: int, loss: dict[str, Any]) -> dict[str, Any]:
    """The content of `export.json`."""
    return {
        "format": FORMAT,
        "archive_format": archive.FORMAT,
        "privacy_view": view,
        "record_count": sum(part.rows for part in parts),
        "rev": rev,
        "loss": loss,
        "files": [part._asdict() for part in parts],
    }
