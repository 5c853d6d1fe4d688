"""Imports go downward only, and no module but `db` and its helpers opens the live store."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "qiju"

# From the bottom up. A module may import modules of its own row's layers and of those above it in this list.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("qiju", "errors"),
    ("values", "wording"),
    ("jsontext", "files", "cursor"),
    ("place", "record"),
    ("rows", "storekey", "spool", "projects", "hosts", "skills", "redaction", "staging", "query", "render", "legacy"),
    ("db", "migrate", "admission", "views"),
    ("store", "archive", "registry"),
    ("search", "trajectory", "install", "lookup", "stats"),
    ("transcripts", "keeping", "erasure", "browse", "mcp"),
    ("reading",),
    ("cli", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return "qiju" if first == "__init__.py" else first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The top modules of `qiju` that a file imports when it runs (imports for type checkers do not count)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()

    def add(module: str, names: list[str]) -> None:
        parts = module.split(".")
        if parts[0] == "qiju":
            found.update([parts[1]] if len(parts) > 1 else names or ["qiju"])

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for other in node.orelse:
                visit(other)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                add(alias.name, [])
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            add(node.module, [alias.name for alias in node.names])
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return {name if name in LEVEL else "qiju" for name in found}


def test_every_module_has_its_layer() -> None:
    """A new module must say where it belongs."""
    assert {layer_of(path) for path in MODULES} <= set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downward(path: Path) -> None:
    own = LEVEL[layer_of(path)]
    assert {name for name in imported(path) if LEVEL[name] > own} == set()


def test_the_standard_librarys_sqlite3_is_nowhere_in_the_package() -> None:
    """Two SQLite libraries on one file in one process break its locks; sqlite-utils is for other files only."""
    allowed = {"keeping/public_copy.py", "keeping/sources.py"}
    users = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.partition(".")[0] for name in names} & {"sqlite3", "sqlite_utils"}:
                users.add(path.relative_to(PACKAGE).as_posix())
    assert users <= allowed
