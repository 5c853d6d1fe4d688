"""`qiju mcp`: the read-only MCP server on standard input and output."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Annotated, Literal

import typer

from qiju.cli.context import Context, current, home_of
from qiju.errors import NoProject, QijuError
from qiju.projects import Home

INSTALL = "pip install 'qiju[mcp]' (or: uv tool install 'qiju[mcp]', pipx inject qiju mcp)"


def mcp(
    project: Annotated[
        str | None,
        typer.Option("--project", metavar="NAME", help="The project that is meant when a call names none."),
    ] = None,
    view: Annotated[
        Literal["raw_private", "redacted_public"] | None,
        typer.Option(
            "--view",
            help="The view of every answer. Default: records raw_private, as in search; facts of sessions "
            "redacted_public, as in trajectory page.",
        ),
    ] = None,
) -> None:
    """Serve records and sessions to an MCP client on standard input and output, read-only, until it goes away."""
    if find_spec("mcp") is None:
        raise QijuError("the MCP SDK, which this server speaks with, is not installed", hint=INSTALL)
    context = current()
    try:
        from qiju.mcp.server import serve
    except ImportError as error:
        raise QijuError(f"the MCP SDK that is installed does not fit ({error.name} is missing)", hint=INSTALL) from None
    from qiju.mcp.answers import Answers

    if sys.stdin.isatty():
        context.note("an MCP client starts this command and talks to it; Ctrl-C ends it")
    serve(Answers(context.home, project=_project(context, project), view=view, config=context.config))


def _project(context: Context, flag: str | None) -> Home | None:
    """The project that the server stands in; a client's folder need not be one."""
    try:
        return home_of(context.project(flag, reading=True))
    except NoProject:
        return None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp")(mcp)
