"""Figures of keeping: import, Parquet export, and their memory, over records of 1.5 KB.

    python scripts/bench/keeping.py                                  100,000 records, medians of five
    python scripts/bench/keeping.py --records 20000 --rounds 3       a quick look
    python scripts/bench/keeping.py --only export_parquet            one figure

Each figure is a ratio of two things measured in turn (ours, then the bare work), so that a busy machine weighs on both;
memory is the peak of a fresh process that does nothing else. Exits 1 when a promise is not kept. A new figure is one
function and one line in `FIGURES`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from qiju import record
from qiju.store import Store

SIZE = 1500  # characters of a record's JSON, about
MEMORY_LIMIT = 300  # MiB


class Data(NamedTuple):
    """What every figure starts from: a JSONL file of `count` records, and a store that holds them."""

    folder: Path
    count: int
    file: Path
    home: Path


class Figure(NamedTuple):
    """Seconds of one round: ours and the bare work's. `most` is how many times the bare time ours may take."""

    name: str
    measure: Callable[[Data], tuple[float, float]]
    most: float
    command: str  # words of a fresh process whose memory counts, with {file}, {home}, {scratch}


# --- the records -----------------------------------------------------------------------------------------------------


def values(count: int) -> Iterator[dict[str, object]]:
    """Deterministic records that read like session notes: words of a skewed vocabulary, code, some CJK."""
    source = random.Random(7)
    words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 11))) for _ in range(6000)]
    start = record.parse_ts("2024-01-01T00:00:00Z") or 0
    for number in range(1, count + 1):
        picked = source.choices(words, weights=None, k=40) + source.choices(words[:300], k=170)
        source.shuffle(picked)
        body = " ".join(picked) + f"\n\n```\nprocess_{number}(limit={number % 97})\n```\n会话 {number}"
        yield {
            "id": f"session{number // 20}:{number % 20 + 1}",
            "ts": record.format_instant(start + number * 60_000_000 * 12),
            "project": f"project{number % 20}",
            "agent": ("codex", "claude", "kiro")[number % 3],
            "source": "agent",
            "title": " ".join(picked[:7]),
            "tags": picked[7:10],
            "search_terms": picked[10:14],
            "next_steps": [" ".join(picked[14:20])],
            "redactions": [],
            "schema_version": 2,
            "body_md": body[: SIZE - 350],
            "extra": {"files": number % 7, "ok": True},
        }


def prepare(folder: Path, count: int) -> Data:
    """Write the file and fill the store; both are used again by later runs with the same folder and count."""
    from qiju.admission import Admitted
    from qiju.projects import Home, ensure

    data = Data(folder, count, folder / f"{count}.jsonl", folder / f"store-{count}")
    if not data.file.exists():
        with data.file.open("w", encoding="utf-8", newline="\n") as out:
            for value in values(count):
                out.write(json.dumps(value, ensure_ascii=False) + "\n")
    if not data.home.exists():
        # The redaction engine would take minutes here and finds nothing in these words.
        with Store.open(data.home) as store, store.bulk() as bulk:
            for value in values(count):
                fields = record.check(value)  # type: ignore[arg-type]
                owner = ensure(store.db.connection, Home(str(fields["project"]), named=True))
                session = record.split_id(str(fields["id"]))[0]
                instant = record.parse_ts(str(fields["ts"])) or 0
                bulk.add(Admitted(fields, frozenset(fields), instant, session, "id", 0, ()), owner)
    return data


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# --- figures ---------------------------------------------------------------------------------------------------------


