"""Our NamedTuple behaves as the library's does."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from qiju.values import NamedTuple


class Ours(NamedTuple):
    """A doc string."""

    one: int
    two: str = "b"
    three: tuple[str, ...] = ()

    @classmethod
    def made(cls) -> Ours:
        return cls(9)

    def doubled(self) -> int:
        return self.one * 2


class Theirs(typing.NamedTuple):
    one: int
    two: str = "b"
    three: tuple[str, ...] = ()


CALLS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    ((1,), {}),
    ((1, "x"), {}),
    ((1, "x", ("y",)), {}),
    ((), {"one": 1}),
    ((1,), {"three": ("z",)}),
    ((), {"three": ("z",), "one": 5}),
    ((), {}),
    ((1, 2, 3, 4), {}),
    ((1,), {"one": 2}),
    ((1,), {"four": 2}),
]


@pytest.mark.parametrize(("items", "named"), CALLS)
def test_both_are_made_alike(items: tuple[object, ...], named: dict[str, object]) -> None:
    made: list[object] = []
    for each in (Ours, Theirs):
        try:
            made.append(tuple(each(*items, **named)))  # type: ignore[arg-type]
        except TypeError:
            made.append(TypeError)
    assert made[0] == made[1]


def test_both_are_used_alike() -> None:
    ours, theirs = Ours(1, two="x"), Theirs(1, two="x")
    assert (ours.one, ours.two, ours.three) == (1, "x", ())
    assert ours == theirs == (1, "x", ())
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._replace(two="q") == theirs._replace(two="q")
    assert type(ours._replace(two="q")) is Ours
    assert ours._asdict() == theirs._asdict()
    assert Ours._fields == Theirs._fields
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert type(copy.copy(ours)) is Ours
    assert Ours.made().doubled() == 18
    first, *_rest = ours
    assert first == 1
    with pytest.raises(ValueError, match="no field"):
        ours._replace(four=1)
    with pytest.raises(AttributeError):
        ours.one = 2  # type: ignore[misc]
    match ours:
        case Ours(one, two):
            assert (one, two) == (1, "x")
