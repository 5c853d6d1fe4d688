"""What an erasure costs, against what the store's own upkeep costs.

    python scripts/bench/redact.py                      100,000 records, 1 % of them with the value
    python scripts/bench/redact.py --records 20000 --rounds 3
    python scripts/bench/redact.py --only remembered    an import with 1,000 remembered values against one without

`redact`: the whole command in process (search, row transaction, index merge, files, proof), against VACUUM plus a
rebuild of both search indexes of the same store; at most 1.0 of it. `remembered`: CPU of an import while 1,000 values
are remembered, against the same import without; at most 1.2.

A figure is a ratio of the CPU time of two things run in turn on copies of one store, the median of `--rounds` (5); the
ratio of elapsed times, which other work on the machine disturbs, is printed beside it. Nothing here is an absolute
time. Exits 1 when a promise is not kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qiju import record as records
from qiju.admission import Admitted
from qiju.erasure import operation
from qiju.erasure.secret import Secret
from qiju.jsontext import JsonValue
from qiju.projects import Home, ensure
from qiju.redaction.fingerprint import fingerprints
from qiju.store import Store

VALUE = "canary" + "-word-9481x"
WORDS = [
    f"{a}{b}" for a in ("lease", "queue", "retry", "cache", "shard", "token", "build", "merge") for b in range(400)
]
REMEMBERED = 1000


def fields(number: int, chance: random.Random, *, value: bool) -> dict[str, JsonValue]:
    """One record of about a kilobyte."""
    body = " ".join(chance.choice(WORDS) for _ in range(130))
    return records.check(
        {
            "id": f"s{number // 20}:{number % 20 + 1}",
            "ts": records.format_instant(1_700_000_000_000_000 + number * 60_000_000),
            "source": "agent",
            "title": f"record {number}",
            "tags": [chance.choice(WORDS)],
            "body_md": f"{body} {VALUE} end" if value else body,
        }
    )


def build(folder: Path, count: int) -> Path:
    """A store with `count` records, one in a hundred with the value."""
    chance = random.Random(1)
    with Store.open(folder) as store, store.bulk() as bulk:
        project = ensure(store.db.connection, Home("demo"))
        for number in range(count):
            one = fields(number, chance, value=number % 100 == 0)
            # Straight to the rows: what recognising secrets costs is not asked here.
            instant = records.parse_ts(str(one["ts"])) or 0
            bulk.add(
                Admitted({**one, "redactions": []}, frozenset(one), instant, f"s{number // 20}", "id", 0, ()), project
            )
    return folder


def redact(home: Path) -> None:
    """The command's work."""
    with Store.open(home) as store:
        request = operation.Request(Secret(VALUE), "bench", "bench")
        outcome = operation.redact(store, request)
        if outcome.remains:
            raise SystemExit(f"not proven: {outcome.remains}")


def upkeep(home: Path) -> None:
    """VACUUM, and both indexes built anew."""
    with Store.open(home) as store:
        for table in ("record_fts", "record_trigram"):
            store.db.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
        store.db.connection.execute("VACUUM")
        store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def imported(count: int, known: int) -> Callable[[Path], None]:
    """An import of `count` records into a store that remembers `known` values."""

    def run(home: Path) -> None:
        chance = random.Random(2)
        with Store.open(home) as store, store.bulk() as bulk:
            if known:
                key = store.key("fingerprint")
                prints = [
                    print_ for n in range(known) for print_ in fingerprints(key, f"secret-{n:05d}-{n * 7919:08x}")
                ]
                store.db.connection.executemany(
                    "INSERT OR IGNORE INTO redacted_value (fingerprint) VALUES (?)", [(each,) for each in prints]
                )
            project = ensure(store.db.connection, Home("demo"))
            for number in range(count):
                one = fields(number, chance, value=False)
                bulk.add(store.admit(one, session_id="s", session_source="bench"), project)

    return run


def timed(work: Callable[[Path], None], source: Path | None, scratch: Path) -> tuple[float, float]:
    """CPU and elapsed seconds of one run."""
    home = scratch / "home"
    shutil.rmtree(home, ignore_errors=True)
    if source is not None:
        shutil.copytree(source, home)
    cpu, begin = time.process_time(), time.monotonic()
    work(home)
    return time.process_time() - cpu, time.monotonic() - begin


def ratio(
    ours: Callable[[Path], None], other: Callable[[Path], None], source: Path | None, scratch: Path, rounds: int
) -> tuple[float, float]:
    """Median of the first over median of the second, run in turn: of CPU, and of elapsed time."""
    left, right = [], []
    for _ in range(rounds):
        left.append(timed(ours, source, scratch))
        right.append(timed(other, source, scratch))
    cpu, elapsed = (
        statistics.median(run[part] for run in left) / statistics.median(run[part] for run in right) for part in (0, 1)
    )
    return cpu, elapsed


def main() -> int:
    """Run the figures asked for and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("redact", "remembered"))
    options = parser.parse_args()
    kept = True
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if options.only != "remembered":
            source = build(scratch / "source", options.records)
            cpu, elapsed = ratio(redact, upkeep, source, scratch, options.rounds)
            kept &= cpu <= 1.0
            what = f"redact over {options.records} records / VACUUM + index rebuild"
            print(f"{what}: {cpu:.2f} (at most 1.00; elapsed {elapsed:.2f})")
        if options.only != "redact":
            count = min(options.records, 5000)
            cpu, elapsed = ratio(imported(count, REMEMBERED), imported(count, 0), None, scratch, options.rounds)
            kept &= cpu <= 1.2
            what = f"import with {REMEMBERED} remembered values / without"
            print(f"{what}: {cpu:.2f} (at most 1.20; elapsed {elapsed:.2f})")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
