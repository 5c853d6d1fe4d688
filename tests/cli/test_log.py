"""`qiju log`: what is stored, what is refused, and what happens to the draft."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program import SESSION, Place, make_repository

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"
BASE = ("log", "--source", "manual", "--agent", "codex", "--project", "demo", "--session-id", SESSION)


def everything(place: Place) -> list[dict[str, object]]:
    found: list[dict[str, object]] = place.ok("search", "--scope", "all", "--sort", "seq", "--order", "asc").json()
    return found


def test_a_record_is_printed_found_from_elsewhere_and_read_back(place: Place) -> None:
    identity = place.log(title="The lease", tags=["x"], next_steps=["go on"], extra={"n": 1})
    assert identity == f"{SESSION}:1"
    found = place.ok("search", "--scope", "all", "--query", "LEASE", cwd=place.user).json()
    assert [row["id"] for row in found] == [identity]
    shown = place.ok("show", identity, cwd=place.user).json()
    assert shown == found[0]
    assert shown["extra"] == {"n": 1}
    assert shown["schema_version"] == 2


def test_numbers_beyond_sixty_four_bits_come_back_exactly(place: Place) -> None:
    text = '{"title":"n","body_md":"b","big":18446744073709551616,"neg":-9223372036854775809,"f":1.50,"e":1e400}'
    place.ok(*BASE, given=text)
    out = place.ok("show", f"{SESSION}:1").out
    for token in ("18446744073709551616", "-9223372036854775809", "1.50", "1e400"):
        assert f": {token}" in out


def test_a_body_of_twenty_megabytes_is_kept_whole(place: Place) -> None:
    body = "0123456789 lorem ipsum " * 900_000
    place.ok(*BASE, given=json.dumps({"title": "big", "body_md": body}))
    assert place.ok("show", f"{SESSION}:1").json()["body_md"] == body


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        ("[]", "a JSON object, not a list"),
        ("null", "not null"),
        ('{"title": "a",\n"title": "b"}', "line 2 column 1"),
        ('{"title": NaN}', "line 1 column 11"),
        ('{"title": "\\ud800"}', "line 1 column 11"),
        ('{"title": 1}', "title must be a string"),
        ('{"title": "x", "id": "x:01"}', "id must be"),
        ('{"a": ' + "[" * 300 + "]" * 300 + "}", "deeper"),
    ],
)
def test_a_bad_body_is_refused_with_its_place_and_nothing_is_stored(place: Place, text: str, named: str) -> None:
    draft = Path(place.ok("temp-entry").out.strip())
    draft.write_text(text, encoding="utf-8")
    done = place.run(*BASE, "--cleanup", "--body", str(draft))
    assert done.code == 1
    assert named in done.err
    assert "hint:" in done.err
    assert draft.read_text(encoding="utf-8") == text
    assert everything(place) == []


@pytest.mark.parametrize("data", ['{"title": "x"}'.encode("utf-16"), b'{"title": "\xff"}'])
def test_other_encodings_are_refused(place: Place, data: bytes) -> None:
    done = place.run(*BASE, given=data)
    assert (done.code, done.out) == (1, "")
    assert "UTF-8" in done.err


def test_errors_are_json_when_json_was_asked_for(place: Place) -> None:
    for words in (["--json"], ["--json-errors"]):
        error = json.loads(place.run(*BASE, *words, given="[").err)["error"]
        assert (error["kind"], error["exit_code"], error["retryable"]) == ("invalid_json", 1, False)
        assert error["hint"]


def test_the_same_record_again_is_the_same_record(place: Place) -> None:
    """A retry with its explicit id succeeds, whatever the caller leaves out the second time."""
    first = place.log(id="s:1", title="once", ts="2026-03-01T00:00:00Z")
    assert place.log(id="s:1", title="once", ts="2026-03-01T00:00:00Z") == first
    assert place.log(id="s:1", title="once") == first
    assert len(everything(place)) == 1


def test_an_id_with_other_content_is_refused_and_names_the_fields_only(place: Place) -> None:
    place.log(id="s:1", title="once", body_md="private words")
    draft = Path(place.ok("temp-entry").out.strip())
    draft.write_text(json.dumps({"id": "s:1", "title": "twice", "body_md": "other words"}), encoding="utf-8")
    done = place.run(*BASE, "--cleanup", "--body", str(draft))
    assert done.code == 4
    assert "title, body_md differ" in done.err or "body_md, title differ" in done.err
    assert "words" not in done.err
    assert draft.exists()
    assert everything(place)[0]["title"] == "once"


def test_numbers_go_on_per_session_across_projects_and_after_deletion(place: Place) -> None:
    assert place.log(project="one") == f"{SESSION}:1"
    assert place.log(project="two") == f"{SESSION}:2"
    place.ok("delete", f"{SESSION}:2", "--reason", "test", "--yes")
    assert place.log(project="one") == f"{SESSION}:3"


def test_what_is_secret_never_reaches_the_disk(place: Place) -> None:
    """Values, keys, unknown fields, ids; and the audit stands in the same store."""
    place.ok(
        *BASE,
        given=json.dumps(
            {"title": TOKEN, "body_md": f"x {TOKEN}", "tags": [TOKEN], "extra": {TOKEN: [TOKEN]}, "model": TOKEN}
        ),
    )
    shown = place.ok("show", f"{SESSION}:1").json()
    assert TOKEN not in json.dumps(shown)
    for path in place.home.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes()
    for one in shown["redactions"]:
        assert set(one) == {"field", "type", "rule", "start", "end", "placeholder"}
    (body,) = [one for one in shown["redactions"] if one["field"] == "body_md"]
    assert shown["body_md"][body["start"] : body["end"]] == body["placeholder"]


def test_json_tells_id_seq_digest_and_redactions(place: Place) -> None:
    answer = place.ok(*BASE, "--json", given=json.dumps({"title": "t", "body_md": f"x {TOKEN}"})).json()
    assert answer["id"] == f"{SESSION}:1"
    assert (answer["seq"], answer["redactions"], answer["created"]) == (1, 1, True)
    assert len(answer["digest"]) == 64
    assert answer["session_source"] == "flag"


@pytest.mark.parametrize(
    ("env", "flag", "session", "source"),
    [
        ({"CODEX_THREAD_ID": "c"}, [], "c", "CODEX_THREAD_ID"),
        ({"CODEX_THREAD_ID": "c", "QIJU_SESSION_ID": "q"}, [], "q", "QIJU_SESSION_ID"),
        ({"QIJU_SESSION_ID": "q"}, ["--session-id", "f"], "f", "flag"),
    ],
)
def test_the_session_comes_from_the_first_that_knows(
    place: Place, env: dict[str, str], flag: list[str], session: str, source: str
) -> None:
    words = ["log", "--source", "agent", "--project", "p", "--json", *flag]
    answer = place.ok(*words, given='{"title": "t", "body_md": "b"}', env=env).json()
    assert (answer["id"], answer["session_source"]) == (f"{session}:1", source)


@pytest.mark.parametrize("ts", ["March 1", "2026-03-01T25:00:00Z", 5])
def test_a_ts_that_is_no_time_becomes_now_and_is_said(place: Place, ts: object) -> None:
    done = place.run(*BASE, given=json.dumps({"title": "t", "body_md": "b", "ts": ts}))
    assert done.code == 0
    assert "ts was not" in done.err
    assert str(everything(place)[0]["ts"]).startswith("20")


def test_ts_is_kept_as_written(place: Place) -> None:
    place.log(ts="2026-03-01T10:00:00.1234567+02:00")
    assert everything(place)[0]["ts"] == "2026-03-01T10:00:00.1234567+02:00"


def test_a_bare_directory_has_no_identity(place: Place) -> None:
    bare = place.folder / "bare"
    bare.mkdir()
    done = place.run("log", "--source", "agent", given='{"title": "t", "body_md": "b"}', cwd=bare)
    assert done.code == 4
    assert "--project" in done.err
    assert not place.home.exists()


def test_a_project_against_the_marker_is_refused_before_anything_is_created(place: Place) -> None:
    place.ok("init", "--host", "claude", "--project", "real")
    before = sorted(place.folder.rglob("*"))
    done = place.run("log", "--source", "agent", "--project", "other", given='{"title": "t", "body_md": "b"}')
    assert done.code == 4
    assert "real" in done.err
    assert sorted(place.folder.rglob("*")) == before


def test_two_roots_of_one_name_are_two_projects_and_told(place: Place) -> None:
    twin = place.folder / "elsewhere" / "proj"
    make_repository(twin)
    place.log(project="")
    done = place.run("log", "--source", "agent", given='{"title": "t", "body_md": "b"}', cwd=twin)
    assert done.code == 0
    assert "proj-2" in done.err
    assert place.ok("projects").out == "proj\nproj-2\n"
    assert len(place.ok("search", cwd=twin).json()) == 1


def test_cleanup_deletes_the_draft_only_after_success(place: Place) -> None:
    draft = Path(place.ok("temp-entry").out.strip())
    draft.write_text('{"title": "t", "body_md": "b"}', encoding="utf-8")
    place.ok(*BASE, "--cleanup", "--body", str(draft))
    assert not draft.exists()
    own = place.folder / "own.json"
    own.write_text('{"title": "t", "body_md": "b"}', encoding="utf-8")
    done = place.run(*BASE, "--cleanup", "--body", str(own))
    assert (done.code, own.exists()) == (0, True)
    assert "--cleanup skipped" in done.err


def test_an_empty_record_is_stored_with_a_warning(place: Place) -> None:
    done = place.run(*BASE, given="{}")
    assert done.code == 0
    assert "neither a title nor a body" in done.err


def test_eight_processes_log_at_once(place: Place) -> None:
    """Every acknowledged record is there, and no number is given twice."""
    place.log()
    runs = []
    for number in range(8):
        body = place.folder / f"{number}.json"
        body.write_text(json.dumps({"title": f"c{number}", "body_md": "b"}), encoding="utf-8")
        runs.append(place.start(*BASE, "--body", str(body)))
    assert [run.wait(60) for run in runs] == [0] * 8
    assert sorted(str(row["id"]) for row in everything(place)) == [f"{SESSION}:{n}" for n in range(1, 10)]


def test_a_missing_option_is_told_in_one_line(place: Place) -> None:
    """The choices came with escaped line breaks between them."""
    done = place.run("log", given="{}")
    assert done.code == 2
    assert done.err.splitlines()[0].endswith("Missing option '--source'. Choose from: manual, agent")


def test_a_text_under_the_wrong_key_is_told(place: Place) -> None:
    done = place.run(*BASE, given='{"body": "what was decided"}')
    assert done.code == 0
    assert "stands under body" in done.err
