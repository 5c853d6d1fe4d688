"""The predecessor's whole store: what each tier gives, in which order, and what its Parquet files have lost."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qiju import jsontext
from qiju.legacy import Draft, LegacyStore, Problem, is_store
from qiju.legacy.kedu import rebrand
from qiju.legacy.parquet import Row, Unreadable, loosely_equal, read_rows

# Written by the real predecessor (0.7.0): three archived months, two long files, a short file, its audit.
DATA = Path(__file__).parent / "data" / "predecessor"


@pytest.fixture
def store(tmp_path: Path) -> LegacyStore:
    shutil.copytree(DATA / "home", tmp_path / "home")
    root = tmp_path / "project"
    shutil.copytree(DATA / "project" / "dot-qiju", root / ".qiju")
    registry = tmp_path / "home" / "registry.d"
    registry.mkdir()
    for name, path in (("a.json", root), ("b.json", tmp_path / "gone")):
        entry = {"schema_version": 1, "path": str(path), "slug": path.name}
        (registry / name).write_text(json.dumps(entry), encoding="utf-8")
    return LegacyStore(tmp_path / "home")


def drafts(store: LegacyStore) -> list[Draft]:
    return [item for item in store.records() if isinstance(item, Draft)]


def test_a_real_store_gives_all_tiers_in_a_fixed_order(store: LegacyStore) -> None:
    found = [(draft.tier, draft.value["id"], draft.line) for draft in drafts(store)]
    assert found == [
        ("short", "s2:2", 1),
        ("short", "s3:1", 2),
        ("long", "s2:1", 1),
        ("long", "s2:2", 2),
        ("long", "s3:1", 3),
        ("long", "o1:1", 1),
        ("archive", "s1:1", 1),
        ("archive", "s1:2", 2),
        ("archive", "s1:3", 3),
        ("archive", "s1:4", 1),
        ("archive", "s1:5", 2),
        ("archive", "s1:6", 1),
    ]


def test_registered_roots_say_whether_they_are_there(store: LegacyStore) -> None:
    assert [(root.slug, root.reachable) for root in store.roots] == [("gone", False), ("project", True)]


def test_a_named_root_is_read_once_though_it_is_registered(store: LegacyStore) -> None:
    again = LegacyStore(store.home, roots=[store.home.parent / "project" / ".." / "project"])
    assert len(drafts(again)) == len(drafts(store))


def test_the_audit_is_read(store: LegacyStore) -> None:
    events = [item for item in store.redactions() if isinstance(item, Draft)]
    assert [event.value["reason"] for event in events] == ["leak"]


def test_archived_rows_come_back_without_what_duckdb_added(store: LegacyStore) -> None:
    first, second, third, fourth, fifth, sixth = (d.value for d in drafts(store) if d.tier == "archive")
    assert first["ts"] == "2024-03-01T10:00:00+08:00"
    assert first["n"] == {"a": 1, "c": [1, jsontext.Number("2.5"), "x"]}
    assert (first["date"], first["time"]) == ("2024-03-01", "12:30:00")
    assert first["uuid"] == "11111111-1111-4111-8111-111111111111"
    assert second["n"] == {"a": 4}
    assert (second["e"], second["l"], second["tags"]) == ({}, [], [])
    assert {"model", "month", "mixed", "cwd"} & set(third) == {"mixed"}
    assert (fourth["mixed"], fifth["mixed"]) == (5, "5")
    # DuckDB took this month's ts for timestamps; the instant is what is left.
    assert sixth["ts"] == "2024-05-03T10:00:00+00:00"


def test_nothing_in_the_source_changes_by_reading(store: LegacyStore) -> None:
    def state() -> dict[str, tuple[bytes, int]]:
        files = [path for path in store.home.parent.rglob("*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = state()
    list(store.records())
    list(store.redactions())
    assert state() == before


def test_a_damaged_archive_file_is_named_and_hides_no_other(store: LegacyStore) -> None:
    month = store.home / "archive" / "project=myproj" / "month=2024-04" / "entries.parquet"
    month.write_bytes(b"PAR1" + bytes(range(256)) * 4)
    (store.home / "archive" / "project=myproj" / "month=2024-05" / "entries.parquet").write_bytes(b"")
    items = list(store.records())
    problems = [item for item in items if isinstance(item, Problem)]
    assert [(item.path.parent.name, item.kind) for item in problems] == [
        ("month=2024-04", "unreadable"),
        ("month=2024-05", "unreadable"),
    ]
    assert sum(isinstance(item, Draft) and item.tier == "archive" for item in items) == 3


def test_a_flipped_byte_in_a_row_group_costs_that_group_only(tmp_path: Path) -> None:
    path = tmp_path / "entries.parquet"
    table = pa.table({"id": [f"s:{n}" for n in range(40)], "body_md": ["text " * 50 + str(n) for n in range(40)]})
    pq.write_table(table, path, compression="zstd", row_group_size=10)
    second = pq.ParquetFile(path).metadata.row_group(1)
    start = min(second.column(i).dictionary_page_offset or second.column(i).data_page_offset for i in range(2))
    size = sum(second.column(i).total_compressed_size for i in range(2)) // 2
    data = bytearray(path.read_bytes())
    data[start : start + size] = b"\xff" * size
    path.write_bytes(bytes(data))
    items = list(read_rows(path))
    assert [item.number for item in items if isinstance(item, Row)] == [*range(1, 11), *range(21, 41)]
    assert [(item.first, item.last) for item in items if isinstance(item, Unreadable)] == [(11, 20)]


def test_types_of_duckdb_become_json_again(tmp_path: Path) -> None:
    path = tmp_path / "entries.parquet"
    columns = {
        "ts": pa.array([datetime(2024, 5, 3, 10), None], pa.timestamp("us")),
        "f": pa.array([1.0, 2.5], pa.float64()),
        "big": pa.array([None, 2**63], pa.uint64()),
        "s": pa.array([{"a": None, "b": [1]}, None], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))])),
        "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    }
    pq.write_table(pa.table(columns), path)
    rows = [item.value for item in read_rows(path) if isinstance(item, Row)]
    assert rows == [
        {"ts": "2024-05-03T10:00:00+00:00", "f": 1, "s": {"b": [1]}, "m": {"k": 1}},
        {"f": jsontext.Number("2.5"), "big": jsontext.Number(str(2**63)), "m": {}},
    ]


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ({"ts": "2024-05-03T12:00:00+02:00"}, {"ts": "2024-05-03T10:00:00+00:00"}, True),
        ({"ts": "2024-05-03T12:00:00+02:00"}, {"ts": "2024-05-03T10:00:01+00:00"}, False),
        ({"a": None, "b": 1}, {"b": 1}, True),
        ({"a": 1}, {"a": jsontext.Number("1.0")}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"title": "x"}, {"title": "X"}, False),
    ],
)
def test_loose_equality_forgives_only_what_the_archive_loses(left: Any, right: Any, equal: bool) -> None:
    assert loosely_equal(left, right) is equal


def test_names_in_other_case_backups_and_leftovers(tmp_path: Path) -> None:
    long = tmp_path / "long"
    long.mkdir()
    for name in ("MyProj.jsonl", "myproj.JSONL", "old.jsonl.bak.1", "x.bak.jsonl", ".a.jsonl.tmp", "n.disabled.jsonl"):
        (long / name).write_text('{"id":"' + name + '"}\n', encoding="utf-8")
    assert [draft.value["id"] for draft in drafts(LegacyStore(tmp_path))] == ["MyProj.jsonl", "myproj.JSONL"]


def test_the_old_single_registry_and_a_damaged_entry(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "registry.d").mkdir(parents=True)
    (home / "registry.d" / "x.json").write_text("{torn", encoding="utf-8")
    root = tmp_path / "root"
    (root / ".qiju").mkdir(parents=True)
    register = {"schema_version": 1, "projects": {str(root): "demo"}}
    (home / "project-register.json").write_text(json.dumps(register), encoding="utf-8")
    store = LegacyStore(home)
    assert [(found.path, found.slug) for found in store.roots] == [(root, "demo")]
    assert [problem.path.name for problem in store.problems] == ["x.json"]


def test_what_counts_as_a_store(tmp_path: Path, store: LegacyStore) -> None:
    assert is_store(store.home)
    assert not is_store(tmp_path / "nowhere")
    (tmp_path / "empty" / "long").mkdir(parents=True)
    assert not is_store(tmp_path / "empty")


def test_brand_words_are_rewritten_in_keys_and_values_without_losing_a_key() -> None:
    assert rebrand({"kedu_home": ["~/.kedu", {"KEDU_X": "Kedu"}], "kedu": 1, "qiju": 2}) == {
        "qiju_home": ["~/.qiju", {"QIJU_X": "Qiju"}],
        "kedu": 1,
        "qiju": 2,
    }
