"""Tests on a candidate secret that a pattern cannot make: stand-ins, encodings, and what stands around it.

Each takes the candidate, the searched text and the candidate's span, and answers whether it is one. A rule names its
validator by a word; `find` knows those of this module and, for check digits and addresses, of `personal`.
"""

from __future__ import annotations

from . import looks, personal
from .personal import near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Validator = Callable[[str, str, int, int], bool]


def find(name: str) -> Validator:
    """The validator of that name. Raises AttributeError for an unknown one, which the tests of the rules exclude."""
    found: Validator = globals().get(name) or getattr(personal, name)
    return found


def not_example(value: str, twin: str, start: int, end: int) -> bool:
    """Not one of the vendors' documentation keys, and not an upper-case word."""
    if value.endswith("EXAMPLE"):
        return False
    return (
        value.startswith(("AKIA", "ABIA", "ACCA")) or any(c.isdigit() for c in value) or near("key|id", twin, start, 24)
    )


def real(value: str, twin: str, start: int, end: int) -> bool:
    """Not a placeholder such as `sk-ant-your-key-here` or `sk-xxxxxxxx`."""
    body = value
    if looks.stand_in(body):
        return False
    tail = body[-24:].lower()
    if any(word in body.lower() for word in ("your-", "your_", "-here", "_here", "example", "placeholder", "xxxx")):
        return False
    return len(set(tail)) >= 5


def mixed(value: str, twin: str, start: int, end: int) -> bool:
    """Generated: letters and digits in alternation."""
    return real(value, twin, start, end) and looks.random(
        value.split("_", 1)[-1].split(".", 1)[-1].split("-", 1)[-1], 12
    )


def random_value(value: str, twin: str, start: int, end: int) -> bool:
    return not looks.placeholder(value) and looks.random(value, 12)


def token_value(value: str, twin: str, start: int, end: int) -> bool:
    return not looks.placeholder(value) and looks.token(value)


def password_value(value: str, twin: str, start: int, end: int) -> bool:
    """A value in a place where only a password stands."""
    return not looks.placeholder(value) and (
        looks.password(value, True) or (len(value) >= 4 and looks.random(value, 4))
    )


def not_placeholder(value: str, twin: str, start: int, end: int) -> bool:
    return not looks.placeholder(value)


def userinfo(value: str, twin: str, start: int, end: int) -> bool:
    """A password in a URL: anything that is no stand-in, no variable and no port."""
    return len(value) >= 4 and not looks.placeholder(value) and (not value.isdigit() or len(value) > 5)


def discord(value: str, twin: str, start: int, end: int) -> bool:
    """The first part is the base64 of a numeric id."""
    from binascii import Error, a2b_base64

    head = value.split(".", 1)[0].replace("-", "+").replace("_", "/")
    try:
        return a2b_base64(head + "=" * (-len(head) % 4)).isdigit()
    except Error:
        return False


def basic_pair(value: str, twin: str, start: int, end: int) -> bool:
    """Base64 of `user:password`."""
    from binascii import Error, a2b_base64

    try:
        text = a2b_base64(value + "=" * (-len(value) % 4))
    except Error:
        return False
    _, colon, word = text.partition(b":")
    return bool(colon) and bool(word) and all(32 <= c < 127 or c > 127 for c in text)


def jwt(value: str, twin: str, start: int, end: int) -> bool:
    """The first part is the base64 of a JSON object."""
    from binascii import Error, a2b_base64

    head = value.split(".", 1)[0].replace("-", "+").replace("_", "/")
    try:
        text = a2b_base64(head + "=" * (-len(head) % 4))
    except Error:
        return False
    return text[:1] == b"{" and b'"' in text


def mnemonic(value: str, twin: str, start: int, end: int) -> bool:
    words = value.split()
    return len(words) in (12, 15, 18, 21, 24) and len(set(words)) >= len(words) - 3


def zai(value: str, twin: str, start: int, end: int) -> bool:
    return near(r"zhipu|zai|bigmodel|glm|key|token", twin, start)


def ngrok(value: str, twin: str, start: int, end: int) -> bool:
    return looks.random(value, 20)


# --- structures ------------------------------------------------------------------------------------------------------


def auth_value(value: str, twin: str, start: int, end: int) -> bool:
    """The value of an authorization header: at least the look of data."""
    if looks.placeholder(value) or value.lower() in ("bearer", "basic", "token", "required"):
        return False
    return (
        looks.token(value)
        or looks.random(value, 8)
        or basic_pair(value, twin, start, end)
        or (len(value) >= 24 and not looks.codelike(value))
    )


def query_value(value: str, twin: str, start: int, end: int) -> bool:
    """The value of a query parameter with a secret-like name."""
    if looks.placeholder(value) or value.isdigit():
        return False
    return looks.random(value, 8) or looks.token(value) or (looks.password(value, False) and not value.isalpha())


def cookie_value(value: str, twin: str, start: int, end: int) -> bool:
    return not looks.placeholder(value) and looks.random(value.split(";", 1)[0], 12)


def pair_value(value: str, twin: str, start: int, end: int) -> bool:
    """A word after a slash or a colon in prose: only when it is evidently a password."""
    value = value.rstrip(".,;:!?)")
    if looks.placeholder(value) or looks.codelike(value) or "/" in value:
        return False
    has_lower = any("a" <= c <= "z" for c in value)
    has_upper = any("A" <= c <= "Z" for c in value)
    has_digit = any(c.isdigit() for c in value)
    has_symbol = any(c in "!@#$%^&*+~=" for c in value)
    return has_digit and ((has_lower and has_upper) or has_symbol) and looks.random(value, 8)


def base32(value: str, twin: str, start: int, end: int) -> bool:
    plain = value.replace(" ", "").replace("-", "")
    return len(plain) >= 16 and plain == plain.upper() and len(set(plain)) >= 6


def vendor_value(value: str, twin: str, start: int, end: int) -> bool:
    """A value beside a vendor's name alone: generated, and no checksum of a file or a commit."""
    if looks.placeholder(value) or len(set(value)) < 8 or near(r"commit|sha|digest|checksum|hash|version", twin, start):
        return False
    return looks.random(value, 20)
