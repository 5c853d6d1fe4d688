"""Redaction: what can be recognised as a secret or as personal data is replaced before it is stored or shown.

The layers, each a module: `rules` (patterns as data), `shadow` (the same-length text that is searched), `names`,
`looks` and `assign` (`name = value` with filters on both), `detectors` (structures no single pattern describes),
`validators` (check digits and addresses), `engine` (union of spans, one replacement, re-scan, fail closed), `values`
(every string of a JSON value), `fingerprint` (values redacted by hand stay recognised), `forms` (a literal's
encodings, for erasure and its proof), `public` (the shared view), `scanner` (the optional second engine).

Importing this package loads none of them: commands that only read never pay for the rules.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .engine import Engine, Finding, Redacted, RedactionFailed
    from .fingerprint import Remembered
    from .public import scrub_public
    from .rules import Rule, load_user_rules
    from .values import Redaction

__all__ = [
    "Engine",
    "Finding",
    "Redacted",
    "Redaction",
    "RedactionFailed",
    "Remembered",
    "Rule",
    "load_user_rules",
    "redact_text",
    "scrub_public",
]

_HOME = {
    "Engine": "engine",
    "Finding": "engine",
    "Redacted": "engine",
    "RedactionFailed": "engine",
    "Redaction": "values",
    "Remembered": "fingerprint",
    "Rule": "rules",
    "load_user_rules": "rules",
    "scrub_public": "public",
}

# For scoring and experiments only: markers made with it can be tested against guesses by anyone.
DEVELOPMENT_KEY = b"qiju development key, not secret"

_development: Engine | None = None


def redact_text(text: str) -> str:
    """The text with every recognised value replaced, under a fixed public key (stores use `Engine` with their own)."""
    global _development
    if _development is None:
        from .engine import Engine

        _development = Engine(DEVELOPMENT_KEY)
    return _development.redact_text(text).text


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
