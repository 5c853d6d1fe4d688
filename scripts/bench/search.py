"""Figures of search: latency by size and path, against SQLite's shell, ripgrep and growth; memory; size of the store.

    python scripts/bench/search.py                                   10,000 and 100,000 records
    python scripts/bench/search.py --records 1000000                 10,000 and 1,000,000
    python scripts/bench/search.py --shape late                      half of the store imported late
    python scripts/bench/search.py --only rare --rounds 9            figures whose name holds a word
    python scripts/bench/search.py --folder DIR                      keep the stores there, and use them again
    python scripts/bench/search.py --predecessor PROGRAM             also against the predecessor's program

Records of 1.5 KB with planted words: deadlock 30 %, livelock 5 %, backpressure 1 %, E7741 0.1 %, heisenbug 0.01 %,
会话恢复 1 %, 令牌 3 %. Shapes: `plain`; `future` (one record dated 2099); `late` (half imported after the rest, with
older times among theirs); `german` (30 % German, 5 % NFD text).

A figure is a ratio of two things run in turn, the median of `--rounds` (5) after one unmeasured run; nothing here is
an absolute time. In process CPU time counts, for whole processes the clock. Exits 1 when a promise is not kept. What
cannot run here (no sqlite3, no rg) is named.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from qiju import jsontext, record
from qiju.query import Filters, Query
from qiju.record import Record, format_instant
from qiju.search import engine, pages
from qiju.store import Store

SMALL = 10_000
SHAPES = ("plain", "future", "late", "german")
PLANTED = (("deadlock", 0.3), ("livelock", 0.05), ("backpressure", 0.01), ("E7741", 0.001), ("heisenbug", 0.0001))
PLANTED_CJK = (("会话恢复", 0.01), ("令牌", 0.03))
HAN = "".join(map(chr, range(0x4E00, 0x4E00 + 2500))).replace("令", "").replace("会", "")
UMLAUTS = str.maketrans({"a": "ä", "o": "ö", "u": "ü"})
START = 1_672_531_200_000_000  # 2023-01-01
STEP = 90_000_000  # microseconds between two records


class Data(NamedTuple):
    """A store and the same records as JSONL."""

    count: int
    store: Store
    file: Path
    cpu: float  # seconds of the import with both indexes
    bare_cpu: float  # and of the rows without

    def run(self, query: Query, limit: int = 20) -> engine.Found:
        with self.store.db.read() as connection:
            return engine.run(connection, query, limit=limit, timeout=300)


class Figure(NamedTuple):
    """Two things to time in turn, and the most that the first may take of the second."""

    name: str
    ours: Callable[[], object]
    other: Callable[[], object]
    most: float


# --- the records -----------------------------------------------------------------------------------------------------


def records(count: int, shape: str) -> Iterator[tuple[Record, int]]:
    """Deterministic records of about 1.5 KB as JSON, with their instants, in the order of their writing."""
    source = random.Random(11)
    letters = "eeeeaaiioouuttnnssrrllddmmccppbbgghhffkkvvwwyyxzjq"
    vocabulary = ["".join(source.choices(letters, k=source.randint(3, 10))) for _ in range(30_000)]
    weights = [1 / (rank + 2.7) for rank in range(len(vocabulary))]
    cumulative = []
    total = 0.0
    for weight in weights:
        total += weight
        cumulative.append(total)
    for number in range(1, count + 1):
        words = source.choices(vocabulary, cum_weights=cumulative, k=170)
        for planted, share in PLANTED:
            if source.random() < share:
                words[source.randrange(8, 170)] = planted
        for planted, share in PLANTED_CJK:
            if source.random() < share:
                words.append("".join(source.choices(HAN, k=9)) + planted + "".join(source.choices(HAN, k=6)))
        if shape == "german" and number % 10 < 3:
            words = [word.translate(UMLAUTS) if place % 4 == 0 else word for place, word in enumerate(words)]
        text = " ".join(words[8:])
        if shape == "german" and number % 20 == 0:
            text = unicodedata.normalize("NFD", text.translate(UMLAUTS))
        place = number * 2 if shape == "late" and number <= count // 2 else number
        if shape == "late" and number > count // 2:
            place = (number - count // 2) * 2 - 1
        instant = START + place * STEP
        if shape == "future" and number == count // 2:
            instant = 4_070_908_800_000_000
        yield (
            Record(
                id=f"{source.getrandbits(128):032x}:{number}",
                ts=format_instant(instant),
                project=f"project-{int(source.paretovariate(0.6)) % 200}",
                agent=source.choice(("claude", "codex", "kiro")),
                source="agent",
                title=" ".join(words[:8]),
                body_md=text,
                tags=tuple(source.sample(vocabulary[:60], 3)),
                search_terms=tuple(source.sample(vocabulary, 4)),
                next_steps=(" ".join(source.choices(vocabulary, k=8)),),
            ),
            instant,
        )


def build(folder: Path, count: int, shape: str) -> Data:
    """A store of `count` records, made in bulk as an import does; an earlier one of the same kind is used again."""
    home = folder / f"{shape}-{count}"
    file = folder / f"{shape}-{count}.jsonl"
    note = home / "import.txt"
    if not note.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        with file.open("w", encoding="utf-8", newline="\n") as lines:
            for one, _ in records(count, shape):
                lines.write(one.canonical() + "\n")
        bare = _fill(folder / "bare", file, count, shape, indexed=False)
        shutil.rmtree(folder / "bare")
        note.write_text(f"{_fill(home, file, count, shape, indexed=True)} {bare}", encoding="utf-8")
    cpu, bare_cpu = map(float, note.read_text(encoding="utf-8").split())
    return Data(count, Store.open_for_reading(home), file, cpu, bare_cpu)


def _fill(home: Path, file: Path, count: int, shape: str, *, indexed: bool) -> float:
    """CPU seconds to put the records in: with both indexes as `Store.bulk` builds them, or the rows alone."""
    instants = [instant for _, instant in records(count, shape)] if shape in ("late", "future") else []
    home.mkdir(exist_ok=True)
    with Store.open(home) as store, file.open(encoding="utf-8") as lines:
        made = [Record.from_json(jsontext.parse(line)) for line in lines] if count <= 200_000 else None
        began = time.process_time()
        with store.bulk() as bulk, store.db.write() as connection:
            source = made if made is not None else (Record.from_json(jsontext.parse(line)) for line in file.open("rb"))
            for place, one in enumerate(source):
                instant = instants[place] if instants else record.parse_ts(one.ts)
                session = record.split_id(one.id)[0]
                seq, _ = store.insert_row(connection, one, instant, session, "", tier="long")
                bulk._first = bulk._first or seq
            if not indexed:
                bulk._first = 0
        spent = time.process_time() - began
    return spent


# --- the figures -----------------------------------------------------------------------------------------------------


def figures(small: Data, large: Data, shape: str) -> Iterator[Figure]:
    """The ratios in process. Pages far on are reached by cursors, once, before anything is timed."""
    common = Query(text="deadlock livelock")
    yield Figure(
        f"newest page of 20, common words: {large.count:,} / {small.count:,}",
        lambda: large.run(common),
        lambda: small.run(common),
        2,
    )
    far = _page(large, common, 500)
    first = _page(large, common, 1)
    yield Figure("page 500 / page 1, common words", far, first, 2.5)
    if shape != "plain":
        return
    yield Figure(
        "two-character CJK term / four characters",
        lambda: large.run(Query(text="令牌")),
        lambda: large.run(Query(text="会话恢复")),
        5,
    )
    yield Figure(
        "relevance, common words / newest page",
        lambda: large.run(common._replace(sort="relevance")),
        lambda: large.run(common),
        50,
    )
    yield Figure(
        "one large project, common words / all projects",
        lambda: large.run(common._replace(filters=Filters(("project-1",)))),
        lambda: large.run(common),
        10,
    )


def _page(data: Data, query: Query, number: int) -> Callable[[], object]:
    binding = pages.Binding(b"k" * 32, "bench")
    token = ""
    for _ in range(number - 1):
        with data.store.db.read() as connection:
            token = pages.page(connection, query, binding, token=token, limit=20).next_cursor or ""
        if not token:
            break

    def ask() -> object:
        with data.store.db.read() as connection:
            return pages.page(connection, query, binding, token=token, limit=20)

    return ask


def shell_figures(large: Data) -> Iterator[tuple[str, Callable[[], float], Callable[[], float], float]]:
    """Ours in process against the time that SQLite's shell reports for its own MATCH of the same word."""
    for name, word in (("rare term", "heisenbug"), ("no hit", "zzqqxxyy")):
        pieces = " AND ".join(f'"{word[at : at + 3]}"' for at in range(len(word) - 2))
        sql = f"SELECT count(*) FROM (SELECT rowid FROM record_trigram('{pieces}') ORDER BY rowid DESC LIMIT 20);"
        yield f"{name} / sqlite3's own MATCH", _timed(large, word), lambda sql=sql: _shell(large, sql), 5  # type: ignore[misc]


