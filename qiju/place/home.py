"""Where Qiju keeps its store, and how a path that a user wrote becomes a real one.

All paths that leave this package are absolute and free of symbolic links: two spellings of one folder must never look
like two stores or two projects.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qiju.errors import QijuError, StorageFailed, UsageError


def home(flag: str | None, env: Mapping[str, str]) -> Path:
    """The store's folder: `--home`, else `$QIJU_HOME` (empty counts as unset), else the user's data folder.

    The folder need not exist. Raises UsageError for an empty flag or a `~name` nobody has, StorageFailed when the path
    is something other than a folder.
    """
    if flag is not None and not flag.strip():
        raise UsageError("--home is empty", hint="Give a folder, or leave --home out.")
    given = flag or env.get("QIJU_HOME", "")
    if given.strip():
        folder = real_path(given, env, named="--home" if flag else "QIJU_HOME")
    else:
        # Imported here because agents' calls usually name a home, and then never pay for it.
        from platformdirs import user_data_path

        folder = user_data_path("qiju", appauthor=False)
        if not folder.is_absolute():
            raise QijuError("the user's data folder cannot be found", hint="Set QIJU_HOME or pass --home.")
        folder = without_links(folder, "the user's data folder")
    if folder.exists() and not folder.is_dir():
        raise StorageFailed(f"the store's home {folder} is not a folder", hint="Set QIJU_HOME or pass --home.")
    return folder


def real_path(text: str, env: Mapping[str, str], *, named: str) -> Path:
    """`text` as an absolute path without links; `~` is the environment's home, relative is below the working folder.

    `named` says where the text came from, for the message of a UsageError.
    """
    path = Path(text)
    if path.parts and path.parts[0] == "~":
        user = user_folder(env)
        if user is None:
            raise UsageError(f"{named}: there is no home folder that ~ could stand for")
        path = user.joinpath(*path.parts[1:])
    elif text.startswith("~"):
        try:
            path = path.expanduser()
        except RuntimeError as error:
            raise UsageError(f"{named}: no user's home folder is known for {path.parts[0]}") from error
    if not path.is_absolute():
        path = working_directory() / path
    return without_links(path, named)


def user_folder(env: Mapping[str, str]) -> Path | None:
    """The user's own folder, without links, or None where the system knows none."""
    text = env.get("HOME") or env.get("USERPROFILE")
    try:
        return (Path(text) if text else Path.home()).resolve()
    except (OSError, RuntimeError):
        return None


def working_directory() -> Path:
    """The current folder without links. Raises QijuError when it has been deleted or cannot be entered."""
    try:
        return Path.cwd().resolve()
    except OSError as error:
        raise QijuError(
            "the working directory does not exist any more or cannot be read",
            hint="Change into an existing folder and call again.",
        ) from error


def without_links(path: Path, named: str) -> Path:
    """The real path behind `path`, which need not exist. Raises UsageError, naming `named`, for a loop of links."""
    wrong = UsageError(f"{named}: {path} cannot be followed (a loop of links, or not allowed)")
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as error:
        raise wrong from error
    if real.is_symlink():  # Python 3.13 and newer give a loop back instead of an error
        raise wrong
    return real
