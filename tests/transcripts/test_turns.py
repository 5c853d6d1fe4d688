"""Facts keep their order; results move to their calls, and what has no partner says so."""

from __future__ import annotations

from qiju.trajectory.types import RecordKind, TrajectoryDraft
from qiju.transcripts import turns as module
from qiju.transcripts.terminal import turn_lines
from qiju.transcripts.turns import turns, with_records


def shape(found):
    return [
        (
            turn.number,
            turn.run,
            [(entry.record.kind.value, entry.status, len(entry.results), entry.note) for entry in turn.entries],
        )
        for turn in found
    ]


def test_results_stand_with_their_calls_and_oddities_say_so(claude, write, read, stored):
    claude.user("go")
    claude.call("m1", "t1")
    claude.call("m1", "t2")
    claude.result("t2", "two", is_error=False)
    claude.result("t1", "Exit code 2\nno", is_error=True)
    claude.result("t1", "again")
    claude.result("tx", "orphan")
    claude.call("m2", "t3")
    claude.user("next")
    claude.result("t3", "late")
    found = [turn for turn in shape(turns(stored(read(write(claude.lines))[0]))) if turn[0]]
    assert found == [
        (
            1,
            None,
            [
                ("message", "", 0, ""),
                ("tool_call", "done", 2, ""),
                ("tool_call", "ok", 1, ""),
                ("tool_result", "", 0, "result without a call"),
                ("tool_call", "no result", 0, ""),
            ],
        ),
        (2, None, [("message", "", 0, ""), ("tool_result", "", 0, "result of a call further up")]),
    ]


def test_either_name_of_a_call_finds_it(codex, write, read, stored):
    codex.said("user", "go")
    codex.item("function_call", id="fc-1", call_id="c1", name="f", arguments="{}")
    codex.item("function_call_output", call_id="fc-1", output="x")
    (_, turn) = turns(stored(read(write(codex.lines), "codex")[0]))
    assert [len(entry.results) for entry in turn.entries] == [0, 1]


def test_a_reused_call_id_gets_the_result_that_follows_it(codex, write, read, stored):
    codex.item("function_call", call_id="c1", name="f", arguments="{}")
    codex.item("function_call_output", call_id="c1", output="x")
    codex.item("function_call", call_id="c1", name="g", arguments="{}")
    codex.item("function_call_output", call_id="c1", output="y")
    (turn,) = turns(stored(read(write(codex.lines), "codex")[0]))
    first, second = [entry for entry in turn.entries if entry.record.kind is RecordKind.TOOL_CALL]
    assert [entry.results[0].payload["output"] for entry in (first, second)] == ["x", "y"]
    assert (first.note, second.note) == ("", "the id of this call was used before")


def test_subagents_and_host_messages_open_no_turn_of_the_person(claude, write, read, stored):
    claude.user("go")
    claude.user("caveat", isMeta=True)
    claude.user("look", isSidechain=True, agentId="a1")
    claude.user("on")
    found = [(turn.number, turn.run) for turn in turns(stored(read(write(claude.lines))[0])) if turn.number]
    assert found == [(1, None), (1, "a1"), (2, None)]


def test_a_long_turn_comes_in_parts(claude, write, read, stored, monkeypatch):
    monkeypatch.setattr(module, "PART", 3)
    claude.user("go")
    for number in range(7):
        claude.assistant(f"m{number}", {"type": "text", "text": "x"})
    found = [(turn.number, turn.part, len(turn.entries)) for turn in turns(stored(read(write(claude.lines))[0]))]
    assert [one for one in found if one[0]] == [(1, 1, 3), (1, 2, 3), (1, 3, 2)]


def test_authored_records_come_in_at_their_time(claude, write, read, stored):
    claude.user("one")
    claude.user("two")
    facts = stored(read(write(claude.lines))[0])
    authored = [
        TrajectoryDraft("session-1", RecordKind.SESSION_RECORD, {"title": name}, f"session-1:{number}", ts=ts)
        for number, (name, ts) in enumerate(
            [("no time", None), ("between", "2026-01-02T03:04:01.500Z"), ("before", "2020-01-01T00:00:00Z")], 1
        )
    ]
    merged = [
        str(record.payload.get("content") or record.payload.get("title"))
        for record in with_records(iter(facts), stored(authored))
        if record.kind is not RecordKind.STATE
    ]
    assert merged == ["before", "one", "between", "two", "no time"]


def test_a_terminal_shows_text_and_obeys_none_of_it(claude, write, read, stored):
    claude.user("red \x1b[31m and \u202egnp.exe\u202c [bold]x[/bold]\x07")
    claude.call("m1", "t1", command="ls\nrm")
    claude.result("t1", "\n".join(str(number) for number in range(50)))
    found = list(turns(stored(read(write(claude.lines))[0])))
    told = "\n".join(line for turn in found for _, line in turn_lines(turn, lines=5))
    assert "red \\x1b[31m and \\u202egnp.exe\\u202c [bold]x[/bold]\\x07" in told
    assert not any(ord(character) < 32 and character != "\n" for character in told)
    assert "... (45 lines more)" in told
    whole = "\n".join(line for turn in found for _, line in turn_lines(turn, lines=0))
    assert "\n  49" in whole