def _timed(data: Data, text: str) -> Callable[[], float]:
    def ask() -> float:
        return _clock(lambda: data.run(Query(text=text)))()

    return ask


def _shell(data: Data, sql: str) -> float:
    """Seconds inside SQLite, warm: the shell runs the statement twenty times and the median counts."""
    script = ".timer on\n" + f"{sql}\n" * 21
    path = data.store.db.path
    done = subprocess.run(["sqlite3", "-readonly", str(path)], input=script, capture_output=True, text=True, check=True)
    words = [line.split() for line in done.stdout.splitlines() if line.startswith("Run Time")]
    found = [float(each[5]) + float(each[7]) for each in words]  # user and sys: real has milliseconds only
    return max(statistics.median(found[1:]), 0.00001)


def ripgrep(large: Data) -> tuple[Callable[[], float], Callable[[], float]]:
    """A regular expression with a literal, newest 20, in process, against `rg -i -c` over the JSONL as a process."""
    query = Query(text=r"heisen\w+ug", regex=True)

    def ours() -> float:
        began = time.perf_counter()
        large.run(query)
        return time.perf_counter() - began

    def rg() -> float:
        began = time.perf_counter()
        subprocess.run(["rg", "-i", "-c", r"heisen\w+ug", str(large.file)], capture_output=True, check=False)
        return time.perf_counter() - began

    return ours, rg


