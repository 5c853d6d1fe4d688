"""The optional second engine: its spans are united with ours, and its absence is said."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from qiju.errors import UsageError
from qiju.redaction import Engine, RedactionFailed, scanner


def finding(text: str, secret: str, rule: str = "kingfisher.acme.1", visible: bool = True) -> SimpleNamespace:
    data = text.encode()
    start = data.index(secret.encode())
    return SimpleNamespace(
        rule_id=rule,
        secret=secret,
        visible=visible,
        location={"start_offset": start, "end_offset": start + len(secret.encode())},
    )


def test_spans_are_characters_and_united(monkeypatch: pytest.MonkeyPatch, github: str) -> None:
    text = f"é acme!77secret and {github}"
    monkeypatch.setattr(
        scanner,
        "_run",
        lambda data: (
            [finding(text, "acme!77secret"), finding(text, github), finding(text, "and", visible=False)]
            if b"acme!77" in data
            else []
        ),
    )
    done = Engine(b"k", scanner=True).redact_text(text)
    assert [text[f.start : f.end] for f in done.findings] == ["acme!77secret", github]
    assert [f.kind for f in done.findings] == ["s_acme_1", "github_token"]


def test_a_broken_scanner_refuses_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> list[object]:
        raise TimeoutError

    monkeypatch.setattr(scanner, "_run", broken)
    with pytest.raises(RedactionFailed):
        Engine(b"k", scanner=True).redact_text("some text")


def test_asking_for_a_scanner_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_run", None)
    monkeypatch.setitem(sys.modules, "kingfisher_sdk", None)
    monkeypatch.setitem(sys.modules, "kingfisher_sdk.scanner", None)
    with pytest.raises(UsageError) as caught:
        Engine(b"k", scanner=True).redact_text("some text")
    assert "qiju[scanner]" in caught.value.hint


def test_active_engines_name_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(scanner.active_engines(False)) == 1
    monkeypatch.setattr(scanner, "available", lambda: False)
    assert "not installed" in scanner.active_engines(True)[1]


@pytest.mark.skipif(not scanner.available(), reason="the extra `scanner` is not installed")
@pytest.mark.slow
def test_the_real_scanner_finds_a_token(github: str) -> None:
    found = scanner.scan(f"é token {github} end")
    assert any((f.start, f.end) == (8, 8 + len(github)) for f in found)
