"""A file or folder is replaced as a whole, or the old one stays exactly as it was."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from qiju.errors import NotFound, QijuError, Refused, StorageFailed
from qiju.files import (
    ABANDONED_AFTER,
    FileReplacement,
    FolderReplacement,
    PathReplacement,
    recover_folder,
    refuse_target,
    temporary_beside,
)

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permission bits and links")


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_new_file_is_complete_and_private(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    with FileReplacement(target) as out:
        out.write(b"one\n")
        assert not target.exists()
    assert target.read_bytes() == b"one\n"
    assert names(tmp_path) == ["out.jsonl"]
    if sys.platform != "win32":
        assert target.stat().st_mode & 0o777 == 0o600


@posix_only
def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    target.chmod(0o644)
    with FileReplacement(target) as out:
        out.write(b"new")
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("failure", [RuntimeError("x"), KeyboardInterrupt()])
@pytest.mark.parametrize("kind", [FileReplacement, PathReplacement])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, kind: type, failure: BaseException) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")

    def half() -> None:
        with kind(target) as out:
            if isinstance(out, Path):
                out.write_bytes(b"half")
            else:
                out.write(b"half")
            raise failure

    with pytest.raises(type(failure)):
        half()
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["out"]


def test_a_disk_error_names_the_target_and_not_the_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(StorageFailed, match=r"cannot write .*out: No space left on device"), FileReplacement(target):
        raise OSError(28, os.strerror(28))
    assert names(tmp_path) == []


def test_folders_missing_parents_and_nameless_paths_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is a folder"):
        refuse_target(tmp_path)
    with pytest.raises(NotFound, match="does not exist"):
        refuse_target(tmp_path / "no" / "such")
    with pytest.raises(Refused, match="no name"):
        refuse_target(Path())
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Refused, match="is a file"):
        refuse_target(tmp_path / "file", folder=True)


@posix_only
def test_a_symlink_is_refused_even_when_it_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        refuse_target(tmp_path / "link")


def test_the_stores_own_file_is_refused_under_any_spelling(tmp_path: Path) -> None:
    store = tmp_path / "qiju.db"
    store.write_bytes(b"store")
    (tmp_path / "sub").mkdir()
    for spelling in (store, tmp_path / "sub" / ".." / "qiju.db"):
        with pytest.raises(Refused, match="belongs to the store"):
            refuse_target(spelling, protected=[store])
    other = tmp_path / "hardlink"
    other.hardlink_to(store)
    with pytest.raises(Refused, match="belongs to the store"):
        refuse_target(other, protected=[store])


def test_leftovers_of_killed_runs_go_and_young_ones_stay(tmp_path: Path) -> None:
    target = tmp_path / "out"
    old, young = temporary_beside(target), temporary_beside(target)
    for path in (old, young):
        path.write_bytes(b"half")
    ago = time.time() - ABANDONED_AFTER - 5
    os.utime(old, (ago, ago))
    with FileReplacement(target) as out:
        out.write(b"x")
    assert names(tmp_path) == sorted([young.name, "out"])


def test_a_name_as_long_as_the_file_system_allows_still_gets_a_temporary_file(tmp_path: Path) -> None:
    target = tmp_path / ("记" * 85)
    with FileReplacement(target) as out:
        out.write(b"x")
    assert target.read_bytes() == b"x"


def test_a_folder_is_swapped_whole_and_old_parts_go(tmp_path: Path) -> None:
    target = tmp_path / "set"
    with FolderReplacement(target) as folder:
        (folder / "a").mkdir()
        (folder / "a" / "1").write_bytes(b"1")
    with FolderReplacement(target, owned=["a/1"]) as folder:
        (folder / "b").write_bytes(b"2")
    assert names(tmp_path) == ["set", "set/b"]


def test_a_folder_that_holds_somebody_elses_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "thesis.txt").write_bytes(b"mine")
    with pytest.raises(Refused, match=r"thesis\.txt"):
        FolderReplacement(tmp_path / "set", owned=["a"])


def test_a_failed_folder_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "set"
    with FolderReplacement(target) as folder:
        (folder / "1").write_bytes(b"1")

    def half() -> None:
        with FolderReplacement(target, owned=["1"]) as folder:
            (folder / "2").write_bytes(b"2")
            raise OSError(28, "full")

    with pytest.raises(StorageFailed):
        half()
    assert names(tmp_path) == ["set", "set/1"]


def test_a_swap_cut_short_is_finished_by_the_next_run(tmp_path: Path) -> None:
    target = tmp_path / "set"
    with FolderReplacement(target) as folder:
        (folder / "1").write_bytes(b"1")
    # Killed between the two renames: only the old folder exists, under its other name.
    target.rename(tmp_path / ".set.qiju-old")
    recover_folder(target)
    assert names(tmp_path) == ["set", "set/1"]
    # Killed before the old one was removed.
    (tmp_path / ".set.qiju-old").mkdir()
    recover_folder(target)
    assert names(tmp_path) == ["set", "set/1"]


@posix_only
@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root ignores permission bits")
def test_a_read_only_folder_is_a_clean_failure(tmp_path: Path) -> None:
    folder = tmp_path / "ro"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        with pytest.raises(QijuError, match="ro"), FileReplacement(folder / "x"):
            pass
    finally:
        folder.chmod(0o700)
