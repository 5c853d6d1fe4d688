"""Settings: `$QIJU_HOME/config.toml` for everything a user does, and `settings` in a marker for one project.

Both have the same keys, and one table below says what each key is, what it may hold and what it is when nobody sets it.
A marker's value outweighs the file's. A value that cannot be right is refused with file and key, because a threshold
misread is worse than a command that stops; a key nobody knows is only warned of, because a newer Qiju may know it.

A marker may come with a cloned repository, so it can add redaction rules but not exempt anything from redaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from qiju.errors import BadConfiguration
from qiju.jsontext import Number
from qiju.place.marker import Marker
from qiju.place.root import marker_path
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONFIG_NAME = "config.toml"
_LARGEST = 1024 * 1024
_LARGEST_NUMBER = 1_000_000


class SearchConfig(NamedTuple):
    """`timeout`: seconds a regular expression may run."""

    timeout: float = 10.0


class MaintainConfig(NamedTuple):
    """When `qiju maintain` moves and sweeps. Days and hours count from a record's instant or a file's last write."""

    short_days: float = 14.0
    staging_hours: float = 24.0
    archive_days: float = 92.0
    archive_mib: float = 2.0
    archive_always_days: float = 366.0
    archive_pressure_days: float = 31.0
    archive_pressure_mib: float = 50.0


class RedactionConfig(NamedTuple):
    """What the redaction engine is told. It checks `rules`, tables as they were written, and names a bad one by its id.

    `allow` are whole values that rules of low confidence leave alone; `scanner` adds the second engine (an extra).
    """

    rules: tuple[Mapping[str, object], ...] = ()
    allow: tuple[str, ...] = ()
    scanner: bool = False


class Config(NamedTuple):
    """All settings, each with a usable value. `lock_wait` is in seconds; `agent` is empty when none is set.

    `warnings` are sentences for standard error: keys that are not known, with the nearest one that is.
    """

    lock_wait: float = 30.0
    agent: str = ""
    search: SearchConfig = SearchConfig()
    maintain: MaintainConfig = MaintainConfig()
    redaction: RedactionConfig = RedactionConfig()
    warnings: tuple[str, ...] = ()


class _Wrong(Exception):
    """What a value should have been; the caller knows file and key."""


class Setting(NamedTuple):
    """One key: how its value is read, what it means (for the reference page), and whether a marker may set it."""

    read: Callable[[Any], Any]
    meaning: str
    in_marker: bool = True


def _number(value: Any) -> float:
    if isinstance(value, Number):
        value = float(value.token)
    # Larger numbers would overflow the clocks and sizes they are compared with.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LARGEST_NUMBER:
        raise _Wrong(f"a number from 0 to {_LARGEST_NUMBER}")
    return float(value)


def _above_zero(value: Any) -> float:
    number = _number(value)
    if number == 0:
        raise _Wrong("a number above 0")
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise _Wrong("one line of text")
    return value.strip()


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _Wrong("a list of non-empty texts")
    return tuple(value)


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _rules(value: Any) -> tuple[Mapping[str, object], ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _Wrong("a list of tables, one a rule")
    return tuple(value)


SETTINGS: dict[str, Setting] = {
    "lock_wait": Setting(_number, "seconds to wait for another process's write lock"),
    "agent": Setting(_text, "the agent's name where no flag, variable, record or marker gives one"),
    "search.timeout": Setting(_above_zero, "seconds a regular expression may run"),
    "maintain.short_days": Setting(_number, "days after which a record leaves the short tier"),
    "maintain.staging_hours": Setting(_number, "hours after which an untouched draft is swept"),
    "maintain.archive_days": Setting(_number, "days after which a large month of the long tier is archived"),
    "maintain.archive_mib": Setting(_number, "MiB above which a month counts as large"),
    "maintain.archive_always_days": Setting(_number, "days after which a month is archived whatever its size"),
    "maintain.archive_pressure_days": Setting(_number, "days after which months go while the long tier is too large"),
    "maintain.archive_pressure_mib": Setting(_number, "MiB above which a project's long tier counts as too large"),
    "redaction.rules": Setting(_rules, "rules of your own, added to the built-in ones"),
    "redaction.allow": Setting(_texts, "whole values that rules of low confidence leave alone", in_marker=False),
    "redaction.scanner": Setting(_switch, "true adds the second engine (the extra qiju[scanner])", in_marker=False),
}
"""Every key there is, dotted. The reference page is checked against this table."""

_TABLES = {key.partition(".")[0] for key in SETTINGS if "." in key}
_ADDED_UP = frozenset(["redaction.rules"])


def load_config(home: Path, marker: Marker | None = None, root: Path | None = None) -> Config:
    """The settings in force: a marker's over the file's over the defaults; lists of rules add up.

    `root` is only for messages: where the marker lies. A missing file is no fault. Raises BadConfiguration, naming file
    and key, for a file that is not TOML and for a value that cannot be right.
    """
    warnings: list[str] = []
    values: dict[str, Any] = {}
    path = home / CONFIG_NAME
    for key, value in _known(_read(path), str(path), warnings, marker=False):
        values[key] = value
    if marker is not None and marker.settings:
        where = f"settings in {marker_path(root) if root is not None else 'the marker'}"
        for key, value in _known(marker.settings, where, warnings, marker=True):
            values[key] = values.get(key, ()) + value if key in _ADDED_UP else value
    if not values and not warnings:
        return Config()
    return _filled(values, tuple(warnings))


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadConfiguration(f"{path}: cannot be read ({error.strerror})") from error
    if len(data) > _LARGEST:
        raise BadConfiguration(f"{path}: is far too large for a configuration")
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"{path}: is not UTF-8 (byte {error.start})") from error
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise BadConfiguration(f"{path}: is not TOML ({error})", hint="See the configuration reference.") from error


def _known(given: Mapping[str, Any], where: str, warnings: list[str], *, marker: bool) -> Iterator[tuple[str, Any]]:
    """The settings among `given`, dotted and read; what is not one goes to `warnings`."""
    for key, value in _dotted(given, where):
        setting = SETTINGS.get(key)
        if setting is None:
            warnings.append(f"{where}: {key} is not a setting{_nearest(key)}")
        elif marker and not setting.in_marker:
            warnings.append(f"{where}: {key} is left out, because only {CONFIG_NAME} in the home may set it")
        else:
            try:
                yield key, setting.read(value)
            except _Wrong as wrong:
                raise BadConfiguration(f"{where}: {key} is not {wrong}") from None


def _dotted(given: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if name in _TABLES:
            if not isinstance(value, dict):
                raise BadConfiguration(f"{where}: {name} is not a table")
            for key, inner in value.items():
                yield f"{name}.{key}", inner
        else:
            yield name, value


def _nearest(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, SETTINGS, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _filled(values: Mapping[str, Any], warnings: tuple[str, ...]) -> Config:
    def part(table: str) -> dict[str, Any]:
        prefix = table + "."
        return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}

    return Config(
        **{key: value for key, value in values.items() if "." not in key},
        search=SearchConfig(**part("search")),
        maintain=MaintainConfig(**part("maintain")),
        redaction=RedactionConfig(**part("redaction")),
        warnings=warnings,
    )
