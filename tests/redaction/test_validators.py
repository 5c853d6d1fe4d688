"""The check-digit functions agree with the library known for them, and the filters know people from versions."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable

import pytest

from qiju.redaction import looks, names
from qiju.redaction import personal as validators

ORACLES: list[tuple[str, Callable[[str], bool], str, str]] = [
    ("stdnum.luhn", validators.luhn, "0123456789", "4000000000000000"),
    ("stdnum.verhoeff", validators.verhoeff, "0123456789", "234123412346"),
    ("stdnum.br.cpf", lambda v: validators.cpf(v, v, 0, 11), "0123456789", "39053344705"),
    ("stdnum.nl.bsn", lambda v: validators.bsn(v, v, 0, 9), "0123456789", "111222333"),
    ("stdnum.pl.pesel", lambda v: validators.pesel(v, v, 0, 11), "0123456789", "44051401359"),
    ("stdnum.gb.nhs", lambda v: validators.nhs(v, v, 0, 10), "0123456789", "9434765870"),
]


@pytest.mark.parametrize(("module", "ours", "alphabet", "sample"), ORACLES, ids=[o[0] for o in ORACLES])
def test_check_digits_agree_with_the_library(
    module: str, ours: Callable[[str], bool], alphabet: str, sample: str
) -> None:
    theirs = importlib.import_module(module)
    rnd = random.Random(module)
    agreed = 0
    for _ in range(300):
        digits = list(sample)
        # Only the last two change, so that dates and the like inside a number stay possible.
        digits[-1] = rnd.choice(alphabet)
        digits[-2] = rnd.choice(alphabet)
        value = "".join(digits)
        valid = bool(theirs.is_valid(value))
        if module == "stdnum.nl.bsn" and value[:2] == "00":
            continue
        assert ours(value) == valid, value
        agreed += valid
    assert agreed, "the sample never became valid, so nothing was compared"


def test_mod97_agrees_with_the_library_on_ibans() -> None:
    from stdnum import iban

    rnd = random.Random(3)
    for _ in range(400):
        value = f"DE{rnd.randint(2, 98):02d}10802423453885830{rnd.randint(0, 9)}"
        assert validators.iban(value, value, 0, 22) == iban.is_valid(value, check_country=False)


@pytest.mark.parametrize(
    ("value", "is_card"),
    [
        ("4000 0000 0000 0002", True),
        ("5555555555554444", True),
        ("2223000048400011", True),
        ("378282246310005", True),
        ("6011-1111-1111-1117", True),
        ("3530111333300000", True),
        ("4000 0000 0000 0003", False),
        ("9999999999999995", False),
        ("0000000000000000", False),
    ],
)
def test_cards(value: str, is_card: bool) -> None:
    assert validators.card(value, value, 0, len(value)) is is_card


@pytest.mark.parametrize(
    "value",
    [
        "10.0.0.1",
        "172.20.1.1",
        "192.168.1.1",
        "127.0.0.1",
        "169.254.1.1",
        "100.64.0.1",
        "224.0.0.1",
        "192.0.2.44",
        "198.51.100.9",
        "203.0.113.9",
        "198.18.0.1",
        "8.8.8.8",
        "999.1.1.1",
        "1.7.10.18",
    ],
)
def test_addresses_that_are_not_public(value: str) -> None:
    assert not validators.ipv4(value, value, 0, len(value))


@pytest.mark.parametrize(
    ("name", "strong"),
    [
        ("DB_PASSWORD", names.PASSWORD),
        ("dbPassword", names.PASSWORD),
        ("spring.datasource.password", names.PASSWORD),
        ("x-api-key", names.TOKEN),
        ("stripeSecretKey", names.TOKEN),
        ("sharedaccesskey", names.TOKEN),
        ("AZURE_DEVOPS_EXT_PAT", names.TOKEN),
        ("key", names.WEAK),
        ("PASSWORD_MIN_LENGTH", names.NONE),
        ("max_tokens", names.NONE),
        ("cache_key", names.NONE),
        ("primaryKey", names.NONE),
        ("token_count", names.NONE),
        ("next_page_token", names.NONE),
        ("session_id", names.NONE),
        ("author", names.NONE),
        ("signature", names.NONE),
        ("monkey", names.NONE),
        ("compass", names.NONE),
    ],
)
def test_names(name: str, strong: int) -> None:
    assert names.strength(name) == strong


@pytest.mark.parametrize(
    "value",
    [
        "your-api-key-here",
        "<token>",
        "${TOKEN}",
        "xxxxxxxx",
        "changeme",
        "YOUR_API_KEY",
        "****",
        "$TOKEN",
        "{{ secret }}",
        "process.env.KEY",
        "None",
    ],
)
def test_placeholders(value: str) -> None:
    assert looks.placeholder(value)


@pytest.mark.parametrize(
    "value",
    [
        "GetUserAccessTokenByRefreshTokenRequestV9DTO",
        "the_token_bucket_rate_limiter_29",
        "2026-01-23",
        "base64-encoded",
        "src/app/main2.py",
        "1.20.3-rc.1",
        "oauth2",
        "self.tokens",
        "getToken2(x)",
    ],
)
def test_words_are_not_random(value: str) -> None:
    assert not looks.random(value)


@pytest.mark.parametrize(
    "value",
    [
        "vvC2dEpd6zA2yV",
        "d19e783bdd9a82f98cfda67e8566976b",
        "Cinder^8548kS8",
        "8099f0a1-0cab-43bb-83e4-51f9ab2845ad",
        "fBYOJI/m6bE+nQKOekmSMv2sFTMDMKz+wGaVH1c+",
    ],
)
def test_generated_values_are(value: str) -> None:
    assert looks.random(value)
