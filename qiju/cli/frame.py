"""Around every command: streams, the choice of parser, and the one place where errors become output and exit codes."""

from __future__ import annotations

import os
import sys

from qiju.cli.context import Context, current, inert, set_current
from qiju.errors import Interrupted, QijuError, StorageFailed, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

QUICK = {"log": "log", "search": "search", "show": "show", "temp-entry": "temp_entry"}
"""Commands that are parsed without Typer, and the modules of this package that hold their `COMMAND`."""


def run(words: list[str]) -> int:
    """Run one call of the program and return its exit code."""
    _set_up_streams()
    set_current(Context(_command_name(words), json_errors="--json-errors" in words))
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except QijuError as error:
        return _report(error)
    except KeyboardInterrupt:
        return _report(Interrupted("interrupted", hint="nothing was half done; run the same command again"))
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        if os.environ.get("QIJU_DEBUG"):
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _report(
            StorageFailed(f"{where}{error.strerror or error}", hint="check the path, its permissions and the disk")
        )
    except Exception as error:
        if isinstance(error, UnicodeEncodeError) and not _all_text(words):
            return _report(
                UsageError(
                    "an argument or a QIJU_ variable holds bytes that are not UTF-8 text",
                    hint="only a path may; type the value in a terminal that writes UTF-8",
                )
            )
        if os.environ.get("QIJU_DEBUG"):
            raise
        if type(error).__module__ == "apsw":  # from a database other than the live store, whose own are translated
            from qiju.db import translation

            return _report(translation(error, None))
        return _report(
            QijuError(
                f"a fault in Qiju itself: {type(error).__name__}",
                hint="run it again with QIJU_DEBUG=1 and report what that shows (it may quote a record: look first)",
            )
        )


def _all_text(words: list[str]) -> bool:
    """Whether the call's words and variables are Unicode text; bytes that are not stand in them as lone surrogates."""
    given = (*words, *(value for name, value in os.environ.items() if name.startswith("QIJU_")))
    return not any("\ud800" <= letter <= "\udfff" for text in given for letter in text)


def _dispatch(words: list[str]) -> int:
    if words and words[0] in QUICK and "_QIJU_COMPLETE" not in os.environ:
        from importlib import import_module

        from qiju.cli import quick

        command = import_module(f"qiju.cli.{QUICK[words[0]]}").COMMAND
        values = quick.parse(command, words[1:])
        if values is not None:
            return call(command, values)
    from qiju.cli.app import run_typer

    return run_typer(words)


def call(command: Any, values: dict[str, Any]) -> int:
    """Set the context from the common options, and run the command's body with the rest."""
    context = Context(
        command.name,
        home=values.pop("home"),
        json_errors=values.pop("json_errors") or wants_json(values, command.json_formats),
        no_color=values.pop("no_color"),
    )
    set_current(context)
    return int(command.run(context, **values) or 0)


def wants_json(values: dict[str, Any], formats: tuple[str, ...] = ("json", "jsonl")) -> bool:
    """Whether the call asked for JSON in so many words: `--json`, or `--format` with a JSON format."""
    return values.get("json") is True or values.get("as_json") is True or values.get("format") in formats


def _report(error: QijuError) -> int:
    """The error on standard error: a sentence and a hint, or one JSON object."""
    if os.environ.get("QIJU_DEBUG"):
        import traceback

        traceback.print_exc()
    elif "_QIJU_COMPLETE" in os.environ:
        return error.exit_code  # the shell would print it into the line being typed
    context = current()
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout)
    try:
        if context.json_errors:
            from qiju import jsontext

            print(jsontext.line({"error": error.to_json()}), file=sys.stderr)  # type: ignore[dict-item]
        else:
            name = f"qiju {context.command}".rstrip()
            print(f"{name}: {inert(str(error))}", file=sys.stderr)
            if error.hint:
                print(f"  hint: {inert(error.hint)}", file=sys.stderr)
    except OSError:
        _silence(sys.stderr)
    return error.exit_code


def _reader_gone() -> int:
    """The reader of a pipe went away: quiet, and no second complaint when Python flushes at exit."""
    _silence(sys.stdout)
    return 0


def _silence(stream: Any) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stream.fileno())
    finally:
        os.close(null)


def _set_up_streams() -> None:
    """UTF-8 in and out whatever the locale; what cannot be encoded (a lone surrogate in a path) is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdin is not None and hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # answers to a question; data is read as bytes


def _command_name(words: list[str]) -> str:
    return words[0] if words and not words[0].startswith("-") else ""
