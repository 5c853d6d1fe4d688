"""The brand words of the first predecessor, rewritten as the second one did: in keys and in values, three spellings."""

from __future__ import annotations

from qiju.jsontext import JsonValue

_WORDS = (("KEDU", "QIJU"), ("Kedu", "Qiju"), ("kedu", "qiju"))


def rebrand_text(text: str) -> str:
    for old, new in _WORDS:
        text = text.replace(old, new)
    return text


def rebrand(value: JsonValue) -> JsonValue:
    """Rewrite every string. A key whose new name is taken in the same object keeps its old one: nothing is lost."""
    if isinstance(value, str):
        return rebrand_text(value)
    if isinstance(value, list):
        return [rebrand(item) for item in value]
    return rebrand_object(value) if isinstance(value, dict) else value


def rebrand_object(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """`rebrand` for an object."""
    out: dict[str, JsonValue] = {}
    for key, item in value.items():
        renamed = rebrand_text(key)
        taken = renamed != key and (renamed in value or renamed in out)
        out[key if taken else renamed] = rebrand(item)
    return out
