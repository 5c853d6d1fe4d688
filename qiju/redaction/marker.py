"""What stands in a value's place: its kind and eight hexadecimal digits of a keyed hash.

Equal values get equal markers, so a reader can tell that two places held the same thing; without the store's key no
guess can be tested against a marker.
"""

from __future__ import annotations


def subkey(key: bytes, purpose: str) -> bytes:
    """The key for one purpose (`marker`, `fingerprint`, ...), derived from the store's key."""
    from hmac import digest

    return digest(key, b"qiju/" + purpose.encode("ascii"), "sha256")


def marker(key: bytes | None, kind: str, value: str) -> str:
    """The marker of `value` under a marker sub-key; without a key it tells the kind only."""
    if key is None:
        return f"[REDACTED:{kind}]"
    from hmac import digest

    return f"[REDACTED:{kind}:{digest(key, value.encode('utf-8', 'surrogatepass'), 'sha256').hex()[:8]}]"
