"""Take over a predecessor's store: read it whole, decide between copies, redact, store, and say what became of each.

The source is only read. What was taken over is remembered by a keyed digest of the record as it stood there, so a
second run changes nothing, whatever was redacted, moved or deleted here meanwhile; a run that was killed is completed
by the next one, since records are stored in transactions of `BATCH` and each is known again.

A dry run decides exactly as the run does (`_decide`), and leaves out what writes.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import projects
from qiju.errors import InvalidRecord, NotFound
from qiju.jsontext import JsonValue
from qiju.keeping.collate import Candidate, Decision, collate, marked_id, unpack
from qiju.keeping.normalise import normalise, relocate
from qiju.legacy import Draft, LegacyStore, Problem
from qiju.legacy.parquet import loosely_equal
from qiju.place.slug import slugify
from qiju.record import build, check, parse_ts

if TYPE_CHECKING:
    import apsw

    from qiju.admission import Admitted
    from qiju.store import Bulk, Store

BATCH = 1000
Step = Callable[[int], object]


class Origin(NamedTuple):
    """A predecessor's store to take over. `brand` rewrites the brand words of the first predecessor."""

    home: Path
    roots: Sequence[Path] = ()
    folder: str = ".qiju"
    brand: bool = False


class Report:
    """What was read and what became of it: read = added + identical + copies + replaced + unreadable records.

    Lists name files as the source spells them, with lines; nothing in it is text of a record.
    """

    def __init__(self, origin: Origin, *, dry_run: bool) -> None:
        self.mode = "from-kedu" if origin.brand else "from-qiju"
        self.source = str(origin.home)
        self.dry_run = dry_run
        self.read = self.added = self.identical = self.copies = self.invalid = self.redactions = 0
        self.offsets_placed = self.offsets_dropped = self.audit_events = 0
        self.conflicts: list[dict[str, JsonValue]] = []
        self.replaced: list[JsonValue] = []
        self.renamed: list[dict[str, JsonValue]] = []
        self.repairs: list[dict[str, JsonValue]] = []
        self.problems: list[dict[str, JsonValue]] = []
        self.roots: list[dict[str, JsonValue]] = []
        self.projects: dict[str, int] = {}

    def problem(self, problem: Problem) -> None:
        self.problems.append(
            {
                "file": str(problem.path),
                "line": problem.line,
                "last_line": problem.last_line,
                "kind": problem.kind,
                "message": problem.message,
            }
        )

    def to_json(self) -> dict[str, JsonValue]:
        counts: dict[str, JsonValue] = dict(sorted(self.projects.items()))
        return {
            "mode": self.mode,
            "source": self.source,
            "dry_run": self.dry_run,
            "read": self.read,
            "added": self.added,
            "identical": self.identical,
            "copies": self.copies,
            "replaced_by_redacted": list(self.replaced),
            "invalid": self.invalid,
            "redactions": self.redactions,
            "offsets": {"placed": self.offsets_placed, "dropped": self.offsets_dropped},
            "audit_events": self.audit_events,
            "projects": counts,
            "conflicts": list(self.conflicts),
            "renamed": list(self.renamed),
            "repairs": list(self.repairs),
            "problems": list(self.problems),
            "roots": list(self.roots),
        }


class _Outcome(NamedTuple):
    """What is to be done with a decision: `admitted` is the record to store, or None when nothing is to be stored."""

    decision: Decision
    fingerprint: str
    admitted: Admitted | None
    problem: Problem | None = None
    placed: int = 0  # redaction entries that got the place of their placeholder
    dropped: int = 0  # and those that lost theirs


def take_over(store: Store, origin: Origin, *, dry_run: bool = False, step: Step | None = None) -> Report:
    """Take over `origin` into `store`. Raises `NotFound` when nothing of the predecessor's is there."""
    legacy = LegacyStore(origin.home, roots=origin.roots, folder=origin.folder)
    if not legacy.exists():
        raise NotFound(
            f"{origin.home} holds no predecessor's store",
            hint="give its home (it was ~/.qiju), and each project folder with --project-root",
        )
    report = Report(origin, dry_run=dry_run)
    mark = _marker(store)
    decisions = collate(_candidates(legacy, origin, report), mark)
    report.copies = sum(len(one.sources) - 1 for one in decisions)
    report.replaced = [place for one in decisions for place in one.replaced]
    store.refresh_engine()
    for begin in range(0, len(decisions), BATCH):
        # Redacting takes most of the time, so it is done before the write lock is taken.
        batch = decisions[begin : begin + BATCH]
        part = [_decide(store, decision, mark) for decision in batch]
        if dry_run:
            for outcome in part:
                _count(outcome, report)
        else:
            with store.bulk() as bulk:
                again = store.refresh_engine()
                for decision, outcome in zip(batch, part, strict=True):
                    late = again or _overtaken(store, outcome)
                    _store(store, bulk, _decide(store, decision, mark) if late else outcome, report)
        if step is not None:
            step(len(part))
    if dry_run:
        _roots(store, None, legacy, origin, report)
        _audit(store, None, legacy, mark, report)
        return report
    with store.db.write() as connection:
        _roots(store, connection, legacy, origin, report)
        _audit(store, connection, legacy, mark, report)
    return report


