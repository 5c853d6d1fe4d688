"""Every example of the documentation runs, and prints what its page says."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import console_examples  # noqa: E402 - a script, not a module of the package

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_EXAMPLES = [
    page
    for page in PAGES
    if "_build" not in page.parts and re.search(r"^```(console|sh|json|toml)\b", page.read_text(encoding="utf-8"), re.M)
]
TOOLS = ("bash", "git", "sqlite3")

needs_a_shell = pytest.mark.skipif(
    not sys.platform.startswith("linux") or any(shutil.which(tool) is None for tool in TOOLS),
    reason="the pages are written for a Linux shell with git and sqlite3",
)


@needs_a_shell
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_do_what_the_page_says(page: Path) -> None:
    assert console_examples.run_page(page) == []


def test_every_page_that_shows_the_program_is_run() -> None:
    """The tutorial and the how-to pages have examples; a block marked `norun` is about what a test cannot do."""
    names = {page.relative_to(ROOT).as_posix() for page in WITH_EXAMPLES}
    assert {"README.md", "docs/tutorial.md", "docs/how-to/hand-over.md", "docs/how-to/restore.md"} <= names
    for page in WITH_EXAMPLES:
        for match in re.finditer(r"^```(\w+) norun\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for line in match[2].splitlines():
                assert re.match(r"(uv |pip |pipx |npx |python3 |qiju browse|git clone|cd )", line), (page.name, line)


def test_the_runner_sees_a_wrong_output(tmp_path: Path) -> None:
    """A comparison that accepts everything would be worth nothing."""
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n```\n\n```json\n{\n```\n", encoding="utf-8")
    first, second = sorted(console_examples.run_page(page)) if sys.platform.startswith("linux") else ("two", "json")
    assert "two" in first
    assert "json" in second
    assert not console_examples.same("one\ntwo", "one")
    assert console_examples.same("a\n...\nz", "a\nb\nc\nz")
    assert not console_examples.same("a\n...\nz", "a\nb\nc")


def test_only_what_differs_from_run_to_run_is_masked() -> None:
    same = console_examples.same
    assert same("at 2026-03-01T09:00:00Z", "at 2027-12-31T23:59:59.5+00:00")
    assert same("[REDACTED:email:00000000]", "[REDACTED:email:12345678]")
    assert not same("[REDACTED:email:00000000]", "[REDACTED:phone:12345678]")
    assert not same("12 records", "13 records")
