"""Filters, terms and bounds of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from qiju import query
from qiju.errors import UsageError
from qiju.query import Filters, Query

NOW = 1_772_355_600.0  # 2026-03-01T09:00:00Z
HOUR = 3600 * query.SECOND
DAY = 24 * HOUR


Zone = Callable[[str], None]


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Zone]:
    if not hasattr(time, "tzset"):
        pytest.skip("this system has no tzset")

    def use(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield use
    monkeypatch.undo()
    time.tzset()


def utc(text: str) -> int:
    from qiju.record import parse_ts

    found = parse_ts(text)
    assert found is not None
    return found


def test_a_date_as_until_includes_its_day(in_zone: Zone) -> None:
    in_zone("UTC")
    assert query.since("2026-03-01") == utc("2026-03-01T00:00:00Z")
    assert query.until("2026-03-01") == utc("2026-03-02T00:00:00Z")
    assert query.until("20260301") == query.until("2026-03-01")


def test_an_instant_as_until_includes_itself() -> None:
    assert query.until("2026-03-01T06:00:00Z") == query.since("2026-03-01T06:00:00Z") + 1


def test_dates_and_naive_times_are_local(in_zone: Zone) -> None:
    in_zone("Asia/Tokyo")
    assert query.since("2026-03-02") == utc("2026-03-01T15:00:00Z")
    assert query.since("2026-03-01 09:00:00") == utc("2026-03-01T00:00:00Z")
    assert query.since("2026-03-01T09:00:00Z") == utc("2026-03-01T09:00:00Z")


def test_a_day_on_which_clocks_change_has_23_or_25_hours(in_zone: Zone) -> None:
    in_zone("Europe/Berlin")
    assert query.until("2026-03-29") - query.since("2026-03-29") == 23 * HOUR
    assert query.until("2026-10-25") - query.since("2026-10-25") == 25 * HOUR


def test_relative_bounds_count_back_from_now(in_zone: Zone) -> None:
    in_zone("UTC")
    now = int(NOW * query.SECOND)
    assert query.since("7d", now=NOW) == now - 7 * DAY
    assert query.since("2w", now=NOW) == now - 14 * DAY
    assert query.since("12h", now=NOW) == now - 12 * HOUR
    assert query.since("30min", now=NOW) == now - HOUR // 2
    assert query.since("now", now=NOW) == now
    assert query.since("yesterday", now=NOW) == utc("2026-02-28T00:00:00Z")
    assert query.until("Yesterday", now=NOW) == utc("2026-03-01T00:00:00Z")
    assert query.until("today", now=NOW) == utc("2026-03-02T00:00:00Z")


@pytest.mark.parametrize(
    "text",
    ["", "  ", "soon", "2026-02-30", "2026-13-01", "2026-W09-7", "7 days", "-7d", "1767225600", "0000-01-01", "٣d"],
)
def test_an_unknown_form_is_a_usage_error_and_never_no_filter(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        query.since(text)
    assert "--since" in str(caught.value)
    assert caught.value.hint


def test_terms_are_folded_and_distinct() -> None:
    assert query.terms(" Dead\u00a0LOCK dead STRASSE straße cafe\u0301 ") == ("dead", "lock", "strasse", "café")


def test_a_query_beyond_reason_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="10,000 different terms"):
        query.checked(Query(text=_terms(10_000)))
    with pytest.raises(UsageError, match="characters"):
        query.checked(Query(text="x" * 1_000_000))
    assert query.checked(Query(text=_terms(query.MOST_TERMS)))


def _terms(count: int) -> str:
    return " ".join(chr(0x4E00 + number) for number in range(count))


def test_an_unknown_sort_field_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="'titel'") as caught:
        query.checked(Query(sort="titel"))
    assert "'title'" in caught.value.hint


def test_nothing_of_a_filter_stands_in_its_sql() -> None:
    evil = "x' OR 1=1 --"
    filters = Filters((evil,), evil, (evil,), 1, 2, evil, evil, evil, evil, (evil,))
    parts, values = filters.clauses()
    assert "1=1" not in " ".join(parts)
    assert " ".join(parts).count("?") == len(values)


def test_what_a_query_asks_for_is_its_identity_but_for_resolved_times() -> None:
    one = Query(Filters(since=1), "a", times=("7d", ""))
    assert one.identity() == Query(Filters(since=2), "a", times=("7d", "")).identity()
    assert one.identity() != one._replace(text="b").identity()
    assert one.identity() != one._replace(filters=Filters(tags=("a",))).identity()


@pytest.mark.parametrize(
    ("stored", "wanted", "holds"),
    [
        ('["Auth"]', "auth", True),
        ('["author"]', "auth", False),
        ('["x","AUTH"]', "auth", True),
        ('["Stra\u00dfe"]', "strasse", True),
        ('["\u212aelvin"]', "kelvin", True),
        ('["cafe\u0301"]', "caf\u00e9", True),
        (r'["say \"auth\""]', "auth", False),
        (r'["say \"auth\""]', 'say "auth"', True),
        (r'["b,\"auth\""]', "auth", False),
        (r'["\u0041uth"]', "auth", True),
        ('[{"auth":1},["auth"],1]', "auth", False),
        ("[1]", "1", False),
        ("{", "auth", False),
        ("[" * 100_000, "a", False),
        ('{"auth":1}', "auth", False),
    ],
)
def test_a_tag_is_found_whole_and_whatever_its_case(stored: str, wanted: str, holds: bool) -> None:
    assert query.tagged(stored, wanted) is holds
