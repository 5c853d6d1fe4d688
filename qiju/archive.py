"""Records as Parquet: one explicit Arrow schema, written the same by the archive and by the export.

The schema is written out, never inferred, because inference is what made the predecessor's archive add keys, drop empty
objects and turn text into dates. Lists of strings are lists, so that any Parquet tool can query them; what has no fixed
shape (unknown keys, redactions, lists holding something else than strings) is canonical JSON text, which keeps `{}`,
`null`, key sets and numbers of any size exactly. Text columns carry no statistics: a minimum and maximum would copy
text of records into the footer, where neither compression nor a rewrite of the data pages hides it.

A file counts only after it was read back and compared field by field (`compare`). pyarrow is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import jsontext
from qiju.errors import InvalidJson, InvalidRecord, StorageFailed, StoreDamaged
from qiju.record import Record
from qiju.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "1"
FORMAT_KEY = b"qiju.format"
VIEW_KEY = b"qiju.view"
COMPRESSION = "zstd"
GROUP_ROWS = 8192  # rows of a row group at most
GROUP_BYTES = 16 * 1024 * 1024  # characters of text in a row group, about; bounds what a reader holds

# name, Arrow type, nullable, what it holds. The order is the order in the file.
COLUMNS: tuple[tuple[str, str, bool, str], ...] = (
    ("seq", "int64", False, "commit order in the store it came from"),
    ("rev", "int64", False, "number of its last content change there"),
    ("tier", "string", False, "short, long or archive"),
    ("id", "string", False, "<session>:<number>, unique within the project"),
    ("project", "string", False, "project slug"),
    ("ts", "string", False, "time as written"),
    ("instant", "timestamp[us, tz=UTC]", True, "the instant of ts"),
    ("agent", "string", False, ""),
    ("source", "string", False, "manual or agent"),
    ("model", "string", True, "null = absent"),
    ("model_effort", "string", True, "null = absent"),
    ("title", "string", False, ""),
    ("tags", "list<element: string>", False, ""),
    ("search_terms", "list<element: string>", False, ""),
    ("next_steps", "list<element: string>", False, ""),
    ("body_md", "string", False, "Markdown"),
    ("redactions", "string", False, "JSON list"),
    ("schema_version", "int64", False, "schema version of the record"),
    ("extra", "string", False, "JSON object of the record's unknown keys"),
    ("digest", "string", False, "SHA-256 of the record's canonical JSON, 64 hex digits"),
)
NAMES = tuple(name for name, _, _, _ in COLUMNS)
LISTS = ("tags", "search_terms", "next_steps")
# Words of few values, worth a dictionary. Bodies and ids are not: building one costs time and saves nothing.
_DICTIONARY = ["tier", "project", "agent", "source", "model", "model_effort"]
_STATISTICS = ["seq", "rev", "instant", "schema_version"]


class Row(NamedTuple):
    """One row, lists and JSON columns as the store keeps them: JSON text. `instant` is microseconds since 1970, UTC."""

    seq: int
    rev: int
    tier: str
    id: str
    project: str
    ts: str
    instant: int | None
    agent: str
    source: str
    model: str
    model_effort: str
    title: str
    tags: str
    search_terms: str
    next_steps: str
    body_md: str
    redactions: str
    schema_version: int
    extra: str
    digest: str


def as_rows(found: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """What `SELECT {NAMES} FROM record` gives, as rows; faster than `Row._make`, which looks at each length."""
    return map(partial(tuple.__new__, Row), found)


def row_of(record: Record, *, seq: int, rev: int, tier: str, instant: int | None, digest: str) -> Row:
    """A record as a row; `digest` is that of the record as given."""
    return Row(
        seq=seq,
        rev=rev,
        tier=tier,
        id=record.id,
        project=record.project,
        ts=record.ts,
        instant=instant,
        agent=record.agent,
        source=record.source,
        model=record.model,
        model_effort=record.model_effort,
        title=record.title,
        tags=jsontext.canonical(list(record.tags)),
        search_terms=jsontext.canonical(list(record.search_terms)),
        next_steps=jsontext.canonical(list(record.next_steps)),
        body_md=record.body_md,
        redactions=jsontext.canonical(list(record.redactions)),
        schema_version=record.schema_version,
        extra=jsontext.canonical(record.extra),
        digest=digest,
    )


def record_of(row: Row) -> Record:
    """The record of a row. Raises `InvalidRecord` naming the id when a JSON column does not hold what it should."""
    values: dict[str, Any] = {}
    for name in (*LISTS, "redactions", "extra"):
        text = getattr(row, name)
        try:
            values[name] = _EMPTY[text] if text in _EMPTY else jsontext.parse(text, name=name)
        except InvalidJson as error:
            raise InvalidRecord(f"record {row.id}: {error}") from error
    if not isinstance(values["extra"], dict) or not all(
        isinstance(values[name], list) for name in values if name != "extra"
    ):
        raise InvalidRecord(f"record {row.id}: a JSON column holds another type than its own")
    return Record(
        id=row.id,
        ts=row.ts,
        project=row.project,
        agent=row.agent,
        source=row.source,
        title=row.title,
        body_md=row.body_md,
        tags=tuple(values["tags"]),
        search_terms=tuple(values["search_terms"]),
        next_steps=tuple(values["next_steps"]),
        model=row.model,
        model_effort=row.model_effort,
        redactions=tuple(values["redactions"]),
        schema_version=row.schema_version,
        extra=values["extra"],
    )


_EMPTY: dict[str, Any] = {"[]": [], "{}": {}}


def _pyarrow() -> tuple[Any, Any]:
    import pyarrow
    import pyarrow.parquet

    return pyarrow, pyarrow.parquet


def schema(view: str = "") -> pa.Schema:
    """The Arrow schema; `view` names the privacy view the rows were cut under, kept in the file's metadata."""
    pa, _ = _pyarrow()
    kinds = {
        "int64": pa.int64(),
        "string": pa.string(),
        "timestamp[us, tz=UTC]": pa.timestamp("us", tz="UTC"),
        "list<element: string>": pa.list_(pa.field("element", pa.string(), nullable=False)),
    }
    metadata = {FORMAT_KEY: FORMAT.encode(), VIEW_KEY: view.encode()}
    return pa.schema([pa.field(name, kinds[kind], nullable) for name, kind, nullable, _ in COLUMNS], metadata=metadata)


