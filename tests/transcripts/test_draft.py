"""A draft says what was found and nothing else."""

from __future__ import annotations

from qiju.record import check
from qiju.transcripts.draft import draft_record


def test_a_draft_holds_what_was_asked_touched_failed_and_left_open(claude, write, read, stored):
    claude.user("<command-name>/clear</command-name>")
    claude.user("Fix the parser\nand test it")
    claude.call("m1", "t1", "Write", file_path="/src/a.py", content="x")
    claude.result("t1", "ok")
    claude.call("m2", "t2", "Edit", file_path="/src/b.py")
    claude.result("t2", "String not found", is_error=True)
    claude.call("m3", "t3", "Read", file_path="/src/c.py")
    claude.result("t3", "text")
    claude.call("m4", "t4", "Bash", command="pytest\n -q")
    claude.result("t4", "Exit code 1\nE assert 1 == 2", is_error=True)
    todos = [{"content": "write docs", "status": "pending"}, {"content": "old", "status": "completed"}, "loose end"]
    claude.call("m5", "t5", "TodoWrite", todos=[{"content": "dropped list", "status": "pending"}])
    claude.call("m6", "t6", "TodoWrite", todos=todos)
    claude.line("queue-operation", operation="enqueue", content="also the docs")
    claude.assistant("m7", {"type": "text", "text": "The parser works."})
    draft = draft_record("session-1", stored(read(write(claude.lines))[0]))
    check(draft)
    body = draft["body_md"]
    assert draft["title"] == "Fix the parser and test it"
    assert draft["next_steps"] == ["write docs", "loose end"]
    assert draft["model"] == "model-1"
    assert "- /src/a.py\n- /src/b.py (the call failed)" in body
    assert "/src/c.py" not in body
    assert "- Edit /src/b.py: String not found\n- `pytest -q`, exit code 1: E assert 1 == 2" in body
    assert "- write docs (pending)\n- loose end" in body
    assert "## Asked while it worked\n\n- also the docs" in body
    assert "## Calls without a result\n\n- TodoWrite\n- TodoWrite" in body
    assert "> The parser works." in body
    assert "command-name" not in body


def test_a_host_title_wins_and_a_persons_title_wins_over_it(claude, write, read, stored):
    claude.user("do things")
    claude.line("ai-title", aiTitle="Doing things")
    assert draft_record("s", stored(read(write(claude.lines))[0]))["title"] == "Doing things"
    claude.line("custom-title", customTitle="My things")
    assert draft_record("s", stored(read(write(claude.lines))[0]))["title"] == "My things"


def test_codex_patches_plans_and_exit_codes(codex, write, read, stored):
    codex.said("user", "<environment_context>x</environment_context>")
    codex.said("user", "Patch it")
    patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n*** Add File: src/b.rs\n+y\n*** End Patch"
    codex.item("custom_tool_call", call_id="c1", name="apply_patch", input=patch)
    codex.item("custom_tool_call_output", call_id="c1", output="Success")
    codex.item("function_call", call_id="c2", name="shell", arguments='{"command": ["bash", "-lc", "cargo test"]}')
    codex.item("function_call_output", call_id="c2", output="Exit code: 101\nOutput:\nfailed")
    plan = '{"plan": [{"step": "fix", "status": "completed"}, {"step": "ship", "status": "in_progress"}]}'
    codex.item("function_call", call_id="c3", name="update_plan", arguments=plan)
    codex.item("function_call_output", call_id="c3", output="Plan updated")
    draft = draft_record("thread-1", stored(read(write(codex.lines), "codex")[0]))
    assert draft["title"] == "Patch it"
    assert "- src/a.rs\n- src/b.rs" in draft["body_md"]
    assert "- `cargo test`, exit code 101:" in draft["body_md"]
    assert draft["next_steps"] == ["ship"]


def test_numbered_tasks_are_followed_to_their_last_status(claude, write, read, stored):
    claude.call("m1", "t1", "TaskCreate", subject="first")
    claude.result("t1", "Task #1 created successfully: first")
    claude.call("m1", "t2", "TaskCreate", subject="second")
    claude.result("t2", "Task #2 created successfully: second")
    claude.call("m2", "t3", "TaskUpdate", taskId="1", status="completed")
    claude.result("t3", "Updated task #1")
    assert draft_record("s", stored(read(write(claude.lines))[0]))["next_steps"] == ["second"]


def test_an_empty_session_invents_nothing():
    draft = draft_record("s", [])
    check(draft)
    assert draft["next_steps"] == []
    assert draft["body_md"].count("None found.") == 6
