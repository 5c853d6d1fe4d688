"""Cutting a file of records into pieces: no good line is hidden, no memory grows, no encoding is guessed."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.errors import InvalidRecord
from qiju.keeping import lines


def cut(data: bytes) -> list[tuple[int, bytes | None]]:
    return [(piece.line, piece.data) for piece in lines.read_pieces(io.BytesIO(data), name="x.jsonl")]


def test_byte_order_mark_crlf_and_blank_lines_are_not_content() -> None:
    data = b'\xef\xbb\xbf{"a":1}\r\n\r\n{"b":2}\r\n \n{"c":3}'
    assert cut(data) == [(1, b'{"a":1}'), (3, b'{"b":2}'), (5, b'{"c":3}')]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused_by_name(encoding: str) -> None:
    with pytest.raises(InvalidRecord, match=r"UTF-(16|32)"):
        cut('{"a": "b"}\n'.encode(encoding))


def test_an_empty_file_has_no_pieces() -> None:
    assert cut(b"") == []
    assert cut(b"\n\n") == []
    assert cut(b" [ ] ") == []


def test_a_bad_line_stays_one_piece_between_good_ones() -> None:
    assert cut(b'{"a":1}\n{"torn":\n{"b":2}\n') == [(1, b'{"a":1}'), (2, b'{"torn":'), (3, b'{"b":2}')]


def test_a_line_longer_than_the_limit_is_one_invalid_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CHUNK", 7)
    monkeypatch.setattr(lines, "MAX_PIECE", 20)
    data = b'{"a":1}\n{"x":"' + b"y" * 100 + b'"}\n{"b":2}\n' + b"z" * 30
    assert cut(data) == [(1, b'{"a":1}'), (2, None), (3, b'{"b":2}'), (4, None)]
    assert cut(b"[1, " + b"2" * 50 + b", 3]") == [(1, b"1"), (1, None), (1, b"3")]


def test_a_list_without_an_end_and_text_behind_it_are_refused() -> None:
    with pytest.raises(InvalidRecord, match="without an end"):
        cut(b'[{"a":1},{"b":2}')
    with pytest.raises(InvalidRecord, match="after the end"):
        cut(b'[{"a":1}]\n{"b":2}')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(json_values, max_size=6), st.sampled_from([None, 2]), st.integers(1, 9), st.booleans())
def test_a_list_comes_apart_into_its_items_however_it_is_laid_out(
    items: list[object], indent: int | None, chunk: int, ascii_only: bool
) -> None:
    data = json.dumps(items, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    before, lines.CHUNK = lines.CHUNK, chunk
    try:
        # The first chunk must reach the opening bracket; BOM and blanks before it are covered above.
        found = cut(data)
    finally:
        lines.CHUNK = before
    assert [json.loads(piece or b"") for _, piece in found] == items


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(max_size=12).filter(lambda b: b"\n" not in b and b"\0" not in b), max_size=8), st.integers(1, 9)
)
def test_lines_come_apart_as_python_splits_them(parts: list[bytes], chunk: int) -> None:
    data = b'"first"\n' + b"\n".join(parts)
    want = [
        (number, line.removesuffix(b"\r")) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()
    ]
    before, lines.CHUNK = lines.CHUNK, chunk
    try:
        assert cut(data) == want
    finally:
        lines.CHUNK = before
