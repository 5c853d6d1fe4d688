"""Carry out `init`, `update` and `uninstall` against an open store, and report what happened as plain data.

The shapes of the reports are those of the predecessor's `--json`, with keys added. A dry run makes the same plan and
the same report; only the applying is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qiju.errors import StorageFailed
from qiju.install.leftovers import plan_engine
from qiju.install.plan import Applied, Note, Plan, Step, apply, deepest_first
from qiju.install.refresh import carry_out, plan_refresh
from qiju.install.removal import RECORDS_STAY, Removal, plan_project_removal, plan_user_removal
from qiju.install.setup import Setup, describe, plan_setup
from qiju.install.skillfiles import Place
from qiju.registry import Registry

if TYPE_CHECKING:
    from qiju.db import Database


@dataclass
class Report:
    """`value` is the JSON for standard output, `warnings` are sentences for standard error, `failed` what the disk
    refused."""

    value: Any
    warnings: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def raise_failures(self) -> None:
        """Raise `StorageFailed` when something could not be written; everything else has been done by then."""
        if self.failed:
            first, *rest = self.failed
            more = f" (and {len(rest)} more)" if rest else ""
            raise StorageFailed(first + more, hint="check the permissions, then run the same command again")


def change(step: Step) -> dict[str, Any]:
    """A step as data."""
    found: dict[str, Any] = {"action": step.verb, "kind": step.kind, "path": str(step.path), "reason": step.why}
    if step.backup is not None:
        found["backup"] = str(step.backup)
    return found


# --- init ------------------------------------------------------------------------------------------------------------


def init(
    db: Database,
    where: Place,
    names: tuple[str, ...],
    home: Path,
    *,
    project: str | None,
    with_hooks: bool,
    dry_run: bool,
    reason: str = "",
    worktree: Path | None = None,
) -> Report:
    """Set up the named hosts. One element for each host; raises what `plan_setup` raises, before any change."""
    registry = Registry(db)
    setup = plan_setup(where, names, registry, project=project, with_hooks=with_hooks, worktree=worktree)
    report = Report([])
    if not dry_run:
        applied = apply(setup.plan)
        report.failed = [str(outcome.error) for outcome in applied.failures]
        _remember(registry, setup, applied)
    report.value = [_host_report(setup, name, home, dry_run, reason) for name in names]
    report.warnings = describe(setup.plan.notes) + [
        f"{step.path}: your edited version is kept as {step.backup}" for step in setup.plan.steps if step.backup
    ]
    return report


def _remember(registry: Registry, setup: Setup, applied: Applied) -> None:
    with registry.transaction():
        registry.store_rows(applied.rows, applied.forget)
        unmarked = any(outcome.step.kind == "marker" for outcome in applied.failures)
        if setup.identity is not None and setup.place.root is not None and not unmarked:
            wanted, uuid, _ = setup.identity
            project = registry.register(str(setup.place.root), wanted, uuid, setup.enabled)
            setup.messages += project.notes
            if setup.worktree is not None:
                registry.register(str(setup.worktree), project.slug, project.uuid, setup.enabled)


def _host_report(setup: Setup, name: str, home: Path, dry_run: bool, reason: str) -> dict[str, Any]:
    local = setup.place.root is not None
    project = setup.identity.slug if setup.identity else None
    files = setup.files_of(name)
    mine = set(files)
    said = "would be enabled" if dry_run else "enabled"
    mode = "local" if local else "global"
    message = f"{mode} {name} Qiju integration {said}" + (f" for {project}" if project else "")
    notes = [note for note in setup.plan.notes if note.owner == name or (note.path in mine and not note.owner)]
    return {
        "mode": mode,
        "host": name,
        "project": project,
        "project_root": str(setup.place.root) if local else None,
        "qiju_home": str(home),
        "uuid": setup.identity.uuid if setup.identity else None,
        "dry_run": dry_run,
        "detected": reason,
        "files": [str(path) for path in files],
        "changes": [change(step) for step in setup.plan.steps if step.path in mine],
        "states": {str(file.path): str(file.state or "blocked") for file in setup.skills.files.get(name, [])},
        "messages": [message, *setup.messages, *describe(notes)],
    }


# --- update ----------------------------------------------------------------------------------------------------------


def update(
    db: Database, where: Place, names: Collection[str], extra_roots: Sequence[Path], *, force: bool, dry_run: bool
) -> Report:
    """Refresh what is installed. A dry run calls what would change `updated` and changes nothing."""
    registry = Registry(db)
    run = plan_refresh(where, names, registry, extra_roots, force=force)
    report = Report({})
    if not dry_run:
        done = carry_out(run)
        report.failed = [str(outcome.error) for applied in done for outcome in applied.failures]
        with registry.transaction():
            for root in run.gone:
                registry.forget_root(root.path)
            for path, marker in run.found:
                if marker.uuid:
                    registry.register(str(path), marker.project, marker.uuid, marker.enabled_agents)
            registry.store_rows((), run.forget)
            for applied in done:
                registry.store_rows(applied.rows, applied.forget)
    report.warnings = [said for each in run.everything() for said in each.said]
    report.value = {
        "dry_run": dry_run,
        "projects": [
            {
                "path": str(each.path),
                "slug": each.slug,
                "hosts": list(each.names),
                "status": each.status,
                "files": each.files,
            }
            for each in run.projects
        ],
        "global_hosts": [{"host": each.slug, "status": each.status, "files": each.files} for each in run.user],
        "pruned": [root.path for root in run.gone],
        "warnings": report.warnings,
        "notes": [] if run.projects or run.user else ["no project is registered, and no host has skills of Qiju's"],
    }
    return report


# --- uninstall -------------------------------------------------------------------------------------------------------


def uninstall(
    db: Database,
    where: Place,
    names: Collection[str],
    roots: Sequence[Path],
    home: Path,
    *,
    user_level: bool,
    engine: tuple[Path, Path] | None,
    dry_run: bool,
) -> Report:
    """Remove the named hosts' files from `roots` and, with `user_level`, from the user's home.

    `engine` is the bin folder and the engine folder of the predecessor, or None to leave its program alone.
    """
    registry = Registry(db)
    removal = Removal()
    for root in roots:
        plan_project_removal(root, where, names, registry, removal)
    if user_level:
        plan_user_removal(where, names, registry, removal)
    if engine is not None:
        protected = [home, where.user_home, *roots]
        removal.plan.merge(plan_engine(where.user_home, *engine, protected))
    report = Report({})
    emptied: list[Path] = _would_empty(removal.plan)
    done: dict[Path, str] = {}
    if not dry_run:
        applied = apply(removal.plan)
        emptied = applied.folders
        done = {outcome.step.path: str(outcome.error) for outcome in applied.failures}
        report.failed = list(done.values())
        with registry.transaction():
            registry.store_rows([*applied.rows], [*applied.forget])
            for path, hosts in removal.roots.items():
                registry.set_hosts(path, hosts)
    report.value = {
        "dry_run": dry_run,
        "actions": [_action(step, done, dry_run) for step in removal.plan.steps]
        + [
            {
                "action": "remove_folder",
                "path": str(folder),
                "reason": "it was made by Qiju and is empty",
                "executed": not dry_run,
            }
            for folder in emptied
        ],
        "preserved": [{"path": str(path), "reason": why} for path, why in _preserved(removal, home)],
        "warnings": removal.warnings,
    }
    report.warnings = list(removal.warnings)
    return report


def _action(step: Step, failed: dict[Path, str], dry_run: bool) -> dict[str, Any]:
    found = change(step)
    found["executed"] = not dry_run and step.path not in failed
    if step.path in failed:
        found["error"] = failed[step.path]
    return found


def _preserved(removal: Removal, home: Path) -> list[tuple[Path, str]]:
    kept = [(home / "qiju.db", RECORDS_STAY)] if (home / "qiju.db").exists() else []
    kept += removal.preserved
    kept += [(note.path, note.why) for note in removal.plan.notes if _worth_saying(note)]
    return kept


def _worth_saying(note: Note) -> bool:
    return note.state != "current"


def _would_empty(plan: Plan) -> list[Path]:
    """The folders that applying `plan` would leave empty and remove, deepest first."""
    going = {step.path for step in plan.steps if step.after is None and step.backup is None}
    found: list[Path] = []
    for folder in deepest_first(plan.made):
        if folder.is_symlink() or not folder.is_dir():
            continue
        if all(child in going for child in folder.iterdir()):
            going.add(folder)
            found.append(folder)
    return found
