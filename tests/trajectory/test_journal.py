"""The journal: what was acknowledged is there, a torn tail is cut, damage is named, and one writer writes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qiju.errors import (
    CursorRejected,
    IdConflict,
    InvalidRecord,
    NotFound,
    Refused,
    StorageFailed,
    StoreBusy,
    StoreDamaged,
)
from qiju.jsontext import MAX_DEPTH, Number
from qiju.trajectory import (
    JournalTrajectoryStore,
    PrivacyView,
    RecordKind,
    StoreTrajectoryReader,
    TrajectoryDraft,
    TrajectoryQuery,
    frames,
    iter_records,
    read_page,
)

RAW = PrivacyView.RAW_PRIVATE


def ids(store: JournalTrajectoryStore) -> list[str]:
    snapshot = store.cut()
    return [record.record_id for record in store.select(snapshot, TrajectoryQuery(), 0, 10**6)]


def offsets(path: Path) -> list[int]:
    """Where each frame begins, and the end."""
    with path.open("rb", buffering=0) as file:
        found = [frame.offset for frame in frames.Scan(file, frames.HEADER.size, path.stat().st_size)]
    return [*found, path.stat().st_size]


def test_a_record_comes_back_as_it_was_given(journal, journal_path):
    """Ids, kind, time and payload; numbers beyond 64 bits and floats keep their digits."""
    payload = {"b": [1, None, True, {"ü": "é\u0301"}], "a": 2**70, "c": 1.5, "d": Number("1e400")}
    given_draft = TrajectoryDraft("s", RecordKind.EVENT, payload, "id", "run", "item", "2026-01-01")
    record = journal.append(given_draft)
    assert (record.sequence, record.record_id, record.session_id) == (1, "id", "s")
    assert (record.run_id, record.work_item_id, record.ts) == ("run", "item", "2026-01-01")
    assert record.payload["a"] == Number(str(2**70))
    assert record.payload["c"] == Number("1.5")
    with JournalTrajectoryStore(journal_path, read_only=True) as reader:
        assert reader.read_session("s").records == (record,)


def test_the_store_fills_in_what_a_draft_leaves_out(journal):
    """A record id that is new, and a time."""
    first, second = (journal.append(TrajectoryDraft("s", RecordKind.STATE, {})) for _ in range(2))
    assert first.record_id != second.record_id
    assert first.ts is not None
    assert first.ts.endswith("Z")


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), "\ud800", nested(MAX_DEPTH)])
def test_what_json_cannot_hold_is_refused(journal, value):
    """A typed error, and nothing appended."""
    with pytest.raises(InvalidRecord):
        journal.append(TrajectoryDraft("s", RecordKind.EVENT, {"x": value}))
    with pytest.raises(InvalidRecord):
        journal.append(TrajectoryDraft("s", RecordKind.EVENT, {"\udc00": 1}))
    assert len(journal) == 0


def test_the_deepest_payload_that_is_taken_can_be_read(journal):
    """What may be written may be read."""
    journal.append(TrajectoryDraft("s", RecordKind.EVENT, {"x": nested(MAX_DEPTH - 1)}))
    assert len(journal.read_session("s").records) == 1


def test_the_same_draft_again_adds_nothing(journal, draft):
    """Idempotent by record id, also within one call; another content under the id is a conflict that names fields."""
    assert journal.append_many([draft(1), draft(2), draft(1)]) == 2
    assert journal.append_many([draft(1), draft(2), draft(3)]) == 1
    assert journal.append(draft(2)).sequence == 2
    with pytest.raises(IdConflict, match="payload"):
        journal.append(draft(2, text="other"))
    with pytest.raises(IdConflict, match="payload"):
        journal.append_many([draft(9), draft(9, text="other")])
    assert ids(journal) == ["r1", "r2", "r3"]


def test_files_are_private(journal, journal_path, draft):
    """Only the owner may read what agents said."""
    journal.append(draft(1))
    journal.close()
    for path in journal_path.parent.iterdir():
        if os.name == "posix":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_a_torn_tail_is_cut_off_at_every_length(tmp_path, draft):
    """Whatever part of the last frame reached the disk, the records before it stay and the next append follows them."""
    whole = tmp_path / "whole.journal"
    with JournalTrajectoryStore(whole) as store:
        store.append_many([draft(1), draft(2)])
    data, last = whole.read_bytes(), offsets(whole)[1]
    for cut in range(last + 1, len(data)):
        path = tmp_path / "torn.journal"
        path.write_bytes(data[:cut])
        with JournalTrajectoryStore(path) as store:
            assert store.recovered == (last, cut - last)
            assert ids(store) == ["r1"]
        assert path.stat().st_size == last
    with JournalTrajectoryStore(path) as store:
        store.append(draft(3))
    with JournalTrajectoryStore(path, read_only=True) as reader:
        assert ids(reader) == ["r1", "r3"]


def test_a_tail_of_lost_writes_is_torn(journal, journal_path, draft):
    """A file that grew but whose last blocks never reached the disk ends in NUL bytes."""
    journal.append_many([draft(1), draft(2)])
    journal.close()
    last = offsets(journal_path)[1]
    data = journal_path.read_bytes()
    for keep in (0, 10, 70):
        journal_path.write_bytes(data[: last + keep] + bytes(len(data) - last - keep))
        with JournalTrajectoryStore(journal_path) as store:
            assert ids(store) == ["r1"]
            assert store.recovered is not None


def test_a_torn_tail_can_be_made_an_error(journal, journal_path, draft):
    """`recover_partial_tail=False` names the offset and changes nothing; a reader leaves the tail out."""
    journal.append_many([draft(1), draft(2)])
    journal.close()
    last = offsets(journal_path)[1]
    journal_path.write_bytes(journal_path.read_bytes()[:-3])
    size = journal_path.stat().st_size
    with pytest.raises(StoreDamaged, match=f"offset {last}"):
        JournalTrajectoryStore(journal_path, recover_partial_tail=False)
    with JournalTrajectoryStore(journal_path, read_only=True) as reader:
        assert ids(reader) == ["r1"]
    assert journal_path.stat().st_size == size


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_anywhere_before_the_tail_names_its_offset(tmp_path_factory, draft, data):
    """One changed byte in any frame is an error naming that frame's offset, with or without a kept index."""
    path = tmp_path_factory.mktemp("damage") / "a.journal"
    with JournalTrajectoryStore(path) as store:
        store.append_many([draft(number) for number in range(1, 6)])
    starts = offsets(path)
    raw = bytearray(path.read_bytes())
    at = data.draw(st.integers(frames.HEADER.size, starts[-2] - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(raw))
    frame = max(start for start in starts if start <= at)
    for read_only in (True, False):
        with pytest.raises(StoreDamaged, match=f"offset {frame}"):
            JournalTrajectoryStore(path, read_only=read_only)
    assert path.read_bytes() == bytes(raw)


def test_damage_in_a_whole_last_record_is_no_tail(journal, journal_path, draft):
    """It may have been acknowledged, so cutting it off would lose it."""
    journal.append_many([draft(1), draft(2)])
    journal.close()
    raw = bytearray(journal_path.read_bytes())
    raw[-4] ^= 1
    journal_path.write_bytes(bytes(raw))
    with pytest.raises(StoreDamaged, match=f"offset {offsets_before(raw)}"):
        JournalTrajectoryStore(journal_path)


def offsets_before(raw: bytes | bytearray) -> int:
    return bytes(raw).rindex(frames.FRAME_MAGIC)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 500, frames.MAGIC + bytes(48)])
