"""Pages of one fixed snapshot: every sequence of pages equals its snapshot or ends in `CursorRejected`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from qiju.errors import BoundedReadUnsupported, CursorRejected, UsageError
from qiju.projects import Home
from qiju.record import check
from qiju.trajectory import (
    PrivacyView,
    RecordKind,
    SnapshotSource,
    SqliteTrajectoryStore,
    StoreTrajectoryReader,
    Trajectory,
    TrajectoryCursor,
    TrajectoryDraft,
    TrajectoryPage,
    TrajectoryQuery,
    events,
    iter_records,
    read_page,
)

RAW = PrivacyView.RAW_PRIVATE


class Walk:
    """A paging under way, with the snapshot it must equal. `dirty`: something inside was changed since."""

    def __init__(self, query: TrajectoryQuery, page: TrajectoryPage, expected: list) -> None:
        self.query, self.page, self.expected = query, page, expected
        self.seen = list(page.records)
        self.dirty = False


class PagingMachine(RuleBasedStateMachine):
    """Append, log, redact, delete, retag, move tiers and page in any order."""

    walks = Bundle("walks")

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.store = SqliteTrajectoryStore.open(self.folder / "home", writable=True)
        self.reader = StoreTrajectoryReader(self.store)
        self.model: dict[int, tuple] = {}
        self.live: list[Walk] = []
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    def facts(self) -> list:
        """What a plain scan of the store gives now."""
        with self.store.store.db.read():
            return events.select(self.store.store.db, TrajectoryQuery(), 0, 10**9, 10**9)

    def touched(self, sequence: int) -> None:
        for walk in self.live:
            if sequence <= walk.page.watermark:
                walk.dirty = True

    @rule(session=st.sampled_from("ab"), kind=st.sampled_from(["message", "event", "tool_call"]))
    def append(self, session: str, kind: str) -> None:
        self.number += 1
        self.store.append(TrajectoryDraft(session, RecordKind(kind), {"n": self.number}, record_id=f"e{self.number}"))

    @rule(session=st.sampled_from("ab"))
    def log(self, session: str) -> None:
        store = self.store.store
        self.number += 1
        fields = check({"source": "agent", "title": f"t{self.number}"})
        store.log(store.admit(fields, session_id=session, session_source="test"), Home("demo", named=True))

    @rule(data=st.data())
    def redact(self, data) -> None:
        chosen = self.choose(data)
        if chosen is None:
            return
        store = self.store.store
        with store.db.write() as connection:
            if chosen.kind is RecordKind.SESSION_RECORD:
                old = store.find(chosen.record_id, "demo")
                store.replace(connection, old, old.record._replace(title=old.record.title + "x"))
            else:
                event = events.find(store.db, chosen.session_id, chosen.record_id)
                events.rewrite(store.db, event._replace(payload='{"n":"gone"}'))
        self.touched(chosen.sequence)

    @rule(data=st.data())
    def delete(self, data) -> None:
        chosen = self.choose(data)
        if chosen is None:
            return
        store = self.store.store
        with store.db.write() as connection:
            if chosen.kind is RecordKind.SESSION_RECORD:
                store.delete(connection, store.find(chosen.record_id, "demo"))
            else:
                assert events.delete(store.db, [chosen.sequence]) == 1
        self.touched(chosen.sequence)

    @rule()
    def move_tier(self) -> None:
        """A label of storage, no content: cursors stay."""
        with self.store.store.db.write() as connection:
            connection.execute("UPDATE record SET tier = 'long' WHERE tier = 'short'")

    def choose(self, data):
        present = self.facts()
        return data.draw(st.sampled_from(present)) if present else None

    @rule(
        target=walks,
        session=st.sampled_from([None, "a"]),
        kinds=st.sampled_from([(), ("event",), ("message", "session_record")]),
        limit=st.integers(1, 3),
        after=st.sampled_from([None, 2]),
    )
    def start(self, session, kinds, limit, after) -> Walk:
        query = TrajectoryQuery(session, None, None, kinds, after, limit)
        page = read_page(self.reader, query, view=RAW)
        expected = [
            record
            for record in self.facts()
            if session in (None, record.session_id)
            and (not kinds or record.kind in kinds)
            and record.sequence > (after or 0)
        ]
        walk = Walk(query, page, expected)
        self.live.append(walk)
        self.finished(walk)
        return walk

    @rule(walk=walks)
    def go_on(self, walk: Walk) -> None:
        if walk.page.next_cursor is None:
            return
        if walk.dirty:
            with pytest.raises(CursorRejected):
                read_page(self.reader, walk.query, walk.page.next_cursor, view=RAW)
            return
        page = read_page(self.reader, walk.query, walk.page.next_cursor, view=RAW)
        assert page.watermark == walk.page.watermark
        walk.page = page
        walk.seen += page.records
        self.finished(walk)

    @rule(walk=walks)
    def start_again(self, walk: Walk) -> None:
        """The snapshot's own cursor leads to its first page, or nowhere."""
        if walk.dirty:
            with pytest.raises(CursorRejected):
                read_page(self.reader, walk.query, walk.page.snapshot, view=RAW)
        else:
            page = read_page(self.reader, walk.query, walk.page.snapshot, view=RAW)
            assert list(page.records) == walk.expected[: walk.query.limit]

    @rule(walk=consumes(walks))
    def forget(self, walk: Walk) -> None:
        self.live.remove(walk)

    @precondition(lambda self: self.live)
    @invariant()
    def served_is_a_prefix(self) -> None:
        for walk in self.live:
            assert walk.seen == walk.expected[: len(walk.seen)]

    def finished(self, walk: Walk) -> None:
        if walk.page.next_cursor is None:
            assert walk.seen == walk.expected


PagingMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestPaging = PagingMachine.TestCase


@pytest.fixture
def reader(store, draft):
    store.append_many([draft(number) for number in range(1, 10)])
    return StoreTrajectoryReader(store)


QUERY = TrajectoryQuery(limit=3)


def test_a_cursor_belongs_to_its_query(reader):
    """Any other session, run, item, kind or start is refused; the page size may change."""
    cursor = read_page(reader, QUERY, view=RAW).next_cursor
    for other in (
        TrajectoryQuery(session_id="s1", limit=3),
        TrajectoryQuery(run_id="run-1", limit=3),
        TrajectoryQuery(work_item_id="item-1", limit=3),
        TrajectoryQuery(kinds=("message",), limit=3),
        TrajectoryQuery(after_sequence=1, limit=3),
    ):
        with pytest.raises(CursorRejected):
            read_page(reader, other, cursor, view=RAW)
    assert len(read_page(reader, TrajectoryQuery(limit=6), cursor, view=RAW).records) == 6


def test_a_cursor_belongs_to_its_view(reader):
    """A raw cursor opens no public page, nor the reverse."""
    for made, used in ((RAW, PrivacyView.REDACTED_PUBLIC), (PrivacyView.REDACTED_PUBLIC, RAW)):
        cursor = read_page(reader, QUERY, view=made).next_cursor
        with pytest.raises(CursorRejected):
            read_page(reader, QUERY, cursor, view=used)


def test_a_cursor_belongs_to_its_store(reader, tmp_path, draft):
    """Another store with the same content has another key."""
    cursor = read_page(reader, QUERY, view=RAW).next_cursor
    with SqliteTrajectoryStore.open(tmp_path / "other", writable=True) as other:
        other.append_many([draft(number) for number in range(1, 10)])
        with pytest.raises(CursorRejected):
            read_page(StoreTrajectoryReader(other), QUERY, cursor, view=RAW)


def test_altered_cursors_are_refused(reader):
    """Any change of any character, cut or junk."""
    token = read_page(reader, QUERY, view=RAW).next_cursor.token
    altered = [token[:-1], token + "A", "", "%00", "A" * 100_000, "' OR 1=1 --"]
    altered += [token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :] for at in range(0, len(token), 7)]
    for text in altered:
        with pytest.raises(CursorRejected):
            read_page(reader, QUERY, TrajectoryCursor(text), view=RAW)


def test_a_cursor_tells_nothing(reader, tmp_path):
    """No path, host, id or text of a record, however it is decoded."""
    import base64

    token = read_page(reader, TrajectoryQuery(session_id="s1", limit=3), view=RAW).next_cursor.token
    raw = base64.urlsafe_b64decode(token[1:] + "==")
    for word in (str(tmp_path), "s1", "text", "run-1", "home"):
        assert word.encode() not in raw


def test_a_restored_older_store_refuses_newer_cursors(reader, store, draft, tmp_path):
    """Even when the restored one has grown to the same number by another way."""
    shutil.copytree(store.store.home, tmp_path / "copy")
    store.append_many([draft(20), draft(21)])
    page = read_page(reader, QUERY, view=RAW)
    with SqliteTrajectoryStore.open(tmp_path / "copy", writable=True) as older:
        with pytest.raises(CursorRejected):
            read_page(StoreTrajectoryReader(older), QUERY, page.next_cursor, view=RAW)
        older.append_many([draft(30), draft(31), draft(32)])
        with pytest.raises(CursorRejected):
            read_page(StoreTrajectoryReader(older), QUERY, page.next_cursor, view=RAW)


