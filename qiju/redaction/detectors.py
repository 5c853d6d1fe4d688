"""Structures that no single pattern describes: private-key blocks in every wrapping, and tables of secrets.

A private key is walked row by row: rows may carry a log prefix, a diff's plus sign, quotes and a concatenation, and
the end may be missing; a header alone, as in a text about keys, is left. A column or a field list whose heading
promises a secret gives its meaning to the cells below.
"""

from __future__ import annotations

import re

from . import looks, names
from .lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .engine import Finding

_BEGIN = lazily(r"-{4,5} ?BEGIN (?:[A-Z0-9 ]{0,24})PRIVATE (?:KEY|KEY BLOCK)(?: BLOCK)? ?-{4,5}")
_END = lazily(r"-{4,5} ?END (?:[A-Z0-9 ]{0,24})PRIVATE (?:KEY|KEY BLOCK)(?: BLOCK)? ?-{0,5}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,20000}={0,3}")
_HEADER_ROW = lazily(r"[^\n:]{0,48}?\b(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID|Key-Type)\s?:")
_ONE_LINE = lazily(r"(?:[ \t]{0,3}[A-Za-z0-9+/=]{16,80}){1,200}")
_ROWS = 800


def find(twin: str, low: str) -> list[Finding]:
    out: list[Finding] = []
    if "private key" in low and "---" in low:
        out.extend(_private_keys(twin))
    if "|" in twin and ("|--" in twin or "|:-" in twin or "| --" in twin or "| :-" in twin):
        out.extend(_markdown_tables(twin))
    if "," in twin and "\n" in twin:
        out.extend(_separated_values(twin))
    return out


_WRAP = " \t\r\"'`\\+,;|).<>*"
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _row_data(line: str, offset: int, expect_long: bool) -> tuple[int, int] | None:
    """The base64 run of a row: the last run of the line, with nothing but wrapping behind it."""
    body = line.rstrip(_WRAP)
    unpadded = body.rstrip("=")
    start = len(unpadded.rstrip(_ALPHABET))
    # A plus sign in front is a diff's or a concatenation's, not data.
    while start < len(unpadded) and unpadded[start] == "+" and start <= len(line) - len(line.lstrip(_WRAP)):
        start += 1
    if len(unpadded) - start < (40 if expect_long else 2):
        return None
    before = line[start - 1 : start]
    if before and before not in " \t\"'`+->|:#,*(=" and before.isascii():
        return None
    return offset + start, offset + len(body)


def _private_keys(twin: str) -> list[Finding]:
    from .engine import Finding

    out: list[Finding] = []
    at = 0
    tails = [match.span() for match in _END.finditer(twin)]
    while True:
        head = _BEGIN.search(twin, at)
        if head is None:
            break
        end = _walk(twin, head.end(), tails)
        if end > head.end():
            out.append(Finding("private-key", "private_key", head.start(), end, "high"))
        at = max(end, head.end())
    # Rows whose beginning was cut off: walk up from an END line that no block above has claimed.
    ends = {one.end for one in out}
    for begin, stop in tails:
        if stop in ends:
            continue
        start = _walk_up(twin, begin)
        if start < begin:
            out.append(Finding("private-key", "private_key", start, stop, "high"))
    return out


def _tail_in(tails: list[tuple[int, int]], at: int, stop: int) -> tuple[int, int] | None:
    """The first END line that lies in `[at, stop)`."""
    from bisect import bisect_left

    index = bisect_left(tails, (at, 0))
    return tails[index] if index < len(tails) and tails[index][0] < stop else None


