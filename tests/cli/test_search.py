"""`qiju search`: words, shapes of output, pages, budgets, and what bad input gets."""

from __future__ import annotations

import json

import pytest
from program import SESSION, Place


@pytest.fixture
def filled(place: Place) -> Place:
    for number, word in enumerate(("alpha", "beta", "gamma"), 1):
        ts = f"2026-03-0{number}T12:00:00Z"
        steps = [f"check {word}"]
        place.log(title=f"{word} deadlock", body_md=f"{word} text", ts=ts, tags=["db"], next_steps=steps, project="")
    return place


def titles(place: Place, *words: str) -> list[str]:
    return [row["title"].split()[0] for row in place.ok("search", *words).json()]


def test_default_is_a_list_of_whole_records_newest_first(filled: Place) -> None:
    rows = filled.ok("search").json()
    assert [row["title"] for row in rows] == ["gamma deadlock", "beta deadlock", "alpha deadlock"]
    assert rows[0]["body_md"] == "gamma text"
    assert "score" not in rows[0]


def test_any_all_and_phrase(filled: Place) -> None:
    assert titles(filled, "--query", "ALPHA bet") == ["beta", "alpha"]
    assert titles(filled, "--query", "alpha dead", "--match", "all") == ["alpha"]
    assert titles(filled, "--query", " a deadlock ", "--match", "phrase") == ["gamma", "beta", "alpha"]
    assert titles(filled, "--query", "deadlock alpha", "--match", "phrase") == []


def test_an_empty_and_a_blank_query_are_no_query(filled: Place) -> None:
    assert titles(filled, "--query", "") == titles(filled, "--query", "   ") == titles(filled)


def test_text_that_looks_like_an_option_goes_behind_an_equals_sign(place: Place) -> None:
    place.log(body_md="pass --fail-fast to the runner", project="")
    assert len(place.ok("search", "--query=--fail-fast").json()) == 1


def test_a_session_comes_by_number_unless_an_order_is_asked_for(filled: Place) -> None:
    assert titles(filled, "--session", SESSION[:8]) == ["alpha", "beta", "gamma"]
    assert titles(filled, "--session", SESSION, "--order", "desc") == ["gamma", "beta", "alpha"]
    assert titles(filled, "--session", SESSION, "--sort", "title", "--order", "asc") == ["alpha", "beta", "gamma"]
    assert titles(filled, "--session", "zzz") == []


def test_filters(filled: Place) -> None:
    filled.log("--model", "m-1", title="other", tags=["db", "auth"], project="elsewhere")
    everywhere = ("--scope", "all")
    assert titles(filled, *everywhere, "--tags", "db", "--tags", "auth") == ["other"]
    assert titles(filled, *everywhere, "--agent", "codex", "--model", "m-1") == ["other"]
    assert titles(filled, "--project", "elsewhere") == titles(filled, "--scope", "elsewhere") == ["other"]
    assert titles(filled, "--since", "2026-03-02", "--until", "2026-03-02") == ["beta"]
    assert titles(filled, "--tier", "archive") == []
    assert len(titles(filled, *everywhere, "--tier", "short", "--tier", "long")) == 4


def test_formats(filled: Place) -> None:
    lines = filled.ok("search", "--format", "jsonl", "--fields", "title,nothing").out.splitlines()
    assert json.loads(lines[0]) == {"title": "gamma deadlock", "nothing": None}
    summary = filled.ok("search", "--format", "summary").out.splitlines()
    assert summary[0] == f"2026-03-03T12:00:00Z proj {SESSION}:3 gamma deadlock"
    table = filled.ok("search", "--format", "table").out
    assert f"{SESSION}:3" in table
    assert filled.ok("search", "--format", "actions").out.startswith('- [ ] check gamma  (from: 2026-03-03 "gamma')
    assert filled.ok("search", "--format", "markdown").out.startswith("# gamma deadlock\n")
    assert filled.ok("search", "--ids-only").json()[0] == {
        "id": f"{SESSION}:3",
        "project": "proj",
        "title": "gamma deadlock",
    }
    assert filled.ok("search", "--query", "absent").out == "[]\n"


def test_a_cut_list_says_so_on_standard_error(filled: Place) -> None:
    done = filled.ok("search", "--limit", "2")
    assert len(done.json()) == 2
    assert "--limit 2 cut the list" in done.err
    assert filled.ok("search", "--limit", "3").err == ""


def test_pages_and_their_envelope(filled: Place) -> None:
    first = filled.ok("search", "--page", "--limit", "2", "--count").json()
    assert set(first) == {"records", "returned", "next_cursor", "snapshot", "watermark", "warnings", "total"}
    assert (first["returned"], first["total"], first["watermark"]) == (2, 3, 3)
    second = filled.ok("search", "--cursor", first["next_cursor"], "--limit", "2").json()
    assert [row["title"] for row in second["records"]] == ["alpha deadlock"]
    assert second["next_cursor"] is None
    assert filled.ok("search", "--page", "--cursor", "", "--limit", "2").json()["returned"] == 2


