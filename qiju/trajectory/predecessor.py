"""The predecessor's store as drafts: each of its records once, as `session_record`, in the order of its tiers.

A record that lies in two tiers with the same content is one record; with other content both are kept, which the
private copy (`qiju.trajectory.history`) decides, because only it knows what has been seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qiju.legacy import LegacyStore, Problem, is_store
from qiju.trajectory.types import LossTally, RecordKind, TrajectoryDraft


def is_home(root: Path) -> bool:
    """Whether the folder looks like a predecessor's home."""
    return is_store(root)


def predecessor_files(root: Path) -> list[Path]:
    return LegacyStore(root).files()


def predecessor_drafts(root: Path, loss: LossTally) -> Iterator[TrajectoryDraft]:
    """Stream the records below a predecessor's home. What cannot be read is counted in `loss` by file name and kind."""
    for item in LegacyStore(root).records():
        if isinstance(item, Problem):
            loss.add(item.path.name, item.kind, max(1, item.last_line - item.line + 1))
            continue
        identity, ts = item.value.get("id"), item.value.get("ts")
        record_id = identity if isinstance(identity, str) and identity else f"{item.path.stem}-{item.line}"
        session_id, colon, number = record_id.rpartition(":")
        yield TrajectoryDraft(
            session_id if colon and session_id and number.isdigit() else record_id,
            RecordKind.SESSION_RECORD,
            item.value,
            record_id=record_id,
            ts=ts if isinstance(ts, str) else None,
        )
