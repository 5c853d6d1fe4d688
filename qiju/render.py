"""Records as text: JSON, lines, a table, a summary, open steps, Markdown, plain reading text.

JSON is data and passes untouched (strict, UTF-8, keys in canonical order). Every other layout is for eyes: control
characters, escape sequences and characters that turn the reading direction are shown as escapes, line breaks inside a
one-line field become a visible mark, and widths count as a terminal counts them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from qiju import jsontext
from qiju.jsontext import JsonValue

NARROWEST = 40  # columns; below that a table becomes a plain list
_GAP = "  "
_LONGEST_TIME = 40  # columns


def inert_text(text: str, *, lines: bool = False) -> str:
    """Text that cannot steer a terminal: the unprintable stands as an escape. `lines` keeps line ends and tabs."""
    if text.isascii() and text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        letter if letter in kept or (letter.isprintable() or letter == "\u200d") else _escape(letter) for letter in text
    )


def one_line(text: str) -> str:
    """Text on one line: line ends and tabs become spaces, the rest is inert."""
    return inert_text(" ".join(text.split()) if not text.isprintable() else text)


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter in ("\u2028", "\u2029") or unicodedata.category(letter) in ("Zs", "Zl", "Zp"):
        return " "
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Columns that a terminal gives to the text."""
    if text.isascii():
        return len(text)
    return sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def cut(text: str, columns: int) -> str:
    """At most `columns` columns of the text, cut between characters as read (no half emoji), with `…` when cut."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    cluster: list[str] = []

    def flush() -> bool:
        nonlocal used
        piece = "".join(cluster)
        if used + width(piece) > columns - 1:
            return False
        kept.append(piece)
        used += width(piece)
        cluster.clear()
        return True

    joined = False
    for letter in text:
        if cluster and _letter_width(letter) and not joined and not flush():
            break
        joined = letter == "\u200d"
        cluster.append(letter)
    return "".join(kept) + "…"


def pad(text: str, columns: int) -> str:
    """The text with spaces up to a width."""
    return text + " " * (columns - width(text))


_AGES = (
    ("year", 31_557_600),
    ("month", 2_629_800),
    ("week", 604_800),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)


def ago(instant: int, now: int) -> str:
    """How long before `now` an instant is (both microseconds since 1970), such as `3 hours ago`, `in 2 days`."""
    seconds = abs(now - instant) // 1_000_000
    for name, size in _AGES:
        count = seconds // size
        if count:
            words = f"{count:,} {name}{'s' if count > 1 else ''}"
            return f"{words} ago" if instant <= now else f"in {words}"
    return "just now"


def json_text(value: JsonValue) -> str:
    """Indented JSON."""
    return jsontext.pretty(value)


def cell(value: JsonValue) -> str:
    """A field's value on one line: text as it is, lists joined, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return one_line("; ".join(str(item) for item in value))
    return one_line(jsontext.line(value))


def table(rows: Sequence[dict[str, JsonValue]], columns: Sequence[str], total: int) -> list[str]:
    """Lines of a table `total` columns wide: ids are never shortened, the last text column is cut to fit.

    Where the terminal is too narrow for one, each row is a block of `name: value` lines.
    """
    cells = [[cell(row.get(name)) for name in columns] for row in rows]
    widths = [max([width(name), *(width(line[place]) for line in cells)]) for place, name in enumerate(columns)]
    # A time as Qiju writes it is never cut; a row by hand may hold anything in its place.
    widths = [min(size, _LONGEST_TIME) if name == "ts" else size for name, size in zip(columns, widths, strict=True)]
    over = sum(widths) + len(_GAP) * (len(columns) - 1) - total
    for place in sorted(range(len(columns)), key=lambda place: -widths[place]):
        if over <= 0:
            break
        if columns[place] in ("id", "seq", "ts"):
            continue
        smaller = max(8, widths[place] - over)
        over -= widths[place] - min(smaller, widths[place])
        widths[place] = min(smaller, widths[place])
    if over > 0 and total < NARROWEST:
        return [line for row in cells for line in (*(f"{n}: {v}" for n, v in zip(columns, row, strict=True)), "")]
    lines = [_row(list(columns), widths), _row(["-" * size for size in widths], widths)]
    lines.extend(_row([cut(text, size) for text, size in zip(row, widths, strict=True)], widths) for row in cells)
    return lines


def _row(cells: list[str], widths: list[int]) -> str:
    return _GAP.join(pad(text, size) for text, size in zip(cells, widths, strict=True)).rstrip()


def summary(row: dict[str, JsonValue]) -> str:
    """`ts project id title` on one line."""
    return " ".join(cell(row.get(name)) for name in ("ts", "project", "id", "title"))


def actions(rows: Iterable[dict[str, JsonValue]]) -> list[str]:
    """The open steps of records as an unticked checklist; equal steps once, from the first record that has them."""
    seen: set[str] = set()
    lines = []
    for row in rows:
        steps = row.get("next_steps")
        for step in steps if isinstance(steps, list) else []:
            text = " ".join(str(step).split())
            key = text.casefold()
            if text and key not in seen:
                seen.add(key)
                day = str(row.get("ts") or "")[:10]
                lines.append(f'- [ ] {inert_text(text)}  (from: {one_line(day)} "{cell(row.get("title"))}")')
    return lines


def markdown(row: dict[str, JsonValue]) -> str:
    """One record as a Markdown document: title, facts, body, open steps."""
    facts = []
    for name in ("id", "project", "ts", "agent", "source", "model", "model_effort", "tier"):
        if row.get(name):
            facts.append(f"- {name}: {cell(row[name])}")
    for name in ("tags", "search_terms"):
        if row.get(name):
            facts.append(f"- {name}: {cell(row[name])}")
    known = {"id", "project", "ts", "agent", "source", "model", "model_effort", "tier", "tags", "search_terms"}
    known |= {"title", "body_md", "next_steps", "redactions", "schema_version"}
    facts.extend(f"- {one_line(name)}: {cell(row[name])}" for name in jsontext.ordered(row) if name not in known)
    parts = [f"# {cell(row.get('title')) or '(no title)'}", "\n".join(facts)]
    body = row.get("body_md")
    if isinstance(body, str) and body.strip():
        parts.append(inert_text(body.rstrip("\n"), lines=True))
    steps = row.get("next_steps")
    if isinstance(steps, list) and steps:
        parts.append("## Next steps\n\n" + "\n".join(f"- [ ] {cell(step)}" for step in steps))
    return "\n\n".join(part for part in parts if part) + "\n"


def project_fields(row: dict[str, JsonValue], fields: Sequence[str]) -> dict[str, JsonValue]:
    """Only these fields; one that the record lacks is null."""
    return {name: row.get(name) for name in fields}