def import_jsonl(data: Data) -> tuple[float, float]:
    """Importing the file, against redacting the parsed records and inserting them with their index, nothing else."""
    from qiju import rows
    from qiju.keeping import importing
    from qiju.projects import Home, ensure

    scratch = data.folder / "scratch"

    def ours() -> None:
        with Store.open(scratch / "ours") as store:
            assert (
                importing.import_path(store, str(data.file), importing.Options(), lambda _: None).stored == data.count
            )

    parsed = [record.check(json.loads(line)) for line in data.file.open(encoding="utf-8")]

    def bare() -> None:
        with Store.open(scratch / "bare") as store:
            engine = store.engine()
            with store.bulk() as bulk:
                for slug in {str(value["project"]) for value in parsed}:
                    ensure(store.db.connection, Home(slug, named=True))
                insert = (
                    f"INSERT INTO record ({', '.join(rows.CONTENT)}, instant) "
                    f"VALUES ({', '.join('?' * (len(rows.CONTENT) + 1))})"
                )
                for value in parsed:
                    clean, _ = engine.redact_value(value)
                    assert isinstance(clean, dict)
                    whole = record.build(clean)
                    store.db.connection.execute(insert, (*rows.content(whole), record.parse_ts(whole.ts)))
                for table, columns, source in (
                    ("record_fts", "title, search_terms, tags, next_steps, body_md", "record"),
                    ("record_trigram", "text", "record_search_text"),
                ):
                    store.db.connection.execute(
                        f"INSERT INTO {table} (rowid, {columns}) SELECT seq, {columns} FROM {source}"
                    )
                bulk.finish()

    try:
        return timed(ours), timed(bare)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def export_parquet(data: Data) -> tuple[float, float]:
    """Exporting the store as a Parquet data set, against pyarrow writing the same table from memory, month by month."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    from qiju import archive
    from qiju.keeping import dataset, export
    from qiju.keeping.selection import Selection
    from qiju.query import Query
    from qiju.views import RAW_PRIVATE

    scratch = data.folder / "scratch"
    scratch.mkdir(exist_ok=True)
    with Store.open(data.home) as store:
        batches = list(Selection(store.db, Query(), timeout=10.0).batches())
        months: dict[str, list[archive.Row]] = {}
        for row in (row for batch in batches for row in batch):
            months.setdefault(dataset.month_of(row.instant), []).append(row)
        tables = {month: pa.Table.from_batches([archive.batch(rows)]) for month, rows in months.items()}
        del batches, months
        request = export.Request("parquet", RAW_PRIVATE, scratch / "ours")

        def ours() -> None:
            done = export.export(store, Query(), request, stdout=io.BytesIO(), timeout=10.0, progress=lambda _: None)
            assert done.record_count == data.count

        def bare() -> None:
            for month, table in tables.items():
                place = scratch / "bare" / f"month={month}"
                place.mkdir(parents=True)
                pq.write_table(table, place / "records.parquet", compression="zstd")

        try:
            return timed(ours), timed(bare)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def verify_quick(data: Data) -> tuple[float, float]:
    """`verify --quick`, against a bare read: every record and event fetched and made a value, nothing checked."""
    return _verify(data, quick=True, bare=_read_records)


def verify_all(data: Data) -> tuple[float, float]:
    """`verify`, against the bare read of all it looks at: every record, and SQLite's own walk through every index."""
    return _verify(data, quick=False, bare=_read_everything)


def _verify(data: Data, *, quick: bool, bare: Callable[[Store], None]) -> tuple[float, float]:
    from qiju.keeping.verify import verify

    def ours() -> None:
        with Store.open_for_reading(data.home) as store:
            assert verify(store, quick=quick).ok

    def other() -> None:
        with Store.open_for_reading(data.home) as store:
            bare(store)

    return timed(ours), timed(other)


def _read_records(store: Store) -> None:
    from qiju import rows

    for row in store.db.connection.execute(f"SELECT {rows.COLUMNS} FROM record ORDER BY seq"):
        rows.stored(row)
    for _ in store.db.connection.execute("SELECT * FROM trajectory_event ORDER BY seq"):
        pass


def _read_everything(store: Store) -> None:
    _read_records(store)
    connection = store.db.connection
    connection.execute("PRAGMA integrity_check").fetchall()
    connection.execute("PRAGMA query_only = OFF")
    for table in ("record_fts", "record_trigram"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")


FIGURES = (
    Figure("verify_quick", verify_quick, 3.0, "verify --quick --home {home}"),
    Figure("verify", verify_all, 3.0, "verify --home {home}"),
    Figure("import_jsonl", import_jsonl, 2.0, "import {file} --home {scratch}"),
    Figure(
        "export_parquet",
        export_parquet,
        2.0,
        "export --format parquet --view raw_private --home {home} --output {scratch}",
    ),
)

# The child's highest resident size, its own 10 MiB or so included. Linux's ru_maxrss would count what the parent had
# when it forked, so its high-water mark is read instead.
_PEAK = """
import sys
from qiju.cli.frame import run
code = run(sys.argv[1:])
try:
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
except OSError:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024 if sys.platform == "darwin" else 1024)
print(peak, file=sys.stderr)
sys.exit(code)
"""


def peak_memory(figure: Figure, data: Data) -> int:
    """MiB that a process needs to do the figure's command."""
    scratch = data.folder / "memory"
    shutil.rmtree(scratch, ignore_errors=True)
    words = [word.format(file=data.file, home=data.home, scratch=scratch) for word in figure.command.split()]
    done = subprocess.run([sys.executable, "-c", _PEAK, *words], capture_output=True, check=True)
    shutil.rmtree(scratch, ignore_errors=True)
    return int(done.stderr.split()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=[figure.name for figure in FIGURES])
    parser.add_argument("--data", type=Path, help="keep the generated data there and use it again")
    given = parser.parse_args()
    folder = given.data or Path(tempfile.mkdtemp(prefix="qiju-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    kept = True
    try:
        data = prepare(folder, given.records)
        for figure in FIGURES:
            if given.only not in (None, figure.name):
                continue
            rounds = [figure.measure(data) for _ in range(given.rounds)]
            ratio = statistics.median(ours / bare for ours, bare in rounds)
            memory = peak_memory(figure, data)
            good = ratio <= figure.most and memory <= MEMORY_LIMIT
            kept = kept and good
            rate = given.records / statistics.median(ours for ours, _ in rounds)
            print(
                f"{figure.name:16} {ratio:5.2f} times the bare work (at most {figure.most:g}); {rate:,.0f} records/s; "
                f"peak {memory} MiB (at most {MEMORY_LIMIT}){'' if good else '  NOT KEPT'}",
                flush=True,
            )
    finally:
        if given.data is None:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
