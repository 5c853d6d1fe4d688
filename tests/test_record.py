"""The record as a value: shape, instants, folding."""

from __future__ import annotations

import sqlite3
import unicodedata
from datetime import UTC, datetime, timedelta

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju import record
from qiju.errors import InvalidRecord
from qiju.jsontext import Number
from qiju.record import Record

WHOLE = {
    "schema_version": 2,
    "id": "s:1",
    "ts": "2026-03-01T00:00:00Z",
    "project": "demo",
    "agent": "codex",
    "source": "manual",
    "title": "t",
    "tags": ["a"],
    "search_terms": [],
    "next_steps": ["x"],
    "redactions": [],
    "body_md": "b",
}


def test_a_whole_record_round_trips_with_unknown_keys() -> None:
    value = {**WHOLE, "model": "m", "extra": {"z": Number("1.50"), "a": []}}
    assert Record.from_json(value).to_json() == value


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"title": 1}, "title must be a string, not a number"),
        ({"tags": "a"}, "tags must be a list"),
        ({"tags": ["a", 2]}, r"tags\[1\]"),
        ({"next_steps": None}, "next_steps must be a list of strings, not null"),
        ({"body_md": {}}, "body_md must be a string, not an object"),
        ({"model": "  "}, "model must be a non-empty"),
        ({"source": "robot"}, "source must be"),
        ({"schema_version": "2"}, "schema_version must be"),
        ({"redactions": [1]}, "redactions must be"),
        ({"id": "x"}, "id must be"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidRecord, match=named):
        record.check({**WHOLE, **change})


def test_every_wrong_field_is_named_at_once() -> None:
    with pytest.raises(InvalidRecord, match=r"title.*body_md.*tags"):
        record.check({"title": 1, "tags": None, "body_md": []})


@pytest.mark.parametrize("value", [[], [{"title": "x"}], None, 5, "s", True])
def test_only_an_object_is_a_record(value: object) -> None:
    with pytest.raises(InvalidRecord, match="a JSON object, not"):
        record.check(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "identity",
    ["", " ", ":", ":1", "x", "x:", "x:0", "x:-1", "x:1.5", "x:y", "x:01", "x\ny:1", "x y:1", "x:1 ", "x:\u0661"],
)
def test_ids_that_are_not_session_and_number_are_refused(identity: str) -> None:
    assert not record.valid_id(identity)


@pytest.mark.parametrize("identity", ["x:1", "a:b:3", "\u4f1a\u8bdd:12", "11111111-1111-4111-8111-111111111111:9"])
def test_ids_of_session_and_number_are_valid(identity: str) -> None:
    assert record.valid_id(identity)
    session, number = record.split_id(identity)
    assert f"{session}:{number}" == identity


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-23 * 60, 23 * 60))
def test_instants_agree_with_datetime(moment: datetime, offset: int) -> None:
    """An independent calendar says the same, whatever the offset."""
    text = (
        moment.isoformat(timespec="microseconds")
        + f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    )
    expected = (moment - timedelta(minutes=offset) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert record.parse_ts(text) == expected


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_written_instants_read_back(instant: int) -> None:
    text = record.format_instant(instant)
    assert record.parse_ts(text) == instant
    assert datetime.fromisoformat(text) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2026-03-01T24:00:00Z", "2026-03-02T00:00:00Z"),
        ("2026-03-01T10:00:59.9999999995Z", "2026-03-01T10:00:59.999999Z"),
        ("20260301T100000Z", "2026-03-01T10:00:00Z"),
        ("2026-03-01t10:00z", "2026-03-01T10:00:00Z"),
        ("2026-03-01 10:00:00+0200", "2026-03-01T08:00:00Z"),
        ("2026-03-01T10:00:00,5Z", "2026-03-01T10:00:00.500000Z"),
    ],
)
def test_loose_forms_have_one_instant(text: str, same_as: str) -> None:
    assert record.parse_ts(text) == record.parse_ts(same_as) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "March 1",
        "1767225600",
        "1767225600000",
        "2026-W09-7",
        "2026-060",
        "2026-13-01",
        "2026-02-29",
        "2026-03-01T25:00Z",
        "2026-03-01T24:01Z",
        "2026-03-01T10:00:00+25:00",
        "2016-12-31T23:59:60Z",
        "2026-03-01T10:00:00+00000000",
        "0000-01-01",
        "2026-03-01T10:60Z",
    ],
)
def test_other_forms_are_no_times(text: str) -> None:
    assert record.parse_ts(text.strip()) is None


FOLDED_LETTERS = (
    "\u00df\u1e9e\u0130\u0131\u03c2\u03a3\u017f\u212a\ufb03\ufb05\u10a0\u10d0\u1c90\u13a0\uab70\u0345\u0528\u1e9b\u2c2f"
)


@given(st.text(st.sampled_from(FOLDED_LETTERS + "aZ\u0301\u00e9\u4ee4 ") | st.characters(exclude_categories=["Cs"])))
def test_fold_is_casefold_over_nfc(text: str) -> None:
    assert record.fold(text) == unicodedata.normalize("NFC", text).casefold()


def indexed(module: object, letters: list[str]) -> dict[str, str]:
    """What FTS5's trigram tokenizer makes of each letter, asked from SQLite itself."""
    connection = module.Connection(":memory:") if module is apsw else module.connect(":memory:")  # type: ignore[attr-defined]
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='trigram')")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    connection.execute("BEGIN")
    for letter in letters:
        connection.execute("INSERT INTO t (rowid, x) VALUES (?, ?)", (ord(letter), letter + "zz"))
    found = {chr(doc): term[:-2] for term, doc in connection.execute("SELECT term, doc FROM v")}
    connection.close()
    return found


@pytest.mark.parametrize("module", [apsw, sqlite3], ids=["apsw", "stock"])
def test_texts_taken_as_alike_are_folded_alike_by_fts5(module: object) -> None:
    """The rule for which rows need folded text is checked against every letter there is, on both SQLites."""
    letters = [
        chr(code)
        for code in range(0x80, 0x110000)
        if not 0xD800 <= code < 0xE000 and unicodedata.category(chr(code)) != "Cn"
    ]
    alike = [letter for letter in letters if record._fts5_folds_alike(letter)]
    assert len(alike) > 100_000
    found = indexed(module, alike)
    assert [letter for letter in alike if found[letter] != record.fold(letter)] == []


def test_rows_that_fts5_folds_otherwise_store_folded_text() -> None:
    def folded(**fields: object) -> str:
        return record.folded(Record.from_json({**WHOLE, **fields}))  # type: ignore[dict-item]

    assert folded() == folded(body_md="\u4ee4\u724c \u00c4rger") == ""
    assert "strasse" in folded(body_md="Stra\u00dfe")
    assert "caf\u00e9" in folded(body_md="cafe\u0301")
    assert folded(body_md="a\0b").count("\0") == 0
    assert 'say "x"' in folded(tags=['say "x"'])
