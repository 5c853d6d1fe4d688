"""Write docs/reference/trajectory-api.md from the docstrings of `qiju.trajectory`; with --check, compare."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
from typing import Any

from pages import REFERENCE, finish

PAGE = REFERENCE / "trajectory-api.md"

HEAD = """# Trajectory API: signatures

<!-- Written by scripts/docs_trajectory_api.py from qiju/trajectory/. Change the docstrings there, then run it. -->

Every name that `qiju.trajectory` exports, with its signature and what its docstring promises.
[Trajectories](trajectory.md) explains how they belong together.

"""


def signature(value: Any, name: str) -> str:
    """A call as a reader writes it, annotations as in the source."""
    try:
        text = str(inspect.signature(value))
    except ValueError:
        return name
    text = re.sub(r"<factory>|<object object at 0x[0-9a-f]+>", "...", text)
    text = re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", text)
    return name + text.replace("'", "").replace("qiju.trajectory.types.", "")


def block(code: str) -> str:
    return f"```python\n{code}\n```\n\n"


def said(value: Any) -> str:
    """A docstring as Markdown; indented lines are code."""
    text = inspect.cleandoc(value.__doc__ or "")
    return re.sub(r"(?m)^( {4}.*(?:\n {4}.*|\n(?= {4}))*)", lambda m: f"```text\n{m[1]}\n```", text).strip() + "\n\n"


def members(value: type) -> str:
    """The public methods and properties that the class itself defines and says something of."""
    parts = []
    for name, member in vars(value).items():
        inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not (inner.__doc__ and (inspect.isfunction(inner) or isinstance(inner, property))):
            continue
        if isinstance(inner, property):
            parts.append(f"`{value.__name__}.{name}` (property)\n\n{said(inner)}")
        else:
            bound = getattr(value, name) if isinstance(member, classmethod) else inner
            call = signature(bound, f"{value.__name__}.{name}").replace("(self, ", "(").replace("(self)", "()")
            parts.append(block(call) + said(inner))
    return "".join(parts)


def section(name: str, value: Any) -> str:
    """All about one name."""
    head = f"## {name}\n\n"
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return head + said(value) + "Members: " + ", ".join(f"`{one.name}` = `{one.value}`" for one in value) + "\n\n"
    if isinstance(value, type) and issubclass(value, Exception):
        return head + f"Error `{getattr(value, 'kind', '')}`. " + said(value)
    if isinstance(value, type):
        fields = ""
        if dataclasses.is_dataclass(value):
            fields = "Fields: " + ", ".join(f"`{field.name}`" for field in dataclasses.fields(value)) + "\n\n"
        protocol = getattr(value, "_is_protocol", False)
        call = "" if protocol else block(signature(value, name).replace(" -> None", ""))
        return head + call + said(value) + fields + members(value)
    if callable(value):
        return head + block(signature(value, name)) + said(value)
    return head + f"`{value!r}`\n\n" if isinstance(value, str | int) else head + f"`{name}` is an alias of types.\n\n"


def page() -> str:
    """The whole page."""
    import qiju.trajectory as api

    return HEAD + "".join(section(name, getattr(api, name)) for name in sorted(api.__all__)).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(finish({PAGE: page()}))
