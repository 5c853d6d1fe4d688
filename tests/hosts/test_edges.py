"""Links, shared homes, leftovers of the predecessor, absent disks: what an installer meets on real machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qiju import hosts, place, skills
from qiju.errors import MarkerConflict, Refused, StorageFailed
from qiju.files import FileReplacement
from qiju.install import leftovers, plan, refresh, scan
from qiju.registry import Registry
from tests.hosts.conftest import Bench, make_repository, tree

# --- links -----------------------------------------------------------------------------------------------------------


def test_a_dangling_link_is_named_and_never_followed(bench: Bench, tmp_path: Path) -> None:
    """Regression for S09: the other skills are installed, the link stays, nothing appears where it points."""
    nowhere = tmp_path / "nowhere"
    folder = bench.root / ".claude" / "skills"
    folder.mkdir(parents=True)
    (folder / "qiju-log").symlink_to(nowhere)
    report = bench.init("claude")
    assert any("dangling" in said for said in report.warnings)
    assert report.value[0]["states"][str(folder / "qiju-log" / "SKILL.md")] == "blocked"
    assert bench.skill(name="qiju-search").exists()
    bench.uninstall()
    assert (folder / "qiju-log").is_symlink()
    assert not nowhere.exists()
    assert not bench.skill(name="qiju-search").exists()


def test_a_linked_skill_file_is_left_to_its_owner(bench: Bench, tmp_path: Path) -> None:
    mine = tmp_path / "mine.md"
    mine.write_text("mine", encoding="utf-8")
    path = bench.skill()
    path.parent.mkdir(parents=True)
    path.symlink_to(mine)
    bench.init("claude")
    bench.update(force=True)
    bench.uninstall()
    assert path.is_symlink()
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_linked_skills_folder_is_written_through_and_cleaned_again(bench: Bench, tmp_path: Path) -> None:
    """Dotfiles often keep the folder elsewhere; what Qiju wrote there it removes, and no more."""
    elsewhere = tmp_path.resolve() / "dotfiles"
    (elsewhere / "skills" / "other").mkdir(parents=True)
    (bench.root / ".claude").symlink_to(elsewhere)
    before = tree(bench.root, elsewhere)
    bench.init("claude", hooks=True)
    assert (elsewhere / "skills" / "qiju-log" / "SKILL.md").exists()
    bench.uninstall()
    assert tree(bench.root, elsewhere) == before


def test_a_link_out_of_the_project_does_not_lead_uninstall_to_the_users_own_skills(bench: Bench) -> None:
    """The project's `.claude` is the user's: what was installed for the user stays."""
    bench.init("claude", where=bench.user)
    (bench.root / ".claude").symlink_to(bench.user_home / ".claude")
    bench.uninstall("claude")
    assert bench.skill(where=bench.user).exists()


def test_two_hosts_whose_folders_are_one_by_a_link_share_a_copy(bench: Bench) -> None:
    (bench.root / ".agents").mkdir()
    (bench.root / ".claude").symlink_to(bench.root / ".agents")
    bench.init("claude,codex")
    report = bench.uninstall("codex")
    assert bench.skill("claude").exists()
    assert any("reads this copy" in each["reason"] for each in report.value["preserved"])
    bench.uninstall("claude")
    assert not bench.skill("claude").exists()


def test_a_linked_marker_folder_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (bench.root / ".qiju").symlink_to(tmp_path / "outside")
    with pytest.raises(Refused, match="symbolic link"):
        bench.init("claude")
    assert not list((tmp_path / "outside").iterdir())


# --- homes -----------------------------------------------------------------------------------------------------------


def test_user_and_project_level_stay_apart_when_the_project_is_the_home(bench: Bench) -> None:
    """In `~`, both levels name the same files: each level removes only what was installed for it."""
    home = bench.project._replace(root=bench.user_home)
    bench.init("claude", where=bench.user)
    bench.uninstall(roots=[bench.user_home])
    assert bench.skill(where=bench.user).exists()
    bench.uninstall(roots=[], user_level=True)
    bench.init("claude", where=home, project="me")
    bench.uninstall(roots=[], user_level=True)
    assert bench.skill(where=bench.user).exists()
    bench.uninstall(roots=[bench.user_home])
    assert not bench.skill(where=bench.user).exists()


def test_a_store_inside_the_project_survives(bench: Bench) -> None:
    """Regression for S05: `.qiju` may be the store itself."""
    (bench.root / ".qiju").mkdir()
    (bench.root / ".qiju" / "qiju.db").write_bytes(b"records")
    bench.init("claude")
    report = bench.uninstall(user_level=True)
    assert (bench.root / ".qiju" / "qiju.db").read_bytes() == b"records"
    assert str(bench.root / ".qiju" / "qiju.db") in [each["path"] for each in report.value["preserved"]]
    assert ".qiju/" in (bench.root / ".git" / "info" / "exclude").read_text(encoding="utf-8")


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_written_does_not_stop_the_others(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is done, the failure is named, no empty folder stays, and the next run finishes the work."""
    target = bench.skill(name="qiju-log")

    class Refusing(FileReplacement):
        def __init__(self, path: Path, *, mode: int = 0o600) -> None:
            if path == target:
                raise StorageFailed(f"cannot write {path}: Read-only file system")
            super().__init__(path, mode=mode)

    with monkeypatch.context() as patch:
        patch.setattr(plan, "FileReplacement", Refusing)
        report = bench.init("claude")
        assert report.failed == [f"cannot write {target}: Read-only file system"]
        with pytest.raises(StorageFailed, match="Read-only"):
            report.raise_failures()
        assert not target.parent.exists()
        assert bench.skill(name="qiju-search").exists()
        assert [each["status"] for each in bench.update().value["projects"]] == ["failed"]
    assert [each["status"] for each in bench.update().value["projects"]] == ["updated"]
    assert target.exists()


