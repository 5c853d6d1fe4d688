"""`qiju update`: bring installed skills to this version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qiju import hosts
from qiju.cli.context import Context, current
from qiju.cli.setting_up import check_path, finish, open_database, user_level
from qiju.errors import UsageError
from qiju.install import run, scan
from qiju.install.skillfiles import Place
from qiju.place import marker_path, working_directory
from qiju.wording import counted


def register(app: typer.Typer) -> None:
    app.command("update", help="Refresh installed skills in all known projects and at the user's level.")(update)


def update(
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Only these hosts: a comma list, or all.")
    ] = "all",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")] = False,
    scan_projects: Annotated[
        bool,
        typer.Option("--scan-projects/--no-scan-projects", help="Look on the disk for projects not registered yet."),
    ] = False,
    scan_root: Annotated[
        list[str] | None, typer.Option("--scan-root", metavar="DIR", help="Folder to scan; repeatable.")
    ] = None,
    scan_depth: Annotated[int, typer.Option("--scan-depth", help="How deep a scan goes.")] = scan.DEFAULT_DEPTH,
    force: Annotated[bool, typer.Option("--force", help="Replace edited skills, too, and keep them as .bak.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> int:
    context = current()
    names = hosts.parse(host)
    where = user_level(context)
    extra = _here(context) + (scan_roots(context, where, scan_root, scan_depth) if scan_projects else [])
    with open_database(context, change=not dry_run, create=bool(extra)) as db:
        report = run.update(db, where, names, extra, force=force, dry_run=dry_run)
    return finish(context, report, _text(report.value), as_json=as_json)


def _here(context: Context) -> list[Path]:
    """The current project, when it is one."""
    root = context.root.path
    return [check_path(root)] if marker_path(root).is_file() else []


def scan_roots(context: Context, where: Place, named: list[str] | None, depth: int) -> list[Path]:
    """The projects that a scan finds. Raises `UsageError` for a negative depth or a root that is not a folder."""
    if depth < 0:
        raise UsageError("--scan-depth is negative")
    if named:
        starts = [Path(text).expanduser() for text in named]
        for start in starts:
            if not start.is_dir():
                raise UsageError(f"--scan-root {start} is not a folder")
    else:
        starts = scan.default_roots(context.env, where.user_home, working_directory())
    found = scan.find_projects(starts, depth)
    # What lies in the user's own folder is the user's level, not a project, unless a marker says otherwise.
    return [check_path(path) for path in found if path != where.user_home or marker_path(path).is_file()]


def _text(value: dict[str, Any]) -> str:
    dry_run = value["dry_run"]
    lines = ["qiju update (dry run)" if dry_run else "qiju update", ""]
    width = max([len(each["path"]) for each in value["projects"]] or [0])
    said = {"updated": "would update"} if dry_run else {}
    for each in value["projects"]:
        status = said.get(each["status"], each["status"])
        lines.append(f"  {each['path']:<{width}}  {', '.join(each['hosts']) or '-'}  →  {status}")
    for each in value["global_hosts"]:
        lines.append(f"  user level, {each['host']}  →  {said.get(each['status'], each['status'])}")
    everything = [*value["projects"], *value["global_hosts"]]
    lines += [f"  {path}  →  {'would leave' if dry_run else 'left'} the registry" for path in value["pruned"]]
    lines += [f"  {note}" for note in value["notes"]]
    if not everything:
        lines += ["  Set up a project with: qiju init", "  Find projects on the disk with: qiju update --scan-projects"]
    counts = {status: sum(each["status"] == status for each in everything) for status in STATUSES}
    summary = ", ".join(f"{number} {status}" for status, number in counts.items() if number) or "nothing to do"
    lines += ["", f"Summary: {counted(len(value['projects']), 'project')}: {summary}"]
    return "\n".join(lines + (["(dry run: nothing was written)"] if dry_run else []))


STATUSES = ("updated", "unchanged", "skipped", "missing", "failed")
