"""Bare `qiju`: what this project holds, and the commands to go on with."""

from __future__ import annotations

from qiju import render
from qiju.cli.context import Context, home_of
from qiju.errors import NoProject

_FIRST = ("qiju init", "set this project up for your agent")
_NEXT = (
    ("qiju search --query WORDS", "find records (--scope all: everywhere)"),
    ("qiju show ID", "read one whole"),
    ("qiju log --source manual --body FILE", "store one"),
)
_NEWEST = "SELECT ts, id, title FROM record WHERE project = ? ORDER BY instant DESC, seq DESC LIMIT 3"


def run(context: Context) -> int:
    """Print it."""
    try:
        ref = context.project(None, reading=True)
    except NoProject:
        ref = None
    with context.open_for_reading() as store, store.db.read() as connection:
        slug = store.project_of(home_of(ref)) if ref is not None else None
        total = store.db.value("SELECT count(*) FROM record")
        newest = connection.execute(_NEWEST, (slug or "",)).fetchall()
        held = store.db.value("SELECT count(*) FROM record WHERE project = ?", (slug or "",))
    if ref is None:
        print(f"No project here ({render.one_line(str(context.root.path))}); the store holds {_records(total)}.")
    else:
        name = render.one_line(slug or ref.slug)
        print(f"Project {name}: {_records(held)}; the store holds {_records(total)}.")
    for ts, identity, title in newest:
        for line in _newest(context, str(ts), str(identity), str(title)):
            print(line)
    print()
    for words, what in _NEXT if ref is not None and ref.marker is not None else (_FIRST, *_NEXT):
        print(f"  {words:38} {what}")
    return 0


def _newest(context: Context, ts: str, identity: str, title: str) -> list[str]:
    if not context.terminal:
        shown = render.cut(render.cell(title) or "(no title)", 60)
        return [f"  {render.cell(ts)[:10]}  {render.cell(identity)}  {shown}"]
    from shutil import get_terminal_size

    from qiju.reading import moment, styled

    when, age = moment(ts)
    room = max(20, get_terminal_size((80, 24)).columns - 2)
    shown = styled(context, "strong", render.cut(render.cell(title) or "(no title)", room))
    beside = styled(context, "quiet", f"{when[:10]}  {age}".rstrip())
    return [f"  {shown}", f"    {styled(context, 'id', render.cell(identity))}  {beside}"]


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"
