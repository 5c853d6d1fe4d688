"""Records for a person to read: Markdown rendered on a terminal, plain text in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qiju import render
from qiju.jsontext import JsonValue

if TYPE_CHECKING:
    from qiju.cli.context import Context


def show_text(context: Context, rows: list[dict[str, JsonValue]]) -> None:
    """Print records, rendered where standard output is a terminal and through its pager when they are long."""
    text = "\n---\n\n".join(render.markdown(row) for row in rows)
    if not context.terminal:
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(no_color=not context.color, highlight=False)
    page = Markdown(text, hyperlinks=False)
    if text.count("\n") > console.height and context.color:
        with console.pager(styles=True):
            console.print(page)
    else:
        console.print(page)
