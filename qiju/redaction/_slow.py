"""Whether a user's regular expression can take time that grows much faster than its input.

The check reads the parsed expression: an unbounded repetition inside another one, or two unbounded repetitions in a
row that can share characters, is refused. It is deliberately strict: a redaction rule has no need of either.
"""

from __future__ import annotations

import re

LARGE = 1000


def risky(pattern: str) -> bool:
    """Whether `pattern` nests or chains repetitions without a bound."""
    parser = re._parser  # type: ignore[attr-defined]
    constants = re._constants  # type: ignore[attr-defined]
    repeats = {constants.MAX_REPEAT, constants.MIN_REPEAT}
    possessive = getattr(constants, "POSSESSIVE_REPEAT", None)

    def walk(items: object, inside: bool) -> bool:
        open_before: list[object] = []
        for op, arg in items:  # type: ignore[attr-defined]
            if op in repeats or op is possessive:
                _, most, body = arg
                unbounded = most is constants.MAXREPEAT or most > LARGE
                if unbounded and inside:
                    return True
                if unbounded and any(_share(earlier, body) for earlier in open_before):
                    return True
                if walk(body, inside or unbounded or most > 50):
                    return True
                if unbounded:
                    open_before.append(body)
                continue
            if op is constants.SUBPATTERN:
                if walk(arg[-1], inside):
                    return True
            elif op is constants.BRANCH:
                if any(walk(branch, inside) for branch in arg[1]):
                    return True
            elif op in (constants.ASSERT, constants.ASSERT_NOT):
                if walk(arg[1], inside):
                    return True
            elif op is constants.ATOMIC_GROUP and walk(arg, inside):
                return True
            if op is constants.LITERAL:
                # A fixed character that an earlier repetition cannot take parts the two.
                open_before = [body for body in open_before if _takes(body, chr(arg))]
        return False

    return walk(parser.parse(pattern), False)


_SAMPLE = "aZ5_- .:/=\"'\n@#%\u4e2d"


def _takes(body: object, char: str) -> bool:
    from re import _compiler  # type: ignore[attr-defined]

    return _compiler.compile(body).fullmatch(char) is not None if _single(body) else True


def _single(body: object) -> bool:
    return len(body) == 1  # type: ignore[arg-type]


def _share(one: object, other: object) -> bool:
    """Whether both repeated bodies can take a common character."""
    return any(_takes(one, c) and _takes(other, c) for c in _SAMPLE)
