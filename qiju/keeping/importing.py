"""`qiju import`: records from files, through the same checks and the same redaction as `qiju log`.

Two passes over each source. The first reads, checks and redacts one record at a time and lets it wait in a `Sorter`;
nothing unredacted is written anywhere, and no file is held in memory. The second stores what waits, oldest first, in
one transaction: all of a source or nothing. With `keep_going` the bad pieces are left out instead, and what is good
goes in by batches, between which other writers get their turn.

Importing is idempotent by project and id: the same record again is `identical`, other content under a known id is
`conflicting` and never overwrites. The report adds up: read = added + identical + conflicting + invalid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import jsontext
from qiju import record as records
from qiju.admission import Admitted, differences
from qiju.errors import IdConflict, Interrupted, InvalidRecord, QijuError, Refused, StoreBusy
from qiju.jsontext import JsonValue
from qiju.keeping import offsets, sources
from qiju.keeping.sorting import Sorter, Staged
from qiju.keeping.tiers import PAUSE
from qiju.place.slug import slugify
from qiju.projects import Home, Project, ensure
from qiju.redaction import RedactionFailed
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.store import Bulk, Store

BATCH = 2000  # records a transaction with keep_going
MOST_RANGES = 200  # ranges of line numbers a report holds per outcome; what is beyond is counted
MOST_PROBLEMS = 100
REQUIRED = ("id", "project", "source")
OUTCOMES = ("added", "identical", "conflicting", "invalid")


class Lines:
    """Line numbers, noted in any order and told as ranges (`3-7`, 9); a byte a line is all that is held."""

    def __init__(self) -> None:
        self.count = 0
        self._marks: dict[str, bytearray] = {}

    def add(self, part: str, line: int) -> None:
        self.count += 1
        marks = self._marks.setdefault(part, bytearray())
        if line >= len(marks):
            marks.extend(bytes(line + 1 - len(marks) + len(marks) // 8))
        marks[line] = 1

    def to_json(self) -> Any:
        """A list of numbers and "a-b" ranges, at most `MOST_RANGES`; by part of the source where it has several."""
        told: dict[str, list[int | str]] = {}
        left = MOST_RANGES
        for part, marks in self._marks.items():
            ranges = _ranges(marks)
            told[part] = [first if first == last else f"{first}-{last}" for first, last in islice(ranges, left)]
            left -= len(told[part])
            if more := sum(last - first + 1 for first, last in ranges):
                told[part].append(f"and {more} more")
        return told.get("", []) if set(told) <= {""} else told


def _ranges(marks: bytearray) -> Iterator[tuple[int, int]]:
    end = 0
    while (first := marks.find(1, end)) >= 0:
        end = marks.find(0, first)
        end = len(marks) if end < 0 else end
        yield first, end - 1


class Report:
    """What became of the pieces of one source. `stored` is how many records this run put into the store."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = {name: Lines() for name in OUTCOMES}
        self.problems: list[dict[str, Any]] = []
        self.left_out = 0
        self.stored = 0
        self.redactions = 0
        self.dated = 0
        self.taken_over: dict[str, Any] | None = None
        self.error: QijuError | None = None

    def note(self, outcome: str, part: str, line: int) -> None:
        self.lines[outcome].add(part, line)

    def problem(self, outcome: str, part: str, line: int, reason: str) -> None:
        self.note(outcome, part, line)
        if len(self.problems) < MOST_PROBLEMS:
            place: dict[str, Any] = {"part": part, "line": line} if part else {"line": line}
            self.problems.append({**place, "outcome": outcome, "reason": reason})
        else:
            self.left_out += 1

    def count(self, outcome: str) -> int:
        if self.taken_over is None:
            return self.lines[outcome].count
        # A predecessor's store keeps several copies of a record; each copy read is accounted for.
        taken = self.taken_over
        copies = taken["identical"] + taken["copies"] + len(taken["replaced_by_redacted"])
        return int({"added": taken["added"], "identical": copies, "invalid": taken["invalid"]}.get(outcome, 0))

    @property
    def read(self) -> int:
        return sum(self.count(name) for name in OUTCOMES)

    @property
    def clean(self) -> bool:
        """Whether nothing was refused; what a predecessor left torn is reported and stops nothing."""
        if self.error is not None or self.taken_over is not None:
            return self.error is None
        return not (self.count("conflicting") or self.count("invalid"))

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"path": self.path, "read": self.read}
        value.update({name: self.count(name) for name in OUTCOMES})
        value.update(stored=self.stored, redactions=self.redactions)
        value["lines"] = {name: self.lines[name].to_json() for name in OUTCOMES if self.count(name)}
        if self.problems:
            value["problems"] = self.problems
        if self.left_out:
            value["problems_left_out"] = self.left_out
        if self.dated:
            value["dated_now"] = self.dated
        if self.taken_over is not None:
            del value["lines"]
            value["taken_over"] = self.taken_over
        if self.error is not None:
            value["error"] = self.error.to_json()
        return value