def _marker(store: Store) -> Callable[[bytes], str]:
    key = store.key("fingerprint")
    return lambda content: hmac.digest(key, b"taken over\n" + content, "sha256").hex()[:32]


def _candidates(legacy: LegacyStore, origin: Origin, report: Report) -> Iterator[Candidate]:
    for item in legacy.records():
        if isinstance(item, Problem):
            report.problem(item)
            continue
        report.read += 1
        place = f"{item.path}:{item.line}"
        if item.repair:
            report.repairs.append({"file": str(item.path), "line": item.line, "what": item.repair})
        found = normalise(item, source=place, brand=origin.brand)
        if isinstance(found, Problem):
            report.invalid += 1
            report.problem(found)
            continue
        if found.renamed:
            report.renamed.append({"file": str(item.path), "line": item.line, "id": found.candidate.id})
        yield found.candidate


def _decide(store: Store, decision: Decision, mark: Callable[[bytes], str]) -> _Outcome:
    value = unpack(decision.packed)
    fingerprint = mark(_canonical(value))
    if store.db.value("SELECT 1 FROM taken_over WHERE fingerprint = ?", (fingerprint,)):
        return _Outcome(decision, fingerprint, None)
    value["id"] = decision.id
    if _known_loosely(store, decision, value):
        return _Outcome(decision, fingerprint, None)
    try:
        admitted, placed, dropped = _admit(store, value)
        if _conflicts(store, decision.project, admitted):
            # Somebody else's record has this id here already: this one is kept beside it.
            kept_as = marked_id(decision.id, fingerprint)
            decision = decision._replace(id=kept_as, marked_from=decision.marked_from or decision.id)
            admitted, placed, dropped = _admit(store, {**value, "id": kept_as})
    except InvalidRecord as error:
        path, _, line = decision.sources[0].rpartition(":")
        return _Outcome(decision, fingerprint, None, Problem(Path(path), int(line), int(line), "invalid", str(error)))
    return _Outcome(decision, fingerprint, admitted, None, placed, dropped)


def _overtaken(store: Store, outcome: _Outcome) -> bool:
    """Whether another process stored something under this id, or this very record, since it was decided."""
    if outcome.admitted is None:
        return False
    sql = "SELECT 1 FROM record WHERE id = ? AND project = ? UNION ALL SELECT 1 FROM taken_over WHERE fingerprint = ?"
    bindings = (str(outcome.admitted.fields["id"]), outcome.decision.project, outcome.fingerprint)
    return store.db.value(sql, bindings) is not None


def _conflicts(store: Store, project: str, admitted: Admitted) -> bool:
    from qiju.admission import differences

    known = store.find(str(admitted.fields["id"]), project)
    return known is not None and bool(
        differences(known.record, build({**admitted.fields, "project": project}), admitted.given)
    )


def _count(outcome: _Outcome, report: Report) -> None:
    """Count an outcome as the run will have it."""
    if outcome.problem is not None:
        report.invalid += 1
        report.problem(outcome.problem)
    elif outcome.admitted is None:
        report.identical += 1
    else:
        project = outcome.decision.project
        report.added += 1
        report.redactions += outcome.admitted.redactions
        report.offsets_placed += outcome.placed
        report.offsets_dropped += outcome.dropped
        report.projects[project] = report.projects.get(project, 0) + 1
        if outcome.decision.marked_from:
            places: list[JsonValue] = list(outcome.decision.sources)
            kept_as = str(outcome.admitted.fields["id"])
            report.conflicts.append(
                {"project": project, "id": outcome.decision.marked_from, "kept_as": kept_as, "sources": places}
            )


