"""The skills: valid files, small bodies, trigger sentences, and how an installed one is judged."""

from __future__ import annotations

import re

import pytest

from qiju import skills
from qiju.skills import SkillState

FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The scalar fields and the body; enough YAML for files of our own."""
    _, head, body = text.split("---\n", 2)
    lines = [line for line in head.splitlines() if line and not line.startswith(" ")]
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}, body


@pytest.mark.parametrize("name", skills.NAMES)
def test_the_front_matter_follows_the_agent_skills_specification(name: str) -> None:
    for text in (skills.source(name), skills.installed(name).decode()):
        fields, _ = front_matter(text)
        assert set(fields) <= FIELDS
        assert fields["name"] == name
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert 0 < len(fields["description"]) <= 1024
        assert len(fields["compatibility"]) <= 500
        # A plain YAML scalar: nothing in it may start a comment or a mapping.
        assert ": " not in fields["description"]
        assert " #" not in fields["description"]


@pytest.mark.parametrize("name", skills.NAMES)
def test_the_description_begins_with_the_trigger_and_excludes_near_misses(name: str) -> None:
    fields, _ = front_matter(skills.source(name))
    assert fields["description"].startswith("Use when the user ")
    assert " Not for " in fields["description"]
    assert f"/{name}" in fields["description"]


@pytest.mark.parametrize("name", skills.NAMES)
def test_the_body_stays_below_1500_tokens(name: str) -> None:
    """No tokenizer is needed for an upper bound: English text has fewer than one token for three characters, and
    fewer than two for each word and sign."""
    _, body = front_matter(skills.source(name))
    assert min(len(body) / 3, 2 * len(re.findall(r"\w+|[^\w\s]", body))) <= 1500


@pytest.mark.parametrize("name", skills.NAMES)
def test_skills_name_no_host_and_only_real_commands(name: str) -> None:
    body = skills.source(name)
    assert not re.search(r"\b(Claude|Codex|Kiro|Cursor|Gemini|Copilot)\b", body)
    assert set(re.findall(r"\bqiju ([a-z-]+)", body)) <= {"log", "search", "show", "temp-entry", "init", "command"}


@pytest.mark.parametrize("name", skills.NAMES)
def test_each_skill_has_twenty_sentences_that_call_it_and_twenty_that_do_not(name: str) -> None:
    sentences = skills.triggers(name)
    assert {key: len(set(value)) for key, value in sentences.items()} == {"should": 20, "should_not": 20}
    assert not set(sentences["should"]) & set(sentences["should_not"])
    for sentence in [*sentences["should"], *sentences["should_not"]]:
        assert sentence == sentence.strip()
        assert 8 <= len(sentence) <= 120 or sentence.startswith("/")


def test_no_sentence_calls_two_skills() -> None:
    called = [sentence for name in skills.NAMES for sentence in skills.triggers(name)["should"]]
    assert len(called) == len(set(called))


@pytest.mark.parametrize("name", skills.NAMES)
def test_an_installed_skill_is_judged_by_its_own_bytes(name: str) -> None:
    content = skills.installed(name)
    assert skills.judge(name, None) is SkillState.MISSING
    assert skills.judge(name, content) is SkillState.CURRENT
    assert skills.judge(name, content.replace(b"\n", b"\r\n")) is SkillState.CURRENT
    assert skills.judge(name, content.rstrip(b"\n")) is SkillState.CURRENT
    assert skills.judge(name, content.replace(b"record", b"rekord", 1)) is SkillState.MODIFIED
    assert skills.judge(name, b"anything") is SkillState.FOREIGN
    assert skills.judge(name, b"\xff\xfe\x00") is SkillState.FOREIGN


def test_an_unedited_file_of_another_version_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    old = skills.installed("qiju-log")
    text = skills.source("qiju-log")
    monkeypatch.setattr(skills, "source", lambda name: text + "\nOne more line.\n")
    assert skills.judge("qiju-log", old) is SkillState.STALE
    assert skills.judge("qiju-log", old + b"mine\n") is SkillState.MODIFIED


def test_a_file_of_the_predecessor_that_somebody_edited_is_modified() -> None:
    text = b"---\nname: qiju-log\ndescription: Use when ...\n---\n\nRun `qiju temp-entry`, then `qiju log`.\n"
    assert skills.judge("qiju-log", text) is SkillState.MODIFIED


def test_the_predecessors_own_files_are_known_by_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    known = skills._predecessor()
    assert set(known) == set(skills.NAMES)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digests in known.values() for digest in digests)
    text = b"---\nname: qiju-log\n---\nqiju log\n"
    from hashlib import sha256

    monkeypatch.setattr(skills, "_predecessor", lambda: {"qiju-log": [sha256(text).hexdigest()]})
    assert skills.judge("qiju-log", text.replace(b"\n", b"\r\n")) is SkillState.STALE
    assert skills.judge_retired(text) is SkillState.STALE
