"""Numbers in sentences: `1 record`, `2 records`. One home for it, so that no message says `1 records`."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`number` with the words for one of a thing or for several; `many` is `one` with an `s` where it is left out."""
    return f"{number} {one if number == 1 else many or one + 's'}"
