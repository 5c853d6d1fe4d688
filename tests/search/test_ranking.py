"""Relevance: the right record first, every match reachable, bounded and deterministic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qiju.db import Database
from qiju.query import BY_RELEVANCE, Filters, Query
from qiju.record import Record, format_instant
from qiju.search import engine, ranking, words
from qiju.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(Database.in_memory(), Path("nowhere"), writable=True) as opened:
        yield opened


def log(store: Store, title: str, body: str = "", project: str = "p", tags: tuple[str, ...] = ()) -> int:
    with store.db.write() as connection:
        number = int(connection.execute("SELECT count(*) + 1 FROM record").fetchall()[0][0])  # type: ignore[arg-type]
        ts = format_instant(1_700_000_000_000_000 + number)
        record = Record(f"s:{number}", ts, project, "codex", "manual", title, body, tags)
        return store.insert_row(connection, record, None, "s", "flag", tier="short")[0]


def found(store: Store, text: str, home: str = "", limit: int = 10, **more: object) -> list[engine.Hit]:
    query = Query(text=text, sort=BY_RELEVANCE, **more)  # type: ignore[arg-type]
    with store.db.read() as connection:
        return engine.run(connection, query, limit=limit, home_project=home).hits


def seqs(hits: list[engine.Hit]) -> list[int]:
    return [hit.seq for hit in hits]


def test_title_above_body_and_more_words_above_fewer(store: Store) -> None:
    body = log(store, "Notes", "a deadlock in the worker pool " + "filler text here " * 30)
    title = log(store, "Deadlock in the worker pool", "filler text here " * 30)
    one = log(store, "Pool", "filler text here " * 30)
    log(store, "Unrelated", "nothing of it")
    assert seqs(found(store, "worker pool deadlock")) == [title, body, one]


def test_word_forms_meet(store: Store) -> None:
    seq = log(store, "Caching connections")
    assert seqs(found(store, "cached connection")) == [seq]


def test_the_best_score_comes_first_and_is_told(store: Store) -> None:
    for number in range(12):
        log(store, "deadlock " * (number % 3 + 1) + "filler " * number)
    hits = found(store, "deadlock filler")
    scores = [hit.score or 0.0 for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert hits == found(store, "deadlock filler")


def test_ties_go_to_the_newer_record(store: Store) -> None:
    first, second = log(store, "deadlock"), log(store, "deadlock")
    assert seqs(found(store, "deadlock")) == [second, first]


def test_the_project_of_the_call_is_favoured_a_little(store: Store) -> None:
    ours = log(store, "deadlock in the pool", project="ours")
    theirs = log(store, "deadlock in the pool", project="theirs")
    assert seqs(found(store, "deadlock pool"))[0] == theirs
    assert seqs(found(store, "deadlock pool", home="ours"))[0] == ours


@pytest.mark.parametrize("text", ["eadloc", "恢复", "会话恢复", "core::ret", "复"])
def test_what_the_word_index_cannot_know_is_found_as_a_piece_of_text(store: Store, text: str) -> None:
    log(store, "other")
    seq = log(store, "deadlock", "修复了会话恢复逻辑 see core::retry")
    assert seqs(found(store, text)) == [seq]


@pytest.mark.parametrize(
    "text", ["the", "the of and", '"', "NOT", "title:x", "AND OR", "*", "\0", "-", "::", "a" * 3000]
)
def test_no_text_is_syntax_and_stop_words_alone_still_search(store: Store, text: str) -> None:
    seq = log(store, 'the x of and NOT OR title:x * - :: \0 " ' + "a" * 3000)
    assert seqs(found(store, text)) == [seq]


def test_the_ladder_names_its_rungs_and_puts_the_surest_first(store: Store) -> None:
    any_, all_ = log(store, "pool " * 5), log(store, "worker of the pool", "worker pool pool pool")
    phrase = log(store, "x", "long text before and after: pool worker, " + "filler " * 40)
    assert [(hit.seq, hit.match) for hit in found(store, "pool worker", match="auto")] == [
        (phrase, "phrase"),
        (all_, "all"),
        (any_, "any"),
    ]
    assert seqs(found(store, "pool worker", match="phrase")) == [phrase]
    assert set(seqs(found(store, "pool worker", match="all"))) == {all_, phrase}


def test_filters_hold(store: Store) -> None:
    log(store, "deadlock", project="p")
    wanted = log(store, "deadlock", project="q", tags=("auth",))
    assert seqs(found(store, "deadlock", filters=Filters(("q",)))) == [wanted]
    assert seqs(found(store, "deadlock", filters=Filters(tags=("auth",)))) == [wanted]
    assert seqs(found(store, "deadlock", filters=Filters(("none",)))) == []


def test_common_words_are_ranked_from_a_bounded_pool(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "SCORED", 10)
    monkeypatch.setattr(ranking, "COUNTED", 5)
    for number in range(40):
        log(store, f"pool {number}", "deadlock worker")
    both = log(store, "deadlock worker", "pool")
    for number in range(40):
        log(store, f"worker {number}", "pool")
    assert seqs(found(store, "deadlock worker"))[0] == both
    assert len(found(store, "deadlock worker pool", limit=500)) <= 4 * ranking.RESCORED


def test_a_ranked_list_says_when_it_is_cut(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "LISTED", 5)
    for _ in range(8):
        log(store, "deadlock")
    with store.db.read() as connection:
        page = engine.run(connection, Query(text="deadlock", sort=BY_RELEVANCE))
    assert page.capped
    assert len(page.hits) == 5


def test_without_words_relevance_is_newest_first(store: Store) -> None:
    first, second = log(store, "a"), log(store, "b")
    assert seqs(found(store, "  ")) == [second, first]


def test_words_that_carry_meaning() -> None:
    assert words.content("The query should now accept a new --tsv option") == ["query", "accept", "tsv", "option"]
    assert words.content("the of") == ["the", "of"]
    text = "use --stop-after, see utils.conf (core::retry)."
    assert words.compounds(text) == ["--stop-after", "utils.conf", "core::retry"]


def test_earlier_words_of_the_query_weigh_more(store: Store) -> None:
    first, second = log(store, "walrus"), log(store, "ocelot")
    assert seqs(found(store, "walrus ocelot")) == [first, second]
    assert seqs(found(store, "ocelot walrus")) == [second, first]


def test_neighbours_in_the_text_count(store: Store) -> None:
    together = log(store, "note", "the walrus ocelot met near heron and other birds")
    log(store, "note", "the walrus met other heron and near ocelot birds")
    assert seqs(found(store, "walrus ocelot"))[0] == together


def test_a_title_spelled_like_the_query_wins_where_stems_differ(store: Store) -> None:
    alike = log(store, "walrus deserialization")
    log(store, "walrus infrastructure")
    assert seqs(found(store, "walrus deserializer"))[0] == alike


def test_a_page_shows_different_records_before_copies(store: Store) -> None:
    log(store, "walrus and ocelot deadlock")
    other = log(store, "heron", "walrus met an ocelot")
    log(store, "walrus and ocelot deadlock")
    hits = found(store, "walrus ocelot")
    copies = [hit for hit in hits if hit.seq != other]
    assert [hit.seq for hit in copies] == [3, 1]
    assert copies[1].score == pytest.approx((1 - ranking.ALIKE) * (copies[0].score or 0.0))
    assert len({hit.seq for hit in hits}) == 3


def test_scores_never_rise_down_a_list_with_many_copies(store: Store) -> None:
    for number in range(60):
        log(store, f"walrus {'ocelot ' * (number % 4)}{'heron ' * (number % 3)}", project=f"p{number % 5}")
    scores = [hit.score or 0.0 for hit in found(store, "walrus ocelot heron", limit=100)]
    assert len(scores) == 60
    assert scores == sorted(scores, reverse=True)


def test_spelling_is_a_share() -> None:
    titles = [words.trigrams(text) for text in ("deadlock", "the deadlocks", "", "other")]
    same, near, none, other = ranking._spelled(words.trigrams("deadlock"), titles)
    assert same == pytest.approx(1)
    assert 0.5 < near < 1
    assert none == other == 0
