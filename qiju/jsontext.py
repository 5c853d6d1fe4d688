"""Strict JSON in, canonical JSON out, and no number ever through a float.

Reading refuses what would be altered silently: duplicate keys, NaN and Infinity, lone surrogates, text that is not
UTF-8, nesting beyond `MAX_DEPTH`. Every refusal names line and column. A number that is not a plain 64-bit integer
stays a `Number`, the token as it was written.

Writing has one order, that of RFC 8785 (keys sorted by UTF-16 code units, no escapes but the required ones), in three
layouts: `canonical` (no spaces: what digests are taken of), `line` and `pretty` (what commands print; characters that
could steer a terminal are escaped there, too). RFC 8785 would also rewrite numbers as IEEE doubles; here they keep
their token, since a record's numbers may be larger than that.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring

from qiju.errors import InvalidJson, InvalidRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

MAX_DEPTH = 200  # levels of arrays and objects; SQLite's JSON functions stop at 1000, Python's encoder earlier still


class Number:
    """A JSON number that is not a 64-bit integer, kept as its source token (`1.50`, `1e400`, 5000 digits)."""

    __slots__ = ("token",)

    def __init__(self, token: str) -> None:
        self.token = token

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and other.token == self.token

    def __hash__(self) -> int:
        return hash(self.token)

    def __repr__(self) -> str:
        return f"Number({self.token})"


JsonValue = None | bool | int | Number | str | list["JsonValue"] | dict[str, "JsonValue"]

_quote: Callable[[str], str] = encode_basestring


# --- reading ---------------------------------------------------------------------------------------------------------


def parse(source: str | bytes, *, name: str = "the JSON text") -> JsonValue:
    """The value of a strict JSON text. `name` stands for the text in error messages.

    A UTF-8 byte order mark is skipped. Raises `InvalidJson` with line and column (both from 1).
    """
    text = _decoded(source, name) if isinstance(source, bytes) else source.removeprefix("\ufeff")
    if not text.strip(" \t\r\n"):
        raise InvalidJson(f"{name} is empty", hint="give one JSON object")
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        _refuse(name, f"is not JSON: {error.msg}", error.lineno, error.colno)
    except (_Duplicate, _NotFinite):
        _Locator(text, name).refuse()
    except RecursionError:
        _too_deep(name)
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        _too_deep(name)
    if ("\\ud" in text or "\\uD" in text or not isinstance(source, bytes)) and not _encodable(value):
        _Locator(text, name).refuse()
    return value


class _Duplicate(Exception):
    pass


class _NotFinite(Exception):
    pass


def _integer(token: str) -> int | Number:
    # 18 digits always fit 64 bits; "-0" would lose its sign.
    return int(token) if len(token) <= 18 and token != "-0" else Number(token)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Duplicate
    return value


def _constant(_token: str) -> NoReturn:
    raise _NotFinite


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=Number, parse_constant=_constant, object_pairs_hook=_object)


def _decoded(data: bytes, name: str) -> str:
    for mark, encoding in ((b"\xff\xfe\x00\x00", "UTF-32"), (b"\x00\x00\xfe\xff", "UTF-32")):
        if data.startswith(mark):
            raise InvalidJson(f"{name} is {encoding} text, not UTF-8", hint="save it as UTF-8")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(data) > 3 and 0 in data[:2]):
        raise InvalidJson(f"{name} is UTF-16 text, not UTF-8", hint="save it as UTF-8")
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        raise InvalidJson(
            f"{name}, line {line} column {column}: byte 0x{error.object[error.start]:02x} is not UTF-8",
            line=line,
            column=column,
            hint="save it as UTF-8",
        ) from None


def _refuse(name: str, what: str, line: int, column: int, hint: str = "") -> NoReturn:
    raise InvalidJson(
        f"{name}, line {line} column {column}: {what}",
        line=line,
        column=column,
        hint=hint or "correct the JSON text there",
    )


def _too_deep(name: str) -> NoReturn:
    raise InvalidJson(
        f"{name} is nested deeper than {MAX_DEPTH} levels", hint="flatten it, or put the deep part into body_md as text"
    )


def _depth(value: JsonValue) -> int:
    deepest, level = 0, [value]
    while level:
        inner: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            else:
                continue
        if any(isinstance(item, dict | list) for item in level):
            deepest += 1
        level = inner
    return deepest


def _encodable(value: JsonValue) -> bool:
    try:
        canonical(value).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class _Locator:
    """Walks a text that the decoder refused and says where: only on the way to an error, so it may be slow."""

    _TOKEN = r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|-?[A-Za-z0-9.+-]+'
    _SURROGATE = "[\ud800-\udfff]"

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name

    def refuse(self) -> NoReturn:
        keys: list[set[str] | None] = []
        expect_key = False
        for match in re.finditer(self._TOKEN, self.text, re.DOTALL):
            token = match.group()
            if token == "{":
                keys.append(set())
                expect_key = True
            elif token == "[":
                keys.append(None)
                expect_key = False
            elif token in "}]":
                keys.pop()
                expect_key = False
            elif token == ",":
                expect_key = bool(keys) and keys[-1] is not None
            elif token == ":":
                expect_key = False
            elif token.lstrip("-") in ("NaN", "Infinity"):
                self._at(match.start(), f"{token} is not a JSON number", "use null, or write the number as text")
            elif token.startswith('"'):
                string: str = json.loads(token, strict=False)
                if re.search(self._SURROGATE, string):
                    self._at(match.start(), "a lone surrogate escape stands in this string", "it is half a character")
                if expect_key and keys and keys[-1] is not None:
                    if string in keys[-1]:
                        self._at(match.start(), "this key stands twice in its object", "keep one of the two")
                    keys[-1].add(string)
        self._at(0, "is not strict JSON", "")

    def _at(self, offset: int, what: str, hint: str) -> NoReturn:
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        _refuse(self.name, what, line, column, hint)


# --- writing ---------------------------------------------------------------------------------------------------------


def canonical(value: JsonValue) -> str:
    """The canonical text: no white space, keys in order. Digests are taken of its UTF-8 bytes."""
    out: list[str] = []
    _write(value, out.append, ",", ":")
    return "".join(out)


def line(value: JsonValue) -> str:
    """One line with a space after each comma and colon."""
    out: list[str] = []
    _write(value, out.append, ", ", ": ")
    return _visible("".join(out))


def pretty(value: JsonValue) -> str:
    """Indented by two spaces a level; no closing newline."""
    out: list[str] = []
    _write_indented(value, out.append, "\n")
    return _visible("".join(out))


# JSON lets them stand as they are: DEL, the C1 controls that some terminals obey, and what turns the reading direction.
_UNSEEN = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # compiled when first met


def _visible(text: str) -> str:
    """The same JSON with unseen characters, which stand inside strings only, as escapes: it may go to a terminal."""
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_UNSEEN, lambda found: f"\\u{ord(found[0]):04x}", text)


def digest(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, 64 hexadecimal digits."""
    from hashlib import sha256

    return sha256(text.encode("utf-8")).hexdigest()


