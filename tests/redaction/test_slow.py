"""A search for inputs whose time grows faster than their length.

Texts are built from fragments the rules care about, repeated. A text eight times as long may take somewhat more than
eight times as long, never the sixty-four times of a square. Only ratios of processor time are compared.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.redaction import Engine
from qiju.redaction.rules import builtin_rules

ENGINE = Engine(b"s" * 32)
KEYWORDS = sorted({keyword for rule in builtin_rules() for keyword in rule.keywords})
SHORT, FACTOR, MOST = 4_000, 8, 34
UNITS = st.lists(
    st.one_of(
        st.sampled_from(KEYWORDS),
        st.sampled_from(["=", ":", '"', "'", "a", "A1", " ", "\n", "/", "@", ".", "-", "|", ",", "(", "%3D",
             "&", "\\", "密", "password=", "://a:b", "\x1b[", "is ", "--"]),
        st.text(min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=4,
).map("".join)  # fmt: skip

KNOWN = [
    "--token=",
    "key=",
    "secret:",
    "?secret=",
    "id:a,pw:",
    "-----BEGIN PRIVATE " + "KEY-----",
    "password is ",
    "token,key\n",
    "|token|\n|--|\n",
    "a@a.",
    "eyJa.",
    "sk" + "-",
    "xoxb" + "-1-",
    "a",
    "1-",
    "=",
    "\\",
    "f" * 32,
    "[REDACTED",
    "mnemonic abc ",
]


def seconds(unit: str, size: int) -> float:
    text = (unit * (size // len(unit) + 1))[:size]
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        ENGINE.find(text)
        best = min(best, time.process_time() - start)
    return best


def grows_too_fast(unit: str) -> bool:
    """Measured again before it is believed, since other processes disturb a single measurement."""
    for _ in range(3):
        small, large = seconds(unit, SHORT), seconds(unit, SHORT * FACTOR)
        if large <= max(small, 1e-3) * MOST:
            return False
    return True


@pytest.mark.parametrize("unit", KNOWN)
def test_texts_that_were_slow_once_grow_with_their_length(unit: str) -> None:
    assert not grows_too_fast(unit)


@settings(max_examples=40, deadline=None)
@given(UNITS)
def test_no_repeated_text_grows_faster_than_its_length(unit: str) -> None:
    assert not grows_too_fast(unit)
