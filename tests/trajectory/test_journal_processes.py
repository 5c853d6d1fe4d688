"""A journal between processes: killed writers lose nothing they acknowledged, readers always see a whole prefix."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from qiju.trajectory import JournalTrajectoryStore, TrajectoryQuery


def ids(store: JournalTrajectoryStore) -> list[str]:
    snapshot = store.cut()
    return [record.record_id for record in store.select(snapshot, TrajectoryQuery(), 0, 10**6)]


WRITER = """
import sys
from qiju.trajectory import JournalTrajectoryStore, TrajectoryDraft
with JournalTrajectoryStore(sys.argv[1]) as journal:
    start = len(journal)
    print("ready", start, flush=True)
    for number in range(start, start + 100000):
        journal.append(TrajectoryDraft("s", "event", {"n": number, "pad": "x" * (number * 37 % 900)}, f"k{number}"))
        print(number, flush=True)
"""


def kill_while_appending(path: Path, times: int) -> int:
    """Kill a writer again and again; every record it acknowledged must be there, in order. Returns how many."""
    acknowledged, started = -1, 0
    for round_ in range(times):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        first = writer.stdout.readline().split()
        assert first[0] == "ready"
        # What the earlier writers acknowledged is there; the last one may have written one more before it could say so.
        assert acknowledged < int(first[1]) <= max(acknowledged + 1, started) + 1
        started = int(first[1])
        killer = threading.Timer(0.003 * (1 + round_ % 7), writer.kill)
        killer.start()
        for line in writer.stdout:
            if line.endswith("\n"):
                acknowledged = int(line)
        writer.wait()
        killer.join()
        writer.stdout.close()
    with JournalTrajectoryStore(path, read_only=True) as reader:
        sequence = 0
        snapshot = reader.cut()
        while records := reader.select(snapshot, TrajectoryQuery(), sequence, 500):
            for record in records:
                assert record.payload["n"] == sequence
                sequence = record.sequence
    assert acknowledged < sequence <= max(acknowledged + 1, started) + 1
    return acknowledged


def test_a_killed_writer_loses_nothing_it_acknowledged(journal_path):
    """Kill -9 at changing moments; the bounded form."""
    assert kill_while_appending(journal_path, 8) > 0


@pytest.mark.slow
def test_two_hundred_killed_writers_lose_nothing(journal_path):
    """The same, 200 times on one journal."""
    assert kill_while_appending(journal_path, 200) > 0


def test_readers_in_other_processes_see_whole_prefixes_while_a_writer_writes(journal_path):
    """Many readers during fast appends: always a prefix, never an error, never a gap."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(journal_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        drain = threading.Thread(target=writer.stdout.read)
        drain.start()
        last, deadline = 0, time.monotonic() + 30
        for _ in range(40):
            with JournalTrajectoryStore(journal_path, read_only=True) as reader:
                found = ids(reader)
            assert found == [f"k{number}" for number in range(len(found))]
            assert len(found) >= last
            last = len(found)
            if time.monotonic() > deadline:
                break
    finally:
        writer.kill()
        drain.join()
        writer.wait()
        writer.stdout.close()
    assert last > 0
