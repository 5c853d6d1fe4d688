"""Write docs/reference/exit-codes.md from the error classes; with --check, fail when the page is out of date."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from pages import REFERENCE, finish, table

PAGE = REFERENCE / "exit-codes.md"

HEAD = """# Exit codes and errors

<!-- Written by scripts/docs_exit_codes.py from the error classes. Change the classes, then run the script. -->

| code | meaning |
|---|---|
| 0 | done; a search that finds nothing is done, too |
| 1 | failed |
| 2 | the words of the call are wrong |
| 3 | not found |
| 4 | refused, to keep data safe |
| 5 | the store is busy: the same call may succeed later |
| 130 | interrupted |

`qiju hook` always exits with 0, whatever happens: to some hosts another code means that the agent must stop.

With a JSON format, `--json` or `--json-errors` an error is one JSON object on standard error:

```json
{"error": {"kind": "not_found", "message": "...", "hint": "...", "retryable": false, "exit_code": 3}}
```

`kind` is stable; scripts may rely on it. Sentences and hints may change. They never hold the text of a record or a
secret. The same object is what the MCP server gives as the result of a failed call. In Python the classes are in
`qiju.errors` unless another module is named.

## Every kind of error

"""


def classes() -> list[type[Exception]]:
    """Every error class of the package, base first."""
    import qiju
    from qiju.errors import QijuError

    for module in pkgutil.walk_packages(qiju.__path__, "qiju."):
        optional = ("qiju.__main__", "qiju.mcp.server", "qiju.browse")
        if not module.name.startswith(optional):
            importlib.import_module(module.name)
    found: list[type[Exception]] = []

    def walk(one: type[Exception]) -> None:
        if one not in found:
            found.append(one)
            for inner in sorted(one.__subclasses__(), key=lambda cls: (cls.exit_code, cls.__name__)):  # type: ignore[attr-defined]
                walk(inner)

    walk(QijuError)
    return [one for one in found if one.__module__.startswith("qiju") and not one.__name__.startswith("_")]


def page() -> str:
    """The whole page."""
    rows = []
    for one in classes():
        module = "" if one.__module__ == "qiju.errors" else f" (`{one.__module__}`)"
        kind, code, retryable, meaning = (getattr(one, name) for name in ("kind", "exit_code", "retryable", "meaning"))
        rows.append((f"`{kind}`", str(code), "yes" if retryable else "no", f"`{one.__name__}`{module}", meaning))
    rows.sort(key=lambda row: int(row[1]))
    return HEAD + table(("kind", "code", "retryable", "class", "meaning"), rows)


if __name__ == "__main__":
    sys.exit(finish({PAGE: page()}))
