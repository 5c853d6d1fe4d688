"""A record that cannot be written is kept, redacted, and stored by the next write: in order, exactly once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from program import SESSION, Place

from qiju import spool
from qiju.db import Database

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"


@pytest.fixture
def busy(place: Place) -> Place:
    """A place whose store waits a tenth of a second for its lock."""
    place.log(title="first")
    (place.home / "config.toml").write_text("lock_wait = 0.1\n", encoding="utf-8")
    return place


def log(place: Place, title: str, *words: str) -> tuple[int, str, str]:
    done = place.run(
        "log", "--source", "agent", "--project", "demo", "--session-id", SESSION, *words,
        given=json.dumps({"title": title, "body_md": f"secret {TOKEN}"}),
    )  # fmt: skip
    return done.code, done.out, done.err


def test_a_held_lock_keeps_the_record_and_the_next_write_stores_it(busy: Place) -> None:
    with Database.open(busy.db) as holder, holder.write():
        for title in ("second", "third"):
            code, out, err = log(busy, title)
            assert (code, out) == (5, "")
            assert "kept in the spool" in err
            assert "do not log it again" in err
    kept = sorted(spool.folder(busy.home).iterdir())
    assert len(kept) == 2
    assert not any(TOKEN in each.read_text(encoding="utf-8") for each in kept)
    assert log(busy, "fourth")[0] == 0
    titles = [row["title"] for row in busy.ok("search", "--scope", "all", "--order", "asc", "--sort", "seq").json()]
    assert titles == ["first", "second", "third", "fourth"]
    assert list(spool.folder(busy.home).iterdir()) == []


def test_a_retry_of_a_kept_record_is_not_stored_twice(busy: Place) -> None:
    """An agent that ignores the hint and logs the same thing again gets the id of the one record."""
    with Database.open(busy.db) as holder, holder.write():
        assert log(busy, "second")[0] == 5
    code, out, err = log(busy, "second")
    assert (code, out.strip()) == (0, f"{SESSION}:2")
    assert "already" in err
    assert len(busy.ok("search", "--scope", "all").json()) == 2


def test_a_file_left_after_the_commit_is_not_stored_again(busy: Place, tmp_path: Path) -> None:
    """Killed between commit and removal: the file is still there, the store knows its name."""
    with Database.open(busy.db) as holder, holder.write():
        assert log(busy, "second")[0] == 5
    (kept,) = spool.pending(busy.home)
    copy = shutil.copy(kept, tmp_path / "copy.json")
    assert log(busy, "third")[0] == 0
    shutil.copy(copy, kept)
    assert log(busy, "fourth")[0] == 0
    assert not kept.exists()
    titles = sorted(row["title"] for row in busy.ok("search", "--scope", "all").json())
    assert titles == ["first", "fourth", "second", "third"]


def test_an_unreadable_spool_file_stays_and_is_named(busy: Place) -> None:
    folder = spool.folder(busy.home)
    folder.mkdir()
    (folder / "00000000000000000001-1-aa.json").write_text('{"torn', encoding="utf-8")
    code, _out, err = log(busy, "second")
    assert code == 0
    assert "00000000000000000001-1-aa.json is not readable and was left" in err
    assert (folder / "00000000000000000001-1-aa.json").exists()
