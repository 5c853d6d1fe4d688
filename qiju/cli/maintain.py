"""`qiju maintain`: tiers, archive files, drafts, spool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qiju import render
from qiju.cli.context import Context, current
from qiju.errors import QijuError
from qiju.store import Store


def maintain(
    project: Annotated[
        str | None, typer.Option("--project", help="Only the tiers and the archive of this project.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what the run would do, and change nothing.")
    ] = False,
    compact: Annotated[
        bool, typer.Option("--compact", help="Also merge the search index and give free space back (VACUUM).")
    ] = False,
) -> int:
    """Move old records to their tier, keep the archive's Parquet files current, sweep drafts; prints a JSON report."""
    from qiju.keeping import maintain as keeping
    from qiju.keeping.progress import Progress

    context = current()
    slug = None if project is None else context.project(project, reading=True).slug
    with (
        context.open_for_reading() if dry_run else context.open() as store,
        Progress("maintaining", color=not context.no_color) as step,
    ):
        task = keeping.Task(slug, dry_run=dry_run, compact=compact)
        report = keeping.maintain(store, context.config.maintain, _roots(context, store), task, step)
        warnings = list(store.warnings)
    for warning in warnings:
        context.note(warning)
    for found in report.value["foreign"]:
        context.note(f"left alone: {found['path']}: {found['reason']}")
    print(render.json_text(report.value))
    if report.failed:
        more = f" (and {len(report.failed) - 1} more)" if len(report.failed) > 1 else ""
        raise QijuError(f"{report.failed[0]}{more}", hint="everything else was done; the report names each")
    return 0


def _roots(context: Context, store: Store) -> list[Path]:
    """The folders that may hold drafts: this one, the home, and every registered one that is there."""
    from qiju.registry import Registry

    roots = [context.home, *(Path(one.path) for one in Registry(store.db).roots())]
    try:
        roots.insert(0, context.root.path)
    except QijuError as error:
        context.note(f"drafts of the working folder are not swept: {error}")
    return [root for root in roots if root.is_dir()]


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command("maintain")(maintain)
