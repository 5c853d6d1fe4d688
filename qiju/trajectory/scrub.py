"""The scrubber of the public views: every string that stays in a projection passes here.

Equal secrets get equal markers within one store or journal. The key of the markers is the store's own; a journal's
comes from its random id, which an export does not hold; any other source has one that dies with the reader.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from qiju.trajectory.views import Scrub, Scrubbed

if TYPE_CHECKING:
    from qiju.redaction import Engine


def scrub_for(source: object) -> Scrub:
    """The scrubber for what a source holds: a store's engine knows its rules, its allow-list and what it redacted."""
    store = getattr(source, "store", None)
    if store is not None and hasattr(store, "engine"):
        return scrub_with(store.engine())
    return scrub_keyed(getattr(source, "cursor_key", None) or os.urandom(32))


def scrub_keyed(key: bytes) -> Scrub:
    """A scrubber with the built-in rules, its markers keyed with `key`."""
    from qiju.redaction import Engine

    return scrub_with(Engine(key))


def scrub_with(engine: Engine) -> Scrub:
    from qiju.redaction import scrub_public

    def scrub(text: str, name: str) -> Scrubbed:
        done = engine.redact_named(name, text) if name else engine.redact_text(text)
        return Scrubbed(scrub_public(done.text), tuple(finding.kind for finding in done.findings))

    return scrub


@cache
def rules_version() -> str:
    """Twelve hex digits that change when a built-in rule does."""
    from qiju.redaction.rules import builtin_rules, detectors

    words = [f"{rule.id}={rule.version}" for rule in builtin_rules()]
    words += [f"{rule.id}={rule.version}" for rule in detectors()]
    return sha256("\n".join(sorted(words)).encode()).hexdigest()[:12]
