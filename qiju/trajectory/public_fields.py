"""What may appear in a public trajectory: an allow-list per kind of record, as data.

A payload is walked beside its table; whatever has no place in the table is left out and counted. A table names, for
each key, the shapes its value may have:

- `TEXT`: a string (scrubbed), a number, true, false or null;
- `WORD`: a short name such as a role or a type, letters, digits and `._:/-` only (scrubbed as well);
- `FLAG`: a number, true, false or null, never a string;
- a list `[shape]`: an array of such values;
- a dict: an object with these keys and no others.

A tuple offers several. Host data, raw provider objects, environment, working directories, account details and images
are in no table; new keys of a host's format are therefore private until somebody adds them here on purpose.
"""

from __future__ import annotations

from qiju.trajectory.types import RecordKind

TEXT, WORD, FLAG = "text", "word", "flag"

# The shapes of the tables: a name above, a list of one shape, an object, or several of them.
Shape = str | list["Shape"] | dict[str, "Shape"] | tuple["Shape", ...]

# The arguments that tools of coding agents commonly take. Anything else a tool is given stays private.
ARGUMENTS: dict[str, Shape] = {
    **dict.fromkeys(
        (
            "agent_type",
            "args",
            "body",
            "branch",
            "code",
            "cmd",
            "command",
            "commands",
            "content",
            "description",
            "explanation",
            "file",
            "file_path",
            "filename",
            "file_text",
            "files",
            "glob",
            "include",
            "input",
            "insert_text",
            "language",
            "message",
            "name",
            "new_string",
            "new_str",
            "new_text",
            "notebook_path",
            "old_string",
            "old_str",
            "old_text",
            "output_mode",
            "patch",
            "path",
            "paths",
            "pattern",
            "plan",
            "prompt",
            "q",
            "queries",
            "query",
            "question",
            "regex",
            "shell",
            "skill",
            "source",
            "step",
            "status",
            "subagent_type",
            "target",
            "task",
            "text",
            "thought",
            "title",
            "type",
            "url",
        ),
        (TEXT, [TEXT]),
    ),
    **dict.fromkeys(
        (
            "all",
            "context",
            "count",
            "depth",
            "end_line",
            "head_limit",
            "insert_line",
            "is_background",
            "limit",
            "line",
            "max_results",
            "max_tokens",
            "multiline",
            "offset",
            "recursive",
            "replace_all",
            "run_in_background",
            "start_line",
            "timeout",
            "timeout_ms",
        ),
        FLAG,
    ),
    "edits": [{"old_string": TEXT, "new_string": TEXT, "replace_all": FLAG}],
    "todos": [{"content": TEXT, "status": WORD, "activeForm": TEXT, "priority": WORD}],
    "plan": (TEXT, [{"step": TEXT, "status": WORD}]),
    "view_range": [FLAG],
}

# A part of a message: text, or a tool call or result inside it. Sources of images and documents are not here.
_INNER: dict[str, Shape] = {"type": WORD, "text": TEXT, "is_error": FLAG}
PART: dict[str, Shape] = {
    **_INNER,
    "thinking": TEXT,
    "refusal": TEXT,
    "media_type": WORD,
    "bytes": FLAG,
    "id": WORD,
    "call_id": WORD,
    "tool_use_id": WORD,
    "name": WORD,
    "input": (TEXT, ARGUMENTS),
    "arguments": (TEXT, ARGUMENTS),
    "content": (TEXT, [_INNER]),
}
CONTENT: Shape = (TEXT, [TEXT], [PART], PART)
OUTPUT: dict[str, Shape] = {
    **_INNER,
    "content": (TEXT, [PART]),
    "error": (TEXT, {"type": WORD, "message": TEXT}),
    "exit_code": FLAG,
    "interrupted": FLAG,
    "message": TEXT,
    "ok": FLAG,
    "output": (TEXT, [PART]),
    "result": TEXT,
    "status": WORD,
    "stderr": TEXT,
    "stdout": TEXT,
    "truncated": FLAG,
}
USAGE: dict[str, Shape] = dict.fromkeys(
    (
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "cached_input_tokens",
        "input_tokens",
        "output_tokens",
        "reasoning_output_tokens",
        "total_tokens",
    ),
    FLAG,
)
REDACTION: dict[str, Shape] = {"type": WORD, "rule": WORD, "placeholder": TEXT}

