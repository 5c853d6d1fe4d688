"""What the tests of erasure share: a place with one value planted everywhere, and a scan of their own.

The scan knows nothing of `qiju.erasure`: it writes down the encodings it looks for by hand, reads every byte of every
file, and decodes Parquet and SQLite with other libraries.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

VALUE = "zq-Vault/" + "77 caf\u00e9=" + "k9Xw"


def spellings(value: str) -> list[bytes]:
    """The value in UTF-8, decomposed, JSON-escaped, URL-encoded, in UTF-16 and in base64 at its three places."""
    import unicodedata

    texts = [value, unicodedata.normalize("NFD", value), json.dumps(value)[1:-1]]
    texts += [urllib.parse.quote(value, safe=""), urllib.parse.quote(value)]
    found = [text.encode() for text in texts] + [value.encode("utf-16-le")]
    raw = value.encode()
    for lead in range(3):
        encoded = base64.b64encode(b"." * lead + raw)
        found.append(encoded[lead + 1 if lead else 0 : len(encoded) - 4])
    return found


def remains(folder: Path, value: str) -> list[str]:
    """Every file below the folder that still holds the value, raw, decoded or in its name."""
    looked_for = spellings(value)
    left = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        decoded = [data, str(path).encode()]
        if data[:4] == b"PAR1":
            import pyarrow.parquet as parquet

            decoded.append(json.dumps(parquet.read_table(path).to_pylist(), default=str, ensure_ascii=False).encode())
        if data[:15] == b"SQLite format 3":
            decoded.append(dump(path))
        if any(one in text for one in looked_for for text in decoded):
            left.append(str(path.relative_to(folder)))
    return left


def dump(path: Path) -> bytes:
    """All text of every ordinary table, read by the standard library's SQLite."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows: list[Any] = []
        for name in names:
            if "vocab" not in name and "instance" not in name:
                rows += connection.execute(f'SELECT * FROM "{name}"').fetchall()
        return "\n".join(str(cell) for row in rows for cell in row if isinstance(cell, str)).encode()
    finally:
        connection.close()


@pytest.fixture
def value() -> str:
    return VALUE
