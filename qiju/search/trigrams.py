"""Which three-character pieces must a record hold? Conditions for the trigram index, from literals and from patterns.

A condition is a necessary one: every record that matches satisfies it, many that do not match may as well, and each
candidate is verified against its text. So every rule here may only ever weaken. Where a construct of a pattern is not
understood, it asks for nothing, and a pattern that asks for nothing is answered by walking the records.

The index holds the case-folded NFC text. A pattern runs over unfolded text with IGNORECASE, and Python's idea of "the
same letter" there is wider than folding: `i` also meets İ and ı, which fold to two other strings. `spellings` lists the
foldings of every character a literal can meet; a window over three literals is the OR of their combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from qiju.record import fold
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PIECE = 3  # characters in an indexed piece
MOST_PIECES = 10  # of one literal: more of them cost index lookups and hardly narrow any further
MOST_SPELLINGS = 9  # combinations of one window
MOST_MEMBERS = 4  # of a character class that is spelled out
MOST_LEAVES = 400  # of one condition; FTS5 opens an iterator for each
NUL_STANDS_AS = "\n"  # how the index writes NUL, at which FTS5 would stop reading


class Piece(NamedTuple):
    text: str


class All(NamedTuple):
    parts: tuple[Condition, ...]


class Either(NamedTuple):
    parts: tuple[Condition, ...]


Condition = Piece | All | Either


def literal(folded: str, most: int = MOST_PIECES) -> Condition | None:
    """The condition for a literal as the index spells it, of `most` pieces; None where it is too short to have one."""
    return _pieces(folded, most)


def every(parts: Iterable[Condition | None]) -> Condition | None:
    """All of `parts`; a part that asks for nothing is left out."""
    kept = tuple(dict.fromkeys(part for part in parts if part is not None))
    return kept[0] if len(kept) == 1 else All(kept) if kept else None


def either(parts: Sequence[Condition | None]) -> Condition | None:
    """One of `parts`; None as soon as one of them asks for nothing."""
    if not parts:
        return None
    kept: dict[Condition, None] = {}
    for part in parts:
        if part is None:
            return None
        kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else Either(tuple(kept))


def leaves(condition: Condition) -> int:
    return 1 if isinstance(condition, Piece) else sum(leaves(part) for part in condition.parts)


def match_text(condition: Condition) -> str:
    """The condition as an FTS5 expression. Pieces are quoted, so nothing in them is ever syntax."""
    if isinstance(condition, Piece):
        return '"' + condition.text.replace('"', '""') + '"'
    joiner = " AND " if isinstance(condition, All) else " OR "
    return "(" + joiner.join(match_text(part) for part in condition.parts) + ")"


def pattern(source: str, flags: int) -> Condition | None:
    """The condition for a Python regular expression that compiles; None means that the records must be walked."""
    from re import _parser  # type: ignore[attr-defined]  # private, but it is the parser `re` itself uses

    try:
        found = _Walk().sequence(_parser.parse(source, flags))
    except (_NotUnderstood, RecursionError):
        return None
    return found if found is not None and leaves(found) <= MOST_LEAVES else None


def runs_away(source: str, flags: int) -> bool:
    """Whether matching may take more than linear time for each start: two variable repeats, or one of a sequence."""
    from re import _parser  # type: ignore[attr-defined]

    try:
        return _variable(_parser.parse(source, flags)) > 1
    except RecursionError:
        return True


def spellings(char: str) -> tuple[str, ...]:
    """The foldings of all characters that the literal `char` meets under IGNORECASE."""
    if char in _SPELLED:
        return _SPELLED[char]
    if char.isascii():
        return (char.lower(),)
    near = {char, char.lower(), char.upper(), char.title()}
    return tuple(sorted({fold(other) for other in near if len(other) == 1} | {char.casefold()}))


# Letters whose kin under IGNORECASE cannot be reached by lower(), upper() and title(). A test tries every letter.
_SPELLED = dict.fromkeys("iIİı", ("i", "i\u0307", "ı"))


# Line breaks part the fields, and the index has more of them than the text (one for each empty list).
_BREAKS = (0, 10)


class _NotUnderstood(Exception):
    pass


class _Walk:
    """Walks a parsed pattern. `run` holds the literals met one after another, each as its possible spellings."""

    def __init__(self) -> None:
        self.run: list[tuple[str, ...]] = []
        self.asked: list[Condition | None] = []

    def sequence(self, items: Iterable[tuple[object, object]]) -> Condition | None:
        self.feed(items)
        self.flush()
        return every(self.asked)

    def flush(self) -> None:
        self.asked.append(_windows(self.run))
        self.run = []

    def feed(self, items: Iterable[tuple[object, object]]) -> None:
        for op, value in items:
            step: Any = _STEPS.get(str(op))
            if step is None:
                raise _NotUnderstood
            step(self, value)

    def literal(self, code: int) -> None:
        if code in _BREAKS or 0xD800 <= code < 0xE000:
            self.flush()
        else:
            self.run.append(spellings(chr(code)))

    def anything(self, _value: object) -> None:
        self.flush()

    def nothing(self, _value: object) -> None:
        """Zero width, and asks for nothing: what stands on both sides of it is still adjacent."""

    def members(self, value: list[tuple[object, int]]) -> None:
        if len(value) > MOST_MEMBERS or any(str(op) != "LITERAL" or code in _BREAKS for op, code in value):
            self.flush()
        else:
            self.run.append(tuple(dict.fromkeys(s for _, code in value for s in spellings(chr(code)))))

    def branch(self, value: tuple[object, list[Iterable[tuple[object, object]]]]) -> None:
        self.flush()
        self.asked.append(either([_Walk().sequence(each) for each in value[1]]))

    def group(self, value: tuple[object, object, object, Iterable[tuple[object, object]]]) -> None:
        self.feed(value[-1])

    def atomic(self, value: Iterable[tuple[object, object]]) -> None:
        self.feed(value)

    def ahead(self, value: tuple[int, Iterable[tuple[object, object]]]) -> None:
        """A positive look-around must itself be found somewhere in the text, and has no width."""
        self.asked.append(_Walk().sequence(value[1]))

    def repeat(self, value: tuple[int, int, Iterable[tuple[object, object]]]) -> None:
        least, most, items = value
        if least < 1:
            self.flush()
            return
        self.feed(items)  # the first round is adjacent to what stands before
        if least == most == 1:
            return
        self.flush()
        body = list(items)
        if all(str(op) == "LITERAL" for op, _ in body):
            self.feed(body)  # the last round is adjacent to what follows


_STEPS = {
    "LITERAL": _Walk.literal,
    "IN": _Walk.members,
    "BRANCH": _Walk.branch,
    "SUBPATTERN": _Walk.group,
    "ATOMIC_GROUP": _Walk.atomic,
    "MAX_REPEAT": _Walk.repeat,
    "MIN_REPEAT": _Walk.repeat,
    "POSSESSIVE_REPEAT": _Walk.repeat,
    "ASSERT": _Walk.ahead,
    "ASSERT_NOT": _Walk.nothing,
    "AT": _Walk.nothing,
    "ANY": _Walk.anything,
    "NOT_LITERAL": _Walk.anything,
    "GROUPREF": _Walk.anything,
    "GROUPREF_EXISTS": _Walk.anything,
    "FAILURE": _Walk.anything,
}


def _pieces(text: str, most: int = MOST_PIECES) -> Condition | None:
    count = len(text) - PIECE + 1
    if count < 1:
        return None
    starts = range(count) if count <= most else [n * (count - 1) // max(most - 1, 1) for n in range(most)]
    return every(Piece(text[at : at + PIECE]) for at in starts)


def _windows(run: Sequence[tuple[str, ...]]) -> Condition | None:
    found: list[Condition | None] = []
    for at in range(len(run) - PIECE + 1):
        window = run[at : at + PIECE]
        combinations = 1
        for spelled in window:
            combinations *= len(spelled)
        if combinations <= MOST_SPELLINGS:
            found.append(either([_pieces("".join(chosen)) for chosen in product(*window)]))
    if len(found) > MOST_PIECES:
        # The plainest windows, in the order of the text.
        plain = sorted(range(len(found)), key=lambda n: (0 if (c := found[n]) is None else leaves(c), n))[:MOST_PIECES]
        found = [found[n] for n in sorted(plain)]
    return every(found)


def _variable(items: Any) -> int:
    """How many variable repeats stand in a pattern; one whose body is more than one character counts twice."""
    total = 0
    for op, value in items:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = value
            single = len(body) == 1 and str(body[0][0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN")
            total += (1 if single else 2) if least != most else 0
            total += 0 if single else _variable(body)
        elif name == "BRANCH":
            total += sum(_variable(each) for each in value[1])
        elif name in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
            total += _variable(value[-1])
        elif name == "ATOMIC_GROUP":
            total += _variable(value)
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            total += 2
    return total
