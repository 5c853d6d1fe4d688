"""`stats`: the numbers add up to what was logged, as bars for a person, as columns in a pipe, as JSON for programs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import Place

from qiju.cli.context import Context
from qiju.cli.stats import bar, chart, size_text

OTHER = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def store(place: Place) -> Place:
    token = "gh" + "p_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    place.log(
        title="a", tags=["x", "y"], next_steps=["one", "two"], ts="2026-03-02T00:00:00Z", body_md=f"token {token}"
    )
    place.log(title="b", tags=["x"], ts="2026-03-01T23:59:59Z")
    place.log(title="c", session=OTHER, project="other", tags=["x"], next_steps=["one"], ts="1969-12-31T23:00:00Z")
    return place


def test_numbers_add_up(store: Place) -> None:
    """Every record is counted once a project, agent, tier and source; tags and steps by what records hold."""
    found = store.ok("stats", "--json").json()
    assert found["records"] == 3
    assert found["sessions"] == 2
    assert found["first"] == "1969-12-31T23:00:00Z"
    assert found["last"] == "2026-03-02T00:00:00Z"
    assert found["open_steps"] == {"steps": 3, "records": 2}
    assert [(one["project"], one["records"]) for one in found["projects"]] == [("demo", 2), ("other", 1)]
    assert found["tags"] == [{"tag": "x", "records": 3}, {"tag": "y", "records": 1}]
    for name in ("projects", "agents", "tiers", "sources"):
        assert sum(one["records"] for one in found[name]) == 3
    assert sum(one["content_bytes"] for one in found["projects"]) == found["sizes"]["content_bytes"] > 0
    assert found["sizes"]["database_bytes"] == store.db.stat().st_size
    assert [(one["action"], one["findings"], one["records"]) for one in found["redactions"]] == [("capture", 1, 1)]


def test_one_project(store: Place) -> None:
    """`--project` narrows everything but the sizes of files."""
    found = store.ok("stats", "--json", "--project", "other").json()
    assert (found["records"], found["project"], found["redactions"]) == (1, "other", [])
    assert found["tags"] == [{"tag": "x", "records": 1}]
    assert found["open_steps"]["steps"] == 1


def test_weeks_begin_on_monday_and_are_whole(store: Place) -> None:
    """A Sunday's last second and a Monday's first fall into two weeks; every week is there, empty ones too."""
    store.log(title="now")
    weeks = store.ok("stats", "--json", "--weeks", "520").json()["weeks"]
    assert len(weeks) == 520
    by_monday = {week["begins"]: week for week in weeks}
    assert by_monday["2026-02-23"] == {"begins": "2026-02-23", "records": 1, "week": "2026-W09"}
    assert by_monday["2026-03-02"] == {"begins": "2026-03-02", "records": 1, "week": "2026-W10"}
    assert weeks[-1]["records"] == 1
    assert sum(week["records"] for week in weeks) == 3


def test_a_pipe_gets_columns_without_bars_or_codes(store: Place) -> None:
    """The same text every time: no bar, no colour, whatever the environment asks for."""
    plain = store.ok("stats", env={"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "COLUMNS": "40"}).out
    assert "█" not in plain
    assert "\x1b" not in plain
    assert "  demo   2\n  other  1\n" in plain
    assert "3 open steps in 2 records" in plain
    assert "and 1 more" in store.ok("stats", "--top", "1").out


def test_an_empty_store_and_wrong_words(place: Place) -> None:
    """Nothing stored is an answer; a project that is not there, or a wrong number, is an error that says what to do."""
    assert place.ok("stats").out.startswith("0 records")
    assert place.ok("stats", "--json").json()["records"] == 0
    assert not place.home.exists()
    assert place.run("stats", "--project", "nope").code == 3
    for words in (("--weeks", "0"), ("--weeks", "99999"), ("--top", "0")):
        assert place.run("stats", *words).code == 2
    error = json.loads(place.run("stats", "--json", "--weeks", "0").err)
    assert error["error"]["kind"] == "usage"


def test_names_are_inert(place: Place) -> None:
    """A tag cannot steer the terminal it is printed on."""
    place.log(tags=["\x1b[31mred\u202e", "a\nb"])
    out = place.ok("stats").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[31mred\\u202e" in out
    assert "  a b" in out


@given(numbers=st.lists(st.integers(0, 10**9), min_size=1, max_size=20), room=st.integers(1, 60))
def test_bars_keep_order_and_room(numbers: list[int], room: int) -> None:
    """The largest fills the room, nothing is longer, more is never shorter, and only 0 has no bar."""
    largest = max(numbers)
    bars = {number: bar(number, largest, room) for number in numbers}
    assert all(len(text) <= room for text in bars.values())
    assert len(bars[largest]) == (room if largest else 0)
    assert all(bool(text) == bool(number) for number, text in bars.items())
    ordered = [len(bars[number]) for number in sorted(bars)]
    assert ordered == sorted(ordered)


def test_wide_labels_stay_aligned() -> None:
    """CJK and emoji count as the columns they take."""
    from qiju.render import width

    lines = chart(Context("stats"), [("項目", 10), ("ab", 2), ("👩", 1)])
    assert len({width(line) for line in lines}) == 1


def test_sizes_in_words() -> None:
    assert [size_text(size) for size in (0, 1023, 1024, 1536, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 GiB",
    ]
