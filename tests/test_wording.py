"""Messages count things as people do, everywhere."""

from __future__ import annotations

import re
from pathlib import Path

from qiju.wording import counted

ROOT = Path(__file__).parent.parent


def test_one_and_several() -> None:
    assert [counted(n, "record") for n in (0, 1, 2)] == ["0 records", "1 record", "2 records"]
    assert [counted(n, "copy is", "copies are") for n in (1, 2)] == ["1 copy is", "2 copies are"]


def test_no_example_counts_one_of_several() -> None:
    """`sound: 1 records` stood in the README, as the program printed it."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    wrong = re.compile(r"(?<![\w.,:-])1 (records|events|projects|files|rows|candidates|sessions|hosts|tombstones)\b")
    assert [page.name for page in pages if wrong.search(page.read_text(encoding="utf-8"))] == []
