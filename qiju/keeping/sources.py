"""What `import` can read: each source as a stream of JSON values with the place they stand at.

Kinds are told by what a file holds, never by its name: Parquet by its magic bytes, SQLite by its header, the rest is
text. A folder is an exported data set (its Parquet files are read as one source) or a predecessor's store, which has
rules of its own and is taken over by `qiju.keeping.migrate`.

A stream yields values one at a time; a piece that cannot be read becomes an item with a `fault` instead of a value, so
that one bad piece never hides the others and every piece is counted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from qiju import jsontext
from qiju.errors import InvalidJson, InvalidRecord, NotFound, QijuError, Refused, StorageFailed, StoreDamaged
from qiju.jsontext import JsonValue
from qiju.keeping import lines

STDIN = "-"
_SQLITE_HEADER = b"SQLite format 3\0"
_PARQUET_MAGIC = b"PAR1"


class Item(NamedTuple):
    """One piece of a source. `line` counts lines, rows or items from 1 within `part` ('' when the source is one file).

    `fault` is '' or says why there is no value; `exact` is False where the source lost types and absent keys.
    """

    part: str
    line: int
    value: JsonValue
    fault: str = ""
    exact: bool = True


class Source(NamedTuple):
    """`kind` is json, parquet, sqlite, dataset or predecessor; `size` in bytes, None when unknown (standard input)."""

    path: str
    kind: str
    size: int | None


def recognise(path: str) -> Source:
    """What stands at `path`. Raises `NotFound` when nothing does, `Refused` for a folder that holds no records."""
    if path == STDIN:
        return Source(path, "json", None)
    place = Path(path)
    try:
        if place.is_dir():
            return Source(path, _folder_kind(place), None)
        if not place.is_file() and place.exists():
            return Source(path, "json", None)  # a pipe, `<(zcat ...)`: what is looked at here could not be read again
        with place.open("rb") as handle:
            head = handle.read(16)
        size = place.stat().st_size
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist") from error
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}") from error
    if head.startswith(_PARQUET_MAGIC):
        return Source(path, "parquet", size)
    if head == _SQLITE_HEADER:
        return Source(path, "sqlite", size)
    if head.startswith(b"# "):  # no JSON begins so; each of its lines would be called a torn record
        raise Refused(f"{path} is Markdown, which is for reading only", hint="export again with --format jsonl")
    return Source(path, "json", size)


def _folder_kind(folder: Path) -> str:
    from qiju.legacy import is_store

    if parts(folder):
        return "dataset"
    if is_store(folder):
        return "predecessor"
    raise Refused(
        f"{folder} holds neither an exported data set nor a predecessor's store",
        hint="give a JSONL, JSON, Parquet or SQLite file, or the folder that `qiju export --format parquet` wrote",
    )


def parts(folder: Path) -> list[Path]:
    """The Parquet files of a data set that Qiju exported or archived, in the order of their names."""
    if not ((folder / "export.json").is_file() or any(folder.glob("**/records-*.parquet"))):
        return []
    return sorted(path for path in folder.rglob("records-*.parquet") if path.is_file() and not path.is_symlink())


def read(source: Source) -> Iterator[Item]:
    """The items of a source, in its order. Raises `QijuError` when the source as a whole cannot be read on."""
    if source.path == STDIN:
        yield from _json(sys.stdin.buffer, "standard input")
    elif source.kind == "json":
        try:
            with Path(source.path).open("rb") as handle:
                yield from _json(handle, source.path)
        except OSError as error:
            raise StorageFailed(f"{source.path} cannot be read: {error.strerror}") from error
    elif source.kind == "parquet":
        yield from _parquet(Path(source.path), "")
    elif source.kind == "dataset":
        folder = Path(source.path)
        for path in parts(folder):
            yield from _parquet(path, path.relative_to(folder).as_posix())
    elif source.kind == "sqlite":
        yield from _sqlite(Path(source.path))
    else:
        raise Refused(f"{source.path} is a predecessor's store", hint=f"qiju migrate --from-qiju '{source.path}'")


def _json(handle: BinaryIO, name: str) -> Iterator[Item]:
    for piece in lines.read_pieces(handle, name=name):
        if piece.data is None:
            yield Item("", piece.line, None, f"longer than {lines.MAX_PIECE // 1024 // 1024} MiB")
            continue
        try:
            value = jsontext.parse(piece.data, name="the text")
        except InvalidJson as error:
            yield Item("", piece.line, None, _why(error, piece.data))
        else:
            yield Item("", piece.line, value)


def _why(error: InvalidJson, data: bytes) -> str:
    """The fault of a line; the parser's own line number (always 1 here) would only mislead."""
    reason = str(error).removeprefix("the text, ").removeprefix("line 1 ").removeprefix("the text ")
    if "Extra data" in reason and b"}{" in data.replace(b" ", b""):
        return f"{reason} (several records glued together on one line)"
    if not data.rstrip().endswith(b"}"):
        return f"{reason} (the record has no end: a torn line)"
    return reason


def _parquet(path: Path, part: str) -> Iterator[Item]:
    from qiju import archive

    if not archive.is_ours(path):
        yield from _foreign_parquet(path, part)
        return
    for number, row in enumerate(archive.read(path), start=1):
        try:
            record = archive.record_of(row)
        except InvalidRecord as error:
            yield Item(part, number, None, str(error))
            continue
        # The stored digest is of the record as it was written: a row that does not match was damaged or edited.
        if row.digest and record.digest() != row.digest:
            yield Item(part, number, None, f"record {row.id} does not match its digest")
        else:
            yield Item(part, number, record.to_json())


def _foreign_parquet(path: Path, part: str) -> Iterator[Item]:
    from qiju.legacy import parquet

    month = path.parent.name.removeprefix("month=") if path.parent.name.startswith("month=") else ""
    for found in parquet.read_rows(path, month=month):
        if isinstance(found, parquet.Row):
            yield Item(part, found.number, found.value, exact=False)
        elif found.first == 0:
            raise StoreDamaged(f"{path}: {found.message}")
        else:
            for number in range(found.first, found.last + 1):
                yield Item(part, number, None, found.message)


def _sqlite(path: Path) -> Iterator[Item]:
    """Records of a public copy or of another store, through the standard library's SQLite: it is another file."""
    import sqlite3

    from qiju import archive

    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise StorageFailed(f"{path} cannot be opened: {error}") from error
    try:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(record)")}
        if not set(archive.NAMES) <= columns:
            raise Refused(f"{path} is an SQLite file without Qiju's table `record`")
        for number, values in enumerate(
            connection.execute(f"SELECT {', '.join(archive.NAMES)} FROM record ORDER BY seq"), start=1
        ):
            row = archive.Row(*values)
            try:
                record = archive.record_of(row)
            except QijuError as error:
                yield Item("", number, None, str(error))
                continue
            if row.digest and record.digest() != row.digest:
                yield Item("", number, None, f"record {row.id} does not match its digest")
            else:
                yield Item("", number, record.to_json())
    except sqlite3.Error as error:
        raise StoreDamaged(f"{path} cannot be read on: {error}") from error
    finally:
        connection.close()
