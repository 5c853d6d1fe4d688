"""The command line. One file per command; `frame` runs one, `app` is the whole of it for Typer.

An agent starts one process a call, so the three commands it calls all day (`log`, `search`, `show`) are parsed from
their option tables without Typer (`quick`). Whatever that parser does not understand at once (help, a mistake, shell
completion) goes to Typer, which is built from the same tables and therefore says the same.
"""

from __future__ import annotations


def main() -> None:
    """The `qiju` program."""
    import sys

    from qiju.cli.frame import run

    sys.exit(run(sys.argv[1:]))
