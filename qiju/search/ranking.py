"""Relevance: the right record among many, with bounded work.

1. The word index gives a pool: the best by bm25 (title far above the rest), or, where every word of the query is so
   common that scoring all its records would cost too much, the newest that hold most of the words. A word that the
   index does not know (part of a longer word, Chinese without spaces) is looked for as a literal piece.
2. The first hundred of the pool are scored again from their text: bm25 over fields, where earlier words of the query
   weigh more than later ones, since people name the matter first; the share of the query's words that stand there as
   written; neighbours in the query that are neighbours there; a title spelled like the query, which finds word forms
   that stemming parts; compound terms kept whole.
3. Records that lie in one project support each other: a project that holds much of the pool's score is favoured, and
   so, a little more, is the project the call is made from.
4. A title like one further up tells little more: it gives up part of its score, so that a page shows different records.

Constants were chosen on one half of a set of questions and hold on the other; nearby values do as well. Ties go to the
newer record. What is ranked is at most `LISTED` records; a page beyond the first takes its rows from the cursor.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise

from qiju.query import Query
from qiju.record import fold
from qiju.search import matching, plan
from qiju.search.engine import Explanation, Found, Hit, Position, literal_rows
from qiju.search.matching import Row
from qiju.search.words import Stems, compounds, content, stemmer, trigrams, words
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

LISTED = 500  # records of a ranked list
RESCORED = 100  # of them scored from their text
COUNTED = 4_000  # records of a word counted before its frequency is estimated
SCORED = 15_000
NEWEST = 20_000  # records looked at where all words are common

FIELD_WEIGHTS = (8.0, 2.0, 1.0)  # title; search terms; tags, next steps and body
WEIGHTS_SQL = "8.0, 2.0, 1.0, 1.0, 1.0"  # the same in the order of the index's columns
K1, B = 1.6, 0.75
FADE = 0.08  # how fast words weigh less from the first to the last
WRITTEN, NEIGHBOURS, SPELLED, COMPOUNDS = 0.5, 0.4, 0.5, 0.2
COHERENCE, SHARPNESS = 0.3, 8
HOME = 1.3
ALIKE, VARIED = 0.4, 20  # what the same title loses; the places of the list for which it is worked out

_ROW = f"SELECT record.project, {matching.COLUMNS} FROM record WHERE record.seq = ?"


class _Word(NamedTuple):
    """A word of the query: as written, its stems, and about how many records hold it. `literal`: not in the index."""

    text: str
    stems: tuple[str, ...]
    records: float
    literal: bool

    @property
    def match(self) -> str:
        return '"' + self.text.replace('"', '""') + '"'


def run(
    connection: apsw.Connection, query: Query, limit: int | None, at: Position, home: str, explanation: Explanation
) -> Found:
    """The page of a ranked list; the whole list is made on the first page."""
    if at.ranked is None:
        listed, capped = _Ranking(connection, query, at, home, explanation).listed()
    else:
        listed, capped = list(at.ranked), False
    page = listed if limit is None else listed[:limit]
    rest = tuple(listed[len(page) :])
    total = at.total if at.ranked is not None else len(listed)
    following = at._replace(ranked=rest, total=total, last=page[-1].seq) if rest else None
    return Found(page, following, at.snapshot, total, explanation, ranked=True, capped=capped)


def shown_words(text: str) -> list[str]:
    """What a snippet looks for in a ranked hit: the written words, cut to where their endings begin."""
    return [word if len(word) < 6 else word[: max(5, len(word) - 3)] for word in map(fold, content(text))]


class _Ranking:
    def __init__(
        self, connection: apsw.Connection, query: Query, at: Position, home: str, explanation: Explanation
    ) -> None:
        self.connection, self.query, self.at = connection, query, at
        self.home, self.explanation = home, explanation
        self.course = plan.course(query._replace(sort="ts"), at.snapshot.watermark)
        self.stems = stemmer(connection)
        self.words = [self._word(text) for text in content(query.text)]

    def listed(self) -> tuple[list[Hit], bool]:
        """All hits in order, and whether there may be more of them."""
        pool = self._pool()
        capped = len(pool) > LISTED
        pool = pool[:LISTED]
        scored = self._scored(pool[:RESCORED])
        least = min((score for score, _, _ in scored), default=1.0)
        behind = [(least * RESCORED / (RESCORED + place), -seq, seq) for place, seq in enumerate(pool[RESCORED:], 1)]
        hits = [Hit(seq, "", score) for score, _, seq in (*sorted(scored, reverse=True), *behind)]
        self.explanation.candidates += len(pool)
        self.explanation.verified += len(scored)
        return self._on_rungs(hits), capped

    # --- the pool ----------------------------------------------------------------------------------------------------

    def _pool(self) -> list[int]:
        """Row numbers, the likeliest first."""
        pool: dict[int, None] = {}
        known = sorted((word for word in self.words if not word.literal), key=lambda word: (word.records, word.text))
        scorable: list[_Word] = []
        for word in known:
            if sum(each.records for each in scorable) + word.records <= SCORED:
                scorable.append(word)
        if scorable:
            self.explanation.paths.append(f"words ({', '.join(word.text for word in scorable)})")
            pool.update(dict.fromkeys(self._best(" OR ".join(word.match for word in scorable))))
        elif known:
            self.explanation.paths.append("newest of common words")
            every, some = " AND ".join(word.match for word in known), " OR ".join(word.match for word in known)
            for expression in (f"title : ({every})", every, f"title : ({some})", some):
                pool.update(dict.fromkeys(self._newest(expression)))
        for rows in self._literally(len(pool)):
            pool.update(dict.fromkeys(rows))
        return list(pool)

    def _best(self, expression: str) -> list[int]:
        where, values = self.course.where()
        sql = (
            "SELECT record_fts.rowid FROM record_fts CROSS JOIN record ON record.seq = record_fts.rowid"
            f" WHERE record_fts MATCH ? AND {where}"
            f" ORDER BY bm25(record_fts, {WEIGHTS_SQL}), record_fts.rowid DESC LIMIT {LISTED + 1}"
        )
        return _numbers(self.connection, sql, (expression, *values))

    def _newest(self, expression: str) -> list[int]:
        where, values = self.course.where()
        watermark = self.at.snapshot.watermark
        sql = (
            "SELECT record.seq FROM (SELECT rowid FROM record_fts WHERE record_fts MATCH ? AND rowid <= ? AND rowid > ?"
            f" ORDER BY rowid DESC LIMIT {NEWEST}) AS found CROSS JOIN record ON record.seq = found.rowid"
            f" WHERE {where} LIMIT {RESCORED}"
        )
        # A window of commit order, too: a rare combination of common words must not be sought through all of them.
        return _numbers(self.connection, sql, (expression, watermark, watermark - 5 * NEWEST, *values))

    def _literally(self, have: int) -> list[list[int]]:
        """Rows that hold the words as pieces of text: what the word index cannot know, or what a rung asks for."""
        found: list[list[int]] = []
        unknown = [word.text for word in self.words if word.literal]
        if unknown:
            text = " ".join(unknown)
            found.append(self._literal_rows(self.query._replace(text=text, match="any"), RESCORED))
        match = self.query.match
        if match in ("all", "phrase"):
            found.append(self._literal_rows(self.query, LISTED))
        elif match == "auto":
            found += [self._literal_rows(self.query._replace(match=rung), RESCORED) for rung in ("phrase", "all")]
        if not have and not any(found):
            found.append(self._literal_rows(self.query._replace(match="any"), RESCORED))
        return found

    def _literal_rows(self, query: Query, limit: int) -> list[int]:
        newest_first = query._replace(sort="ts", descending=True)
        return literal_rows(self.connection, newest_first, self.at, limit, self.explanation)

    def _word(self, text: str) -> _Word:
        stems = tuple(self.stems(text))
        watermark = self.at.snapshot.watermark
        word = _Word(text, stems, 0.0, True)
        if not stems:
            return word
        count, oldest = _one(
            self.connection,
            "SELECT count(*), min(rowid) FROM (SELECT rowid FROM record_fts WHERE record_fts MATCH ? AND rowid <= ?"
            f" ORDER BY rowid DESC LIMIT {COUNTED})",
            (word.match, watermark),
        )
        if not count:
            return word
        records = float(count) if count < COUNTED else max(count, count * watermark / (watermark - oldest + 1))
        return word._replace(records=records, literal=False)

    # --- scores ------------------------------------------------------------------------------------------------------

    def _scored(self, pool: list[int]) -> list[tuple[float, int, int]]:
        """(score, seq, seq) of each row, from its text."""
        rows: list[tuple[str, Row]] = []
        for seq in pool:
            for project, *columns in self.connection.execute(_ROW, (seq,)):
                rows.append((str(project), Row._make(columns)))
        texts = [_Text(row, self.stems) for _, row in rows]
        if not texts:
            return []
        average = self._average_lengths()
        total = max(self.at.snapshot.watermark, 1)
        rarity: dict[str, float] = {}
        for word in self.words:
            for stem in word.stems or (fold(word.text),):
                weight = math.log(1 + (total - word.records + 0.5) / (word.records + 0.5))
                rarity.setdefault(stem, weight / (1 + FADE * len(rarity)))
        literal = [fold(word.text) for word in self.words if word.literal]
        bases = [text.bm25(rarity, literal, average) for text in texts]
        highest = max(bases) or 1.0
        written = {word.text for word in self.words}
        neighbours = self._neighbours()
        spelled = _spelled(trigrams(self.query.text), [trigrams(row.title) for _, row in rows])
        whole = [
            (stems, sum(rarity.get(stem, 0.0) for stem in stems))
            for stems in map(self._stems, compounds(self.query.text))
        ]
        mass = sum(rarity.values()) or 1.0
        values = []
        for text, base, likeness in zip(texts, bases, spelled, strict=True):
            value = base / highest + WRITTEN * text.written(written) + SPELLED * likeness
            value += NEIGHBOURS * text.neighbours(neighbours)
            value += COMPOUNDS * sum(weight for stems, weight in whole if len(stems) > 1 and text.holds(stems)) / mass
            values.append(value)
        values = self._by_project(values, [project for project, _ in rows])
        titles = [text.title for text in texts]
        return _varied([(value, row.seq, title) for value, (_, row), title in zip(values, rows, titles, strict=True)])

    def _average_lengths(self) -> list[float]:
        """The average words of the three fields over the whole store, which FTS5 keeps."""
        word = next((word for word in self.words if not word.literal), None)
        if word is None:
            return [1.0, 1.0, 1.0]  # no word of the query is in the index: lengths do not count
        self.connection.register_fts5_function("qiju_sizes", _sizes)
        sql = "SELECT qiju_sizes(record_fts) FROM record_fts WHERE record_fts MATCH ? LIMIT 1"
        rows, title, terms, *rest = map(int, str(_one(self.connection, sql, (word.match,))[0]).split())
        return [max(size / max(rows, 1), 0.1) for size in (title, terms, sum(rest))]

    def _stems(self, text: str) -> tuple[str, ...]:
        return tuple(self.stems(text))

    def _neighbours(self) -> set[tuple[str, str]]:
        every = [self._stems(word) for word in re.findall(r"\w+", self.query.text.lower())]
        flat = [stem for stems in every for stem in stems]
        kept = {stem for word in self.words for stem in word.stems}
        return {pair for pair in pairwise(flat) if pair[0] in kept or pair[1] in kept}

    def _by_project(self, values: list[float], projects: list[str]) -> list[float]:
        highest = max(values) or 1.0
        mass: dict[str, float] = {}
        for value, project in zip(values, projects, strict=True):
            mass[project] = mass.get(project, 0.0) + (value / highest) ** SHARPNESS
        total = sum(mass.values()) or 1.0
        return [
            value * (1 + COHERENCE * mass[project] / total) * (HOME if project == self.home else 1.0)
            for value, project in zip(values, projects, strict=True)
        ]

    # --- rungs -------------------------------------------------------------------------------------------------------

    def _on_rungs(self, hits: list[Hit]) -> list[Hit]:
        """Under all and phrase only the rows that match so; under auto each with its rung, the surest rung first."""
        match = self.query.match
        if match == "any":
            return hits
        rungs = ("phrase", "all") if match == "auto" else (match,)
        checks = [(rung, matching.literal(self.query, rung)) for rung in rungs]
        sorted_by_rung: dict[str, list[Hit]] = {rung: [] for rung in (*rungs, "any")}
        for hit in hits:
            row = Row._make(_one(self.connection, f"SELECT {matching.COLUMNS} FROM record WHERE seq = ?", (hit.seq,)))
            rung = next((rung for rung, verify in checks if verify(row)), "any")
            sorted_by_rung[rung].append(hit._replace(match=rung if match == "auto" else ""))
        if match != "auto":
            return sorted_by_rung[match]
        return [hit for rung in (*rungs, "any") for hit in sorted_by_rung[rung]]


class _Text:
    """A record's text as stems: title; search terms; tags, next steps and body."""

    __slots__ = ("fields", "pairs", "plain", "title")

    def __init__(self, row: Row, stems: Stems) -> None:
        sealed = bool(row.digest)
        terms = "\n".join(matching.items(row.search_terms, sealed))
        rest = "\n".join((*matching.items(row.tags, sealed), *matching.items(row.next_steps, sealed), row.body_md))
        self.plain = fold(f"{row.title}\n{terms}\n{rest}")
        self.fields = [stems(row.title), stems(terms), stems(rest)]
        self.title = frozenset(self.fields[0])
        self.pairs = {pair for field in self.fields for pair in pairwise(field)}

    def bm25(self, rarity: dict[str, float], literal: list[str], average: list[float]) -> float:
        weighted: dict[str, float] = {}
        for stems, weight, mean in zip(self.fields, FIELD_WEIGHTS, average, strict=True):
            norm = 1 - B + B * len(stems) / mean
            for stem in stems:
                if stem in rarity:
                    weighted[stem] = weighted.get(stem, 0.0) + weight / norm
        for piece in literal:
            if piece not in weighted and (count := self.plain.count(piece)):
                weighted[piece] = float(count)
        return sum(rarity.get(stem, 0.0) * tf * (K1 + 1) / (tf + K1) for stem, tf in weighted.items())

    def written(self, wanted: set[str]) -> float:
        """The share of the query's words that stand in the text exactly so."""
        return len(wanted.intersection(words(self.plain))) / max(len(wanted), 1)

    def neighbours(self, pairs: set[tuple[str, str]]) -> float:
        """The share of the query's neighbours that stand side by side in one field."""
        return len(pairs.intersection(self.pairs)) / max(len(pairs), 1)

    def holds(self, stems: tuple[str, ...]) -> bool:
        size = len(stems)
        return any(
            field[at] == stems[0] and tuple(field[at : at + size]) == stems
            for field in self.fields
            for at in range(len(field) - size + 1)
        )