class Options(NamedTuple):
    """`keep_going` leaves bad pieces out; `dry_run` writes nothing at all."""

    keep_going: bool = False
    dry_run: bool = False


def import_path(store: Store, path: str, options: Options, progress: Callable[[int], object]) -> Report:
    """Import one source; `progress` is told of each piece read. The report says what happened.

    Raises what the store raises (`StoreBusy`, `StorageFailed`, ...), with nothing of the source stored; a source that
    cannot be read becomes the report's `error`.
    """
    report = Report(path)
    store.refresh_engine()
    with Sorter() as waiting:
        try:
            source = sources.recognise(path)
            if source.kind == "predecessor":
                _take_over(store, source, report, options, progress)
                return report
            _refuse_itself(store, source)
            _read(store, source, report, waiting, progress)
        except (StoreBusy, Interrupted):
            raise
        except QijuError as error:
            report.error = error
            return report
        if options.dry_run:
            _foresee(store, waiting, report)
        elif options.keep_going:
            _store_in_batches(store, waiting, report)
        else:
            _store_whole(store, waiting, report)
    return report


def _refuse_itself(store: Store, source: sources.Source) -> None:
    """The live store is never read by the standard library's SQLite: two of them on one file break its locks."""
    live = store.db.path
    if source.kind == "sqlite" and live is not None and live.exists() and Path(source.path).samefile(live):
        raise Refused(f"{source.path} is the store itself", hint="its records are here already")


def _take_over(
    store: Store, source: sources.Source, report: Report, options: Options, progress: Callable[[int], object]
) -> None:
    """A predecessor's store has rules of its own: `qiju migrate --from-qiju` without its project folders."""
    from qiju.keeping.migrate import Origin, take_over

    taken = take_over(store, Origin(Path(source.path)), dry_run=options.dry_run, step=progress)
    report.taken_over = taken.to_json()
    report.redactions = taken.redactions
    report.stored = 0 if options.dry_run else taken.added


# --- first pass ------------------------------------------------------------------------------------------------------


def _read(
    store: Store, source: sources.Source, report: Report, waiting: Sorter, progress: Callable[[int], object]
) -> None:
    for item in sources.read(source):
        progress(1)
        if item.fault:
            report.problem("invalid", item.part, item.line, item.fault)
            continue
        try:
            admitted = admit(store, item.value)
        except (InvalidRecord, RedactionFailed) as error:
            report.problem("invalid", item.part, item.line, str(error))
            continue
        _wait(admitted, item, report, waiting)


def admit(store: Store, value: JsonValue) -> Admitted:
    """One JSON value as a redacted record. Raises `InvalidRecord` when it is none."""
    value = _unwrapped(value)
    fields = records.check(value)
    missing = [name for name in REQUIRED if not fields.get(name)]
    if missing:
        if "exporter_id" in fields:
            raise InvalidRecord("a trajectory document, not a record: use 'qiju trajectory reimport'")
        raise InvalidRecord(f"the record has no {', '.join(missing)}")
    return _settled(store.admit(fields, session_id="", session_source="id"))


def _settled(admitted: Admitted) -> Admitted:
    return admitted._replace(fields=offsets.settle(admitted.fields, admitted.redactions))


def _unwrapped(value: JsonValue) -> JsonValue:
    """The record inside a line of a change feed (`export --since-rev`)."""
    if not isinstance(value, dict) or "change" not in value or "rev" not in value:
        return value
    if "record" not in value:
        raise InvalidRecord("a deletion in a change feed; import adds records and removes none")
    return value["record"]


def _wait(admitted: Admitted, item: sources.Item, report: Report, waiting: Sorter) -> None:
    fields = dict(admitted.fields, project=slugify(str(admitted.fields["project"])))
    given: list[JsonValue] = [*sorted(admitted.given)]
    twin = waiting.add(
        project=str(fields["project"]),
        id=str(fields["id"]),
        instant=admitted.instant,
        part=item.part,
        line=item.line,
        data=jsontext.canonical([fields, given, admitted.instant, admitted.redactions, len(admitted.notes)]),
    )
    if twin is None:
        return
    earlier, _ = _unpacked(twin)
    if _differs(records.build(earlier.fields), admitted._replace(fields=fields)):
        where = f"line {twin.line}" if not twin.part else f"{twin.part}, row {twin.line}"
        report.problem("conflicting", item.part, item.line, f"{fields['id']} stands at {where} with other content")
    else:
        report.note("identical", item.part, item.line)


def _differs(known: records.Record, admitted: Admitted) -> list[str]:
    return differences(known, records.build(admitted.fields), admitted.given)


