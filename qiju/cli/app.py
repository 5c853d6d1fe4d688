"""The whole command line for Typer: help, mistakes, completion, and every command that is not hot.

Commands are listed here with their group; each is a module of this package with a `COMMAND` table or a
`register(app)`. Only the module of the command that is called is imported. The options that every command takes are
added here, in one place, to whatever a module registered.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
from typer._click import core as click
from typer._click import exceptions, formatting
from typer.core import TyperGroup

from qiju.cli.completion import FLAGS
from qiju.cli.context import Context, set_current
from qiju.cli.frame import wants_json
from qiju.cli.options import COMMON, Command, Option
from qiju.errors import UsageError

GROUPS = {
    "Record": ("log", "temp-entry"),
    "Find": ("search", "show", "projects", "stats", "browse", "trajectory"),
    "Keep": ("redact", "delete", "maintain", "import", "export", "backup", "restore", "verify", "doctor", "migrate"),
    "Set up": ("init", "update", "uninstall", "path", "hook", "mcp"),
}
"""Every command, by what it is for, in the order of `qiju --help`."""

_KEYWORDS = {"import": "import_"}
COMPLETING = "_QIJU_COMPLETE" in os.environ
HELP = "Structured records of coding sessions: written on request, redacted, found again by exact search."
EPILOG = "Start with: qiju init · qiju log --source manual --body FILE · qiju search --query WORDS · qiju show ID"


def module_name(command: str) -> str:
    """The module that holds a command."""
    return "qiju.cli." + _KEYWORDS.get(command, command.replace("-", "_"))


class Grouped(TyperGroup):
    """The command list of `--help`, in groups."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in GROUPS.values() for name in names if name in self.commands]

    def format_commands(self, ctx: click.Context, formatter: formatting.HelpFormatter) -> None:
        for group, names in GROUPS.items():
            rows = [(n, self.commands[n].get_short_help_str(limit=200)) for n in names if n in self.commands]
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


