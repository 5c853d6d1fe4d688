"""What a store holds, in numbers: records per project, agent, week and tag, open steps, sizes, redactions by rule.

`collect` gives one JSON object, all of it from one snapshot; nothing of a record's text is in it but tags and names.
Weeks begin on Monday, UTC, by the record's instant.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw

from qiju.jsontext import JsonValue
from qiju.store import Store, database_path

WEEK = 7 * 86_400 * 1_000_000  # microseconds
_FIRST_MONDAY = 4 * 86_400 * 1_000_000  # 1970-01-05

_SIZE = "octet_length(title) + octet_length(body_md) + octet_length(tags) + octet_length(search_terms)"
_SIZE += " + octet_length(next_steps) + octet_length(redactions) + octet_length(extra)"
_HERE = "(:project IS NULL OR project = :project)"
_STEPS = f"SELECT count(*) FROM record AS r, json_each(r.next_steps) WHERE {_HERE}"

_TOTALS = f"""
SELECT count(*), count(DISTINCT session_id), total(next_steps <> '[]'), total({_SIZE}), min(instant), max(instant)
FROM record WHERE {_HERE}
"""
_PROJECTS = f"""
SELECT project.slug, count(seq), coalesce(sum(next_steps <> '[]'), 0), coalesce(sum({_SIZE}), 0),
    min(instant), max(instant)
FROM project LEFT JOIN record ON record.project = project.slug
WHERE :project IS NULL OR project.slug = :project GROUP BY project.slug ORDER BY 2 DESC, 1
"""
_COUNTS = {
    "agents": f"SELECT agent, count(*) FROM record WHERE {_HERE} GROUP BY 1 ORDER BY 2 DESC, 1",
    "sources": f"SELECT source, count(*) FROM record WHERE {_HERE} GROUP BY 1 ORDER BY 2 DESC, 1",
    "tiers": f"SELECT tier, count(*) FROM record WHERE {_HERE} GROUP BY 1 ORDER BY 2 DESC, 1",
    # As JSON text: a row by hand may hold half a character as an escape, which SQLite would undo into no text at all.
    "tags": "SELECT CASE WHEN instr(record.tags, '\\u') THEN record.tags -> item.fullkey"
    " ELSE json_quote(item.value) END, count(DISTINCT seq) FROM record, json_each(record.tags) AS item"
    f" WHERE item.type = 'text' AND {_HERE} GROUP BY 1 ORDER BY 2 DESC, 1",
}
_WEEKS = f"""
SELECT (instant - :monday) / :week, count(*) FROM record
WHERE instant >= :start AND instant < :end AND {_HERE} GROUP BY 1
"""
_REDACTIONS = f"""
SELECT rule, kind, action, count(*), count(DISTINCT record_seq) FROM redaction_audit
WHERE rule <> '' AND (:project IS NULL OR record_seq IN (SELECT seq FROM record WHERE {_HERE}))
GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3
"""


def collect(
    store: Store, project: str | None = None, *, weeks: int = 12, now: int | None = None
) -> dict[str, JsonValue]:
    """The numbers, of one project or of all; `weeks` are the last ones, the current one included.

    `now` is microseconds since 1970 (the clock's, when not given). A week without records is there with 0.
    """
    at = time.time_ns() // 1000 if now is None else now
    with store.db.read() as connection:
        here = {"project": project}
        records, sessions, with_steps, size, first, last = _row(connection, _TOTALS, here)
        found: dict[str, JsonValue] = {
            "project": project,
            "records": records,
            "sessions": sessions,
            "first": _iso(first),
            "last": _iso(last),
            "open_steps": {"steps": _row(connection, _STEPS, here)[0], "records": int(with_steps)},
            "projects": [
                {
                    "project": slug,
                    "records": count,
                    "records_with_open_steps": steps,
                    "content_bytes": content,
                    "first": _iso(begin),
                    "last": _iso(end),
                }
                for slug, count, steps, content, begin, end in connection.execute(_PROJECTS, here)
            ],
        }
        for name, sql in _COUNTS.items():
            plain = _tag if name == "tags" else str
            found[name] = [
                {name[:-1]: plain(value), "records": count} for value, count in connection.execute(sql, here)
            ]
        found["weeks"] = _weeks(connection, project, weeks, at)
        found["redactions"] = [
            {"rule": rule, "kind": kind, "action": action, "findings": findings, "records": touched}
            for rule, kind, action, findings, touched in connection.execute(_REDACTIONS, here)
        ]
    found["sizes"] = {"content_bytes": int(size), **_files(store.home)}
    return found


def _tag(quoted: str) -> str:
    """A tag from its JSON; half a character in it stands as its escape."""
    return str(json.loads(quoted)).encode("utf-8", "backslashreplace").decode("utf-8")


def _weeks(connection: apsw.Connection, project: str | None, weeks: int, at: int) -> list[JsonValue]:
    current = (at - _FIRST_MONDAY) // WEEK
    start = _FIRST_MONDAY + (current - weeks + 1) * WEEK
    bindings = {"project": project, "monday": _FIRST_MONDAY, "week": WEEK, "start": start, "end": start + weeks * WEEK}
    counts: dict[int, int] = dict(connection.execute(_WEEKS, bindings))
    listed: list[JsonValue] = []
    for number in range(current - weeks + 1, current + 1):
        monday = datetime(1970, 1, 5, tzinfo=UTC) + timedelta(weeks=number)
        year, week, _day = monday.isocalendar()
        listed.append(
            {"week": f"{year}-W{week:02}", "begins": monday.date().isoformat(), "records": counts.get(number, 0)}
        )
    return listed


def _files(home: Path) -> dict[str, JsonValue]:
    """Bytes on disk: the database, what is still in its WAL, the Parquet archive, backups."""
    database = database_path(home)
    return {
        "database_bytes": _bytes([database]),
        "wal_bytes": _bytes([database.with_name(database.name + "-wal")]),
        "archive_bytes": _bytes((home / "archive").rglob("*.parquet")),
        "backup_bytes": _bytes((home / "backups").rglob("*")),
    }


def _bytes(paths: Any) -> int:
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # another process has just removed it
    return total


def _row(connection: apsw.Connection, sql: str, bindings: dict[str, str | None]) -> tuple[Any, ...]:
    row = connection.execute(sql, bindings).fetchone()
    assert row is not None
    return tuple(row)


def _iso(instant: int | None) -> str | None:
    """An instant as ISO 8601 in UTC; None for none, or for one that lies beyond the calendar."""
    if instant is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
    except OverflowError:
        return None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
