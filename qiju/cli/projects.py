"""`qiju projects`: what the store knows of projects."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qiju import jsontext, render
from qiju.cli.context import current
from qiju.jsontext import JsonValue

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


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.add_typer(app, name="projects")
