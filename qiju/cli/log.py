"""`qiju log`: store one record."""

from __future__ import annotations

import sys
from pathlib import Path

from qiju import jsontext, record
from qiju.cli.context import Context, home_of
from qiju.cli.options import Command, Option
from qiju.errors import NotFound, StorageFailed
from qiju.jsontext import JsonValue
from qiju.place.identity import agent as agent_of
from qiju.place.identity import session as session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.store import Logged

LARGEST = 256 * 1024 * 1024  # bytes; SQLite holds a text of at most 1 GB, and a record is held a few times over
_FEW_CHARACTERS = 40


def run(
    context: Context,
    *,
    source: str,
    agent: str | None,
    model: str | None,
    model_effort: str | None,
    project: str | None,
    body: str | None,
    cleanup: bool,
    session_id: str | None,
    json: bool,
) -> int:
    """Read a record, store it, print its id."""
    data, name = _read(context, body)
    fields = record.check(jsontext.parse(data, name=name))
    overrides: dict[str, JsonValue] = {"source": source, "model": model, "model_effort": model_effort}
    fields.update({key: value for key, value in overrides.items() if value is not None})
    record.check(fields)  # an empty --model is as wrong as an empty model
    written = fields.get("agent")
    fields["agent"] = agent_of(
        agent,
        context.env,
        None if project else context.marker,
        written=written if isinstance(written, str) else None,
        configured=context.config.agent or None,
    )
    in_body = fields.pop("project", None)
    ref = context.project(project if project is not None else (in_body if isinstance(in_body, str) else None))
    session = session_of(session_id, context.env)
    for warning in _thin(fields):
        context.note(warning)
    with context.open() as store:
        logged = store.log(store.admit(fields, session_id=session.id, session_source=session.source), home_of(ref))
        notes = [*store.warnings, *logged.notes]
    _say(logged, json)
    for note in notes:
        context.note(note)
    if not logged.created:
        context.note(f"{logged.id} holds this very record already; nothing was stored twice")
    if cleanup:
        _clean_up(context, body)
    return 0


def _read(context: Context, body: str | None) -> tuple[bytes, str]:
    if body is None or body == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise NotFound("there is no standard input to read the record from", hint="give --body FILE")
        if sys.stdin.isatty():
            context.note("reading a JSON record from the terminal; end it with Ctrl-D (or give --body FILE)")
        data, name = sys.stdin.buffer.read(LARGEST + 1), "standard input"
    else:
        name = body
        try:
            with Path(body).open("rb") as file:
                data = file.read(LARGEST + 1)
        except FileNotFoundError:
            raise NotFound(f"there is no file {body}", hint="'qiju temp-entry' makes one to write into") from None
        except OSError as error:
            raise StorageFailed(f"{body} cannot be read: {error.strerror}", hint="check the path") from error
    if len(data) > LARGEST:
        raise StorageFailed(f"{name} is larger than {LARGEST >> 20} MiB", hint="split the record")
    return data, name


def _thin(fields: dict[str, JsonValue]) -> list[str]:
    """What makes a record hard to find or of little use later."""
    text = f"{fields.get('title', '')}{fields.get('body_md', '')}".strip()
    if not text:
        meant = "; its text stands under body, which is kept, but search looks into body_md" if "body" in fields else ""
        return [f"the record has neither a title nor a body (body_md); it will be hard to find{meant}"]
    if not str(fields.get("title", "")).strip():
        return ["the record has no title; lists will show it as an empty line"]
    if not str(fields.get("body_md", "")).strip() and len(text) < _FEW_CHARACTERS:
        return ["the record has no body; say what was decided, and why"]
    return []


def _say(logged: Logged, as_json: bool) -> None:
    if not as_json:
        print(logged.id)
        return
    answer: dict[str, JsonValue] = {
        "id": logged.id,
        "seq": logged.seq,
        "project": logged.project,
        "digest": logged.digest,
        "redactions": logged.redactions,
        "created": logged.created,
        "session_source": logged.session_source,
        "notes": list(logged.notes),
    }
    print(jsontext.line(answer))


def _clean_up(context: Context, body: str | None) -> None:
    from qiju.staging import safe_cleanup, staging_dir

    if body is None or body == "-":
        context.note("--cleanup skipped: the record came from standard input")
        return
    refusal = safe_cleanup(Path(body), staging_dir(context.root.path))
    if refusal:
        context.note(f"--cleanup skipped: {refusal}")


COMMAND = Command(
    "log",
    "Store one record, given as a JSON object in a file or on standard input, and print its id.",
    (
        Option(
            "source", ("--source",), "Who asked: a person (manual) or the agent.", choices=record.SOURCES, required=True
        ),
        Option("agent", ("--agent",), "The agent's name, such as claude, codex, kiro.", complete="agent"),
        Option("model", ("--model",), "The exact model; leave it out when unknown."),
        Option("model_effort", ("--model-effort",), "The model's effort label; leave it out when unknown."),
        Option("project", ("--project",), "Store it in this project instead of the folder's own.", complete="project"),
        Option("body", ("--body",), "File that holds the record; '-' or nothing reads standard input.", metavar="FILE"),
        Option(
            "cleanup", ("--cleanup",), "Delete the --body file afterwards if 'qiju temp-entry' made it.", bool, False
        ),
        Option("session_id", ("--session-id",), "The session; outweighs the host's variable."),
        Option("json", ("--json",), "Print id, seq, digest and the number of redactions as JSON.", bool, False),
    ),
    run,
)
