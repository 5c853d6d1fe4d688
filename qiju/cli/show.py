"""`qiju show`: read records whole, by id."""

from __future__ import annotations

from qiju import render
from qiju.cli.context import Context
from qiju.cli.options import Argument, Command, Option
from qiju.errors import UsageError
from qiju.jsontext import JsonValue
from qiju.lookup import lookup
from qiju.rows import Stored
from qiju.store import Store

FORMATS = ("json", "markdown", "text")
VIEWS = ("raw_private", "redacted_public")


def run(
    context: Context, *, ids: tuple[str, ...], project: str | None, fields: str | None, format: str, view: str
) -> int:
    """Print the records; one id gives an object, several a list, in the order asked for."""
    wanted = field_names(fields)
    with context.open_for_reading() as store, store.db.read():
        slug = None
        if project is not None:
            slug = context.project(project, reading=True).slug
        found = [lookup(store, identity, slug) for identity in dict.fromkeys(ids)]
        rows = [shown(store, one, view) for one in found]
    if wanted:
        rows = [render.project_fields(row, wanted) for row in rows]
    if format == "json":
        listed: list[JsonValue] = [*rows]
        print(render.json_text(rows[0] if len(ids) == 1 else listed))
    elif format == "markdown":
        print("\n---\n\n".join(render.markdown(row) for row in rows), end="")
    else:
        from qiju.reading import show_text

        show_text(context, rows)
    return 0


def field_names(fields: str | None) -> list[str]:
    """`a,b` as a list. Raises `UsageError` when nothing is named."""
    if fields is None:
        return []
    names = [name.strip() for name in fields.split(",") if name.strip()]
    if not names:
        raise UsageError("--fields names no field", hint="such as --fields title,ts,next_steps")
    return names


def shown(store: Store, stored: Stored, view: str) -> dict[str, JsonValue]:
    """A record as a view shows it."""
    if view == "raw_private":
        return stored.record.to_json()
    from qiju.views import public_record

    return public_record(store.engine(), stored.record)


COMMAND = Command(
    "show",
    "Print records whole, by id or by the beginning of an id.",
    (
        Option("project", ("--project",), "Only in this project.", complete="project"),
        Option("fields", ("--fields",), "Only these fields, such as title,ts,next_steps.", metavar="A,B"),
        Option("format", ("--format",), "How to print them.", default="json", choices=FORMATS),
        Option(
            "view", ("--view",), "redacted_public leaves out what may not be shared.", default=VIEWS[0], choices=VIEWS
        ),
    ),
    run,
    Argument("ids", "Ids of records, or the beginnings of ids.", "ID...", complete="id"),
    json_formats=(),
)
