"""The canonical store's trajectory half: redacted on the way in, repeatable, covered by numbers, digests and verify."""

from __future__ import annotations

import pytest

from qiju import jsontext
from qiju.errors import IdConflict, InvalidRecord, Refused, VerificationFailed
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store
from qiju.trajectory import (
    PrivacyView,
    RecordKind,
    SqliteTrajectoryStore,
    StoreTrajectoryReader,
    TrajectoryDraft,
    TrajectoryQuery,
    events,
    iter_records,
    read_page,
)

RAW = PrivacyView.RAW_PRIVATE
TOKEN = "gh" + "p_" + "0aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC1aE3xk"


def log(store: Store, **fields: object) -> int:
    admitted = store.admit(check({"source": "agent", **fields}), session_id="s1", session_source="test")
    return store.log(admitted, Home("demo", named=True)).seq


def all_records(store: SqliteTrajectoryStore) -> list:
    return list(iter_records(StoreTrajectoryReader(store), TrajectoryQuery(), view=RAW))


def test_records_and_events_share_one_sequence(store, draft):
    """A record stands in the sequence once, by reference, with its own digest."""
    store.append(draft(1))
    log(store.store, title="decided", body_md="why")
    store.append(draft(2))
    found = all_records(store)
    assert [(record.sequence, record.kind) for record in found] == [
        (1, RecordKind.MESSAGE),
        (2, RecordKind.SESSION_RECORD),
        (3, RecordKind.MESSAGE),
    ]
    record = store.store.by_seq(1)
    assert found[1].record_id == "s1:1"
    assert found[1].payload == record.record.to_json()
    assert found[1].digest == record.digest
    assert store.store.db.value("SELECT payload FROM trajectory_event WHERE seq = 2") == "{}"


def test_everything_that_comes_in_is_redacted(store):
    """Values, keys, ids and times; the audit says where, and no byte of the store holds the secret."""
    secret = TrajectoryDraft(
        f"session {TOKEN}",
        RecordKind.TOOL_RESULT,
        {"output": f"token {TOKEN}", f"key {TOKEN}": [{"deep": TOKEN}]},
        record_id=f"id-{TOKEN}",
        run_id=TOKEN,
        work_item_id=TOKEN,
        ts=TOKEN,
    )
    record = store.append(secret)
    assert TOKEN not in jsontext.canonical(record.to_dict())
    store.store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in store.store.home.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path.name
    audit = store.store.db.connection.execute(
        "SELECT field, action, event_seq FROM redaction_audit ORDER BY field"
    ).fetchall()
    assert ("output", "trajectory", record.sequence) in audit
    assert len(audit) == 3


def test_payload_is_canonical_text_with_its_digest(store):
    """What is stored is what the digest was taken of."""
    record = store.append(TrajectoryDraft("s", RecordKind.EVENT, {"b": 1, "a": 1.50, "é": 2**65}))
    payload, digest = store.store.db.connection.execute("SELECT payload, digest FROM trajectory_event").fetchone()
    assert payload == '{"a":1.5,"b":1,"é":36893488147419103232}'
    assert digest == record.digest == jsontext.digest(payload)


def test_importing_again_adds_nothing(store, draft):
    """Idempotent by session and record id; one conflict leaves nothing of the import."""
    drafts = [draft(number) for number in range(1, 6)]
    assert store.append_many(drafts) == 5
    report = store.import_drafts([*drafts, draft(6)])
    assert (report.read, report.added, report.identical) == (6, 1, 5)
    with pytest.raises(IdConflict, match="payload"):
        store.append_many([draft(7), draft(1, text="other")])
    assert len(all_records(store)) == 6


def test_a_dry_run_changes_nothing(store, draft):
    """It reports what would be added, and takes it back."""
    store.append(draft(1))
    before = store.cut()
    assert store.import_drafts([draft(1), draft(2)], dry_run=True).added == 1
    assert store.cut() == before


def test_an_event_that_was_redacted_does_not_come_back(store, draft):
    """Importing the older text again neither restores it nor stops the rest."""
    store.append_many([draft(1, text="the old words"), draft(2)])
    with store.store.db.write():
        event = events.find(store.store.db, "s1", "r1")
        events.rewrite(store.store.db, event._replace(payload='{"role":"user","content":"[gone]"}'))
    report = store.import_drafts([draft(1, text="the old words"), draft(2), draft(3)])
    assert (report.added, report.identical) == (1, 2)
    assert all_records(store)[0].payload["content"] == "[gone]"


def test_session_records_come_in_as_records(store):
    """They are found by search and show, keep their digest, and are redacted by the same door."""
    record = {"id": "s9:4", "project": "demo", "title": f"used {TOKEN}", "body_md": "b", "custom": [1]}
    found = store.append(TrajectoryDraft("s9", RecordKind.SESSION_RECORD, record, record_id="s9:4"))
    stored = store.store.find("s9:4", "demo")
    assert stored is not None
    assert found.digest == stored.digest
    assert TOKEN not in stored.record.title
    again = store.append(TrajectoryDraft("s9", RecordKind.SESSION_RECORD, record, record_id="s9:4"))
    assert again.sequence == found.sequence
    with pytest.raises(InvalidRecord):
        store.append(TrajectoryDraft("s9", RecordKind.SESSION_RECORD, {"title": "of no project"}))


