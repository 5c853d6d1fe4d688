"""The protocol: the tools offered over standard input and output with the official SDK.

The definitions are handed to the SDK as they are (`tools`), so that what a model reads is what this project wrote. An
error of Qiju is the result of the call (`isError`, with the same object as `--json-errors` prints), which a model can
act on; only a tool that does not exist is an error of the protocol.
"""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

import qiju
from qiju import jsontext
from qiju.errors import QijuError, UsageError
from qiju.jsontext import JsonValue, Number
from qiju.mcp.answers import Answer, Answers
from qiju.mcp.tools import BY_NAME, INSTRUCTIONS, TOOLS

_VALIDATORS = {tool.name: Draft202012Validator(tool.takes) for tool in TOOLS}
_FLAG = re.compile(r"--([a-z][a-z-]*)")
_LONGEST_COMPLAINT = 300  # characters: a wrong argument is not sent back whole


def serve(answers: Answers) -> None:
    """Answer on standard input and output until the client goes away."""
    anyio.run(_serve, server_for(answers))


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def server_for(answers: Answers) -> Server[Any]:
    """The server over these answers, for any transport."""

    async def on_list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=definitions())

    async def on_call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in BY_NAME:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name[:60]!r}; there are {', '.join(BY_NAME)}"
            )
        return await anyio.to_thread.run_sync(_called, answers, params.name, params.arguments or {})

    return Server(
        "qiju",
        version=qiju.__version__,
        title="Qiju",
        instructions=INSTRUCTIONS,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


def definitions() -> list[types.Tool]:
    """The tools as the client gets them."""
    reading = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    return [
        types.Tool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.takes,
            output_schema=tool.gives,
            annotations=reading,
        )
        for tool in TOOLS
    ]


def _called(answers: Answers, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    try:
        _check(name, arguments)
        # JSON Schema takes 1.0 for an integer, and so do clients whose numbers are all floating.
        whole = {word: int(value) if isinstance(value, float) else value for word, value in arguments.items()}
        return _result(answers.answer(name, whole))
    except QijuError as error:
        told = error.to_json()
        told["message"], told["hint"] = _named(str(error)), _named(error.hint)
        return _result({"error": told}, failed=True)  # type: ignore[dict-item]
    except OSError as error:
        failed = QijuError(f"{error.strerror or type(error).__name__}", hint="'qiju doctor' looks at the store")
        return _result({"error": failed.to_json()}, failed=True)  # type: ignore[dict-item]


def _result(answer: Answer, *, failed: bool = False) -> types.CallToolResult:
    """The answer twice, as the protocol asks: structured, and as text, where every number stands as it was stored."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=jsontext.line(answer))],
        structured_content=_plain(answer),
        is_error=failed,
    )


def _check(name: str, arguments: dict[str, Any]) -> None:
    """Raises `UsageError` naming the first argument that the tool's schema refuses, or that is no Unicode text."""
    for argument, value in arguments.items():
        try:
            json.dumps([argument, value], ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(
                "an argument holds half a character (a lone surrogate)", hint=f"send {name} whole Unicode text"
            ) from None
    problem = next(
        iter(sorted(_VALIDATORS[name].iter_errors(arguments), key=lambda found: list(map(str, found.path)))), None
    )
    if problem is None:
        return
    where = ".".join(map(str, problem.path))
    said = problem.message if len(problem.message) <= _LONGEST_COMPLAINT else f"it breaks {problem.validator!r}"
    takes = ", ".join(BY_NAME[name].takes["properties"])
    raise UsageError(f"{where}: {said}" if where else said, hint=f"{name} takes {takes}")


def _named(text: str) -> str:
    """A sentence of the command line, with what this server calls its flags and its search."""
    return _FLAG.sub(lambda flag: flag[1].replace("-", "_"), text).replace("'qiju search'", "search_records")


def _plain(value: JsonValue) -> Any:
    """A value as the SDK can send it. A number that no reader could take (`1e400`) is its text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Number):
        number = float(value.token)
        return value.token if number in (float("inf"), float("-inf")) else number
    return value
