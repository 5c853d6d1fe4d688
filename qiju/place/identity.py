"""Who writes, in which session, and for which project.

Each of the three has one list of places to ask, in order, and says where its answer came from.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from qiju.errors import MarkerConflict, NoProject, UsageError
from qiju.place.marker import Marker, new_uuid, read_marker
from qiju.place.root import Root
from qiju.place.slug import name_key, slugify
from qiju.values import NamedTuple

SESSION_VARIABLES = ("QIJU_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "AGENT_SESSION_ID")
"""Variables that hosts really set for what they start, asked in this order."""

AGENT_MARKS = (
    ("CLAUDECODE", "claude"),
    ("CODEX_THREAD_ID", "codex"),
    ("CODEX_SANDBOX", "codex"),
    ("KIRO_SESSION_ID", "kiro"),
    ("CURSOR_AGENT", "cursor"),
    ("GEMINI_CLI", "gemini"),
    ("COPILOT_CLI", "copilot"),
    ("OPENCODE", "opencode"),
)
"""Variables that show which host started this process, and the host's name; the first that is set decides.

An excerpt of the host table (`qiju.hosts`) for `log`, which does without the rest of it; a test compares the two.
"""

LONGEST_NAME = 200


class Session(NamedTuple):
    """`id` is one word without `:`; `source` is `flag`, the name of a variable, or `generated`."""

    id: str
    source: str


class ProjectRef(NamedTuple):
    """The project that a call means.

    `how` is `flag`, `marker`, `git` or `env`. `uuid` is known only from a marker; without one the store looks the
    project up by `root` (`git`, `env`) or by `slug` (`flag`) and, at the first `log`, gives it one. `root` is None when
    the call's folder says nothing about the project: a flag from elsewhere.
    """

    slug: str
    uuid: str | None
    root: Path | None
    how: str
    marker: Marker | None = None


def session(flag: str | None, env: Mapping[str, str], fresh: Callable[[], str] = new_uuid) -> Session:
    """The session: `--session-id`, else the first of `SESSION_VARIABLES` that is not blank, else a fresh UUID.

    Raises UsageError, naming the flag or variable, for a value that could not be half of an id.
    """
    if flag is not None:
        return Session(check_session(flag, "--session-id"), "flag")
    for name in SESSION_VARIABLES:
        value = env.get(name, "")
        if value.strip():
            return Session(check_session(value, name), name)
    return Session(fresh(), "generated")


def check_session(text: str, named: str) -> str:
    """`text` without outer white space, as a session id. Raises UsageError, naming `named`, when it cannot be one.

    A session id is one word of at most `LONGEST_NAME` characters without `:`, which ends it in `<session>:<n>`, and
    does not begin with `-`, so that no command takes it for an option.
    """
    value = _check_word(text, named, "session id")
    if ":" in value or any(character.isspace() for character in value):
        raise UsageError(f"{named}: a session id is one word without white space and without ':'")
    if value.startswith("-"):
        raise UsageError(f"{named}: a session id cannot begin with '-'")
    return value


def agent(
    flag: str | None,
    env: Mapping[str, str],
    marker: Marker | None,
    *,
    written: str | None = None,
    configured: str | None = None,
) -> str:
    """The agent's name, from the first place that gives one.

    `--agent`, `$QIJU_AGENT`, what the record itself says (`written`), the host whose mark is in the environment, the
    marker's default, the configuration's (`configured`), `unknown`.

    Raises UsageError for a blank flag, control characters or more than `LONGEST_NAME` characters.
    """
    if flag is not None:
        return _check_word(flag, "--agent", "agent")
    given = (
        (env.get("QIJU_AGENT"), "QIJU_AGENT"),
        (written, "agent"),
        (host_of(env), "agent"),
        (marker.default_agent if marker else None, "default_agent in the marker"),
        (configured, "agent in the configuration"),
    )
    for value, named in given:
        if value and value.strip():
            return _check_word(value, named, "agent")
    return "unknown"


def host_of(env: Mapping[str, str], marks: Iterable[tuple[str, str]] = AGENT_MARKS) -> str | None:
    """The host whose mark the environment carries, or None."""
    for variable, name in marks:
        if env.get(variable, "").strip():
            return name
    return None


def resolve_project(flag: str | None, root: Root, *, reading: bool = False) -> ProjectRef:
    """The project a call means: `--project`, which works anywhere, else what the root's marker or repository says.

    Nothing is created. With `reading` a flag may name any project, whatever the marker says. Raises MarkerConflict when
    a writing call's `--project` is not the marker's project, NoProject in a bare directory without a flag, UsageError
    for a blank flag, BadConfiguration for a damaged marker.
    """
    if flag is not None and not name_key(flag):
        raise UsageError("--project is empty", hint="Give the project a name, or leave --project out.")
    if flag is not None and reading:
        return _joined(slugify(flag), root, None)
    marker = read_marker(root.path)
    if flag is not None:
        slug = slugify(flag)
        if marker is not None and marker.project != slug:
            raise MarkerConflict(
                f"{root.path} belongs to the project {marker.project!r}, but --project names {slug!r}",
                hint="Leave --project out, or call from another folder.",
            )
        return _joined(slug, root, marker)
    if marker is not None:
        return ProjectRef(marker.project, marker.uuid, root.path, "marker", marker)
    if root.kind == "bare":
        raise NoProject(
            f"{root.path} is neither a Git repository nor marked as a project",
            hint="Name one with --project NAME, or search all with --scope all."
            if reading
            else "Run `qiju init` here, or name the project with --project NAME.",
        )
    return ProjectRef(slugify(root_name(root.path)), None, root.path, root.kind)


def root_name(root: Path) -> str:
    """The name a project gets from its folder: the folder's own, for a bare repository without `.git` at the end."""
    return root.name.removesuffix(".git") or root.name or "root"


def _joined(slug: str, root: Root, marker: Marker | None) -> ProjectRef:
    if marker is not None:
        return ProjectRef(slug, marker.uuid, root.path, "flag", marker)
    return ProjectRef(slug, None, None, "flag")


def _check_word(text: str, named: str, what: str) -> str:
    value = text.strip()
    if not value:
        raise UsageError(f"{named}: the {what} is empty")
    if len(value) > LONGEST_NAME:
        raise UsageError(f"{named}: the {what} is longer than {LONGEST_NAME} characters")
    if not (value.isascii() and value.isprintable()) and any(unicodedata.category(c)[0] in "C" for c in value):
        raise UsageError(f"{named}: the {what} holds a line end, a control or an invisible character")
    return value
