"""`uninstall`: take away what Qiju put on the disk, in the asked projects and for the asked hosts, and nothing else.

Removed are skill files that nobody edited, the entry in a host's hook file, the line in Git's exclude file, the marker,
the predecessor's leftovers, and folders that were made for these and are empty now. Records, drafts that were not
logged yet, backups and every foreign file stay. With some hosts only, the project keeps its marker for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from qiju import hosts, place
from qiju.errors import BadConfiguration
from qiju.install.exclude import plan_unexclude
from qiju.install.hookplan import plan_unhook
from qiju.install.leftovers import plan_leftovers
from qiju.install.plan import Note, Plan, Step, Unreadable, backup_name, digest, look, made_for
from qiju.install.refresh import enabled_hosts
from qiju.install.setup import marker_bytes
from qiju.install.skillfiles import Place, plan_remove
from qiju.place import Marker, marker_path
from qiju.place.root import MARKER_FOLDER
from qiju.registry import ManifestRow, RegisteredRoot, Registry
from qiju.staging import STAGING_FOLDER

RECORDS_STAY = "records and audit data are never removed by uninstall"


@dataclass
class Removal:
    """The plan, what stays and why, and the roots whose hosts change in the registry."""

    plan: Plan = field(default_factory=Plan)
    preserved: list[tuple[Path, str]] = field(default_factory=list)
    roots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def plan_user_removal(where: Place, names: Collection[str], registry: Registry, removal: Removal) -> None:
    """Plan the user's level."""
    rows = registry.rows()
    own = [row for row in rows.values() if row.root == "" and row.kind == "skill"]
    staying = {owner for row in own for owner in row.owners if owner not in names}
    removal.plan.merge(plan_remove(where, names, rows, staying))
    removal.plan.merge(plan_unhook(where, names, rows))
    removal.plan.merge(plan_leftovers(where, names))
    removal.preserved += _kept_copies(rows.values(), where.level)


def plan_project_removal(
    root: Path, where: Place, names: Collection[str], registry: Registry, removal: Removal
) -> None:
    """Plan one project; a folder that is not there, or a damaged marker, is named and passed over."""
    if not root.is_dir():
        removal.warnings.append(f"{root} is not there; nothing to remove")
        return
    try:
        marker = place.read_marker(root)
    except BadConfiguration as error:
        removal.warnings.append(f"{error}; the marker is left as it is")
        marker = None
    here = where._replace(root=root)
    rows = registry.rows()
    known = registry.root(str(root))
    enabled = enabled_hosts(root, marker, known, where)
    staying = tuple(name for name in enabled if name not in names)
    removal.plan.merge(plan_remove(here, names, rows, staying))
    removal.plan.merge(plan_unhook(here, names, rows))
    removal.plan.merge(plan_leftovers(here, names))
    if staying:
        _plan_smaller_marker(root, marker, names, removal.plan)
    else:
        _plan_marker_removal(root, marker, rows.get(str(marker_path(root))), removal)
        if _holds_files(root / MARKER_FOLDER, removal):
            removal.plan.notes.append(
                Note(root / MARKER_FOLDER, "exclude", "kept", "it still holds files, so Git goes on ignoring it")
            )
        else:
            removal.plan.merge(plan_unexclude(root, rows))
    removal.preserved += _kept_copies(rows.values(), here.level)
    _note_registry(root, known, staying, removal)


def _kept_copies(rows: Iterable[ManifestRow], level: str) -> list[tuple[Path, str]]:
    """The user's own versions of edited files, which Qiju kept as `.bak` when it replaced them."""
    return [
        (Path(row.path), f"your version of {Path(str(row.detail.get('of', ''))).name}")
        for row in rows
        if row.kind == "backup" and row.root == level and Path(row.path).exists()
    ]


def _holds_files(folder: Path, removal: Removal) -> bool:
    """Whether something stays in a project's `.qiju` that must not be committed by accident."""
    kept = [path for path, _ in removal.preserved] + [step.backup for step in removal.plan.steps if step.backup]
    return any(folder in path.parents for path in kept)


def _note_registry(root: Path, known: RegisteredRoot | None, staying: tuple[str, ...], removal: Removal) -> None:
    # The folder stays registered: its records are still its own, and redaction must still find its drafts.
    if known is not None and known.hosts != staying:
        removal.roots[known.path] = staying


def _plan_smaller_marker(root: Path, marker: Marker | None, names: Collection[str], plan: Plan) -> None:
    """Other hosts are still set up here: the marker stays, without those that go."""
    if marker is None:
        return
    kept = tuple(name for name in marker.enabled_agents if (host := hosts.find(name)) is None or host.name not in names)
    default = hosts.find(marker.default_agent or "")
    smaller = marker._replace(
        enabled_agents=kept, default_agent=None if default and default.name in names else marker.default_agent
    )
    if smaller == marker:
        return
    path = marker_path(root)
    found = look(path)
    if isinstance(found, bytes):
        content = marker_bytes(smaller)
        row = ManifestRow(str(path), "marker", (), str(root), digest(content), {})
        plan.steps.append(Step(path, "marker", found, content, "the project keeps its other hosts", row=row))


def _plan_marker_removal(root: Path, marker: Marker | None, row: ManifestRow | None, removal: Removal) -> None:
    folder = root / MARKER_FOLDER
    path = marker_path(root)
    found = look(path)
    plan = removal.plan
    plan.made += made_for(row)
    if isinstance(found, bytes) and marker is not None and not folder.is_symlink():
        # Settings are the user's own words; everything else in a marker can be had again.
        backup = backup_name(path, found) if marker.settings else None
        plan.steps.append(Step(path, "marker", found, None, "remove the project's marker", backup=backup))
    elif isinstance(found, Unreadable):
        plan.notes.append(Note(path, "marker", "blocked", f"{found.what}; it is left alone"))
    if folder.is_dir() and not folder.is_symlink():
        _plan_folder(folder, removal)


def _plan_folder(folder: Path, removal: Removal) -> None:
    """What else lies in `.qiju`: empty helper files go, everything with content stays and is named."""
    plan = removal.plan
    plan.made += [folder, folder / STAGING_FOLDER]
    short = folder / "short.jsonl"
    content = look(short)
    if content == b"":
        plan.steps.append(Step(short, "leftover", b"", None, "remove the predecessor's empty file"))
    copies = [name for name in _entries(folder) if name.startswith("config.json.bak.")]
    for copy in copies:
        old = look(folder / copy)
        if isinstance(old, bytes) and b'"qiju_home"' in old:
            step = Step(folder / copy, "leftover", old, None, "remove the predecessor's copy of its marker")
            plan.steps.append(step)
    staging = folder / STAGING_FOLDER
    drafts = _entries(staging)
    if drafts == [".gitignore"]:
        ignore = look(staging / ".gitignore")
        if isinstance(ignore, bytes):
            plan.steps.append(Step(staging / ".gitignore", "staging", ignore, None, "remove the staging folder"))
        drafts = []
    removal.preserved += [(staging / name, "a draft that was not logged yet") for name in drafts if name[0] != "."]
    going = {step.path.name for step in plan.steps if step.path.parent == folder}
    others = [name for name in _entries(folder) if name not in {"config.json", STAGING_FOLDER, *going}]
    removal.preserved += [
        (folder / name, RECORDS_STAY if name.endswith((".jsonl", ".db")) else "not the installer's") for name in others
    ]


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
