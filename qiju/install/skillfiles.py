"""Plan a host's skill files: what to write, what to leave, what to take away.

Hosts that read one folder share one copy: a file is planned once for all of them, its manifest row names them all, and
it goes only when the last of them goes. What lies at a path is judged from the file itself (`qiju.skills`) and from the
manifest's hash; a user's edit is never overwritten or removed without being kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from qiju import hosts, skills
from qiju.install.plan import Note, Plan, Step, Unreadable, backup_name, digest, look, made_for
from qiju.registry import ManifestRow
from qiju.skills import SkillState


class Place(NamedTuple):
    """Where to look: the project's root, or None for the user's level; the environment; the user's home folder."""

    root: Path | None
    env: Mapping[str, str]
    user_home: Path

    @property
    def level(self) -> str:
        """The manifest's word for it: the root's path, or empty for the user's level."""
        return str(self.root) if self.root is not None else ""

    def skills_folder(self, host: hosts.Host) -> Path:
        return hosts.skills_folder(host, self.root, self.env, self.user_home)


class Policy(NamedTuple):
    """What happens to files that are not Qiju's own any more: replace an edited one, or even a foreign one, after
    keeping a copy."""

    replace_modified: bool = False
    replace_foreign: bool = False


@dataclass
class SkillFile:
    """One skill at one path, for all hosts that read it."""

    name: str
    path: Path
    owners: tuple[str, ...]
    found: bytes | Unreadable | None
    state: SkillState | None  # None when something unreadable stands there
    row: ManifestRow | None


@dataclass
class SkillPlan:
    """A plan, and the files it looked at by host."""

    plan: Plan = field(default_factory=Plan)
    files: dict[str, list[SkillFile]] = field(default_factory=dict)


def survey(place: Place, names: Iterable[str], rows: Mapping[str, ManifestRow]) -> list[SkillFile]:
    """The skill files of the named hosts as they are now, each path once."""
    folders: dict[Path, tuple[Path, list[str]]] = {}
    for name in names:
        folder = place.skills_folder(hosts.row(name))
        # A link between two hosts' folders makes them one folder; the first spelling stands for both.
        folders.setdefault(_real(folder), (folder, []))[1].append(name)
    return [
        _skill_file(folder / skill / skills.FILE_NAME, skill, tuple(owners), rows)
        for folder, owners in folders.values()
        for skill in skills.NAMES
    ]


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _skill_file(path: Path, skill: str, owners: tuple[str, ...], rows: Mapping[str, ManifestRow]) -> SkillFile:
    found = look(path)
    row = rows.get(str(path))
    if isinstance(found, Unreadable):
        return SkillFile(skill, path, owners, found, None, row)
    state = skills.judge(skill, found)
    if found is not None and state in (SkillState.MODIFIED, SkillState.FOREIGN) and row and row.sha256 == digest(found):
        state = SkillState.STALE
    return SkillFile(skill, path, owners, found, state, row)


def plan_install(place: Place, names: Collection[str], rows: Mapping[str, ManifestRow], policy: Policy) -> SkillPlan:
    """Bring the named hosts' skills up to date."""
    result = SkillPlan()
    for file in survey(place, names, rows):
        for owner in file.owners:
            result.files.setdefault(owner, []).append(file)
        _plan_one(file, place, policy, result.plan)
    return result