def _store(store: Store, bulk: Bulk, outcome: _Outcome, report: Report) -> None:
    if outcome.admitted is None:
        _count(outcome, report)
        return
    connection = store.db.connection
    project = projects.ensure(connection, projects.Home(outcome.decision.project, named=True))
    logged = bulk.add(outcome.admitted, project, action="migrate", tier=outcome.decision.tier)
    _count(outcome if logged.created else outcome._replace(admitted=None), report)
    connection.execute("INSERT INTO taken_over (fingerprint, seq) VALUES (?, ?)", (outcome.fingerprint, logged.seq))


def _canonical(value: dict[str, JsonValue]) -> bytes:
    from qiju import jsontext

    return jsontext.canonical(value).encode("utf-8")


def _known_loosely(store: Store, decision: Decision, value: dict[str, JsonValue]) -> bool:
    """Whether the store holds the exact form of what the predecessor's Parquet file has kept only roughly."""
    if decision.tier != "archive":
        return False
    known = store.find(decision.id, slugify(decision.project))
    if known is None:
        return False
    stored = known.record.to_json()
    return loosely_equal(_without_redactions(stored), _without_redactions(value))


def _without_redactions(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: item for key, item in value.items() if key != "redactions"}


def _admit(store: Store, value: dict[str, JsonValue]) -> tuple[Admitted, int, int]:
    """Through the one way in, keeping `ts` as written and the predecessor's redaction entries with places that hold."""
    fields = check(value)
    written = fields.get("ts")
    earlier, _found = store.engine().redact_value(fields.pop("redactions", []))
    admitted = store.admit(fields, session_id="", session_source="id")
    complete = dict(admitted.fields)
    made = complete.pop("redactions", [])
    if isinstance(written, str) and parse_ts(written) is None:
        # It orders by the moment it is taken over, and still reads as it did.
        complete["ts"], _ = store.engine().redact_value(written)
    complete["redactions"] = earlier
    placed, dropped = relocate(complete)
    kept = complete["redactions"]
    complete["redactions"] = [*(kept if isinstance(kept, list) else []), *(made if isinstance(made, list) else [])]
    return admitted._replace(fields=complete, given=admitted.given | {"ts"}, notes=()), placed, dropped


def _roots(
    store: Store, connection: apsw.Connection | None, legacy: LegacyStore, origin: Origin, report: Report
) -> None:
    """Register the project folders that are there; without a connection only say which."""
    from qiju.legacy.kedu import rebrand_text

    for root in legacy.roots:
        slug = slugify(rebrand_text(root.slug) if origin.brand else root.slug)
        # A folder that is gone is named, not registered: every later redaction would have to report it.
        report.roots.append({"path": str(root.path), "project": slug, "reachable": root.reachable})
        if root.reachable and connection is not None:
            projects.ensure(connection, projects.Home(slug, root=str(root.path.resolve()), named=True))


def _audit(
    store: Store,
    connection: apsw.Connection | None,
    legacy: LegacyStore,
    mark: Callable[[bytes], str],
    report: Report,
) -> None:
    for item in legacy.redactions():
        if isinstance(item, Problem):
            report.problem(item)
            continue
        fingerprint = mark(b"audit\n" + _canonical(item.value))
        if store.db.value("SELECT 1 FROM taken_over WHERE fingerprint = ?", (fingerprint,)):
            continue
        report.audit_events += 1
        if connection is not None:
            _audit_event(store, connection, item, fingerprint)


def _audit_event(store: Store, connection: apsw.Connection, item: Draft, fingerprint: str) -> None:
    """One line of the predecessor's audit: when, why, how many; the values it removed were never in it."""
    from qiju import jsontext

    redacted, _ = store.engine().redact_value(item.value)
    event: dict[str, Any] = redacted if isinstance(redacted, dict) else {}
    counts: dict[str, JsonValue] = {}
    for change in event.get("changes", []) if isinstance(event.get("changes"), list) else []:
        if isinstance(change, dict) and isinstance(change.get("entries"), int):
            tier = str(change.get("tier", ""))
            before = counts.get(tier, 0)
            counts[tier] = (before if isinstance(before, int) else 0) + change["entries"]
    connection.execute(
        "INSERT INTO redaction_audit (at, action, actor, reason, placeholder, counts) VALUES (?, ?, ?, ?, ?, ?)",
        (
            str(event.get("ts", "")),
            "literal",
            "predecessor",
            str(event.get("reason", "")),
            str(event.get("placeholder", "")),
            jsontext.canonical(counts),
        ),
    )
    connection.execute("INSERT INTO taken_over (fingerprint, seq) VALUES (?, NULL)", (fingerprint,))
