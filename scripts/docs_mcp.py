"""Write docs/reference/mcp.md from the tools' definitions; with --check, fail when the page is out of date."""

from __future__ import annotations

import sys
from typing import Any

from pages import REFERENCE, finish, table

PAGE = REFERENCE / "mcp.md"

HEAD = """# MCP server

<!-- Written by scripts/docs_mcp.py from qiju/mcp/tools.py. Change the tools there, then run the script. -->

`qiju mcp` offers the store to a client of the Model Context Protocol, on standard input and output. It reads only:
nothing in the store can be changed through it. It needs the extra `qiju[mcp]`; without it the command says how to
install it.

In the client's configuration, for example:

```json
{"mcpServers": {"qiju": {"command": "qiju", "args": ["mcp"]}}}
```

The server belongs to the project of the folder it is started in. `--project NAME` names another; in no project at all,
a search without `scope` covers everything.

## What it shows

Every answer names its `view`.

| tool | without `--view` | the command it stands for |
|---|---|---|
| `search_records`, `get_record` | `raw_private` | `qiju search`, `qiju show` |
| `list_sessions` | `raw_private` | `qiju trajectory sessions` |
| `read_page` | `redacted_public` | `qiju trajectory page` |

The client runs as you, on your machine, and may run those commands itself; so the server shows neither more nor less
than they do. Records were redacted when they were stored. The facts of sessions hold whole tool outputs, which is why
their raw form must be asked for by name. `--view raw_private` or `--view redacted_public` sets all four tools. Remember
that a client passes what it reads on to its model.

Under `redacted_public` words are still looked for in the stored text, so a hit can tell that a word is there.

## Pages

`next_cursor` is the way to the next page, `null` on the last. Give it with the same other arguments. A cursor belongs
to one query, view and snapshot: records written meanwhile do not appear, and when a record of the snapshot was
redacted, changed or deleted meanwhile, the cursor is refused and the search starts again. See
[snapshots and pages](../explanation/snapshots.md).

`read_page` stops at `max_tokens` (characters divided by four). A first row that is larger comes alone.

## Errors

A failed call has `isError` and one object, `{"error": {"kind", "message", "hint", "retryable", "exit_code"}}`, with the
kinds of [exit codes](exit-codes.md). Only the name of a tool that does not exist is an error of the protocol.

## Numbers

The answer comes twice: structured, and as JSON text. In the text every number has its stored digits. The structured
form has the nearest floating-point number, or the digits as a string where there is none (`1e400`).

## Tools

"""


def words(shape: dict[str, Any]) -> str:
    """A type, its choices and bounds, in words."""
    if "enum" in shape:
        return ", ".join(f"`{word}`" for word in shape["enum"])
    if shape.get("type") == "array":
        return "list of: " + words(shape["items"]) if "enum" in shape["items"] else f"list of {words(shape['items'])}s"
    said = str(shape["type"])
    if "maximum" in shape:
        said += f", {shape['minimum']} to {shape['maximum']}"
    elif "minimum" in shape:
        said += f", from {shape['minimum']}"
    return said


def page() -> str:
    """The whole page."""
    from qiju.mcp.tools import TOOLS

    parts = [HEAD]
    for tool in TOOLS:
        rows = []
        for name, shape in tool.takes["properties"].items():
            needed = " (required)" if name in tool.takes.get("required", ()) else ""
            default = f"`{shape['default']}`" if "default" in shape else ""
            rows.append((f"`{name}`{needed}", words(shape), default, shape.get("description", "")))
        gives = ", ".join(f"`{name}`" for name in tool.gives["properties"])
        parts.append(
            f"### {tool.name}\n\n{tool.description}\n\n"
            + table(("argument", "type", "default", "what"), rows)
            + f"\nGives: {gives}.\n\n"
        )
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(finish({PAGE: page()}))
