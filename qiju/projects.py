"""Projects and the folders that belong to them, as the store knows them.

`qiju.place` says what a call's folder claims; here that claim meets the store. The UUID decides where there is one,
then the registered folder, then the name. A folder whose name is taken by a project with other folders gets a project
of its own (`name-2`), and is told.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from qiju.jsontext import JsonValue
from qiju.place.slug import distinct_slug
from qiju.values import NamedTuple


class Home(NamedTuple):
    """Where a record belongs: the name, the marker's UUID ('' without one) and the root folder ('' without one)."""

    slug: str
    uuid: str = ""
    root: str = ""
    named: bool = False  # --project: the name decides, the folder only joins it

    def to_json(self) -> dict[str, JsonValue]:
        return {"slug": self.slug, "uuid": self.uuid, "root": self.root, "named": self.named}

    @classmethod
    def from_json(cls, value: JsonValue) -> Home | None:
        if not isinstance(value, dict) or not isinstance(slug := value.get("slug"), str) or not slug:
            return None
        return cls(slug, str(value.get("uuid", "")), str(value.get("root", "")), value.get("named") is True)


class Project(NamedTuple):
    """A project of the store. `notes` are for the person: what was joined or renamed on the way."""

    slug: str
    uuid: str
    notes: tuple[str, ...] = ()


def find(connection: apsw.Connection, home_of: Home) -> Project | None:
    """The project a call means, when the store has it; nothing is created."""
    if home_of.uuid and (known := _one(connection, "uuid = ?", home_of.uuid)):
        return known
    if not home_of.uuid and not home_of.named and home_of.root:
        registered = _one(connection, "slug = (SELECT project FROM project_root WHERE path = ?)", home_of.root)
        if registered:
            return registered
    known = _one(connection, "slug = ?", home_of.slug)
    if known is None or home_of.named:
        return known
    if home_of.uuid:
        return None  # the name belongs to another project
    return known if not _other_roots(connection, known.slug, home_of.root) else None


def ensure(connection: apsw.Connection, home_of: Home) -> Project:
    """The project a record goes to, created or joined, its folder registered. Only inside a write."""
    notes: tuple[str, ...] = ()
    project = find(connection, home_of)
    if project is None:
        slug = home_of.slug
        if _one(connection, "slug = ?", slug):
            taken = {str(row[0]) for row in connection.execute("SELECT slug FROM project")}
            slug = distinct_slug(home_of.slug, taken)
            notes = (
                f"another project is called {home_of.slug}; this one is called {slug}"
                " ('qiju init --project NAME' gives it another name)",
            )
        if home_of.uuid:
            connection.execute(
                "INSERT INTO project (slug, uuid, name) VALUES (?, ?, ?)", (slug, home_of.uuid, home_of.slug)
            )
        else:
            connection.execute("INSERT INTO project (slug, name) VALUES (?, ?)", (slug, home_of.slug))
        created = _one(connection, "slug = ?", slug)
        assert created is not None
        project = created
    if home_of.root:
        connection.execute(
            "INSERT INTO project_root (path, project) VALUES (?1, ?2) ON CONFLICT (path) DO UPDATE SET project = ?2",
            (home_of.root, project.slug),
        )
    return project._replace(notes=notes)


def _one(connection: apsw.Connection, where: str, value: str) -> Project | None:
    row = connection.execute(f"SELECT slug, uuid FROM project WHERE {where}", (value,)).fetchone()
    return None if row is None else Project(str(row[0]), str(row[1]))


def _other_roots(connection: apsw.Connection, slug: str, root: str) -> bool:
    """Whether the project has another folder that still exists: a moved folder takes its project along."""
    found = connection.execute("SELECT path FROM project_root WHERE project = ? AND path <> ?", (slug, root))
    return any(Path(row[0]).is_dir() for row in found)