def test_a_record_that_does_not_match_its_digest_is_not_served(store, draft):
    """The error names the sequence and how to read on; the good records behind it are served."""
    store.append_many([draft(1, text="good"), draft(2, text="bad secretword"), draft(3)])
    connection = store.store.db.connection
    connection.execute("UPDATE trajectory_event SET payload = replace(payload, 'bad', 'BAD') WHERE seq = 2")
    reader = StoreTrajectoryReader(store)
    with pytest.raises(VerificationFailed) as caught:
        read_page(reader, TrajectoryQuery(), view=RAW)
    assert "2" in str(caught.value)
    assert "secretword" not in str(caught.value) + caught.value.hint
    behind = read_page(reader, TrajectoryQuery(after_sequence=2), view=RAW)
    assert [record.sequence for record in behind.records] == [3]


def test_verify_names_what_is_wrong(store, draft):
    """A changed payload, a row by hand, an event without its record."""
    store.append_many([draft(1), draft(2)])
    log(store.store, title="t")
    assert store.verify() == []
    connection = store.store.db.connection
    connection.execute("UPDATE trajectory_event SET payload = '{\"role\":1}' WHERE seq = 1")
    connection.execute("INSERT INTO trajectory_event (session_id, kind, payload) VALUES ('s', 'event', '{}')")
    connection.execute("INSERT INTO trajectory_event (session_id, kind, record_seq) VALUES ('s', 'session_record', 99)")
    found = {problem.seq: problem.message for problem in store.verify()}
    assert "digest" in found[1]
    assert "unsealed" in found[4]
    assert "not there" in found[5]
    assert len(found) == 3


def test_a_row_by_hand_is_served(store):
    """A person may insert an event with the shell; it has no digest, so it gets the one of what it says now."""
    store.store.db.connection.execute(
        "INSERT INTO trajectory_event (session_id, kind, payload) VALUES ('s', 'message', '{\"role\": \"user\"}')"
    )
    (record,) = all_records(store)
    assert record.payload == {"role": "user"}
    assert record.digest == jsontext.digest('{"role":"user"}')


def test_a_session_above_the_limit_points_to_paging(tmp_path, draft):
    """As with a journal."""
    with Store.open(tmp_path / "home") as opened:
        store = SqliteTrajectoryStore(opened, max_query_records=2)
        store.append_many([draft(1), draft(2)])
        assert len(store.read_session("s1").records) == 2
        store.append(draft(3))
        with pytest.raises(Refused) as caught:
            store.read_session("s1")
        assert "read_page" in caught.value.hint


def test_queries_select_by_session_run_item_and_kind(store):
    """Every combination gives what a plain scan gives, in sequence order."""
    kinds = ("message", "tool_call", "tool_result", "event")
    drafts = [
        TrajectoryDraft(
            f"s{number % 3}",
            RecordKind(kinds[number % 4]),
            {"n": number},
            run_id=f"run{number % 2}" if number % 5 else None,
            work_item_id=f"w{number % 4}" if number % 3 else None,
        )
        for number in range(60)
    ]
    store.append_many(drafts)
    everything = all_records(store)
    assert len(everything) == 60
    reader = StoreTrajectoryReader(store)
    for session in (None, "s0", "s1", "nobody"):
        for run in (None, "run1"):
            for item in (None, "w1"):
                for chosen in ((), ("message",), ("event", "tool_call", "event")):
                    for after in (None, 17):
                        query = TrajectoryQuery(session, run, item, chosen, after, 7)
                        expected = [
                            record
                            for record in everything
                            if session in (None, record.session_id)
                            and run in (None, record.run_id)
                            and item in (None, record.work_item_id)
                            and (not chosen or record.kind in chosen)
                            and record.sequence > (after or 0)
                        ]
                        assert list(iter_records(reader, query, view=RAW)) == expected


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (TrajectoryQuery(), "INTEGER PRIMARY KEY"),
        (TrajectoryQuery(session_id="s"), "trajectory_event_session "),
        (TrajectoryQuery(session_id="s", kinds=("event",)), "trajectory_event_session_kind"),
        (TrajectoryQuery(session_id="s", kinds=("event", "state")), "trajectory_event_session_kind"),
        (TrajectoryQuery(kinds=("event", "state")), "trajectory_event_kind"),
        (TrajectoryQuery(run_id="r", kinds=("event",)), "trajectory_event_run"),
        (TrajectoryQuery(session_id="s", work_item_id="w"), "trajectory_event_work_item"),
    ],
)
def test_no_page_scans_or_sorts_the_history(store, query, index):
    """Each access path walks an index in sequence order and stops; only merged kinds sort, a page a kind."""
    from qiju.trajectory.selection import page_sql

    sql, bindings = page_sql("trajectory_event", query)
    plan = store.store.db.connection.execute(
        f"EXPLAIN QUERY PLAN {sql}", {**bindings, "after": 0, "upto": 9, "count": 5}
    ).fetchall()
    lines = [row[3] for row in plan]
    assert any(index in line + " " for line in lines), lines
    if len(query.kinds) < 2:
        assert not any("TEMP B-TREE" in line for line in lines), lines