def test_a_file_that_changes_between_plan_and_run_is_left_alone(bench: Bench) -> None:
    bench.init("claude")
    path = bench.skill()
    step = plan.Step(path, "skill", b"what the plan saw", b"new", "test")
    applied = plan.apply(plan.Plan(steps=[step]))
    assert "changed while" in str(applied.failures[0].error)
    assert path.read_bytes() == skills.installed("qiju-log")


def test_the_same_change_by_another_process_is_no_failure(bench: Bench) -> None:
    path = bench.root / "file"
    path.write_bytes(b"new")
    applied = plan.apply(plan.Plan(steps=[plan.Step(path, "skill", None, b"new", "test")]))
    assert not applied.failures


# --- identity --------------------------------------------------------------------------------------------------------


def test_project_against_the_marker_is_refused_before_anything_changes(bench: Bench) -> None:
    bench.init("claude", project="one")
    before = tree(bench.root)
    with pytest.raises(MarkerConflict, match=r"'one'.*'two'"):
        bench.init("kiro", project="two")
    assert tree(bench.root) == before


def test_an_explicit_project_joins_the_one_that_exists(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path.resolve() / "other"
    other.mkdir()
    first = bench.init("claude", project="Shared Work").value[0]
    second = bench.init("claude", where=bench.project._replace(root=other), project="Shared Work").value[0]
    assert (second["project"], second["uuid"]) == (first["project"], first["uuid"])
    assert any("exists already" in said for said in second["messages"])


def test_a_marker_of_the_predecessor_keeps_its_words_and_gets_an_identity(bench: Bench) -> None:
    marker = bench.root / ".qiju" / "config.json"
    marker.parent.mkdir()
    old = {"schema_version": 1, "project": "legacy", "enabled_agents": ["claude", "other"], "created_at": "2026-01-01"}
    marker.write_text(json.dumps(old), encoding="utf-8")
    report = bench.update("all", bench.root)
    assert [(each["slug"], each["status"]) for each in report.value["projects"]] == [("legacy", "updated")]
    new = json.loads(marker.read_text(encoding="utf-8"))
    assert place.is_uuid(new["uuid"])
    assert (new["enabled_agents"], new["created_at"]) == (["claude", "other"], "2026-01-01")
    assert [root.uuid for root in Registry(bench.db).roots()] == [new["uuid"]]


# --- update ----------------------------------------------------------------------------------------------------------


def test_update_touches_only_hosts_that_are_both_enabled_and_asked_for(bench: Bench) -> None:
    bench.init("claude,kiro")
    for host in ("claude", "kiro"):
        bench.skill(host).unlink()
    report = bench.update("claude,cursor")
    assert report.value["projects"][0]["hosts"] == ["claude"]
    assert bench.skill("claude").exists()
    assert not bench.skill("kiro").exists()
    assert bench.update("cursor").value["projects"][0]["status"] == "skipped"


def test_update_refreshes_the_users_level_when_no_project_is_known(bench: Bench) -> None:
    bench.init("codex", where=bench.user)
    path = bench.skill("codex", where=bench.user)
    path.unlink()
    report = bench.update()
    assert report.value["projects"] == []
    assert {"host": "codex", "status": "updated"}.items() <= report.value["global_hosts"][0].items()
    assert path.exists()


def test_a_stale_skill_is_replaced_without_a_copy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        current = skills.source
        patch.setattr(skills, "source", lambda name: current(name) + "\nOld words.\n")
        bench.init("claude")
    assert bench.update(dry_run=True).value["projects"][0]["status"] == "updated"
    assert b"Old words." in bench.skill().read_bytes()
    bench.update()
    assert bench.skill().read_bytes() == skills.installed("qiju-log")
    assert not list(bench.skill().parent.glob("*.bak*"))


def test_folders_that_are_gone_leave_the_registry_and_the_others_are_done(bench: Bench, tmp_path: Path) -> None:
    gone = tmp_path.resolve() / "gone"
    gone.mkdir()
    bench.init("claude", where=bench.project._replace(root=gone))
    bench.init("claude")
    (gone / ".qiju" / "config.json").unlink()
    gone.rename(tmp_path / "moved")
    planned = bench.update(dry_run=True).value
    assert planned["pruned"] == [str(gone)]
    assert len(Registry(bench.db).roots()) == 2
    report = bench.update()
    assert {each["path"]: each["status"] for each in report.value["projects"]} == {
        str(gone): "missing",
        str(bench.root): "unchanged",
    }
    assert any(f"{gone} is gone" in said for said in report.warnings)
    assert [root.path for root in Registry(bench.db).roots()] == [str(bench.root)]
    assert not [row for row in Registry(bench.db).rows().values() if row.root == str(gone)]


def test_a_disk_that_is_not_mounted_is_not_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(refresh, "_MOUNT_PARENTS", (tmp_path.as_posix(),))
    assert refresh.on_absent_disk(tmp_path / "disk" / "work" / "p")
    (tmp_path / "disk").mkdir()
    assert not refresh.on_absent_disk(tmp_path / "disk" / "work" / "p")


# --- the predecessor -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "rest"),
    [
        (b"a\r\n<!-- qiju:start -->\r\nx\r\n<!-- qiju:end -->\r\nb", b"a\r\nb"),
        (b"====qiju start ====\nx\n====qiju stop line: 3 ====\nb\n", b"b\n"),
        (b"a\n<!-- qiju:start -->\nno end\n", b"a\n<!-- qiju:start -->\nno end\n"),
        (b"a\n<!-- qiju:end -->\n", b"a\n<!-- qiju:end -->\n"),
        (b"<!-- qiju:start --><!-- qiju:end -->\n<!-- qiju:start -->\n<!-- qiju:end -->\nz", b"z"),
    ],
)
def test_a_marked_block_goes_and_every_other_byte_stays(content: bytes, rest: bytes) -> None:
    assert leftovers.without_blocks(content) == rest


