"""Session, agent and project: which place answers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from qiju import hosts
from qiju.errors import MarkerConflict, NoProject, UsageError
from qiju.place import (
    AGENT_MARKS,
    SESSION_VARIABLES,
    Marker,
    Root,
    agent,
    is_uuid,
    resolve_project,
    session,
    write_marker,
)

UUID = "22222222-2222-4222-8222-222222222222"


# --- sessions --------------------------------------------------------------------------------------------------------


def test_sessions_are_asked_for_in_order() -> None:
    env = {name: name.lower() for name in SESSION_VARIABLES}
    assert session("given", env) == ("given", "flag")
    for name in SESSION_VARIABLES:
        assert session(None, env) == (name.lower(), name)
        env[name] = "  "  # blank is as good as unset
    identity, source = session(None, env)
    assert is_uuid(identity)
    assert source == "generated"
    assert session(None, env).id != identity
    assert session(None, {}, lambda: "fresh") == ("fresh", "generated")


@pytest.mark.parametrize("text", [f" {UUID}", f"{UUID}\n", f"\t{UUID}\r\n"])
def test_outer_white_space_is_trimmed(text: str) -> None:
    assert session(None, {"QIJU_SESSION_ID": text}).id == UUID
    assert session(text, {}).id == UUID


@pytest.mark.parametrize(
    "text",
    [
        f"{UUID}\n{UUID}",
        "a b",
        "a:1",
        "a\tb",
        "a\x00b",
        "a\x1b[0mb",
        "a\u200bb",
        "a\u202eb",
        "-x",
        "x" * 201,
        "a\udcffb",
    ],
)
def test_what_could_not_be_half_of_an_id_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="CODEX_THREAD_ID"):
        session(None, {"CODEX_THREAD_ID": text})
    with pytest.raises(UsageError, match="--session-id"):
        session(text, {})


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_a_blank_flag_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--session-id"):
        session(text, {"QIJU_SESSION_ID": UUID})


# --- agents ----------------------------------------------------------------------------------------------------------


def test_agents_are_asked_for_in_order() -> None:
    env = {"QIJU_AGENT": "variable", "CLAUDECODE": "1"}
    marker = Marker("p", default_agent="kiro")
    assert agent("flag", env, marker, written="body", configured="c") == "flag"
    assert agent(None, env, marker, written="body", configured="c") == "variable"
    del env["QIJU_AGENT"]
    assert agent(None, env, marker, written="body", configured="c") == "body"
    assert agent(None, env, marker, written=" ", configured="c") == "claude"
    assert agent(None, {}, marker, configured="c") == "kiro"
    assert agent(None, {"CLAUDECODE": "", "QIJU_AGENT": ""}, Marker("p"), configured="c") == "c"
    assert agent(None, {}, None) == "unknown"


@pytest.mark.parametrize(("variable", "name"), AGENT_MARKS)
def test_every_mark_names_the_host_that_the_host_table_gives_it(variable: str, name: str) -> None:
    host = hosts.find(name)
    assert host is not None
    assert variable in host.marks
    assert agent(None, {variable: "1"}, None) == name


@pytest.mark.parametrize("text", ["", " ", "a\nb", "a\x1b]0;x\x07", "x" * 201])
def test_an_agent_s_name_is_one_printable_line(text: str) -> None:
    with pytest.raises(UsageError, match="--agent"):
        agent(text, {}, None)


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(UsageError, match="QIJU_AGENT"):
        agent(None, {"QIJU_AGENT": "a\nb"}, None)


# --- projects --------------------------------------------------------------------------------------------------------


def marked(tmp_path: Path, name: str = "demo") -> Root:
    write_marker(tmp_path, Marker(name, UUID))
    return Root(tmp_path, "marker")


def test_the_marker_says_the_project(tmp_path: Path) -> None:
    found = resolve_project(None, marked(tmp_path))
    assert found[:4] == ("demo", UUID, tmp_path, "marker")
    assert found.marker is not None
    assert found.marker.project == "demo"


def test_a_flag_may_repeat_the_marker_in_another_spelling(tmp_path: Path) -> None:
    found = resolve_project("De\u200bMO", marked(tmp_path))
    assert found[:4] == ("demo", UUID, tmp_path, "flag")


@pytest.mark.parametrize("name", ["other", "demo-2", "de mo"])
def test_a_flag_against_the_marker_is_refused_and_nothing_is_made(tmp_path: Path, name: str) -> None:
    root = marked(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(MarkerConflict, match="demo"):
        resolve_project(name, root)
    assert sorted(tmp_path.rglob("*")) == before


def test_reading_may_name_any_project(tmp_path: Path) -> None:
    found = resolve_project("other", marked(tmp_path), reading=True)
    assert found == ("other", None, None, "flag", None)


def test_a_variable_s_root_has_its_marker_s_project_or_its_own_name(tmp_path: Path) -> None:
    assert resolve_project(None, Root(tmp_path / "Web Shop", "env")).slug.startswith("web-shop-")
    assert resolve_project(None, Root(marked(tmp_path).path, "env"))[:4] == ("demo", UUID, tmp_path, "marker")


@pytest.mark.parametrize(("folder", "slug"), [("Demo", "demo"), ("demo.git", "demo"), ("cafe\u0301", "café")])
def test_a_repository_without_a_marker_goes_by_its_folder_s_name(tmp_path: Path, folder: str, slug: str) -> None:
    root = Root(tmp_path / folder, "git")
    assert resolve_project(None, root) == (slug, None, root.path, "git", None)


def test_a_file_system_s_root_still_has_a_name() -> None:
    assert resolve_project(None, Root(Path(Path.cwd().anchor), "git")).slug == "root"


def test_a_bare_directory_has_no_project_but_a_flag_works_anywhere(tmp_path: Path) -> None:
    root = Root(tmp_path, "bare")
    with pytest.raises(NoProject) as writing:
        resolve_project(None, root)
    assert "qiju init" in writing.value.hint
    assert "--project" in writing.value.hint
    with pytest.raises(NoProject) as reading:
        resolve_project(None, root, reading=True)
    assert "--scope all" in reading.value.hint
    assert resolve_project("demo", root) == ("demo", None, None, "flag", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "  ", "\u200b"])
def test_a_blank_project_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--project"):
        resolve_project(name, Root(tmp_path, "git"))
