"""Many writers and readers on one store: no record lost, nobody refused but for a lock, no reader held up, WAL bounded.

Writers and readers are processes of their own that import the program once and then work as `log` and `search` do, a
fresh store object for every record. `-m slow` runs sixteen of each for a minute; QIJU_TEST_LOAD sets other seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from program import Place

from qiju.db import JOURNAL_LIMIT

WRITER = """
import json, sys, time
from pathlib import Path
from qiju import record
from qiju.errors import StoreBusy
from qiju.place.config import Config
from qiju.projects import Home
from qiju.store import Store
home, name, until = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
number = 0
while time.time() < until:
    number += 1
    fields = {"title": f"{name} {number}", "agent": name, "source": "agent", "body_md": f"load {name} " + "word " * 40}
    try:
        with Store.open(home) as store:
            admitted = store.admit(record.check(fields), session_id=name, session_source="flag")
            logged = store.log(admitted, Home(f"p{number % 3}", "", "", True))
        print(json.dumps(["stored", logged.id, logged.project, f"{name} {number}"]), flush=True)
    except StoreBusy as error:
        print(json.dumps(["busy", error.kind, "", f"{name} {number}"]), flush=True)
"""

READER = """
import json, sys, time
from pathlib import Path
from qiju.store import Store
home, until = Path(sys.argv[1]), float(sys.argv[2])
times, last, backward = [], 0, 0
while time.time() < until:
    began = time.perf_counter()
    with Store.open_for_reading(home) as store, store.db.read() as connection:
        top, count = connection.execute("SELECT coalesce(max(seq), 0), count(*) FROM record").fetchall()[0]
        found = connection.execute("SELECT count(*) FROM record_fts WHERE record_fts MATCH 'load'").fetchall()[0][0]
        assert found == count, (found, count)
    times.append(time.perf_counter() - began)
    backward += top < last
    last = top
    time.sleep(0.002)