def test_leftovers_go_only_while_they_are_the_predecessors(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.root / "CLAUDE.md").write_bytes(b"mine\n<!-- qiju:start -->\nx\n<!-- qiju:end -->\n")
    (bench.root / "AGENTS.md").write_bytes(b"<!-- qiju:start -->\nx\n<!-- qiju:end -->\n")
    steering = bench.root / ".kiro" / "steering"
    steering.mkdir(parents=True)
    (steering / "qiju.md").write_text("Qiju records", encoding="utf-8")
    rule = bench.root / ".cursor" / "rules" / "qiju.mdc"
    rule.parent.mkdir(parents=True)
    rule.write_text("something of mine", encoding="utf-8")
    old = bench.root / ".claude" / "skills" / "qiju" / "SKILL.md"
    old.parent.mkdir(parents=True)
    old.write_text("---\nname: qiju\n---\nqiju log, and my own words\n", encoding="utf-8")
    report = bench.uninstall()
    assert (bench.root / "CLAUDE.md").read_bytes() == b"mine\n"
    assert not (bench.root / "AGENTS.md").exists()
    assert not (steering / "qiju.md").exists()
    assert rule.exists()
    assert old.exists()
    assert {str(rule), str(old)} <= {each["path"] for each in report.value["preserved"]}


