"""`redact`: the order in which a literal leaves the store and its files, and when that counts as done.

1. Look, without a lock: rows, files; the bytes of the database when neither holds it.
2. One transaction: rows, events, ids, slugs, registry, audit, fingerprints and the pending mark.
3. The search indexes in short steps, the WAL.
4. Files: the archive from the rows, then everything else.
5. The proof. VACUUM once when bytes or free pages ask for it. Only a passed proof takes the pending mark away.

Killed anywhere, the same call finishes it: it finds the mark, cleans and proves again. The one thing that must come
before the transaction are the files of a folder whose own path holds the value, since the registry forgets it there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qiju.erasure import audit, candidates, files, indexes, proof, rows
from qiju.errors import NothingToRedact, RedactionIncomplete, StoreBusy
from qiju.jsontext import JsonValue
from qiju.record import format_instant
from qiju.registry import Registry
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.erasure.secret import Secret, Sought
    from qiju.store import Store
    from qiju.trajectory.filelock import WriterLock

LOCK_NAME = "redact.lock"
Step = Callable[[int], object]


class Request(NamedTuple):
    """What is asked: the value, why, by whom, and further folders to look through."""

    secret: Secret
    reason: str
    who: str
    roots: tuple[Path, ...] = ()


class Outcome:
    """What was done. `remains` is empty when the proof passed."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.at = format_instant(time.time_ns() // 1000)
        self.dry_run = False
        self.tiers: dict[str, int] = {}
        self.events = 0
        self.tables: dict[str, int] = {}
        self.renamed: list[rows.Renamed] = []
        self.projects: list[str] = []
        self.files: list[files.Changed] = []
        self.cut = 0
        self.variants = 0
        self.remembered = False
        self.proof: dict[str, JsonValue] = {}
        self.remains: list[str] = []
        self.warnings: list[str] = []
        self.database = ""
        self.pieces: list[rows.Pieces] | None = None

    def row_counts(self) -> dict[str, JsonValue]:
        """Records a tier, events, rows of other tables; and the ids that records have now."""
        counts: dict[str, JsonValue] = {tier: self.tiers.get(tier, 0) for tier in ("short", "long", "archive")}
        counts |= {"events": self.events, "other": dict(self.tables)}
        if self.renamed:
            renamed: list[JsonValue] = [dict(one._asdict()) for one in self.renamed]
            counts["renamed"] = renamed
        return counts

    def file_counts(self) -> dict[str, JsonValue]:
        """Files a place."""
        placed: dict[str, JsonValue] = {}
        for one in self.files:
            placed[one.tier] = int(str(placed.get(one.tier, 0))) + 1
        return {"files": placed}

    def to_json(self) -> dict[str, JsonValue]:
        changes: list[JsonValue] = [
            {"tier": tier, "path": self.database, "entries": count} for tier, count in sorted(self.tiers.items())
        ]
        if self.events:
            changes.append({"tier": "trajectory", "path": self.database, "entries": self.events})
        changes += [
            {"tier": "registry", "path": f"{self.database} {name}", "entries": count}
            for name, count in sorted(self.tables.items())
        ]
        changes += [dict(one._asdict()) for one in self.files]
        renamed: list[JsonValue] = [dict(one._asdict()) for one in self.renamed]
        value: dict[str, JsonValue] = {
            "ts": self.at,
            "reason": self.request.reason,
            "placeholder": self.request.secret.placeholder,
            "change_count": len(changes),
            "changes": changes,
            "counts": {**self.row_counts(), **self.file_counts()},
            "renamed": renamed,
            "projects": list(self.projects),
            "cut_longer_words": self.cut,
            "other_spellings_left": self.variants,
        }
        if self.dry_run:
            value["dry_run"] = True
        else:
            value |= {"remembered": self.remembered, "proof": self.proof, "remains": list(self.remains)}
        value["warnings"] = list(self.warnings)
        cleaned = self.request.secret.clean_json(value)
        assert isinstance(cleaned, dict)
        return cleaned