def test_a_file_that_is_no_journal_is_refused(journal_path, content):
    """Never overwritten; only an empty file becomes a journal."""
    journal_path.write_bytes(content)
    with pytest.raises(StoreDamaged):
        JournalTrajectoryStore(journal_path, read_only=True)
    if content:
        with pytest.raises(StoreDamaged):
            JournalTrajectoryStore(journal_path)
        assert journal_path.read_bytes() == content
    else:
        JournalTrajectoryStore(journal_path).close()


def test_a_missing_journal_is_not_found(journal_path):
    """Reading creates nothing."""
    with pytest.raises(NotFound):
        JournalTrajectoryStore(journal_path, read_only=True)
    assert not list(journal_path.parent.iterdir())


def test_a_session_above_the_limit_points_to_paging(journal_path, draft):
    """A whole session is held in memory, so there is a bound."""
    with JournalTrajectoryStore(journal_path, max_query_records=3) as store:
        store.append_many([draft(number) for number in range(1, 4)])
        assert len(store.read_session("s1").records) == 3
        store.append(draft(4))
        with pytest.raises(Refused) as caught:
            store.read_session("s1")
    assert "read_page" in caught.value.hint


def test_one_writer_at_a_time_and_readers_beside_it(journal, journal_path, draft):
    """A second writer, in this process or another, is told who holds the journal; readers see what is acknowledged."""
    journal.append(draft(1))
    with pytest.raises(StoreBusy, match=str(os.getpid())):
        JournalTrajectoryStore(journal_path)
    code = f"from qiju.trajectory import JournalTrajectoryStore as J\nJ({str(journal_path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreBusy" in other.stderr
    with JournalTrajectoryStore(journal_path, read_only=True) as reader:
        assert ids(reader) == ["r1"]
        journal.append(draft(2))
        assert ids(reader) == ["r1", "r2"]
        with pytest.raises(Refused):
            reader.append(draft(3))
    journal.close()
    JournalTrajectoryStore(journal_path).close()


