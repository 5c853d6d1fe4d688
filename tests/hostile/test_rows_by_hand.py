"""Rows written past Qiju, as anybody with the `sqlite3` shell can: each is read back or named, and hides no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nasty import ALL
from program import Place
from within import STEERING, Within

DEEP_JSON = "[" * 990 + "]" * 990
ROWS: list[dict[str, Any]] = [
    *({"title": text, "body_md": text, "tags": json.dumps([text])} for text in ALL),
    *({"id": text, "title": "odd id"} for text in ALL),
    *({"ts": text, "title": "odd ts"} for text in ALL),
    *({"project": text, "title": "odd project"} for text in ALL),
    {"title": "tags of all kinds", "tags": '[1, null, {"a": [1.5e400]}, ["x"], true, "Auth"]'},
    {"title": "big numbers", "extra": '{"n": 1e999, "m": 99999999999999999999999, "z": -0.0}'},
    {"title": "deep", "extra": '{"d": ' + DEEP_JSON + "}"},
    {"title": "deep tags", "tags": DEEP_JSON},
    {"title": "repeated keys", "extra": '{"a": 1, "a": 2, "title": "other", "id": "x:9"}'},
    {"title": "halves", "extra": '{"a": "\\ud800"}', "tags": '["\\udfff"]'},
    {"title": "loose JSON", "extra": "{a: 'b', /* c */ d: +1,}"},
    {"title": "odd redactions", "redactions": '[1, "x", {"field": 5}]'},
    {"title": "version from afar", "schema_version": 99},
    {"title": "negative version", "schema_version": -1},
    {"title": "bytes", "body_md": b"\xff\xfe\x00bytes"},
    {"title": b"\xc3\x28", "body_md": "title of bytes"},
    {"title": "a number", "body_md": 5},
    {"title": "sealed by a forger", "digest": "0" * 64},
    {"title": "odd session", "session_id": "\x1b[31m", "number": -5},
    {"title": "large", "body_md": "x" * 3_000_000},
]

INSERT = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA foreign_keys = ON")
taken = []
for number, row in enumerate(json.load(sys.stdin)):
    row = {name: bytes.fromhex(value[4:]) if isinstance(value, str) and value.startswith("hex:") else value
           for name, value in row.items()}
    row = {"id": f"hand{number}:1", "project": "demo", "agent": "hand", "source": "manual",
           "ts": "2026-03-01T00:00:00Z", "body_md": "b", **row}
    names = ", ".join(row)
    try:
        with connection:
            connection.execute(f"INSERT INTO record ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
        taken.append(number)
    except (sqlite3.Error, UnicodeError):
        pass
print(json.dumps(taken))
"""


def insert(db: Path, rows: list[dict[str, Any]]) -> list[int]:
    """Insert in a process of its own (two SQLite libraries must not meet on one file); the numbers of rows taken."""
    portable = [
        {name: f"hex:{value.hex()}" if isinstance(value, bytes) else value for name, value in row.items()}
        for row in rows
    ]
    done = subprocess.run(
        [sys.executable, "-c", INSERT, str(db)], input=json.dumps(portable), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout)
    return found


FORMATS = ("json", "jsonl", "summary", "table", "actions", "markdown")
READS = [["search", "--scope", "all", "--format", form] for form in FORMATS] + [
    ["search", "--scope", "all", "--page", "--count", "--limit", "7"],
    ["search", "--scope", "all", "--sort", "relevance", "--query", "odd id", "--snippet"],
    ["search", "--scope", "all", "--query", "healthy", "--view", "redacted_public"],
    ["search", "--scope", "all", "--regex", "--query", "odd|healthy", "--ids-only"],
    ["search", "--scope", "all", "--tags", "auth"],
    ["search", "--scope", "all", "--sort", "project", "--order", "asc", "--ids-only"],
    ["stats"], ["stats", "--json"], ["projects"], ["projects", "--json"], [],
    ["export", "--view", "raw_private"], ["export"], ["export", "--format", "json"], ["export", "--format", "markdown"],
    ["trajectory", "sessions"], ["trajectory", "page", "--view", "raw_private"], ["trajectory", "export"],
    ["doctor"], ["verify"], ["verify", "--quick"], ["maintain", "--dry-run"], ["redact", "--log"],
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Within:
    made = Within(Place(tmp_path_factory.mktemp("rows") / "own"))
    words = ["log", "--source", "manual", "--project", "demo", "--session-id", "s1"]
    made.ok(*words, given=json.dumps({"title": "healthy before", "tags": ["Auth"], "next_steps": ["go on"]}))
    taken = insert(made.place.db, ROWS)
    assert len(taken) > len(ROWS) / 2  # the schema refuses some of them, and that is an answer, too
    made.ok(*words, given=json.dumps({"title": "healthy after", "body_md": "b", "tags": ["aUTH"]}))
    return made


@pytest.mark.parametrize("words", READS, ids=lambda words: " ".join(words) or "bare")
def test_every_reader_copes_with_every_row(store: Within, words: list[str]) -> None:
    done = store.run(*words)
    if words[:1] == ["search"] and "--regex" not in words and "--sort" not in words and "--page" not in words:
        assert done.code == 0, done.err
        for title in ("healthy before", "healthy after"):
            # Ids are never cut, so beside the longest of them a table has little room for a title.
            assert ("healthy" if "table" in words else "go on" if "actions" in words else title) in done.out
    if words != ["trajectory", "export"]:  # a file format of its own, canonical to the byte
        assert not STEERING - {"\r"} & set(done.out)


def test_every_row_can_be_shown_or_is_named_as_damaged(store: Within) -> None:
    shown = 0
    for seq in range(1, 40):
        found = sqlite_value(store.place.db, f"SELECT id FROM record WHERE seq = {seq}")
        for form in ("json", "markdown", "text"):
            done = store.run("show", "--project", "demo", "--format", form, "--", found.replace("\0", "") or "x:1")
            assert done.code in (0, 1, 2, 3, 4)
            assert not STEERING & set(done.out)
            shown += done.code == 0
    assert shown > 60


def sqlite_value(db: Path, sql: str) -> str:
    """Asked in a process of its own."""
    code = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0], end='')"
    done = subprocess.run([sys.executable, "-c", code, str(db), sql], capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def test_rescan_seals_what_can_be_sealed_and_search_goes_on(store: Within) -> None:
    done = store.run("redact", "--rescan", "--reason", "rows by hand")
    assert done.code in (0, 1, 4)
    after = store.ok("search", "--scope", "all", "--query", "healthy", "--ids-only")
    assert {row["title"] for row in after.json()} >= {"healthy before", "healthy after"}
    assert store.run("verify").code in (0, 4)


def test_text_that_is_not_utf8_is_named_and_no_fault(tmp_path: Path) -> None:
    """STRICT tables take any bytes as text; they can be read back by nobody, and verify says where they are."""
    made = Within(Place(tmp_path / "own"))
    made.ok("log", "--source", "manual", "--project", "demo", given=json.dumps({"title": "t", "body_md": "b"}))
    sql = "INSERT INTO record (id, project, ts, body_md) VALUES ('h:1', 'demo', '2026-03-01', CAST(x'ff28' AS TEXT))"
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    subprocess.run([sys.executable, "-c", code, str(made.place.db), sql], check=True)
    for words in READS:
        made.run(*words)
    assert made.run("verify").code == 4
