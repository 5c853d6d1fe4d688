"""The scrubber of the public views: every string that stays in a projection passes here.

The redaction engine's public form removes secrets, addresses, home folders and the names of this machine. A history
may come from another machine, so the names that its own text gives away (a home folder's owner, a shell prompt) go as
well, wherever they stand in the same record. That is decided record by record: a page shows a record as an export of
the whole history does.

A store's own engine is used for what it holds: it knows the store's rules, its allow-list and what was redacted by
hand, and its markers let equal values be told. Elsewhere markers carry no digits, and are the same on every machine.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from qiju.trajectory.views import Scrub, Scrubbed

if TYPE_CHECKING:
    from qiju.redaction import Engine

_OWNER = re.compile(r"(?:/home/|/Users/|[A-Za-z]:[\\/]{1,4}Users[\\/]{1,4}|-(?:home|Users)-)([A-Za-z0-9][\w.-]{2,31})")
_PROMPT = re.compile(r"(?<![\w.%+-])([A-Za-z_][\w.-]{2,31})@([A-Za-z][\w-]{2,62})(?=:[~/])")
# Names that tell nothing, and that texts use as words.
_NOBODY = frozenset(
    (
        *("admin", "app", "build", "ci", "code", "container", "debian", "default", "dev", "docker", "fedora", "git"),
        *("guest", "home", "host", "linux", "local", "localhost", "name", "nobody", "node", "public", "root", "runner"),
        *("sandbox", "server", "shared", "test", "ubuntu", "user", "username", "users", "vagrant", "windows", "work"),
        *("workspace", "www-data", "you"),
    )
)


def scrub_for(source: object) -> Scrub:
    """The scrubber for what a source holds."""
    store = getattr(source, "store", None)
    if store is not None and hasattr(store, "engine"):
        return scrub_with(store.engine())
    return scrub_plain()


def scrub_plain() -> Scrub:
    """A scrubber with the built-in rules and markers without digits."""
    from qiju.redaction import Engine

    return scrub_with(Engine(None))


def scrub_with(engine: Engine) -> Scrub:
    """A scrubber that uses a given engine."""
    from qiju.redaction import scrub_public
    from qiju.redaction.public import machine_names

    local = machine_names()

    def scrub(text: str, name: str, others: frozenset[str]) -> Scrubbed:
        kinds: tuple[str, ...] = ()
        if name:
            named = engine.redact_text(text, name)
            text, kinds = named.text, tuple(finding.kind for finding in named.findings)
        public, findings = scrub_public(text, engine, [*local, *others])
        return Scrubbed(public, kinds + tuple(finding.kind for finding in findings))

    return scrub


def names_in(text: str) -> frozenset[str]:
    """User and host names that a text gives away."""
    found = {match[1] for match in _OWNER.finditer(text)}
    for match in _PROMPT.finditer(text):
        found.update(match.groups())
    return frozenset(name for name in found if name.casefold() not in _NOBODY)


@cache
def rules_version() -> str:
    """Twelve hex digits that change when a built-in rule does."""
    from qiju.redaction.rules import builtin_rules, detectors

    words = [f"{rule.id}={rule.version}" for rule in builtin_rules()]
    words += [f"{rule.id}={rule.version}" for rule in detectors()]
    return sha256("\n".join(sorted(words)).encode()).hexdigest()[:12]
