"""Claude Code transcripts: every line becomes facts or a report, and the same facts again when the file has grown."""

from __future__ import annotations

import json

import pytest

from qiju.errors import NotFound, UsageError
from qiju.trajectory.types import RecordKind


def kinds(drafts, kind):
    return [draft for draft in drafts if draft.kind is kind]


def count(report, name):
    return report.anomalies.get(name, (0, []))[0]


def test_lines_of_one_answer_count_its_usage_once_with_the_last_statement(claude, write, read):
    """Each line of an answer repeats its usage, and only the last one states all output tokens."""
    first = {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 1}
    claude.user("go")
    claude.assistant("m1", {"type": "thinking", "thinking": "hm", "signature": "x" * 40}, usage=first)
    claude.assistant("m1", {"type": "text", "text": "I will."}, usage=first)
    claude.assistant(
        "m1", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}, usage={**first, "output_tokens": 9}
    )
    claude.result("t1", "done")
    claude.assistant("m2", {"type": "text", "text": "Done."}, usage={"input_tokens": 3, "output_tokens": 2})
    drafts, report = read(write(claude.lines))
    usage = [draft.payload for draft in kinds(drafts, RecordKind.STATE) if draft.payload["type"] == "usage"]
    assert [(one["message_id"], one["input_tokens"], one["output_tokens"]) for one in usage] == [
        ("m1", 110, 9),
        ("m2", 3, 2),
    ]
    assert report.usage == {"input_tokens": 113, "cached_input_tokens": 100, "output_tokens": 11}
    assert count(report, "usage_repeated") == 1
    assert count(report, "usage_revised") == 1
    assert [entry.field for entry in report.loss.entries] == ["thinking.signature"]


def test_an_answer_taken_up_again_after_another_is_counted_once(claude, write, read):
    spent = {"input_tokens": 5, "output_tokens": 5}
    claude.assistant("m1", {"type": "text", "text": "a"}, usage=spent)
    claude.assistant("m2", {"type": "text", "text": "b"}, usage=spent)
    claude.assistant("m1", {"type": "text", "text": "c"}, usage=spent)
    _, report = read(write(claude.lines))
    assert report.usage["input_tokens"] == 10


def test_pairs_that_do_not_match_are_kept_and_reported(claude, write, read):
    claude.user("go")
    claude.call("m1", "t1")
    claude.call("m1", "t2")
    claude.result("t2", "second first")
    claude.result("t1", "one")
    claude.result("t1", "one again")
    claude.result("t9", "nobody asked")
    claude.call("m2", "t3")
    drafts, report = read(write(claude.lines))
    assert len(kinds(drafts, RecordKind.TOOL_CALL)) == 3
    assert [draft.payload["call_id"] for draft in kinds(drafts, RecordKind.TOOL_RESULT)] == ["t2", "t1", "t1", "t9"]
    assert count(report, "parallel_batch") == 1
    assert count(report, "duplicate_result") == 1
    assert count(report, "orphan_result") == 1
    assert count(report, "unanswered_call") == 1
    assert report.anomalies["orphan_result"][1] == ["session.jsonl:7"]


def test_lines_that_cannot_be_read_stay_as_events(claude, write, read):
    claude.user("go")
    odd = ['"text"', "42", "[1]", '{"type": "user", "message": "error"}', '{"silly": 1}', '{"a": 1, "a": 2}']
    drafts, report = read(write([*claude.lines, *odd], tail='{"type":"user","message":{"content":"more'))
    events = [draft.payload for draft in kinds(drafts, RecordKind.EVENT)]
    assert [event["type"] for event in events] == [
        "not_an_object",
        "not_an_object",
        "not_an_object",
        "malformed_message",
        "untyped",
        "torn_line",
        "torn_line",
    ]
    assert events[3]["raw"] == {"type": "user", "message": "error"}
    assert events[6]["raw"].endswith("more")
    assert report.unknown == {"untyped": 1}
    assert count(report, "torn_line") == 2
    assert report.lines == 8


def test_types_from_the_future_keep_everything_they_hold(claude, write, read):
    claude.line("hologram", beam={"power": 9})
    claude.assistant("m1", {"type": "smell", "of": "roses"})
    drafts, report = read(write(claude.lines))
    events = [draft.payload for draft in kinds(drafts, RecordKind.EVENT)]
    assert events[0]["data"] == {"beam": {"power": 9}}
    assert events[1]["raw"] == {"type": "smell", "of": "roses"}
    assert report.unknown == {"hologram": 1, "block:smell": 1}


def test_a_grown_file_gives_the_old_ids_again_and_then_new_ones(claude, write, read):
    claude.user("go")
    claude.line("mode", uuid=None, mode="plan")
    claude.call("m1", "t1")
    claude.result("t1", "x")
    claude.assistant("m2", {"type": "text", "text": "a"}, usage={"input_tokens": 1})
    before, _ = read(write(claude.lines, tail='{"type":"user","uuid":"u6","mess'))
    claude.user("and now?")
    claude.assistant("m3", {"type": "text", "text": "b"}, usage={"input_tokens": 1})
    after, _ = read(write(claude.lines))
    known = {draft.record_id: draft for draft in before if draft.payload.get("type") != "torn_line"}
    again = {draft.record_id: draft for draft in after}
    assert known.items() <= again.items()
    assert len(again) == len(after)
    assert len(again) - len(known) == 3


def test_a_line_repeated_exactly_is_stored_once_and_a_reused_id_is_not(claude, write, read):
    claude.user("first", uuid="same")
    repeated = dict(claude.lines[0])
    claude.user("second", uuid="same")
    drafts, report = read(write([claude.lines[0], repeated, claude.lines[1]]))
    said = kinds(drafts, RecordKind.MESSAGE)
    assert [draft.payload["content"] for draft in said] == ["first", "second"]
    assert len({draft.record_id for draft in said}) == 2
    assert (count(report, "duplicate_line"), count(report, "repeated_id")) == (1, 1)


