"""`qiju browse`: the store in a web browser, read-only, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, NoReturn

import typer

from qiju.cli.context import Context, current
from qiju.errors import NotFound
from qiju.store import database_path


def browse(
    port: Annotated[
        int | None,
        typer.Option(
            "--port", "-p", help="Listen on this port; 0 is a free one. Default: 8001, or a free one if taken."
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the start page in the web browser.")] = False,
) -> None:
    """Serve the store to this machine's web browsers with Datasette, read-only, until Ctrl-C."""
    from qiju.browse import launch

    context = current()
    launch.check_installed()
    path = database_path(context.home)
    if not path.exists():
        raise NotFound(f"there is no store at {path}", hint="'qiju log' makes it; --home DIR names another")
    with context.open_for_reading() as store:
        # Where the folder cannot be written, this is a private copy: it lives until `store` is closed.
        file = store.db.file
        assert file is not None
        live = file == path
        if live:
            store.close()  # no reader of ours must keep the WAL from shrinking
        else:
            context.note("the store is read-only: this is a copy of it, and later records are not in it")
        signal.signal(signal.SIGTERM, _leave)
        with launch.Server(file, port) as server:
            print(server.url, flush=True)
            print(f"qiju browse: {path}, read-only; Ctrl-C ends it", file=sys.stderr)
            if open_:
                _open(context, server.url)
            try:
                why = server.wait()
            except KeyboardInterrupt:
                return
    context.note(why or "Datasette ended")


def _open(context: Context, url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        context.note(f"no web browser could be opened; go to {url}")


def _leave(_number: int, _frame: object) -> NoReturn:
    """A polite kill: end the child, remove a private copy."""
    raise KeyboardInterrupt


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("browse")(browse)
