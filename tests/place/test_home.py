"""Where the store is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from qiju.errors import QijuError, StorageFailed, UsageError
from qiju.place import home, working_directory

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


def test_the_flag_outweighs_the_variable(tmp_path: Path) -> None:
    env = {"QIJU_HOME": str(tmp_path / "variable")}
    assert home(str(tmp_path / "flag"), env) == tmp_path.resolve() / "flag"
    assert home(None, env) == tmp_path.resolve() / "variable"


@pytest.mark.parametrize("value", ["", "   "])
def test_an_empty_variable_is_as_good_as_unset(value: str) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    expected = Path(platformdirs.user_data_dir("qiju", appauthor=False)).resolve()
    assert home(None, {"QIJU_HOME": value}) == expected
    assert home(None, {}) == expected


def test_an_empty_flag_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--home"):
        home(" ", {})


def test_a_tilde_is_the_home_of_the_given_environment(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "QIJU_HOME": "~/store"}
    assert home(None, env) == tmp_path.resolve() / "store"
    assert home("~", env) == tmp_path.resolve()


def test_nobody_s_tilde_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="QIJU_HOME"):
        home(None, {"QIJU_HOME": "~no-such-user-here/store"})


def test_a_relative_home_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert home("a/../store", {}) == tmp_path.resolve() / "store"


@needs_links
def test_a_linked_home_is_the_folder_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "later")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert home(str(tmp_path / "link"), {}) == tmp_path.resolve() / "real"
    assert home(str(tmp_path / "dangling"), {}) == tmp_path.resolve() / "later"
    with pytest.raises(QijuError, match="loop"):
        home(str(tmp_path / "loop"), {})


def test_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="not a folder"):
        home(str(tmp_path / "file"), {})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a working directory from being deleted")
def test_a_deleted_working_directory_is_a_clear_error(tmp_path: Path) -> None:
    before = Path.cwd()
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    try:
        gone.rmdir()
        with pytest.raises(QijuError, match="working directory does not exist"):
            working_directory()
        with pytest.raises(QijuError, match="working directory does not exist"):
            home("relative", {})
        assert home(str(tmp_path), {}) == tmp_path.resolve()
    finally:
        os.chdir(before)
