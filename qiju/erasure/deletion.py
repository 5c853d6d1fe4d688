"""`delete`: records removed on purpose, and then cleaned away as a redacted value is.

A deleted row leaves a tombstone (its id and numbers) and an audit row. Its text stays in old index segments, in the
WAL, in the archive's file and in backups until those are cleaned, and a pending mark says so until a proof has passed.
The proof looks for passages of the deleted text that stand in no other row; a later run that only finishes a killed one
knows the text no more, so it writes the database anew and proves the structure: one index segment, no WAL, zeroed
free pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qiju import jsontext
from qiju.erasure import audit, files, operation
from qiju.erasure.removal import Gone, Passages, holds_passage, remove
from qiju.errors import AmbiguousId, NotFound, QijuError
from qiju.jsontext import JsonValue
from qiju.record import Record
from qiju.rows import Stored

if TYPE_CHECKING:
    import apsw

    from qiju.store import Store

FINGERPRINT = "delete"  # marks pending deletions; it is no fingerprint of a value
SHORTEST = 24  # characters of a passage worth looking for
_A_RECORD = 4  # passages of one record, at most
_MOST = 60
_WRITTEN_PLAIN = str.maketrans(dict.fromkeys('"\\<>&', "\n"))  # what some encodings write otherwise ends a passage
Step = Callable[[int], object]


class Report:
    """What was deleted, and what is left to do (`remains`)."""

    def __init__(self) -> None:
        self.deleted: list[Gone] = []
        self.files: list[files.Changed] = []
        self.proof: dict[str, JsonValue] = {}
        self.remains: list[str] = []
        self.warnings: list[str] = []
        self.dry_run = False

    def to_json(self) -> dict[str, JsonValue]:
        deleted: list[JsonValue] = [dict(one._asdict()) for one in self.deleted]
        changed: list[JsonValue] = [dict(one._asdict()) for one in self.files]
        value: dict[str, JsonValue] = {"deleted": deleted, "dry_run": self.dry_run, "warnings": list(self.warnings)}
        if not self.dry_run:
            value |= {"files": changed, "proof": self.proof, "remains": list(self.remains)}
        return value


def find(store: Store, ids: tuple[str, ...], project: str | None) -> tuple[list[Stored], list[Gone]]:
    """The records meant, and those of them that are deleted already but not proven gone.

    Raises `NotFound` and `AmbiguousId`; an id must be given whole.
    """
    found: list[Stored] = []
    finishing: list[Gone] = []
    waiting = {(one.project, one.id): one for one in _waiting(store)}
    for identity in dict.fromkeys(ids):
        known = store.by_id(identity, project)
        if len(known) > 1:
            places = ", ".join(one.record.project for one in known)
            raise AmbiguousId(f"{identity} stands in several projects: {places}", hint="say which with --project")
        left = [one for (where, name), one in waiting.items() if name == identity and project in (None, where)]
        if not known and not left:
            near = [name for name, _where in store.ids_with_prefix(identity, project, 3)]
            hint = f"ids must be whole here; did you mean {', '.join(near)}?" if near else "qiju search finds ids"
            raise NotFound(f"there is no record {identity}", hint=hint)
        found += known
        finishing += left if not known else []
    return found, finishing


def _waiting(store: Store) -> list[Gone]:
    """Records deleted by runs that were not proven."""
    sql = (
        "SELECT counts FROM redaction_audit WHERE audit_id IN"
        " (SELECT audit_id FROM redaction_pending WHERE fingerprint = ?)"
    )
    gone: list[Gone] = []
    for (counts,) in store.db.connection.execute(sql, (FINGERPRINT,)).fetchall():
        value = jsontext.parse(str(counts))
        for one in value.get("deleted", []) if isinstance(value, dict) else []:  # type: ignore[union-attr]
            if isinstance(one, dict):
                gone.append(Gone(int(str(one["seq"])), str(one["project"]), str(one["id"])))
    return gone


def delete(store: Store, found: list[Stored], reason: str, who: str, step: Step = lambda _: None) -> Report:
    """Delete the records and clean up after them, and after earlier deletions that were not proven.

    `found` may be empty when only those are to be finished. Raises `StoreBusy`.
    """
    lock = operation.only_one(store.home)
    try:
        return _delete(store, found, reason, who, step)
    finally:
        lock.release()


def _delete(store: Store, found: list[Stored], reason: str, who: str, step: Step) -> Report:
    report = Report()
    passages = _passages(store, found)
    if found:
        with store.db.write() as connection:
            report.deleted = _rows(store, connection, found)
            deleted: list[JsonValue] = [dict(one._asdict()) for one in report.deleted]
            audit.begin(
                connection,
                action=audit.DELETE,
                who=who,
                reason=reason,
                placeholder="",
                fingerprint=FINGERPRINT,
                counts={"deleted": deleted},
            )
    gone = _waiting(store)
    blind = len(gone) > len(report.deleted)
    _files(store, gone, passages, report, step)
    checked = operation.settle(store, None, step, passages, blind=blind)
    report.remains += checked.remains
    report.proof = {
        "passed": not report.remains,
        "passages": len(passages.passages),
        "bytes": not checked.bytes_left,
        "index_integrity": not checked.indexes_wrong,
        "wal_cut": not checked.wal_held,
        "free_pages_zero": not checked.free_pages,
        "vacuumed": checked.vacuumed,
    }
    if not report.remains:
        with store.db.write() as connection:
            connection.execute("DELETE FROM redaction_pending WHERE fingerprint = ?", (FINGERPRINT,))
    return report


def _rows(store: Store, connection: apsw.Connection, found: list[Stored]) -> list[Gone]:
    gone = []
    for stored in found:
        now = store.by_seq(stored.seq)
        if now is not None:  # another process may have been faster
            store.delete(connection, now)
            gone.append(Gone(now.seq, now.record.project, now.record.id))
    return gone


def _files(store: Store, gone: list[Gone], passages: Passages, report: Report, step: Step) -> None:
    scope = operation.scope_of(store, ())
    seen = files.Report()
    files.archive(store, scope, seen)
    store_id = store.db.setting("store_id")
    for path in files.walk(scope, seen):
        step(1)
        try:
            kind = files.kind_of(path)
            if count := remove(path, kind, gone, store_id):
                report.files.append(files.Changed(files.tier_of(scope, path), str(path), count))
            if passages.passages and holds_passage(path, kind, passages):
                seen.problems.append(f"{path} holds text of a deleted record; remove the file, or cut it out there")
        except QijuError as error:
            seen.problems.append(f"{path}: {error}")
        except OSError as error:
            seen.problems.append(f"{path} cannot be cleaned: {error.strerror}")
    files.unreachable(scope, seen)
    report.remains += seen.problems
    report.warnings += seen.warnings


# --- passages --------------------------------------------------------------------------------------------------------


def _passages(store: Store, found: list[Stored]) -> Passages:
    """Passages of the records that stand in no other row."""
    wanted = [one for stored in found for one in _of_record(stored.record)][:_MOST]
    if not wanted:
        return Passages(())
    own = {stored.seq for stored in found}
    left = set(wanted)
    with store.db.read() as connection:
        sql = "SELECT seq, title || char(10) || body_md || tags || search_terms || next_steps || extra FROM record"
        for seq, text in connection.execute(sql):
            if seq not in own:
                left = {one for one in left if one not in text}
        for (text,) in connection.execute("SELECT payload FROM trajectory_event WHERE record_seq IS NULL"):
            left = {one for one in left if one not in text}
    return Passages(one for one in wanted if one in left)


def _of_record(record: Record) -> list[str]:
    lines = [line for text in (record.title, record.body_md) for line in text.translate(_WRITTEN_PLAIN).splitlines()]
    lines += [line for item in record.next_steps for line in item.translate(_WRITTEN_PLAIN).splitlines()]
    long = sorted((line.strip() for line in lines), key=len, reverse=True)
    return [line[:400] for line in long if len(line) >= SHORTEST and line.isprintable()][:_A_RECORD]
