"""Plan file changes first, then apply that same plan.

A `Plan` is data: steps that write or remove one file each, notes about what is left alone and why, and the manifest
rows that go. A dry run prints it; a real run hands it to `apply`. Every step knows the bytes it expects to find, so a
file that somebody changes between planning and applying is left alone and reported. One file that cannot be written
does not stop the others: each step ends in an `Outcome`.

A manifest row is kept for every file that Qiju wrote, with its hash, the hosts it serves and the folders that had to be
made for it; removing the file later removes those folders again when nothing else lies in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from qiju.errors import QijuError, StorageFailed
from qiju.files import FileReplacement, disk_error, remove_tree
from qiju.registry import ManifestRow

LARGEST_FILE = 8 * 1024 * 1024  # no skill or settings file is larger; anything else at that path is not ours


@dataclass
class Step:
    """Write `after` to `path`, or remove the file when `after` is None.

    `before` is what must be there when it runs; with `backup` it is kept there first. `row` goes into the manifest once
    the file is written; without one, the manifest's row of `path` goes. A step of kind `tree` removes a whole folder.
    `why` is a sentence for people.
    """

    path: Path
    kind: str
    before: bytes | None
    after: bytes | None
    why: str
    row: ManifestRow | None = None
    backup: Path | None = None

    @property
    def verb(self) -> str:
        return "remove" if self.after is None else "write" if self.before is None else "rewrite"


class Note(NamedTuple):
    """A file that the plan leaves as it is. `state` is a word such as `current`, `modified`, `foreign`, `shared`;
    `owner` is the host it is about, where it is about one."""

    path: Path
    kind: str
    state: str
    why: str
    owner: str = ""


@dataclass
class Plan:
    """What will happen, in order; `made` lists folders that may go when they are empty at the end."""

    steps: list[Step] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    rows: list[ManifestRow] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    made: list[Path] = field(default_factory=list)

    def merge(self, other: Plan) -> None:
        """Add another plan's content; a path that already has a step keeps its first one."""
        taken = {step.path for step in self.steps}
        self.steps += [step for step in other.steps if step.path not in taken]
        self.notes += other.notes
        self.rows += other.rows
        self.forget += other.forget
        self.made += other.made


class Outcome(NamedTuple):
    """What became of a step: `done`, or `failed` with the error."""

    step: Step
    error: QijuError | None


@dataclass
class Applied:
    """The outcomes, the rows to store, the rows to drop, and the folders that were removed."""

    outcomes: list[Outcome] = field(default_factory=list)
    rows: list[ManifestRow] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)

    @property
    def failures(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.error]


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


class Unreadable(NamedTuple):
    """Something at the path that is not a readable regular file, and what it is."""

    what: str


def look(path: Path) -> bytes | Unreadable | None:
    """The bytes at `path`, None when nothing is there, or what stands in the way. Links are not followed."""
    try:
        if path.is_symlink():
            return Unreadable("a symbolic link" if path.exists() else "a dangling symbolic link")
        if not path.exists():
            blocked = _blocked(path)
            return Unreadable(blocked) if blocked else None
        if not path.is_file():
            return Unreadable("not a regular file")
        if path.stat().st_size > LARGEST_FILE:
            return Unreadable("far too large to be Qiju's")
        return path.read_bytes()
    except OSError as error:
        return Unreadable(f"not readable ({error.strerror})")


def _blocked(path: Path) -> str:
    """Why a missing file could not be made: the nearest folder that exists is a dangling link or a file."""
    for folder in path.parents:
        if folder.is_symlink() and not folder.exists():
            return f"below {folder}, a dangling symbolic link"
        if folder.exists():
            return "" if folder.is_dir() else f"below {folder}, which is not a folder"
    return ""


def apply(plan: Plan) -> Applied:
    """Carry out a plan. Never raises for a single file: see `Applied.failures`."""
    applied = Applied(rows=list(plan.rows), forget=list(plan.forget))
    for step in plan.steps:
        try:
            _carry_out(step, applied)
        except (QijuError, OSError) as error:
            failure = error if isinstance(error, QijuError) else disk_error(error, step.path)
            applied.outcomes.append(Outcome(step, failure))
        else:
            applied.outcomes.append(Outcome(step, None))
    for folder in deepest_first(plan.made):
        if _remove_if_empty(folder):
            applied.folders.append(folder)
    return applied


def _carry_out(step: Step, applied: Applied) -> None:
    if step.kind == "tree":
        remove_tree(step.path)
        return
    found = look(step.path)
    if isinstance(found, Unreadable):
        raise StorageFailed(f"{step.path} is {found.what}; it was left alone")
    if found == step.after and found != step.before:
        step.before = found  # another process did the same at the same time
    if found != step.before:
        raise StorageFailed(f"{step.path} changed while this was running; it was left alone", hint="run it again")
    if step.backup is not None and step.before is not None:
        keep_copy(step.backup, step.before)
        root = step.row.root if step.row else ""
        applied.rows.append(
            ManifestRow(str(step.backup), "backup", (), root, digest(step.before), {"of": str(step.path)})
        )
    if step.after is None:
        if step.before is not None:
            step.path.unlink()
        applied.forget.append(str(step.path))
        return
    if step.row is None:
        applied.forget.append(str(step.path))
    made = make_folders(step.path.parent)
    try:
        with FileReplacement(step.path, mode=0o644) as file:
            file.write(step.after)
    except BaseException:
        for folder in reversed(made):
            _remove_if_empty(folder)
        raise
    if step.row is not None:
        detail = step.row.detail
        # Who made the folders of a file that was there before, and is no row yet, nobody knows.
        if step.before is None or "made" in detail:
            folders = dict.fromkeys([*made_for(step.row), *made])
            detail = {**detail, "made": [str(each) for each in folders]}
        applied.rows.append(step.row._replace(sha256=digest(step.after), detail=detail))


def make_folders(folder: Path) -> list[Path]:
    """Make `folder` and what is missing above it; returns those that were made, outermost first."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    missing.reverse()
    for each in missing:
        each.mkdir()
    return missing


def keep_copy(target: Path, content: bytes) -> None:
    """Write a backup under a name that does not exist yet."""
    with target.open("xb") as file:
        file.write(content)


def backup_name(path: Path, content: bytes) -> Path | None:
    """A free name `<path>.bak`, `.bak2`, ... for a copy; None when one of those already holds the same bytes."""
    number = 1
    while True:
        candidate = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
        found = look(candidate)
        if found == content:
            return None
        if found is None:
            return candidate
        number += 1


def _remove_if_empty(folder: Path) -> bool:
    try:
        if folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()):
            return False
        folder.rmdir()
    except OSError:
        return False
    return True


def deepest_first(folders: Iterable[Path]) -> list[Path]:
    """Each folder once, inner ones before those that hold them."""
    return sorted(set(folders), key=lambda path: (-len(path.parts), str(path)))


def made_for(row: ManifestRow | None) -> list[Path]:
    """The folders that were made for a row's file."""
    return [Path(each) for each in row.detail.get("made", [])] if row else []
