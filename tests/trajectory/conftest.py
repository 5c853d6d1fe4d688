"""Stores, journals and drafts for the trajectory tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qiju.trajectory import JournalTrajectoryStore, RecordKind, SqliteTrajectoryStore, TrajectoryDraft


def make_draft(number: int, *, session: str = "s1", kind: str = "message", text: str = "") -> TrajectoryDraft:
    return TrajectoryDraft(
        session,
        RecordKind(kind),
        {"role": "user", "content": text or f"text {number}"},
        record_id=f"r{number}",
        run_id=f"run-{number % 2}",
        work_item_id=f"item-{number % 3}",
        ts=f"2026-03-01T00:00:{number % 60:02d}Z",
    )


@pytest.fixture
def draft() -> Callable[..., TrajectoryDraft]:
    return make_draft


@pytest.fixture
def journal_path(tmp_path: Path) -> Path:
    return tmp_path / "trajectory.journal"


@pytest.fixture
def journal(journal_path: Path) -> Iterator[JournalTrajectoryStore]:
    with JournalTrajectoryStore(journal_path) as store:
        yield store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteTrajectoryStore]:
    with SqliteTrajectoryStore.open(tmp_path / "home", writable=True) as opened:
        yield opened
