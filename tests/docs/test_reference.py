"""The reference says what the program does: generated pages are up to date, and nothing is left out."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju.errors import InvalidRecord
from qiju.record import FIELDS, Record

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATORS = [ROOT / "scripts" / "schema_files.py", *sorted((ROOT / "scripts").glob("docs_*.py"))]


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("script", GENERATORS, ids=lambda path: path.stem)
def test_generated_files_are_up_to_date(script: Path) -> None:
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_is_in_the_reference() -> None:
    """A command that exists as a module has a section, and each is listed in a group of `qiju --help`."""
    from qiju.cli.app import GROUPS

    page = text("reference/cli.md")
    for names in GROUPS.values():
        for name in names:
            module = ROOT / "qiju" / "cli" / (("import_" if name == "import" else name.replace("-", "_")) + ".py")
            if module.exists():
                assert f"\n## qiju {name}\n" in page


def test_every_error_class_is_in_the_reference() -> None:
    """Every subclass of QijuError anywhere in the source, found without importing it."""
    page = text("reference/exit-codes.md")
    known = {"QijuError"}
    classes: dict[str, set[str]] = {}
    for path in (ROOT / "qiju").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                classes.setdefault(node.name, set()).update(bases)
    while more := {name for name, bases in classes.items() if name not in known and known & bases}:
        known |= more
    assert len(known) > 20
    for name in known:
        assert name.startswith("_") or f"`{name}`" in page, name


def test_every_setting_and_variable_is_documented() -> None:
    page = text("reference/configuration.md")
    used = set()
    for path in (ROOT / "qiju").rglob("*.py"):
        used |= set(re.findall(r'"(QIJU_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert {"QIJU_HOME", "QIJU_SESSION_ID"} <= used
    for name in used:
        assert f"`{name}`" in page, name


def test_every_page_is_in_the_index_and_every_link_leads_somewhere() -> None:
    listed = set(re.findall(r"^([a-z-]+(?:/[a-z-]+)?)$", text("index.md"), re.M))
    pages = {
        path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md") if "_build" not in path.parts
    }
    assert listed == pages - {"index"}
    for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        if "_build" in path.parts:
            continue
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
            if not link.startswith(("http", "#")):
                assert (path.parent / link.split("#")[0]).exists(), f"{path.name}: {link}"


def test_the_architecture_page_names_every_layer_in_its_order() -> None:
    """The table is that of the test that enforces the layers."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    (layers,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "LAYERS"
    ]
    table = text("architecture.md").split("## Layers", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    named: dict[str, int] = {}
    for number, where, _what in rows:
        for name in re.findall(r"`qiju/(\w+?)(?:\.py|/)`", where):
            named["qiju" if name == "__init__" else name] = int(number)
    wanted = {name: number for number, names in enumerate(layers, 1) for name in names}
    wanted = {name: number for name, number in wanted.items() if name == "qiju" or _exists(name)}
    assert named == wanted


def _exists(name: str) -> bool:
    return (ROOT / "qiju" / name).is_dir() or (ROOT / "qiju" / f"{name}.py").is_file()


SCHEMA = json.loads((ROOT / "schema" / "record.schema.json").read_text(encoding="utf-8"))
WHOLE = {
    "schema_version": 2, "id": "s:1", "ts": "2026-03-01T09:00:00Z", "project": "p", "agent": "a", "source": "agent",
    "title": "t", "tags": [], "search_terms": [], "next_steps": [], "redactions": [], "body_md": "b",
}  # fmt: skip


def test_the_schema_of_a_record_has_its_fields() -> None:
    assert set(SCHEMA["properties"]) == set(FIELDS)
    assert set(SCHEMA["required"]) == set(FIELDS) - {"model", "model_effort"}


@given(
    st.sampled_from(FIELDS),
    st.one_of(
        st.text(max_size=3), st.integers(-2, 3), st.booleans(), st.lists(st.text(max_size=2), max_size=2),
        st.sampled_from(["manual", "s:1", "a b:1", "s:0", "s:01", "é:7", "s\x1f:1"]),
        st.lists(st.dictionaries(st.text(max_size=1), st.none(), max_size=1), max_size=1),
    ),
)  # fmt: skip
def test_the_schema_and_the_program_agree_on_what_a_record_is(name: str, value: object) -> None:
    """One field of a whole record replaced by anything. What the schema takes is a record; what the program takes
    is printed as the schema says (it takes a little more: null, and times that are no strings)."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = jsonschema.Draft202012Validator(SCHEMA)
    changed = {**WHOLE, name: value}
    try:
        printed = Record.from_json(changed).to_json()  # type: ignore[arg-type]
    except InvalidRecord:
        assert not schema.is_valid(changed)
    else:
        assert schema.is_valid(printed)
