"""Names to slugs: safe on every system, and never two names in one."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qiju.place.slug import MAX_BYTES, distinct_slug, name_key, same_name, slugify

ODD_NAMES = [
    "a/b", "a=b", "a%2Fb", "a b", "a-b", "a--b", "a_b", "100%", "100", "x..y", "x.y", "__HIVE_DEFAULT_PARTITION__",
    "month=2020-01", "month-2020-01", "--version", "version", ".hidden", "hidden", "con", "con.txt", "con-txt", "a.",
    "a", "🎉", "🎊", "日本", "本日", "x" * 80, "x" * 81, "x" * 82, "../../etc", "a\\b", "a:b", "a*b", "a?b", "a\nb",
]  # fmt: skip


@pytest.mark.parametrize("name", ["demo", "foo_bar", "foo.bar", "x..y", "café", "日本語", "проект", "ভাষা", "a-", "2024"])
def test_a_safe_lower_case_name_is_its_own_slug(name: str) -> None:
    assert slugify(name) == name


def test_odd_names_stay_distinct_projects() -> None:
    slugs = [slugify(name) for name in ODD_NAMES]
    assert len(set(slugs)) == len(ODD_NAMES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "cafe\u0301"),  # NFC and NFD, as macOS spells file names
        ("Demo", "demo"),
        ("de\u200bmo", "demo"),  # zero-width space
        ("de\ufe0fmo", "demo"),  # variation selector
        ("\u202edemo", "demo"),  # right-to-left override
        ("ｄｅｍｏ", "demo"),  # full width
        ("  demo\n", "demo"),
        ("ΑΣ", "ας"),
        ("İstanbul", "i\u0307stanbul"),
        ("de\x00mo", "demo"),
    ],
)
def test_two_spellings_of_one_name_are_one_project(one: str, other: str) -> None:
    assert slugify(one) == slugify(other)
    assert same_name(one, other)


@pytest.mark.parametrize("name", ["CON", "prn", "aux", "nul", "com1", "LPT9", "nul.txt", "com¹", "con.tar.gz"])
def test_device_names_of_windows_are_never_slugs(name: str) -> None:
    slug = slugify(name)
    assert slug.partition(".")[0] not in {"con", "prn", "aux", "nul", "com1", "lpt9"}
    assert slug.startswith(name_key(name).split(".")[0])


@pytest.mark.parametrize("name", ["", "   ", "\u200b", "🎉", "///", "...", "---"])
def test_a_slug_is_never_empty(name: str) -> None:
    assert slugify(name).startswith("project-")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=120))
@example("--version")
@example(". .")
@example("\u0301a")
@example("é" * 41)
@example("ﷺ" * 30)
@example("\ud800")
def test_every_slug_is_safe_as_a_file_name_and_slugs_to_itself(name: str) -> None:
    slug = slugify(name)
    assert 0 < len(slug.encode("utf-8")) <= MAX_BYTES
    assert slug[0] not in "-."
    assert slug[-1] != "."
    assert not set(slug) & set('/\\:*?"<>|%=,\0 ')
    assert all(unicodedata.category(character)[0] in "LMN" or character in "._-" for character in slug)
    assert unicodedata.normalize("NFC", slug) == slug
    assert slugify(slug) == slug
    assert slugify(name.upper()) == slug or name_key(name.upper()) != name_key(name)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="aB /=.-_é\u0301%:\u200b", max_size=6), st.text(alphabet="aB /=.-_é\u0301%:\u200b", max_size=6))
def test_slugs_are_equal_exactly_when_the_names_are_one_name(one: str, other: str) -> None:
    assert (slugify(one) == slugify(other)) == same_name(one, other)


def test_distinct_slug_counts_up_and_stays_within_the_limit() -> None:
    assert distinct_slug("Demo", set()) == "demo"
    assert distinct_slug("Demo", {"demo"}) == "demo-2"
    assert distinct_slug("Demo", {"demo", "demo-2", "demo-3"}) == "demo-4"
    longest = "é" * 40
    second = distinct_slug(longest, {longest})
    assert second != longest
    assert second.endswith("-2")
    assert len(second.encode()) <= MAX_BYTES


@pytest.mark.parametrize("name", [".\u0650\ufffd", "-\u0301a/", "..\u0301", "-.\u0301-", "\u0301.\u0301x?"])
def test_a_mark_never_comes_to_stand_first(name: str) -> None:
    slug = slugify(name)
    assert slugify(slug) == slug
    assert slug[0].isalnum()
