"""`qiju show`: exact ids, beginnings of ids, and what two projects share."""

from __future__ import annotations

import json

from program import SESSION, Place


def test_one_id_is_an_object_and_several_are_a_list(place: Place) -> None:
    one, two = place.log(title="one"), place.log(title="two")
    assert place.ok("show", one).json()["title"] == "one"
    assert [row["title"] for row in place.ok("show", two, one).json()] == ["two", "one"]


def test_the_beginning_of_an_id_is_enough_when_it_is_the_only_one(place: Place) -> None:
    place.log(session="abcdef")
    assert place.ok("show", "abc").json()["id"] == "abcdef:1"
    place.log(session="abcxyz")
    done = place.run("show", "abc")
    assert done.code == 4
    assert "abcdef:1 (demo)" in done.err
    assert "abcxyz:1 (demo)" in done.err


def test_an_exact_id_is_never_taken_for_a_beginning(place: Place) -> None:
    for number in range(10):
        place.log(title=str(number))
    assert place.ok("show", f"{SESSION}:1").json()["title"] == "0"


def test_an_id_in_two_projects_is_said_not_guessed(place: Place) -> None:
    place.log(id="s:1", title="one", project="a")
    place.log(id="s:1", title="two", project="b")
    done = place.run("show", "s:1")
    assert done.code == 4
    assert "a, b" in done.err
    assert place.ok("show", "s:1", "--project", "b").json()["title"] == "two"


def test_what_is_not_there_is_exit_3(place: Place) -> None:
    place.log()
    for words in (["nope:1"], [""], [f"{SESSION}:1", "--project", "other"]):
        done = place.run("show", *words)
        assert (done.code, done.out) == (3, "")
        assert "hint:" in done.err


def test_fields_are_projected_and_an_absent_one_is_null(place: Place) -> None:
    place.log(title="one")
    assert place.ok("show", SESSION, "--fields", "title,model,nothing").json() == {
        "title": "one",
        "model": None,
        "nothing": None,
    }


def test_text_for_people_is_inert(place: Place) -> None:
    """Escape sequences and direction overrides of a record cannot steer a terminal; JSON keeps the data."""
    place.log(title="a\u202eb", body_md="\x1b[31mred\x1b[0m\nsecond line")
    for words in (["--format", "markdown"], ["--format", "text"]):
        out = place.ok("show", SESSION, *words).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "second line" in out
    assert json.loads(place.ok("show", SESSION).out)["body_md"].startswith("\x1b[31m")