def test_reading_leaves_no_trace(journal, journal_path, draft, tmp_path):
    """A reader writes nothing beside the journal."""
    journal.append(draft(1))
    journal.close()
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with StoreTrajectoryReader.from_journal(journal_path) as reader:
        assert len(list(iter_records(reader, TrajectoryQuery(), view=RAW))) == 1
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("how", ["missing", "garbage", "stale", "other"])
def test_the_index_can_be_thrown_away(journal, journal_path, draft, how, tmp_path):
    """Missing, unreadable, behind the journal or of another journal: it is built again."""
    index = journal_path.with_name(journal_path.name + ".index")
    journal.append_many([draft(number) for number in range(1, 6)])
    journal.close()
    stale = index.read_bytes()
    with JournalTrajectoryStore(journal_path) as store:
        store.append(draft(6))
    if how == "missing":
        index.unlink()
    elif how == "garbage":
        index.write_bytes(b"no database" * 100)
    elif how == "stale":
        index.write_bytes(stale)
    else:
        with JournalTrajectoryStore(tmp_path / "b.journal") as other:
            other.append(draft(7))
        index.write_bytes((tmp_path / "b.journal.index").read_bytes())
    for read_only in (True, False):
        with JournalTrajectoryStore(journal_path, read_only=read_only) as store:
            assert ids(store) == [f"r{number}" for number in range(1, 7)]
    with JournalTrajectoryStore(journal_path) as store:
        assert store.append(draft(3)).sequence == 3


def test_a_full_disk_leaves_the_journal_as_it_was(journal, journal_path, draft, monkeypatch):
    """The refused append is not there, not even in part; the journal opens again."""
    journal.append(draft(1))
    size = journal_path.stat().st_size
    real = os.write

    def half(handle: int, data: bytes) -> int:
        if handle == journal._handle:
            if len(data) > 50:
                return real(handle, bytes(data[:40]))
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(StorageFailed, match="No space"):
        journal.append(draft(2))
    monkeypatch.undo()
    assert journal_path.stat().st_size == size
    with pytest.raises(StorageFailed):
        journal.append(draft(3))
    with JournalTrajectoryStore(journal_path) as store:
        assert ids(store) == ["r1"]


def test_a_snapshot_stays_fixed_while_the_journal_grows(journal, journal_path, draft):
    """Pages of an earlier snapshot never show later records, even in another process's reader."""
    journal.append_many([draft(number) for number in range(1, 8)])
    with StoreTrajectoryReader.from_journal(journal_path) as reader:
        query = TrajectoryQuery(limit=3)
        page = read_page(reader, query, view=RAW)
        journal.append_many([draft(number) for number in range(8, 20)])
        read_page(reader, query, view=RAW)
        seen = [record.record_id for record in page.records]
        with StoreTrajectoryReader.from_journal(journal_path) as second:
            while page.next_cursor is not None:
                page = read_page(second, query, page.next_cursor, view=RAW)
                assert page.watermark == 7
                seen += [record.record_id for record in page.records]
        assert seen == [f"r{number}" for number in range(1, 8)]


def edit(path: Path, old: bytes, new: bytes) -> None:
    """A same-length edit in place, behind the journal's back."""
    at = path.read_bytes().index(old)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(new)


def test_an_edit_of_an_addressed_record_is_found_by_the_page(journal, journal_path, draft):
    """Every record served is checked against the digest taken when the snapshot was cut."""
    journal.append_many([draft(number) for number in range(1, 8)])
    with StoreTrajectoryReader.from_journal(journal_path) as reader:
        page = read_page(reader, TrajectoryQuery(limit=3), view=RAW)
        edit(journal_path, b"text 5", b"TEXT 5")
        with pytest.raises(CursorRejected):
            read_page(reader, TrajectoryQuery(limit=3), page.next_cursor, view=RAW)


