"""Every piece of a damaged JSONL file comes out as a record or as a named damage, and bad lines hide no good ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.legacy.lines import Damage, Found, read_values


def record(number: int, **more: Any) -> dict[str, Any]:
    base = {"agent": "codex", "body_md": "b", "id": f"s:{number}", "project": "demo", "title": f"t{number}"}
    return {**base, "ts": "2026-01-01T00:00:00Z", **more}


def line(number: int, **more: Any) -> bytes:
    return json.dumps(record(number, **more), ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def read(tmp_path: Path, data: bytes) -> list[Found | Damage]:
    path = tmp_path / "demo.jsonl"
    path.write_bytes(data)
    return list(read_values(path))


def ids(items: list[Found | Damage]) -> list[str]:
    return [str(item.value["id"]) for item in items if isinstance(item, Found)]


def damages(items: list[Found | Damage]) -> list[tuple[int, int, str]]:
    return [(item.line, item.last_line, item.kind) for item in items if isinstance(item, Damage)]


def test_clean_lines_come_back_equal_with_their_line_numbers(tmp_path: Path) -> None:
    items = read(tmp_path, line(1) + b"\n\n" + line(2, n={"a": [1, None]}) + b"\n")
    assert [(item.line, item.value) for item in items if isinstance(item, Found)] == [
        (1, record(1)),
        (3, record(2, n={"a": [1, None]})),
    ]
    assert all(isinstance(item, Found) and not item.repair for item in items)


def test_glued_records_are_both_recovered_and_said(tmp_path: Path) -> None:
    items = read(tmp_path, line(1) + line(2) + b"\n")
    assert ids(items) == ["s:1", "s:2"]
    assert all(isinstance(item, Found) and "several" in item.repair for item in items)


def test_a_torn_last_line_is_named_and_the_rest_read(tmp_path: Path) -> None:
    items = read(tmp_path, line(1) + b"\n" + line(2)[:30])
    assert ids(items) == ["s:1"]
    assert damages(items) == [(2, 2, "torn")]


def test_a_record_glued_behind_a_torn_one_is_recovered(tmp_path: Path) -> None:
    items = read(tmp_path, line(1)[:40] + line(2) + b"\n" + line(3) + b"\n")
    assert ids(items) == ["s:2", "s:3"]
    assert damages(items) == [(1, 1, "torn")]


def test_a_record_written_into_the_middle_of_another_gives_both(tmp_path: Path) -> None:
    outer, inner = line(1, body_md="a long body"), line(2)
    items = read(tmp_path, outer[:35] + inner + b"\n" + outer[35:] + b"\n")
    assert sorted(ids(items)) == ["s:1", "s:2"]
    assert damages(items) == []


def test_a_record_written_into_the_middle_without_a_line_end_gives_both(tmp_path: Path) -> None:
    outer, inner = line(1, body_md="a long body"), line(2)
    items = read(tmp_path, outer[:35] + inner + outer[35:] + b"\n" + line(3) + b"\n")
    assert sorted(ids(items)) == ["s:1", "s:2", "s:3"]
    assert damages(items) == []


def test_a_nested_object_of_a_torn_record_is_no_record(tmp_path: Path) -> None:
    torn = line(1, n={"id": "x", "title": "inner"})
    items = read(tmp_path, torn[: torn.index(b'"project"')] + b"\n" + line(2) + b"\n")
    assert ids(items) == ["s:2"]
    assert damages(items) == [(1, 1, "torn")]


def test_pretty_printed_records_are_put_together(tmp_path: Path) -> None:
    text = (
        json.dumps(record(1, tags=["a", "b"], n={"x": [{"y": 1}]}), indent=2) + "\n" + json.dumps(record(2), indent=4)
    )
    items = read(tmp_path, text.encode())
    assert [item.value for item in items if isinstance(item, Found)] == [
        record(1, tags=["a", "b"], n={"x": [{"y": 1}]}),
        record(2),
    ]


def test_a_json_array_of_records_is_read(tmp_path: Path) -> None:
    assert ids(read(tmp_path, b"[\n" + line(1) + b",\n" + line(2) + b"\n]\n")) == ["s:1", "s:2"]


def test_byte_order_mark_crlf_and_blank_lines_lose_nothing(tmp_path: Path) -> None:
    items = read(tmp_path, b"\xef\xbb\xbf" + line(1) + b"\r\n\r\n" + line(2) + b"\r\n")
    assert ids(items) == ["s:1", "s:2"]
    assert damages(items) == []


def test_utf16_is_refused_by_name(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        items = read(tmp_path, (line(1).decode() + "\n").encode(encoding))
        assert damages(items) == [(1, 1, "encoding")]
        assert "UTF-16" in items[0].message  # type: ignore[union-attr]


def test_a_line_that_is_not_utf8_is_named_and_skipped(tmp_path: Path) -> None:
    items = read(tmp_path, line(1) + b"\n" + b'{"id":"s:2","title":"\xff"}\n' + line(3) + b"\n")
    assert ids(items) == ["s:1", "s:3"]
    assert damages(items) == [(2, 2, "encoding")]


def test_a_tear_inside_a_character_hides_no_record_and_heals(tmp_path: Path) -> None:
    outer, inner = line(1, body_md="会话恢复"), line(2)
    at = outer.index("话".encode()) + 1
    assert ids(read(tmp_path, outer[:at] + inner + b"\n")) == ["s:2"]
    items = read(tmp_path, outer[:at] + inner + b"\n" + outer[at:] + b"\n")
    assert sorted(ids(items)) == ["s:1", "s:2"]
    assert damages(items) == []


def test_nul_blocks_of_a_lost_write_hide_nothing(tmp_path: Path) -> None:
    items = read(tmp_path, line(1) + b"\n" + b"\0" * 4096 + line(2) + b"\n" + b"\0" * 512)
    assert ids(items) == ["s:1", "s:2"]


def test_control_characters_and_nan_are_kept_as_text(tmp_path: Path) -> None:
    raw = line(1).replace(b'"b"', b'"a\tb"').replace(b"{", b'{"value":NaN,', 1)
    items = read(tmp_path, raw + b"\n")
    assert isinstance(items[0], Found)
    assert items[0].value["body_md"] == "a\tb"
    assert items[0].value["value"] == "NaN"
    assert items[0].repair


def test_duplicate_keys_and_other_values_are_named(tmp_path: Path) -> None:
    items = read(tmp_path, b'{"id":"s:1","id":"s:2"}\n42\nnot json\n' + line(3) + b"\n")
    assert ids(items) == ["s:3"]
    assert damages(items) == [(1, 1, "invalid"), (2, 2, "not_object"), (3, 3, "invalid")]


def test_numbers_keep_their_exact_spelling(tmp_path: Path) -> None:
    from qiju import jsontext

    raw = b'{"a":1.50,"b":1208925819614629174706176,"c":-0,"id":"s:1"}'
    items = read(tmp_path, raw + b"\n")
    assert isinstance(items[0], Found)
    assert "1.50" in jsontext.canonical(items[0].value)
    assert "1208925819614629174706176" in jsontext.canonical(items[0].value)


def test_a_missing_file_is_a_named_damage(tmp_path: Path) -> None:
    assert damages(list(read_values(tmp_path / "none.jsonl"))) == [(0, 0, "unreadable")]


def test_deep_nesting_is_named_not_a_crash(tmp_path: Path) -> None:
    items = read(tmp_path, b'{"a":' * 5000 + b"\n" + line(2) + b"\n")
    assert ids(items) == ["s:2"]
    assert len(damages(items)) == 1


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(max_examples=60, deadline=None)
@given(bodies=st.lists(TEXT, min_size=1, max_size=6), cut=st.integers(0, 10_000), data=st.data())
def test_a_crash_at_any_byte_loses_only_the_line_it_cut(
    tmp_path_factory: Any, bodies: list[str], cut: int, data: st.DataObject
) -> None:
    whole = b"".join(line(n, body_md=body) + b"\n" for n, body in enumerate(bodies))
    at = cut % (len(whole) + 1)
    items = read(tmp_path_factory.mktemp("cut"), whole[:at])
    done = whole[:at].count(b"\n")
    rest = whole[:at].rpartition(b"\n")[2]
    expected = [f"s:{n}" for n in range(done)]
    if rest and rest == line(done, body_md=bodies[done]) if done < len(bodies) else False:
        expected.append(f"s:{done}")
        rest = b""
    assert ids(items) == expected
    assert len(damages(items)) == (1 if rest else 0)


@settings(max_examples=60, deadline=None)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=8,
    ),
    cut=st.integers(1, 10_000),
)
def test_interleaved_writers_lose_nothing(tmp_path_factory: Any, value: Any, cut: int) -> None:
    outer, inner = line(1, extra=value), line(2, extra=value)
    at = 1 + cut % (len(outer) - 1)
    items = read(tmp_path_factory.mktemp("mix"), outer[:at] + inner + b"\n" + outer[at:] + b"\n" + line(3) + b"\n")
    assert {"s:2", "s:3"} <= set(ids(items))
    assert "s:1" in ids(items) or damages(items)
