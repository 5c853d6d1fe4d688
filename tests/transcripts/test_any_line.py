"""Whatever a line holds, reading goes on: each line becomes facts or a report, and every reader of the facts copes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.errors import InvalidRecord
from qiju.jsontext import canonical
from qiju.record import check
from qiju.transcripts.atif import atif_bytes, to_atif
from qiju.transcripts.atif_read import read_atif
from qiju.transcripts.claude import read_claude
from qiju.transcripts.codex import read_codex
from qiju.transcripts.draft import draft_record
from qiju.transcripts.page import page
from qiju.transcripts.report import ImportReport
from qiju.transcripts.terminal import turn_lines
from qiju.transcripts.turns import turns

READERS = {"claude": read_claude, "codex": read_codex}
CALL = {"type": "tool_use", "id": "t1", "name": "TodoWrite", "input": {"todos": [{"content": "a", "status": "b"}]}}
USAGE = {"input_tokens": 1, "output_tokens": 2}
CLAUDE = [
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "x"}},
    {"type": "assistant", "uuid": "u2", "sessionId": "s", "message": {"id": "m", "content": [CALL], "usage": USAGE}},
    {
        "type": "user",
        "sessionId": "s",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": []}]},
    },
    {"type": "assistant", "message": {"id": "m", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text"}]}},
    {"type": "user", "message": {"content": [{"type": "image", "source": {"type": "base64", "data": "AA"}}]}},
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "p"}},
    {"type": "queue-operation", "operation": "enqueue", "content": "c"},
    {"type": "ai-title", "aiTitle": "title"},
]
INFO = {"total_token_usage": {"input_tokens": 1}, "last_token_usage": {"input_tokens": 1}}
CODEX = [
    {"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}},
    {"type": "turn_context", "payload": {"model": "m", "turn_id": "1"}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
    },
    {"type": "response_item", "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "y"}]}},
    {
        "type": "response_item",
        "payload": {"type": "function_call", "id": "f", "call_id": "c", "name": "n", "arguments": "{}"},
    },
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": {"content": "z"}}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "x"}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": INFO}},
    {"type": "message", "role": "user", "content": "bare"},
]
ATIF = {
    "schema_version": "ATIF-v1.8",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "x", "extra": {"steering": True}},
        {
            "step_id": 2,
            "source": "agent",
            "message": "y",
            "reasoning_content": "z",
            "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"a": 1}}],
            "observation": {"results": [{"source_call_id": "c", "content": [{"type": "text", "text": "r"}]}]},
            "metrics": {"prompt_tokens": 1},
        },
    ],
    "subagent_trajectories": [{"schema_version": "ATIF-v1.8", "trajectory_id": "t", "steps": []}],
}

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def altered(draw, whole):
    """`whole` with any part of it, or nothing, replaced by any value or left out."""
    if draw(st.integers(0, 5)) == 0:
        return draw(values)
    if isinstance(whole, dict) and whole:
        key = draw(st.sampled_from(sorted(whole)))
        changed = dict(whole)
        if draw(st.integers(0, 9)) == 0:
            del changed[key]
        else:
            changed[key] = draw(altered(whole[key]))
        return changed
    if isinstance(whole, list) and whole:
        place = draw(st.integers(0, len(whole) - 1))
        return [*whole[:place], draw(altered(whole[place])), *whole[place + 1 :]]
    return whole


def everything_copes(drafts, stored):
    by_session = {}
    for record in stored(drafts):
        canonical(record.payload).encode()
        by_session.setdefault(record.session_id, []).append(record)
    for session, records in by_session.items():
        found = list(turns(records))
        kept = [entry.record for turn in found for entry in turn.entries]
        kept += [result for turn in found for entry in turn.entries for result in entry.results]
        assert len(kept) == len(records)
        "\n".join(line for turn in found for _, line in turn_lines(turn)).encode()
        "".join(page(session, "raw_private", found)).encode()
        atif_bytes(to_atif(session, "raw_private", records)[0])
        check(draft_record(session, records))


@pytest.mark.parametrize(("host", "lines"), [("claude", CLAUDE), ("codex", CODEX)])
@given(data=st.data())
@settings(max_examples=50)
def test_no_line_stops_a_reader_and_none_is_lost(host, lines, stored, data):
    given_lines = data.draw(st.lists(st.one_of([altered(line) for line in lines]), min_size=1, max_size=8))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in given_lines), encoding="utf-8")
        report = ImportReport(host)
        drafts = list(READERS[host](path, report))
        again = list(READERS[host](path, ImportReport(host)))
    assert drafts == again
    assert report.lines == len(given_lines)
    ids = [(draft.session_id, draft.record_id) for draft in drafts]
    assert len(set(ids)) == len(ids)
    told = sum(report.anomalies.get(name, (0, []))[0] for name in ("duplicate_line", "duplicate_event"))
    assert len(drafts) >= len(given_lines) - told
    everything_copes(drafts, stored)


@given(document=altered(ATIF))
@settings(max_examples=60)
def test_an_altered_atif_document_is_read_or_refused(stored, document):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        try:
            drafts = list(read_atif(path, ImportReport("atif")))
        except InvalidRecord:
            return
    everything_copes(drafts, stored)
