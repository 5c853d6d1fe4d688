"""Completion, through the protocol that the shells' scripts speak: right, quick to give up, and never an error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from program import SESSION, Place

from qiju.cli.completion import candidates, joined

OTHER = "22222222-2222-4222-8222-222222222222"


def complete(place: Place, line: str, shell: str = "bash", **env: str) -> list[str]:
    """What the shell gets for a line with the cursor at its end; nothing may appear on standard error."""
    words = line.split(" ")
    protocol = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    done = place.run(env={**protocol, "_QIJU_COMPLETE": f"complete_{shell}", **env})
    assert done.err == "", done
    return [word for word in done.out.split("\n") if word]


@pytest.fixture
def store(place: Place) -> Place:
    place.log(tags=["locks", "lease time", "$(touch owned)", "--flag", "läufer"], agent="codex")
    place.log(project="demolition", session=OTHER, tags=["locks"])
    return place


def test_every_kind_of_value_in_bash(store: Place) -> None:
    """Slugs, hosts, agents, tags, sessions, ids, choices, commands, in tables and in Typer's own commands alike."""
    for line, expected in {
        "qiju search --project de": ["demo", "demolition"],
        "qiju stats --project demol": ["demolition"],
        "qiju projects merge demo --into demol": ["demolition"],
        "qiju search --scope demo,de": ["demo,demolition"],
        "qiju search --scope a": ["all"],
        "qiju init --host ki": ["kiro"],
        "qiju update --host claude,co": ["claude,codex"],
        "qiju search --agent co": ["codex"],
        "qiju search --tags loc": ["locks"],
        "qiju search --tags l": ["locks", "läufer"],
        "qiju search --session 2": [OTHER],
        "qiju show 1": [f"{SESSION}:1"],
        "qiju show --project demo 2": [f"{OTHER}:1"],
        "qiju search --format jsonl": ["jsonl"],
        "qiju sta": ["stats"],
    }.items():
        assert complete(store, line) == expected, line


def test_ids_complete_past_their_colon_in_bash(store: Place) -> None:
    """bash takes `a:1` apart into `a`, `:` and `1`, and wants the part after the colon alone."""
    assert complete(store, f"qiju show {SESSION} :") == ["1"]
    assert complete(store, f"qiju show {SESSION} : 1") == ["1"]
    assert complete(store, f"qiju show {SESSION}:1") == [f"{SESSION}:1"]  # a bash told not to split at colons
    assert complete(store, f"qiju show {SESSION} : 1 2") == [f"{OTHER}:1"]


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        (["show", "a", ":", "1"], ["show", "a:1"]),
        (["show", "a", ":"], ["show", "a:"]),
        (["show", "a:1", "b"], ["show", "a:1", "b"]),
        (["a", ":", "1", "b", ":", "2"], ["a:1", "b:2"]),
        ([], []),
    ],
)
def test_split_words_are_joined(words: list[str], whole: list[str]) -> None:
    assert joined(words) == whole


def test_zsh_and_fish(store: Place) -> None:
    """The same values in the other shells' layouts; zsh wants its colons escaped."""
    assert complete(store, "qiju search --project demol", "fish") == ["demolition"]
    assert complete(store, "qiju search --project demol", "zsh") == ["_arguments '*: :((\"demolition\"))'"]
    assert complete(store, "qiju show 2", "zsh") == [f"_arguments '*: :((\"{OTHER}\\\\:1\"))'"]


def test_what_a_shell_would_have_to_quote_is_not_offered(store: Place) -> None:
    """Text of records goes into a command line here: what could run there, or read as an option, is left out."""
    for shell in ("bash", "zsh", "fish"):
        out = "\n".join(complete(store, "qiju search --tags ", shell))
        assert "locks" in out
        assert "owned" not in out
        assert "flag" not in out
        assert "lease" not in out


def test_home_in_the_line_decides(store: Place, tmp_path: Path) -> None:
    """`--home` counts before and after the command, over the environment."""
    empty = str(tmp_path / "empty")
    assert complete(store, f"qiju search --home {empty} --project d") == []
    assert complete(store, f"qiju --home {empty} search --project d") == []
    assert complete(store, f"qiju search --home {store.home} --project demol", QIJU_HOME=empty) == ["demolition"]
    assert not Path(empty).exists()


def test_trouble_is_silent(store: Place) -> None:
    """A damaged store, a file in the way, a broken configuration: nothing offered, nothing said."""
    (store.home / "config.toml").write_text("not [ toml", encoding="utf-8")
    assert complete(store, "qiju search --project demol") == ["demolition"]
    store.db.write_bytes(b"this is no database, whatever its name says" * 100)
    assert complete(store, "qiju search --project d") == []
    assert complete(store, "qiju show ", "zsh") == ["_files"]
    assert complete(store, "qiju show ", QIJU_HOME=str(store.db)) == []
    complete(store, "qiju nonsense --project d")


def test_no_more_than_a_screenful(tmp_path: Path, place: Place) -> None:
    """A store of thousands offers the first fifty, and the newest ids where nothing is typed yet."""
    body = '{{"title": "t", "body_md": "b", "ts": "2026-01-{day:02}T00:00:00Z"}}'
    for day in (3, 1, 2):
        place.ok("log", "--source", "agent", "--project", "p", "--session-id", SESSION, given=body.format(day=day))
    assert candidates("id", "", str(place.home)) == [f"{SESSION}:1", f"{SESSION}:3", f"{SESSION}:2"]
    assert candidates("id", SESSION, str(place.home)) == [f"{SESSION}:1", f"{SESSION}:2", f"{SESSION}:3"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid_shell(place: Place, shell: str, tmp_path: Path) -> None:
    """What `--show-completion` prints is read by the shell without complaint, where that shell is installed."""
    done = place.ok(env={"_QIJU_COMPLETE": f"source_{shell}"})
    assert "qiju" in done.out
    if shell == "zsh":
        assert "funcstack" in done.out  # the first Tab counts, too
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    script.write_text(done.out, encoding="utf-8")
    checked = subprocess.run([program, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
