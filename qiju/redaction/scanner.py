"""The optional second engine: kingfisher-secret-scanner, in this process and offline (`pip install qiju[scanner]`).

It knows more vendors than the built-in rules and less about notes, JSON in JSON and personal data; its spans are
united with ours. It is pinned, because a newer rule set changes what is found.
"""

from __future__ import annotations

import re

from qiju.errors import UsageError

from .engine import Finding, RedactionFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 20.0  # per text; past it the text is refused, not stored unscanned
_KIND = re.compile(r"[^a-z0-9_]+")

_run: Callable[[bytes], list[object]] | None = None


def available() -> bool:
    """Whether the extra is installed."""
    from importlib.util import find_spec

    return find_spec("kingfisher_sdk") is not None


def active_engines(scanner: bool) -> list[str]:
    """The engines a store uses, for `doctor`: the built-in one with its number of rules, then the scanner."""
    from .rules import builtin_rules, detectors

    out = [f"built-in ({len(builtin_rules()) + len(detectors())} rules)"]
    if scanner:
        if available():
            from importlib.metadata import version

            out.append(f"kingfisher-secret-scanner {version('kingfisher-secret-scanner')}")
        else:
            out.append("kingfisher-secret-scanner (configured but not installed)")
    return out


def _engine() -> Callable[[bytes], list[object]]:
    global _run
    if _run is None:
        try:
            from kingfisher_sdk.scanner import Scanner
        except ImportError:
            raise UsageError(
                "the configuration asks for the second redaction engine, which is not installed",
                hint="Install it with: pip install 'qiju[scanner]', or switch it off in the configuration.",
            ) from None
        native = Scanner(base64=True, dedup=False, redact=False)

        def run(data: bytes) -> list[object]:
            return list(native.scan(data, timeout=SECONDS))

        _run = run
    return _run


def scan(text: str) -> list[Finding]:
    """The scanner's findings, in characters of `text`. Raises RedactionFailed when it breaks or runs out of time."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        found = _engine()(data)
    except (TimeoutError, RuntimeError, ValueError) as error:
        raise RedactionFailed(
            f"the second redaction engine failed ({type(error).__name__}), so the text was refused"
        ) from error
    out: list[Finding] = []
    for one in found:
        if not one.visible:  # type: ignore[attr-defined]
            continue
        span = _span(data, one)
        if span is not None:
            start, end = (len(data[:at].decode("utf-8", "surrogatepass")) for at in span)
            name = _KIND.sub("_", one.rule_id.lower().removeprefix("kingfisher."))[:32].strip("_")  # type: ignore[attr-defined]
            out.append(Finding("scanner", f"s_{name}" if name else "secret", start, end, "medium"))
    return out


def _span(data: bytes, one: object) -> tuple[int, int] | None:
    """The bytes of a finding: its secret inside the reported match, else the whole match."""
    where = one.location  # type: ignore[attr-defined]
    start, end = int(where["start_offset"]), int(where["end_offset"])
    secret = one.secret.encode("utf-8", "surrogatepass")  # type: ignore[attr-defined]
    at = data.find(secret, start, end) if secret else -1
    if at >= 0:
        return at, at + len(secret)
    return (start, end) if 0 <= start < end <= len(data) else None
