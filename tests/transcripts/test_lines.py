"""Reading lines costs the memory of one line, whatever the file."""

from __future__ import annotations

import tracemalloc

from qiju.transcripts.ledger import Ledger
from qiju.transcripts.lines import read_lines


def test_a_line_above_the_limit_is_described_and_the_next_one_read(tmp_path):
    path = tmp_path / "big.jsonl"
    path.write_bytes(b'{"a": "' + b"x" * 5000 + b'"}\n{"b": 1}\n' + b"y" * 3000)
    lines = list(read_lines(path, limit=1000))
    assert [(line.number, line.trouble, line.size) for line in lines] == [
        (1, "oversized_line", 5010),
        (2, "", 8),
        (3, "oversized_line", 3000),
    ]
    assert lines[1].value == {"b": 1}
    assert lines[0].raw == ""


def test_a_line_of_exactly_the_limit_is_read(tmp_path):
    path = tmp_path / "edge.jsonl"
    path.write_bytes(b"1" * 10 + b"\n" + b"2" * 10)
    assert [(line.value, line.trouble) for line in read_lines(path, limit=10)] == [
        (1111111111, ""),
        (2222222222, ""),
    ]


def test_bytes_that_are_no_text_stay_visible(tmp_path):
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b'{"a": "\xff\xfe"}\n\x00\x00\x00\n')
    bad, zeros = read_lines(path)
    assert (bad.trouble, bad.raw) == ("not_utf8", '{"a": "\\xff\\xfe"}')
    assert (zeros.trouble, zeros.raw) == ("torn_line", "\0\0\0")


def test_memory_does_not_grow_with_the_file(claude, write, read):
    """Ten times the lines may not need twice the memory; ids stand in a temporary database."""

    def peak(count):
        for number in range(count):
            claude.call(f"m{number}", f"t{number}", command="x" * 500)
            claude.result(f"t{number}", "y" * 500)
        path = write(claude.lines, f"{count}.jsonl")
        claude.lines.clear()
        from qiju.transcripts.claude import read_claude
        from qiju.transcripts.report import ImportReport

        tracemalloc.start()
        for _ in read_claude(path, ImportReport("claude")):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(20)
    assert peak(2000) < 2 * peak(200)


def test_names_of_one_call_lead_to_the_same_pair():
    with Ledger() as ledger:
        ledger.note("call", "a", 1)
        ledger.note("call", "b", 2)
        ledger.alias("A", "a")
        ledger.note_key("result", ledger.call_key("A"), 3)
        ledger.note_key("result", ledger.call_key("x"), 4)
        assert ledger.missing("call", "result", 5) == (1, [2])
        assert ledger.missing("result", "call", 5) == (1, [4])
        assert ledger.seen("call", "a") == 1
        assert ledger.seen("call", "zz") == 0
