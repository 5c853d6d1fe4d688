"""`qiju backup`: copy the store while others write, and prove the copy."""

from __future__ import annotations

from pathlib import Path

from qiju import render
from qiju.cli.context import Context
from qiju.cli.options import Argument, Command, Option
from qiju.errors import UsageError
from qiju.jsontext import JsonValue
from qiju.wording import counted


def run(context: Context, *, path: tuple[str, ...], list_: bool, keep: int | None, with_key: bool, json: bool) -> int:
    """Make a backup, or list those that are there."""
    from qiju.keeping import backup as backups
    from qiju.keeping.progress import Progress

    if len(path) > 1:
        raise UsageError("backup takes one path", hint="quote a path that holds spaces")
    if list_:
        if path or keep is not None or with_key:
            raise UsageError("--list goes alone")
        return _list(context, json)
    with context.open_for_reading() as store, Progress("copying", color=not context.no_color) as progress:
        target = Path(path[0]) if path else None
        made = backups.backup(store, target, with_key=with_key, keep=keep, step=progress)
    if not json:
        print(made.path)
    else:
        rotated: list[JsonValue] = [str(one) for one in made.rotated]
        report: dict[str, JsonValue] = {
            "path": str(made.path),
            "manifest": dict(made.manifest._asdict()),
            "key": None if made.key is None else str(made.key),
            "removed": rotated,
        }
        print(render.json_text(report))
    context.note(f"{counted(made.manifest.records, 'record')}, checked")
    if made.key is None:
        context.note("the store key is not in it; --with-key writes it to a file beside the backup")
    for gone in made.rotated:
        context.note(f"removed {gone}")
    return 0


def _list(context: Context, json: bool) -> int:
    from qiju.keeping import backup as backups

    found = backups.listed(context.home)
    if json:
        rows: list[JsonValue] = [backups.to_json(kept) for kept in found]
        print(render.json_text(rows))
        return 0
    for kept in found:
        records = "" if kept.manifest is None else f"  {counted(kept.manifest.records, 'record')}"
        key = "  with key" if kept.has_key else ""
        print(render.one_line(f"{kept.path.name}  {kept.kind}  {kept.size} bytes{records}{key}"))
    return 0


COMMAND = Command(
    "backup",
    "Copy the store to a file (by default below the home) while others write, and check the copy.",
    (
        Option("list_", ("--list",), "List the backups below the home.", bool, False),
        Option("keep", ("--keep",), "Keep the newest N backups below the home, remove older ones.", int, metavar="N"),
        Option("with_key", ("--with-key",), "Write the store key, too, to a file of its own.", bool, False),
        Option("json", ("--json",), "Print what was made as JSON.", bool, False),
    ),
    run,
    Argument("path", "File or folder to write to.", "[PATH]", required=False),
)
