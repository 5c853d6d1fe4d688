"""The host table: names, detection, and that nothing else in the code knows a host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import qiju
from qiju import hosts
from qiju.errors import UsageError
from qiju.install import hookfile, reminder
from qiju.place import AGENT_MARKS, SESSION_VARIABLES

PACKAGE = Path(qiju.__file__).parent


def test_every_name_and_alias_is_one_host_only() -> None:
    words = [word for host in hosts.HOSTS for word in (host.name, *host.aliases)]
    assert len(words) == len(set(words))
    assert all(hosts.find(word.upper()) is not None for word in words)


def test_lists_are_read_in_the_tables_order_without_repeats() -> None:
    assert hosts.parse("kiro, claude-code,claude") == ("claude", "kiro")
    assert hosts.parse("all") == hosts.parse(None) == hosts.parse("claude,all") == hosts.NAMES
    with pytest.raises(UsageError, match="nope"):
        hosts.parse("claude,nope")


@pytest.mark.parametrize("host", hosts.HOSTS, ids=lambda host: host.name)
def test_each_host_is_recognised_by_each_of_its_marks(host: hosts.Host, tmp_path: Path) -> None:
    for mark in host.marks:
        name, _, value = mark.partition("=")
        assert hosts.detect({name: value or "1"}, None, tmp_path).names == (host.name,)


def test_detection_asks_variables_then_the_project_then_the_home_then_the_shared_folder(tmp_path: Path) -> None:
    project, home = tmp_path / "p", tmp_path / "h"
    project.mkdir()
    home.mkdir()
    assert hosts.detect({}, project, home).names == (hosts.FALLBACK,)
    (home / ".kiro").mkdir()
    assert hosts.detect({}, project, home).names == ("kiro",)
    (project / ".cursor").mkdir()
    (project / ".claude").mkdir()
    assert hosts.detect({}, project, home).names == ("claude", "cursor")
    assert hosts.detect({"CODEX_THREAD_ID": "x"}, project, home).names == ("codex",)
    assert hosts.detect({"CODEX_THREAD_ID": "x", "QIJU_AGENT": "Claude-Code"}, project, home).names == ("claude",)
    assert hosts.detect({"QIJU_AGENT": "somebody"}, project, home).names == ("claude", "cursor")


def test_two_running_hosts_are_not_guessed_between(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="claude, codex"):
        hosts.detect({"CLAUDECODE": "1", "CODEX_THREAD_ID": "x"}, None, tmp_path)


def test_a_hosts_home_moves_with_the_variable_that_really_moves_it(tmp_path: Path) -> None:
    claude, codex = hosts.row("claude"), hosts.row("codex")
    env = {"CLAUDE_CONFIG_DIR": "~/conf", "CODEX_HOME": str(tmp_path / "cx")}
    assert hosts.skills_folder(claude, None, env, tmp_path) == tmp_path / "conf" / "skills"
    assert hosts.skills_folder(codex, None, env, tmp_path) == tmp_path / ".agents" / "skills"
    assert codex.hooks is not None
    assert hosts.user_path(codex, codex.hooks.user, env, tmp_path) == tmp_path / "cx" / "hooks.json"


def test_every_hook_row_names_a_layout_an_answer_and_known_events() -> None:
    for host in hosts.HOSTS:
        if host.hooks:
            assert host.hooks.layout in hookfile.LAYOUTS
            assert host.hooks.answer in reminder.ANSWERS
            assert all(event in reminder.REMINDERS for event, _ in host.hooks.events)


def test_the_place_of_a_call_and_the_table_agree_on_variables() -> None:
    """`qiju.place` may not import the table, so that this keeps the two in step."""
    marks = {mark.partition("=")[0] for host in hosts.HOSTS for mark in host.marks}
    assert {variable for variable, _ in AGENT_MARKS} <= marks
    assert all(hosts.find(name) for _, name in AGENT_MARKS)
    assert {host.session_variable for host in hosts.HOSTS if host.session_variable} <= set(SESSION_VARIABLES)


def test_no_host_is_named_in_a_condition_outside_the_table() -> None:
    names = "|".join(
        sorted({word for host in hosts.HOSTS for word in (host.name, *host.aliases)} - {"agents", "shared"})
    )
    condition = re.compile(rf"""(==|!=|\bin\b)[^#\n]*["']({names})["']""")
    for path in [*(PACKAGE / "install").glob("*.py"), PACKAGE / "registry.py", PACKAGE / "skills" / "__init__.py"]:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not condition.search(line), f"{path.name}: {line}"