def _plan_one(file: SkillFile, place: Place, policy: Policy, plan: Plan) -> None:
    before = file.found
    if isinstance(before, Unreadable):
        plan.notes.append(Note(file.path, "skill", "blocked", f"{before.what}; nothing is written there"))
        return
    earlier = file.row.owners if file.row else ()
    owners = tuple(name for name in hosts.NAMES if name in {*file.owners, *earlier})
    content = skills.installed(file.name)
    level = file.row.root if file.row else place.level
    detail = dict(file.row.detail) if file.row else {}
    row = ManifestRow(str(file.path), "skill", owners, level, digest(content), detail)
    if file.state is SkillState.CURRENT and before is not None:
        plan.notes.append(Note(file.path, "skill", "current", "up to date"))
        # A checkout may have changed the line ends: the manifest follows what is really there.
        adopted = row._replace(sha256=digest(before))
        if adopted != file.row:
            plan.rows.append(adopted)
        return
    edited = file.state in (SkillState.MODIFIED, SkillState.FOREIGN)
    allowed = policy.replace_foreign if file.state is SkillState.FOREIGN else policy.replace_modified
    if edited and not allowed:
        reason = {
            SkillState.MODIFIED: "somebody edited it; it is left as it is (--force replaces it and keeps a .bak)",
            SkillState.FOREIGN: "it is not a Qiju skill; it is left as it is",
        }[file.state or SkillState.FOREIGN]
        plan.notes.append(Note(file.path, "skill", str(file.state), reason))
        return
    why = {SkillState.MISSING: "install the skill", SkillState.STALE: "bring the skill up to date"}.get(
        file.state or SkillState.MISSING, "replace the edited skill; your version is kept"
    )
    backup = backup_name(file.path, before) if edited and before is not None else None
    plan.steps.append(Step(file.path, "skill", before, content, why, row=row, backup=backup))


def plan_remove(
    place: Place, names: Collection[str], rows: Mapping[str, ManifestRow], still_enabled: Collection[str]
) -> Plan:
    """Take away the skills of the named hosts, but for copies that another enabled host reads."""
    plan = Plan()
    staying = [name for name in still_enabled if name not in names]
    shared = {_real(place.skills_folder(hosts.row(name))): name for name in staying}
    for file in survey(place, names, rows):
        if file.row and file.row.root != place.level:
            whom = f"the project {file.row.root}" if file.row.root else "the user"
            plan.notes.append(Note(file.path, "skill", "shared", f"it was installed for {whom}"))
            continue
        others = [owner for owner in (file.row.owners if file.row else ()) if owner in staying]
        reader = shared.get(_real(file.path.parent.parent)) or (others[0] if others else "")
        if not reader:
            _plan_removal(file, place, plan)
            continue
        if file.state is not SkillState.MISSING:
            plan.notes.append(Note(file.path, "skill", "shared", f"{reader} reads this copy, too"))
        if file.row:
            left = tuple(owner for owner in file.row.owners if owner not in names) or (reader,)
            plan.rows.append(file.row._replace(owners=left))
    return plan


def _plan_removal(file: SkillFile, place: Place, plan: Plan) -> None:
    row = file.row
    if isinstance(file.found, Unreadable):
        plan.notes.append(Note(file.path, "skill", "blocked", f"{file.found.what}; it is left alone"))
        return
    if file.found is None:
        if row:
            plan.forget.append(row.path)
            plan.made += made_for(row)
        return
    if file.state in (SkillState.MODIFIED, SkillState.FOREIGN):
        why = "somebody edited it" if file.state is SkillState.MODIFIED else "it is not a Qiju skill"
        plan.notes.append(Note(file.path, "skill", str(file.state), f"{why}; it is left as it is"))
        return
    if row is None and not belongs(file.path, place):
        plan.notes.append(Note(file.path, "skill", "elsewhere", "a link leads out of the project; it is left alone"))
        return
    plan.steps.append(Step(file.path, "skill", file.found, None, "remove the skill"))
    plan.made.append(file.path.parent)
    plan.made += made_for(row)
    if row is None or "made" not in row.detail:
        # The predecessor's, or a clone's: its folders go, too, when nothing else is in them.
        plan.made += [folder for folder in file.path.parents[1:3] if folder not in (place.root, place.user_home)]


def belongs(path: Path, place: Place) -> bool:
    """Whether a path without a manifest row really lies where it seems to.

    A project's `.claude` may be a link to the user's own, and a project that is the user's home has the user's folders:
    neither is the project's to remove.
    """
    if place.root is None:
        return True
    real_root = _real(place.root)
    if real_root == _real(place.user_home):
        return False
    return real_root in _real(path).parents