_CALL: dict[str, Shape] = {"batch_id": WORD, "call_id": WORD, "item_id": WORD, "call_type": WORD}
_STATE: dict[str, Shape] = {
    "type": WORD,
    "subtype": WORD,
    "name": WORD,
    "status": WORD,
    "phase": WORD,
    "level": WORD,
    "model": WORD,
    "model_id": WORD,
    "message_id": WORD,
    "reason": TEXT,
    "stop_reason": WORD,
    "text": TEXT,
    "message": TEXT,
    "summary": (TEXT, {"stop_reason": TEXT, "final_result": TEXT, "steps": FLAG}),
    "observation": TEXT,
    "decision": (TEXT, {"mode": WORD, "rationale": TEXT, "final_answer": TEXT}),
    "step": FLAG,
    "step_id": FLAG,
    "step_count": FLAG,
    "event_count": FLAG,
    "ok": FLAG,
    "error": TEXT,
    "duration_ms": FLAG,
    "schema_version": (WORD, FLAG),
    "seed": FLAG,
    "payload": {"type": WORD, "name": WORD, "status": WORD, "text": TEXT, "message": TEXT, "reason": TEXT, "ok": FLAG},
    **USAGE,
}

PUBLIC: dict[RecordKind, dict[str, Shape]] = {
    RecordKind.SESSION_RECORD: {
        "schema_version": FLAG,
        "id": TEXT,
        "ts": TEXT,
        "project": TEXT,
        "agent": TEXT,
        "source": WORD,
        "title": TEXT,
        "tags": [TEXT],
        "search_terms": [TEXT],
        "next_steps": [TEXT],
        # Where a marker stood is left out: the public text is scrubbed again, so the offsets would point elsewhere.
        "redactions": [REDACTION],
        "body_md": TEXT,
        "model": TEXT,
        "model_effort": TEXT,
    },
    RecordKind.MESSAGE: {
        "role": WORD,
        "content": CONTENT,
        "text": TEXT,
        "model": WORD,
        "message_id": WORD,
        "stop_reason": WORD,
        "phase": WORD,
        "meta": FLAG,
        "compact_summary": FLAG,
    },
    RecordKind.REASONING: {
        "text": TEXT,
        "content": CONTENT,
        "summary": CONTENT,
        "model": WORD,
        "message_id": WORD,
        "withheld": FLAG,
    },
    RecordKind.TOOL_CALL: {
        **_CALL,
        "name": WORD,
        "arguments": (TEXT, ARGUMENTS),
        "model": WORD,
        "message_id": WORD,
        "status": WORD,
    },
    RecordKind.TOOL_RESULT: {
        **_CALL,
        "name": WORD,
        "output": (TEXT, [TEXT], [PART], OUTPUT),
        "is_error": FLAG,
        "exit_code": FLAG,
        "status": WORD,
        "subagent": WORD,
    },
    RecordKind.STEERING: {"text": TEXT, "content": CONTENT, "status": WORD, "type": WORD},
    RecordKind.STATE: _STATE,
    RecordKind.EVENT: _STATE,
}

# Keys that may be named in a loss report although they do not pass. All other names are counted under `*`: an unknown
# key can be a person, a host or a token.
NAMED_LOSSES = frozenset(
    {
        "account",
        "cost_usd",
        "cwd",
        "data",
        "encrypted_content",
        "end",
        "env",
        "environment",
        "field",
        "git",
        "gitBranch",
        "git_branch",
        "host",
        "host_result",
        "hostname",
        "metadata",
        "organization",
        "parent_uuid",
        "prompt_hash",
        "raw",
        "run_config_hash",
        "signature",
        "source",
        "start",
        "state_diff",
        "system",
        "tool_invocations",
        "tool_versions",
        "usage",
        "user",
        "username",
        "uuid",
        "version",
    }
)
