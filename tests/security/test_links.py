"""Links that somebody planted where Qiju writes: refused, and what they point to is untouched."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest
from program import Place

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")

MINE = b"somebody's own file, not to be touched\n"


def victim(place: Place) -> Path:
    path = place.folder / "victim"
    path.write_bytes(MINE)
    return path


COMMANDS = [
    ["log", "--source", "agent", "--project", "demo"],
    ["import", "in.jsonl"],
    ["maintain"],
    ["backup"],
    ["redact", "--value", "some" + "word77", "--reason", "r"],
    ["delete", "a:1", "--yes", "--reason", "r"],
    ["restore", "copy.db"],
]
READING = [["search", "--scope", "all"], ["show", "a:1"], ["export"], ["verify"]]


def attempt(place: Place, words: list[str]) -> int:
    given = json.dumps({"title": "t", "body_md": "b"}) if words[0] == "log" else None
    done = place.run(*words, given=given)
    assert done.code, (words, done)
    assert "symbolic link" in done.err, (words, done)
    assert done.code == 4, (words, done)
    return done.code


def furnish(place: Place) -> None:
    (place.project / "in.jsonl").write_text(
        '{"id": "a:1", "title": "someword77", "project": "demo", "source": "agent"}\n', encoding="utf-8"
    )
    place.ok("import", "in.jsonl")
    place.ok("backup", "copy.db")


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("name", ["qiju.db", "store.key", "spool", "backups", "archive"])
def test_a_link_in_the_home_is_refused_by_every_command(place: Place, name: str, exists: bool) -> None:
    """Whether it leads somewhere or nowhere; nothing is written or made behind it."""
    furnish(place)
    target = place.folder / "target"
    if exists:
        target.write_bytes(MINE) if name in ("qiju.db", "store.key") else target.mkdir()
    own = place.home / name
    if own.is_dir():
        own.rename(place.folder / "away")
    else:
        own.unlink(missing_ok=True)
    own.symlink_to(target)
    for words in (*COMMANDS, *(READING if name in ("qiju.db", "store.key") else ())):
        attempt(place, words)
        assert target.exists() == exists
        if exists:
            assert target.is_dir() and not any(target.iterdir()) if target.is_dir() else target.read_bytes() == MINE


def test_a_link_in_the_place_of_a_lock_is_not_written_through(place: Place) -> None:
    furnish(place)
    target = victim(place)
    (place.home / "maintain.lock").unlink(missing_ok=True)
    (place.home / "maintain.lock").symlink_to(target)
    done = place.run("maintain")
    assert done.code, done
    assert target.read_bytes() == MINE


@pytest.mark.parametrize("leads", [True, False])
def test_links_as_targets_are_refused(place: Place, leads: bool) -> None:
    """Exports, receipts, backups with their companions, whatever the link leads to."""
    furnish(place)
    target = victim(place) if leads else place.folder / "nowhere"
    link = place.project / "link"
    link.symlink_to(target)
    for words in (
        ["export", "--format", "jsonl", "--output", "link"],
        ["export", "--format", "sqlite", "--output", "link"],
        ["export", "--format", "parquet", "--output", "link"],
        ["export", "--format", "jsonl", "--output", "fine.jsonl", "--receipt", "link"],
        ["backup", "link"],
        ["trajectory", "export", "--output", "link"],
    ):
        done = place.run(*words)
        assert done.code == 4, (words, done)
        assert target.exists() == leads
        assert not leads or target.read_bytes() == MINE
    for companion in ("made.db.json", "made.db.key"):
        other = place.project / companion
        other.symlink_to(target)
        done = place.run("backup", "--with-key", "made.db")
        assert done.code == 4, done
        assert not (place.project / "made.db").exists()
        assert target.exists() == leads
        other.unlink()


def test_somebody_elses_file_beside_a_backup_is_not_replaced(place: Place) -> None:
    furnish(place)
    for companion in ("made.db.json", "made.db.key"):
        (place.project / companion).write_bytes(MINE)
        done = place.run("backup", "--with-key", "made.db")
        assert done.code == 4, done
        assert (place.project / companion).read_bytes() == MINE
        assert not (place.project / "made.db").exists()
        (place.project / companion).unlink()
    place.ok("backup", "--with-key", "made.db")


@pytest.mark.parametrize("part", [".qiju", ".qiju/tmp"])
def test_a_cloned_repository_with_links_leads_nowhere(place: Place, part: str) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    link = place.project / part
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    for words in (["temp-entry"], ["init", "--host", "claude", "--local"], ["maintain"]):
        place.run(*words)
        assert list(outside.iterdir()) == [], words


def test_a_target_swapped_for_a_link_meanwhile_is_replaced_not_followed(place: Place) -> None:
    """A rename puts the export in the link's place; it never goes through the link. Raced over and over."""
    furnish(place)
    target = victim(place)
    out = place.project / "out.jsonl"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for make in (lambda: out.symlink_to(target), lambda: out.write_bytes(b"x"), out.unlink):
                try:
                    if make.__name__ != "<lambda>" or not out.is_symlink():
                        make()
                except OSError:
                    pass

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(6):
            assert place.run("export", "--format", "jsonl", "--output", str(out)).code in (0, 1, 4)
    finally:
        stop.set()
        thread.join()
    assert target.read_bytes() == MINE
    assert not [path for path in place.project.iterdir() if ".qiju-tmp-" in path.name]


def test_a_draft_swapped_for_a_link_meanwhile_costs_nobody_a_file(place: Place) -> None:
    """`log --cleanup` deletes the draft it read, or nothing."""
    target = victim(place)
    draft = Path(place.ok("temp-entry").out.strip())
    draft.write_text('{"title": "t", "body_md": "b"}', encoding="utf-8")
    copy = draft.with_name("kept.json")
    copy.write_bytes(draft.read_bytes())
    for _ in range(4):
        draft.unlink(missing_ok=True)
        os.link(copy, draft)
        run = place.start("log", "--source", "agent", "--project", "demo", "--body", str(draft), "--cleanup")
        draft.unlink(missing_ok=True)
        try:
            draft.symlink_to(target)
        except FileExistsError:
            pass
        run.wait(60)
    assert target.read_bytes() == MINE
