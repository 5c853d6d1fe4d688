"""Sessions that hosts have written already: in from Claude Code, Codex, ATIF; out to ATIF, a terminal, one HTML page.

Nothing here runs on its own; a file or folder is read because someone named it. A reader turns lines into
`TrajectoryDraft`s and says in an `ImportReport` what was odd; it decides nothing about the future, so that a file which
has grown gives the old drafts again, with the old ids, and then the new ones.

The payload words that every reader here uses (all optional unless said otherwise; hosts' own fields go under `data`):

    message      role (required: user, assistant, system, developer), content (text, or a list of parts
                 {"type": "text"|"image"|..., "text", "media_type", "bytes"}), model, phase, meta, compact_summary
    reasoning    text (required), model, withheld (the host kept it encrypted)
    tool_call    call_id, item_id (a second id the host knows it by), name (required), arguments, model
    tool_result  call_id, output (text or JSON), is_error, exit_code, host_result (the host's structured
                 form), subagent (the run that the call started)
    steering     text (required), status (queued, delivered, removed)
    state        type (required: context, usage, title, summary, todo, ...), data; usage has message_id, input_tokens,
                 output_tokens, cached_input_tokens, reasoning_output_tokens, cumulative
    event        type (required), data, or raw for a line that could not be read

The host is the word before the first colon of a record id. Every payload may carry uuid, parent_uuid, message_id,
turn_id, request_id, stop_reason, extra.
"""

from __future__ import annotations
