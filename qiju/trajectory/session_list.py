"""Sessions, the one that was written to last first, a page at a time: what a client shows before a session is chosen.

A snapshot's watermark fixes which events count, so that a session that goes on meanwhile neither moves nor grows
between two pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from qiju.db import Database


class ListedSession(NamedTuple):
    """One session within a snapshot: `events` counts everything, `records` the Qiju records among them. Project, agent
    and title are those of its last record, '' where it has none; `first` and `last` are sequences."""

    session_id: str
    project: str
    agent: str
    title: str
    ts: str
    events: int
    records: int
    first: int
    last: int


WALK = 20_000  # events looked at from the page's place on, before the sessions are asked one by one
_EVENTS = "SELECT session_id, seq FROM trajectory_event WHERE seq < ? ORDER BY seq DESC LIMIT ?"
_LATER = "SELECT 1 FROM trajectory_event WHERE session_id = ? AND seq >= ? AND seq <= ? LIMIT 1"
# From one session id to the next in the index, however many events lie between them.
_ALL = """
WITH RECURSIVE session (id) AS (
    SELECT min(session_id) FROM trajectory_event
    UNION ALL
    SELECT (SELECT min(session_id) FROM trajectory_event WHERE session_id > session.id) FROM session
    WHERE session.id IS NOT NULL)
SELECT id, (SELECT max(seq) FROM trajectory_event WHERE session_id = id AND seq <= :upto) AS last FROM session
WHERE last < :before ORDER BY last DESC LIMIT :count
"""
_COUNTS = """
SELECT count(*), count(record_seq), min(seq), max(record_seq) FROM trajectory_event
WHERE session_id = ? AND seq <= ?
"""


def latest_sessions(
    db: Database, upto: int, before: int | None, count: int, *, walk: int = WALK
) -> list[ListedSession]:
    """At most `count` sessions whose last event within the snapshot `upto` lies before the sequence `before`.

    Called inside a read transaction. The newest events are walked, which is cheap for short sessions; where a long one
    lies in the way, every session is asked for its last event instead. `walk` bounds the first, in events.
    """
    end = upto + 1 if before is None else before
    heads = _walked(db, upto, end, count, walk)
    if heads is None:
        bounds = {"upto": upto, "before": end, "count": count}
        heads = [(str(one), int(last)) for one, last in _rows(db, _ALL, bounds)]
    return [_listed(db, session_id, last, upto) for session_id, last in heads]


def _walked(db: Database, upto: int, end: int, count: int, walk: int) -> list[tuple[str, int]] | None:
    """Session ids with their last sequences, or None when `walk` events were not enough to tell."""
    heads: list[tuple[str, int]] = []
    seen: set[str] = set()
    looked = 0
    for session_id, seq in _rows(db, _EVENTS, (end, walk)):
        looked += 1
        if session_id in seen:
            continue
        seen.add(session_id)
        if end > upto or not _rows(db, _LATER, (session_id, end, upto)):
            heads.append((session_id, seq))
            if len(heads) == count:
                return heads
    return heads if looked < walk else None


def _listed(db: Database, session_id: str, last: int, upto: int) -> ListedSession:
    ((events, records, first, record),) = _rows(db, _COUNTS, (session_id, upto))
    ((ts,),) = _rows(db, "SELECT ts FROM trajectory_event WHERE seq = ?", (last,))
    told = _rows(db, "SELECT project, agent, title, ts FROM record WHERE seq = ?", (record,))
    project, agent, title, record_ts = told[0] if told else ("", "", "", "")
    return ListedSession(session_id, project, agent, title, ts or record_ts, events, records, first, last)


def _rows(db: Database, sql: str, bound: Any) -> list[Any]:
    return list(db.connection.execute(sql, bound))
