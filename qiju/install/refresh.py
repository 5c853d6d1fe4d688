"""`update`: bring installed skills to this version, in every known project and at the user's level.

Projects are those of the registry, the current one, and on request what a scan of the disk finds. Each ends in one
word: `updated`, `unchanged`, `skipped` (nothing enabled that was asked for, or only files that somebody edited),
`missing` (the folder is gone), `failed`. Folders that are gone leave the registry; those on a disk that is merely not
mounted stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from qiju import hosts, place
from qiju.errors import QijuError
from qiju.install.plan import Applied, Note, Plan, Step, apply, digest, look
from qiju.install.setup import marker_bytes
from qiju.install.skillfiles import Place, Policy, SkillFile, plan_install, survey
from qiju.place import Marker, marker_path
from qiju.place.marker import SCHEMA_VERSION
from qiju.registry import ManifestRow, RegisteredRoot, Registry
from qiju.skills import SkillState

UPDATED, UNCHANGED, SKIPPED, MISSING, FAILED = "updated", "unchanged", "skipped", "missing", "failed"

# Folders below which whole disks appear and disappear.
_MOUNT_PARENTS = ("/Volumes", "/media", "/mnt", "/run/media")


@dataclass
class Refreshed:
    """One project, or one host at the user's level, and what became of it."""

    path: Path | None
    slug: str
    names: tuple[str, ...]
    status: str
    plan: Plan = field(default_factory=Plan)
    files: list[dict[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


@dataclass
class Refresh:
    """The whole run.

    `gone` are registered folders to drop, `found` projects to register under their marker, `rows` the manifest, and
    `forget` its rows of kept copies that somebody has deleted since.
    """

    projects: list[Refreshed] = field(default_factory=list)
    user: list[Refreshed] = field(default_factory=list)
    gone: list[RegisteredRoot] = field(default_factory=list)
    found: list[tuple[Path, Marker]] = field(default_factory=list)
    rows: dict[str, ManifestRow] = field(default_factory=dict)
    forget: list[str] = field(default_factory=list)

    def everything(self) -> list[Refreshed]:
        return [*self.projects, *self.user]


def plan_refresh(
    where: Place,
    asked: Collection[str],
    registry: Registry,
    extra_roots: Iterable[Path],
    *,
    force: bool,
) -> Refresh:
    """Plan an `update` of the asked hosts. `where` is the user's level; `extra_roots` are unregistered candidates."""
    rows = registry.rows()
    run = Refresh(rows=rows)
    run.forget = [path for path, row in rows.items() if row.kind == "backup" and look(Path(path)) is None]
    policy = Policy(replace_modified=force, replace_foreign=force)
    registered = registry.roots()
    known = {root.path for root in registered}
    for root in registered:
        run.projects.append(_project(Path(root.path), root, where, asked, registry, policy, run))
    for path in dict.fromkeys(extra_roots):
        if str(path) not in known:
            known.add(str(path))
            run.projects.append(_project(path, None, where, asked, registry, policy, run))
    for name in asked:
        one = _user_level(name, where, rows, policy, {step.path for each in run.user for step in each.plan.steps})
        if one:
            run.user.append(one)
    return run


def _project(
    path: Path,
    root: RegisteredRoot | None,
    where: Place,
    asked: Collection[str],
    registry: Registry,
    policy: Policy,
    run: Refresh,
) -> Refreshed:
    slug = root.project if root else path.name
    if not path.is_dir():
        if root is not None and not on_absent_disk(path):
            run.gone.append(root)
            said = f"{path} is gone; it leaves the registry"
        else:
            said = f"{path} cannot be reached (a disk that is not mounted?); it stays registered"
        return Refreshed(path, slug, (), MISSING, said=[said])
    try:
        marker = place.read_marker(path)
    except QijuError as error:
        return Refreshed(path, slug, (), FAILED, said=[str(error)])
    upgrade = Plan()
    if marker is not None:
        slug = root.project if root else marker.project
        if marker.uuid is None:
            # The predecessor's markers have no identity yet.
            marker = marker._replace(uuid=_identity(marker.project, root, registry, run), schema_version=SCHEMA_VERSION)
            upgrade = _marker_plan(path, marker)
        if root is None:
            run.found.append((path, marker))
    enabled = enabled_hosts(path, marker, root, where)
    names = tuple(name for name in enabled if name in asked)
    planned = plan_install(where._replace(root=path), names, run.rows, policy)
    upgrade.merge(planned.plan)
    if not names and not upgrade.steps:
        unasked = [f"{path}: none of the asked hosts is set up there"] if enabled else []
        return Refreshed(path, slug, (), SKIPPED, said=unasked)
    return _result(path, slug, names, upgrade, [file for files in planned.files.values() for file in files])


def _identity(slug: str, root: RegisteredRoot | None, registry: Registry, run: Refresh) -> str:
    """The identity of a marker without one: to the predecessor, equal slugs were one project."""
    if root is not None:
        return root.uuid
    earlier = next((marker.uuid for _, marker in run.found if marker.project == slug and marker.uuid), None)
    return earlier or registry.uuid_of(slug) or place.new_uuid()


def _marker_plan(root: Path, marker: Marker) -> Plan:
    path = marker_path(root)
    found = look(path)
    if not isinstance(found, bytes) or path.parent.is_symlink():
        return Plan(notes=[Note(path, "marker", "blocked", "it is not an ordinary file; it keeps no identity")])
    content = marker_bytes(marker)
    row = ManifestRow(str(path), "marker", (), str(root), digest(content), {})
    return Plan(steps=[Step(path, "marker", found, content, "give the project its identity", row=row)])


def enabled_hosts(path: Path, marker: Marker | None, root: RegisteredRoot | None, where: Place) -> tuple[str, ...]:
    """The hosts of a project: the marker's, else the registry's, else those whose folder holds a skill of Qiju's."""
    named = marker.enabled_agents if marker else root.hosts if root else ()
    found = {host.name for name in named if (host := hosts.find(name))}
    if not found and (marker is None or not marker.enabled_agents):
        found = {
            owner
            for file in survey(where._replace(root=path), hosts.NAMES, {})
            if file.state in (SkillState.CURRENT, SkillState.STALE, SkillState.MODIFIED)
            for owner in file.owners[:1]
        }
    return tuple(name for name in hosts.NAMES if name in found)


def _user_level(
    name: str, where: Place, rows: dict[str, ManifestRow], policy: Policy, planned: Collection[Path]
) -> Refreshed | None:
    """The host's skills at the user's level, if they were ever put there."""
    files = survey(where, (name,), rows)
    here = [file for file in files if file.state not in (SkillState.MISSING, SkillState.FOREIGN, None)]
    owned = [file for file in here if file.row is None or (file.row.root == "" and name in file.row.owners)]
    if not owned or any(file.row and file.row.root for file in here):
        return None
    result = plan_install(where, (name,), rows, policy)
    result.plan.steps = [step for step in result.plan.steps if step.path not in planned]
    return _result(None, name, (name,), result.plan, files)


def _result(path: Path | None, slug: str, names: tuple[str, ...], plan: Plan, files: list[SkillFile]) -> Refreshed:
    changed = {step.path: step.verb for step in plan.steps}
    left = [note for note in plan.notes if note.state != "current"]
    listed: dict[Path, dict[str, str]] = {}
    for file in files:
        state = str(file.state) if file.state else "blocked"
        listed[file.path] = {"path": str(file.path), "state": state, "action": changed.get(file.path, "none")}
    status = UPDATED if plan.steps else SKIPPED if left and len(left) == len(listed) else UNCHANGED
    said = [f"{note.path}: {note.why}" for note in left]
    return Refreshed(path, slug, names, status, plan, list(listed.values()), said)


def on_absent_disk(path: Path) -> bool:
    """Whether a missing folder may merely be on a disk that is not mounted now."""
    anchor = Path(path.anchor)
    if not anchor.exists():
        return True
    for parent in path.parents:
        if parent.exists():
            return parent.as_posix() in _MOUNT_PARENTS or parent.parent.as_posix() in ("/media", "/run/media")
    return False


def carry_out(run: Refresh) -> list[Applied]:
    """Apply the plans; a project with a failure gets the status `failed`."""
    done = []
    for each in run.everything():
        applied = apply(each.plan)
        if applied.failures:
            each.status = FAILED
            each.said += [str(outcome.error) for outcome in applied.failures]
        done.append(applied)
    return done
