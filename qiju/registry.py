"""The registry of project folders and the manifest of written files: the only home of their SQL.

`project_root` says which folders belong to which project and which hosts were set up there. `file_manifest` has one row
for every file that Qiju wrote outside its own database, so that updating, uninstalling and redacting know their files.
Every method is one transaction, or part of the caller's when one is open.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju import projects
from qiju.projects import Home, Project

if TYPE_CHECKING:
    from qiju.db import Database


class ManifestRow(NamedTuple):
    """One written file. `root` is its project, or empty for the user's level; `owners` are the hosts it serves.

    `detail` may hold `made` (folders made for it), `pieces` (text inserted into a file of somebody else), `created`
    (the file was not there before), `roots` (projects that share it) and `of` (the original of a backup).
    """

    path: str
    kind: str
    owners: tuple[str, ...]
    root: str
    sha256: str
    detail: dict[str, Any]


class RegisteredRoot(NamedTuple):
    """A folder of a project; `hosts` are those that `init` set up there."""

    path: str
    project: str
    uuid: str
    hosts: tuple[str, ...]


class Registry:
    """Both tables on one open store."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def transaction(self) -> AbstractContextManager[object]:
        """One transaction around several changes."""
        return self._db.write()

    # --- projects and their folders ----------------------------------------------------------------------------------

    def roots(self) -> list[RegisteredRoot]:
        """Every registered folder, by path."""
        return self._roots("ORDER BY r.path", ())

    def root(self, path: str) -> RegisteredRoot | None:
        """The entry of one folder."""
        found = self._roots("WHERE r.path = ?", (path,))
        return found[0] if found else None

    def roots_of(self, slug: str) -> list[RegisteredRoot]:
        """The folders of one project."""
        return self._roots("WHERE r.project = ? ORDER BY r.path", (slug,))

    def _roots(self, where: str, bindings: tuple[str, ...]) -> list[RegisteredRoot]:
        joined = "project_root r JOIN project p ON p.slug = r.project"
        sql = f"SELECT r.path, r.project, p.uuid, r.hosts FROM {joined} {where}"
        with self._db.read() as connection:
            return [
                RegisteredRoot(path, project, uuid, tuple(json.loads(hosts)))
                for path, project, uuid, hosts in connection.execute(sql, bindings)
            ]

    def uuid_of(self, slug: str) -> str | None:
        """The identity behind a slug, or None when no project has it."""
        with self._db.read():
            uuid: str | None = self._db.value("SELECT uuid FROM project WHERE slug = ?", (slug,))
            return uuid

    def find(self, slug: str, path: str) -> Project | None:
        """The project that the folder `path`, called `slug`, belongs to; None when it would be a new one."""
        with self._db.read() as connection:
            return projects.find(connection, Home(slug, root=path))

    def slugs(self) -> set[str]:
        """Every slug in use."""
        with self._db.read() as connection:
            return {slug for (slug,) in connection.execute("SELECT slug FROM project")}

    def register(self, path: str, slug: str, uuid: str, hosts: Iterable[str]) -> Project:
        """Make `path` a folder of the project `uuid`, which is created when it is new; see `projects.ensure`."""
        with self._db.write() as connection:
            project = projects.ensure(connection, Home(slug, uuid, path))
            self.set_hosts(path, hosts)
        return project

    def set_hosts(self, path: str, hosts: Iterable[str]) -> None:
        """Change which hosts a registered folder has."""
        with self._db.write() as connection:
            connection.execute("UPDATE project_root SET hosts = ? WHERE path = ?", (json.dumps(list(hosts)), path))

    def forget_root(self, path: str) -> None:
        """Drop a folder that is gone, with the manifest rows of files in it. Its project and records stay."""
        with self._db.write() as connection:
            connection.execute("DELETE FROM project_root WHERE path = ?", (path,))
            connection.execute("DELETE FROM file_manifest WHERE root = ?", (path,))

    def session_facts(self, claim: Home, session: str) -> tuple[str, int, str, int, bool]:
        """For a reminder: the project's slug, its records, the day of the latest, how many have agreed next steps, and
        whether `session` has a record. A project that the store does not know has none."""
        with self._db.read() as connection:
            project = projects.find(connection, claim)
            if project is None:
                return claim.slug, 0, "", 0, False
            counted = connection.execute(
                "SELECT count(*), coalesce(max(substr(ts, 1, 10)), ''), total(next_steps <> '[]')"
                " FROM record WHERE project = ?",
                (project.slug,),
            ).fetchone()
            records, latest, steps = counted or (0, "", 0)
            own = self._db.value("SELECT 1 FROM record WHERE session_id = ? LIMIT 1", (session,)) if session else None
        return project.slug, records, latest, int(steps), own is not None

    # --- the manifest ------------------------------------------------------------------------------------------------

    def rows(self) -> dict[str, ManifestRow]:
        """Every row, by path."""
        sql = "SELECT path, kind, owner, root, sha256, detail FROM file_manifest ORDER BY path"
        with self._db.read() as connection:
            return {
                path: ManifestRow(
                    path, kind, tuple(owner.split(",")) if owner else (), root, sha256, json.loads(detail)
                )
                for path, kind, owner, root, sha256, detail in connection.execute(sql)
            }

    def store_rows(self, rows: Iterable[ManifestRow], forget: Iterable[str] = ()) -> None:
        """Write and drop manifest rows, all or none."""
        with self._db.write() as connection:
            connection.executemany("DELETE FROM file_manifest WHERE path = ?", [(path,) for path in forget])
            connection.executemany(
                "INSERT INTO file_manifest (path, kind, owner, root, sha256, detail) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (path) DO UPDATE SET kind = excluded.kind, owner = excluded.owner, root = excluded.root,"
                " sha256 = excluded.sha256, detail = excluded.detail, written_at = excluded.written_at",
                [
                    (row.path, row.kind, ",".join(row.owners), row.root, row.sha256, json.dumps(row.detail))
                    for row in rows
                ],
            )
