"""The exchange log keeps facts in order, pairs by either id, and names the ids that contradict each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju.errors import ExchangeConflict, InvalidRecord
from qiju.trajectory import ExchangeLog, RecordKind, SteeringItem, ToolCall, TrajectoryRecord, exchange_from_records


def opened(*ids: str) -> ExchangeLog:
    log = ExchangeLog("log")
    log.append_batch("b1", [ToolCall(name, "read", {"path": "a"}) for name in ids])
    return log


def test_results_keep_arrival_order_and_derive_declaration_order():
    """Facts are not rewritten: two orders, one from the other."""
    log = opened("c1", "c2", "c3")
    for name in ("c3", "c1", "c2"):
        log.append_result("b1", name, f"out {name}")
    assert [item.call_id for item in log.results_for_batch("b1")] == ["c3", "c1", "c2"]
    assert [item.call_id for item in log.results_for_batch_in_declaration_order("b1")] == ["c1", "c2", "c3"]
    assert [call.call_id for call in log.declared_calls("b1")] == ["c1", "c2", "c3"]
    assert log.open_batch_id() is None


def test_a_call_without_result_is_no_success():
    """The outcome is None and the batch stays open."""
    log = opened("c1", "c2")
    log.append_result("b1", "c2", "done")
    assert log.open_batch_id() == "b1"
    assert [(call.call_id, result is None) for call, result in log.outcomes("b1")] == [("c1", True), ("c2", False)]


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda log: log.append_result("b1", "c9", 1), ("b1", "c9")),
        (lambda log: log.append_result("b9", "c1", 1), ("b9",)),
        (lambda log: log.append_batch("b2", [ToolCall("x", "t", {})]), ("b1", "b2")),
        (lambda log: log.deliver_steering(), ("b1",)),
        (lambda log: log.declared_calls("b7"), ("b7",)),
    ],
)
def test_contradictions_name_the_ids(act, words):
    """Undeclared call, unknown batch, second open batch, steering into an open batch."""
    log = opened("c1")
    before = log.to_dict()
    with pytest.raises(ExchangeConflict) as caught:
        act(log)
    assert all(word in str(caught.value) for word in words)
    assert log.to_dict() == before


def test_a_second_result_for_a_call_is_refused_under_either_id():
    """A call known by two ids has one result, whichever id it came with."""
    log = ExchangeLog()
    log.append_batch("b", [ToolCall("call_1", "run", {}, item_id="fc_1"), ToolCall("call_2", "run", {}, "fc_2")])
    log.append_result("b", "fc_1", "one")
    with pytest.raises(ExchangeConflict, match="call_1"):
        log.append_result("b", "call_1", "again")
    log.append_result("b", "call_2", "two")
    assert [item.output for item in log.results_for_batch_in_declaration_order("b")] == ["one", "two"]


@pytest.mark.parametrize("calls", [[], [ToolCall("a", "t", {}), ToolCall("b", "t", {}, "a")]])
def test_a_batch_needs_calls_that_can_be_told_apart(calls):
    """An empty batch could never close; a shared id could never be paired."""
    with pytest.raises(ExchangeConflict):
        ExchangeLog().append_batch("b", calls)


def test_a_batch_id_is_used_once():
    """Even after the batch has closed."""
    log = opened("c1")
    log.append_result("b1", "c1", None)
    with pytest.raises(ExchangeConflict, match="b1"):
        log.append_batch("b1", [ToolCall("c2", "t", {})])


def test_steering_waits_for_a_safe_boundary():
    """Queued steering is no fact until it is delivered, in order, between batches."""
    log = opened("c1")
    log.queue_steering("first")
    log.queue_steering("second")
    assert all(not isinstance(item, SteeringItem) for item in log.items)
    log.append_result("b1", "c1", "x")
    assert [item.text for item in log.deliver_steering()] == ["first", "second"]
    assert [item.text for item in log.items if isinstance(item, SteeringItem)] == ["first", "second"]
    assert log.queued_steering == ()


def test_to_dict_and_from_dict_are_inverse():
    """Facts, queued steering, the open batch and other ids survive."""
    log = opened("c1", "c2")
    log.append_message("user", [{"type": "text", "text": "hi"}])
    log.append_result("b1", "c2", {"x": 1}, is_error=True)
    log.queue_steering("later")
    again = ExchangeLog.from_dict(log.to_dict())
    assert again.to_dict() == log.to_dict()
    assert again.open_batch_id() == "b1"
    assert again.log_id == "log"


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": "qiju.exchange/99"},
        {"items": [{"type": "unheard-of"}]},
        {"items": "no list"},
        {"queued_steering": [{"type": "message", "role": "user", "content": ""}]},
    ],
)
def test_from_dict_refuses_other_shapes(change):
    """A typed error, never a KeyError."""
    with pytest.raises(InvalidRecord):
        ExchangeLog.from_dict({**opened("c1").to_dict(), **change})


def test_from_dict_refuses_facts_that_contradict_each_other():
    """A log that could not have been written cannot be read."""
    value = opened("c1").to_dict()
    result = {"type": "tool_result", "batch_id": "b1", "call_id": "nope", "output": 1, "is_error": False}
    with pytest.raises(ExchangeConflict, match="nope"):
        ExchangeLog.from_dict({**value, "items": [*value["items"], result]})


def test_drafts_of_a_log_are_repeatable():
    """The same log gives the same record ids, so storing it twice adds nothing."""
    log = opened("c1", "c2")
    log.append_result("b1", "c1", "x")
    drafts = list(log.to_drafts("s"))
    assert [item.kind for item in drafts] == [RecordKind.TOOL_CALL, RecordKind.TOOL_CALL, RecordKind.TOOL_RESULT]
    assert drafts == list(log.to_drafts("s"))
    assert len({item.record_id for item in drafts}) == 3


def recorded(sequence: int, kind: RecordKind, **payload: object) -> TrajectoryRecord:
    return TrajectoryRecord(sequence, f"r{sequence}", "s", None, None, kind, None, dict(payload), "")


def test_reading_reports_anomalies_and_does_not_stop():
    """A missing result is interrupted, an unknown one reported, a second one not taken (X02)."""
    call, result = RecordKind.TOOL_CALL, RecordKind.TOOL_RESULT
    log, anomalies = exchange_from_records(
        [
            recorded(1, call, batch_id="b1", call_id="c1", name="run", arguments={}),
            recorded(2, call, batch_id="b1", call_id="c2", name="run", arguments={}),
            recorded(3, result, batch_id="b1", call_id="c1", output="ok"),
            recorded(4, result, call_id="never-declared", output="?"),
            recorded(5, result, call_id="c1", output="again"),
            recorded(6, call, call_id="c3", item_id="fc_3", name="run", arguments={}),
            recorded(7, result, call_id="fc_3", output="three"),
            recorded(8, RecordKind.MESSAGE, role="assistant", content="done"),
            recorded(9, result, output="no id"),
        ]
    )
    assert [(item.sequence, item.call_id, item.reason) for item in anomalies] == [
        (2, "c2", "no_result"),
        (4, "never-declared", "unknown_call"),
        (5, "c1", "second_result"),
        (9, "", "unreadable"),
    ]
    first = {call.call_id: result for call, result in log.outcomes("b1")}
    assert first["c1"].output == "ok"
    assert first["c2"].output is None
    assert first["c2"].is_error
    assert [item.output for item in log.results_for_batch("c3")] == ["three"]


@given(st.lists(st.tuples(st.sampled_from(["call", "result", "message", "steering"]), st.integers(0, 4)), max_size=25))
def test_any_recorded_exchange_can_be_read(facts):
    """Whatever order records are in, every call is in the log once and nothing raises."""
    kinds = {"call": RecordKind.TOOL_CALL, "result": RecordKind.TOOL_RESULT, "message": RecordKind.MESSAGE}
    records = [
        recorded(
            number,
            kinds.get(kind, RecordKind.STEERING),
            call_id=f"c{which}",
            name="t",
            role="user",
            content="x",
            text="y",
        )
        for number, (kind, which) in enumerate(facts, 1)
    ]
    log, _anomalies = exchange_from_records(records)
    declared = [call.call_id for batch in log.batch_ids for call in log.declared_calls(batch)]
    assert sorted(declared) == sorted({f"c{which}" for kind, which in facts if kind == "call"})
    assert ExchangeLog.from_dict(log.to_dict()).to_dict() == log.to_dict()
