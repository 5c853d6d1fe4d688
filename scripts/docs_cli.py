"""Write docs/reference/cli.md from the program's own help; with --check, fail when the page is out of date."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from pages import REFERENCE, finish

PAGE = REFERENCE / "cli.md"
WIDTH = 100

HEAD = """# Commands

<!-- Written by scripts/docs_cli.py from the program's help. Change the help there, then run the script. -->

This is what `qiju COMMAND --help` prints. What holds for all commands:

- Data goes to standard output, everything else to standard error. Output is UTF-8. A closed pipe ends a command
  quietly.
- An error is a sentence and a hint. With a JSON format, `--json` or `--json-errors` it is one JSON object on standard
  error: `{"error": {"kind", "message", "hint", "retryable", "exit_code"}}`. See [exit codes](exit-codes.md).
- `--home DIR` names the store, and outweighs `QIJU_HOME`. See [configuration](configuration.md).
- Colour and progress appear on a terminal only; `NO_COLOR`, `TERM=dumb` and `--no-color` switch colour off.
- A value that begins with `-` is passed as `--query='-value'`.
- `qiju --install-completion` sets up completion in your shell: commands, options, projects, hosts, tags, ids.

"""


def commands() -> Iterator[tuple[str, object, object]]:
    """Every command, subcommands included: its words, the command and its context."""
    import typer
    from typer._click.core import Context
    from typer.core import TyperGroup

    from qiju.cli.app import build

    def walk(name: str, command: object, parent: object) -> Iterator[tuple[str, object, object]]:
        context = Context(
            command,
            info_name=name,
            parent=parent,
            terminal_width=WIDTH,
            max_content_width=WIDTH,
            **command.context_settings,
        )
        yield context.command_path, command, context
        if isinstance(command, TyperGroup):
            for word in command.list_commands(context):
                inner = command.get_command(context, word)
                if inner is not None and not inner.hidden:
                    yield from walk(word, inner, context)

    yield from walk("qiju", typer.main.get_command(build()), None)


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for path, command, context in commands():
        level = "##" if path.count(" ") <= 1 else "###"
        text = command.get_help(context)  # type: ignore[attr-defined]
        lines = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
        parts.append(f"{level} {path}\n\n```text\n{lines}\n```\n\n")
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    for variable in ("COLUMNS", "TERMINAL_WIDTH", "FORCE_COLOR"):
        os.environ.pop(variable, None)
    os.environ["NO_COLOR"] = "1"
    sys.exit(finish({PAGE: page()}))
