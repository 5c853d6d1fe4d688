"""Codex rollouts: the items are the truth, events that only repeat them are reported, everything else is kept."""

from __future__ import annotations

import json

from qiju.trajectory.types import RecordKind


def kinds(drafts, kind):
    return [draft for draft in drafts if draft.kind is kind]


def count(report, name):
    return report.anomalies.get(name, (0, []))[0]


def test_an_event_that_repeats_an_item_is_reported_whichever_comes_first(codex, write, read):
    codex.event("user_message", message="do it")
    codex.said("user", "do it")
    codex.item("reasoning", id="r1", summary=[{"type": "summary_text", "text": "think"}], encrypted_content="x")
    codex.event("agent_reasoning", text="think")
    codex.said("assistant", "did it")
    codex.event("agent_message", message="did it")
    codex.event("task_complete", turn_id="1", last_agent_message="did it", duration_ms=5)
    drafts, report = read(write(codex.lines), "codex")
    assert [(draft.payload["role"], draft.payload["content"]) for draft in kinds(drafts, RecordKind.MESSAGE)] == [
        ("user", "do it"),
        ("assistant", "did it"),
    ]
    assert [draft.payload["text"] for draft in kinds(drafts, RecordKind.REASONING)] == ["think"]
    assert [draft.payload["data"] for draft in kinds(drafts, RecordKind.EVENT)] == [{"duration_ms": 5}]
    assert count(report, "duplicate_event") == 4
    assert [entry.field for entry in report.loss.entries] == ["reasoning.encrypted_content"]


def test_an_event_that_no_item_repeats_is_kept(codex, write, read):
    codex.event("agent_message", message="only here")
    codex.event("exec_command_begin", call_id="never-declared", command=["ls"])
    codex.event("exec_command_end", call_id="c1", exit_code=3)
    drafts, report = read(write(codex.lines), "codex")
    events = [draft.payload for draft in kinds(drafts, RecordKind.EVENT)]
    assert [event["type"] for event in events] == ["agent_message", "exec_command_begin", "exec_command_end"]
    assert events[0]["data"] == {"message": "only here"}
    assert count(report, "duplicate_event") == 0


def test_a_call_known_by_two_ids_is_answered_under_either(codex, write, read):
    codex.item("function_call", id="fc-1", call_id="call-1", name="exec_command", arguments='{"cmd": "ls"}')
    codex.item("function_call", id="fc-2", call_id="call-2", name="exec_command", arguments='{"cmd": "pwd"}')
    codex.item("function_call_output", call_id="fc-1", output="a")
    codex.item("function_call_output", call_id="call-2", output="b")
    drafts, report = read(write(codex.lines), "codex")
    calls = kinds(drafts, RecordKind.TOOL_CALL)
    assert [(draft.payload["call_id"], draft.payload["item_id"]) for draft in calls] == [
        ("call-1", "fc-1"),
        ("call-2", "fc-2"),
    ]
    assert calls[0].payload["arguments"] == {"cmd": "ls"}
    assert count(report, "call_with_two_ids") == 2
    for name in ("orphan_result", "unanswered_call", "duplicate_result"):
        assert count(report, name) == 0, name


def test_results_under_both_ids_of_one_call_are_two_results_of_it(codex, write, read):
    codex.item("function_call", id="fc-1", call_id="call-1", name="f", arguments="{}")
    codex.item("function_call_output", call_id="call-1", output="a")
    codex.item("function_call_output", call_id="fc-1", output="b")
    drafts, report = read(write(codex.lines), "codex")
    assert len(kinds(drafts, RecordKind.TOOL_RESULT)) == 2
    assert count(report, "duplicate_result") == 1
    assert count(report, "orphan_result") == 0


def test_a_result_before_its_call_is_no_orphan(codex, write, read):
    codex.item("function_call_output", call_id="fc-1", output="early")
    codex.item("function_call", id="fc-1", call_id="call-1", name="f", arguments="{}")
    _, report = read(write(codex.lines), "codex")
    assert count(report, "orphan_result") == 0
    assert count(report, "unanswered_call") == 0


def test_arguments_that_are_no_json_object_are_kept_as_they_are(codex, write, read):
    codex.item("function_call", call_id="c1", name="f", arguments='{"cut": ')
    codex.item("custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin Patch")
    codex.item("local_shell_call", call_id="c3", action={"type": "exec", "command": ["ls"]}, status="completed")
    drafts, _ = read(write(codex.lines), "codex")
    assert [draft.payload["arguments"] for draft in kinds(drafts, RecordKind.TOOL_CALL)] == [
        {"arguments": '{"cut": '},
        {"input": "*** Begin Patch"},
        {"type": "exec", "command": ["ls"]},
    ]


def test_an_output_that_is_json_in_a_string_is_opened(codex, write, read):
    output = json.dumps({"output": "no such file", "metadata": {"exit_code": 1}})
    codex.item("function_call_output", call_id="c1", output=output)
    drafts, _ = read(write(codex.lines), "codex")
    assert drafts[1].payload["output"] == {"output": "no such file", "metadata": {"exit_code": 1}}


def test_tokens_told_again_with_new_rate_limits_are_counted_once(codex, write, read):
    def tokens(total, last, used):
        info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}}
        codex.event("token_count", info=info, rate_limits={"used_percent": used})

    tokens(100, 100, 1)
    tokens(100, 100, 2)
    tokens(150, 50, 2)
    codex.event("token_count", info=None, rate_limits={})
    drafts, report = read(write(codex.lines), "codex")
    usage = [draft.payload for draft in drafts if draft.payload.get("type") == "usage"]
    assert [one["input_tokens"] for one in usage] == [100, 50]
    assert report.usage["input_tokens"] == 150
    assert count(report, "usage_repeated") == 1
    assert sum(draft.payload.get("type") == "token_count" for draft in drafts) == 2


def test_unknown_frames_items_and_events_are_kept_whole(codex, write, read):
    codex.add("world_state", {"a": 1})
    codex.item("dream", id="d1", about="sheep")
    codex.event("aurora", colour="green")
    drafts, report = read(write(codex.lines), "codex")
    assert [draft.payload["data"] for draft in kinds(drafts, RecordKind.EVENT)] == [
        {"a": 1},
        {"type": "dream", "id": "d1", "about": "sheep"},
        {"colour": "green"},
    ]
    assert report.unknown == {"world_state": 1, "response_item:dream": 1, "event_msg:aurora": 1}


def test_older_rollouts_hold_their_items_bare(write, read):
    lines = [
        {"id": "old-1", "timestamp": "2025-05-07T17:24:21Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]
    drafts, report = read(write(lines), "codex")
    assert {draft.session_id for draft in drafts} == {"old-1"}
    assert [draft.kind.value for draft in drafts] == ["state", "message", "tool_call", "tool_result"]
    assert report.anomalies == {}


def test_a_grown_rollout_gives_the_old_ids_again(codex, write, read):
    codex.said("user", "one")
    codex.item("function_call", id="fc-1", call_id="c1", name="f", arguments="{}")
    before, _ = read(write(codex.lines, tail='{"timestamp": "2026'), "codex")
    codex.item("function_call_output", call_id="c1", output="x")
    after, _ = read(write(codex.lines), "codex")
    known = [(draft.record_id, draft.payload) for draft in before if draft.payload.get("type") != "torn_line"]
    assert [(draft.record_id, draft.payload) for draft in after][: len(known)] == known
    assert len(after) == len(known) + 1
