"""Records and questions of absurd size: kept whole or refused in a sentence, and never SQLite's own limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from program import Place
from within import Within

LOG = ["log", "--source", "manual", "--project", "demo", "--session-id", "s1"]


def nested(levels: int) -> Any:
    value: Any = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {f"k{level}": value}
    return value


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Within:
    """A store with one record of each absurd size."""
    made = Within(Place(tmp_path_factory.mktemp("large") / "own"))
    for record in (
        {"title": "many tags", "tags": [f"Tag{number}" for number in range(50_000)] + ["x" * 20_000]},
        {"title": "deep", "extra": nested(100)},
        {"title": "many keys", "map": {f"key{number}": number for number in range(2_000)}},
        {"title": "long line", "body_md": "word" * 60_000},
        {"title": "marks", "body_md": "a" + "\u0301\u0323" * 20_000},
        {"title": "x" * 20_000, "next_steps": [f"step {number}" for number in range(500)]},
    ):
        made.ok(*LOG, given=json.dumps({"body_md": "b", **record}))
    return made


def test_the_last_of_fifty_thousand_tags_finds_its_record(large: Within) -> None:
    found = large.ok("search", "--scope", "all", "--tags", "TAG49999", "--ids-only").json()
    assert [row["title"] for row in found] == ["many tags"]
    assert large.ok("search", "--scope", "all", "--tags", "tag4999x", "--ids-only").json() == []


def there_and_back(large: Within, folder: Path, filters: list[str]) -> None:
    """Through both formats into another store."""
    before = large.ok("search", "--scope", "all", "--order", "asc", *filters).json()
    for name in ("records.jsonl", "records.parquet"):
        form = name.split(".")[1]
        target = folder / name
        large.ok("export", "--view=raw_private", f"--format={form}", f"--output={target}", *filters)
        other = Within(Place(folder / f"other-{form}"))
        other.ok("import", str(target))
        assert other.ok("search", "--scope", "all", "--order", "asc").json() == before
    large.ok("verify")


def test_a_hundred_levels_and_piles_of_marks_come_back_as_they_went_in(large: Within, tmp_path: Path) -> None:
    deep = large.ok("search", "--scope", "all", "--query", "deep").json()
    assert [row["extra"] for row in deep] == [nested(100)]
    there_and_back(large, tmp_path, ["--query=deep marks"])


@pytest.mark.slow
def test_everything_comes_back_as_it_went_in(large: Within, tmp_path: Path) -> None:
    there_and_back(large, tmp_path, [])


@pytest.mark.parametrize(
    "words",
    [
        ["--query", " ".join(f"term{number}" for number in range(10_000))],
        ["--query", "x" * 1_000_000],
        ["--regex", "--query", "(" * 5_000],
        ["--regex", "--query", "a{1,99999}" * 50],
        ["--scope", ",".join(f"p{number}" for number in range(40_000))],
        [word for number in range(3_000) for word in ("--tags", f"t{number}")],
        [word for _ in range(3_000) for word in ("--tier", "short")],
        ["--cursor", "A" * 100_000],
        ["--sort", "x" * 10_000],
    ],
    ids=["terms", "length", "brackets", "counts", "projects", "tags", "tiers", "cursor", "sort"],
)
def test_a_question_too_large_is_refused_in_a_sentence(large: Within, words: list[str]) -> None:
    scope = [] if "--scope" in words else ["--scope", "all"]
    done = large.run("search", *scope, *words)
    assert done.code in ((0,) if "{" in words[-1] else (2, 4))
    assert "SQL" not in done.err
    assert "depth" not in done.err


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"title":"t","x":' + "[" * 5_000 + "]" * 5_000 + "}", "level"),
        ('{"title":"t",' + ",".join(f'"k{number}":1' for number in range(1_000)) + ',"k0":2}', "stands twice"),
        ('{"title":"t","x":' + "9" * 100_000 + "NaN}", "line 1"),
    ],
    ids=["depth", "repeated key", "number"],
)  # fmt: skip
def test_a_body_that_cannot_be_kept_is_refused_with_its_place(large: Within, body: str, place: str) -> None:
    done = large.run(*LOG, given=body)
    assert done.code == 1
    assert place in done.err
    assert len(done.err) < 1_000


def test_a_very_long_number_is_kept_to_the_digit(large: Within) -> None:
    digits = "7" * 20_000
    identity = large.ok(*LOG, given='{"title":"number","x":' + digits + "}").out.strip()
    assert digits in large.ok("show", identity).out
