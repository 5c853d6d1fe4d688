"""The public view of a text: no secret, no home folder, no user or host name of this machine, no address.

Stored text is already redacted; before it leaves the machine, what is harmless at home goes as well. Without an engine
markers carry no keyed digits, so the same text gives the same output on every machine.
"""

from __future__ import annotations

import os
import re

from .engine import Engine, Finding, Redacted, merge, replace
from .lazy import lazily
from .shadow import MASK, shadow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_HOME = lazily(
    r"(?:/(?:private/)?(?:home|Users|var/home|export/home|usr/home|mnt/[a-z]/Users|[a-z]/Users)"
    r"|[A-Za-z]:(?:\\{1,4}|/)(?:Users|Documents and Settings)"
    r"|\\{2,8}wsl(?:\$|\.localhost)\\{1,4}[\w. -]{1,40}\\{1,4}home|/mnt/wsl/[\w. -]{1,40}/home)"
    r"(?:/|\\{1,4})(?!(?:Shared|Public|Default|All Users|linuxbrew|runner|user|username|USER|USERNAME|you|me"
    r"|name)(?![\w.-]))"
    r"([^\s/\\:\"'`<>|*?,;()\[\]{}]{1,64})",
    re.IGNORECASE,
)
# Claude Code keeps a project's sessions in a folder named after its path.
_FLAT_HOME = lazily(r"(?<![A-Za-z0-9])-(?:home|Users)-([A-Za-z0-9_.]{2,32})(?=-|\b)")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)", re.ASCII)
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-f:]{0,39}:[0-9a-f:]{0,38}:)[0-9a-f]{0,4}(?::{1,2}[0-9a-f]{1,4}){1,7}(?:::)?(?![\w:])",
    re.IGNORECASE | re.ASCII,
)
_MAC = lazily(r"(?<![\w:-])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:-])", re.IGNORECASE | re.ASCII)
_EMAIL = lazily(r"(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,6}(?![\w@])", re.ASCII)
_OPEN_ADDRESSES = frozenset(("127.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "::"))
_COMMON = frozenset(
    [
        "root",
        "user",
        "admin",
        "ubuntu",
        "debian",
        "fedora",
        "runner",
        "docker",
        "vagrant",
        "node",
        "app",
        "dev",
        "test",
        "ci",
        "build",
        "git",
        "www",
        "data",
        "nobody",
        "localhost",
        "local",
        "default",
        "guest",
        "home",
        "host",
        "computer",
        "desktop",
        "laptop",
        "server",
        "pc",
        "linux",
        "windows",
        "macbook",
        "container",
        "sandbox",
        "vm",
        "users",
    ]
)

_plain: Engine | None = None


def machine_names() -> list[str]:
    """The names of this machine's user and of the machine, without those too common to tell anything."""
    import platform

    found = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "COMPUTERNAME", "HOSTNAME")]
    found.append(os.path.basename(os.path.expanduser("~")))  # noqa: PTH111, PTH119 - pathlib raises without a home
    node = platform.node()
    found += [node, node.split(".", 1)[0]]
    return sorted(
        {name for name in found if len(name) >= 3 and name.casefold() not in _COMMON and not name.isdigit()},
        key=lambda n: (-len(n), n),
    )


def scrub_public(
    text: str, engine: Engine | None = None, names: Iterable[str] | None = None
) -> tuple[str, list[Finding]]:
    """The text as others may see it, and what went (spans of the given text).

    `names` are the user and host names to remove; None takes those of the running machine. Raises RedactionFailed as
    the engine does.
    """
    done = scrub(text, engine, names)
    return done.text, done.findings


def scrub(text: str, engine: Engine | None = None, names: Iterable[str] | None = None) -> Redacted:
    """`scrub_public`, with the spans of the markers."""
    global _plain
    if engine is None:
        if _plain is None:
            _plain = Engine(None)
        engine = _plain
    found = engine.find(text)
    found.extend(_private(text, _name_pattern(names)))
    found = merge(found)
    if not found:
        return Redacted(text, [], [])
    done = replace(text, found, engine.mark)
    # The engine's own loop cleans what became visible; the second pass may only add to its findings.
    if engine.find(done.text):
        again = engine.redact_text(done.text)
        return Redacted(again.text, found + again.findings, again.markers)
    return done


_patterns: dict[tuple[str, ...], re.Pattern[str] | None] = {}
_own_names: tuple[str, ...] | None = None


def _name_pattern(names: Iterable[str] | None) -> re.Pattern[str] | None:
    global _own_names
    if names is None:
        if _own_names is None:
            _own_names = tuple(machine_names())
        wanted = _own_names
    else:
        wanted = tuple(sorted((n for n in names if n), key=lambda n: (-len(n), n)))
    if wanted not in _patterns:
        body = "|".join(re.escape(name) for name in wanted)
        _patterns[wanted] = re.compile(f"(?<![A-Za-z0-9])(?:{body})(?![A-Za-z0-9])", re.IGNORECASE) if wanted else None
    return _patterns[wanted]


def _private(text: str, names: re.Pattern[str] | None) -> list[Finding]:
    twin = shadow(text)
    out: list[Finding] = []

    def note(kind: str, start: int, end: int) -> None:
        if MASK not in twin[start:end]:
            out.append(Finding(f"public-{kind.replace('_', '-')}", kind, start, end, "medium"))

    # Paths are read from the text itself: in its twin, the backslashes of a Windows path may be blanks.
    for match in _HOME.finditer(text):
        note("home", match.start(), match.end(1))
    for match in _FLAT_HOME.finditer(text):
        note("home", match.start(), match.end(1))
    if names is not None:
        for match in names.finditer(text):
            note("name", match.start(), match.end())
    for match in _EMAIL.finditer(twin):
        domain = match[0].rpartition("@")[2].lower()
        if not domain.rpartition(".")[2].isdigit() and not domain.endswith((".png", ".jpg", ".svg", ".js")):
            note("email", match.start(), match.end())
    for match in _IPV4.finditer(twin):
        if match[0] not in _OPEN_ADDRESSES and all(int(p) < 256 for p in match[0].split(".")) and _address(twin, match):
            note("ip_address", match.start(), match.end())
    for match in _IPV6.finditer(twin):
        if match[0] not in _OPEN_ADDRESSES and _is_ipv6(match[0]):
            note("ip_address", match.start(), match.end())
    for match in _MAC.finditer(twin):
        note("mac_address", match.start(), match.end())
    return out


def _address(twin: str, match: re.Match[str]) -> bool:
    from .personal import ipv4

    parts = [int(p) for p in match[0].split(".")]
    private = (
        parts[0] in (10, 127)
        or parts[:2] == [192, 168]
        or (parts[0] == 172 and 16 <= parts[1] <= 31)
        or parts[:2] == [169, 254]
    )
    return private or ipv4(match[0], twin, match.start(), match.end())


def _is_ipv6(value: str) -> bool:
    from ipaddress import AddressValueError, IPv6Address

    if value.count(":") < 2 or not any(c in "0123456789" for c in value):
        return False
    try:
        IPv6Address(value)
    except AddressValueError:
        return False
    return True
