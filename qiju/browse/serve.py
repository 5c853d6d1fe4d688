"""The child of `qiju browse`: serves one database with Datasette. `launch` starts `main` in a process of its own.

Nothing here or below imports apsw. On standard output it says once `{"port": n}` or `{"error": ..., "why": ...}`, and
at its end why, when it ended by itself. It ends when standard input closes, so it never outlives its parent.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import uvicorn
from datasette.app import Datasette
from datasette.database import Database
from datasette.plugins import DEFAULT_PLUGINS, pm

from qiju.browse import pages

HERE = Path(__file__).parent
_parent: TextIO | None = None
SETTINGS = {
    "allow_download": False,  # the file alone lacks what is still in the WAL; `qiju export --format sqlite` is the way
    "default_cache_ttl": 0,  # a reload shows what was logged, or redacted, a moment ago
    "default_page_size": 50,
    "suggest_facets": False,  # the useful ones are configured
    "truncate_cells_html": 240,
    "facet_time_limit_ms": 2000,
    "sql_time_limit_ms": 10000,
}


class ReadOnlyDatabase(Database):  # type: ignore[misc]
    """A database that has no writing connection to give, whoever asks."""

    def connect(self, write: bool = False) -> Any:
        return super().connect(write=False)


def build(database: Path) -> Datasette:
    """Datasette with the store as its only database, and Qiju's pages as its only plugin."""
    for plugin in list(pm.get_plugins()):
        # Whatever else is installed beside Datasette stays out: some plugins write, some serve to others.
        if pm.get_name(plugin) not in DEFAULT_PLUGINS:
            pm.unregister(plugin)
    pm.unregister(name="datasette.facets")  # ours are given by `pages`
    pm.register(pages, "qiju")
    # It would print the values of all variables, texts of records among them, wherever rich is installed.
    vars(import_module("datasette.handle_exception"))["rich"] = None
    app = Datasette(
        [],
        metadata=json.loads((HERE / "metadata.json").read_text(encoding="utf-8")),
        template_dir=str(HERE / "templates"),
        static_mounts=[("assets", str(HERE / "static"))],
        settings=SETTINGS,
    )
    app.remove_database("_memory")
    app.add_database(ReadOnlyDatabase(app, path=str(database), is_mutable=True), name=pages.DATABASE)
    return app


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and sockets:
            say({"port": sockets[0].getsockname()[1]})

    def capture_signals(self) -> Any:
        """None: the parent says when to end."""
        from contextlib import nullcontext

        return nullcontext()


def _channel() -> TextIO:
    """Standard output for the parent alone: what Datasette prints (it shows its errors there) joins standard error."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    return channel


def say(answer: dict[str, object]) -> None:
    """One line to the parent."""
    assert _parent is not None
    _parent.write(json.dumps(answer) + "\n")
    _parent.flush()


def main(database: Path, port: int) -> int:
    """Serve until told to stop; the exit code."""
    global _parent
    _parent = _channel()
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # there it would let a second server take the same port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
    except OSError as error:
        say({"error": "port", "why": error.strerror or str(error)})
        return 1
    app = build(database)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.invoke_startup())
    server = _Server(uvicorn.Config(app.app(), log_level="warning", lifespan="on", timeout_graceful_shutdown=2))

    def stop() -> None:
        server.should_exit = True

    def until_parent_is_gone() -> None:
        sys.stdin.buffer.read()
        stop()

    threading.Thread(target=until_parent_is_gone, daemon=True).start()
    pages.WATCH.begin(database, stop)
    loop.run_until_complete(server.serve(sockets=[listening]))
    if pages.WATCH.replaced:
        say({"why": "the store's file was replaced (restored?); start browse again to see the new one"})
    return 0