def build(only: str | None = None) -> typer.Typer:
    """The Typer app with all commands, or with just the one that is called."""
    app = typer.Typer(
        cls=Grouped,
        help=HELP,
        epilog=EPILOG,
        invoke_without_command=True,
        no_args_is_help=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    known = [name for names in GROUPS.values() for name in names]
    for name in [only] if only in known else known:
        assert name is not None
        module = import_module(module_name(name))
        table = getattr(module, "COMMAND", None)
        if isinstance(table, Command):
            app.command(table.name, help=table.help)(_from_table(table))
        else:
            module.register(app)
    _add_common(app)
    app.callback()(_root)
    return app


def run_typer(words: list[str]) -> int:
    """Parse and run with Typer. Raises `UsageError` for what the words get wrong."""
    only = words[0] if words and not words[0].startswith("-") and not COMPLETING else None
    command = typer.main.get_command(build(only))
    if COMPLETING or "--install-completion" in words or "--show-completion" in words:
        from qiju.cli.completion import mend_bash, mend_zsh

        mend_bash()
        mend_zsh()
    if only is not None and isinstance(command, TyperGroup) and only not in command.commands:
        command = typer.main.get_command(build())
    try:
        result = command.main(args=words, prog_name="qiju", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except exceptions.ClickException as error:
        raise _usage(error) from None
    return result if isinstance(result, int) else 0


def _usage(error: exceptions.ClickException) -> UsageError:
    hint = ""
    message = " ".join(error.format_message().split())  # Click puts each choice of a missing option on a line
    if isinstance(error, exceptions.UsageError) and error.ctx is not None:
        hint = f"'{error.ctx.command_path} --help' lists what it takes"
        takes_words = any("--query" in parameter.opts for parameter in error.ctx.command.params)
        if takes_words and message.startswith("Got unexpected extra argument"):
            hint = f"words to look for are passed with --query 'WORDS'; {hint}"
        if isinstance(error, exceptions.NoSuchOption) and (error.possibilities or error.option_name):
            near = f"did you mean {', '.join(error.possibilities)}? " if error.possibilities else ""
            hint = f"{near}text that begins with '-' is passed as --query='{error.option_name}'; {hint}"
    return UsageError(message, hint=hint)


def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    home: Annotated[str | None, typer.Option("--home", metavar="DIR", help=COMMON[0].help)] = None,
) -> int:
    if version:
        import qiju

        typer.echo(f"qiju {qiju.__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        from qiju.cli.overview import run

        context = Context("", home=home)
        set_current(context)
        return run(context)
    ctx.obj = home
    return 0


def _from_table(table: Command) -> Callable[..., int]:
    """A function with the signature Typer expects, made from an option table."""
    parameters = [inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    if table.argument is not None:
        argument = table.argument
        made = typer.Argument(
            ... if argument.required else None,
            metavar=argument.metavar,
            help=argument.help,
            autocompletion=_completion(argument.complete),
        )
        parameters.append(
            inspect.Parameter(argument.name, inspect.Parameter.KEYWORD_ONLY, annotation=list[str], default=made)
        )
    parameters.extend(_parameter(option) for option in table.options)

    def body(ctx: typer.Context, **values: Any) -> int:
        if table.argument is not None:
            values[table.argument.name] = tuple(values[table.argument.name] or ())
        for option in table.options:
            if option.multiple:
                values[option.name] = tuple(str(v) if option.choices else v for v in values[option.name] or ())
        return int(table.run(_current_context(), **values) or 0)

    body.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    body.__name__ = table.name.replace("-", "_")
    body.json_formats = table.json_formats  # type: ignore[attr-defined]
    return body


def _current_context() -> Context:
    from qiju.cli.context import current

    return current()


def _parameter(option: Option) -> inspect.Parameter:
    flags = list(option.flags)
    if option.off:
        flags[-1] = f"{flags[-1]}/{option.off}"
    default: Any = ... if option.required else option.default
    if option.multiple:
        default = None
    made = typer.Option(
        default,
        *flags,
        help=option.help,
        metavar=option.metavar or None,
        autocompletion=_completion(option.complete or next((FLAGS[f] for f in option.flags if f in FLAGS), "")),
        show_default=_shown_default(option),
    )
    kind: Any = Literal[option.choices] if option.choices else option.kind
    if option.multiple:
        # Typer takes no list of literals; members of a StrEnum are texts.
        inner = StrEnum(option.name, {word: word for word in option.choices}) if option.choices else option.kind
        kind = list[inner] | None  # type: ignore[valid-type]
    elif option.default is None and not option.required:
        kind = kind | None
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=made)


def _shown_default(option: Option) -> bool:
    return not (option.kind is bool or option.default is None)


def _completion(what: str) -> Callable[..., list[str]] | None:
    if what in ("", "path") or not COMPLETING:
        return None
    from qiju.cli.completion import for_words

    return for_words(what)


def _add_common(app: typer.Typer, prefix: str = "") -> None:
    """Give every registered command, of sub-apps too, the options that all commands take."""
    for info in app.registered_commands:
        assert info.callback is not None
        name = info.name or info.callback.__name__.replace("_", "-")
        info.callback = _with_common(info.callback, f"{prefix}{name}")
    for group in app.registered_groups:
        if group.typer_instance is not None and group.name:
            _add_common(group.typer_instance, f"{prefix}{group.name} ")
            body = group.typer_instance.registered_callback
            if body is not None and body.callback is not None:
                body.callback = _with_common(body.callback, f"{prefix}{group.name}")


def _with_common(body: Callable[..., Any], name: str) -> Callable[..., Any]:
    if hasattr(body, "qiju_common"):
        return body
    signature = inspect.signature(body, eval_str=True)
    if COMPLETING:
        from qiju.cli.completion import equip

        for parameter in signature.parameters.values():
            equip(parameter.annotation)
    missing = [_parameter(option) for option in COMMON if option.name not in signature.parameters]
    needs_ctx = "ctx" in signature.parameters
    kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values() if p.name != "ctx"]
    ctx_parameter = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    @functools.wraps(body)
    def wrapped(ctx: typer.Context, **values: Any) -> Any:
        common = {option.name: values.pop(option.name) for option in COMMON}
        formats = getattr(body, "json_formats", ("json", "jsonl"))
        home = common["home"] or (ctx.find_root().obj if isinstance(ctx.find_root().obj, str) else None)
        if ctx.invoked_subcommand is not None:
            ctx.find_root().obj = home  # `qiju projects --home DIR merge ...`: the option counts for what follows
        set_current(
            Context(
                name,
                home=home,
                json_errors=common["json_errors"] or wants_json(values, formats),
                no_color=common["no_color"],
            )
        )
        return body(ctx=ctx, **values) if needs_ctx else body(**values)

    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[ctx_parameter, *kept, *missing], return_annotation=inspect.Signature.empty
    )
    wrapped.__annotations__ = {p.name: p.annotation for p in (ctx_parameter, *kept, *missing)}
    wrapped.qiju_common = True  # type: ignore[attr-defined]
    return wrapped