def test_an_iteration_over_changing_records_ends_typed(reader, store):
    """Redacted between pages: never a short, successful result (X04)."""
    walk = iter_records(reader, TrajectoryQuery(limit=2), view=RAW)
    first = next(walk)
    with store.store.db.write():
        event = events.find(store.store.db, "s1", first.record_id)
        events.rewrite(store.store.db, event._replace(payload='{"role":"user","content":"[gone]"}'))
    with pytest.raises(CursorRejected):
        list(walk)
    again = list(iter_records(reader, TrajectoryQuery(limit=2), view=RAW))
    assert [record.sequence for record in again] == list(range(1, 10))
    assert again[0].payload["content"] == "[gone]"


def test_a_change_after_the_last_page_is_found_at_the_end(reader, store):
    """The snapshot is checked once more after its last record."""
    walk = iter_records(reader, TrajectoryQuery(limit=100), view=RAW)
    for _ in range(9):
        record = next(walk)
    with store.store.db.write():
        events.delete(store.store.db, [record.sequence])
    with pytest.raises(CursorRejected):
        next(walk)


def test_an_iteration_does_not_see_what_is_written_meanwhile(reader, store, draft):
    """Neither inserts nor tier moves disturb it."""
    walk = iter_records(reader, TrajectoryQuery(limit=2), view=RAW)
    seen = [next(walk)]
    store.append_many([draft(50), draft(51)])
    seen += list(walk)
    assert [record.sequence for record in seen] == list(range(1, 10))


def test_closing_an_iteration_early_frees_the_store(reader, store):
    """No transaction stays open between records."""
    walk = iter_records(reader, TrajectoryQuery(limit=2), view=RAW)
    next(walk)
    walk.close()
    assert not store.store.db.connection.in_transaction
    assert list(walk) == []


def test_a_change_just_after_the_cut_costs_another_cut(reader, store, monkeypatch):
    """A first page is never refused for what happened while it was being made."""
    real = store.cut
    cuts = []

    def cut():
        snapshot = real()
        cuts.append(snapshot)
        if len(cuts) == 1:
            with store.store.db.write():
                events.delete(store.store.db, [4])
        return snapshot

    monkeypatch.setattr(store, "cut", cut)
    page = read_page(reader, TrajectoryQuery(limit=5), view=RAW)
    assert [record.sequence for record in page.records] == [1, 2, 3, 5, 6]
    assert len(cuts) == 2


def test_an_open_store_is_taken_as_its_trajectory_half(reader, store):
    """A reader needs no adapter around `qiju.store.Store`; every store of Qiju has the snapshot capability."""
    assert read_page(StoreTrajectoryReader(store.store), QUERY, view=RAW).records == (
        read_page(reader, QUERY, view=RAW).records
    )
    assert isinstance(store, SnapshotSource)
    with pytest.raises(UsageError):
        StoreTrajectoryReader(object())


def test_an_empty_source_has_one_empty_page(store):
    """No cursor, watermark 0."""
    page = read_page(StoreTrajectoryReader(store), QUERY, view=RAW)
    assert (page.records, page.next_cursor, page.watermark) == ((), None, 0)


def test_a_third_party_without_snapshots_is_never_read_whole():
    """Not even by the reader that could; reading a session is its own decision."""

    class Foreign:
        asked = 0

        def read_session(self, session_id: str) -> Trajectory:
            self.asked += 1
            return Trajectory(session_id, ())

    foreign = Foreign()
    with pytest.raises(BoundedReadUnsupported):
        read_page(foreign, QUERY)
    with pytest.raises(BoundedReadUnsupported):
        iter_records(foreign, QUERY)
    reader = StoreTrajectoryReader(foreign)
    with pytest.raises(BoundedReadUnsupported):
        reader.read_page(QUERY)
    assert foreign.asked == 0
    assert reader.read_session("s").records == ()


def test_a_third_party_with_pages_is_read_by_pages(reader):
    """Only its `read_page` is used."""

    class Foreign:
        def read_page(self, query, cursor=None, *, view):
            return reader.read_page(query, cursor, view=view)

    found = list(iter_records(Foreign(), TrajectoryQuery(limit=4), view=RAW))
    assert [record.sequence for record in found] == list(range(1, 10))


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": -1}, {"after_sequence": -1}, {"kinds": ("nonsense",)}])
def test_a_query_that_cannot_be_meant_is_refused(wrong):
    """Before anything is read."""
    with pytest.raises(UsageError):
        TrajectoryQuery(**wrong)