def describe_schema() -> dict[str, object]:
    """The schema as data, as committed in `schema/archive.arrow.json`."""
    columns = [
        {"name": name, "type": kind, "nullable": nullable, "about": about} for name, kind, nullable, about in COLUMNS
    ]
    return {
        "format": FORMAT,
        "compression": COMPRESSION,
        "statistics": list(_STATISTICS),
        "columns": columns,
    }


def batch(rows: Sequence[Row], target: pa.Schema | None = None) -> pa.RecordBatch:
    """Rows as an Arrow batch. Raises `InvalidRecord` naming the id whose lists are not lists of strings."""
    pa, _ = _pyarrow()
    target = target or schema()
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [() for _ in NAMES]
    arrays = []
    for field, values in zip(target, columns, strict=True):
        if field.name in LISTS:
            arrays.append(_string_lists(rows, field.name, values, field.type))
            continue
        if field.nullable and field.name != "instant":
            values = [value or None for value in values]
        arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


# A canonical list of strings that holds no escape, hence no quote within a string.
_PLAIN_LIST = r'^\[("[^"\\]*"(,"[^"\\]*")*)?\]$'


def _string_lists(rows: Sequence[Row], name: str, texts: Sequence[str], kind: Any) -> Any:
    """A column of JSON lists as an Arrow array. Raises `InvalidRecord` for a list of other things than strings."""
    import json

    pa, _ = _pyarrow()
    import pyarrow.compute as compute

    column = pa.array(texts, pa.string())
    if compute.all(compute.match_substring_regex(column, _PLAIN_LIST)).as_py():
        # Nearly every column: cut apart by Arrow, without making a Python object of each item.
        items = compute.split_pattern(compute.utf8_slice_codeunits(column, 2, -2), '","')
        nothing = pa.scalar([], pa.list_(pa.string()))
        return compute.if_else(compute.equal(column, "[]"), nothing, items).cast(kind)
    lists: list[list[str]] = json.loads("[" + ",".join(texts) + "]")
    offsets = pa.array(accumulate(map(len, lists), initial=0), pa.int32())
    try:
        flat = pa.array(chain.from_iterable(lists), pa.string())
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        place = next(n for n, items in enumerate(lists) if not all(isinstance(item, str) for item in items))
        raise InvalidRecord(
            f"record {rows[place].id}: {name} holds something else than strings", hint="qiju doctor"
        ) from error
    return pa.ListArray.from_arrays(offsets, flat, type=kind)


