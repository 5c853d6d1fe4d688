"""Values for the redaction tests, made at run time: nothing in these files may look like a credential to a scanner."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

import pytest

from qiju.redaction import Engine

LETTERS = string.ascii_letters + string.digits


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine(b"k" * 32)


@pytest.fixture(scope="session")
def make() -> Callable[..., str]:
    """`make(prefix, size, alphabet)`: a prefix and random characters, the same for the same arguments."""

    def value(prefix: str, size: int, alphabet: str = LETTERS, seed: int = 1) -> str:
        rnd = random.Random(f"{prefix}/{size}/{seed}")
        return prefix + "".join(rnd.choice(alphabet) for _ in range(size))

    return value


@pytest.fixture(scope="session")
def github(make: Callable[..., str]) -> str:
    return make("gh" + "p_", 36)


@pytest.fixture(scope="session")
def word() -> str:
    """A password as a person makes one."""
    return "Harbor" + "#" + "8309" + "qZ7"