def plan(store: Store, request: Request, step: Step = lambda _: None) -> Outcome:
    """Count what a run would change; nothing is changed."""
    outcome = Outcome(request)
    outcome.dry_run = True
    found, looked, _scope = _look(store, request, outcome, step)
    outcome.tiers, outcome.events, outcome.tables = dict(found.tiers), len(found.events), dict(found.small)
    outcome.files = looked.changes
    outcome.warnings += [*found.problems, *looked.problems, *looked.warnings]
    return outcome


def redact(store: Store, request: Request, step: Step = lambda _: None) -> Outcome:
    """Take the value out of everything and prove it.

    Raises `NothingToRedact` when it stands nowhere and no erasure of it is pending, `RedactionIncomplete` when it
    stands nowhere in what could be read, `StoreBusy`. An incomplete erasure is told by `Outcome.remains`.
    """
    lock = only_one(store.home)
    try:
        return _redact(store, request, step)
    finally:
        lock.release()


def _redact(store: Store, request: Request, step: Step) -> Outcome:
    secret = request.secret
    outcome = Outcome(request)
    fingerprint = audit.identity(store, secret.literal)
    store.drain_spool()
    found, looked, scope = _look(store, request, outcome, step)
    audit_id = audit.pending(store.db, fingerprint)
    if not found.count and not looked.changes and audit_id is None and not _in_bytes(store, secret):
        _nothing(store, fingerprint, [*found.problems, *looked.problems])
    for root in scope.roots:
        if secret.spans(str(root)):
            early = files.clean(scope, secret, step, only=root)
            outcome.files += early.changes
            outcome.remains += early.problems
            outcome.warnings.append(
                f"the project folder {root} is named by the value: it is not registered any more; rename it, "
                "since the next record from there would bring the name back"
            )
    fresh = audit_id is None
    audit_id = _change_rows(store, request, found, fingerprint, audit_id, outcome)
    _clean_files(store, scope, secret, outcome, step)
    _prove(store, secret, outcome, step)
    if not outcome.remains:
        with store.db.write() as connection:
            # The rows of this run were counted with its mark; those of a killed one before stay as it counted them.
            counts = outcome.file_counts() if fresh else {**outcome.row_counts(), **outcome.file_counts()}
            audit.finish(connection, audit_id, fingerprint, {**counts, "proven": outcome.at})
        indexes.cut_wal(store.db, 0.5)
    if others := audit.others_pending(store.db, fingerprint):
        outcome.warnings.append(f"{others} other erasures are not proven yet (qiju redact --log): run them again")
    return outcome


def _look(
    store: Store, request: Request, outcome: Outcome, step: Step
) -> tuple[candidates.Candidates, files.Report, files.Scope]:
    outcome.database = str(store.db.path or "")
    scope = scope_of(store, request.roots)
    found = candidates.find(store.db, request.secret, step)
    looked = files.look(scope, request.secret, step)
    files.elsewhere(_manifest(store), scope, request.secret, looked, look_only=True)
    outcome.cut, outcome.variants = found.cut, found.variants
    if found.cut:
        outcome.warnings.append(
            f"in {counted(found.cut, 'place')} the value is part of a longer word, whose rest stays readable: "
            "redact the longer value, too"
        )
    if found.variants:
        outcome.warnings.append(
            f"{counted(found.variants, 'place holds', 'places hold')} the value in another case or spelling, "
            "which stays"
        )
    return found, looked, scope


def scope_of(store: Store, more: tuple[Path, ...]) -> files.Scope:
    """The home, every registered root, and further ones."""
    registered = [Path(one.path) for one in Registry(store.db).roots()]
    return files.Scope(store.home, tuple(dict.fromkeys((*registered, *more))))


def _manifest(store: Store) -> dict[str, str]:
    return {path: row.kind for path, row in Registry(store.db).rows().items()}


def _in_bytes(store: Store, secret: Secret) -> bool:
    """Whether the database's bytes hold it although no row does: a deleted row, an old index segment."""
    return bool(proof.remains_in_file(store.db, secret) or proof.stale_terms(store.db, secret))


