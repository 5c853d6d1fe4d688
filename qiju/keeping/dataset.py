"""A folder of Parquet files, one or more a month, as `qiju export --format parquet` writes it.

`month=<YYYY-MM>/records-<NNNN>.parquet`: any Parquet tool reads `month` as a column from the folder's name. The project
is a column, not a folder: many small projects would make thousands of tiny files, and no name has to survive a path.
`export.json` names every file with its rows, size and SHA-256; a later export over the same folder replaces only what
it names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from qiju import archive
from qiju.keeping.partitions import file_sha256
from qiju.record import format_instant

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


def month_of(row: archive.Row) -> str:
    """YYYY-MM (UTC) of a row's instant."""
    return NO_MONTH if row.instant is None else format_instant(row.instant)[:7]


def write(folder: Path, rows: Iterable[archive.Row], view: str) -> list[Part]:
    """Write rows, which come ordered by instant, into `folder`. Without rows, one empty file carries the schema."""
    parts: list[Part] = []
    writer: archive.Writer | None = None
    month = ""
    try:
        for group in _by_month(rows):
            if writer is None or month != month_of(group[0]):
                if writer is not None:
                    parts.append(_closed(writer, folder))
                month = month_of(group[0])
                place = folder / f"month={month}"
                place.mkdir(exist_ok=True)
                writer = archive.Writer(place / f"records-{_count(parts, month) + 1:04d}.parquet", view=view)
            writer.write(group)
        if writer is None:
            writer = archive.Writer(folder / "records-0001.parquet", view=view)
        parts.append(_closed(writer, folder))
    except BaseException as error:
        if writer is not None:
            writer.__exit__(type(error), error, error.__traceback__)
        raise
    return parts


def _count(parts: list[Part], month: str) -> int:
    return sum(part.path.startswith(f"month={month}/") for part in parts)


def _closed(writer: archive.Writer, folder: Path) -> Part:
    writer.__exit__(None, None, None)
    path = writer.path
    return Part(path.relative_to(folder).as_posix(), writer.rows, path.stat().st_size, file_sha256(path))


def _by_month(rows: Iterable[archive.Row]) -> Iterator[list[archive.Row]]:
    """Groups that are bounded and lie within one month."""
    for group in archive.grouped(rows):
        begin = 0
        for place in range(1, len(group)):
            if month_of(group[place]) != month_of(group[begin]):
                yield group[begin:place]
                begin = place
        yield group[begin:]


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
