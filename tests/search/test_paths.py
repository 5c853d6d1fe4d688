"""Every path gives what the plain scan gives, in the same order, page by page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qiju import jsontext, record
from qiju.db import Database
from qiju.errors import NotFound
from qiju.query import Filters, Query, terms
from qiju.record import Record, fold
from qiju.search import engine, paths

# Folding that FTS5 and Unicode do differently, NFC and NFD, ligatures, Georgian, emoji with joiners, NUL, FTS5 syntax.
WORDS = [
    "İstanbul", "ISTANBUL", "ısı", "straße", "STRASSE", "Βορράς", "ΒΟΡΡΆΣ", "oﬃce", "office", "ﬁx", "café",
    "cafe\u0301",
    "ᲓᲘᲚᲐ", "დილა", "ǅ", "ŉ", "ΐ", "ｆｕｌｌ", "％", "会话恢复", "令牌", "恢复", "逻", "👨\u200d👩\u200d👧", "é",
    "e\u0301",
    "a\0b", "\0", "50%", "_", "max_retry", 'say"it', "it's", "AND", "OR", "NOT", "NEAR(", "title:core", "core::retry",
    "KEY-417", "--fail", "*", "^a", "(", ")", '"', "\\", "\\n", ",", '","', "[", "]", "go", "up", "a", "Ω", "K", "ſ",
    "deadlock", "deadlocks", "dead", "lock", "ö", "o\u0308",
]  # fmt: skip
SPACES = [" ", "", "\n", "  ", "\u00a0"]
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=5).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)
INSTANTS = [0, 1, 2, 1_000_000, 1_700_000_000_000_000, 4_070_908_800_000_000]


class Given(NamedTuple):
    title: str
    body: str
    tags: tuple[str, ...]
    steps: tuple[str, ...]
    project: str
    session: str
    agent: str
    instant: int
    sealed: bool


RECORDS = st.builds(
    Given,
    title=TEXTS,
    body=TEXTS,
    tags=st.lists(st.sampled_from(["auth", "Auth", "STRASSE", "Straße", 'au"th', *WORDS[:4]]), max_size=2).map(tuple),
    steps=st.lists(TEXTS, max_size=2).map(tuple),
    project=st.sampled_from(["one", "two", "日本"]),
    session=st.sampled_from(["s1", "s12", "t"]),
    agent=st.sampled_from(["claude", "codex"]),
    instant=st.sampled_from(INSTANTS),
    sealed=st.booleans(),
)


def insert(db: Database, number: int, given: Given) -> None:
    """One row as the store writes it, or (unsealed) as a person with a shell would."""
    value = Record(
        id=f"{given.session}:{number}",
        ts=record.format_instant(given.instant),
        project=given.project,
        agent=given.agent,
        source="manual",
        title=given.title,
        body_md=given.body,
        tags=given.tags,
        next_steps=given.steps,
    )
    columns = {
        "id": value.id,
        "ts": value.ts,
        "project": value.project,
        "agent": value.agent,
        "title": value.title,
        "body_md": value.body_md,
        "tags": jsontext.canonical(list(value.tags)),
        "next_steps": jsontext.canonical(list(value.next_steps)),
    }
    if given.sealed:
        columns |= {"digest": value.digest(), "folded": record.folded(value)}
    with db.write() as connection:
        connection.execute(
            f"INSERT INTO record ({', '.join(columns)}, instant) VALUES ({', '.join('?' * len(columns))}, ?)",
            (*columns.values(), given.instant),
        )


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with Database.in_memory() as opened:
        yield opened


def refill(db: Database, givens: list[Given]) -> None:
    with db.write() as connection:
        connection.execute("DELETE FROM record; DELETE FROM tombstone; DELETE FROM sqlite_sequence")
        connection.execute("UPDATE counter SET value = -9223372036854775807 WHERE name = 'high_water'")
    for number, each in enumerate(givens, 1):
        insert(db, number, each)


def plainly(givens: list[Given], query: Query) -> list[int]:
    """The answer by the definition, in Python alone, newest first."""
    found = []
    for number, each in enumerate(givens, 1):
        filters = query.filters
        if filters.projects is not None and each.project not in filters.projects:
            continue
        if not each.session.startswith(filters.session) or not (
            {fold(tag) for tag in filters.tags} <= {fold(tag) for tag in each.tags}
        ):
            continue
        if filters.since is not None and each.instant < filters.since:
            continue
        if filters.until is not None and each.instant >= filters.until:
            continue
        texts = [each.agent, each.title, each.body, *each.tags, *each.steps]
        if query.regex:
            whole = "\n".join([each.agent, "", "", *texts[1:]])
            import unicodedata

            holds = re.search(query.text, unicodedata.normalize("NFC", whole), re.I | re.M) is not None
        elif query.match == "phrase":
            holds = any(fold(query.text.strip()) in fold(text) for text in texts)
        else:
            wanted = [any(term in fold(text) for text in texts) for term in terms(query.text)]
            holds = all(wanted) if query.match == "all" else any(wanted)
        if holds or query.blank:
            found.append((each.instant, number))
    return [number for _, number in sorted(found, reverse=query.descending)]


FILTERS = st.builds(
    lambda **filters: Filters(**filters),
    projects=st.sampled_from([None, None, ("one",), ("one", "日本"), ("none",)]),
    session=st.sampled_from(["", "", "s1", "s"]),
    tags=st.sampled_from([(), (), ("auth",), ("AUTH",), ("straße",), ('AU"TH',), (WORDS[0],)]),
    since=st.sampled_from([None, None, 1, 1_000_000]),
    until=st.sampled_from([None, None, 2, 1_700_000_000_000_001]),
)
LITERAL = st.builds(
    lambda **parts: Query(**parts),
    filters=FILTERS,
    text=st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join) | TEXTS,
    match=st.sampled_from(["any", "all", "phrase"]),
    descending=st.booleans(),
)
PATTERNS = [
    "dead(lock|s)+", "(?i:straße|strasse)", "off?ice", r"\bgo\b", "i(st|s)", "^a", "a$", "(?=dead)d", "(?!x)lock",
    "(?<=dead)lock", "[io]ff", "ki|K", "max_.etry", "(foo|)", "会话.*恢复", "дила|დილა", "e\u0301", "(d)ead|\\1",
    "st{2}",
    "(?:de|li)(?:ad|ve)lock", "ISI", "ısı", "istanbul", "ſtra", "Βορράσ", "[^a]b", r"\x00", "lock\n+dead", "say\"it",
    "(?s:.)ead(?#c)lo", "(dead){1,2}lo", "o(?:ff)?ice", "(?>dead)lock", "a\nb", "\\\\", "\\(",
]  # fmt: skip
PATTERN = st.builds(
    lambda **parts: Query(regex=True, **parts),
    filters=FILTERS,
    text=st.sampled_from(PATTERNS),
    descending=st.booleans(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(givens=st.lists(RECORDS, max_size=7), query=LITERAL | PATTERN, limit=st.integers(1, 4))
def test_every_path_gives_what_the_definition_gives(
    db: Database, givens: list[Given], query: Query, limit: int
) -> None:
    refill(db, givens)
    expected = plainly(givens, query)
    fits = 0
    for path in ("", *paths.PATHS):
        if (path == "project" and query.filters.projects is None) or (path == "session" and not query.filters.session):
            continue
        with db.read() as connection:
            try:
                whole = engine.run(connection, query, force=path)
                assert [hit.seq for hit in whole.hits] == expected, path
                assert pages(connection, query, limit, path) == expected, path
            except NotFound:
                continue
        fits += 1
    assert fits >= 2


def pages(connection: object, query: Query, limit: int, path: str) -> list[int]:
    found: list[int] = []
    position: engine.Position | None = None
    while True:
        page = engine.run(connection, query, limit=limit, position=position, force=path, count=True)  # type: ignore[arg-type]
        found += [hit.seq for hit in page.hits]
        position = page.next
        if position is None:
            assert page.total == len(found)
            return found
        assert len(page.hits) == limit
