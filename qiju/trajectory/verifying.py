"""Whole checks of files: a journal frame by frame, an export byte by byte. They trust no index and change nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qiju.errors import InvalidRecord, NotFound, QijuError, StorageFailed, StoreDamaged, UsageError
from qiju.trajectory import frames
from qiju.trajectory.exporter import CanonicalTrajectoryExporter, read_artifact

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.store import SqliteTrajectoryStore

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Verified(NamedTuple):
    """What a check found. `kind` is store, journal or export; `problems` empty when everything holds; `detail` says
    more (for a journal, where a torn tail begins; for an export, its digest, view and losses)."""

    kind: str
    records: int
    problems: tuple[str, ...]
    detail: dict[str, JsonValue]

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "kind": self.kind,
            "records": self.records,
            "ok": not self.problems,
            "problems": list(self.problems),
            **self.detail,
        }


def verify_store(store: SqliteTrajectoryStore) -> Verified:
    """Check every event of a store; the digests of its records are the record side's (`qiju verify`)."""
    problems = tuple(f"event {one.seq}: {one.message}" if one.seq else one.message for one in store.verify())
    return Verified("store", store.count(), problems, {"source_id": store.source_id})


def verify_journal(path: Path) -> Verified:
    """Check header, order, checksums and digests of every frame. Raises `NotFound` or `StorageFailed` when it cannot
    be read, `StoreDamaged` when it is no journal."""
    try:
        with path.open("rb", buffering=0) as file:
            frames.read_header(file.read(frames.HEADER.size) or b"")
            size = path.stat().st_size
            scan = frames.Scan(file, frames.HEADER.size, size, next_sequence=1)
            records, problems = 0, []
            try:
                records = scan.check()
            except StoreDamaged as error:
                records, problems = (scan.next_sequence or 1) - 1, [str(error)]
    except FileNotFoundError:
        raise NotFound(f"there is no journal at {path}") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    detail: dict[str, JsonValue] = {"size_bytes": size, "checked_bytes": scan.good}
    if scan.torn:
        detail["torn_tail"] = {"offset": scan.good, "size_bytes": size - scan.good}
    return Verified("journal", records, tuple(problems), detail)


def verify_export(path: Path, digest: str | None = None) -> Verified:
    """Check an exported file: form, canonical bytes, count, order, every record's digest, and `digest`
    (`sha256:<hex>` of the receipt) when given. Reads the file into memory."""
    if digest is not None and not _DIGEST.fullmatch(digest):
        raise UsageError("the digest to compare with is written sha256:<64 hex digits>")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    try:
        artifact = read_artifact(data)
        records = len(CanonicalTrajectoryExporter().reimport(artifact).records)
    except InvalidRecord as error:
        raise InvalidRecord(f"{path}: {error}", hint=error.hint) from error
    except QijuError as error:
        return Verified("export", 0, (str(error),), {})
    problems = []
    if digest is not None and digest != artifact.digest:
        problems.append("the file is not the one with the given digest")
    return Verified(
        "export",
        records,
        tuple(problems),
        {
            "digest": artifact.digest,
            "size_bytes": len(data),
            "privacy_view": artifact.privacy_view.value,
            "exact_reimport": artifact.exact_reimport,
            "loss": artifact.loss.to_dict(),
        },
    )


def is_journal(path: Path) -> bool:
    """Whether the file begins as a journal does."""
    try:
        with path.open("rb") as file:
            return file.read(len(frames.MAGIC)) == frames.MAGIC
    except OSError:
        return False
