"""Records for a person to read: laid out and coloured on a terminal, through a pager when long; plain text in a pipe.

Nothing here runs for a pipe but `show_text`, which then prints plain Markdown. Styles are a handful of ANSI codes, left
out without colour; rich is loaded only to lay out the Markdown of a body, on a terminal.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from qiju import jsontext, render
from qiju.jsontext import JsonValue
from qiju.record import parse_ts

if TYPE_CHECKING:
    from qiju.cli.context import Context

Row = dict[str, JsonValue]

WIDEST = 100  # columns of running text; longer lines are hard to read
TABLE_FROM = 110  # columns; a narrower terminal gets a block a record, so that titles need not be cut
_NARROWEST = 20
_STYLES = {"strong": "1", "quiet": "2", "id": "33", "name": "36"}


def styled(context: Context, style: str, text: str) -> str:
    """Text in one of the styles, where colour is wanted."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if text and context.color else text


def moment(value: JsonValue) -> tuple[str, str]:
    """A `ts` without its fraction, and how long ago that is ('' when it is no time)."""
    text = render.cell(value)
    instant = parse_ts(text) if text else None
    if instant is None:
        return text, ""
    short = re.sub(r"\.\d+", "", text)
    return re.sub(r"[+-]00:?00$", "Z", short), render.ago(instant, time.time_ns() // 1000)


def listing(context: Context, rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """Records as a table as wide as the terminal, or as a block each where that would cut the titles short."""
    columns = _columns()
    snippets = any(row.get("snippet") for row in rows)
    if fields and not snippets:
        head, rule, *lines = render.table(rows, fields, columns) if rows else ["", ""]
        return [styled(context, "strong", head), styled(context, "quiet", rule), *lines] if rows else []
    if snippets or columns < TABLE_FROM:
        lines = [line for row in rows for line in (*_block(context, row, columns), "")]
        return lines[:-1]
    shown: list[Row] = []
    for row in rows:
        when, age = moment(row.get("ts"))
        shown.append({"ts": when, "age": age, "id": row.get("id"), "title": row.get("title")})
    if not shown:
        return []
    head, rule, *lines = render.table(shown, ("ts", "age", "id", "title"), columns)
    return [styled(context, "strong", head), styled(context, "quiet", rule), *lines]


def _block(context: Context, row: Row, columns: int) -> list[str]:
    when, age = moment(row.get("ts"))
    beside = " · ".join(render.cell(row.get(name)) for name in ("project", "agent", "tier") if row.get(name))
    lines = [f"{styled(context, 'id', render.cell(row.get('id')))}  {styled(context, 'quiet', beside)}".rstrip()]
    title = render.cell(row.get("title")) or "(no title)"
    lines.append("    " + styled(context, "strong", render.cut(title, max(20, columns - 4))))
    if when:
        lines.append("    " + styled(context, "quiet", f"{when}  {age}".rstrip()))
    if row.get("snippet"):
        lines.extend("    " + line for line in _wrapped(render.cell(row.get("snippet")), min(columns, WIDEST) - 4))
    return lines


def show_text(context: Context, rows: list[Row]) -> None:
    """Print whole records: laid out on a terminal, through its pager when they are long; plain Markdown in a pipe."""
    if not context.terminal:
        print("\n---\n\n".join(render.markdown(row) for row in rows), end="")
        return
    columns = min(_columns(), WIDEST)
    lines: list[str] = []
    for row in rows:
        if lines:
            lines += ["", styled(context, "quiet", "─" * columns), ""]
        lines += _whole(context, row, columns)
    paged(context, lines)


def _whole(context: Context, row: Row, columns: int) -> list[str]:
    """One record: title, facts, body, steps, what was redacted, further fields."""
    title = render.cell(row.get("title")) or ("" if "title" not in row else "(no title)")
    lines = [styled(context, "strong", line) for line in _wrapped(title, columns)] if title else []
    lines += _facts(context, row, columns)
    body = row.get("body_md")
    if isinstance(body, str) and body.strip():
        lines += ["", *_markdown(context, render.inert_text(body.strip("\n"), lines=True), columns)]
    steps = row.get("next_steps")
    if isinstance(steps, list) and steps:
        lines += ["", styled(context, "strong", "Next steps")]
        for step in steps:
            first, *more = _wrapped(render.cell(step), columns - 4) or [""]
            lines += [f"  ☐ {first}", *(f"    {line}" for line in more)]
    return lines


def _facts(context: Context, row: Row, columns: int) -> list[str]:
    facts: list[tuple[str, str]] = []
    for name in ("id", "project", "ts", "agent", "model", "model_effort", "source", "tier", "tags", "search_terms"):
        value = row.get(name)
        if name == "ts":
            when, age = moment(value)
            facts.append((name, f"{render.cell(value)} ({age})" if age else when))
        else:
            facts.append((name, render.cell(value)))
    redactions = row.get("redactions")
    if isinstance(redactions, list) and redactions:
        facts.append(("redacted", _counted(redactions)))
    apart = {name for name, _ in facts} | {"title", "body_md", "next_steps", "redactions", "schema_version"}
    facts += [(render.one_line(name), render.cell(row[name])) for name in jsontext.ordered(row) if name not in apart]
    facts = [(name, text) for name, text in facts if text]
    wide = min(max((render.width(name) for name, _ in facts), default=0), 20)
    lines = []
    for name, text in facts:
        label = render.pad(render.cut(name, 20), wide)
        first, *more = _wrapped(text, columns - wide - 2) or [""]
        style = "id" if name == "id" else ""
        lines.append(f"{styled(context, 'name', label)}  {styled(context, style, first) if style else first}")
        lines.extend(" " * (wide + 2) + line for line in more)
    return lines


def _counted(redactions: Sequence[JsonValue]) -> str:
    counts: dict[str, int] = {}
    for one in redactions:
        rule = render.cell(one.get("rule") or one.get("type")) if isinstance(one, Mapping) else ""
        counts[rule or "?"] = counts.get(rule or "?", 0) + 1
    return ", ".join(rule if count == 1 else f"{rule} x {count}" for rule, count in sorted(counts.items()))


def _markdown(context: Context, text: str, columns: int) -> list[str]:
    """The lines of a body.

    Parsed here, because rich's own parser takes HTML for HTML and then leaves it out, and puts pictures in the wrong
    place: tags are shown as the letters they are, pictures as the links they are.
    """
    import io

    from markdown_it import MarkdownIt
    from rich.console import Console
    from rich.markdown import Markdown

    page = Markdown("", hyperlinks=False, code_theme="ansi_dark" if context.color else "bw")
    reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    page.parsed = reader.parse(text)
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=columns,
        force_terminal=context.color,
        color_system="standard" if context.color else None,
        highlight=False,
    )
    console.print(page)
    return [line.rstrip() for line in buffer.getvalue().strip("\n").split("\n")]


def _wrapped(text: str, columns: int) -> list[str]:
    """Text in lines of at most so many columns, broken between words where that is possible."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and render.width(longer) > columns:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line] if line else lines


# --- the pager -------------------------------------------------------------------------------------------------------


def paged(context: Context, lines: Iterable[str]) -> None:
    """Print lines, through the pager when there are more of them than the terminal has.

    `QIJU_PAGER`, else `PAGER`, else `less`; empty or `cat` is none.
    """
    kept = list(lines)
    command = _pager(context) if context.terminal and sys.stdin.isatty() else []
    if not command or not _overflows(kept):
        for line in kept:
            print(line)
        return
    import subprocess

    sys.stdout.flush()
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}  # less: end at once when it fits, keep colours and screen
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError as error:
        context.note(f"the pager {command[0]} cannot be started: {error.strerror}")
        for line in kept:
            print(line)
        return
    assert pager.stdin is not None
    try:
        pager.stdin.write("".join(line + "\n" for line in kept).encode("utf-8", "backslashreplace"))
    except BrokenPipeError:
        pass  # the person has seen enough
    _close(pager.stdin)
    while True:
        try:
            pager.wait()
            return
        except KeyboardInterrupt:
            continue  # Ctrl-C is the pager's while it is open


def _close(pipe: object) -> None:
    try:
        pipe.close()  # type: ignore[attr-defined]
    except BrokenPipeError:
        pass


def _pager(context: Context) -> list[str]:
    import shlex
    from shutil import which

    wanted = context.env.get("QIJU_PAGER", context.env.get("PAGER"))
    if wanted is None:
        return ["less"] if which("less") else []
    try:
        words = shlex.split(wanted)
    except ValueError:
        words = [wanted]
    return [] if words in ([], ["cat"]) else words


def _overflows(lines: Sequence[str]) -> bool:
    """Whether the lines need more rows than the terminal has; never where it tells no size that a person could read."""
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    if rows < 3 or columns < _NARROWEST:
        return False
    plain = (re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines)
    return sum(max(1, -(-render.width(line) // columns)) for line in plain) > rows - 1


def _columns() -> int:
    from shutil import get_terminal_size

    return max(_NARROWEST, get_terminal_size((80, 24)).columns)