def _walk(twin: str, at: int, tails: list[tuple[int, int]]) -> int:
    """Where the private key that begins behind the header at `at` ends; `at` itself when no row follows."""
    end = at
    rows = 0
    size = len(twin)
    width = 0
    while at < size and rows < _ROWS:
        stop = twin.find("\n", at, at + 24000)
        if stop < 0:
            stop = min(size, at + 24000)
        tail = _tail_in(tails, at, stop)
        if tail is not None:
            between = _BASE64.search(twin, at, tail[0])
            if rows or (between and between.end() - between.start() >= 16):
                return tail[1]
            return end
        line = twin[at:stop]
        bare = line.strip(" \t\r\"'`\\+,;|)#>*-")
        data = _row_data(line, at, rows == 0 and len(bare) > 44)
        if data is not None:
            length = data[1] - data[0]
            short = length < 16 or (rows and width and length < width - 2)
            if length < 16 and twin[data[1] - 1] != "=" and not _tail_in(tails, stop, stop + 120):
                return end
            if rows == 0 and length < 24 and not _tail_in(tails, stop, stop + 120):
                return end
            end = data[1]
            rows += 1
            width = max(width, length)
            if short and not _tail_in(tails, stop, stop + 120) and not _continues(twin, stop):
                return end
        elif bare and not _HEADER_ROW.match(line) and not (rows == 0 and bare.isdigit()):
            if rows == 0:
                # The whole key on the header's line, parted by blanks.
                run = _ONE_LINE.match(twin, at)
                if run is not None and run.end() - run.start() >= 40:
                    return run.end()
            return end
        at = stop + 1
    return end


def _continues(twin: str, at: int) -> bool:
    """Whether another full row follows, as after a PGP header or in a block of uneven rows."""
    stop = twin.find("\n", at + 1, at + 400)
    line = twin[at + 1 : stop if stop > 0 else at + 400]
    run = _BASE64.search(line)
    return run is not None and run.end() - run.start() >= 40


def _walk_up(twin: str, at: int) -> int:
    start = at
    rows = 0
    stop = twin.rfind("\n", 0, at)
    while stop > 0 and rows < _ROWS:
        begin = twin.rfind("\n", max(0, stop - 24000), stop) + 1
        data = _row_data(twin[begin:stop], begin, rows > 0)
        if data is None:
            break
        start = data[0]
        rows += 1
        stop = begin - 1
    return start


# --- tables ----------------------------------------------------------------------------------------------------------

_RULE_LINE = lazily(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*\Z")


def _cells(line: str, offset: int) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    begin = 0
    for part in line.split("|"):
        inner = part.strip(" \t\r`*")
        start = begin + (part.index(inner) if inner else 0)
        out.append((offset + start, offset + start + len(inner)))
        begin += len(part) + 1
    return out


def _markdown_tables(twin: str) -> list[Finding]:
    out: list[Finding] = []
    lines = twin.split("\n")
    offset = 0
    heads: dict[int, int] = {}
    first: tuple[int, str] | None = None
    for number, line in enumerate(lines):
        if "|" not in line:
            heads = {}
        elif _RULE_LINE.match(line[:400]) and number:
            previous = lines[number - 1]
            heads = {}
            for column, (start, end) in enumerate(_cells(previous[:2000], 0)):
                strong = names.strength(previous[start:end])
                if strong:
                    heads[column] = strong
            first = None
        elif heads:
            for column, (start, end) in enumerate(_cells(line[:4000], offset)):
                if column in heads:
                    _cell(twin, start, end, heads[column], out)
        offset += len(line) + 1
    del first
    return out


def _separated_values(twin: str) -> list[Finding]:
    """Comma-separated lines under a heading of names."""
    out: list[Finding] = []
    heads: dict[int, int] = {}
    width = 0
    offset = 0
    for line in twin.split("\n"):
        if "," not in line or len(line) > 4000:
            heads = {}
        else:
            fields = line.split(",")
            if heads and len(fields) == width:
                begin = offset
                for column, field in enumerate(fields):
                    if column in heads:
                        inner = field.strip(" \t\r\"'")
                        start = begin + (field.index(inner) if inner else 0)
                        _cell(twin, start, start + len(inner), heads[column], out)
                    begin += len(field) + 1
            else:
                heads = {}
                width = len(fields)
                if all(0 < len(f) < 40 and not any(c in f for c in "=(){}<>:;") for f in fields):
                    for column, field in enumerate(fields):
                        strong = names.strength(field.strip(" \t\r\"'"))
                        if strong:
                            heads[column] = strong
        offset += len(line) + 1
    return out


def _cell(twin: str, start: int, end: int, strong: int, out: list[Finding]) -> None:
    from .engine import Finding

    value = twin[start:end]
    if not value or " " in value or looks.placeholder(value):
        return
    accepted = looks.password(value, False) if strong == names.PASSWORD else looks.random(value, 12)
    if strong == names.PASSWORD and value.isalpha():
        accepted = False
    if accepted:
        kind = "password" if strong == names.PASSWORD else "secret"
        out.append(Finding("table-column", kind, start, end, "medium"))
