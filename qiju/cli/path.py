"""`qiju path`: where things are."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from qiju import render
from qiju.cli.context import Context, current
from qiju.jsontext import JsonValue
from qiju.store import database_path


class What(StrEnum):
    """What can be asked for."""

    HOME = "home"
    DB = "db"
    PROJECT = "project"
    STAGING = "staging"


def paths(context: Context) -> dict[str, JsonValue]:
    """Every path, by name."""
    from qiju.staging import staging_dir

    root = context.root.path
    return {
        "home": str(context.home),
        "db": str(database_path(context.home)),
        "project": str(root),
        "staging": str(staging_dir(root)),
    }


def path(
    what: Annotated[
        What | None, typer.Argument(metavar="[WHAT]", help="home, db, project or staging; without it, all.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="All of them as a JSON object.")] = False,
) -> None:
    """Print where the store, its database, this project's root and its drafts are."""
    found = paths(current())
    if what is not None:
        print(render.json_text({what.value: found[what.value]}) if json else found[what.value])
    elif json:
        print(render.json_text(found))
    else:
        for name, value in found.items():
            print(f"{name:8} {value}")


def register(root: typer.Typer) -> None:
    """Add the command."""
    root.command("path")(path)
