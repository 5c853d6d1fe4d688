"""Regular expressions that are compiled when they are first used: most texts hold no secret and need few of them."""

from __future__ import annotations

import re


class _Lazy:
    """Stands for a compiled pattern; its methods become the pattern's own on first use."""

    __slots__ = ("__dict__", "_flags", "_text")

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(self._text, self._flags)
        for method in ("match", "fullmatch", "search", "finditer", "findall", "sub", "pattern"):
            self.__dict__[method] = getattr(compiled, method)
        return self.__dict__[name]


def lazily(text: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(text, flags)`, put off until it is used."""
    return _Lazy(text, int(flags))  # type: ignore[return-value]