def _spelled(wanted: frozenset[str], titles: list[frozenset[str]]) -> list[float]:
    """How alike the query and each title are spelled, from 0 to 1; what many of these titles share counts little."""
    held: dict[str, int] = {}
    for title in titles:
        for piece in title:
            held[piece] = held.get(piece, 0) + 1
    rarity = {piece: math.log(1 + len(titles) / count) ** 2 for piece, count in held.items()}
    unheld = math.log(1 + len(titles)) ** 2
    # A sum of floats depends on its order, and the order of a set on the process.
    asked = math.fsum(rarity.get(piece, unheld) for piece in wanted)
    likeness = []
    for title in titles:
        shared, own = (math.fsum(rarity[piece] for piece in pieces) for pieces in (title & wanted, title))
        likeness.append(shared / math.sqrt(asked * own) if shared else 0.0)
    return likeness


def _varied(scored: list[tuple[float, int, frozenset[str]]]) -> list[tuple[float, int, int]]:
    """(score, seq, seq) of (score, seq, title): each score less what its title shares with one placed above it."""
    left = {seq: (score, 0.0, title) for score, seq, title in scored}
    placed: list[tuple[float, int, int]] = []
    while left:
        best = max(left, key=lambda seq: (left[seq][0] * (1 - ALIKE * left[seq][1]), seq))
        score, alike, shown = left.pop(best)
        placed.append((score * (1 - ALIKE * alike), best, best))
        if len(placed) < VARIED:
            for seq, (score, alike, title) in left.items():
                shared = len(title & shown) / max(len(title | shown), 1)
                left[seq] = (score, max(alike, shared), title)
    return placed


def _sizes(api: apsw.FTS5ExtensionApi, *_values: object) -> str:
    """How many rows an FTS5 table has, and how many words each of its columns."""
    return " ".join(map(str, (api.row_count, *(api.column_total_size(n) for n in range(api.column_count)))))


def _numbers(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> list[int]:
    found: list[tuple[Any, ...]] = connection.execute(sql, values).fetchall()
    return [int(row[0]) for row in found]


def _one(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    row: tuple[Any, ...] = connection.execute(sql, values).fetchall()[0]
    return row
