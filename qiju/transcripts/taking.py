"""Taking transcripts into the store: which files, in which steps, and what is said about it.

Only the file or folder that was named is read. Drafts go in small transactions, so that a long import holds the write
lock briefly, and one that is interrupted keeps what it did: running it again adds the rest and nothing twice. Line ids
are keyed with the store's own secret (see `source`). Redaction happens where every trajectory is stored.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from qiju.errors import IdConflict, NotFound, Refused, StorageFailed, UsageError
from qiju.jsontext import canonical, digest
from qiju.trajectory.types import TrajectoryQuery
from qiju.transcripts.atif_read import read_atif
from qiju.transcripts.claude import EVENTS, STATES, read_claude
from qiju.transcripts.codex import FRAMES, ITEMS, read_codex
from qiju.transcripts.lines import read_lines
from qiju.transcripts.report import ImportReport
from qiju.transcripts.source import Identify, text_of
from qiju.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from qiju.jsontext import JsonValue
    from qiju.trajectory.store import Imported, SqliteTrajectoryStore
    from qiju.trajectory.types import TrajectoryDraft

READERS = {"claude": read_claude, "codex": read_codex, "atif": read_atif}
HOSTS = ("claude", "codex")
SUFFIXES = {"claude": ".jsonl", "codex": ".jsonl", "atif": ".json"}
LOOK_AT = 20  # lines of a file that decide whose it is
BATCH = 100  # drafts of one transaction
NOT_TRANSCRIPTS = ("history.jsonl", "session_index.jsonl")  # lists of prompts or sessions that hosts keep beside them


class Taken:
    """What an import did: the reader's report, and `read = added + identical` with the redactions made."""

    def __init__(self, kind: str, *, dry_run: bool) -> None:
        self.report = ImportReport(kind)
        self.dry_run = dry_run
        self.read = self.added = self.identical = self.redactions = 0

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "read": self.read,
            "added": self.added,
            "identical": self.identical,
            "redactions": self.redactions,
            "dry_run": self.dry_run,
            "report": self.report.to_json(),
        }


def keyed_identity(key: bytes) -> Identify:
    """Identities of lines and contents that only the holder of `key` can work out: nobody else can test a guess."""

    def identify(hexdigest: str) -> str:
        return hmac.digest(key, b"line\0" + hexdigest.encode(), "sha256").hex()[:24]

    return identify


def take_in(
    store: SqliteTrajectoryStore,
    path: Path,
    kind: str,
    *,
    dry_run: bool = False,
    step: Callable[[int], None] | None = None,
) -> Taken:
    """Import the file or the folder `path` as transcripts of `kind` (a key of `READERS`).

    `step(count)` is called as drafts are stored. Raises `NotFound`, `UsageError` (another host's file, UTF-16),
    `InvalidRecord` (ATIF), `StorageFailed`, `StoreBusy`; what was stored before stays and is found again.
    """
    taken = Taken(kind, dry_run=dry_run)
    identify = keyed_identity(store.store.key("transcript"))
    for file in _files(path, kind, taken.report):
        for batch in _batches(READERS[kind](file, taken.report, identify=identify)):
            if kind == "atif":
                _refuse_own_export(store, batch[0])
            _store(store, batch, taken, identify, file.name)
            if step is not None:
                step(len(batch))
    return taken


def _refuse_own_export(store: SqliteTrajectoryStore, first: TrajectoryDraft) -> None:
    """An ATIF document that Qiju wrote of a session the store still holds says nothing new: it would stand in the
    session a second time, under other ids."""
    data = first.payload.get("data")
    extra = data.get("extra") if isinstance(data, dict) else None
    if first.payload.get("type") != "atif_document" or not isinstance(extra, dict) or "qiju" not in extra:
        return
    held = store.select(store.cut(), TrajectoryQuery(session_id=first.session_id), 0, 1)
    if held and not held[0].record_id.startswith("atif:"):
        raise Refused(
            "the document was exported from a session that this store holds already",
            hint="to have the facts as they were, use 'qiju trajectory reimport' with a canonical export",
        )


