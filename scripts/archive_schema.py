"""Write `schema/archive.arrow.json`, the committed description of the archive's Arrow schema.

    python scripts/archive_schema.py

A test compares the file with what the code says, so a changed column cannot slip past a review.
"""

from __future__ import annotations

import json
from pathlib import Path

from qiju.archive import describe_schema

TARGET = Path(__file__).parent.parent / "schema" / "archive.arrow.json"

if __name__ == "__main__":
    TARGET.write_text(json.dumps(describe_schema(), indent=2) + "\n", encoding="utf-8", newline="\n")
