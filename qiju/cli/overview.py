"""Bare `qiju`: what this project holds, and the commands to go on with."""

from __future__ import annotations

from qiju import render
from qiju.cli.context import Context, home_of
from qiju.errors import NoProject

_NEXT = (
    ("qiju search --query WORDS", "find records of this project (--scope all: of every project)"),
    ("qiju show ID", "read one whole"),
    ("qiju log --source manual --body FILE", "store one"),
)


def run(context: Context) -> int:
    """Print it."""
    try:
        ref = context.project(None, reading=True)
    except NoProject:
        ref = None
    with context.open_for_reading() as store, store.db.read() as connection:
        slug = store.project_of(home_of(ref)) if ref is not None else None
        total = store.db.value("SELECT count(*) FROM record")
        newest = connection.execute(
            "SELECT ts, id, title FROM record WHERE project = ? ORDER BY instant DESC, seq DESC LIMIT 3", (slug or "",)
        ).fetchall()
        held = store.db.value("SELECT count(*) FROM record WHERE project = ?", (slug or "",))
    if ref is None:
        print(f"No project here ({context.root.path}); the store holds {_records(total)}.")
    else:
        print(f"Project {slug or ref.slug}: {_records(held)}; the store holds {_records(total)}.")
    for row in newest:
        print(
            f"  {render.cell(str(row[0]))[:10]}  {render.cell(str(row[1]))}  {render.cut(render.cell(str(row[2])), 60)}"
        )
    print()
    for words, what in _NEXT:
        print(f"  {words:38} {what}")
    return 0


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"
