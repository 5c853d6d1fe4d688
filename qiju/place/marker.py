"""The marker `.qiju/config.json`: which project a folder is.

The UUID is the identity and survives renames and moves; `project` is the slug it is shown under. The predecessor's
markers have no UUID: they are read as they are and get one when next written. What Qiju does not know in a marker is
kept, so that two versions can share one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from qiju.errors import BadConfiguration, InvalidJson, Refused, StorageFailed
from qiju.jsontext import JsonValue, parse, pretty
from qiju.place.root import MARKER_FOLDER, marker_path
from qiju.place.slug import slugify
from qiju.values import NamedTuple

SCHEMA_VERSION = 2
"""1 is the predecessor's, without `uuid`. A higher number is kept as it is: new keys are no reason to refuse."""

_LARGEST = 1024 * 1024
_REPAIR = "Correct the file, or move it away and run `qiju init --project NAME` again."


_NOTHING: Mapping[str, JsonValue] = MappingProxyType({})


class Marker(NamedTuple):
    """What a marker says. `uuid` is None only in a predecessor's marker; `extra` holds every key Qiju does not know.

    `settings` has the keys of `config.toml` (see `qiju.place.config`), for this project alone.
    """

    project: str
    uuid: str | None = None
    enabled_agents: tuple[str, ...] = ()
    default_agent: str | None = None
    settings: Mapping[str, JsonValue] = _NOTHING
    schema_version: int = SCHEMA_VERSION
    extra: Mapping[str, JsonValue] = _NOTHING

    def to_json(self) -> dict[str, JsonValue]:
        """The marker as it is written; keys that say nothing are left out."""
        known: dict[str, JsonValue] = {
            "schema_version": self.schema_version,
            "project": self.project,
            "uuid": self.uuid,
        }
        known["enabled_agents"] = list(self.enabled_agents)
        if self.default_agent is not None:
            known["default_agent"] = self.default_agent
        if self.settings:
            known["settings"] = dict(self.settings)
        return known | {key: value for key, value in self.extra.items() if key not in known}


def read_marker(root: Path) -> Marker | None:
    """The marker of a root, or None when there is none. Raises BadConfiguration, naming the file, if it is damaged."""
    path = marker_path(root)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadConfiguration(
            f"{path}: cannot be read ({error.strerror})", hint="Check the file's permissions."
        ) from error
    if len(data) > _LARGEST:
        raise BadConfiguration(f"{path}: is far too large for a marker", hint=_REPAIR)
    return _parsed(data, path)


def write_marker(root: Path, marker: Marker) -> Marker:
    """Write the marker of a root whole or not at all, and return it as written: with a UUID, in any case.

    Raises Refused when `.qiju` is a symbolic link (a cloned repository could point it anywhere), StorageFailed when the
    disk does not take it.
    """
    from qiju.files import FileReplacement

    written = marker._replace(
        project=slugify(marker.project),
        uuid=marker.uuid or new_uuid(),
        schema_version=max(marker.schema_version, SCHEMA_VERSION),
    )
    path = marker_path(root)
    text = pretty(written.to_json()) + "\n"
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageFailed(f"{path.parent}: cannot be made ({error.strerror})") from error
    if path.parent.is_symlink():
        raise Refused(
            f"{path.parent} is a symbolic link; nothing is written through it",
            hint=f"Replace the link {MARKER_FOLDER} by a folder.",
        )
    with FileReplacement(path, mode=0o644) as file:
        file.write(text.encode("utf-8"))
    return written


def new_uuid() -> str:
    """A random (version 4) UUID. The standard module costs more to import than all the rest of this package."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def is_uuid(text: str) -> bool:
    """Whether `text` is a UUID in its usual spelling, upper or lower case."""
    return (
        len(text) == 36
        and all(text[at] == "-" for at in (8, 13, 18, 23))
        and all(digit in "0123456789abcdefABCDEF" for digit in text.replace("-", "", 4))
        and text.count("-") == 4
    )


def _parsed(data: bytes, path: Path) -> Marker:
    try:
        value = parse(data, name=str(path))
    except InvalidJson as error:
        raise BadConfiguration(str(error), hint=_REPAIR) from error
    if not isinstance(value, dict):
        raise BadConfiguration(f"{path}: is not a JSON object", hint=_REPAIR)
    return _from_object(value, path)


def _from_object(value: dict[str, JsonValue], path: Path) -> Marker:
    def wrong(key: str, expected: str) -> BadConfiguration:
        return BadConfiguration(f"{path}: {key} is not {expected}", hint=_REPAIR)

    rest = dict(value)
    project = rest.pop("project", None)
    if not isinstance(project, str) or not project.strip():
        raise wrong("project", "the name of a project")
    uuid = rest.pop("uuid", None)
    if uuid is not None and not (isinstance(uuid, str) and is_uuid(uuid)):
        raise wrong("uuid", "a UUID")
    agents = rest.pop("enabled_agents", [])
    names = [agent for agent in agents if isinstance(agent, str)] if isinstance(agents, list) else None
    if names is None or names != agents:
        raise wrong("enabled_agents", "a list of names")
    default_agent = rest.pop("default_agent", None)
    if default_agent is not None and not isinstance(default_agent, str):
        raise wrong("default_agent", "a name")
    settings = rest.pop("settings", {})
    if not isinstance(settings, dict):
        raise wrong("settings", "an object")
    version = rest.pop("schema_version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise wrong("schema_version", "a whole number from 1")
    return Marker(
        project=slugify(project),
        uuid=uuid.lower() if uuid else None,
        enabled_agents=tuple(names),
        default_agent=default_agent or None,
        settings=settings,
        schema_version=version,
        extra=rest,
    )
