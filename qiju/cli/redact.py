"""`qiju redact`: take a value out of everything, apply today's rules to what is stored, or list the audit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from qiju.cli.context import Context
from qiju.cli.options import Command, Option
from qiju.errors import NotFound, QijuError, RedactionIncomplete, StorageFailed, UsageError

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret
    from qiju.store import Store

LARGEST = 1024 * 1024  # bytes of a value on standard input


def run(
    context: Context,
    *,
    value: str | None,
    value_stdin: bool,
    reason: str | None,
    placeholder: str | None,
    project: str | None,
    force: bool,
    dry_run: bool,
    rescan: bool,
    log: bool,
    json: bool,
) -> int:
    """Do the one thing that was asked for."""
    if log:
        return _log(context)
    if rescan:
        if value is not None or value_stdin:
            raise UsageError("--rescan takes no value: it applies the rules", hint="run the two one after the other")
        return _rescan(context, reason or "rescan", dry_run=dry_run)
    if not reason:
        raise UsageError("a redaction needs --reason", hint="it goes into the audit (qiju redact --log)")
    literal = _value(context, value, value_stdin)
    from qiju.erasure.secret import PLACEHOLDER, checked

    secret = checked(literal, PLACEHOLDER if placeholder is None else placeholder, force=force)
    try:
        return _redact(context, secret, reason, project, dry_run=dry_run)
    except BrokenPipeError:
        raise  # who reads the answer has gone: no failure of the redaction
    except OSError as error:
        _again(secret, StorageFailed(f"{error.filename or 'a file'}: {error.strerror or error}"))
    except QijuError as error:
        _again(secret, error)


def _again(secret: Secret, error: QijuError) -> NoReturn:
    """The same failure, its words without the value: a path or a name may hold it."""
    message, hint = secret.clean(str(error)), secret.clean(error.hint)
    if message == str(error) and hint == error.hint:
        raise error
    error.args = (message,)
    error.hint = hint
    # A chained error could quote the value where QIJU_DEBUG shows it.
    raise error from None


def _redact(context: Context, secret: Secret, reason: str, project: str | None, *, dry_run: bool) -> int:
    from qiju import render
    from qiju.erasure import audit, operation
    from qiju.keeping.progress import Progress

    with (
        context.open_for_reading() if dry_run else context.open() as store,
        Progress("redacting", color=not context.no_color) as step,
    ):
        request = operation.Request(
            secret,
            clean_reason(store, secret.clean(reason)),
            audit.actor(context.env),
            _roots(context, store, project),
        )
        outcome = operation.plan(store, request, step) if dry_run else operation.redact(store, request, step)
        warnings = list(store.warnings)
    for warning in (*warnings, *outcome.warnings):
        context.note(secret.clean(warning))
    print(render.json_text(outcome.to_json()))
    if outcome.remains:
        raise incomplete(outcome.remains)
    return 0


def incomplete(remains: list[str]) -> RedactionIncomplete:
    """The failure that names what is left."""
    more = f" (and {len(remains) - 3} more)" if len(remains) > 3 else ""
    return RedactionIncomplete(
        f"not complete: {'; '.join(remains[:3])}{more}",
        hint="repair what is named, then run the same again: it cleans and proves until nothing is pending",
    )


def clean_reason(store: Store, reason: str) -> str:
    """The reason as it may be kept: a reason, too, may quote a secret."""
    return store.engine().redact_text(reason).text


def _roots(context: Context, store: Store, project: str | None) -> tuple[Path, ...]:
    """Folders beside the registered ones: this one, and what `--project` names (a folder, or a project's own)."""
    roots = []
    try:
        roots.append(context.root.path)
    except QijuError as error:
        context.note(f"the working folder is not looked through: {error}")
    if project is not None:
        folder = Path(project)
        if folder.is_dir():
            roots.append(folder.resolve())
        elif store.db.value("SELECT 1 FROM project WHERE slug = ?", (project,)) is None:
            context.note(f"--project {project} is neither a folder nor a project of the store; all are covered anyway")
    return tuple(roots)


def _value(context: Context, value: str | None, value_stdin: bool) -> str:
    if value is not None:
        if value_stdin:
            raise UsageError("--value and --value-stdin are two ways to give one value", hint="leave --value out")
        context.note(
            "a value on the command line is seen by other processes and kept by the shell's history;"
            " --value-stdin, or no value at all (a prompt), is the safe way"
        )
        return value
    if value_stdin:
        return _from_stdin()
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("no value was given", hint="give it on standard input: --value-stdin < FILE")
    import getpass

    return getpass.getpass("Value to redact (not shown): ")


def _from_stdin() -> str:
    if sys.stdin is None or sys.stdin.closed:
        raise NotFound("there is no standard input to read the value from")
    data = sys.stdin.buffer.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise UsageError(f"the value is larger than {LARGEST >> 20} MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("the value on standard input is not UTF-8") from None
    # `echo` and editors end a file with a newline that is no part of the value.
    return text.removesuffix("\n").removesuffix("\r")


def _log(context: Context) -> int:
    from qiju import render
    from qiju.erasure import audit

    with context.open_for_reading() as store:
        print(render.json_text(audit.listed(store.db)))
    return 0


def _rescan(context: Context, reason: str, *, dry_run: bool) -> int:
    from qiju import render
    from qiju.erasure import audit, rescan
    from qiju.keeping.progress import Progress

    with context.open() as store, Progress("rescanning", color=not context.no_color) as step:
        report = rescan.rescan(store, clean_reason(store, reason), audit.actor(context.env), dry_run=dry_run, step=step)
        warnings = list(store.warnings)
    for warning in (*warnings, *report.warnings):
        context.note(warning)
    print(render.json_text(report.to_json()))
    if report.remains:
        raise incomplete(report.remains)
    return 0


COMMAND = Command(
    "redact",
    "Take a value out of every record, index, archive file and backup, and prove that it is gone.",
    (
        Option("value", ("--value",), "The value, seen by other processes: prefer --value-stdin or the prompt."),
        Option("value_stdin", ("--value-stdin",), "Read the value from standard input.", bool, False),
        Option("reason", ("--reason",), "Why; kept in the audit."),
        Option("placeholder", ("--placeholder",), "What takes its place ([REDACTED:manual])."),
        Option(
            "project",
            ("--project",),
            "A further folder whose .qiju is looked through; all projects always are.",
            complete="path",
        ),
        Option("force", ("--force",), "Also for a value of fewer than 6 characters.", bool, False),
        Option("dry_run", ("--dry-run",), "Count what would change, and change nothing.", bool, False),
        Option(
            "rescan", ("--rescan",), "Apply today's rules to what is stored; seal rows written by hand.", bool, False
        ),
        Option("log", ("--log",), "List the audit.", bool, False),
        Option("json", ("--json",), "Errors as JSON, too; the answer always is.", bool, False),
    ),
    run,
)