class Totals(NamedTuple):
    """What was written: rows, bytes of the file, highest rev."""

    rows: int
    size: int
    rev: int


def grouped(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Cut rows into groups bounded by count and by text."""
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.body_md) + len(row.extra) + len(row.redactions) + len(row.title) + 400
        if len(group) >= GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


_WEIGHED = tuple(map(itemgetter, (NAMES.index(name) for name in ("body_md", "extra", "redactions"))))


def weight(rows: Sequence[Row]) -> int:
    """Characters of text in rows, about: what they cost in memory."""
    return sum(sum(map(len, map(get, rows))) for get in _WEIGHED)


def joined(batches: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Join small batches into groups; like `grouped` with less work a row, and never cutting a batch."""
    group: list[Row] = []
    size = 0
    for batch in batches:
        more = weight(batch)
        if group and (len(group) + len(batch) > GROUP_ROWS or size + more > GROUP_BYTES):
            yield group
            group, size = [], 0
        group.extend(batch)
        size += more
    if group:
        yield group


class Writer:
    """Writes one Parquet file group by group: `with Writer(path, view=...) as out: out.write(rows)`.

    Raises `StorageFailed` naming the path when the disk refuses; the caller owns `path` and throws it away then.
    """

    def __init__(self, path: Path, *, view: str) -> None:
        _, parquet = _pyarrow()
        self.path = path
        self.schema = schema(view)
        self.rows = 0
        self.rev = 0
        self._file = path.open("wb")
        self._writer = parquet.ParquetWriter(
            self._file,
            self.schema,
            compression=COMPRESSION,
            use_dictionary=_DICTIONARY,
            write_statistics=_STATISTICS,
            write_page_checksum=True,
        )

    def __enter__(self) -> Writer:
        return self

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows as one row group."""
        if rows:
            self.write_batch(batch(rows, self.schema), max(row.rev for row in rows))

    def write_batch(self, table: pa.RecordBatch, rev: int) -> None:
        """Write rows that `batch` made already; `rev` is the highest among them."""
        if table.num_rows:
            self._guarded(lambda: self._writer.write_batch(table, row_group_size=table.num_rows))
            self.rows += table.num_rows
            self.rev = max(self.rev, rev)

    def _guarded(self, step: Callable[[], object]) -> None:
        pa, _ = _pyarrow()
        try:
            step()
        except (OSError, pa.ArrowException) as error:
            raise StorageFailed(f"cannot write {self.path}: {error}") from error

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            if error is None:
                self._guarded(self._writer.close)
        finally:
            # After a refused write pyarrow would try again in its destructor; a closed handle ends that quietly.
            self._close_quietly(failed=error is not None)

    def _close_quietly(self, *, failed: bool) -> None:
        try:
            self._file.close()
        except OSError as failure:
            if not failed:
                raise StorageFailed(f"cannot write {self.path}: {failure.strerror}") from failure
        if failed:
            self._writer.is_open = False


def write(path: Path, rows: Iterable[Row], *, view: str) -> Totals:
    """Write rows to `path` and return what was written."""
    return write_groups(path, grouped(rows), view=view)


def write_groups(path: Path, groups: Iterable[list[Row]], *, view: str) -> Totals:
    """`write` for rows that come in groups already (`grouped`, `joined`)."""
    with Writer(path, view=view) as out:
        for group in groups:
            out.write(group)
    return Totals(out.rows, path.stat().st_size, out.rev)


def compare(path: Path, rows: Iterable[Row]) -> int:
    """Read a file back and compare it with the rows field by field; returns how many rows were compared.

    Raises `StoreDamaged` naming the file, the column and the id at the first difference.
    """
    expected = iter(rows)
    count = 0
    for found in _batches(path):
        want = list(islice(expected, found.num_rows))
        if len(want) != found.num_rows:
            raise StoreDamaged(f"{path} holds more rows than were written")
        wanted = batch(want, found.schema)
        if not wanted.equals(found):
            raise StoreDamaged(f"{path} reads back differently: {_difference(want, wanted, found)}")
        count += found.num_rows
    if next(expected, None) is not None:
        raise StoreDamaged(f"{path} holds fewer rows than were written")
    return count


def _difference(rows: Sequence[Row], wanted: pa.RecordBatch, found: pa.RecordBatch) -> str:
    for index, name in enumerate(NAMES):
        for row, left, right in zip(rows, wanted.column(index), found.column(index), strict=True):
            if not left.equals(right):
                return f"column {name} of record {row.id}"
    return "its schema"


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The file's batches; `StoreDamaged` for a file that cannot be read, `InvalidRecord` for one that is not Qiju's."""
    pa, parquet = _pyarrow()
    try:
        # The file itself is opened, not a dataset: folder names such as `project=...` must not become columns.
        with path.open("rb") as handle, parquet.ParquetFile(handle, page_checksum_verification=True) as file:
            metadata = file.schema_arrow.metadata or {}
            if metadata.get(FORMAT_KEY) != FORMAT.encode():
                raise InvalidRecord(f"{path} was not written by Qiju")
            if file.schema_arrow.names != list(NAMES):
                raise InvalidRecord(f"{path} has other columns than format {FORMAT}")
            for group in range(file.num_row_groups):
                left = file.metadata.row_group(group).num_rows
                for found in file.iter_batches(batch_size=GROUP_ROWS, row_groups=[group]):
                    left -= found.num_rows
                    yield found
                if left:
                    # pyarrow takes a damaged page header for the end of the data and says nothing.
                    raise StoreDamaged(f"{path}: row group {group} lacks {counted(left, 'row')}")
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def is_ours(path: Path) -> bool:
    """Whether the file says it was written in this format. Raises `StoreDamaged` when it is no readable Parquet."""
    pa, parquet = _pyarrow()
    try:
        with path.open("rb") as handle, parquet.ParquetFile(handle) as file:
            return bool((file.schema_arrow.metadata or {}).get(FORMAT_KEY) == FORMAT.encode())
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def view_of(path: Path) -> str:
    """The privacy view the file was written under, '' when it does not say."""
    pa, parquet = _pyarrow()
    try:
        with path.open("rb") as handle, parquet.ParquetFile(handle) as file:
            return bytes((file.schema_arrow.metadata or {}).get(VIEW_KEY, b"")).decode("utf-8", "replace")
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def read(path: Path) -> Iterator[Row]:
    """The rows of a file, in its order, a row group in memory at a time.

    Raises `StoreDamaged` when the bytes are no whole Parquet file, `InvalidRecord` when it is somebody else's.
    """
    for found in _batches(path):
        found = found.set_column(NAMES.index("instant"), "instant", found.column("instant").cast("int64"))
        columns = [found.column(index).to_pylist() for index in range(len(NAMES))]
        for index, name in enumerate(NAMES):
            if name in LISTS:
                columns[index] = [_list_text(items) for items in columns[index]]
            elif name in ("model", "model_effort"):
                columns[index] = [value or "" for value in columns[index]]
        for values in zip(*columns, strict=True):
            yield Row(*values)


def _list_text(items: list[str]) -> str:
    import json

    return json.dumps(items, ensure_ascii=False, separators=(",", ":")) if items else "[]"
