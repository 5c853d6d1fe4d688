"""`qiju stats`: what the store holds, in numbers; bars on a terminal, columns in a pipe, `--json` for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from qiju import render
from qiju.cli.context import Context
from qiju.cli.options import Command, Option
from qiju.errors import NotFound, UsageError
from qiju.reading import paged, styled

_BAR = 30  # columns of the longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_MOST_WEEKS = 520


def run(context: Context, *, project: str | None, weeks: int, top: int, json: bool) -> int:
    """Print the numbers."""
    from qiju import stats

    if not 1 <= weeks <= _MOST_WEEKS:
        raise UsageError(f"--weeks must be 1 to {_MOST_WEEKS}, not {weeks}")
    if top < 1:
        raise UsageError(f"--top must be at least 1, not {top}")
    with context.open_for_reading() as store:
        slug = None
        if project is not None:
            slug = context.project(project, reading=True).slug
            if store.db.value("SELECT 1 FROM project WHERE slug = ?", (slug,)) is None:
                raise NotFound(f"there is no project {slug!r}", hint="'qiju projects' lists them")
        found: Any = stats.collect(store, slug, weeks=weeks)
    if json:
        print(render.json_text(found))
    else:
        paged(context, _lines(context, found, top))
    return 0


def _lines(context: Context, found: Any, top: int) -> list[str]:
    sizes = found["sizes"]
    what = (
        f"project {render.one_line(found['project'])}"
        if found["project"]
        else _count(len(found["projects"]), "project")
    )
    head = f"{_count(found['records'], 'record')}, {what}, {_count(found['sessions'], 'session')}"
    span = f", {found['first'][:10]} to {found['last'][:10]}" if found["first"] and found["last"] else ""
    lines = [styled(context, "strong", head + span)]
    steps = found["open_steps"]
    lines.append(f"{_count(steps['steps'], 'open step')} in {_count(steps['records'], 'record')}")
    disk = [(size_text(sizes["content_bytes"]), "of text"), (size_text(sizes["database_bytes"]), "database")]
    disk += [
        (size_text(sizes[f"{name}_bytes"]), name) for name in ("wal", "archive", "backup") if sizes[f"{name}_bytes"]
    ]
    lines.append(", ".join(f"{size} {name}" for size, name in disk))
    charts = (
        ("Records per project", "project", "records", found["projects"], not found["project"]),
        ("Records per agent", "agent", "records", found["agents"], True),
        ("Records per tier", "tier", "records", found["tiers"], True),
        ("Records per week", "week", "records", found["weeks"], bool(found["records"])),
        ("Records per tag", "tag", "records", found["tags"], True),
        ("Redactions by rule", "rule", "findings", found["redactions"], True),
    )
    for title, label, value, rows, wanted in charts:
        pairs = _merged((render.cell(str(row[label])), int(row[value])) for row in rows)
        if pairs and wanted:
            shown = pairs if label == "week" else pairs[:top]
            lines += ["", styled(context, "strong", title), *chart(context, shown)]
            if len(shown) < len(pairs):
                lines.append(styled(context, "quiet", f"  and {len(pairs) - len(shown):,} more (--top, --json)"))
    return lines


def _merged(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Numbers of one label added up: a rule is counted once, whatever way its findings came in."""
    totals: dict[str, int] = {}
    for label, number in pairs:
        totals[label] = totals.get(label, 0) + number
    return list(totals.items())


def chart(context: Context, pairs: Sequence[tuple[str, int]]) -> list[str]:
    """A line a pair: label, number, and on a terminal a bar in proportion to the largest."""
    from shutil import get_terminal_size

    columns = get_terminal_size((80, 24)).columns
    wide = min(max(render.width(label) for label, _ in pairs), max(12, columns // 3) if context.terminal else 60)
    digits = max(len(f"{number:,}") for _, number in pairs)
    room = min(_BAR, columns - wide - digits - 6) if context.terminal else 0
    largest = max(number for _, number in pairs)
    lines = []
    for label, number in pairs:
        text = f"  {render.pad(render.cut(label, wide), wide)}  {number:>{digits},}"
        lines.append(f"{text}  {styled(context, 'name', bar(number, largest, room))}".rstrip() if room > 0 else text)
    return lines


def bar(number: int, largest: int, room: int) -> str:
    """A bar of at most `room` columns; what is not nothing is never shown as nothing."""
    eighths = -(-number * room * 8 // largest) if largest else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def size_text(size: int) -> str:
    """Bytes in words: `812 B`, `3.4 MiB`."""
    amount, unit = float(size), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


COMMAND = Command(
    "stats",
    "Count what the store holds: records per project, agent, week and tag, open steps, sizes, redactions.",
    (
        Option("project", ("--project",), "Only this project; all of them without it.", complete="project"),
        Option("weeks", ("--weeks",), "The last so many weeks.", int, 12, metavar="N"),
        Option("top", ("--top",), "At most so many bars a chart; --json has all.", int, 10, metavar="N"),
        Option("json", ("--json",), "As one JSON object.", bool, False),
    ),
    run,
)
