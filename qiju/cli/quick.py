"""Parse the words of a hot command from its option table, as Typer would, or leave them to Typer.

`parse` gives up (None) on everything out of the ordinary: `--help`, an unknown option, a missing or unfit value. Typer
then parses the same words from the same table and words the error. A test holds the two against each other.
"""

from __future__ import annotations

from qiju.cli.options import COMMON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parse(command: Command, words: list[str]) -> dict[str, Any] | None:
    """Every option's and argument's value by name, or None when Typer should look at the words."""
    options = (*command.options, *COMMON)
    by_flag: dict[str, tuple[Option, bool]] = {}
    values: dict[str, Any] = {}
    for option in options:
        values[option.name] = () if option.multiple else option.default
        for flag in option.flags:
            by_flag[flag] = (option, True)
        if option.off:
            by_flag[option.off] = (option, False)
    positional: list[str] = []
    given: set[str] = set()
    place, end = 0, len(words)
    while place < end:
        word = words[place]
        place += 1
        if word == "--":
            positional.extend(words[place:])
            break
        if word[:1] != "-" or word == "-":
            positional.append(word)
            continue
        flag, equals, value = word.partition("=")
        if flag not in by_flag or (equals and flag[:2] != "--"):  # to Typer, the value of `-q=x` is `=x`
            return None
        option, on = by_flag[flag]
        if option.kind is bool:
            if equals:
                return None
            values[option.name] = on
            continue
        if not equals:
            if place == end:
                return None
            value = words[place]
            place += 1
        fit = _fit(option, value)
        if fit is None:
            return None
        values[option.name] = (*values[option.name], fit) if option.multiple else fit
        given.add(option.name)
    if any(option.required and option.name not in given for option in options):
        return None
    argument = command.argument
    if argument is None:
        return None if positional else values
    if argument.required and not positional:
        return None
    values[argument.name] = tuple(positional)
    return values


def _fit(option: Option, value: str) -> Any:
    if option.choices:
        return value if value in option.choices else None
    if option.kind is str:
        return value
    try:
        return option.kind(value)
    except ValueError:
        return None
