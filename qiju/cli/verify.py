"""`qiju verify`: check the whole store and name what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qiju import render
from qiju.cli.context import Context
from qiju.cli.options import Command, Option
from qiju.errors import StoreDamaged, VerificationFailed
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.keeping.verify import Report


def run(context: Context, *, quick: bool, json: bool) -> int:
    """Check, print what was found, and fail when something is wrong."""
    from qiju.keeping.progress import Progress
    from qiju.keeping.verify import verify

    try:
        with context.open_for_reading() as store, Progress("checking", color=not context.no_color) as progress:
            report = verify(store, quick=quick, step=progress)
    except StoreDamaged as error:
        raise VerificationFailed(
            f"the database cannot be opened: {error}",
            hint="'qiju doctor --fix' saves what can be read into a new file; 'qiju backup --list' lists backups",
        ) from error
    if json:
        print(render.json_text(report.to_json()))
    else:
        _print(report)
    if not report.ok:
        found = len(report.faults) + sum(report.unlisted.values())
        raise VerificationFailed(
            f"{counted(found, 'fault')} found",
            hint="'qiju doctor --fix' repairs what can be repaired, after a backup; 'qiju restore' goes back to one",
        )
    return 0


def _print(report: Report) -> None:
    for finding in report.faults:
        print(render.one_line(f"FAULT   {finding.check}: {finding.where}: {finding.message}"))
    for check, number in report.unlisted.items():
        print(f"FAULT   {check}: {number} more, not listed")
    for finding in report.notices[:50]:
        print(render.one_line(f"notice  {finding.check}: {finding.where}: {finding.message}"))
    if len(report.notices) > 50:
        print(f"notice  {len(report.notices) - 50} more, see --json")
    counts = ", ".join(_counted(name, number) for name, number in report.counts.items())
    left_out = "" if not report.quick else "; search indexes and archive rows were left out (--quick)"
    print(f"{'sound' if report.ok else 'not sound'}: {counts}{left_out}")


def _counted(name: str, number: int) -> str:
    """A count by its name in the report: `archive_files` are things, `unsealed` is a quality."""
    words = name.replace("_", " ")
    return counted(number, words.removesuffix("s"), words)


COMMAND = Command(
    "verify",
    "Check every record, index and archive file; list what is wrong, and then exit with 4.",
    (
        Option("quick", ("--quick",), "Leave out the search indexes and the archive's rows.", bool, False),
        Option("json", ("--json",), "Print the whole report as JSON.", bool, False),
    ),
    run,
)
