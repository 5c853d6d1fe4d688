"""The predecessor's store, read and never changed.

`qiju` 0.7 kept JSONL and Parquet files: `long/<slug>.jsonl`, `archive/project=<slug>/month=<YYYY-MM>/entries.parquet`,
`redaction_log.jsonl`, `registry.d/*.json` in its home, and `.qiju/short.jsonl` in each project. Its own predecessor had
the same layout below `~/.kedu` and `.kedu`. A `LegacyStore` walks such a home in a fixed order (tier, name, line), so
that the order of a directory listing decides nothing, and yields drafts that say where they were found, or problems
that say what could not be read. Whether a draft is a record is not decided here; `qiju.keeping.migrate` does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from qiju.jsontext import JsonValue
from qiju.legacy import lines

TIERS = ("short", "long", "archive")
_REGISTRY = "registry.d"
_OLD_REGISTRY = ("project-register.json", "project-register.json.migrated")
_AUDIT = "redaction_log.jsonl"


class Draft(NamedTuple):
    """One object as found. `line` is a line or, in Parquet, a row, from 1; `exact` is False where types were lost."""

    tier: str
    path: Path
    line: int
    folder_project: str
    value: dict[str, JsonValue]
    repair: str
    exact: bool


class Problem(NamedTuple):
    """Something that could not be read: `line`..`last_line` from 1, or 0 for the whole file."""

    path: Path
    line: int
    last_line: int
    kind: str
    message: str


class Root(NamedTuple):
    """A project folder that the predecessor registered, or the caller named."""

    path: Path
    slug: str
    reachable: bool


class LegacyStore:
    """A predecessor's home plus the project folders whose short tier belongs to it.

    `roots` are project folders beside the registered ones; `folder` is the name of the project's data folder.
    """

    def __init__(self, home: Path, *, roots: Sequence[Path] = (), folder: str = ".qiju") -> None:
        self.home = home
        self.folder = folder
        self._named = tuple(roots)
        self.problems: list[Problem] = []
        self.roots = self._read_roots()

    def exists(self) -> bool:
        """Whether the home, or a named root, holds anything of the predecessor's."""
        return is_store(self.home) or any(_short_file(root.path, self.folder).is_file() for root in self.roots)

    def records(self) -> Iterator[Draft | Problem]:
        """Yield short, long, archive; inside a tier by name and line."""
        yield from self.problems
        for root in self.roots:
            path = _short_file(root.path, self.folder)
            if path.is_file():
                yield from self._jsonl(path, "short", root.slug)
        for path in self._long_files():
            yield from self._jsonl(path, "long", path.stem)
        yield from self._archive()

    def redactions(self) -> Iterator[Draft | Problem]:
        """Yield the audit's events."""
        path = self.home / _AUDIT
        if path.is_file():
            yield from self._jsonl(path, "audit", "")

    def files(self) -> list[Path]:
        """Every file `records` and `redactions` read, in that order."""
        short = [_short_file(root.path, self.folder) for root in self.roots]
        archive = [path for folder in self._archive_folders() for path in _month_files(folder)]
        return [path for path in (*short, *self._long_files(), *archive, self.home / _AUDIT) if path.is_file()]

    def _jsonl(self, path: Path, tier: str, project: str) -> Iterator[Draft | Problem]:
        for item in lines.read_values(path):
            if isinstance(item, lines.Damage):
                yield Problem(path, item.line, item.last_line, item.kind, item.message)
            else:
                yield Draft(tier, path, item.line, project, item.value, item.repair, True)

    def _long_files(self) -> list[Path]:
        return [p for p in _children(self.home / "long") if p.suffix.lower() == ".jsonl" and _is_live(p)]

    def _archive_folders(self) -> list[Path]:
        return [p for p in _children(self.home / "archive") if p.name.startswith("project=") and p.is_dir()]

    def _archive(self) -> Iterator[Draft | Problem]:
        from qiju.legacy import parquet

        for folder in self._archive_folders():
            project = folder.name.removeprefix("project=")
            for path in _month_files(folder):
                month = path.parent.name.removeprefix("month=")
                for item in parquet.read_rows(path, month=month):
                    if isinstance(item, parquet.Unreadable):
                        yield Problem(path, item.first, item.last, "unreadable", item.message)
                    else:
                        yield Draft("archive", path, item.number, project, item.value, "", False)

    def _read_roots(self) -> list[Root]:
        found: dict[Path, str] = {}
        for path in _children(self.home / _REGISTRY):
            if path.suffix != ".json" or not path.is_file():
                continue
            entry = self._json_object(path)
            root, slug = entry.get("path"), entry.get("slug")
            if isinstance(root, str) and root and isinstance(slug, str):
                found[Path(root)] = slug
            elif entry:
                self.problems.append(Problem(path, 0, 0, "invalid", "a registry entry without path and slug"))
        for name in _OLD_REGISTRY:
            projects = self._json_object(self.home / name).get("projects") if (self.home / name).is_file() else None
            for root, slug in projects.items() if isinstance(projects, dict) else ():
                if root and isinstance(slug, str):
                    found.setdefault(Path(root), slug)
        for root_path in self._named:
            known = next((p for p in found if _same(p, root_path)), root_path)
            found[known] = found.get(known) or self._marker_slug(root_path)
        return [Root(path, found[path], path.is_dir()) for path in sorted(found, key=str)]

    def _marker_slug(self, root: Path) -> str:
        path = root / self.folder / "config.json"
        project = self._json_object(path).get("project") if path.is_file() else None
        return project if isinstance(project, str) and project else root.name

    def _json_object(self, path: Path) -> dict[str, JsonValue]:
        """The first object of a small JSON file, however it is laid out; a damaged one is a problem, not an end."""
        for item in lines.read_values(path):
            if isinstance(item, lines.Found):
                return item.value
            self.problems.append(Problem(path, item.line, item.last_line, item.kind, item.message))
        return {}


def is_store(home: Path) -> bool:
    """Whether the folder looks like a predecessor's home."""
    if (home / _AUDIT).is_file() or (home / _REGISTRY).is_dir():
        return True
    if any(p.suffix.lower() == ".jsonl" for p in _children(home / "long")):
        return True
    # Archive folders of today carry a manifest beside each partition; the predecessor's hold the Parquet file alone.
    folders = [p for p in _children(home / "archive") if p.name.startswith("project=") and p.is_dir()]
    return any(len(list(path.parent.iterdir())) == 1 for folder in folders for path in _month_files(folder))


def _short_file(root: Path, folder: str) -> Path:
    return root / folder / "short.jsonl"


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), key=lambda path: path.name)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _month_files(folder: Path) -> list[Path]:
    return [p / "entries.parquet" for p in _children(folder) if (p / "entries.parquet").is_file()]


def _is_live(path: Path) -> bool:
    # Copies that the predecessor's own repairs left, and temporary files of an interrupted rewrite.
    name = path.name
    return path.is_file() and not name.startswith(".") and ".bak." not in name and ".disabled" not in name


def _same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return left == right
