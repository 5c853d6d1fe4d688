"""The quick parser and Typer read one table: for any words they agree, or the quick one gives up."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer import main as typer_main
from typer import rich_utils as _unused  # noqa: F401 - loaded once here, not inside the first example

from qiju.cli import app, frame, quick
from qiju.cli.options import COMMON, Command

COMMANDS: dict[str, Command] = {
    name: import_module(f"qiju.cli.{module}").COMMAND for name, module in frame.QUICK.items()
}


def by_typer(command: Command, words: list[str]) -> dict[str, Any] | None:
    """What Typer would hand to the command's body, or None when it refuses the words."""
    seen: list[dict[str, Any]] = []
    spy = command._replace(run=lambda context, **values: seen.append(values))
    built = app.typer.Typer(rich_markup_mode=None)
    built.command(spy.name)(app._from_table(spy))
    built.callback()(lambda: None)
    app._add_common(built)
    try:
        typer_main.get_command(built).main(args=[spy.name, *words], standalone_mode=False)
    except app.exceptions.ClickException:
        return None
    return seen[0] if seen else None


def words_for(command: Command) -> st.SearchStrategy[list[str]]:
    """Plausible and implausible words: every flag of the table, values that fit and that do not."""
    flags = [flag for option in (*command.options, *COMMON) for flag in option.flags]
    choices = sorted({choice for option in command.options for choice in option.choices})
    value = st.sampled_from([*choices, "x", "5", "-3", "--dash", "", "a b", "é", "1.5", "--", "-"])
    word = st.one_of(
        st.sampled_from(flags),
        st.tuples(st.sampled_from(flags), value).map("=".join),
        value,
    )
    return st.lists(word, max_size=6)


@pytest.mark.parametrize("name", COMMANDS)
@given(data=st.data())
def test_both_parsers_read_alike(name: str, data: st.DataObject) -> None:
    command = COMMANDS[name]
    words = data.draw(words_for(command))
    mine = quick.parse(command, words)
    if mine is None:
        return  # left to Typer, which then decides alone
    for option in COMMON:
        mine.pop(option.name)
    assert mine == by_typer(command, words)


@pytest.mark.parametrize("name", COMMANDS)
def test_ordinary_calls_do_not_fall_back(name: str) -> None:
    """The quick parser must really be used: every option of the table, given properly, is understood."""
    command = COMMANDS[name]
    words: list[str] = []
    for option in (*command.options, *COMMON):
        words.append(option.flags[0])
        if option.kind is not bool:
            words.append(option.choices[0] if option.choices else "5")
    if command.argument is not None:
        words.append("x")
    assert quick.parse(command, words) is not None
    assert quick.parse(command, [*words, "--no-such-option"]) is None
    assert quick.parse(command, ["--help"]) is None