def test_an_edit_with_checksums_made_to_fit_is_found_by_the_page(journal, journal_path, draft):
    """A frame that checks in itself is still not the frame of the snapshot."""
    journal.append_many([draft(number) for number in range(1, 8)])
    starts = offsets(journal_path)
    with StoreTrajectoryReader.from_journal(journal_path) as reader:
        page = read_page(reader, TrajectoryQuery(limit=3), view=RAW)
        raw = journal_path.read_bytes()[starts[4] : starts[5]]
        frame = frames.decode(raw)
        assert frame is not None
        forged = frames.encode(frame.sequence, frame.meta, frame.payload.replace(b"text 5", b"evil 5"))
        edit(journal_path, raw, forged)
        with pytest.raises(CursorRejected):
            read_page(reader, TrajectoryQuery(limit=3), page.next_cursor, view=RAW)


def test_an_edit_elsewhere_is_found_by_full_checks_only(journal, journal_path, draft):
    """Pages check what they serve; an iteration, `verify_pages="full"` and opening again check everything."""
    journal.append_many([draft(number) for number in range(1, 8)])
    query = TrajectoryQuery(limit=2)
    with (
        StoreTrajectoryReader.from_journal(journal_path) as reader,
        StoreTrajectoryReader.from_journal(journal_path, verify_pages="full") as strict,
    ):
        page, strict_page = (read_page(one, query, view=RAW) for one in (reader, strict))
        walk = iter_records(reader, query, view=RAW)
        next(walk)
        edit(journal_path, b"text 7", b"TEXT 7")
        assert len(read_page(reader, query, page.next_cursor, view=RAW).records) == 2
        with pytest.raises(CursorRejected):
            read_page(strict, query, strict_page.next_cursor, view=RAW)
        with pytest.raises(CursorRejected):
            list(walk)
        with pytest.raises(CursorRejected):
            list(iter_records(reader, query, view=RAW))
    with pytest.raises(StoreDamaged):
        JournalTrajectoryStore(journal_path, read_only=True)


@pytest.mark.parametrize("how", ["truncated", "replaced", "gone"])
def test_a_journal_that_is_another_file_ends_its_cursors(journal, journal_path, draft, how):
    """Identity and length are checked on every page."""
    journal.append_many([draft(number) for number in range(1, 8)])
    journal.close()
    with StoreTrajectoryReader.from_journal(journal_path) as reader:
        page = read_page(reader, TrajectoryQuery(limit=3), view=RAW)
        data = journal_path.read_bytes()
        if how == "truncated":
            os.truncate(journal_path, len(data) - 5)
        else:
            journal_path.unlink()
        if how == "replaced":
            journal_path.write_bytes(data)
        with pytest.raises(CursorRejected):
            read_page(reader, TrajectoryQuery(limit=3), page.next_cursor, view=RAW)


@pytest.mark.parametrize(
    ("meta", "payload"),
    [
        (b"not json", b"{}"),
        (b"[]", b"{}"),
        (b"{}", b"{}"),
        (b'{"kind":"message","record_id":null,"run_id":null,"session_id":"s","ts":null,"work_item_id":null}', b"{}"),
        (b'{"kind":"nonsense","record_id":"r","run_id":null,"session_id":"s","ts":null,"work_item_id":null}', b"{}"),
        (b'{"kind":"message","record_id":"r","run_id":1,"session_id":"s","ts":null,"work_item_id":null}', b"{}"),
        (b'{"kind":"message","record_id":"r","run_id":null,"session_id":"s","ts":null,"work_item_id":null}', b"\xff"),
        (b'{"kind":"message","record_id":"r","run_id":null,"session_id":"s","ts":null,"work_item_id":null}', b"[1]"),
        (
            b'{"kind":"message","record_id":"r","run_id":null,"session_id":"s","ts":null,"work_item_id":null}',
            b"{secret",
        ),
    ],
)
def test_a_frame_that_is_no_record_is_a_typed_error(journal_path, meta, payload):
    """Written by somebody else, with checksums that hold: named, never quoted."""
    journal_path.write_bytes(frames.header(bytes(32)) + frames.encode(1, meta, payload))
    with pytest.raises(StoreDamaged) as caught, JournalTrajectoryStore(journal_path, read_only=True) as reader:
        ids(reader)
    assert "secret" not in str(caught.value)
