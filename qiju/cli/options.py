"""A command's options as data: one table that the quick parser and Typer both read.

A command module defines `COMMAND`. Its `run` gets the `Context` first, then every option and argument by name.
"""

from __future__ import annotations

from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Option(NamedTuple):
    """One option. `kind` is str, int, float or bool; `off` is the flag that turns a bool off again."""

    name: str
    flags: tuple[str, ...]
    help: str
    kind: type = str
    default: Any = None
    choices: tuple[str, ...] = ()
    multiple: bool = False
    required: bool = False
    metavar: str = ""
    off: str = ""
    complete: str = ""  # what completes its value (`qiju.cli.completion`), or `path`; '' is what its flag says


class Argument(NamedTuple):
    """Positional words: at least one when `required`; a tuple reaches `run`."""

    name: str
    help: str
    metavar: str
    required: bool = True
    complete: str = ""


class Command(NamedTuple):
    """A command: its words, and the function that does it and returns the exit code (None counts as 0)."""

    name: str
    help: str
    options: tuple[Option, ...]
    run: Callable[..., int | None]
    argument: Argument | None = None
    json_formats: tuple[str, ...] = ()  # values of --format with which errors are JSON, too


COMMON = (
    Option("home", ("--home",), "Folder of the store; outweighs QIJU_HOME.", metavar="DIR"),
    Option("json_errors", ("--json-errors",), "Print errors as one JSON object on standard error.", bool, False),
    Option("no_color", ("--no-color",), "No colour, as with NO_COLOR.", bool, False),
)
"""What every command takes."""