def test_a_mode_that_is_switched_back_is_a_fact_of_its_own(write, read):
    """Lines without id and time may rightly be equal; the second `normal` is not a repeat of the first."""
    lines = [{"type": "mode", "mode": mode, "sessionId": "s"} for mode in ("normal", "plan", "normal")]
    drafts, report = read(write(lines))
    assert [draft.payload["data"]["mode"] for draft in drafts] == ["normal", "plan", "normal"]
    assert len({draft.record_id for draft in drafts}) == 3
    assert count(report, "duplicate_line") == 0


def test_a_parent_that_is_not_there_is_reported(claude, write, read):
    claude.parent = "elsewhere"
    claude.user("go")
    claude.user("on")
    _, report = read(write(claude.lines))
    assert report.anomalies["broken_parent"] == (1, ["session.jsonl:1"])


def test_a_subagents_file_belongs_to_its_session_as_a_run_of_its_own(claude, write, read):
    claude.user("look around", isSidechain=True, agentId="a1")
    drafts, _ = read(write(claude.lines, "agent-a1.jsonl"))
    assert {(draft.session_id, draft.run_id) for draft in drafts} == {("session-1", "a1")}


def test_the_call_that_started_a_subagent_names_its_run(claude, write, read):
    claude.call("m1", "t1", "Task", prompt="look")
    claude.result("t1", "found", toolUseResult={"agentId": "a1", "status": "completed"})
    drafts, _ = read(write(claude.lines))
    assert kinds(drafts, RecordKind.TOOL_RESULT)[0].payload["subagent"] == "a1"


def test_surroundings_are_stated_once_and_again_when_they_change(claude, write, read):
    claude.user("a", cwd="/one")
    claude.user("b", cwd="/one")
    claude.user("c", cwd="/two")
    drafts, _ = read(write(claude.lines))
    contexts = [draft.payload["data"]["cwd"] for draft in drafts if draft.payload.get("type") == "context"]
    assert contexts == ["/one", "/two"]


def test_what_a_person_queues_while_the_agent_works_is_steering(claude, write, read):
    claude.line("queue-operation", operation="enqueue", content="stop that")
    claude.line("attachment", attachment={"type": "queued_command", "prompt": "stop that"})
    drafts, _ = read(write(claude.lines))
    steering = [(draft.payload["text"], draft.payload["status"]) for draft in kinds(drafts, RecordKind.STEERING)]
    assert steering == [("stop that", "queued"), ("stop that", "delivered")]


def test_pictures_are_described_and_their_bytes_reported_as_left_out(claude, write, read):
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA" * 100}
    claude.user([{"type": "image", "source": source}])
    claude.result("t1", [{"type": "image", "source": source}], toolUseResult={"file": {"base64": "AAAA"}})
    drafts, report = read(write(claude.lines))
    assert kinds(drafts, RecordKind.MESSAGE)[0].payload["content"] == [
        {"type": "image", "media_type": "image/png", "bytes": 300}
    ]
    assert "AAAA" not in json.dumps([draft.payload for draft in drafts])
    assert {(entry.field, entry.count) for entry in report.loss.entries} == {
        ("image.data", 2),
        ("host_result.base64", 1),
    }


def test_half_a_surrogate_pair_does_not_cost_the_line(claude, write, read):
    claude.user("go")
    line = json.dumps(claude.lines[0]).replace('"go"', r'"cut \ud83d here, \\ud83d as text, \ud83d\ude00 whole"')
    drafts, report = read(write([line]))
    assert kinds(drafts, RecordKind.MESSAGE)[0].payload["content"] == "cut � here, \\ud83d as text, 😀 whole"
    assert count(report, "lone_surrogate") == 1


def test_ids_of_lines_without_one_go_through_the_given_identity(write, read):
    path = write([{"type": "user", "timestamp": "2026-01-01T00:00:00Z", "message": {"content": "guess me"}}], "s.jsonl")
    seen = []
    drafts, report = read(path, identify=lambda digest: seen.append(digest) or f"keyed-{len(seen)}")
    assert all(draft.record_id.startswith("claude:keyed-") for draft in drafts)
    assert drafts[0].session_id == "s"
    assert count(report, "session_from_file_name") == 1


def test_files_from_editors_are_read_and_other_encodings_refused_by_name(claude, write, read, tmp_path):
    claude.user("go")
    text = "\ufeff" + json.dumps(claude.lines[0]) + "\r\n\r\n"
    path = tmp_path / "bom.jsonl"
    path.write_bytes(text.encode())
    assert len(read(path)[0]) == 2
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(UsageError, match="UTF-16"):
        read(path)
    with pytest.raises(NotFound):
        read(tmp_path / "absent.jsonl")


def test_a_report_never_quotes_the_transcript(claude, write, read):
    claude.user("the password is swordfish")
    drafts, report = read(write([*claude.lines, "swordfish"]))
    assert drafts
    told = json.dumps(report.to_json()) + "\n".join(report.sentences())
    assert "swordfish" not in told
    assert "torn lines" in told


def test_an_answers_usage_comes_before_the_person_speaks_again(claude, write, read):
    claude.user("one")
    claude.assistant("m1", {"type": "text", "text": "a"}, usage={"output_tokens": 1})
    claude.user("two")
    drafts, _ = read(write(claude.lines))
    order = [draft.payload.get("type") or draft.payload["content"] for draft in drafts]
    assert order == ["context", "one", "a", "usage", "two"]