def test_a_project_of_the_predecessor_is_cleaned_to_the_last_folder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its skills are known by digest, its marker copies by their words; which folders it made, nobody knows."""
    before = tree(bench.root)
    text = b"---\nname: qiju-log\n---\nqiju log\n"
    monkeypatch.setattr(skills, "_predecessor", lambda: {"qiju-log": [skills.sha256(text).hexdigest()]})
    bench.skill().parent.mkdir(parents=True)
    bench.skill().write_bytes(text)
    folder = bench.root / ".qiju"
    folder.mkdir()
    marker = {"schema_version": 1, "project": "p", "qiju_home": "/h", "enabled_agents": ["claude"]}
    for name in ("config.json", "config.json.bak.2026-01-01T000000"):
        (folder / name).write_text(json.dumps(marker), encoding="utf-8")
    (folder / "short.jsonl").write_bytes(b"")
    bench.update("all", bench.root)
    assert bench.skill().read_bytes() == skills.installed("qiju-log")
    bench.uninstall()
    assert tree(bench.root) == before


def test_the_predecessors_program_goes_but_nothing_that_only_has_its_name(bench: Bench, tmp_path: Path) -> None:
    bin_folder, engine = tmp_path.resolve() / "bin", bench.user_home / ".qiju" / "qiju"
    bin_folder.mkdir()
    engine.mkdir(parents=True)
    (bench.user_home / ".qiju" / "logs").mkdir()
    (bench.user_home / ".qiju" / "long").mkdir()
    (bin_folder / "qiju").write_text("#!/usr/bin/python3\nfrom qiju.cli import main\n", encoding="utf-8")
    jobs = bench.user_home / leftovers.LAUNCH_AGENTS
    jobs.mkdir(parents=True)
    (jobs / "com.qiju.maintain.plist").write_text("run qiju maintain", encoding="utf-8")
    bench.uninstall(roots=[], user_level=True, engine=(bin_folder, engine))
    assert (bin_folder / "qiju").exists(), "a command that is not the predecessor's shim"
    assert engine.exists(), "a folder without a program in it"
    assert not (bench.user_home / ".qiju" / "logs").exists()
    assert (bench.user_home / ".qiju" / "long").exists()
    assert not list(jobs.iterdir())
    (engine / "pyproject.toml").write_text("", encoding="utf-8")
    (bin_folder / "qiju").write_text(f"exec {engine}/.venv/bin/qiju", encoding="utf-8")
    bench.uninstall(roots=[], user_level=True, engine=(bin_folder, engine))
    assert not engine.exists()
    assert not (bin_folder / "qiju").exists()


def test_an_engine_folder_that_holds_the_home_is_protected(bench: Bench) -> None:
    (bench.user_home / "pyproject.toml").write_text("", encoding="utf-8")
    report = bench.uninstall(roots=[], user_level=True, engine=(bench.root / "bin", bench.user_home))
    assert (bench.user_home / "pyproject.toml").exists()
    assert any("it stays" in each["reason"] for each in report.value["preserved"])


# --- scanning --------------------------------------------------------------------------------------------------------


def test_a_scan_finds_marked_and_predecessor_projects_within_its_depth(tmp_path: Path) -> None:
    wanted = {
        "a/.qiju/config.json": True,
        "b/c/.qiju/short.jsonl": True,
        "d/.kiro/steering/qiju.md": True,
        "e/.claude/skills/qiju-log/SKILL.md": True,
        "f/.agents/skills/qiju/SKILL.md": True,
        "g/.qiju/other": False,
        "node_modules/h/.qiju/config.json": False,
        "1/2/3/4/.qiju/config.json": False,
    }
    for name in wanted:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = {path.relative_to(tmp_path).as_posix() for path in scan.find_projects([tmp_path, tmp_path], depth=3)}
    assert found == {"a", "b/c", "d", "e", "f"}
    assert scan.find_projects([tmp_path / "missing"]) == []


def test_the_scan_starts_where_people_keep_their_work(tmp_path: Path) -> None:
    env = {scan.ROOTS_VARIABLE: str(tmp_path / "x")}
    starts = scan.default_roots(env, tmp_path / "home", tmp_path / "cwd")
    assert starts[:3] == [tmp_path / "x", tmp_path / "cwd", tmp_path / "home" / "Development"]


@pytest.mark.parametrize("host", hosts.HOSTS, ids=lambda host: host.name)
def test_every_hosts_skills_make_a_folder_look_enabled(host: hosts.Host, tmp_path: Path) -> None:
    path = tmp_path / host.project_skills / "qiju-search" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    assert scan.looks_enabled(tmp_path)


def test_a_repository_without_qiju_is_no_project(tmp_path: Path) -> None:
    make_repository(tmp_path)
    assert not scan.looks_enabled(tmp_path)
