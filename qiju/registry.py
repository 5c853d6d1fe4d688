"""The registry of project folders and the manifest of written files: the only home of their SQL.

`project_root` says which folders belong to which project and which hosts were set up there. `file_manifest` has one row
for every file that Qiju wrote outside its own database, so that updating, uninstalling and redacting know their files.
Reading works on any connection; every change is made inside the caller's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    pass


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