def _batches(drafts: Iterable[TrajectoryDraft]) -> Iterator[list[TrajectoryDraft]]:
    batch: list[TrajectoryDraft] = []
    for draft in drafts:
        batch.append(draft)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _store(
    store: SqliteTrajectoryStore, batch: list[TrajectoryDraft], taken: Taken, identify: Identify, name: str
) -> None:
    try:
        done = [store.import_drafts(batch, dry_run=taken.dry_run)]
    except IdConflict:
        # Rare: two files give one id to different lines. The batch was taken back; one by one tells which.
        done = [_one(store, draft, taken, identify, name) for draft in batch]
    for one in done:
        taken.read += one.read
        taken.added += one.added
        taken.identical += one.identical
        taken.redactions += one.redactions


def _one(store: SqliteTrajectoryStore, draft: TrajectoryDraft, taken: Taken, identify: Identify, name: str) -> Imported:
    try:
        return store.import_drafts([draft], dry_run=taken.dry_run)
    except IdConflict:
        taken.report.anomaly("other_content", name)
        mark = identify(digest(canonical(draft.payload)))[:8]
        other = replace(draft, record_id=f"{draft.record_id}~{mark}")
        return store.import_drafts([other], dry_run=taken.dry_run)


# --- which files -----------------------------------------------------------------------------------------------------


def _files(path: Path, kind: str, report: ImportReport) -> list[Path]:
    if not path.exists():
        raise NotFound(f"there is no file or folder {path}")
    if not path.is_dir():
        if kind in HOSTS and (whose := looks_like(path)) not in (kind, ""):
            raise UsageError(f"{path} looks like a transcript of {whose}", hint=f"import it with --host {whose}")
        _name_neighbours(path, kind, report)
        return [path]
    suffix, found, passed = SUFFIXES[kind], [], 0
    try:
        inside = sorted(file for file in path.rglob("*") if file.is_file())
    except OSError as error:
        raise StorageFailed(f"cannot read the folder {path}: {error.strerror}") from error
    for file in inside:
        whose = looks_like(file) if kind in HOSTS and file.name.endswith(suffix) else kind
        if file.is_symlink():
            report.notes.append(f"not read, a symbolic link: {file.relative_to(path)}")
        elif not file.name.endswith(suffix) or file.name in NOT_TRANSCRIPTS:
            passed += 1
        elif whose not in (kind, ""):
            report.notes.append(f"not read, a transcript of {whose}: {file.relative_to(path)}")
        else:
            found.append(file)
    if passed:
        report.notes.append(f"not read, no transcripts by their names: {counted(passed, 'file')}")
    if not found:
        raise NotFound(f"the folder {path} holds no {suffix} transcripts of {kind}")
    return found


def _name_neighbours(path: Path, kind: str, report: ImportReport) -> None:
    """Claude Code keeps subagents in a folder beside the session; it was not asked for, so it is only named."""
    folder = path.with_suffix("") / "subagents"
    if kind == "claude" and folder.is_dir():
        count = sum(1 for _ in folder.glob("*.jsonl"))
        if count:
            report.notes.append(f"not read: {count} subagent files in {path.stem}/subagents; import that folder, too")


def looks_like(path: Path) -> str:
    """Whose transcript a file is by its first lines: `claude`, `codex`, or '' when they do not tell."""
    for line in read_lines(path):
        entry = line.value
        if isinstance(entry, dict):
            kind = text_of(entry.get("type"))
            if (kind in FRAMES and isinstance(entry.get("payload"), dict)) or (kind in ITEMS and "uuid" not in entry):
                return "codex"
            if entry.keys() & {"sessionId", "parentUuid", "leafUuid"} or kind in STATES or kind in EVENTS:
                return "claude"
            if kind in ("user", "assistant") and "message" in entry:
                return "claude"
        if line.number >= LOOK_AT:
            break
    return ""
