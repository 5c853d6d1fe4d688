"""What the generators of pages share: write a file, or with --check say that it is out of date."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"

sys.path.insert(0, str(ROOT))


def finish(files: dict[Path, str]) -> int:
    """Write the files, or compare them when the words of the call hold --check. The exit code."""
    checking = "--check" in sys.argv[1:]
    stale = 0
    for path, text in files.items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if checking:
            print(f"{path.relative_to(ROOT)} is out of date: run {Path(sys.argv[0]).name}", file=sys.stderr)
            stale = 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return stale


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
