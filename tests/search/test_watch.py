"""A pattern's time limit ends even a match that would take years, on every kind of thread."""

from __future__ import annotations

import re
import signal
import threading
import time

import pytest

from qiju.errors import SearchTimeout, UsageError
from qiju.search.watch import FLAGS, Watch, compiled

RUNAWAY = re.compile(r"(a+)+$", FLAGS)
LONG = "a" * 60 + "!"
HOWS = ["alarm", "child"] if hasattr(signal, "setitimer") else ["child"]


@pytest.mark.parametrize("how", HOWS)
def test_a_runaway_pattern_is_stopped(how: str) -> None:
    began = time.monotonic()
    with pytest.raises(SearchTimeout, match=r"within 0\.3 seconds"), Watch(RUNAWAY, 0.3, how=how) as watch:
        watch.search(LONG)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("how", [*HOWS, "clock"])
def test_the_answer_is_the_patterns(how: str) -> None:
    pattern = compiled("dead.*lock|会话")
    texts = ["", "DEAD\u00a0LOCK", "dead\nlock", "会话恢复", "x" * 200_000, "half \ud800 of a pair deadlock"]
    with Watch(pattern, 60, how=how) as watch:
        assert [watch.search(text) for text in texts] == [pattern.search(text) is not None for text in texts]


def test_time_is_counted_over_all_texts() -> None:
    with Watch(compiled("a"), 0.0001, how="clock") as watch:
        time.sleep(0.01)
        with pytest.raises(SearchTimeout):
            watch.search("a")


def test_off_the_main_thread_only_a_pattern_that_can_run_away_gets_a_process_of_its_own() -> None:
    hows: list[str] = []

    def look() -> None:
        hows.extend(Watch(pattern, 1).how for pattern in (compiled("plain"), RUNAWAY))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert hows == ["clock", "child"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_the_alarm_of_the_program_around_it_comes_back() -> None:
    before = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        with Watch(compiled("a"), 5, how="alarm") as watch:
            watch.search("a")
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("source", "where"),
    [("[", "position 0"), ("(?P<a", "position 4"), ("*a", "position 0"), ("ab(?<=c+)", "look-behind"), ("a{9}{", "")],
)
def test_a_faulty_pattern_is_named_with_its_position(source: str, where: str) -> None:
    if source == "a{9}{":
        assert compiled(source)  # Python takes a lone brace as itself
        return
    with pytest.raises(UsageError, match=re.escape(where)):
        compiled(source)


def test_counts_beyond_the_engine_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="too large"):
        compiled("a{99999999999}")
