"""What a result says of its own success, wherever its host writes it."""

from __future__ import annotations

import pytest

from qiju.transcripts.words import argument_lines, content_text, exit_code, failed, inert


@pytest.mark.parametrize(
    ("payload", "code", "bad"),
    [
        ({"output": "fine"}, None, None),
        ({"output": "fine", "is_error": False}, None, False),
        ({"output": "Exit code 2\nboom", "is_error": True}, 2, True),
        ({"output": "Exit code: 0\nWall time: 1 s\nOutput:\nx"}, 0, False),
        ({"output": "Process exited with code 7\nOutput:"}, 7, True),
        ({"output": "Chunk ID: ab\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n"}, 1, True),
        ({"output": {"output": "x", "metadata": {"exit_code": 127}}}, 127, True),
        ({"output": "", "host_result": {"exitCode": 0}}, 0, False),
        ({"output": "the words Exit code 2 inside a text"}, None, None),
        ({"output": "x", "exit_code": True}, None, None),
    ],
)
def test_exit_codes_and_failure(payload, code, bad):
    assert exit_code(payload) == code
    assert failed(payload) is bad


def test_inert_text_keeps_lines_tabs_and_joined_emoji():
    assert inert("a\r\nb\tc\rd") == "a\nb\tc\\x0dd"
    assert inert("👩‍👧 fi\u200cve") == "👩‍👧 fi\u200cve"
    assert inert("\u2066x\u2069\ufeff\x9b1m\U000e0041") == r"\u2066x\u2069\ufeff\x9b1m\U000e0041"


def test_content_reads_as_text_whatever_its_shape():
    parts = [{"type": "text", "text": "a"}, {"type": "image", "media_type": "image/png", "bytes": 3}]
    assert content_text(parts) == "a\n[image, image/png, 3 bytes, not kept]"
    assert content_text({"b": 1, "a": [True]}) == '{"a":[true],"b":1}'
    assert content_text(None) == ""
    assert list(argument_lines({"x": 1, "y": "t"})) == [("x", "1"), ("y", "t")]
    assert list(argument_lines("text")) == [("", "text")]
