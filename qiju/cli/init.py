"""`qiju init`: mark the project and give hosts their skills."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qiju import hosts, skills
from qiju.cli.context import Context, current
from qiju.cli.setting_up import change_line, check_path, finish, open_database, user_level, worktree_here
from qiju.errors import UsageError
from qiju.install import run
from qiju.wording import counted

PLACES = ("local", "global")


def register(app: typer.Typer) -> None:
    app.command("init", help="Mark this project and install the skills of your agent's host.")(init)


def init(
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="HOST", help=f"{', '.join(hosts.NAMES)}, a comma list, or all. Found if omitted."
        ),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--global", help="Install for the user, in all projects, and mark no project.")
    ] = False,
    local: Annotated[bool, typer.Option("--local", help="Install in this project (the default).")] = False,
    place: Annotated[str | None, typer.Option("--place", metavar="local|global", help="The same, as a value.")] = None,
    project: Annotated[str | None, typer.Option("--project", metavar="NAME", help="Name of the project.")] = None,
    hooks: Annotated[bool, typer.Option("--hooks", help="Add a reminder to the hosts' session hooks.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> int:
    context = current()
    is_global = _is_global(everywhere, local, place)
    where = user_level(context)
    if is_global and project is not None:
        raise UsageError("--project names a project, but --global marks none", hint="Leave one of them out.")
    if project is not None and not project.strip():
        raise UsageError("--project is empty", hint="Give the project a name, or leave --project out.")
    if not is_global:
        where = where._replace(root=check_path(context.root.path))
    if host is None:
        marker = None if is_global else context.marker
        names, reason = hosts.detect(context.env, where.root, where.user_home, marker.enabled_agents if marker else ())
        context.note(f"host {', '.join(names)}: {reason}")
    else:
        names, reason = hosts.parse(host), "--host names it"
    with open_database(context, change=not dry_run, create=True) as db:
        report = run.init(
            db,
            where,
            names,
            context.home,
            project=project,
            with_hooks=hooks,
            dry_run=dry_run,
            reason=reason,
            worktree=worktree_here(where.root),
        )
    return finish(context, report, _text(report.value, names, where.root, context, dry_run), as_json=as_json)


def _is_global(everywhere: bool, local: bool, place: str | None) -> bool:
    if place is not None and place not in PLACES:
        raise UsageError(f"--place {place} is neither local nor global")
    wanted = {word for word, said in (("global", everywhere), ("local", local)) if said} | ({place} if place else set())
    if len(wanted) > 1:
        raise UsageError("--global and --local contradict each other", hint="Give one of them.")
    return wanted == {"global"}


def _text(
    reports: list[dict[str, Any]], names: tuple[str, ...], root: Path | None, context: Context, dry_run: bool
) -> str:
    mode = "local" if root is not None else "global"
    lines = [f"qiju init ({mode}{', dry run' if dry_run else ''})"]
    changed: dict[str, None] = {}
    for report in reports:
        lines += ["", f"[{report['host']}]" + (f" project: {report['project']}" if report["project"] else "")]
        lines += [f"  root: {report['project_root']}"] if report["project_root"] else []
        lines += [f"  home: {report['qiju_home']}", "  Files:"]
        changes = {change["path"]: change_line(change) for change in report["changes"]}
        lines += ["  " + changes.get(path, f"  [unchanged] {path}") for path in report["files"]]
        lines += [f"  note: {message}" for message in report["messages"]]
        changed.update(dict.fromkeys(changes))
    verb = "would be written" if dry_run else "written"
    lines += [
        "",
        f"Summary: {counted(len(names), 'host')} wired ({', '.join(names)}), {counted(len(changed), 'file')} {verb}",
    ]
    if not dry_run:
        lines += [f"Your agent now has the skills {', '.join(skills.NAMES)}: ask it to log this session."]
    return "\n".join(lines)
