"""The page token: what is put in comes out, and nothing else is accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju import cursor
from qiju.errors import CursorRejected

KEY, OTHER = b"k" * 32, b"o" * 32
VALUES = st.one_of(st.integers(-(2**70), 2**70), st.text(max_size=30), st.binary(max_size=40))
PAYLOADS = st.dictionaries(st.text(max_size=8), VALUES, max_size=6)


@given(PAYLOADS)
def test_a_payload_comes_back_as_it_was(payload: cursor.Payload) -> None:
    token = cursor.encode("search", KEY, payload)
    assert cursor.decode(token, "search", KEY) == payload
    assert token[0].isalpha()
    assert token.replace("-", "").replace("_", "").isalnum()


@given(PAYLOADS, st.data())
def test_any_change_of_any_character_is_rejected(payload: cursor.Payload, data: st.DataObject) -> None:
    token = cursor.encode("search", KEY, payload)
    at = data.draw(st.integers(0, len(token)))
    other = data.draw(st.sampled_from("AZaz09-_%= \u00e9"))
    replaced, inserted = token[:at] + other + token[at + 1 :], token[:at] + other + token[at:]
    for changed in {replaced, inserted, token[:at], token + "A"} - {token}:
        with pytest.raises(CursorRejected):
            cursor.decode(changed, "search", KEY)


def test_another_store_and_another_kind_are_rejected() -> None:
    token = cursor.encode("search", KEY, {"seq": 7})
    with pytest.raises(CursorRejected, match="another store"):
        cursor.decode(token, "search", OTHER)
    with pytest.raises(CursorRejected, match="'search' pages"):
        cursor.decode(token, "trajectory", KEY)


@pytest.mark.parametrize("junk", ["", "q", "A" * 100_000, "q" + "A" * 100_000, "' OR 1=1 --", "%00", "qAAAA", "q\x00"])
def test_junk_is_rejected_with_the_way_to_start_again(junk: str) -> None:
    with pytest.raises(CursorRejected) as caught:
        cursor.decode(junk, "search", KEY)
    assert "first page" in caught.value.hint


def test_the_digest_keeps_parts_apart() -> None:
    assert cursor.digest("ab", "c") != cursor.digest("a", "bc")
    assert cursor.digest("ab", "c") == cursor.digest("ab", "c")


@given(st.lists(st.integers(0, 2**63)))
def test_packed_numbers_come_back_in_order(numbers: list[int]) -> None:
    assert cursor.unpack(cursor.pack(numbers)) == numbers
