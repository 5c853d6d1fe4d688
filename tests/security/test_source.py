"""What the source itself must not do: start a shell, or put a value into SQL text."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import qiju

PACKAGE = Path(qiju.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
EXECUTING = {"execute", "executemany", "executescript", "value"}
SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|WITH|ATTACH|REPLACE|VACUUM|SAVEPOINT)\b")
# What may stand between braces in SQL text: constants of the program, clauses that bind their values, and names that
# the schema itself gives. Each was looked at; a new one is looked at before it is added here.
KNOWN = Path(__file__).with_name("sql_parts.txt")


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node


def parsed() -> Iterator[tuple[Path, ast.Module]]:
    for path in FILES:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_no_shell_is_ever_started() -> None:
    found = []
    for path, tree in parsed():
        for call in calls(tree):
            name = ast.unparse(call.func)
            shell = [word for word in call.keywords if word.arg == "shell" and ast.unparse(word.value) != "False"]
            forbidden = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "eval", "exec")
            if shell or name in forbidden or name.startswith(("os.spawn", "commands.")):
                found.append(f"{path.relative_to(PACKAGE)}:{call.lineno} {name}")
    assert found == []


def test_nothing_that_runs_code_is_read_from_a_file() -> None:
    """No pickle, no marshal, no YAML: what Qiju reads is JSON, TOML, Parquet and SQLite."""
    found = []
    for path, tree in parsed():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.split(".")[0] for name in names} & {"pickle", "marshal", "shelve", "yaml", "dill"}:
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert found == []


def sql_parts(path: Path, tree: ast.Module) -> Iterator[str]:
    """Each `{expression}` of an f-string that is SQL: `file: expression`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        first = node.values[0]
        text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
        if not SQL.match(text) or text[:1].islower():
            continue
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield f"{path.relative_to(PACKAGE).as_posix()}: {ast.unparse(part.value)}"


def test_sql_takes_values_only_as_bindings() -> None:
    """Whatever is put into SQL text is in the list that was looked at."""
    found = sorted({part for path, tree in parsed() for part in sql_parts(path, tree)})
    known = KNOWN.read_text(encoding="utf-8").splitlines()
    assert [part for part in found if part not in known] == []
    assert len(found) > 50, "the search for SQL finds nothing any more"


def test_sql_is_not_put_together_with_percent_or_format() -> None:
    found = []
    for path, tree in parsed():
        for call in calls(tree):
            if not (isinstance(call.func, ast.Attribute) and call.func.attr in EXECUTING and call.args):
                continue
            sql = call.args[0]
            percent = isinstance(sql, ast.BinOp) and isinstance(sql.op, ast.Mod)
            formatted = isinstance(sql, ast.Call) and ast.unparse(sql.func).endswith(".format")
            if percent or formatted:
                found.append(f"{path.relative_to(PACKAGE)}:{call.lineno}")
    assert found == []


def test_the_dependencies_are_audited_where_they_are_installed() -> None:
    """tox has an environment for it; it needs the network, so it is not among the tests."""
    tox = PACKAGE.parent / "tox.ini"
    if not tox.exists():
        pytest.skip("only in a checkout")
    assert "pip_audit" in tox.read_text(encoding="utf-8")
    groups = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    assert any(name.startswith("pip-audit") for name in groups["audit"])