def test_a_cursor_allows_other_fields_and_formats_and_nothing_else(filled: Place) -> None:
    token = filled.ok("search", "--page", "--limit", "1").json()["next_cursor"]
    line = filled.ok("search", "--cursor", token, "--fields", "title", "--format", "jsonl", "--limit", "9").json()
    assert [row["title"] for row in line["records"]] == ["beta deadlock", "alpha deadlock"]
    for other in (["--query", "x"], ["--order", "asc"], ["--view", "redacted_public"], ["--scope", "all"]):
        done = filled.run("search", "--cursor", token, *other)
        assert (done.code, done.out) == (4, "")
        assert json.loads(done.err)["error"]["hint"].startswith("repeat the options of the first page")


def test_a_snippet_makes_a_hit_that_stands_alone(filled: Place) -> None:
    row = filled.ok("search", "--query", "alpha", "--snippet").json()[0]
    assert set(row) == {"id", "ts", "project", "agent", "title", "tier", "snippet"}
    assert row["snippet"] == "«alpha» text"
    chosen = filled.ok("search", "--query", "alpha", "--snippet", "--fields", "id").json()[0]
    assert set(chosen) == {"id", "snippet"}


def test_relevance_has_a_score_and_auto_its_rung(filled: Place) -> None:
    row = filled.ok("search", "--query", "alpha deadlock", "--sort", "relevance", "--match", "auto").json()[0]
    assert row["title"] == "alpha deadlock"
    assert row["match"] == "phrase"
    assert row["score"] > 0


def test_a_budget_of_tokens_is_not_passed(filled: Place) -> None:
    for form in ("json", "jsonl", "summary", "markdown", "actions"):
        whole = len(filled.ok("search", "--format", form).out) / 4
        for budget in (int(whole * 0.4), int(whole * 0.9)):
            done = filled.ok("search", "--max-tokens", str(budget), "--format", form)
            assert len(done.out) / 4 <= budget
            assert "left out" in done.err
    tiny = filled.ok("search", "--max-tokens", "1")
    assert tiny.json() == []
    assert "raise --max-tokens" in tiny.err
    page = filled.ok("search", "--page", "--max-tokens", "60", "--fields", "id,title").json()
    assert page["next_cursor"] is not None


def test_explain_names_the_path(filled: Place) -> None:
    for words in (["--query", "deadlock"], ["--session", SESSION], ["--regex", "--query", r"\w"], ["--sort", "title"]):
        done = filled.ok("search", "--explain", *words)
        assert done.err.startswith("qiju search: path ")
        assert "candidates" in done.err
        assert "verified" in done.err
        assert " ms" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "0"], "--limit"),
        (["--limit", "-3"], "--limit"),
        (["--limit", "x"], "x"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--sort", "titel"], "title"),
        (["--since", "soon"], "soon"),
        (["--until", "2026-02-30"], "2026-02-30"),
        (["--regex", "--query", "["], "position 0"),
        (["--regex", "--query", "x", "--sort", "relevance"], "relevance"),
        (["--sort", "relevance", "--order", "asc", "--query", "x"], "relevance"),
        (["--timeout", "0", "--regex", "--query", "x"], "--timeout"),
        (["--fields", ""], "--fields"),
        (["--scope", " "], "--scope"),
        (["--match", "most"], "most"),
    ],
)
def test_bad_input_is_a_usage_error(filled: Place, words: list[str], said: str) -> None:
    done = filled.run("search", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_errors_are_json_where_json_was_asked_for(filled: Place) -> None:
    done = filled.run("search", "--format", "json", "--sort", "titel")
    error = json.loads(done.err)["error"]
    assert (error["kind"], error["exit_code"], error["retryable"]) == ("usage", 2, False)


def test_many_terms_and_a_megabyte_are_refused_or_answered(filled: Place) -> None:
    many = filled.run("search", "--query", " ".join(f"t{number}" for number in range(3_000)))
    assert many.code == 2
    assert "terms" in many.err
    assert filled.run("search", "--query", "x" * 100_000).code == 2
    assert titles(filled, "--query", " ".join(f"t{number}" for number in range(250)) + " alpha") == ["alpha"]


def test_a_runaway_pattern_ends_with_exit_1(place: Place) -> None:
    place.log(body_md="a" * 40 + "!", project="")
    done = place.run("search", "--regex", "--query", "(a+)+$", "--timeout", "0.3")
    assert (done.code, done.out) == (1, "")
    assert "0.3 seconds" in done.err


def test_the_public_view_is_what_a_snippet_is_cut_from(place: Place) -> None:
    place.log(title="mail", body_md="write to someone@example.com about the deadlock", project="")
    row = place.ok("search", "--query", "deadlock", "--view", "redacted_public", "--snippet").json()[0]
    assert "someone@example.com" not in row["snippet"]
    assert "«deadlock»" in row["snippet"]


def test_an_empty_store_and_an_unknown_project_hold_nothing(place: Place) -> None:
    assert place.ok("search", "--scope", "all", "--query", "x").json() == []
    assert place.ok("search", "--project", "nobody").json() == []
    assert place.ok("search", "--page", "--scope", "all").json()["records"] == []
    assert not place.home.exists()


def test_words_without_their_option_are_answered_with_it(place: Place) -> None:
    done = place.run("search", "deadlock")
    assert done.code == 2
    assert "--query 'WORDS'" in done.err
