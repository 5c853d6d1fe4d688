"""The reference page: its examples run, its tables say what the code says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import qiju.trajectory
from qiju.trajectory import RecordKind
from qiju.trajectory.public_fields import PUBLIC, USAGE

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "trajectory.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    part = PAGE.split(f"## {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in table[0].splitlines()[2:]]


def test_the_examples_run(tmp_path, monkeypatch):
    """All Python blocks, in their order, in one empty folder."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"trajectory.md, block {number}", "exec"), names)


def test_every_exported_name_is_listed_with_its_source():
    """And the source is where it is defined or, for types that are aliases, assigned."""
    listed = {name: cells[1].strip("`") for cells in rows("Names") for name in re.findall(r"`(\w+)`", cells[0])}
    assert set(listed) == set(qiju.trajectory.__all__)
    for name, source in listed.items():
        module = importlib.import_module(source.removesuffix(".py").replace("/", "."))
        assert getattr(module, name) is getattr(qiju.trajectory, name)


def test_every_exported_name_has_a_docstring():
    """What a user can import says what it is; functions name the errors they raise."""
    for name in qiju.trajectory.__all__:
        value = getattr(qiju.trajectory, name)
        if isinstance(value, type) or callable(value):
            assert value.__doc__, name


def test_the_public_keys_are_those_of_the_tables():
    """The page lists the top level of every kind's allow-list."""
    table = PAGE.split("keys of the payload that pass", 1)[1].split("\n\n", 1)[0]
    listed: dict[str, set[str]] = {}
    for line in table.splitlines()[2:]:
        kinds, keys = line.strip("| ").split(" | ")
        for kind in re.findall(r"`(\w+)`", kinds):
            listed[kind] = set(re.findall(r"`(\w+)`", keys))
    assert set(listed) == set(RecordKind)
    for kind, keys in listed.items():
        assert keys == set(PUBLIC[RecordKind(kind)]) - set(USAGE), kind


def test_the_committed_schema_is_that_of_the_code():
    """Made anew with `python -m qiju.trajectory.schema > schema/trajectory_record.schema.json`."""
    from qiju import jsontext
    from qiju.trajectory.schema import record_schema

    committed = Path(__file__).parents[2] / "schema" / "trajectory_record.schema.json"
    assert committed.read_text(encoding="utf-8") == jsontext.pretty(record_schema()) + "\n"
