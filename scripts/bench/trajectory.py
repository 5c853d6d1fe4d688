"""Figures of the trajectory half: pages, memory and verification, over a store and a journal.

    python scripts/bench/trajectory.py                      100,000 records against 10,000
    python scripts/bench/trajectory.py --records 1000000    the size the promises are made for
    python scripts/bench/trajectory.py --data DIR           keep the generated data there and use it again

Records are 1 KB. Every figure is a ratio of two things measured in turn, medians of five; memory is the peak of a fresh
process above that of a bare interpreter. Exits 1 when a promise is not kept.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from qiju.trajectory import (
    JournalTrajectoryStore,
    PrivacyView,
    RecordKind,
    SqliteTrajectoryStore,
    StoreTrajectoryReader,
    TrajectoryDraft,
    TrajectoryQuery,
    events,
    read_page,
)
from qiju.trajectory.sources import seal
from qiju.trajectory.verifying import verify_journal

RAW = PrivacyView.RAW_PRIVATE
SMALL = 10_000
PAGE = 100
ROUNDS = 5
MIB = 1 << 20

CHILD = """
import sys
from pathlib import Path
what, place, target = sys.argv[1:4]
if what != "bare":
    from qiju.trajectory import CanonicalTrajectoryExporter, PrivacyView, TrajectoryQuery, default_reader, read_page
    with default_reader(place) as reader:
        query = TrajectoryQuery(limit=100)
        if what == "page":
            cursor = None
            for _ in range(300):
                page = read_page(reader, query, cursor, view=PrivacyView.RAW_PRIVATE)
                cursor = page.next_cursor
                if cursor is None:
                    break
        else:
            CanonicalTrajectoryExporter().export_file(reader, query, target, view=PrivacyView(what))
for line in Path("/proc/self/status").read_text().splitlines():
    if line.startswith("VmHWM"):
        print(line.split()[1])
