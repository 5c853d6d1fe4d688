"""The page token: one codec for search pages, trajectory pages and the MCP server.

A token is a letter, then base64url of `mac || body`. The body is a length-prefixed list of named values (integers,
strings, bytes) under a kind; the MAC is HMAC-SHA256 under the store's cursor key, cut to 16 bytes, so a token cannot
be written or altered without the store's key and dies with it. What goes in is the caller's business, with one rule:
numbers and digests only, never a path, a host name, a secret or the text of a record.

Decoding is strict: the one spelling that `encode` would give is accepted, every other is `CursorRejected`, and the
size is looked at first, so that a megabyte of junk costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from qiju.errors import CursorRejected

PREFIX = "q"  # a letter: a token pasted as an option's value is never taken for an option
LONGEST = 16_384  # characters; the largest token Qiju writes (500 ranked rows) is a quarter of it
MAC_BYTES = 16
START_AGAIN = "start again from the first page: the same command without --cursor"

Payload = dict[str, int | str | bytes]


def encode(kind: str, key: bytes, payload: Payload) -> str:
    """A token holding `payload` under `kind` ("search", "trajectory", ...), authenticated with `key`."""
    body = bytearray(_text(kind))
    for name in sorted(payload):
        value = payload[name]
        body += _text(name)
        if isinstance(value, bytes):
            body += b"b" + varint(len(value)) + value
        elif isinstance(value, str):
            body += b"s" + _text(value)
        else:
            raw = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
            body += b"i" + varint(len(raw)) + raw
    whole = bytes(body)
    return PREFIX + _base64(_mac(key, whole) + whole)


def decode(token: str, kind: str, key: bytes) -> Payload:
    """The payload of a token that `encode(kind, key, ...)` wrote.

    Raises `CursorRejected` for anything else: altered, cut, of another store (another key) or of another kind.
    """
    import hmac

    whole = _unbase64(token)
    mac, body = whole[:MAC_BYTES], whole[MAC_BYTES:]
    if not body or not hmac.compare_digest(mac, _mac(key, body)):
        raise CursorRejected("the cursor was altered, or belongs to another store", hint=START_AGAIN)
    reader = _Reader(body)
    found = reader.text()
    if found != kind:
        raise CursorRejected(f"the cursor belongs to {found!r} pages, not to {kind!r} pages", hint=START_AGAIN)
    payload: Payload = {}
    while not reader.done():
        name, sort = reader.text(), reader.take(1)
        raw = reader.take(reader.number())
        if sort == b"i":
            payload[name] = int.from_bytes(raw, "big", signed=True)
        else:
            payload[name] = raw if sort == b"b" else raw.decode()
    return payload


def digest(*parts: str) -> bytes:
    """16 bytes that stand for a query and view inside a token. Parts are delimited: ("ab", "c") is not ("a", "bc")."""
    from hashlib import sha256

    return sha256(b"".join(_text(part) for part in parts)).digest()[:16]


def pack(numbers: Iterable[int]) -> bytes:
    """Non-negative integers as one compact byte string (seven bits a byte), in order."""
    return b"".join(varint(number) for number in numbers)


def unpack(packed: bytes) -> list[int]:
    reader = _Reader(packed)
    numbers = []
    while not reader.done():
        numbers.append(reader.number())
    return numbers


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class _Reader:
    """Walks a body that the MAC has vouched for."""

    __slots__ = ("at", "body")

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def done(self) -> bool:
        return self.at >= len(self.body)

    def take(self, count: int) -> bytes:
        self.at += count
        return self.body[self.at - count : self.at]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.body[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self) -> str:
        return self.take(self.number()).decode()


def _text(value: str) -> bytes:
    raw = value.encode()
    return varint(len(raw)) + raw


def _mac(key: bytes, body: bytes) -> bytes:
    import hmac

    return hmac.digest(key, body, "sha256")[:MAC_BYTES]


def _base64(raw: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(raw, newline=False).decode().rstrip("=").replace("+", "-").replace("/", "_")


def _unbase64(token: str) -> bytes:
    """The bytes of a token, or `CursorRejected`: only the canonical spelling of them passes."""
    from binascii import Error, a2b_base64

    malformed = CursorRejected("that is not a cursor", hint=START_AGAIN)
    if not token.isascii() or not token.startswith(PREFIX) or not len(PREFIX) < len(token) <= LONGEST:
        raise malformed
    spelled = token[len(PREFIX) :].replace("-", "+").replace("_", "/")
    try:
        raw = a2b_base64(spelled + "=" * (-len(spelled) % 4))
    except Error:
        raise malformed from None
    if PREFIX + _base64(raw) != token:
        raise malformed
    return raw
