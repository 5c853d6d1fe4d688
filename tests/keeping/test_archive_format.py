"""The Parquet file: its schema is the committed one, its rows come back exactly, its footer tells nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju import archive
from qiju.errors import InvalidRecord, StorageFailed, StoreDamaged
from qiju.jsontext import Number, canonical
from qiju.record import FIELDS, Record

REPOSITORY = Path(__file__).parent.parent.parent


def row(**changes: object) -> archive.Row:
    base = archive.Row(
        seq=1,
        rev=1,
        tier="short",
        id="s:1",
        project="demo",
        ts="2026-01-02T03:04:05Z",
        instant=1_767_323_045_000_000,
        agent="codex",
        source="manual",
        model="",
        model_effort="",
        title="t",
        tags="[]",
        search_terms="[]",
        next_steps="[]",
        body_md="b",
        redactions="[]",
        schema_version=2,
        extra="{}",
        digest="0" * 64,
    )
    return base._replace(**changes)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
rows = st.builds(
    row,
    seq=st.integers(1, 2**63 - 1),
    rev=st.integers(0, 2**63 - 1),
    id=text,
    title=text,
    body_md=text,
    model=text,
    ts=text,
    instant=st.none() | st.integers(-(2**62), 2**62),
    tags=st.lists(text, max_size=3).map(lambda items: json.dumps(items, ensure_ascii=False, separators=(",", ":"))),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(rows, max_size=6))
def test_rows_come_back_exactly(tmp_path_factory: pytest.TempPathFactory, given_rows: list[archive.Row]) -> None:
    path = tmp_path_factory.mktemp("p") / "x.parquet"
    totals = archive.write(path, given_rows, view="raw_private")
    assert totals.rows == len(given_rows) == archive.compare(path, given_rows)
    assert totals.rev == max((r.rev for r in given_rows), default=0)
    assert list(archive.read(path)) == given_rows


def test_the_committed_schema_is_the_one_in_the_code() -> None:
    committed = json.loads((REPOSITORY / "schema" / "archive.arrow.json").read_text(encoding="utf-8"))
    assert committed == archive.describe_schema()


def test_the_file_on_disk_has_the_described_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    archive.write(path, [row()], view="redacted_public")
    found = pq.ParquetFile(path).schema_arrow
    assert [(f.name, str(f.type), f.nullable) for f in found] == [
        (name, kind.replace("element: string", "element: string not null"), nullable)
        for name, kind, nullable, _ in archive.COLUMNS
    ]
    assert archive.view_of(path) == "redacted_public"


def test_the_footer_holds_no_text_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    archive.write(path, [row(title="planted-title", body_md="planted-body", extra='{"planted":"extra"}')], view="")
    metadata = pq.ParquetFile(path).metadata
    for index in range(metadata.num_columns):
        column = metadata.row_group(0).column(index)
        numeric = column.physical_type == "INT64"
        assert column.is_stats_set == numeric, column.path_in_schema
        assert column.compression == "ZSTD"


def test_groups_are_bounded_by_text_not_only_by_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(archive, "GROUP_BYTES", 10_000)
    path = tmp_path / "x.parquet"
    archive.write(path, [row(seq=n, body_md="x" * 6000) for n in range(1, 6)], view="")
    assert pq.ParquetFile(path).num_row_groups == 3


def test_a_field_that_reads_back_differently_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    archive.write(path, [row(), row(seq=2, id="s:2")], view="")
    with pytest.raises(StoreDamaged, match=r"column title of record s:2"):
        archive.compare(path, [row(), row(seq=2, id="s:2", title="other")])
    with pytest.raises(StoreDamaged, match="more rows"):
        archive.compare(path, [row()])
    with pytest.raises(StoreDamaged, match="fewer rows"):
        archive.compare(path, [row(), row(seq=2, id="s:2"), row(seq=3)])


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"\x00" * 500])
def test_a_damaged_file_is_named_not_a_crash(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(damage)
    with pytest.raises(StoreDamaged, match=r"x\.parquet cannot be read as Parquet"):
        list(archive.read(path))


def test_a_flipped_byte_never_changes_a_row_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    want = [row(seq=n, id=f"s:{n}", body_md=f"body {n} " * 30) for n in range(1, 40)]
    archive.write(path, want, view="")
    data = bytearray(path.read_bytes())
    for at in range(4, len(data) - 3000, 97):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :])
        try:
            found = list(archive.read(path))
        except (StoreDamaged, InvalidRecord):
            continue
        # What is left are bytes that carry no value, such as a page's count of nulls.
        assert found == want


def test_somebody_elses_parquet_is_not_taken_for_ours(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": ["s:1"]}), path)
    assert not archive.is_ours(path)
    with pytest.raises(InvalidRecord, match="not written by Qiju"):
        list(archive.read(path))


def test_a_list_of_other_things_than_strings_names_the_record(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match=r"record s:1: tags"):
        archive.write(tmp_path / "x", [row(tags="[1]")], view="")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_clean_failure() -> None:
    with pytest.raises(StorageFailed, match="/dev/full"):
        archive.write(Path("/dev/full"), [row(body_md="x" * 100_000)], view="")


def test_pyarrow_is_loaded_only_when_a_file_is_touched() -> None:
    code = "import sys, qiju.archive; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**16), 10**16)
    | st.sampled_from([Number("18446744073709551616"), Number("-9223372036854775809"), Number("1.50"), Number("1e400")])
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)
unknown_keys = st.dictionaries(text.filter(lambda key: key not in FIELDS), json_values, max_size=4)
texts = st.lists(text, max_size=3).map(tuple)
records = st.builds(
    Record,
    id=st.sampled_from(["s:1", "会话:2"]),
    ts=text,
    project=text,
    agent=text,
    source=st.sampled_from(["manual", "agent"]),
    title=text,
    body_md=text,
    tags=texts,
    search_terms=texts,
    next_steps=texts,
    model=text,
    redactions=st.lists(st.dictionaries(text, json_values, max_size=3), max_size=2).map(tuple),
    schema_version=st.integers(1, 9),
    extra=unknown_keys,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(records, max_size=3))
def test_any_record_comes_back_with_the_same_digest(
    tmp_path_factory: pytest.TempPathFactory, given_records: list[Record]
) -> None:
    path = tmp_path_factory.mktemp("p") / "x.parquet"
    given_rows = [
        archive.row_of(record, seq=n, rev=n, tier="long", instant=None, digest=record.digest())
        for n, record in enumerate(given_records, start=1)
    ]
    archive.write(path, given_rows, view="raw_private")
    found = [archive.record_of(row) for row in archive.read(path)]
    assert found == given_records
    assert [record.digest() for record in found] == [row.digest for row in given_rows]


def test_a_json_column_of_another_type_names_the_record() -> None:
    for name, value in (("extra", "[]"), ("tags", "{}"), ("extra", "{")):
        with pytest.raises(InvalidRecord, match=r"record s:1"):
            archive.record_of(row(**{name: value}))


@pytest.mark.parametrize(
    "items",
    [
        [],
        [""],
        ["", ""],
        ["a"],
        ["a", "b c", ""],
        ['quo"te', "back\\slash"],
        ['","', "]["],
        ["\n", "\t"],
        ["会话"],
        [" a "],
    ],
)
def test_lists_of_any_strings_are_cut_apart_exactly(tmp_path: Path, items: list[str]) -> None:
    path = tmp_path / "x.parquet"
    spaced = json.dumps(items, ensure_ascii=False)
    rows_ = [row(tags=canonical(list(items))), row(seq=2, tags="[]"), row(seq=3, tags='[""]'), row(seq=4, tags=spaced)]
    archive.write(path, rows_, view="")
    assert pq.read_table(path).column("tags").to_pylist() == [items, [], [""], items]
    archive.write(path, rows_[:3], view="")
    assert list(archive.read(path)) == rows_[:3]