"""


def drafts(count: int) -> Iterator[TrajectoryDraft]:
    """1 KB records of ordinary prose, a hundred records a session, one in a thousand of a rare kind."""
    prose = "The parser keeps the token of a number, so nothing is rounded on the way through the store. " * 11
    for number in range(count):
        kind = RecordKind.STEERING if number % 1000 == 999 else RecordKind.MESSAGE
        payload = {"role": "assistant", "content": f"{number} {prose}"[:960]}
        yield TrajectoryDraft(
            f"session-{number // 100}", kind, payload, record_id=f"r{number}", ts="2026-03-01T00:00:00Z"
        )


def build(folder: Path, count: int) -> Path:
    """A home with `count` events, and a journal of the same records beside it; used again when there."""
    home = folder / f"home-{count}"
    if (folder / f"{count}.done").exists():
        return home
    began = time.perf_counter()
    with SqliteTrajectoryStore.open(home, writable=True) as store, store.store.db.write():
        for draft in drafts(count):
            # Sealed and inserted without the redaction engine: it is not what is measured here.
            events.insert(store.store.db, seal(draft))
    between = time.perf_counter()
    with JournalTrajectoryStore(folder / f"{count}.journal") as journal:
        journal.append_many(drafts(count))
    (folder / f"{count}.done").touch()
    print(f"built {count:,}: store {between - began:.1f} s, journal {time.perf_counter() - between:.1f} s", flush=True)
    return home


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def ratio(one: Callable[[], object], other: Callable[[], object]) -> tuple[float, float, float]:
    """Median of `one` over median of `other`, run in turn after a warm-up of each."""
    one()
    other()
    pairs = [(timed(one), timed(other)) for _ in range(ROUNDS)]
    first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
    return first / second, first, second


def pages(reader: StoreTrajectoryReader, at: int, query: TrajectoryQuery) -> Callable[[], object]:
    """Reads the page that begins behind `at` pages, several times over; its cursor is made by walking there once with
    large pages, since the size of a page may change from one to the next."""
    if at == 0:
        first = read_page(reader, query, view=RAW).snapshot
        return lambda: [read_page(reader, query, first, view=RAW) for _ in range(20)]
    walk = TrajectoryQuery(query.session_id, kinds=query.kinds, limit=at * PAGE)
    cursor = read_page(reader, walk, view=RAW).next_cursor
    assert cursor is not None
    return lambda: [read_page(reader, query, cursor, view=RAW) for _ in range(20)]


def peak(what: str, place: Path, target: Path) -> float:
    """Peak memory of a fresh process in MiB."""
    child = [sys.executable, "-c", CHILD, what, str(place), str(target)]
    return int(subprocess.run(child, capture_output=True, text=True, check=True).stdout) / 1024


class Report:
    def __init__(self) -> None:
        self.kept = True

    def line(self, name: str, value: float, bound: float, text: str, *, at_least: bool = False) -> None:
        good = value >= bound if at_least else value <= bound
        self.kept &= good
        print(
            f"{'ok  ' if good else 'MISS'} {name:<52} {value:8.2f} ({'>=' if at_least else '<='} {bound})  {text}",
            flush=True,
        )


def measure(folder: Path, count: int, report: Report) -> None:
    for name in ("store", "journal"):
        places = {n: build(folder, n) if name == "store" else folder / f"{n}.journal" for n in (SMALL, count)}
        readers = {
            n: StoreTrajectoryReader(SqliteTrajectoryStore.open(place))
            if name == "store"
            else StoreTrajectoryReader.from_journal(place)
            for n, place in places.items()
        }
        big, small = readers[count], readers[SMALL]
        for label, query in (
            ("all", TrajectoryQuery(limit=PAGE)),
            ("one session", TrajectoryQuery("session-50", limit=PAGE)),
            ("a rare kind", TrajectoryQuery(kinds=(RecordKind.STEERING,), limit=10)),
        ):
            value, one, other = ratio(pages(big, 0, query), pages(small, 0, query))
            text = f"{one / 20 * 1e3:.2f} ms against {other / 20 * 1e3:.2f} ms"
            report.line(f"{name}: a page ({label}), {count:,} to {SMALL:,}", value, 1.5, text)
        far = min(5000, count // PAGE - 2)
        query = TrajectoryQuery(limit=PAGE)
        value, one, other = ratio(pages(big, far, query), pages(big, 0, query))
        report.line(
            f"{name}: page {far:,} to page 1", value, 1.5, f"{one / 20 * 1e3:.2f} ms, {other / 20 * 1e3:.2f} ms"
        )
        for reader in readers.values():
            reader.close()
    verification(folder, count, report)
    memory(folder, count, report)


def verification(folder: Path, count: int, report: Report) -> None:
    """Checking everything against reading the same bytes from the same place and only hashing them."""
    home, journal = folder / f"home-{count}", folder / f"{count}.journal"
    with SqliteTrajectoryStore.open(home) as store:

        def read_and_hash() -> None:
            digest = sha256()
            for (payload,) in store.store.db.connection.execute("SELECT CAST(payload AS BLOB) FROM trajectory_event"):
                digest.update(payload)

        value, one, other = ratio(read_and_hash, store.verify)
        report.line("store: verification to hashing", value, 0.5, f"{other:.2f} s, {one:.2f} s", at_least=True)

    def streamed() -> None:
        digest = sha256()
        with journal.open("rb", buffering=0) as file:
            while block := file.read(MIB):
                digest.update(block)

    with JournalTrajectoryStore(journal, read_only=True) as reader:
        snapshot = reader.cut()

        def whole() -> None:
            with reader.opened(snapshot, whole=True):
                pass

        value, one, other = ratio(streamed, whole)
        report.line("journal: whole snapshot to hashing", value, 0.5, f"{other:.2f} s, {one:.2f} s", at_least=True)
    value, one, other = ratio(streamed, lambda: verify_journal(journal))
    # Each record hashed on its own, in Python: no promise is made for it.
    print(f"     journal: `verify`, frame by frame, to hashing: {value:.2f}  {other:.2f} s, {one:.2f} s", flush=True)


def memory(folder: Path, count: int, report: Report) -> None:
    if not Path("/proc/self/status").exists():
        print("memory: not measured, this system has no /proc")
        return
    target = folder / "export.json"
    bare = statistics.median(peak("bare", folder, target) for _ in range(ROUNDS))
    for name, place in (("store", folder / f"home-{count}"), ("journal", folder / f"{count}.journal")):
        for what, label in (("page", "paging"), ("raw_private", "export_file")):
            value = peak(what, place, target) - bare
            report.line(f"{name}: {label}, MiB above a bare interpreter", value, 64, f"bare: {bare:.1f} MiB")
    target.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    folder = arguments.data or Path(tempfile.mkdtemp(prefix="qiju-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    report = Report()
    try:
        for count in (SMALL, arguments.records):
            build(folder, count)
        measure(folder, arguments.records, report)
    finally:
        if arguments.data is None:
            shutil.rmtree(folder)
    return 0 if report.kept else 1


if __name__ == "__main__":
    sys.exit(main())
