"""The text that is searched: as long as the given one, with what only wraps a value turned to blanks.

Terminal colours and JSON escapes glue themselves to a value (an escape `n` before a token makes it look like part of a
word). Turning them to spaces character for character keeps every offset valid in the given text. Markers already in
the text are turned to a private-use character that no rule accepts, so that they are neither matched nor bridged.
"""

from __future__ import annotations

import re

from .lazy import lazily

MASK = "\ue000"

# Real escape sequences, and the ways a log prints them.
_ANSI = lazily(r"(?:\x1b|\\{1,2}(?:x1b|033|e(?=\[)|u001b))(?:\[[0-9;:?<=>]{0,24}[@-~]|\][^\x07\x1b\n]{0,80}\x07)")
_ESCAPE = lazily(r"\\{1,8}(?:([nrtbf])|([\"'/])|u00([0-7][0-9a-fA-F])|x([2-7][0-9a-fA-F]))")
MARKER = lazily(r"\[REDACTED(?::[a-z][a-z0-9_-]{0,40})?(?::[0-9a-f]{8,16})?\]")

# Invisible characters inside a token must not hide it from a pattern; they are rare, so they only split words.
_WHITE = lazily("[\u00a0\u2028\u2029\ufeff\u200b-\u200d\u2060\u3000]")


def _unescape(match: re.Match[str]) -> str:
    width = match.end() - match.start()
    if match[1]:
        return " " * (width - 1) + ("\n" if match[1] in "nr" else " ")
    if match[2]:
        return " " * (width - 1) + match[2]
    code = int(match[3] or match[4], 16)
    if code < 0x20 or code == 0x7F:
        return " " * width
    return " " * (width - 1) + chr(code)


def shadow(text: str) -> str:
    """The searchable twin of `text`, of the same length."""
    out = text
    if "\x1b" in out or ("[" in out and "\\" in out):
        out = _ANSI.sub(lambda m: " " * (m.end() - m.start()), out)
    if "\\" in out:
        out = _ESCAPE.sub(_unescape, out)
    if "[REDACTED" in out:
        out = MARKER.sub(lambda m: MASK * (m.end() - m.start()), out)
    if not out.isascii():
        out = _WHITE.sub(" ", out)
    return out


def lower(text: str) -> str:
    """Lower case of the same length (one Turkish capital alone would otherwise grow)."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
