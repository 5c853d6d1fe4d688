"""What a person at a terminal sees, and that a pipe, a dumb terminal and an agent's terminal see none of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from program import SESSION, Place

from qiju import reading, render
from qiju.cli.context import Context

pty = pytest.importorskip("pty")

HOSTILE = (
    "\x1b]0;owned\x07 \x1b[31mred \u202etxt.exe [bold]x[/bold] <script>alert(1)</script> ![p](https://e.example/p.png)"
)


TABLE = ("search", "--scope", "all", "--format", "table")
SHOWN = ("show", f"{SESSION}:1", "--format", "text")


def on_terminal(place: Place, *words: str, columns: int = 100, rows: int = 50, **env: str) -> str:
    """What the program writes to a terminal of this size."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = {**place.env, "TERM": "xterm-256color", "PAGER": "cat", **env}
    child = subprocess.Popen(
        place.command(*words), cwd=place.project, env=variables, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    child.wait()
    return seen.decode("utf-8").replace("\r\n", "\n")


def bare(text: str) -> str:
    """Text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def store(place: Place) -> Place:
    place.log(
        title="Leases",
        body_md="# Why\n\nThe **holder** renews.\n\n- one\n- two",
        tags=["locks"],
        next_steps=["tell ops"],
    )
    place.log(title=HOSTILE, body_md=HOSTILE, tags=[HOSTILE], next_steps=[HOSTILE])
    place.log(title="表式處理" * 20, body_md="重试 " * 60)
    return place


def test_show_is_laid_out_for_a_person(store: Place) -> None:
    """Title, facts, rendered body and steps; the time as written with its age beside it."""
    seen = on_terminal(store, *SHOWN)
    plain = bare(seen)
    assert plain.startswith("Leases\n")
    assert re.search(r"^ts +\d{4}-\d\d-\d\dT.*\((just now|\d+ minutes? ago)\)$", plain, re.M)
    assert "**holder**" not in plain
    assert "\x1b[1m" in seen
    assert " • one" in plain
    assert "☐ tell ops" in plain


def test_json_is_the_default_at_a_terminal_too(store: Place) -> None:
    """Some hosts give their agents a terminal; what is printed without --format is the same everywhere."""
    assert json.loads(on_terminal(store, "show", f"{SESSION}:1"))["title"] == "Leases"
    assert len(json.loads(on_terminal(store, "search", "--scope", "all"))) == 3


def test_output_in_a_pipe_is_the_same_whatever_the_environment(store: Place) -> None:
    """No colour and no width of a terminal gets into what scripts read."""
    forced = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-256color", "PAGER": "false"}
    for words in (SHOWN, TABLE):
        assert store.ok(*words).out == store.ok(*words, env=forced).out
        assert "\x1b" not in store.ok(*words, env=forced).out


@pytest.mark.parametrize(
    "words",
    [("show", f"{SESSION}:2", "--format", "text"), TABLE, ("stats",), ()],
)
def test_text_of_records_cannot_steer_the_terminal(store: Place, words: tuple[str, ...]) -> None:
    """Only colours of our own reach it: no title, no direction, no markup, and no tag is swallowed."""
    seen = on_terminal(store, *words)
    assert "\x1b" not in bare(seen)
    assert "\x1b[31m" not in seen
    assert "\x07" not in seen
    assert "\u202e" not in seen
    if words[:1] == ("show",):
        squeezed = re.sub(r"\s+", "", bare(seen))
        assert squeezed.count("[bold]x[/bold]") == 4
        assert squeezed.count("<script>alert(1)</script>") == 4


def test_no_color_means_no_codes_at_all(store: Place) -> None:
    """Not even bold, whatever else asks for it."""
    for words in (
        SHOWN,
        TABLE,
        ("stats",),
    ):
        assert "\x1b" not in on_terminal(store, *words, NO_COLOR="1", FORCE_COLOR="1")
        assert "\x1b" not in on_terminal(store, *words, "--no-color")


@pytest.mark.parametrize("columns", [20, 60, 80, 140])
def test_widths_are_respected(store: Place, columns: int) -> None:
    """No line of ours is wider than the terminal, wide characters counted as two; ids stay whole."""
    seen = bare(on_terminal(store, *TABLE, columns=columns))
    assert f"{SESSION}:3" in seen
    longest = max(len(f"{SESSION}:3"), columns, 60 if columns < 60 else 0)
    assert all(render.width(line) <= longest for line in seen.splitlines())
    shown = bare(on_terminal(store, "show", f"{SESSION}:3", "--format", "text", columns=max(columns, 60)))
    assert all(render.width(line) <= max(columns, 60) for line in shown.splitlines()[2:])


def test_long_output_goes_through_the_pager(store: Place) -> None:
    """`QIJU_PAGER` over `PAGER`, only when it does not fit; one that is not there costs a note, not the text."""
    pager = f"{sys.executable} -c \"import sys; t = sys.stdin.read(); print('PAGED', len(t.splitlines()))\""
    long = on_terminal(store, *SHOWN, rows=8, PAGER=pager)
    assert re.fullmatch(r"PAGED \d+\n", long)
    assert "PAGED" not in on_terminal(store, *SHOWN, rows=60, PAGER=pager)
    assert "PAGED" in on_terminal(
        store, "search", "--scope", "all", "--format", "table", rows=4, QIJU_PAGER=pager, PAGER="cat"
    )
    missing = on_terminal(store, *SHOWN, rows=8, PAGER="no-such-pager")
    assert "no-such-pager" in missing
    assert "tell ops" in missing
    assert "Traceback" not in on_terminal(store, *TABLE, rows=4, PAGER="true")
    for size in ({"columns": 1}, {"rows": 0, "columns": 0}, {"rows": 1}):  # no screen that a person reads
        assert "PAGED" not in on_terminal(
            store, "search", "--scope", "all", "--format", "table", **{"rows": 4, **size}, PAGER=pager
        )


def test_ages_in_words() -> None:
    second = 1_000_000
    for seconds, words in {
        0: "just now",
        59: "just now",
        60: "1 minute ago",
        7_199: "1 hour ago",
        172_800: "2 days ago",
        1_209_600: "2 weeks ago",
        5_300_000: "2 months ago",
        70_000_000: "2 years ago",
        -7_200: "in 2 hours",
    }.items():
        assert render.ago(0, seconds * second) == words


def test_a_time_that_is_none_is_shown_as_it_is() -> None:
    assert reading.moment("soon") == ("soon", "")
    assert reading.moment(None) == ("", "")
    assert reading.moment("2020-01-01T00:00:00.123456+00:00")[0] == "2020-01-01T00:00:00Z"
    assert reading.moment("2020-01-01T00:00:00.5+02:00")[0] == "2020-01-01T00:00:00+02:00"


def test_fields_that_are_missing_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """`--fields` gives a record without most of its fields; the layout copes."""
    context = Context("show")
    assert reading._whole(context, {"title": "t"}, 80) == ["t"]
    assert reading._whole(context, {"next_steps": ["a"], "x": None}, 80) == ["", "Next steps", "  ☐ a"]
    assert reading.listing(context, [], ["id"]) == []
    assert reading.listing(context, [], []) == []
