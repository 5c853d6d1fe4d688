"""The public view: what is harmless at home does not leave the machine."""

from __future__ import annotations

import pytest

from qiju.redaction import Engine, scrub_public
from qiju.redaction.public import machine_names, scrub


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("see /home/alice/proj/a.py", "see {}/proj/a.py"),
        ("/Users/Alice.Smith/x", "{}/x"),
        ("file:///home/alice/x", "file://{}/x"),
        ("C:\\Users\\Alice\\AppData", "{}\\AppData"),
        ('{"p": "C:\\\\Users\\\\Alice\\\\x"}', '{{"p": "{}\\\\x"}}'),
        ("c:/Users/Alice/x", "{}/x"),
        ("\\\\wsl$\\Ubuntu\\home\\alice\\x", "{}\\x"),
        ("\\\\wsl.localhost\\Ubuntu-22.04\\home\\alice\\x", "{}\\x"),
        ("/mnt/c/Users/Alice/x", "{}/x"),
        (".claude/projects/-home-alice-proj/x", ".claude/projects/{}-proj/x"),
    ],
)
def test_home_folders_go_and_the_rest_of_the_path_stays(text: str, kept: str) -> None:
    out, found = scrub_public(text, names=[])
    assert out == kept.format("[REDACTED:home]")
    assert [f.kind for f in found] == ["home"]


@pytest.mark.parametrize(
    "text", ["/home/user/x", "/Users/Shared/x", "/usr/lib/x", "C:\\Windows\\x", "127.0.0.1:80", "Chrome 132.0.4169.130"]
)
def test_what_tells_nothing_stays(text: str) -> None:
    assert scrub_public(text, names=[]) == (text, [])


def test_names_of_user_and_host_go_as_whole_words() -> None:
    out, _ = scrub_public("alice@Build7: alicella, ALICE", names=["alice", "build7"])
    assert out == "[REDACTED:name]@[REDACTED:name]: alicella, [REDACTED:name]"


@pytest.mark.parametrize(
    "text",
    [
        "10.1.2.3",
        "192.168.7.9",
        "185.152.225.175",
        "fe80::1ff:fe23:4567:890a",
        "2a01:4f8:4aa:38dd::9",
        "3c:22:fb:01:9a:77",
        "nora@maple-works.io",
        "noreply@maple-works.io",
    ],
)
def test_addresses_go(text: str) -> None:
    out, found = scrub_public(f"at {text} now", names=[])
    assert text not in out
    assert len(found) == 1


def test_secrets_go_and_spans_are_right(github: str) -> None:
    text = f"/home/alice/x {github}"
    done = scrub(text, Engine(b"k"), [])
    assert github not in done.text
    assert [text[f.start : f.end] for f in done.findings] == ["/home/alice", github]
    assert all(done.text[s:e] == p for s, e, p in done.markers)


def test_without_an_engine_the_output_is_the_same_everywhere(github: str) -> None:
    assert scrub_public(github, names=[])[0] == "[REDACTED:github_token]"


def test_scrubbing_again_changes_nothing(github: str) -> None:
    once, _ = scrub_public(f"/home/alice/x 10.1.2.3 {github} a@b-works.io", names=["alice"])
    assert scrub_public(once, names=["alice"]) == (once, [])


def test_own_names_leave_out_common_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "root")
    monkeypatch.setenv("LOGNAME", "quentinella")
    names = machine_names()
    assert "root" not in names
    assert "quentinella" in names
