"""`qiju restore`: go back to a backup."""

from __future__ import annotations

from pathlib import Path

from qiju import render
from qiju.cli.context import Context
from qiju.cli.options import Argument, Command, Option
from qiju.errors import UsageError
from qiju.wording import counted


def run(context: Context, *, path: tuple[str, ...], dry_run: bool, json: bool) -> int:
    """Check the backup, keep the store that is there, put the backup in its place."""
    from qiju.keeping.restore import restore

    if len(path) > 1:
        raise UsageError("restore takes one path", hint="quote a path that holds spaces")
    done = restore(context.home, Path(path[0]), context.config, dry_run=dry_run)
    if json:
        print(render.json_text(done.to_json()))
    else:
        would = "would be " if dry_run else ""
        print(f"{counted(done.records, 'record')} {would}restored from {render.one_line(str(done.source))}")
        if done.redacted_again:
            print(f"{done.redacted_again} of them were redacted again")
        if done.replaced is not None:
            print(f"the replaced store is kept as {render.one_line(str(done.replaced))}")
    for note in done.notes:
        context.note(note)
    return 0


COMMAND = Command(
    "restore",
    "Put a backup in the store's place: checked first, the replaced store kept.",
    (
        Option("dry_run", ("--dry-run",), "Check the backup and say what would happen.", bool, False),
        Option("json", ("--json",), "Print what was done as JSON.", bool, False),
    ),
    run,
    Argument("path", "A backup: its path, or its name in 'qiju backup --list'.", "PATH"),
)
