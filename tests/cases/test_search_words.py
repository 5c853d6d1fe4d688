"""What people type into a search is text, whatever it looks like to SQLite, a shell or Unicode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program import Place
from within import Within

RECORDS = {
    "ticket": {"title": "close ABC-981 soon"},
    "flag": {"body_md": "run it with --no-cache, or -q"},
    "scope": {"body_md": "std::sync::Arc and title:x"},
    "quote": {"title": "Ada's, and Bob's NEAR THE end, OR NOT"},
    "path": {"body_md": "in lib/core/io.py at 7.3, pkg@2.1 key=9"},
    "under": {"body_md": "call do_it now"},
    "wild": {"body_md": "call doXit now"},
    "percent": {"body_md": "rate 7％ more"},
    "short": {"body_md": "we go now"},
    "cjk": {"body_md": "恢复会话并重试cfg-zz9前"},
    "case": {"body_md": "ÅNGSTRÖM und Größe, Ёлка, Οδός, eﬃcient"},
    "composed": {"body_md": "na\u00efve"},
    "apart": {"body_md": "nai\u0308ve"},
    "tagged": {"tags": ["Auth"]},
    "lookalike": {"tags": ["Au\u200bth"]},
}

ASKED = {
    "ABC-981": {"ticket"},
    "--no-cache": {"flag"},
    "-q": {"flag"},
    "sync::Arc": {"scope"},
    "title:x": {"scope"},
    "title:close": set(),
    "Ada's, and Bob's NEAR THE end, OR NOT": None,  # among those that hold one of its words
    "NOT": {"quote"},
    "NEAR": {"quote"},
    "io.py": {"path"},
    "7.3": {"path"},
    "pkg@2.1": {"path"},
    "key=9": {"path"},
    "do_it": {"under"},
    "％": {"percent"},
    "＿": set(),
    "＂": set(),
    "%": set(),
    "*": set(),
    "we q.zz": {"short"},
    "恢": {"cjk"},
    "会话": {"cjk"},
    "zz9": {"cjk"},
    "重试cfg": {"cjk"},
    "ångström": {"case"},
    "GRÖSSE": {"case"},
    "ёлка": {"case"},
    "ΟΔΌΣ": {"case"},
    "efficient": {"case"},
    "na\u00efve": {"composed", "apart"},
    "NAI\u0308VE": {"composed", "apart"},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Within:
    made = Within(Place(tmp_path_factory.mktemp("words") / "own"))
    for number, (name, record) in enumerate(RECORDS.items()):
        words = ["log", "--source", "manual", "--project", "demo", "--session-id", f"s{number}", "--agent", name]
        made.ok(*words, given=json.dumps({"title": "t", "body_md": "b", **record}))
    return made


def found(store: Within, *words: str) -> set[str]:
    return {row["agent"] for row in store.ok("search", "--scope", "all", "--fields", "agent", *words).json()}


@pytest.mark.parametrize("text", ASKED)
def test_words_are_literal(store: Within, text: str) -> None:
    wanted = ASKED[text]
    rows = found(store, f"--query={text}")
    assert "quote" in rows if wanted is None else rows == wanted
    if wanted is None:
        assert found(store, f"--query={text}", "--match", "phrase") == {"quote"}


@pytest.mark.parametrize("text", ["ABC-981", "会话", "ångström", "do_it", "efficient"])
@pytest.mark.parametrize("beside", ["qz.", "q!", "qqqzz"])
def test_a_word_that_is_nowhere_changes_nothing(store: Within, text: str, beside: str) -> None:
    """Long terms go through an index and short ones do not: both must come to the same records."""
    assert found(store, f"--query={text} {beside}") == found(store, f"--query={text}")


def test_a_blank_question_is_no_question(store: Within) -> None:
    assert found(store, "--query=") == found(store, "--query=   ") == found(store) == set(RECORDS)


@pytest.mark.parametrize("tag", ["auth", "AUTH", "Auth"])
def test_a_tag_is_found_whatever_its_case_and_no_lookalike_with_it(store: Within, tag: str, tmp_path: Path) -> None:
    assert found(store, "--tags", tag) == {"tagged"}
    lines = store.ok("export", "--view=raw_private", "--tags", tag).out.splitlines()
    assert [json.loads(line)["agent"] for line in lines] == ["tagged"]


def test_a_project_that_is_not_there_is_named_with_the_nearest(store: Within) -> None:
    for words in (["--project", "dmo"], ["--scope", "dmo"], ["--scope", "dmo,demo"]):
        done = store.ok("search", "--ids-only", *words)
        assert "no project 'dmo'; the nearest is 'demo'" in done.err
        assert done.err.count("\n") == 1
        assert bool(done.json()) == ("dmo,demo" in words)
    assert store.ok("search", "--project", "demo", "--ids-only").err == ""


@pytest.mark.parametrize("pattern", ["[", "(?P<a", "*a", "(?<=a+)b", "a{99999999999}"])
def test_a_broken_pattern_is_a_usage_error(store: Within, pattern: str) -> None:
    done = store.run("search", "--scope", "all", "--regex", f"--query={pattern}")
    assert done.code == 2
    assert "pattern" in done.err
