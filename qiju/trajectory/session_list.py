"""Sessions, the one that was written to last first, a page at a time: what a client shows before a session is chosen.

A snapshot's watermark fixes which events count, so that a session that goes on meanwhile neither moves nor grows
between two pages. A page walks the events of the sessions it lists, not those of the whole store.
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


# A session stands where its last event within the snapshot stands.
_PAGE = """
SELECT e.session_id, e.seq, e.ts FROM trajectory_event AS e
WHERE e.seq < :before AND e.seq <= :upto AND NOT EXISTS (
    SELECT 1 FROM trajectory_event AS later
    WHERE later.session_id = e.session_id AND later.seq > e.seq AND later.seq <= :upto)
ORDER BY e.seq DESC LIMIT :count
"""
_COUNTS = """
SELECT count(*), count(record_seq), min(seq), max(record_seq) FROM trajectory_event
WHERE session_id = ? AND seq <= ?
"""


def latest_sessions(db: Database, upto: int, before: int | None, count: int) -> list[ListedSession]:
    """At most `count` sessions whose last event within the snapshot `upto` lies before the sequence `before`.

    Called inside a read transaction.
    """
    bounds = {"upto": upto, "before": upto + 1 if before is None else before, "count": count}
    heads: list[Any] = db.connection.execute(_PAGE, bounds).fetchall()
    found = []
    for session_id, last, ts in heads:
        counts: Any = db.connection.execute(_COUNTS, (session_id, upto)).fetchone()
        events, records, first, record = counts
        told: Any = db.connection.execute("SELECT project, agent, title, ts FROM record WHERE seq = ?", (record,))
        project, agent, title, record_ts = told.fetchone() or ("", "", "", "")
        found.append(ListedSession(session_id, project, agent, title, ts or record_ts, events, records, first, last))
    return found
