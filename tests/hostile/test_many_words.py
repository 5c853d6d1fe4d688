"""Every option of every command, given what no option expects: the answer is a documented one, and nothing strays."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import MARKUP, OPTIONS, PATHS, SQL, TERMINAL, WORDS
from program import Place
from within import STEERING, Within, everything_below

# These tests may run as root on somebody's machine. A word may be taken for the path of a file to write, so none may
# lead out of the test's own folder: absolute paths and home folders are left to the tests that only read, and the
# project lies deep enough for every `..` chain of `nasty`.
HARMLESS = WORDS.filter(lambda word: not re.match(r"[/~\\]|[a-zA-Z]:", word.strip()) and word.count("..") <= 3)
DEEP = "a/b/c/d/own"

# They serve until their client goes; what they do with words is the same code as everywhere else.
SERVING = {"browse", "mcp"}


def commands() -> list[tuple[tuple[str, ...], list[Any], list[Any]]]:
    """Each command's words, options and arguments, asked of the program itself."""
    import typer
    from typer.core import TyperGroup

    from qiju.cli.app import build

    found = []

    def walk(words: tuple[str, ...], command: Any) -> None:
        if isinstance(command, TyperGroup):
            for name, inner in command.commands.items():
                walk((*words, name), inner)
        elif words[0] not in SERVING:
            options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
            found.append((words, options, [one for one in command.params if one.param_type_name == "argument"]))

    walk((), typer.main.get_command(build()))
    return found


COMMANDS = commands()


@st.composite
def calls(draw: st.DrawFn) -> list[str]:
    """A command with its required options and up to three more; never another home, and never a path out of the way."""
    words, options, arguments = draw(st.sampled_from(COMMANDS))
    said = list(words)
    some = draw(st.lists(st.sampled_from(options), max_size=3, unique_by=id))
    for option in options:
        if option.name == "home" or not (option.required or option in some):
            continue
        flag = max(option.opts, key=len)
        if option.is_flag:
            said.append(flag)
            continue
        choices = getattr(option.type, "choices", None)
        value = draw(st.sampled_from(sorted(map(str, choices))) | HARMLESS if choices else HARMLESS)
        said.append(f"{flag}={value}")
    if arguments:
        said += ["--", *draw(st.lists(HARMLESS | st.sampled_from(["s1:1", "demo"]), max_size=2))]
    return said


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Within:
    made = Within(Place(tmp_path_factory.mktemp("deep") / DEEP))
    made.ok("log", "--source=manual", "--project=demo", "--session-id=s1", given=json.dumps({"title": "t"}))
    return made


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch, deep: Within) -> Within:
    """The program with every change outside the test's folder refused, and remembered."""
    fence = deep.place.folder.parents[3].resolve()
    temporary = Path(tempfile.gettempdir()).resolve()

    def inside(path: Any) -> bool:
        if isinstance(path, int):
            return True
        real = Path(os.path.realpath(os.fsdecode(path)))
        private = temporary in real.parents and real.relative_to(temporary).parts[0].startswith("qiju-")
        return real.is_relative_to(fence) or private or str(real) == os.devnull

    for name in ("rename", "replace", "remove", "unlink", "rmdir", "mkdir", "link", "symlink", "chmod"):
        real = getattr(os, name)

        def checked(*words: Any, _real: Any = real, **more: Any) -> Any:
            if more.get("dir_fd") is None and more.get("src_dir_fd") is None:
                assert all(inside(word) for word in words if isinstance(word, str | bytes | os.PathLike)), words
            return _real(*words, **more)

        monkeypatch.setattr(os, name, checked)
    return deep


@settings(max_examples=120)
@given(words=calls(), given_=st.sampled_from([b"", b"y\n", b"\xff", b"{}", b'{"title": "t", "body_md": "b"}']))
def test_any_words_are_answered_by_the_contract(guarded: Within, words: list[str], given_: bytes) -> None:
    guarded.run(*words, given=given_)


@pytest.mark.slow
@settings(max_examples=6_000)
@given(words=calls(), given_=st.sampled_from([b"", b"y\n", b"\xff", b"{}", b'{"title": "t", "body_md": "b"}']))
def test_any_words_are_answered_by_the_contract_for_long(guarded: Within, words: list[str], given_: bytes) -> None:
    guarded.run(*words, given=given_)


NAMES = sorted({text.replace("\0", "") for text in (*PATHS, *SQL, *OPTIONS, *MARKUP, *TERMINAL)})


def test_names_that_try_paths_and_syntax_stay_names(tmp_path: Path) -> None:
    """Projects, sessions, agents and tags called anything: stored or refused, and every file lies where it belongs."""
    place = Place(tmp_path / "own")
    within = Within(place)
    words = ["log", "--source", "manual"]
    stored = 0
    for name in NAMES:
        body = json.dumps({"title": name, "body_md": "b", "tags": [name]})
        for option in ("--project", "--agent", "--session-id", "--model"):
            rest = [] if option == "--project" else ["--project=demo"]
            done = within.run(*words, f"{option}={name}", *rest, given=body)
            stored += done.code == 0
    assert stored > len(NAMES)
    for command in (["maintain"], ["export", "--format=parquet", f"--output={place.project / 'out'}"], ["backup"]):
        within.ok(*command)
    within.ok("verify")
    slugs = [row["slug"] for row in within.ok("projects", "--json").json()]
    for slug in slugs:
        assert slug not in (".", "..")
        assert not set('/\\:*?"<>|') & set(slug)
        assert not slug.startswith("-")
        assert not STEERING & set(slug)
    allowed = {"store", "proj", "user"}
    assert {name.split("/")[0] for name in everything_below(place.folder)} == allowed
    assert {path.name for path in tmp_path.iterdir()} == {"own"}
    assert everything_below(place.user) == set()
