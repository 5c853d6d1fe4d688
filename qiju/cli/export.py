"""`qiju export`: records out, as a file, a folder or a stream."""

from __future__ import annotations

import sys
from pathlib import Path

from qiju import jsontext
from qiju.cli import search
from qiju.cli.context import Context
from qiju.cli.options import Command, Option
from qiju.errors import ReadOnlyStore, UsageError
from qiju.keeping.export import FORMATS
from qiju.store import Store, database_path
from qiju.views import REDACTED_PUBLIC, VIEWS

_FILTERS = ("query", "match", "regex", "timeout", "project", "session", "tags", "since", "until", "source", "agent",
            "model", "model_effort", "tier")  # fmt: skip


def run(
    context: Context,
    *,
    format: str,
    output: str | None,
    view: str,
    since_rev: int | None,
    receipt: str | None,
    **given: object,
) -> int:
    """Write the export, and its receipt to standard error or a file."""
    from qiju.files import FileReplacement, refuse_target
    from qiju.keeping import export
    from qiju.keeping.progress import Progress

    if output is not None and not output.strip():
        raise UsageError("--output is empty", hint="give the path of the file to write, or leave --output out")
    target = None if output is None or output == "-" else Path(output)
    request = export.Request(format, view, target, since_rev)
    export.check(request)
    note = None if receipt is None else Path(receipt)
    if note is not None:
        refuse_target(note, protected=[*export.own_files(context.home), *([target] if target else [])])
    # What orders and cuts a search (sort, pages, fields) has no meaning here and stays unset.
    unset: dict[str, object] = dict.fromkeys(search.Given._fields)
    asked = search.Given(**{**unset, **given})  # type: ignore[arg-type]
    with _open(context, target) as store, Progress("exporting", color=not context.no_color) as step:
        query = search.query_of(context, store, asked)
        timeout = asked.timeout if asked.timeout is not None else context.config.search.timeout
        if not timeout > 0:
            raise UsageError(f"--timeout must be above 0, not {timeout:g}", hint="seconds, such as --timeout 10")
        done = export.export(store, query, request, stdout=sys.stdout.buffer, timeout=timeout, progress=step)
        warnings = list(store.warnings)
    for warning in warnings:
        context.note(warning)
    if done.record_count == 0:
        context.note("no record matched: the export is empty")
    text = jsontext.line(done.to_json()) + "\n"
    if note is None:
        sys.stderr.write(text)
    else:
        with FileReplacement(note) as out:
            out.write(text.encode("utf-8"))
    return 0


def _open(context: Context, target: Path | None) -> Store:
    """For writing where a file has to be noted in the store and can be; a store that is not there is not made."""
    if target is None or not database_path(context.home).exists():
        return context.open_for_reading()
    try:
        return context.open()
    except ReadOnlyStore:
        return context.open_for_reading()


COMMAND = Command(
    "export",
    "Write records to a file, a folder or standard output, under a privacy view, with a receipt.",
    (
        Option("format", ("--format",), "jsonl, json and markdown are text; parquet is a folder, or one file when the "
               "path ends in .parquet; sqlite is a copy for Datasette.", default="jsonl", choices=FORMATS),
        Option("output", ("--output", "-o"), "Where to write; needed for parquet and sqlite. Else standard output.",
               metavar="PATH"),
        Option("view", ("--view",), "redacted_public leaves out what may not be shared; raw_private is everything.",
               default=REDACTED_PUBLIC, choices=VIEWS),
        Option("since_rev", ("--since-rev",), "Only what changed after this change number (a receipt's rev): records "
               "added, changed, redacted, deleted, one a line.", int, metavar="N"),
        Option("receipt", ("--receipt",), "Write the receipt to this file instead of standard error.", metavar="FILE"),
        Option("scope", ("--scope",), "all, current_project, or project names with commas between.", default="all",
               metavar="SCOPE"),
        *(option for option in search.COMMAND.options if option.name in _FILTERS),
    ),
    run,
)  # fmt: skip
