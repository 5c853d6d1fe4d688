"""`qiju projects`: what the store knows of projects."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qiju import jsontext, render
from qiju.cli.context import current
from qiju.jsontext import JsonValue
from qiju.wording import counted

app = typer.Typer(invoke_without_command=True, help="List the projects of the store.", rich_markup_mode=None)

_LISTING = """
SELECT slug, uuid, name,
    (SELECT count(*) FROM record WHERE project = slug),
    (SELECT ts FROM record WHERE project = slug ORDER BY instant, seq LIMIT 1),
    (SELECT ts FROM record WHERE project = slug ORDER BY instant DESC, seq DESC LIMIT 1),
    (SELECT json_group_array(path) FROM (SELECT path FROM project_root WHERE project = slug ORDER BY path))
FROM project ORDER BY slug
"""


@app.callback(invoke_without_command=True)
def projects(
    ctx: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Counts, first and last record, folders and uuid.")] = False,
) -> None:
    """List the projects of the store, one slug a line."""
    if ctx.invoked_subcommand is not None:
        return
    with current().open_for_reading() as store, store.db.read() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(_LISTING).fetchall()
    if not json:
        if current().terminal:
            _for_a_person(rows)
        else:
            for row in rows:
                print(render.one_line(str(row[0])))
        return
    listed: list[JsonValue] = [
        {
            "slug": row[0],
            "uuid": row[1],
            "name": row[2] or row[0],
            "records": row[3],
            "first": row[4],
            "last": row[5],
            "roots": jsontext.parse(row[6]),
        }
        for row in rows
    ]
    print(render.json_text(listed))


def _for_a_person(rows: list[tuple[Any, ...]]) -> None:
    from qiju.reading import listing, moment, paged

    listed: list[dict[str, JsonValue]] = []
    for slug, _uuid, _name, records, _first, last, _roots in rows:
        when, age = moment(last)
        listed.append({"project": slug, "records": str(records), "last record": f"{when[:10]}  {age}".rstrip()})
    paged(current(), listing(current(), listed, ("project", "records", "last record")))


@app.command("merge")
def merge(
    source: Annotated[str, typer.Argument(metavar="A", help="The project whose records move.")],
    into: Annotated[str, typer.Option("--into", metavar="B", help="The project they move to.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
) -> None:
    """Move all records of one project into another; 'qiju projects undo' takes it back."""
    from qiju.keeping import merge as merging

    context = current()
    with context.open_for_reading() if dry_run else context.open() as store:
        plan = merging.plan(store, source, into)
        report: dict[str, JsonValue] = plan.to_json() | {"dry_run": dry_run}
        if not dry_run:
            number, warnings = merging.apply(store, plan)
            report["move"] = number
            for warning in warnings:
                context.note(warning)
            context.note(f"{counted(plan.records, 'record')} moved; 'qiju projects undo {number}' takes it back")
    print(render.json_text(report))


@app.command("moves")
def moves(
    json: Annotated[bool, typer.Option("--json", help="As a JSON list.")] = False,
) -> None:
    """List what was moved between projects, newest first."""
    from qiju.keeping import merge as merging

    with current().open_for_reading() as store:
        listed = merging.moves(store)
    if json:
        rows: list[JsonValue] = [dict(move._asdict()) for move in listed]
        print(render.json_text(rows))
        return
    for move in listed:
        state = f", undone {move.undone_at}" if move.undone_at else ""
        size = counted(move.records, "record")
        line = f"{move.retag_id}  {move.source} -> {move.target}  {size}, {move.kind}, {move.at}{state}"
        print(render.one_line(line))


@app.command("undo")
def undo(
    number: Annotated[int | None, typer.Argument(help="The move, as 'moves' lists it; without it, the last.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be put back and change nothing.")] = False,
) -> None:
    """Take a move between projects back."""
    from qiju.keeping import merge as merging

    context = current()
    with context.open() as store:
        move, records, warnings = merging.undo(store, number, dry_run=dry_run)
    for warning in warnings:
        context.note(warning)
    report: dict[str, JsonValue] = {
        "operation": "undo",
        "move": move.retag_id,
        "from_project": move.target,
        "to_project": move.source,
        "records": records,
        "dry_run": dry_run,
    }
    print(render.json_text(report))


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.add_typer(app, name="projects")
