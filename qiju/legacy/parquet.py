"""Rows of the predecessor's Parquet archive, as the JSON they once were, as far as the file still tells.

The predecessor let DuckDB infer a schema from JSON lines, so its archive lost things that no reader can bring back: a
key that one record lacks became a null in that record, an offset in a timestamp became UTC, `1` among `1.5` became
`1.0`, and strings that look like dates, times or UUIDs became such. What is done here, and nowhere else:

- a null is an absent key, in the record and in nested objects (the file cannot tell an explicit null apart);
- a timestamp is written as ISO text in UTC, a date, time or UUID as its ISO text;
- a whole number in a floating column is written as an integer;
- a column of DuckDB's JSON type is parsed;
- `month`, which DuckDB added from the folder's name, is dropped when it equals the folder's.

`loosely_equal` compares a record with such a row under exactly these losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from qiju import jsontext
from qiju.errors import InvalidJson
from qiju.jsontext import JsonValue, Number
from qiju.record import parse_ts

_BATCH_ROWS = 512
Convert = Callable[[Any], JsonValue]


class Row(NamedTuple):
    """One row; `number` counts from 1 over the whole file."""

    number: int
    value: dict[str, JsonValue]


class Unreadable(NamedTuple):
    """Rows `first`..`last` (0, 0: the whole file) cannot be read."""

    first: int
    last: int
    message: str


def read_rows(path: Path, *, month: str = "") -> Iterator[Row | Unreadable]:
    """Yield the rows of one file, a batch in memory at a time; a damaged row group costs its own rows only."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.stat().st_size == 0:
        yield Unreadable(0, 0, "the file is empty")
        return
    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        converts = _converters(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        yield Unreadable(0, 0, f"not a readable Parquet file ({type(error).__name__})")
        return
    with file:
        first = 1
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            done = 0
            try:
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group]):
                    columns = [column.to_pylist() for column in batch.columns]
                    for cells in zip(*columns, strict=True):
                        value = _record(names, converts, cells)
                        if value.get("month") == month:
                            del value["month"]
                        yield Row(first + done, value)
                        done += 1
            except (pa.ArrowException, OSError, ValueError, InvalidJson) as error:
                last = first + rows - 1
                yield Unreadable(first + done, last, f"rows cannot be decoded ({type(error).__name__})")
            first += rows


def _record(names: list[str], converts: list[Convert], cells: tuple[Any, ...]) -> dict[str, JsonValue]:
    return {name: convert(cell) for name, convert, cell in zip(names, converts, cells, strict=True) if cell is not None}


def _converters(file: Any) -> list[Convert]:
    """One converter a column. Arrow's leaves come in the order of Parquet's, whose logical type knows JSON and UUID."""
    leaves = iter([_kind(file.schema.column(index)) for index in range(len(file.schema))])
    return [_converter(field.type, leaves) for field in file.schema_arrow]


def _kind(column: Any) -> str:
    return str(column.logical_type.type)


def _converter(kind: Any, leaves: Iterator[str]) -> Convert:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        fields = [(kind.field(i).name, _converter(kind.field(i).type, leaves)) for i in range(kind.num_fields)]
        return lambda cell: {name: convert(cell[name]) for name, convert in fields if cell[name] is not None}
    if pa.types.is_map(kind):
        next(leaves)
        item = _converter(kind.item_type, leaves)
        return lambda cell: {str(key): None if value is None else item(value) for key, value in cell}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = _converter(kind.value_type, leaves)
        return lambda cell: [None if value is None else item(value) for value in cell]
    logical = next(leaves)
    if logical == "JSON":
        return _parse_json
    return _uuid if logical == "UUID" else _scalar


def _uuid(cell: Any) -> JsonValue:
    from uuid import UUID

    return str(UUID(bytes=cell) if isinstance(cell, bytes) else cell)


def _parse_json(cell: Any) -> JsonValue:
    return jsontext.parse(cell if isinstance(cell, (str, bytes)) else str(cell), name="Parquet cell")


def _scalar(cell: Any) -> JsonValue:
    if isinstance(cell, (str, bool)):
        return cell
    if isinstance(cell, int):
        return cell if -(2**63) <= cell < 2**63 else Number(str(cell))
    if isinstance(cell, float):
        return _float(cell)
    if isinstance(cell, Decimal):
        return jsontext.parse(format(cell, "f"), name="Parquet cell")
    if isinstance(cell, datetime):
        return _instant(cell)
    if isinstance(cell, (date, time)):
        return cell.isoformat()
    if isinstance(cell, bytes):
        return cell.decode("utf-8")
    return str(cell)


def _float(cell: float) -> JsonValue:
    if cell != cell or cell in (float("inf"), float("-inf")):
        return str(cell)
    if cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return Number(repr(cell))


def _instant(cell: datetime) -> str:
    # DuckDB converts text with an offset to UTC before it drops the offset, so the bare value is UTC.
    aware = cell.replace(tzinfo=UTC) if cell.tzinfo is None else cell.astimezone(UTC)
    return aware.isoformat()


def loosely_equal(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are the same but for what the Parquet archive loses."""
    return _reduced(left) == _reduced(right)


def _reduced(value: JsonValue) -> object:
    if isinstance(value, dict):
        return {key: _reduced(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_reduced(item) for item in value]
    if isinstance(value, str):
        if len(value) >= 19 and value[4:5] == "-" and value[:4].isdigit():
            instant = parse_ts(value)
            return value if instant is None else ("instant", instant)
        return value
    if isinstance(value, bool) or value is None:
        return value
    return ("number", float(value.token if isinstance(value, Number) else value))
