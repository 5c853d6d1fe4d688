"""What the predecessor left behind, and how it is taken away.

A marked block leaves its file with every other byte as it was. A generated file or skill goes only while it still looks
like the predecessor's. What only resembles it stays and is named.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from qiju import hosts, skills
from qiju.hosts import Leftover
from qiju.install.plan import Note, Plan, Step, Unreadable, look
from qiju.install.skillfiles import Place, belongs
from qiju.skills import SkillState

# The two forms of block that its releases wrote: how the first line begins, and how the last.
BLOCKS: tuple[tuple[bytes, bytes], ...] = (
    (b"<!-- qiju:start -->", b"<!-- qiju:end -->"),
    (b"====qiju start ====", b"====qiju stop line:"),
)

# Helper files that it kept in its own home, below `~/.qiju`; records are never among them.
HOME_FOLDERS = ("adapters", "agents", "logs")
HOME_FILES = ("query_log.jsonl", ".qiju.lock")
LAUNCH_AGENTS = "Library/LaunchAgents"


def plan_leftovers(place: Place, names: Collection[str]) -> Plan:
    """Remove the predecessor's leftovers of the named hosts at one level."""
    level = "user" if place.root is None else "project"
    plan = Plan()
    for name in names:
        host = hosts.row(name)
        for leftover in host.leftovers:
            if leftover.level != level:
                continue
            if place.root is None:
                path = hosts.user_path(host, leftover.path, place.env, place.user_home)
            else:
                path = place.root / leftover.path
            one = _plan_one(path, leftover, place)
            if one:
                plan.merge(one)
    return plan


def _plan_one(path: Path, leftover: Leftover, place: Place) -> Plan | None:
    target = path / skills.FILE_NAME if leftover.form == "skill" else path
    found = look(target)
    if found is None or isinstance(found, Unreadable) or not belongs(target, place):
        return None
    plan = Plan()
    if leftover.form == "block":
        rest = without_blocks(found)
        if rest == found:
            return None
        after = rest if rest.strip() else None
        plan.steps.append(Step(target, "leftover", found, after, "remove the predecessor's block"))
    elif leftover.form == "file":
        if leftover.mark.encode() in found:
            plan.steps.append(Step(target, "leftover", found, None, "remove the predecessor's file"))
        else:
            plan.notes.append(Note(target, "leftover", "foreign", "it does not look like the predecessor's; it stays"))
    elif skills.judge_retired(found) is SkillState.STALE:
        plan.steps.append(Step(target, "leftover", found, None, "remove the predecessor's skill"))
        plan.made.append(target.parent)
    else:
        plan.notes.append(Note(target, "leftover", "modified", "somebody edited it; it is left as it is"))
    return plan


def without_blocks(content: bytes) -> bytes:
    """`content` without the predecessor's blocks, whole lines each. A block without an end stays."""
    lines = content.splitlines(keepends=True)
    for first, last in BLOCKS:
        while True:
            start = next((i for i, line in enumerate(lines) if line.strip().startswith(first)), None)
            if start is None:
                break
            end = next((i for i in range(start, len(lines)) if lines[i].strip().startswith(last)), None)
            if end is None:
                break
            del lines[start : end + 1]
    return b"".join(lines)


def plan_engine(user_home: Path, bin_folder: Path, install_root: Path, protected: Collection[Path]) -> Plan:
    """Remove the predecessor's program: its shim, its engine folder, its launchd jobs and its helper files.

    `protected` lists folders that must never go, such as the store's home and the user's.
    """
    plan = Plan()
    shim = bin_folder / "qiju"
    found = look(shim)
    if isinstance(found, bytes) and (str(install_root).encode() in found or b".venv/bin/qiju" in found):
        plan.steps.append(Step(shim, "leftover", found, None, "remove the predecessor's command"))
    if _is_engine(install_root):
        if any(install_root == each or install_root in each.parents for each in protected):
            plan.notes.append(Note(install_root, "leftover", "protected", "it holds the store or your home; it stays"))
        else:
            plan.steps.append(Step(install_root, "tree", None, None, "remove the predecessor's engine"))
    old_home = user_home / ".qiju"
    for name in HOME_FOLDERS:
        folder = old_home / name
        if folder.is_dir() and not folder.is_symlink() and folder not in protected:
            plan.steps.append(Step(folder, "tree", None, None, "remove the predecessor's templates"))
    for name in HOME_FILES:
        content = look(old_home / name)
        if isinstance(content, bytes):
            plan.steps.append(Step(old_home / name, "leftover", content, None, "remove the predecessor's helper file"))
    jobs = user_home / LAUNCH_AGENTS
    for path in sorted(jobs.glob("*.qiju*.plist")) if jobs.is_dir() else ():
        content = look(path)
        if isinstance(content, bytes) and b"qiju" in content:
            plan.steps.append(Step(path, "leftover", content, None, "remove the predecessor's launchd job"))
    return plan


def _is_engine(folder: Path) -> bool:
    """A folder with a program in it, not one that merely has the name."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return (folder / "pyproject.toml").is_file() or (folder / ".venv" / "bin" / "qiju").exists()
