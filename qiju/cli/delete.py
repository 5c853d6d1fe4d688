"""`qiju delete`: remove records on purpose, and prove that they are gone."""

from __future__ import annotations

import sys

from qiju.cli.context import Context, inert
from qiju.cli.options import Argument, Command, Option
from qiju.errors import UsageError
from qiju.wording import counted


def run(
    context: Context,
    *,
    ids: tuple[str, ...],
    project: str | None,
    reason: str,
    yes: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Find the records, ask, delete, clean, prove."""
    from qiju import render
    from qiju.cli.redact import clean_reason, incomplete
    from qiju.erasure import audit, deletion
    from qiju.erasure.removal import Gone
    from qiju.keeping.progress import Progress

    if not reason.strip():
        raise UsageError("a deletion needs a reason", hint="--reason 'logged by mistake'")
    with context.open_for_reading() if dry_run else context.open() as store:
        slug = None if project is None else context.project(project, reading=True).slug
        found, finishing = deletion.find(store, ids, slug)
        if dry_run:
            report = deletion.Report()
            report.dry_run = True
            report.deleted = [Gone(one.seq, one.record.project, one.record.id) for one in found]
        else:
            if found and not yes:
                _ask(found[0].record.id, len(found))
            with Progress("deleting", color=not context.no_color) as step:
                report = deletion.delete(store, found, clean_reason(store, reason), audit.actor(context.env), step)
            if finishing:
                report.warnings.append(
                    f"an earlier deletion of {counted(len(finishing), 'record')} was not proven; it is now done"
                )
        warnings = [*store.warnings, *report.warnings]
    for warning in warnings:
        context.note(warning)
    print(render.json_text(report.to_json()))
    if report.remains:
        raise incomplete(report.remains)
    return 0


def _ask(first: str, count: int) -> None:
    """Have the person agree. Raises `UsageError` where nobody can be asked or the answer is another."""
    what = first if count == 1 else f"{first} and {count - 1} more records"
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"deleting {what} has to be confirmed", hint="give --yes")
    print(f"Delete {inert(what)} for good? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("not confirmed; nothing was deleted")


COMMAND = Command(
    "delete",
    "Remove records for good, leaving only a tombstone and an audit row, and prove that their text is gone.",
    (
        Option("reason", ("--reason",), "Why; kept in the audit.", required=True),
        Option("project", ("--project",), "Only in this project.", complete="project"),
        Option("yes", ("--yes", "-y"), "Do not ask.", bool, False),
        Option("dry_run", ("--dry-run",), "Print what would be deleted, and change nothing.", bool, False),
        Option("json", ("--json",), "Errors as JSON, too; the answer always is.", bool, False),
    ),
    run,
    Argument("ids", "Ids of records, whole.", "ID...", complete="id"),
)
