"""ATIF out obeys the format's rules and says what it cannot carry; ATIF in gives the facts back."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from qiju.errors import InvalidJson, InvalidRecord
from qiju.transcripts.atif import atif_bytes, to_atif


def obeys(document):
    """The rules of the format that its published models check, by hand: the project does not depend on them."""
    assert document["schema_version"] == "ATIF-v1.8"
    assert {"name", "version"} <= document["agent"].keys()
    for number, step in enumerate(document["steps"], 1):
        assert step["step_id"] == number
        assert step["source"] in ("user", "agent", "system")
        assert isinstance(step["message"], str)
        if "timestamp" in step:
            datetime.fromisoformat(step["timestamp"].replace("Z", "+00:00"))
        if step["source"] != "agent":
            assert not {"model_name", "reasoning_content", "tool_calls", "metrics"} & step.keys()
        calls = [call["tool_call_id"] for call in step.get("tool_calls", [])]
        assert all(isinstance(call["arguments"], dict) for call in step.get("tool_calls", []))
        for result in step.get("observation", {}).get("results", []):
            assert "tool_calls" not in step or result.get("source_call_id") in calls
    ids = [call["tool_call_id"] for step in document["steps"] for call in step.get("tool_calls", [])]
    assert len(ids) == len(set(ids))
    for inner in document.get("subagent_trajectories", []):
        assert inner["trajectory_id"]
        obeys(inner)


@pytest.fixture
def session(claude):
    spent = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2}
    claude.user("go", cwd="/x")
    claude.assistant("m1", {"type": "thinking", "thinking": "plan"}, usage=spent)
    claude.assistant("m1", {"type": "text", "text": "I look."}, usage=spent)
    claude.call("m1", "t1", "Task", prompt="look")
    claude.result("t1", "found", toolUseResult={"agentId": "a1"})
    claude.call("m1", "t2", "Bash", command="ls")
    claude.result("t2", "Exit code 1", is_error=True)
    claude.result("t2", "twice")
    claude.result("t9", "orphan")
    claude.call("m2", "t1", "Bash", command="same id")
    claude.line("queue-operation", operation="enqueue", content="wait")
    claude.line("attachment", attachment={"type": "queued_command", "prompt": "wait"})
    claude.user("inside", isSidechain=True, agentId="a1")
    claude.user("bad time", timestamp="yesterday")
    return claude


def test_a_session_becomes_steps_with_calls_results_tokens_and_subagents(session, write, read, stored):
    document, loss = to_atif("session-1", "raw_private", stored(read(write(session.lines))[0]))
    obeys(document)
    first = document["steps"][1]
    assert (first["message"], first["reasoning_content"], first["model_name"]) == ("I look.", "plan", "model-1")
    assert first["metrics"] == {"prompt_tokens": 15, "completion_tokens": 2, "cached_tokens": 5}
    assert [result["content"] for result in first["observation"]["results"]] == ["found", "Exit code 1", "twice"]
    assert first["observation"]["results"][0]["subagent_trajectory_ref"] == [{"trajectory_id": "a1"}]
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "system", "agent", "user", "user"]
    assert document["agent"] == {"name": "claude-code", "version": "2.1.0", "model_name": "model-1"}
    assert document["final_metrics"]["total_prompt_tokens"] == 15
    assert [inner["steps"][0]["message"] for inner in document["subagent_trajectories"]] == ["inside"]
    lost = {(entry.field, entry.reason): entry.count for entry in loss.entries}
    assert lost["steering:queued", "not_in_format"] == 1
    assert lost["tool_call.call_id", "repeated_id_renamed"] == 1
    assert lost["ts", "not_iso_8601"] == 1
    assert lost["tool_result.host_result", "not_in_format"] == 1
    assert document["extra"]["qiju"]["loss"] == loss.to_dict()


def test_a_codex_answer_ends_where_its_first_result_comes_in(codex, write, read, stored):
    codex.said("user", "go")
    codex.said("assistant", "I look.", id="msg1")
    codex.item("function_call", id="fc1", call_id="c1", name="f", arguments="{}")
    codex.item("function_call", id="fc2", call_id="c2", name="g", arguments="{}")
    codex.item("function_call_output", call_id="fc1", output="a")
    codex.item("function_call_output", call_id="c2", output="b")
    codex.said("assistant", "Done.", id="msg2")
    document, _ = to_atif("thread-1", "raw_private", stored(read(write(codex.lines), "codex")[0]))
    obeys(document)
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "agent"]
    assert [result["content"] for result in document["steps"][1]["observation"]["results"]] == ["a", "b"]


def test_what_went_out_comes_in_again_as_the_same_steps(session, write, read, stored, tmp_path):
    document, _ = to_atif("session-1", "raw_private", stored(read(write(session.lines))[0]))
    path = tmp_path / "out.json"
    path.write_bytes(atif_bytes(document))
    drafts, report = read(path, "atif")
    assert report.usage["input_tokens"] == 15
    again, _ = to_atif("session-1", "raw_private", stored(drafts))

    def bare(value):
        if isinstance(value, dict):
            return {key: bare(inner) for key, inner in value.items() if key != "extra"}
        return [bare(inner) for inner in value] if isinstance(value, list) else value

    assert bare(again["steps"]) == bare(document["steps"])
    assert bare(again["subagent_trajectories"])[0]["steps"] == bare(document["subagent_trajectories"])[0]["steps"]
    assert [draft.record_id for draft in read(path, "atif")[0]] == [draft.record_id for draft in drafts]


def test_equal_sessions_give_equal_bytes(session, write, read, stored):
    records = stored(read(write(session.lines))[0])
    one, two = (atif_bytes(to_atif("s", "raw_private", records)[0]) for _ in range(2))
    assert one == two
    assert json.loads(one)["session_id"] == "s"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({}, "is no ATIF document"),
        ({"schema_version": "ATIF-v1.4"}, "has no list `steps`"),
        ({"schema_version": "ATIF-v1.4", "steps": [1]}, r"steps\[0\] is not an object"),
        ({"schema_version": "ATIF-v1.4", "steps": [{"step_id": 1, "source": "x"}]}, r"steps\[0\] needs"),
        (
            {"schema_version": "ATIF-v1.4", "steps": [{"step_id": 1, "source": "agent", "tool_calls": [{}]}]},
            r"steps\[0\]\.tool_calls\[0\] needs `function_name`",
        ),
    ],
)
def test_a_wrong_shape_is_named_by_its_place(value, place, write, read):
    path = write([], "bad.json", tail=json.dumps(value))
    with pytest.raises(InvalidRecord, match=place):
        read(path, "atif")


def test_text_that_is_no_json_is_refused_with_its_place(write, read):
    with pytest.raises(InvalidJson):
        read(write([], "bad.json", tail='{"steps": '), "atif")
