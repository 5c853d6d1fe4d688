"""`qiju migrate`: take over a predecessor's store, or put project names right. One mode a call."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING

from qiju import render
from qiju.cli.context import Context, home_of
from qiju.cli.options import Command, Option
from qiju.errors import NoProject, UsageError
from qiju.jsontext import JsonValue
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.keeping.merge import Plan
    from qiju.keeping.migrate import Origin
    from qiju.store import Store


def run(
    context: Context,
    *,
    project: str | None,
    from_qiju: str | None,
    from_kedu: bool,
    retag_from: str | None,
    project_root: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Choose the mode, run it, print its report as JSON."""
    modes = {"--project": project, "--from-qiju": from_qiju, "--from-kedu": from_kedu, "--retag-from": retag_from}
    chosen = [name for name, value in modes.items() if value]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} cannot be used together", hint="run one after the other")
    if project_root and not (from_qiju or from_kedu):
        raise UsageError("--project-root goes with --from-qiju or --from-kedu", hint="leave it out")
    with context.open_for_reading() if dry_run else context.open() as store:
        if from_qiju or from_kedu:
            report = _take_over(context, store, _origin(context, from_qiju, project_root), dry_run)
        elif retag_from:
            report = _retag(context, store, retag_from, dry_run)
        else:
            report = _normalise(context, store, project, dry_run)
        for warning in store.warnings:
            context.note(warning)
    print(render.json_text(report))
    return 0


def _origin(context: Context, from_qiju: str | None, project_root: tuple[str, ...]) -> Origin:
    from qiju.keeping.migrate import Origin
    from qiju.place.home import real_path, user_folder

    roots = [real_path(path, context.env, named="--project-root") for path in project_root]
    for path in roots:
        if not path.is_dir():
            raise UsageError(f"--project-root: {path} is not a folder")
    if from_qiju:
        return Origin(real_path(from_qiju, context.env, named="--from-qiju"), roots)
    user = user_folder(context.env)
    if user is None:
        raise UsageError("--from-kedu reads ~/.kedu, but no home folder is known")
    return Origin(user / ".kedu", roots or [context.root.path], ".kedu", brand=True)


def _take_over(context: Context, store: Store, origin: Origin, dry_run: bool) -> dict[str, JsonValue]:
    from qiju.keeping.migrate import take_over
    from qiju.keeping.progress import Progress

    with Progress("taking over", color=not context.no_color) as progress:
        report = take_over(store, origin, dry_run=dry_run, step=progress)
    for one in report.problems:
        line, last = one["line"], one["last_line"]
        where = f", line {line}" if line == last else f", lines {line} to {last}"
        context.note(f"{one['file']}{where if line else ''}: {one['message']}")
    for one in report.conflicts:
        context.note(f"{one['project']}: {one['id']} exists with other content; this one is kept as {one['kept_as']}")
    for one in report.roots:
        if not one["reachable"]:
            context.note(f"{one['path']} is registered but not there; its short tier was not read")
    if report.replaced:
        copies = counted(len(report.replaced), "copy", "copies")
        context.note(f"left out, since an old redaction had missed them: {copies}")
    return report.to_json()


def _retag(context: Context, store: Store, retag_from: str, dry_run: bool) -> dict[str, JsonValue]:
    from qiju.keeping import merge

    marker = context.marker
    if marker is None:
        raise NoProject(
            f"--retag-from moves records into this folder's project, but {context.root.path} has no marker",
            hint="run 'qiju init --project NAME' here, or use 'qiju projects merge A --into B'",
        )
    target = home_of(context.project(None))
    slug = store.project_of(target) or target.slug
    plan = merge.plan(store, retag_from, slug, kind="retag")
    report = plan.to_json() | {"dry_run": dry_run}
    if not dry_run:
        number, warnings = merge.apply(store, plan, target_home=target)
        report["move"] = number
        _say(context, plan, warnings, number)
    return report


def _say(context: Context, plan: Plan, warnings: list[str], number: int) -> None:
    for old, new in plan.marked.items():
        context.note(f"{plan.target} has a record {old} already; the one that came is kept as {new}")
    for warning in warnings:
        context.note(warning)
    context.note(f"{counted(plan.records, 'record')} moved; 'qiju projects undo {number}' takes it back")


def _normalise(context: Context, store: Store, project: str | None, dry_run: bool) -> dict[str, JsonValue]:
    from qiju.keeping import merge

    moves: list[JsonValue] = []
    for plan in merge.normalise_plans(store, project):
        report = plan.to_json()
        if not dry_run:
            # An earlier move of this run may have filled the target: what is carried out is checked afresh.
            plan = merge.plan(store, plan.source, plan.target, kind="normalise")
            number, warnings = merge.apply(store, plan)
            report = plan.to_json() | {"move": number}
            _say(context, plan, warnings, number)
        moves.append(report)
    return {"mode": "normalise", "dry_run": dry_run, "moves": moves, "marker": _marker(context, dry_run)}


def _marker(context: Context, dry_run: bool) -> dict[str, JsonValue]:
    """Spell the project in this folder's marker as the slug it is, and give the marker a UUID when it has none."""
    from qiju.place.marker import write_marker
    from qiju.place.root import marker_path

    path: Path = marker_path(context.root.path)
    marker = context.marker
    if marker is None:
        return {"path": str(path), "action": "no_op", "changed": False}
    raw = json_module.loads(path.read_text(encoding="utf-8-sig"))
    if raw.get("project") == marker.project and marker.uuid:
        return {"path": str(path), "action": "no_op", "changed": False}
    if not dry_run:
        write_marker(context.root.path, marker)
    return {"path": str(path), "action": "rewrite", "changed": True, "old": raw.get("project"), "new": marker.project}


COMMAND = Command(
    "migrate",
    "Take over a predecessor's store, or put project names right; without an option, names become slugs.",
    (
        Option("project", ("--project",), "Put right only this project's name.", complete="project"),
        Option("from_qiju", ("--from-qiju",), "Take over a predecessor's home, such as ~/.qiju.", metavar="DIR"),
        Option("from_kedu", ("--from-kedu",), "Take over ~/.kedu, with its brand words rewritten.", bool, False),
        Option(
            "retag_from",
            ("--retag-from",),
            "Move the records of this project into the one that this folder's marker names.",
            metavar="SLUG",
            complete="project",
        ),
        Option(
            "project_root",
            ("--project-root",),
            "A project folder whose short tier is read, too (repeatable); with --from-kedu the current one by default.",
            multiple=True,
            metavar="DIR",
        ),
        Option("dry_run", ("--dry-run",), "Print the same report and write nothing.", bool, False),
    ),
    run,
)
