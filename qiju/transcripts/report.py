"""What reading a transcript found: what was kept, what was odd and where, and what was left out and why.

The report counts and points (file name and line); it never quotes the transcript, so it may be shown anywhere. Its size
is bounded: a few places per oddity, and names of unknown types beyond a limit are counted together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qiju.trajectory.types import LossReport, LossTally

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.types import RecordKind

PLACES = 5
NAMES = 200
POLICY = "qiju.loss/transcript-import"

# Every oddity that a reader reports, with the sentence a person reads. Kept as facts unless the sentence says
# otherwise.
ANOMALIES = {
    "torn_line": "torn lines, kept as events with their text",
    "not_utf8": "lines that are not UTF-8, kept as events with the odd bytes escaped",
    "oversized_line": "lines above the size limit, kept as events with their length only",
    "not_an_object": "lines that hold no JSON object, kept as events",
    "malformed_message": "lines of a known type in an unknown shape, kept as events",
    "untyped_item": "response items without a type, read as the messages they look like",
    "malformed_block": "content blocks in an unknown shape, kept as events",
    "unknown_type": "entries of an unknown type, kept as events",
    "lone_surrogate": "lines with half of a surrogate pair, read as U+FFFD",
    "duplicate_line": "lines that repeat an earlier line exactly, stored once",
    "repeated_id": "lines that reuse an earlier line's id with other content, all kept",
    "other_content": "facts whose id the store holds with other content, kept beside it",
    "broken_parent": "lines whose parent is not in the file",
    "unanswered_call": "calls without a result",
    "orphan_result": "results without a call",
    "duplicate_result": "further results for a call that had one, all kept",
    "repeated_call_id": "calls that reuse an earlier call's id, all kept",
    "missing_call_id": "calls or results without any id",
    "call_with_two_ids": "calls known by two ids, paired by either",
    "parallel_batch": "batches of parallel calls",
    "usage_revised": "messages whose later lines state another usage, counted once with the last one",
    "usage_repeated": "repeats of a message's usage, counted once",
    "duplicate_event": "host events that repeat a response item, not stored again",
    "session_from_file_name": "files that name no session: the file's name is used",
    "several_sessions": "files with lines of more than one session, each stored under its own",
}


class ImportReport:
    """Filled by a reader while its drafts are consumed; complete when the iterator is exhausted.

    `files`, `lines` and `drafts` count what was read; `kinds` counts drafts per record kind; `anomalies` maps a name of
    `ANOMALIES` to `(count, places)` with at most five `file:line` places; `unknown` counts unknown types by name;
    `usage` sums tokens, each message counted once; `notes` are sentences about files, not about their text.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.files = 0
        self.lines = 0
        self.drafts = 0
        self.sessions: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.anomalies: dict[str, tuple[int, list[str]]] = {}
        self.unknown: dict[str, int] = {}
        self.usage: dict[str, int] = {}
        self.notes: list[str] = []
        self._loss = LossTally(POLICY)

    def anomaly(self, name: str, place: str, count: int = 1) -> None:
        """Count an oddity; `name` must be one of `ANOMALIES`."""
        if name not in ANOMALIES:
            raise KeyError(name)
        before, places = self.anomalies.get(name, (0, []))
        if len(places) < PLACES and place not in places:
            places.append(place)
        self.anomalies[name] = (before + count, places)

    def unknown_type(self, name: str, place: str) -> None:
        key = name[:80] if name in self.unknown or len(self.unknown) < NAMES else "*"
        self.unknown[key] = self.unknown.get(key, 0) + 1
        self.anomaly("unknown_type", place)

    def left_out(self, field: str, reason: str) -> None:
        self._loss.add(field, reason)

    def drafted(self, kind: RecordKind, session_id: str) -> None:
        self.drafts += 1
        self.kinds[kind.value] = self.kinds.get(kind.value, 0) + 1
        if session_id in self.sessions or len(self.sessions) < NAMES:
            self.sessions[session_id] = self.sessions.get(session_id, 0) + 1

    def spent(self, tokens: dict[str, int]) -> None:
        for name, count in tokens.items():
            self.usage[name] = self.usage.get(name, 0) + count

    @property
    def loss(self) -> LossReport:
        return self._loss.report()

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "host": self.host,
            "files": self.files,
            "lines": self.lines,
            "drafts": self.drafts,
            "sessions": dict(self.sessions),
            "kinds": dict(self.kinds),
            "anomalies": {
                name: {"count": count, "places": list(places)} for name, (count, places) in self.anomalies.items()
            },
            "unknown_types": dict(self.unknown),
            "usage": dict(self.usage),
            "loss": self.loss.to_dict(),
            "notes": list(self.notes),
        }

    def sentences(self) -> list[str]:
        """The report as lines for a person: what was odd first, then what was left out."""
        found = []
        for name, meaning in ANOMALIES.items():
            if name in self.anomalies:
                count, places = self.anomalies[name]
                more = ", ..." if count > len(places) else ""
                found.append(f"{meaning}: {count} ({', '.join(places)}{more})")
        if self.unknown:
            names = (f"{name} ({count})" for name, count in sorted(self.unknown.items()))
            found.append("unknown types: " + ", ".join(names))
        found += [f"left out: {entry.field} ({entry.reason}, {entry.count})" for entry in self.loss.entries]
        return found + self.notes
