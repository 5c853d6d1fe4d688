"""Deleted records taken out of the files that hold copies of them: backups, exports, the predecessor's files.

A backup of this store knows a record by its sequence number, everything else by project and id. Text in which records
cannot be told apart (Markdown, HTML) is never cut; such a file is named when it still holds a passage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from qiju import archive, jsontext
from qiju.db import Database
from qiju.erasure import databases, indexes
from qiju.errors import InvalidJson, StoreDamaged
from qiju.files import FileReplacement, PathReplacement
from qiju.jsontext import JsonValue
from qiju.store import Store

if TYPE_CHECKING:
    from qiju.erasure.secret import Sought


class Gone(NamedTuple):
    """One deleted record."""

    seq: int
    project: str
    id: str


class Passages:
    """Passages of deleted records that stand nowhere else: what a byte scan looks for. See `Sought`."""

    def __init__(self, passages: Iterable[str]) -> None:
        self.passages = tuple(dict.fromkeys(passages))
        self._needles = tuple(passage.encode("utf-8", "surrogatepass") for passage in self.passages)

    @property
    def needles(self) -> tuple[bytes, ...]:
        return self._needles or (b"\0" * 64,)  # never empty, so that chunks have a width

    def in_text(self, text: str) -> bool:
        return any(passage in text for passage in self.passages)

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [(at, at + len(one)) for one in self.passages if (at := text.find(one)) >= 0]

    def hits(self, data: bytes) -> list[tuple[int, int]]:
        from qiju.erasure.secret import places

        return places(data, self._needles)

    def in_bytes(self, data: bytes) -> bool:
        return any(needle in data for needle in self._needles)


def remove(path: Path, kind: str, gone: list[Gone], store_id: str) -> int:
    """Take the records out of one file; how many it held. Raises `StoreDamaged`, `StorageFailed`, `StoreBusy`."""
    if kind == "sqlite":
        return _from_store(path, gone, store_id) if databases.is_store(path) else _from_database(path, gone)
    if kind == "parquet":
        return _from_parquet(path, gone)
    return _from_text(path, gone)


def holds_passage(path: Path, kind: str, sought: Sought) -> bool:
    """Whether a file still holds a passage, decoded."""
    from qiju.erasure import columnar, proof

    if kind == "parquet" and columnar.holds(path, sought):
        return True
    return bool(proof.file_holds(path, sought))


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _from_store(path: Path, gone: list[Gone], store_id: str) -> int:
    with Database.open(path) as db:
        if db.setting("store_id") != store_id:
            return 0
        store, removed = Store(db, path.parent), 0
        with db.write() as connection:
            for one in gone:
                stored = store.by_seq(one.seq)
                if stored is not None:
                    store.delete(connection, stored)
                    removed += 1
        # A tombstone without a row is a run that ended between the deletion and the cleaning.
        dirty = removed or any(
            db.value("SELECT 1 FROM tombstone WHERE what = 'record' AND seq = ?", (one.seq,)) for one in gone
        )
        if dirty:
            indexes.merge(db)
            indexes.vacuum(db)
            indexes.cut_wal(db)
    if dirty:
        databases.refresh(path)
    return removed


def _from_database(path: Path, gone: list[Gone]) -> int:
    removed = 0

    def delete(connection: apsw.Connection) -> None:
        nonlocal removed
        if {"id", "project"} <= {str(row[1]) for row in connection.execute("PRAGMA table_info(record)")}:
            for one in gone:
                connection.execute("DELETE FROM record WHERE id = ? AND project = ?", (one.id, one.project))
                removed += connection.changes()

    databases.change(path, delete)
    return removed


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _from_parquet(path: Path, gone: list[Gone]) -> int:
    wanted = {(one.project, one.id) for one in gone}
    if archive.is_ours(path):
        view, rows = archive.view_of(path), list(archive.read(path))
        kept = [row for row in rows if (row.project, row.id) not in wanted]
        if len(kept) < len(rows):
            with PathReplacement(path) as fresh:
                archive.write(fresh, kept, view=view)
        return len(rows) - len(kept)
    return _from_foreign_parquet(path, wanted)


def _from_foreign_parquet(path: Path, wanted: set[tuple[str, str]]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        with path.open("rb") as handle, parquet.ParquetFile(handle) as file:
            if not {"id", "project"} <= set(file.schema_arrow.names):
                return 0
            table = file.read()
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    pairs = zip(table.column("project").to_pylist(), table.column("id").to_pylist(), strict=True)
    mask = [pair not in wanted for pair in pairs]
    removed = mask.count(False)
    if removed:
        with PathReplacement(path) as fresh:
            parquet.write_table(table.filter(pa.array(mask)), fresh, write_statistics=False)
    return removed


# --- text ------------------------------------------------------------------------------------------------------------


def _from_text(path: Path, gone: list[Gone]) -> int:
    wanted = {(one.project, one.id) for one in gone}
    data = path.read_bytes()
    if not any(one.id.encode() in data for one in gone):
        return 0
    removed = 0
    try:
        value, removed = _without(jsontext.parse(data), wanted)
        lines = [jsontext.pretty(value).encode("utf-8"), b"\n"]
    except (InvalidJson, RecursionError):
        lines = []
        for line, known in _records(data):
            if known in wanted:
                removed += 1
            else:
                lines.append(line)
    if removed:
        with FileReplacement(path) as out:
            out.writelines(lines)
    return removed


def _records(data: bytes) -> Iterator[tuple[bytes, tuple[str, str] | None]]:
    for line in data.splitlines(keepends=True):
        try:
            yield line, _identity(jsontext.parse(line))
        except (InvalidJson, RecursionError):
            yield line, None


def _identity(value: JsonValue) -> tuple[str, str] | None:
    """Project and id of a record, or of a trajectory record that carries one."""
    if not isinstance(value, dict):
        return None
    payload = value.get("payload")
    if isinstance(payload, dict) and "project" in payload:
        value = payload
    project, identity = value.get("project"), value.get("id")
    return (project, identity) if isinstance(project, str) and isinstance(identity, str) else None


def _without(value: Any, wanted: set[tuple[str, str]]) -> tuple[Any, int]:
    """A JSON value whose lists hold none of the records."""
    if isinstance(value, list):
        kept = [part for part in value if _identity(part) not in wanted]
        removed = len(value) - len(kept)
        parts = [_without(part, wanted) for part in kept]
        return [part for part, _ in parts], removed + sum(count for _, count in parts)
    if isinstance(value, dict):
        inner = {key: _without(part, wanted) for key, part in value.items()}
        return {key: part for key, (part, _) in inner.items()}, sum(count for _, count in inner.values())
    return value, 0