def ordered(value: dict[str, JsonValue]) -> list[str]:
    """The keys of an object in canonical order, that of their UTF-16 code units."""
    keys = list(value)
    if all(map(str.isascii, keys)):
        keys.sort()
    else:
        keys.sort(key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return keys


def _scalar(value: JsonValue) -> str:
    if isinstance(value, str):
        return _quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, Number):
        return value.token
    if isinstance(value, float):  # from Python callers only: the parser never makes one
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidRecord("NaN and Infinity are not JSON numbers", hint="use None, or write the number as text")
        return float.__repr__(value)
    raise InvalidRecord(f"a value of type {type(value).__name__} is not JSON", hint="use plain JSON types")


def _write(value: JsonValue, put: Callable[[str], None], comma: str, colon: str) -> None:
    if isinstance(value, dict):
        lead = "{"
        for key in ordered(value):
            put(lead + _quote(key) + colon)
            _write(value[key], put, comma, colon)
            lead = comma
        put("}" if value else "{}")
    elif isinstance(value, list | tuple):
        lead = "["
        for item in value:
            put(lead)
            _write(item, put, comma, colon)
            lead = comma
        put("]" if value else "[]")
    else:
        put(_scalar(value))


def _write_indented(value: JsonValue, put: Callable[[str], None], newline: str) -> None:
    inner = newline + "  "
    if isinstance(value, dict) and value:
        lead = "{"
        for key in ordered(value):
            put(lead + inner + _quote(key) + ": ")
            _write_indented(value[key], put, inner)
            lead = ","
        put(newline + "}")
    elif isinstance(value, list | tuple) and value:
        lead = "["
        for item in value:
            put(lead + inner)
            _write_indented(item, put, inner)
            lead = ","
        put(newline + "]")
    else:
        _write(value, put, ", ", ": ")
