"""Home, project root, marker, slug, session, agent, configuration: what they are, and why that answer.

Everything here is decided from the environment, the file system and a flag; nothing opens the store. One module each:

    home      where the store is; how a written path becomes a real one
    git       where a repository begins and whose checkout it is, from files alone
    root      the folder a call belongs to
    marker    `.qiju/config.json`, whose UUID is the project's identity
    slug      from a name to its file-safe display name
    identity  session, agent, and the project a call means
    config    `config.toml` and a marker's settings (import `qiju.place.config` itself: few calls need it)
"""

from __future__ import annotations

from qiju.place.home import home, user_folder, working_directory
from qiju.place.identity import (
    AGENT_MARKS,
    SESSION_VARIABLES,
    ProjectRef,
    Session,
    agent,
    check_session,
    host_of,
    resolve_project,
    root_name,
    session,
)
from qiju.place.marker import Marker, is_uuid, new_uuid, read_marker, write_marker
from qiju.place.root import Root, find_root, marker_path
from qiju.place.slug import distinct_slug, name_key, same_name, slugify

__all__ = [
    "AGENT_MARKS",
    "SESSION_VARIABLES",
    "Marker",
    "ProjectRef",
    "Root",
    "Session",
    "agent",
    "check_session",
    "distinct_slug",
    "find_root",
    "home",
    "host_of",
    "is_uuid",
    "marker_path",
    "name_key",
    "new_uuid",
    "read_marker",
    "resolve_project",
    "root_name",
    "same_name",
    "session",
    "slugify",
    "user_folder",
    "working_directory",
    "write_marker",
]