def process(words: list[str]) -> float:
    """Seconds of a whole process."""
    began = time.perf_counter()
    subprocess.run(words, capture_output=True, check=True)
    return time.perf_counter() - began


def peak(home: Path, words: list[str]) -> float:
    """Peak memory in MiB of a fresh process that searches."""
    script = (
        "import resource, sys; from qiju.cli.frame import run; code = run(sys.argv[1:]);"
        " print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words, "--home", str(home)], capture_output=True, text=True, check=True
    )
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return float(done.stderr.split()[-1]) / unit


class Report:
    """Prints figures and remembers whether a promise was broken."""

    def __init__(self, only: str, rounds: int) -> None:
        self.only, self.rounds, self.kept = only, rounds, True

    def wanted(self, name: str) -> bool:
        return self.only in name

    def say(self, name: str, value: float, most: float, unit: str = "x") -> None:
        good = value <= most
        self.kept = self.kept and good
        print(f"{'ok  ' if good else 'OVER'} {name}: {value:.3g} {unit}, at most {most:g}", flush=True)

    def ratio(self, name: str, ours: Callable[[], float], other: Callable[[], float], most: float) -> None:
        if not self.wanted(name):
            return
        ours(), other()
        pairs = [(ours(), other()) for _ in range(self.rounds)]
        self.say(name, statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs), most)


def _clock(ask: Callable[[], object]) -> Callable[[], float]:
    """CPU seconds of one call, the median of five: on a busy machine the clock counts the others' turns as well."""

    def timed() -> float:
        spent = []
        for _ in range(5):
            began = time.process_time()
            ask()
            spent.append(time.process_time() - began)
        return statistics.median(spent)

    return timed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--shape", choices=SHAPES, default="plain")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--predecessor", help="its program; its store is written into the folder")
    given = parser.parse_args()
    report = Report(given.only, given.rounds)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        small, large = build(folder, SMALL, given.shape), build(folder, given.records, given.shape)
        with small.store, large.store:
            for name, ask, other, most in figures(small, large, given.shape):
                report.ratio(name, _clock(ask), _clock(other), most)
            if given.shape == "plain":
                _outside(report, large, given.predecessor, folder)
    return 0 if report.kept else 1


def _outside(report: Report, large: Data, predecessor: str | None, folder: Path) -> None:
    """Figures against other programs, of memory and of size."""
    if shutil.which("sqlite3"):
        for name, ours, other, most in shell_figures(large):
            report.ratio(name, ours, other, most)
    else:
        print("--   sqlite3 is not installed: rare term and no hit were not measured")
    if shutil.which("rg"):
        report.ratio("regex with a literal, newest 20 / rg -i", *ripgrep(large), 1 if large.count < 10**6 else 0.15)
    else:
        print("--   rg is not installed: the regular expression was not measured")
    home = large.store.home
    if report.wanted("peak memory"):
        words = ["search", "--scope", "all", "--query", "deadlock livelock", "--limit", "20"]
        report.say("peak memory of a search of 20 hits", peak(home, words), 40, "MiB")
    if report.wanted("size"):
        size = (home / "qiju.db").stat().st_size / large.file.stat().st_size
        report.say("size of the database / JSONL", size, 2.5)
    if report.wanted("import"):
        report.say("import, both indexes / rows alone (CPU)", large.cpu / large.bare_cpu, 38)
    if predecessor:
        old = folder / "predecessor"
        (old / "long").mkdir(parents=True, exist_ok=True)
        target = old / "long" / "all.jsonl"
        if not target.exists():
            shutil.copyfile(large.file, target)
        words = ["search", "--scope", "all", "--query", "heisenbug", "--limit", "20"]
        report.ratio(
            "whole process, rare term / predecessor",
            lambda: process([sys.executable, "-m", "qiju", *words, "--home", str(home)]),
            lambda: process(["env", f"QIJU_HOME={old}", predecessor, *words]),
            0.05,
        )


if __name__ == "__main__":
    sys.exit(main())