def _unpacked(staged: Staged) -> tuple[Admitted, str]:
    packed = jsontext.parse(staged.data, name="a waiting record")
    assert isinstance(packed, list)
    fields, given, instant, redactions, notes = packed
    assert isinstance(fields, dict)
    assert isinstance(given, list)
    assert isinstance(instant, int)
    assert isinstance(redactions, int)
    session, _ = records.split_id(str(fields["id"]))
    told = ("dated",) if notes else ()
    admitted = Admitted(fields, frozenset(map(str, given)), instant, session, "id", redactions, told)
    return admitted, str(fields["project"])


# --- second pass -----------------------------------------------------------------------------------------------------


class _NothingStored(Exception):
    """Rolls the transaction of a source back after everything in it was judged."""


def _store_whole(store: Store, waiting: Sorter, report: Report) -> None:
    try:
        with store.bulk() as bulk:
            _add(store, bulk, iter(waiting), report)
            if report.count("conflicting") or report.count("invalid"):
                raise _NothingStored
    except _NothingStored:
        report.stored = report.redactions = 0


def _store_in_batches(store: Store, waiting: Sorter, report: Report) -> None:
    batch: list[Staged] = []
    for staged in waiting:
        batch.append(staged)
        if len(batch) == BATCH:
            _store_batch(store, batch, report)
            batch = []
            time.sleep(PAUSE)
    if batch:
        _store_batch(store, batch, report)


def _store_batch(store: Store, batch: list[Staged], report: Report) -> None:
    with store.bulk() as bulk:
        _add(store, bulk, iter(batch), report)


def _add(store: Store, bulk: Bulk, waiting: Iterator[Staged], report: Report) -> None:
    projects: dict[str, Project] = {}
    again = store.refresh_engine()
    for staged in waiting:
        admitted, slug = _unpacked(staged)
        if again:
            admitted = _redacted_again(store, admitted)
        if slug not in projects:
            projects[slug] = ensure(store.db.connection, Home(slug, named=True))
        try:
            logged = bulk.add(admitted, projects[slug])
        except IdConflict as error:
            report.problem("conflicting", staged.part, staged.line, str(error))
            continue
        if logged.created:
            report.stored += 1
            report.redactions += admitted.redactions
            report.dated += bool(admitted.notes)
        report.note("added" if logged.created else "identical", staged.part, staged.line)


def _redacted_again(store: Store, admitted: Admitted) -> Admitted:
    """A record that waited while a value was redacted by name: that value must not come back with it."""
    anew = _settled(
        store.admit(admitted.fields, session_id=admitted.session_id, session_source=admitted.session_source)
    )
    return anew._replace(given=admitted.given, redactions=admitted.redactions + anew.redactions, notes=admitted.notes)


def _foresee(store: Store, waiting: Sorter, report: Report) -> None:
    """What the second pass would find, without the write lock."""
    for staged in waiting:
        admitted, slug = _unpacked(staged)
        known = store.find(str(admitted.fields["id"]), slug)
        if known is None:
            report.note("added", staged.part, staged.line)
        elif differing := _differs(known.record, admitted):
            reason = f"{known.record.id} exists in project {slug} with other content: {', '.join(differing)}"
            report.problem("conflicting", staged.part, staged.line, reason)
        else:
            report.note("identical", staged.part, staged.line)


def summary(reports: list[Report], options: Options) -> dict[str, Any]:
    """What the command prints: the counts over all sources, and each source's report."""
    totals: dict[str, Any] = {"read": sum(report.read for report in reports)}
    totals.update({name: sum(report.count(name) for report in reports) for name in OUTCOMES})
    totals.update(stored=sum(report.stored for report in reports), dry_run=options.dry_run)
    return {**totals, "files": [report.to_json() for report in reports]}


def refusal(reports: list[Report], options: Options) -> QijuError | None:
    """The error that the whole call ends with, or None when every piece of every source is in the store."""
    unclean = [report for report in reports if not report.clean]
    if not unclean:
        return None
    unreadable = [report.error for report in unclean if report.error is not None]
    if unreadable and len(unclean) == len(unreadable):
        return unreadable[0]
    bad = sum(report.count("conflicting") + report.count("invalid") for report in unclean)
    names = ", ".join(report.path for report in unclean[:3]) + (", ..." if len(unclean) > 3 else "")
    pieces = counted(bad, "conflicting or invalid piece")
    if options.dry_run:
        return Refused(f"{names}: {pieces} (nothing was written: a dry run)", hint="the report names the lines")
    if options.keep_going:
        return Refused(f"{names}: {pieces} left out", hint="the report names the lines")
    return Refused(
        f"{names}: {pieces}, so nothing of {'it' if len(unclean) == 1 else 'these files'} was stored",
        hint="the report names the lines; --keep-going stores the good ones",
    )
