"""Pages are cut from one snapshot: nothing skipped, nothing repeated, nothing new; a changed snapshot is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from qiju.db import Database
from qiju.errors import CursorRejected, UsageError
from qiju.query import BY_RELEVANCE, BY_SESSION, Filters, Query
from qiju.record import Record, format_instant
from qiju.search import engine, pages
from qiju.search.engine import Hit
from qiju.search.pages import Binding
from qiju.store import Store

BINDING = Binding(b"k" * 32, "store")
BASE = 1_700_000_000_000_000
WORDS = ("deadlock", "livelock", "会话恢复", "straße")


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(Database.in_memory(), Path("nowhere"), writable=True) as opened:
        yield opened


def log(store: Store, number: int, *, title: str = "t", instant: int = BASE, project: str = "p") -> int:
    record = Record(f"s:{number}", format_instant(instant), project, "codex", "manual", title, "b")
    with store.db.write() as connection:
        return store.insert_row(connection, record, instant, "s", "flag", tier="short")[0]


def page(store: Store, query: Query, token: str = "", limit: int = 3, **more: object) -> pages.Page:
    with store.db.read() as connection:
        return pages.page(connection, query, BINDING, token=token, limit=limit, **more)  # type: ignore[arg-type]


def walk(store: Store, query: Query, limit: int = 3) -> list[int]:
    found: list[int] = []
    token = ""
    while True:
        one = page(store, query, token, limit)
        found += [hit.seq for hit in one.found.hits]
        if one.next_cursor is None:
            return found
        assert len(one.found.hits) == limit
        token = one.next_cursor


@pytest.mark.parametrize("sort", ["ts", "title", "agent", "project", "id", "number", "seq", "tier", BY_SESSION])
@pytest.mark.parametrize("descending", [True, False])
def test_every_order_pages_through_every_record_once(store: Store, sort: str, descending: bool) -> None:
    for number in range(1, 11):
        log(store, number, title=f"deadlock {number % 3}", project=f"p{number % 2}")
    for text in ("", "deadlock", "lo"):
        query = Query(text=text, sort=sort, descending=descending)
        with store.db.read() as connection:
            whole = [hit.seq for hit in engine.run(connection, query).hits]
        assert sorted(whole) == list(range(1, 11))
        assert walk(store, query) == whole
        assert walk(store, query, 10) == whole


def test_an_exactly_full_last_page_ends_the_walk(store: Store) -> None:
    for number in range(1, 7):
        log(store, number)
    first = page(store, Query())
    assert first.next_cursor is not None
    assert page(store, Query(), first.next_cursor).next_cursor is None


def test_the_total_is_counted_once_over_the_snapshot(store: Store) -> None:
    for number in range(1, 6):
        log(store, number, title="deadlock")
    query = Query(text="deadlock")
    first = page(store, query, limit=2, count=True)
    log(store, 6, title="deadlock")
    second = page(store, query, first.next_cursor or "", limit=2)
    assert (first.found.total, second.found.total) == (5, 5)


def test_relative_bounds_stay_what_they_were_on_the_first_page(store: Store) -> None:
    for number in range(1, 6):
        log(store, number, instant=BASE + number)
    first = page(store, Query(Filters(since=BASE + 2), times=("7d", "")), limit=2)
    second = page(store, Query(Filters(since=BASE + 5), times=("7d", "")), first.next_cursor or "", limit=5)
    assert [hit.seq for hit in (*first.found.hits, *second.found.hits)] == [5, 4, 3, 2]


@pytest.mark.parametrize(
    "other",
    [
        Query(text="livelock"),
        Query(text="deadlock", descending=False),
        Query(text="deadlock", sort="title"),
        Query(text="deadlock", match="all"),
        Query(text="deadlock", regex=True),
        Query(Filters(agent="codex"), text="deadlock"),
        Query(Filters(since=1), text="deadlock", times=("2030-01-01", "")),
    ],
)
def test_a_cursor_of_another_query_is_refused(store: Store, other: Query) -> None:
    for number in range(1, 6):
        log(store, number, title="deadlock")
    token = page(store, Query(text="deadlock")).next_cursor
    assert token is not None
    with pytest.raises(CursorRejected, match="another query"):
        page(store, other, token)


@pytest.mark.parametrize(
    "other", [BINDING._replace(view="redacted_public"), BINDING._replace(store_id="x"), BINDING._replace(key=b"x" * 32)]
)
def test_a_cursor_of_another_store_or_view_is_refused(store: Store, other: Binding) -> None:
    for number in range(1, 6):
        log(store, number)
    token = page(store, Query()).next_cursor
    assert token is not None
    with store.db.read() as connection, pytest.raises(CursorRejected):
        pages.page(connection, Query(), other, token=token)


def test_a_store_put_back_to_an_earlier_state_refuses_later_cursors(store: Store) -> None:
    for number in range(1, 6):
        log(store, number)
    token = page(store, Query()).next_cursor
    assert token is not None
    with store.db.write() as connection:
        connection.execute("UPDATE counter SET value = 1 WHERE name = 'rev'")
    with pytest.raises(CursorRejected, match="earlier state"):
        page(store, Query(), token)


def test_a_token_holds_no_text_and_stays_small(store: Store) -> None:
    from binascii import a2b_base64

    for number in range(1, 601):
        log(store, number, title=f"deadlock sesame{number}", project="geheim")
    for sort in ("title", BY_RELEVANCE):
        token = page(store, Query(text="deadlock", sort=sort)).next_cursor
        assert token is not None
        raw = a2b_base64(token[1:].replace("-", "+").replace("_", "/") + "===")
        assert b"sesame" not in raw
        assert b"geheim" not in raw
        assert len(token) < 6_000


@pytest.mark.parametrize("sort", ["ts", BY_RELEVANCE])
def test_what_does_not_fit_a_budget_begins_the_next_page(store: Store, sort: str) -> None:
    for number in range(1, 8):
        log(store, number, title="deadlock")
    query = Query(text="deadlock", sort=sort)
    found: list[int] = []
    token = ""
    while True:
        one = page(store, query, token, limit=3, fit=lambda hits: min(2, len(hits)))
        found += [hit.seq for hit in one.found.hits]
        if one.next_cursor is None:
            break
        token = one.next_cursor
    assert found == list(range(7, 0, -1))


def test_a_budget_with_room_for_nothing_leaves_the_page_to_be_asked_again(store: Store) -> None:
    for number in range(1, 4):
        log(store, number)
    empty = page(store, Query(), fit=lambda hits: 0)
    assert empty.found.hits == []
    assert [hit.seq for hit in page(store, Query(), empty.next_cursor or "").found.hits] == [3, 2, 1]


def test_ranked_pages_keep_their_order_while_records_come(store: Store) -> None:
    for number in range(1, 8):
        log(store, number, title="deadlock " + "filler " * number)
    query = Query(text="deadlock", sort=BY_RELEVANCE)
    with store.db.read() as connection:
        whole = [hit.seq for hit in engine.run(connection, query).hits]
    first = page(store, query)
    for number in range(8, 20):
        log(store, number, title="deadlock")
    second = page(store, query, first.next_cursor or "", limit=10)
    assert [hit.seq for hit in (*first.found.hits, *second.found.hits)] == whole


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_of_nothing_is_a_usage_error(store: Store, limit: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        page(store, Query(), limit=limit)


def test_a_rung_of_the_ladder_holds_for_the_whole_walk(store: Store) -> None:
    for number in range(1, 6):
        log(store, number, title="lock dead" if number % 2 else "dead lock")
    query = Query(text="dead lock", match="auto")
    first = page(store, query, limit=1)
    second = page(store, query, first.next_cursor or "", limit=5)
    assert [(hit.seq, hit.match) for hit in (*first.found.hits, *second.found.hits)] == [(4, "phrase"), (2, "phrase")]
    assert [hit.match for hit in page(store, Query(text="dead absent", match="auto")).found.hits] == ["any"] * 3


class Paging(RuleBasedStateMachine):
    """Log, redact, retag, delete, move and page in any order; a plain list says what a page must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(Database.in_memory(), Path("nowhere"), writable=True)
        self.rows: dict[int, tuple[str, int, str]] = {}  # seq: title, instant, project
        self.number = 0
        self.token = ""
        self.query = Query()
        self.expected: list[int] = []
        self.snapshot: set[int] = set()
        self.changed = self.moved = False

    @initialize(count=st.integers(0, 6))
    def begin(self, count: int) -> None:
        for _ in range(count):
            self.log(BASE, "deadlock", "p")

    def teardown(self) -> None:
        self.store.close()

    @rule(
        instant=st.sampled_from([0, BASE, BASE + 1, BASE - 5, 4_070_908_800_000_000]),
        title=st.sampled_from(WORDS),
        project=st.sampled_from(["p", "q"]),
    )
    def log(self, instant: int, title: str, project: str) -> None:
        self.number += 1
        seq = log(self.store, self.number, title=title, instant=instant, project=project)
        self.rows[seq] = (title, instant, project)

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), what=st.sampled_from(["redact", "retag", "delete", "move"]))
    def change(self, data: st.DataObject, what: str) -> None:
        seq = data.draw(st.sampled_from(sorted(self.rows)))
        title, instant, project = self.rows[seq]
        stored = self.store.by_seq(seq)
        assert stored is not None
        with self.store.db.write() as connection:
            if what == "move":
                tier = "long" if stored.tier == "short" else "short"
                connection.execute("UPDATE record SET tier = ? WHERE seq = ?", (tier, seq))
            elif what == "delete":
                self.store.delete(connection, stored)
                del self.rows[seq]
            elif what == "retag":
                self.store.replace(connection, stored, stored.record._replace(project="r"))
                self.rows[seq] = (title, instant, "r")
            else:
                self.store.replace(connection, stored, stored.record._replace(title="[REDACTED]"))
                self.rows[seq] = ("[REDACTED]", instant, project)
        if seq in self.snapshot:
            self.moved = self.moved or what == "move"
            self.changed = self.changed or what != "move"

    @rule(
        text=st.sampled_from(["", "lock", "dead", "会", "SS"]),
        projects=st.sampled_from([None, ("p",), ("p", "q")]),
        descending=st.booleans(),
        sort=st.sampled_from(["ts", "ts", "title"]),
        limit=st.integers(1, 3),
    )
    def first(self, text: str, projects: tuple[str, ...] | None, descending: bool, sort: str, limit: int) -> None:
        self.query = Query(Filters(projects), text, sort=sort, descending=descending)
        from qiju.record import fold

        chosen = [
            ((title if sort == "title" else instant), seq)
            for seq, (title, instant, project) in self.rows.items()
            if fold(text) in fold(title) and (projects is None or project in projects)
        ]
        self.expected = [seq for _, seq in sorted(chosen, reverse=descending)]  # type: ignore[type-var]
        self.snapshot, self.changed, self.moved = set(self.rows), False, False
        self.take(page(self.store, self.query, limit=limit), limit)

    @precondition(lambda self: self.token)
    @rule(limit=st.integers(1, 3))
    def following(self, limit: int) -> None:
        if self.changed:
            with pytest.raises(CursorRejected):
                page(self.store, self.query, self.token, limit)
            self.token = ""
            return
        self.take(page(self.store, self.query, self.token, limit), limit)

    def take(self, one: pages.Page, limit: int) -> None:
        assert one.found.hits == [Hit(seq) for seq in self.expected[:limit]]
        self.expected = self.expected[limit:]
        assert (one.next_cursor is not None) is bool(self.expected)
        self.token = one.next_cursor or ""


Paging.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestPaging = Paging.TestCase


def test_with_a_tier_filter_a_moved_record_ends_the_walk(store: Store) -> None:
    for number in range(1, 6):
        log(store, number)
    tiers, all_tiers = Query(Filters(tiers=("short",))), Query()
    with_tier, without = page(store, tiers).next_cursor, page(store, all_tiers).next_cursor
    with store.db.write() as connection:
        connection.execute("UPDATE record SET tier = 'long' WHERE seq = 1")
    assert page(store, all_tiers, without or "").found.hits
    with pytest.raises(CursorRejected, match="moved"):
        page(store, tiers, with_tier or "")