def _nothing(store: Store, fingerprint: str, problems: list[str]) -> None:
    if problems:
        raise RedactionIncomplete(
            f"the value stands nowhere in what could be read, but: {'; '.join(problems)}",
            hint="repair or move away what is named, then run it again",
        )
    others = audit.others_pending(store.db, fingerprint)
    more = f"; {others} erasures of other values are not proven yet: run them again" if others else ""
    raise NothingToRedact("the value stands nowhere, and no erasure of it is pending" + more)


def _change_rows(
    store: Store,
    request: Request,
    found: candidates.Candidates,
    fingerprint: str,
    audit_id: int | None,
    outcome: Outcome,
) -> int:
    with store.db.write() as connection:
        done = rows.erase(store, connection, request.secret, found)
        outcome.tiers, outcome.events, outcome.tables = done.tiers, done.events, done.tables
        outcome.renamed, outcome.projects = done.renamed, done.projects
        outcome.remains += done.problems
        outcome.pieces = done.pieces if audit_id is None else None
        if audit_id is None:
            audit_id = audit.begin(
                connection,
                action=audit.LITERAL,
                who=request.secret.clean(request.who),
                reason=request.reason,
                placeholder=request.secret.placeholder,
                fingerprint=fingerprint,
                counts=outcome.row_counts(),
            )
        outcome.remembered = audit.remember(store, connection, request.secret, audit_id)
    if not outcome.remembered:
        outcome.warnings.append("the value is too short to be remembered; an import may bring it back")
    return audit_id


def _clean_files(store: Store, scope: files.Scope, secret: Secret, outcome: Outcome, step: Step) -> None:
    report = files.Report()
    files.archive(store, scope, report)
    cleaned = files.clean(scope, secret, step)
    files.elsewhere(_manifest(store), scope, secret, cleaned)
    outcome.files += cleaned.changes
    outcome.remains += [*report.problems, *cleaned.problems]
    outcome.warnings += [*report.warnings, *cleaned.warnings]


def _prove(store: Store, secret: Secret, outcome: Outcome, step: Step) -> None:
    checked = settle(store, secret, step, pieces=outcome.pieces)
    outcome.proof = {
        "passed": not checked.remains and not outcome.remains,
        "bytes": not checked.bytes_left,
        "index_terms": not checked.terms_left,
        "index_integrity": not checked.indexes_wrong,
        "wal_cut": not checked.wal_held,
        "free_pages_zero": not checked.free_pages,
        "files": not outcome.remains,
        "vacuumed": checked.vacuumed,
    }
    outcome.remains += checked.remains


def settle(
    store: Store,
    secret: Secret | None,
    step: Step,
    also: Sought | None = None,
    *,
    pieces: list[rows.Pieces] | None = None,
    blind: bool = False,
) -> proof.DatabaseProof:
    """Clean indexes and WAL and prove the database, with VACUUM when the first proof asks for it.

    `blind` is for work of a killed run whose text nobody knows any more: then the file is written anew in any case.
    """
    indexes.merge(store.db, step)
    if blind:
        indexes.vacuum(store.db)
    reader = indexes.cut_wal(store.db)
    checked = proof.DatabaseProof(store.db, secret, reader, also, pieces)
    if checked.retry and not reader:
        indexes.vacuum(store.db)
        reader = indexes.cut_wal(store.db)
        checked = proof.DatabaseProof(store.db, secret, reader, also, pieces)
        checked.vacuumed = True
    return checked


def only_one(home: Path, wait: float = 30.0) -> WriterLock:
    """Keep other erasures out. Raises `StoreBusy` when one does not end within `wait` seconds."""
    from qiju.trajectory.filelock import WriterLock

    deadline = time.monotonic() + wait
    while True:
        try:
            return WriterLock(home / LOCK_NAME)
        except StoreBusy:
            if time.monotonic() > deadline:
                raise StoreBusy("another erasure is under way", hint="wait until it has ended") from None
            time.sleep(0.1)
