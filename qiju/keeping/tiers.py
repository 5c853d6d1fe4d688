"""Which records belong to which tier, and moving them there in short steps.

A tier is a label: a move changes neither content nor id nor sequence, and search sees all tiers alike. So moving can be
cut into small transactions that make writers wait little, and an interruption between two of them is no damage: the
next run plans from what is there. Only keys are held in memory (eight bytes a record), never texts.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qiju.record import parse_ts

if TYPE_CHECKING:
    from qiju.db import Database
    from qiju.place.config import MaintainConfig

DAY = 86_400_000_000  # microseconds
MIB = 1024 * 1024
STEP = 500  # records a transaction; some milliseconds, far below what a writer waits
PAUSE = 0.005  # seconds between two transactions, for a writer that polls the lock to get it

# Bytes of a record's text as the index of a month's weight; octet_length reads no overflow pages.
_SIZE = " + ".join(
    f"octet_length({column})"
    for column in ("title", "body_md", "tags", "search_terms", "next_steps", "redactions", "extra", "id", "ts")
)
_MONTH = "strftime('%Y-%m', instant / 1000000, 'unixepoch')"


class Month(NamedTuple):
    """A month of a project's long tier: how many records, bytes of text, and the latest instant (microseconds)."""

    project: str
    month: str
    rows: int
    size: int
    latest: int


def _of_project(project: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if project is None else (" AND project = ?", (project,))


def counts(db: Database, project: str | None) -> dict[str, int]:
    """Records per tier."""
    clause, bound = _of_project(project)
    found = {"short": 0, "long": 0, "archive": 0}
    with db.read() as connection:
        sql = f"SELECT tier, count(*) FROM record WHERE 1{clause} GROUP BY tier"
        found.update((str(tier), int(number)) for tier, number in connection.execute(sql, bound))
    return found


def due_for_long(db: Database, before: int, project: str | None) -> Sequence[int]:
    """`seq` of the short records whose instant lies before `before` (microseconds). One whose time is none stays."""
    clause, bound = _of_project(project)
    due = array("q")
    with db.read() as connection:
        sql = f"SELECT seq, ts FROM record WHERE tier = 'short' AND instant < ?{clause} ORDER BY seq"
        for seq, ts in connection.execute(sql, (before, *bound)):
            if parse_ts(ts) is not None:
                due.append(seq)
    return due


def move(db: Database, seqs: Sequence[int], source: str, target: str, step: Callable[[int], object]) -> int:
    """Relabel records that still are in `source`, `STEP` of them a transaction; returns how many moved."""
    moved = 0
    for begin in range(0, len(seqs), STEP):
        if begin:
            time.sleep(PAUSE)
        part = seqs[begin : begin + STEP]
        with db.write() as connection:
            for seq in part:
                connection.execute("UPDATE record SET tier = ? WHERE seq = ? AND tier = ?", (target, seq, source))
                moved += connection.changes()
        step(len(part))
    return moved


def months_of_long(db: Database, project: str | None, *, with_short_before: int | None = None) -> list[Month]:
    """The months of the long tier, by project and month. Rows without a digest (written by hand) are not counted.

    `with_short_before` (microseconds) counts the short records before that instant as if they had moved already.
    """
    clause, bound = _of_project(project)
    tier = "tier = 'long'" if with_short_before is None else "(tier = 'long' OR (tier = 'short' AND instant < ?))"
    values = bound if with_short_before is None else (with_short_before, *bound)
    with db.read() as connection:
        sql = (
            f"SELECT project, {_MONTH} AS month, count(*), sum({_SIZE}), max(instant) FROM record "
            f"WHERE {tier} AND digest <> ''{clause} GROUP BY project, month ORDER BY project, month"
        )
        return [Month(*row) for row in connection.execute(sql, values) if row[1] is not None]


def due_for_archive(months: Iterable[Month], now: int, limits: MaintainConfig) -> list[Month]:
    """The months that go to the archive now (`now` in microseconds): old and large, very old, or under pressure."""
    due: list[Month] = []
    by_project: dict[str, list[Month]] = {}
    for month in months:
        by_project.setdefault(month.project, []).append(month)
    for group in by_project.values():
        total = sum(month.size for month in group)
        for month in sorted(group, key=lambda m: m.month):
            age = (now - month.latest) / DAY
            large_enough = age > limits.archive_days and month.size > limits.archive_mib * MIB
            pressed = age > limits.archive_pressure_days and total > limits.archive_pressure_mib * MIB
            if large_enough or pressed or age > limits.archive_always_days:
                due.append(month)
                total -= month.size
    return sorted(due)


def month_bounds(month: str) -> tuple[int, int]:
    """First instant of a month and of the next one, in microseconds."""
    year, number = int(month[:4]), int(month[5:])
    after = f"{year + number // 12:04d}-{number % 12 + 1:02d}"
    return _instant(month), _instant(after) if year + number // 12 < 10000 else 253_402_300_800_000_000


def _instant(month: str) -> int:
    parsed = parse_ts(f"{month}-01T00:00:00Z")
    if parsed is None:
        raise ValueError(f"not a month: {month}")
    return parsed


def archived_months(db: Database, project: str | None) -> Iterator[tuple[str, str]]:
    """Project and month of every partition that the archive tier asks for."""
    clause, bound = _of_project(project)
    with db.read() as connection:
        sql = f"SELECT DISTINCT project, {_MONTH} AS month FROM record WHERE tier = 'archive'{clause} ORDER BY 1, 2"
        found = connection.execute(sql, bound).fetchall()
    yield from ((str(name), str(month)) for name, month in found if month is not None)
