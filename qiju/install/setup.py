"""`init`: give a project its identity and its hosts their skills, at the project's or the user's level.

Everything is decided before anything is written: who the project is (marker, registry, `--project`, folder name), which
files change, and what is said about it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from qiju import hosts, place
from qiju.errors import MarkerConflict, Refused
from qiju.install.exclude import plan_exclude
from qiju.install.hookplan import plan_hooks
from qiju.install.plan import Note, Plan, Step, Unreadable, digest, look
from qiju.install.skillfiles import Place, Policy, SkillPlan, plan_install
from qiju.place import Marker, marker_path
from qiju.place.git import find_repository
from qiju.place.marker import SCHEMA_VERSION
from qiju.registry import ManifestRow, Registry

ANSWERING = ("current",)  # note states that need no word to the user


class Identity(NamedTuple):
    """The project a root is, and what is told about how that was decided."""

    slug: str
    uuid: str
    said: tuple[str, ...]


@dataclass
class Setup:
    """A planned `init`: the plan, what it decided, and the files of each host."""

    place: Place
    names: tuple[str, ...]
    plan: Plan
    skills: SkillPlan
    identity: Identity | None = None
    enabled: tuple[str, ...] = ()
    messages: list[str] = field(default_factory=list)
    worktree: Path | None = None

    def files_of(self, name: str) -> list[Path]:
        """Every file this host's `init` answers for, whether or not it changes."""
        own = [file.path for file in self.skills.files.get(name, [])]
        shared = [step.path for step in self.plan.steps if step.kind in ("marker", "exclude")]
        shared += [note.path for note in self.plan.notes if note.kind in ("marker", "exclude")]
        hook = [step.path for step in self.plan.steps if step.kind == "hook" and step.row and name in step.row.owners]
        hook += [
            note.path
            for note in self.plan.notes
            if note.kind == "hook" and note.owner == name and note.state == "current"
        ]
        return sorted({*own, *shared, *hook})


def identify(root: Path, marker: Marker | None, wanted: str | None, registry: Registry) -> Identity:
    """Which project `root` is.

    The marker decides; then the registry's entry for this very folder; then `--project`, which joins a project that
    exists; then the folder's name, made distinct when another folder already has it. Raises `MarkerConflict` when
    `--project` contradicts the marker.
    """
    slug = place.slugify(wanted) if wanted is not None else None
    if marker is not None:
        if slug is not None and slug != marker.project:
            raise MarkerConflict(
                f"{root} belongs to the project {marker.project!r}, but --project names {slug!r}",
                hint=f"Leave --project out, or merge the two: qiju projects merge {marker.project} --into {slug}",
            )
        here = registry.root(str(root))
        uuid = marker.uuid or (here.uuid if here else None) or registry.uuid_of(marker.project) or place.new_uuid()
        return Identity(marker.project, uuid, ())
    known = registry.root(str(root))
    if known is not None and slug in (None, known.project):
        return Identity(known.project, known.uuid, ())
    if slug is not None:
        said = [f"this folder joins the project {slug!r}, which exists already"] if registry.uuid_of(slug) else []
        if known is not None:
            said.append(
                f"records logged here so far stay in {known.project!r}; "
                f"move them with: qiju projects merge {known.project} --into {slug}"
            )
        return Identity(slug, registry.uuid_of(slug) or place.new_uuid(), tuple(said))
    name = place.root_name(root)
    plain = place.slugify(name)
    found = registry.find(plain, str(root))
    if found is not None:
        return Identity(
            found.slug, found.uuid, (f"this folder joins the project {found.slug!r}, which exists already",)
        )
    if registry.uuid_of(plain) is None:
        return Identity(plain, place.new_uuid(), ())
    distinct = place.distinct_slug(name, registry.slugs())
    told = f"another folder has the name {plain!r}; this project is {distinct!r} (--project {plain} would join it)"
    return Identity(distinct, place.new_uuid(), (told,))


def plan_setup(
    where: Place,
    names: tuple[str, ...],
    registry: Registry,
    *,
    project: str | None,
    with_hooks: bool,
    worktree: Path | None = None,
) -> Setup:
    """Plan an `init` of the named hosts. Raises `MarkerConflict`, `BadConfiguration`, `Refused`.

    `worktree` is the linked worktree that the call comes from: it has its main repository's identity, but hosts that
    run there read skills and hooks only from its own folder.
    """
    rows = registry.rows()
    # An explicit `init` asks for the skills as they should be: an edited one is kept beside the new one.
    policy = Policy(replace_modified=True)
    skills = plan_install(where, names, rows, policy)
    setup = Setup(where, names, Plan(), skills, worktree=worktree)
    if where.root is not None:
        _plan_marker(setup, where.root, registry, project)
        setup.plan.merge(plan_exclude(where.root, rows))
    setup.plan.merge(skills.plan)
    places = [where]
    if worktree is not None:
        places.append(where._replace(root=worktree))
        there = plan_install(places[1], names, rows, policy)
        setup.plan.merge(there.plan)
        for name, files in there.files.items():
            skills.files.setdefault(name, []).extend(files)
    for each in places if with_hooks else ():
        setup.plan.merge(plan_hooks(each, names, rows))
    return setup


def _plan_marker(setup: Setup, root: Path, registry: Registry, project: str | None) -> None:
    path = marker_path(root)
    if path.parent.is_symlink():
        raise Refused(
            f"{path.parent} is a symbolic link; nothing is written through it",
            hint="Replace the link by a folder, or set QIJU_PROJECT_ROOT to another one.",
        )
    marker = place.read_marker(root)
    identity = identify(root, marker, project, registry)
    known = {host.name for name in (marker.enabled_agents if marker else ()) if (host := hosts.find(name))}
    enabled = tuple(name for name in hosts.NAMES if name in {*known, *setup.names})
    setup.identity = identity
    setup.enabled = enabled
    setup.messages += identity.said
    default = marker.default_agent if marker else None
    # One host, set up by name, is who writes here; of several nobody is the default.
    if marker is None and len(setup.names) == 1 and setup.names[0] != hosts.FALLBACK:
        default = setup.names[0]
    base = marker or Marker(project=identity.slug)
    strangers = tuple(name for name in base.enabled_agents if hosts.find(name) is None)
    wanted = base._replace(
        project=identity.slug,
        uuid=identity.uuid,
        enabled_agents=(*enabled, *strangers),
        default_agent=default,
        schema_version=max(base.schema_version, SCHEMA_VERSION),
    )
    found = look(path)
    if isinstance(found, Unreadable):
        raise Refused(f"{path} is {found.what}", hint="Move it away and run qiju init again.")
    if found is not None and wanted == marker:
        setup.plan.notes.append(Note(path, "marker", "current", "the project is set up"))
        return
    content = marker_bytes(wanted)
    row = ManifestRow(str(path), "marker", (), str(root), digest(content), {})
    setup.plan.steps.append(Step(path, "marker", found, content, "give the project its identity", row=row))


def marker_bytes(marker: Marker) -> bytes:
    """The marker as `place.write_marker` writes it."""
    return (json.dumps(marker.to_json(), ensure_ascii=False, indent=2) + "\n").encode()


def linked_worktree(folder: Path, root: Path) -> Path | None:
    """The top of the linked worktree that holds `folder`, when its main repository is the project `root`."""
    repository = find_repository(folder)
    if repository is None or repository.top == repository.main or repository.main != root:
        return None
    return repository.top


def describe(notes: list[Note]) -> list[str]:
    """One sentence for each note that the user should read."""
    return [f"{note.path}: {note.why}" for note in notes if note.state not in ANSWERING]
