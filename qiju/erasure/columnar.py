"""Parquet files without a secret. Compression hides a value from a search of the bytes, so every column is decoded.

Partitions that a manifest names are written anew from the rows by the archive itself. This is for the others below the
home: exports, the predecessor's archive, leftovers. A file in our own format gets its records' digests anew; another
one keeps its schema and loses its statistics, which copy values into the footer.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qiju import archive
from qiju.erasure.rewriting import rewrite, rewrite_record
from qiju.errors import StoreDamaged
from qiju.files import PathReplacement

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret, Sought


def holds(path: Path, sought: Sought) -> int:
    """How many places of the file hold what is sought, decoded: values, column names, metadata.

    Raises `StoreDamaged` when it is no readable Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    count = 0
    try:
        with path.open("rb") as handle, parquet.ParquetFile(handle) as file:
            count += _in_schema(file.schema_arrow, sought)
            for key, value in (file.metadata.metadata or {}).items():
                count += key != b"ARROW:schema" and (sought.in_bytes(key) or sought.in_bytes(value))
            for found in file.iter_batches(batch_size=1024):
                for column in found.columns:
                    count += sum(_places(item, sought) for item in column.to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return count


def _in_schema(schema: Any, sought: Sought) -> int:
    return sum(bool(sought.spans(str(field))) for field in schema)


def _places(value: Any, sought: Sought) -> int:
    if isinstance(value, str):
        return len(sought.spans(value)) if sought.in_text(value) else 0
    if isinstance(value, bytes):
        return int(sought.in_bytes(value))
    if isinstance(value, dict):
        return sum(_places(key, sought) + _places(part, sought) for key, part in value.items())
    if isinstance(value, list | tuple):
        return sum(_places(part, sought) for part in value)
    return 0


def clean(path: Path, secret: Secret) -> None:
    """Write the file anew without the secret. Raises `StoreDamaged`, `StorageFailed`, `InvalidRecord`."""
    if archive.is_ours(path):
        view = archive.view_of(path)
        rows = [_row(secret, row) for row in archive.read(path)]
        with PathReplacement(path) as fresh:
            archive.write(fresh, rows, view=view)
        return
    _clean_foreign(path, secret)


def _row(secret: Secret, row: archive.Row) -> archive.Row:
    record = archive.record_of(row)
    new, places = rewrite_record(secret, record, identity=secret.word(record.id), project=secret.name(record.project))
    if not places:
        return row
    return archive.row_of(new, seq=row.seq, rev=row.rev, tier=row.tier, instant=row.instant, digest=new.digest())


def _clean_foreign(path: Path, secret: Secret) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        with path.open("rb") as handle, parquet.ParquetFile(handle) as file:
            table = file.read()
            codec = file.metadata.row_group(0).column(0).compression if file.num_row_groups else "SNAPPY"
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        values = [_without(value, secret) for value in column.to_pylist()]
        fields.append(field.with_name(secret.name(field.name)))
        columns.append(pa.array(values, field.type))
    metadata = {
        _bytes_without(key, secret): _bytes_without(value, secret)
        for key, value in (table.schema.metadata or {}).items()
    }
    clean_table = pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=metadata or None))
    with PathReplacement(path) as fresh:
        parquet.write_table(clean_table, fresh, compression=codec, write_statistics=False)


def _without(value: Any, secret: Secret) -> Any:
    if isinstance(value, str):
        return _text_without(value, secret)
    if isinstance(value, bytes):
        return _bytes_without(value, secret)
    if isinstance(value, dict):
        return {key: _without(part, secret) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without(part, secret) for part in value)
    return value


def _text_without(text: str, secret: Secret) -> str:
    """A text column; one that holds JSON stays JSON."""
    if not secret.in_text(text) and "\\" not in text:
        return text
    if text[:1] in ("{", "["):
        from qiju import jsontext
        from qiju.errors import InvalidJson

        try:
            done = rewrite(secret, jsontext.parse(text))
        except InvalidJson:
            return secret.replace(text)[0]
        return jsontext.canonical(done.value) if done.places else text
    return secret.replace(text)[0]


def _bytes_without(data: bytes, secret: Secret) -> bytes:
    for needle in secret.needles:
        if needle in data:
            data = data.replace(needle, secret.placeholder.encode("utf-8"))
    return data