print(json.dumps([len(times), sorted(times)[len(times) // 2] if times else 0, max(times, default=0), backward]))
"""


def load(place: Place, each: int, seconds: float) -> dict[str, Any]:
    """Run `each` writers and readers for so long; what they said, and how far the log grew."""
    place.log(title="first", body_md="load")
    until = str(time.time() + seconds + 1.0)
    command = [sys.executable, "-c"]
    # Files, not pipes: a full pipe would stop a writer.
    said_in = [place.folder / f"said{n}" for n in range(2 * each)]

    def start(number: int, *words: str) -> subprocess.Popen[str]:
        with said_in[number].open("w", encoding="utf-8") as out:
            return subprocess.Popen([*command, *words], env=place.env, stdout=out, stderr=subprocess.PIPE, text=True)

    writers = [start(n, WRITER, str(place.home), f"writer{n}", until) for n in range(each)]
    readers = [start(each + n, READER, str(place.home), until) for n in range(each)]
    wal, largest = place.db.with_name("qiju.db-wal"), 0
    while time.time() < float(until):
        try:
            largest = max(largest, wal.stat().st_size)
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    for process in (*writers, *readers):
        _, err = process.communicate(timeout=180)
        assert process.returncode == 0, err
    lines = [json.loads(line) for path in said_in for line in path.read_text(encoding="utf-8").splitlines()]
    said = [line for line in lines if isinstance(line[0], str)]
    read = [line for line in lines if not isinstance(line[0], str)]
    assert len(read) == each
    return {"said": said, "read": read, "wal": largest}


def judge(place: Place, result: dict[str, Any]) -> dict[str, Any]:
    """Hold what writers were told against what the store has; returns the figures."""
    stored = [(project, identity) for what, identity, project, _title in result["said"] if what == "stored"]
    busy = [one for one in result["said"] if one[0] == "busy"]
    assert len(set(stored)) == len(stored), "a number was given twice"
    place.log(title="last", body_md="load")  # drains the spool
    rows = place.ok("search", "--scope", "all", "--fields", "id,project,title").json()
    found = [(row["project"], row["id"]) for row in rows]
    assert len(found) == len(set(found))
    assert set(stored) <= set(found), "an acknowledged record is gone"
    titles = [row["title"] for row in rows]
    assert all(titles.count(title) == 1 for _w, _i, _p, title in busy), "a record of the spool is gone, or there twice"
    assert len(rows) == len(stored) + len(busy) + 2
    assert list((place.home / "spool").glob("*")) == []
    assert place.run("verify").code == 0
    assert all(backward == 0 for *_rest, backward in result["read"]), "a reader went back in time"
    assert all(reads > 0 for reads, *_rest in result["read"]), "a reader was held up"
    assert result["wal"] < 2 * JOURNAL_LIMIT
    return {
        "records": len(stored),
        "busy": len(busy),
        "reads": sum(reads for reads, *_rest in result["read"]),
        "median_read_ms": round(
            1000 * sorted(middle for _n, middle, *_rest in result["read"])[len(result["read"]) // 2]
        ),
        "slowest_read_ms": round(1000 * max(slowest for _n, _m, slowest, _b in result["read"])),
        "largest_wal_kib": result["wal"] // 1024,
    }


def test_four_writers_and_four_readers(place: Place) -> None:
    figures = judge(place, load(place, 4, 6.0))
    assert figures["records"] >= 4


@pytest.mark.slow
def test_sixteen_writers_and_sixteen_readers_for_a_minute(place: Place, record_property: Any) -> None:
    figures = judge(place, load(place, 16, float(os.environ.get("QIJU_TEST_LOAD", 60))))
    for name, value in figures.items():
        record_property(name, value)
    print(figures)
    assert figures["records"] >= 16


def test_a_reader_does_not_wait_for_a_writer(place: Place) -> None:
    """While one transaction is held open for writing, searching works and shows the state before it."""
    from qiju.db import Database

    place.log(title="before")
    with Database.open(place.db) as holder, holder.write() as connection:
        connection.execute("INSERT INTO record(id, project, title) VALUES ('x:1', 'demo', 'not yet')")
        found = place.ok("search", "--scope", "all").json()
        assert [row["title"] for row in found] == ["before"]
        assert place.ok("show", found[0]["id"]).json()["title"] == "before"


def test_a_writer_does_not_wait_for_a_reader_and_the_log_is_cut_back(place: Place) -> None:
    """An old snapshot keeps the log from being reset; when it ends, the next writer cuts the log back."""
    from qiju.db import Database

    place.log(title="before")
    wal = place.db.with_name("qiju.db-wal")
    with Database.open_for_reading(place.db) as reader:
        with reader.read():
            assert reader.value("SELECT count(*) FROM record") == 1
            for number in range(5):
                place.log(title=f"during {number}")
            assert reader.value("SELECT count(*) FROM record") == 1
            held = wal.stat().st_size
        assert held > 0
        place.log(title="after")
    place.log(title="at the end")
    assert not wal.exists() or wal.stat().st_size <= JOURNAL_LIMIT
    assert len(place.ok("search", "--scope", "all").json()) == 8


@pytest.mark.parametrize("fails", [False, True])
def test_the_spool_is_drained_once_by_many(place: Place, fails: bool) -> None:
    """Eight writers that all find the same spool store each of its records once; an unreadable one stays."""
    from qiju.db import Database

    place.log(title="first")
    (place.home / "config.toml").write_text("lock_wait = 0.05\n", encoding="utf-8")
    with Database.open(place.db) as holder, holder.write():
        for number in range(6):
            given = json.dumps({"title": f"held {number}", "body_md": "b"})
            assert place.run("log", "--source", "agent", "--project", "demo", given=given).code == 5
    (place.home / "config.toml").unlink()
    if fails:
        (place.home / "spool" / "00000000000000000000-1-aa.json").write_text("[torn", encoding="utf-8")
    body = place.folder / "body.json"
    body.write_text('{"title": "new", "body_md": "b"}', encoding="utf-8")
    words = ["log", "--source", "agent", "--project", "demo", "--body", str(body)]
    runs = [place.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(8)]
    assert [run.wait(120) for run in runs] == [0] * 8
    titles = [row["title"] for row in place.ok("search", "--scope", "all").json()]
    assert sorted(titles) == sorted(["first", *["new"] * 8, *(f"held {n}" for n in range(6))])
    left = [path.name for path in (place.home / "spool").iterdir()]
    assert left == (["00000000000000000000-1-aa.json"] if fails else [])


def test_a_held_lock_names_its_holder(place: Place) -> None:
    """Exit 5, and on Linux the process that holds the lock."""
    from qiju.db import Database

    place.log(title="some" + "thing9")
    (place.home / "config.toml").write_text("lock_wait = 0.05\n", encoding="utf-8")
    source = Path(place.folder / "in.jsonl")
    source.write_text('{"id": "a:1", "title": "t", "project": "demo", "source": "agent"}\n', encoding="utf-8")
    with Database.open(place.db) as holder, holder.write():
        for words in (["import", str(source)], ["redact", "--value", "some" + "thing9", "--reason", "r"]):
            done = place.run(*words)
            assert done.code == 5, done
            assert sys.platform != "linux" or f"process {os.getpid()}" in done.err, done
