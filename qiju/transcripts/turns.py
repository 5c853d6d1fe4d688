"""A session's records as turns: what a person said, what the agent did about it, each call beside its results.

The facts stay in their order; only results move up to their calls, and a result whose call is not in sight stands on
its own and says so. Turns are made one at a time and cut into parts of at most `PART` entries, so that a session of any
length can be shown in bounded memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from qiju.record import parse_ts
from qiju.trajectory.types import RecordKind
from qiju.transcripts.words import failed

if TYPE_CHECKING:
    from qiju.trajectory.types import TrajectoryRecord

PART = 400
REMEMBERED = 10_000  # ids of calls in earlier parts, to tell a late result from an orphan


class Entry:
    """One fact with the results that belong to it (for a call). `note` says what is odd: late, orphan, repeated."""

    __slots__ = ("note", "record", "results")

    def __init__(self, record: TrajectoryRecord, note: str = "") -> None:
        self.record = record
        self.results: list[TrajectoryRecord] = []
        self.note = note

    @property
    def status(self) -> str:
        """For a call: `ok`, `failed`, `done` (it does not say), `no result`; '' for every other fact."""
        if self.record.kind is not RecordKind.TOOL_CALL:
            return ""
        if not self.results:
            return "done" if self.record.payload.get("status") == "completed" else "no result"
        says = failed(self.results[-1].payload)
        return {True: "failed", False: "ok", None: "done"}[says]


class Turn:
    """`number` counts from 1 within its run (0 is what stands before the first message of a person); `part` from 1."""

    __slots__ = ("entries", "number", "part", "run")

    def __init__(self, number: int, run: str | None, part: int = 1) -> None:
        self.number = number
        self.run = run
        self.part = part
        self.entries: list[Entry] = []


def turns(records: Iterable[TrajectoryRecord]) -> Iterator[Turn]:
    """The turns (and parts of turns) of one session's records, given in sequence order."""
    maker = _Maker()
    for record in records:
        yield from maker.add(record)
    yield from maker.cut()


def opens_turn(record: TrajectoryRecord) -> bool:
    """Whether a person speaks: a user message that the host did not put there itself."""
    payload = record.payload
    return (
        record.kind is RecordKind.MESSAGE
        and payload.get("role") == "user"
        and payload.get("meta") is not True
        and payload.get("compact_summary") is not True
    )


class _Maker:
    def __init__(self) -> None:
        self.turn: Turn | None = None
        self.numbers: dict[str | None, int] = {}
        self.calls: dict[tuple[str | None, str], Entry] = {}
        self.answered: deque[tuple[str | None, str]] = deque(maxlen=REMEMBERED)
        self.earlier: set[tuple[str | None, str]] = set()

    def cut(self) -> Iterator[Turn]:
        """Give out what has been gathered; its calls are out of sight from now on."""
        if self.turn is not None and self.turn.entries:
            yield self.turn
        self.turn = None
        for name in self.calls:
            if len(self.answered) == REMEMBERED:
                self.earlier.discard(self.answered[0])
            self.answered.append(name)
            self.earlier.add(name)
        self.calls.clear()

    def add(self, record: TrajectoryRecord) -> Iterator[Turn]:
        if record.kind is RecordKind.TOOL_RESULT and self.attach(record):
            return
        turn = self.turn
        run = turn.run if turn is not None and record.kind is RecordKind.SESSION_RECORD else record.run_id
        if opens_turn(record):
            # Parts of one message (a text and a picture) are messages of their own, and one turn together.
            last = turn.entries[-1].record if turn is not None and turn.entries else None
            same = last is not None and last.payload.get("uuid") and opens_turn(last)
            if not (same and last is not None and last.payload.get("uuid") == record.payload.get("uuid")):
                yield from self.cut()
                self.numbers[run] = self.numbers.get(run, 0) + 1
        elif turn is not None and turn.run != run:
            yield from self.cut()
        elif turn is not None and len(turn.entries) >= PART:
            part = turn.part + 1
            yield from self.cut()
            self.turn = Turn(turn.number, run, part)
        if self.turn is None:
            self.turn = Turn(self.numbers.get(run, 0), run)
        self.turn.entries.append(self.entry(record))

    def entry(self, record: TrajectoryRecord) -> Entry:
        entry = Entry(record)
        if record.kind is RecordKind.TOOL_CALL:
            names = _names(record)
            if any((record.run_id, name) in self.calls for name in names):
                entry.note = "the id of this call was used before"
            self.calls.update(((record.run_id, name), entry) for name in names)
        elif record.kind is RecordKind.TOOL_RESULT:
            late = any((record.run_id, name) in self.earlier for name in _names(record))
            entry.note = "result of a call further up" if late else "result without a call"
        return entry

    def attach(self, result: TrajectoryRecord) -> bool:
        for name in _names(result):
            entry = self.calls.get((result.run_id, name))
            if entry is not None:
                entry.results.append(result)
                return True
        return False


def _names(record: TrajectoryRecord) -> list[str]:
    """The ids a call or result goes by; a host that knows a call by two ids may use either in the result."""
    ids = [record.payload.get("call_id")]
    if record.kind is RecordKind.TOOL_CALL:
        ids.append(record.payload.get("item_id"))
    return [name for name in ids if isinstance(name, str) and name]


def with_records(facts: Iterable[TrajectoryRecord], authored: list[TrajectoryRecord]) -> Iterator[TrajectoryRecord]:
    """`facts` with the session's authored records put in at their time.

    A transcript is usually imported after the records were written, so the sequence alone would show them first. Facts
    keep their order; a record without a time comes last.
    """
    waiting = deque(sorted(authored, key=lambda record: (_instant(record) is None, _instant(record) or 0)))
    for fact in facts:
        instant = _instant(fact)
        while waiting and instant is not None and (first := _instant(waiting[0])) is not None and first < instant:
            yield waiting.popleft()
        yield fact
    yield from waiting


def _instant(record: TrajectoryRecord) -> int | None:
    return parse_ts(record.ts) if record.ts else None
