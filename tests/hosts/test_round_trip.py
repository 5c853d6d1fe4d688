"""`init` then `uninstall` gives back every byte, and what somebody else wrote is never lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qiju import hosts, place, skills
from tests.hosts.conftest import Bench, make_repository, tree


def foreign_files(bench: Bench) -> None:
    (bench.root / "CLAUDE.md").write_bytes(b"my rules\r\nno newline at end")
    (bench.root / "AGENTS.md").write_bytes(b"theirs\n")
    (bench.root / ".mcp.json").write_bytes(b'{"a":1}')
    (bench.root / ".claude" / "skills" / "mine").mkdir(parents=True)
    (bench.root / ".claude" / "skills" / "mine" / "SKILL.md").write_bytes(b"mine")
    (bench.root / ".claude" / "settings.local.json").write_bytes(b'{\r\n\t"permissions": {"allow": []}\r\n}')
    (bench.root / ".cursor").mkdir()
    (bench.root / ".cursor" / "hooks.json").write_bytes(
        b'\xef\xbb\xbf{"version":1,"hooks":{"stop":[{"command":"x"}]}}\n'
    )
    (bench.root / ".git" / "info" / "exclude").write_bytes(b"*.o")
    (bench.user_home / ".claude").mkdir()
    (bench.user_home / ".claude" / "settings.json").write_bytes(b'{\n    "model": "x"\n}\n')
    (bench.user_home / ".agents" / "skills").mkdir(parents=True)


@pytest.mark.parametrize("hooks", [False, True])
@pytest.mark.parametrize("prepared", [False, True])
def test_init_of_all_hosts_and_uninstall_leave_project_and_home_byte_identical(
    bench: Bench, hooks: bool, prepared: bool
) -> None:
    """At both levels, twice over, with an update between: nothing but the store remembers it."""
    if prepared:
        foreign_files(bench)
    before = tree(bench.root, bench.user_home)
    for _ in range(2):
        assert not bench.init(hooks=hooks).failed
        assert not bench.init(where=bench.user, hooks=hooks).failed
    bench.update()
    assert tree(bench.root, bench.user_home) != before
    assert not bench.uninstall(user_level=True).failed
    assert tree(bench.root, bench.user_home) == before


def test_every_host_gets_each_skill_and_hosts_of_one_folder_share_a_copy(bench: Bench) -> None:
    """Codex and the shared row name one folder: one file, both as owners, removed with the last of them."""
    bench.init()
    for host in hosts.HOSTS:
        for name in skills.NAMES:
            assert bench.skill(host.name, name).read_bytes() == skills.installed(name)
    assert bench.skill("codex") == bench.skill("agents")
    bench.uninstall("codex")
    assert bench.skill("agents").exists()
    bench.uninstall("agents")
    assert not bench.skill("agents").exists()
    assert bench.skill("claude").exists()


def test_uninstall_of_some_hosts_keeps_the_marker_for_the_others(bench: Bench) -> None:
    bench.init("claude,kiro")
    bench.uninstall("kiro")
    marker = place.read_marker(bench.root)
    assert marker is not None
    assert marker.enabled_agents == ("claude",)
    assert ".qiju/" in (bench.root / ".git/info/exclude").read_text(encoding="utf-8")


def test_a_second_init_changes_nothing(bench: Bench) -> None:
    bench.init(hooks=True)
    before = tree(bench.root, bench.user_home)
    report = bench.init(hooks=True)
    assert [each["changes"] for each in report.value] == [[]] * len(hosts.NAMES)
    assert report.warnings == [
        f"{bench.root / folder}: {name} has no file for session hooks"
        for name, folder in (("kiro", ".kiro/skills"), ("agents", ".agents/skills"))
    ]
    assert tree(bench.root, bench.user_home) == before


@pytest.mark.parametrize("hooks", [False, True])
def test_dry_run_lists_exactly_what_a_real_run_does(bench: Bench, hooks: bool) -> None:
    """For init and uninstall: the same actions on the same paths, and nothing is written."""
    foreign_files(bench)
    before = tree(bench.root, bench.user_home)
    planned = bench.init(hooks=hooks, dry_run=True).value
    assert tree(bench.root, bench.user_home) == before
    real = bench.init(hooks=hooks).value
    assert [each["changes"] for each in planned] == [each["changes"] for each in real]
    installed = tree(bench.root, bench.user_home)
    planned_removal = bench.uninstall(dry_run=True).value
    assert tree(bench.root, bench.user_home) == installed
    removal = bench.uninstall().value
    listed = [(each["action"], each["path"]) for each in removal["actions"]]
    assert [(each["action"], each["path"]) for each in planned_removal["actions"]] == listed
    gone = {path for path in installed if path not in tree(bench.root, bench.user_home)}
    assert gone == {path for action, path in listed if action.startswith("remove")}


def test_an_edited_skill_survives_init_update_and_uninstall(bench: Bench) -> None:
    """init keeps it as .bak and says so; update names it; --force keeps it too; uninstall leaves it."""
    bench.init("claude")
    path = bench.skill()
    edited = path.read_bytes() + b"# my local rule\n"
    path.write_bytes(edited)
    report = bench.update()
    assert path.read_bytes() == edited
    assert any(str(path) in said and "edited" in said for said in report.warnings)
    planned = bench.init("claude", dry_run=True)
    assert planned.value[0]["changes"][0]["backup"] == f"{path}.bak"
    assert path.read_bytes() == edited
    report = bench.init("claude")
    assert path.with_name("SKILL.md.bak").read_bytes() == edited
    assert path.read_bytes() == skills.installed("qiju-log")
    assert any("kept as" in said for said in report.warnings)
    path.write_bytes(edited + b"two\n")
    bench.update(force=True)
    assert path.with_name("SKILL.md.bak2").read_bytes() == edited + b"two\n"
    path.write_bytes(edited)
    bench.init("claude")
    assert not path.with_name("SKILL.md.bak3").exists(), "the same bytes are kept once"
    path.write_bytes(edited)
    report = bench.uninstall()
    assert path.read_bytes() == edited
    kept = {each["path"] for each in report.value["preserved"]}
    assert {str(path), f"{path}.bak", f"{path}.bak2"} <= kept


def test_a_foreign_file_at_a_skills_place_is_left_and_named(bench: Bench) -> None:
    path = bench.skill()
    path.parent.mkdir(parents=True)
    path.write_text("something else", encoding="utf-8")
    report = bench.init("claude")
    assert path.read_text(encoding="utf-8") == "something else"
    assert report.value[0]["states"][str(path)] == "foreign"
    bench.uninstall()
    assert path.read_text(encoding="utf-8") == "something else"


@pytest.mark.parametrize("change", [lambda b: b.replace(b"\n", b"\r\n"), lambda b: b"\xef\xbb\xbf" + b])
def test_line_ends_and_byte_order_mark_of_a_checkout_are_not_an_edit(bench: Bench, change: object) -> None:
    """Regression for S03: an autocrlf checkout neither blocks update nor keeps uninstall from its own files."""
    bench.init("claude")
    for name in skills.NAMES:
        path = bench.skill(name=name)
        path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    assert [each["status"] for each in bench.update().value["projects"]] == ["unchanged"]
    assert not bench.init("claude").value[0]["changes"]
    bench.uninstall()
    assert not (bench.root / ".claude").exists()


def test_records_and_drafts_below_the_marker_folder_stay(bench: Bench) -> None:
    """Regression for S08: what holds records is preserved and named; an empty leftover of the predecessor goes."""
    bench.init("claude")
    folder = bench.root / ".qiju"
    (folder / "short.jsonl").write_text('{"id": "a:1"}\n', encoding="utf-8")
    (folder / "tmp").mkdir()
    (folder / "tmp" / ".gitignore").write_text("*\n", encoding="utf-8")
    (folder / "tmp" / "draft.json").write_text("{}", encoding="utf-8")
    report = bench.uninstall()
    kept = {each["path"] for each in report.value["preserved"]}
    assert {str(folder / "short.jsonl"), str(folder / "tmp" / "draft.json")} <= kept
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == [
        ".gitignore",
        "draft.json",
        "short.jsonl",
    ]
    (folder / "short.jsonl").write_bytes(b"")
    (folder / "tmp" / "draft.json").unlink()
    bench.init("claude")
    bench.uninstall()
    assert not folder.exists()


def test_settings_in_a_marker_are_kept_when_it_goes(bench: Bench) -> None:
    bench.init("claude")
    marker = place.read_marker(bench.root)
    assert marker is not None
    place.write_marker(bench.root, marker._replace(settings={"lock_wait": 3}))
    bench.uninstall()
    kept = json.loads((bench.root / ".qiju" / "config.json.bak").read_text(encoding="utf-8"))
    assert kept["settings"] == {"lock_wait": 3}


def test_the_line_in_gits_exclude_file_serves_all_roots_of_a_repository(bench: Bench) -> None:
    """A nested project shares the line; it goes with the last of them and only where Qiju put it."""
    inner = bench.root / "pkg" / "a"
    inner.mkdir(parents=True)
    exclude = bench.root / ".git" / "info" / "exclude"
    bench.init("claude")
    bench.init("claude", where=bench.project._replace(root=inner), project="inner")
    assert exclude.read_text(encoding="utf-8").count(".qiju/") == 1
    bench.uninstall()
    assert ".qiju/" in exclude.read_text(encoding="utf-8")
    bench.uninstall(roots=[inner])
    assert not exclude.exists()


def test_a_line_of_the_users_own_stays(bench: Bench) -> None:
    exclude = bench.root / ".git" / "info" / "exclude"
    exclude.write_bytes(b"# mine\n.qiju\n")
    bench.init("claude")
    bench.uninstall()
    assert exclude.read_bytes() == b"# mine\n.qiju\n"


def test_a_linked_worktree_uses_the_common_exclude_file(bench: Bench, tmp_path: Path) -> None:
    worktree = tmp_path.resolve() / "tree"
    own = bench.root / ".git" / "worktrees" / "tree"
    own.mkdir(parents=True)
    worktree.mkdir()
    (own / "HEAD").write_text("ref: refs/heads/x\n", encoding="utf-8")
    (own / "commondir").write_text("../..\n", encoding="utf-8")
    (worktree / ".git").write_text(f"gitdir: {own}\n", encoding="utf-8")
    bench.init("claude", where=bench.project._replace(root=worktree), project="tree")
    assert ".qiju/" in (bench.root / ".git" / "info" / "exclude").read_text(encoding="utf-8")


def test_without_git_there_is_simply_no_exclude_file(bench: Bench, tmp_path: Path) -> None:
    bare = tmp_path.resolve() / "bare"
    bare.mkdir()
    bench.init("claude", where=bench.project._replace(root=bare))
    assert place.read_marker(bare) is not None
    bench.uninstall(roots=[bare])
    assert not list(bare.iterdir())


def test_two_folders_of_one_name_are_two_projects(bench: Bench, tmp_path: Path) -> None:
    """The second is told its name; --project joins on purpose; a moved folder keeps its identity."""
    other = tmp_path.resolve() / "deep" / "my project"
    other.mkdir(parents=True)
    make_repository(other)
    first = bench.init("claude").value[0]
    second = bench.init("claude", where=bench.project._replace(root=other))
    assert second.value[0]["project"] != first["project"]
    assert any("another folder has the name" in said for said in second.value[0]["messages"])
    moved = tmp_path.resolve() / "moved"
    other.rename(moved)
    again = bench.init("claude", where=bench.project._replace(root=moved)).value[0]
    assert (again["project"], again["uuid"]) == (second.value[0]["project"], second.value[0]["uuid"])
