"""`qiju hook EVENT`: the reminder for hosts' session hooks. One line of JSON, exit 0, whatever happens.

To several hosts exit 2 means "block what you were about to do", and 2 is also what a mistake in the words would give.
So mistakes, too, are only said on standard error.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._click import core as click
from typer._click import exceptions
from typer.core import TyperCommand

from qiju import hosts, jsontext
from qiju.cli.context import Context, current, home_of, inert
from qiju.errors import QijuError
from qiju.install import reminder
from qiju.install.reminder import Facts
from qiju.jsontext import JsonValue
from qiju.place import find_root, resolve_project
from qiju.registry import Registry
from qiju.store import Store

LONGEST_PAYLOAD = 1024 * 1024
PATIENCE = 1.0  # seconds to wait for the host's description of the event


class Forgiving(TyperCommand):
    """A command that a mistake in its words does not end."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, list(args))
        except exceptions.UsageError as error:
            print(f"qiju hook: {inert(error.format_message())}", file=sys.stderr)
            ctx.params.clear()
            return super().parse_args(ctx, [])


def register(app: typer.Typer) -> None:
    app.command(
        "hook",
        cls=Forgiving,
        help="Print a host's reminder of its records (for session hooks; see init --hooks).",
        context_settings={"allow_extra_args": True},
    )(hook)


def hook(
    event: Annotated[
        str | None, typer.Argument(metavar="EVENT", help=f"{', '.join(reminder.REMINDERS)}; other events say nothing.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="The host that asks.")] = None,
) -> int:
    context = current()
    answer: dict[str, Any] = {}
    try:
        payload = _payload()
        name = reminder.event_name(event or _text(payload, "hook_event_name"))
        # Most hosts put only their own name into the environment, so that it stands in when --host is missing.
        asking = hosts.find(host) if host else next(map(hosts.row, hosts.running(context.env)), None)
        if name in reminder.REMINDERS:
            answer = reminder.answer(name, asking, _facts(context, payload))
    except (QijuError, OSError) as error:
        context.note(str(error))
    sys.stdout.write(jsontext.line(answer) + "\n")
    return 0


def _facts(context: Context, payload: dict[str, JsonValue]) -> Facts | None:
    """What the store knows of the project, or None where there is no project."""
    folder = _text(payload, "cwd")
    root = find_root(Path(folder) if folder and Path(folder).is_dir() else None, context.env)
    if root.kind == "bare":
        return None
    claim = home_of(resolve_project(None, root, reading=True))
    with Store.open_for_reading(context.home) as store:
        return Facts(*Registry(store.db).session_facts(claim, _text(payload, "session_id")))


def _text(payload: dict[str, JsonValue], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _payload() -> dict[str, JsonValue]:
    """What the host says about the event on standard input; empty when it says nothing in time, or no JSON."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    parts: list[bytes] = []
    # A hook may be started with an input that nobody ever closes; reading it must not hang the host.
    reader = threading.Thread(target=_read, args=(sys.stdin.fileno(), parts), daemon=True)
    reader.start()
    reader.join(PATIENCE)
    try:
        value = jsontext.parse(b"".join(parts), name="the hook's input")
    except QijuError:
        return {}
    return value if isinstance(value, dict) else {}


def _read(descriptor: int, parts: list[bytes]) -> None:
    size = 0
    while size < LONGEST_PAYLOAD:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            return
        if not part:
            return
        parts.append(part)
        size += len(part)
