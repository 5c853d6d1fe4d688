"""`qiju import`: records from files."""

from __future__ import annotations

from typing import Annotated

import typer

from qiju import render
from qiju.cli.context import current
from qiju.errors import UsageError


def import_(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="JSONL or JSON ('-' reads standard input), Parquet or SQLite of Qiju's, the folder of an export, "
            "or a predecessor's store.",
        ),
    ],
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Leave conflicting and invalid pieces out instead of refusing the file."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would become of each piece.")] = False,
) -> int:
    """Take records in from files, checked and redacted as by 'qiju log'; nothing is stored twice."""
    from qiju.keeping import importing
    from qiju.keeping.progress import Progress

    if paths.count("-") > 1:
        raise UsageError("standard input ('-') can be read only once")
    options = importing.Options(keep_going=keep_going, dry_run=dry_run)
    context = current()
    reports = []
    with (
        context.open_for_reading() if dry_run else context.open() as store,
        Progress("reading", color=not context.no_color) as step,
    ):
        for path in paths:
            reports.append(importing.import_path(store, path, options, step))
        warnings = list(store.warnings)
    for warning in warnings:
        context.note(warning)
    print(render.json_text(importing.summary(reports, options)))
    refusal = importing.refusal(reports, options)
    if refusal is not None:
        raise refusal
    return 0


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command("import")(import_)
