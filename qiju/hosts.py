"""The host table: everything Qiju knows about the programs that run agents, as data.

One row per host. Installing, updating, removing, detecting, scanning and the reference page read this table and
nothing else; a new host is a new row, never a branch. Paths are written with `/` and are relative: project paths to the
project's root, user paths to the host's own folder (`home`), which an environment variable may move. Several hosts may
name one folder; they then share one copy of each skill.

`leftovers` lists what the predecessor left behind for a host, so that `uninstall` can take it away: marked blocks in
instruction files, single generated files, and skill folders. A leftover file goes only when it still carries the
predecessor's mark; a block goes alone and the rest of its file stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from qiju.errors import UsageError

SKILL_FILE = "SKILL.md"


class HookFile(NamedTuple):
    """Where a host reads hooks and how it wants them.

    `events` maps Qiju's event to the host's name for it. `layout` names a way of writing an entry and `answer` a way of
    phrasing the hook's JSON; both are rows of `qiju.install.hookfile` and `qiju.install.reminder`.
    """

    project: str
    user: str
    events: tuple[tuple[str, str], ...]
    layout: str
    answer: str
    note: str = ""


class Leftover(NamedTuple):
    """Something the predecessor wrote. `form` is `block`, `file` or `skill`; `level` is `project` or `user`."""

    form: str
    level: str
    path: str
    mark: str = ""


class Host(NamedTuple):
    """One host.

    `marks` are environment variables that the host sets for the commands it runs (`NAME` or `NAME=value`);
    `session_variable` is the one that carries its session id, or empty. `traces` are folders in a project that show the
    host is used there. `home_variable` is a variable that really moves `home`, or empty.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    project_skills: str
    user_skills: str
    home: str
    home_variable: str
    marks: tuple[str, ...]
    session_variable: str
    traces: tuple[str, ...]
    hooks: HookFile | None
    leftovers: tuple[Leftover, ...]
    readers: str


BLOCK = "qiju-block"
_SKILL_NAMES = ("qiju", "qiju-log", "qiju-search", "qiju-review")


def _old_skills(level: str, folder: str, names: Iterable[str] = ("qiju",)) -> tuple[Leftover, ...]:
    return tuple(Leftover("skill", level, f"{folder}/{name}") for name in names)


HOSTS: tuple[Host, ...] = (
    Host(
        name="claude",
        title="Claude Code",
        aliases=("claude-code", "claudecode"),
        project_skills=".claude/skills",
        user_skills="skills",
        home=".claude",
        home_variable="CLAUDE_CONFIG_DIR",
        marks=("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"),
        session_variable="CLAUDE_CODE_SESSION_ID",
        traces=(".claude",),
        hooks=HookFile(
            project=".claude/settings.local.json",
            user="settings.json",
            events=(("session-start", "SessionStart"), ("session-end", "SessionEnd")),
            layout="groups",
            answer="claude",
            note="in a project the hook goes into the personal settings file, which is not shared with the team",
        ),
        leftovers=(
            Leftover("block", "project", "CLAUDE.md", BLOCK),
            Leftover("block", "user", "CLAUDE.md", BLOCK),
            *_old_skills("project", ".claude/skills"),
            *_old_skills("user", "skills"),
        ),
        readers="Claude Code",
    ),
    Host(
        name="codex",
        title="Codex",
        aliases=("codex-cli", "openai-codex"),
        project_skills=".agents/skills",
        user_skills="~/.agents/skills",
        home=".codex",
        home_variable="CODEX_HOME",
        marks=("CODEX_THREAD_ID", "CODEX_SANDBOX"),
        session_variable="CODEX_THREAD_ID",
        traces=(".codex",),
        hooks=HookFile(
            project=".codex/hooks.json",
            user="hooks.json",
            events=(("session-start", "SessionStart"),),
            layout="groups",
            answer="claude",
            note="Codex asks whether to trust a new hook and loads a project's hooks only in trusted projects;"
            " older releases need `codex_hooks = true` under `[features]`",
        ),
        leftovers=(
            Leftover("block", "project", "AGENTS.md", BLOCK),
            Leftover("block", "user", "AGENTS.md", BLOCK),
            *_old_skills("project", ".agents/skills"),
            *_old_skills("user", "~/.agents/skills"),
            *_old_skills("user", "skills", _SKILL_NAMES),
        ),
        readers="Codex",
    ),
    Host(
        name="kiro",
        title="Kiro",
        aliases=("kiro-cli",),
        project_skills=".kiro/skills",
        user_skills="skills",
        home=".kiro",
        home_variable="KIRO_HOME",
        marks=("KIRO_SESSION_ID", "TERM_PROGRAM=kiro"),
        session_variable="",
        traces=(".kiro",),
        hooks=None,
        leftovers=(
            *(
                Leftover("file", level, f"{prefix}{path}", "Qiju")
                for level, prefix in (("project", ".kiro/"), ("user", ""))
                for path in ("steering/qiju.md", "agents/qiju.json", "prompts/qiju-agent-prompt.md")
            ),
            *_old_skills("project", ".kiro/skills"),
            *_old_skills("user", "skills"),
        ),
        readers="Kiro IDE and CLI",
    ),
    Host(
        name="cursor",
        title="Cursor",
        aliases=("cursor-agent", "cursor-cli"),
        project_skills=".cursor/skills",
        user_skills="skills",
        home=".cursor",
        home_variable="",
        marks=("CURSOR_AGENT",),
        session_variable="",
        traces=(".cursor",),
        hooks=HookFile(
            project=".cursor/hooks.json",
            user="hooks.json",
            events=(("session-start", "sessionStart"),),
            layout="flat",
            answer="cursor",
        ),
        leftovers=(
            Leftover("file", "project", ".cursor/rules/qiju.mdc", "Qiju"),
            Leftover("file", "user", "rules/qiju.mdc", "Qiju"),
            *_old_skills("project", ".cursor/skills"),
            *_old_skills("user", "skills"),
        ),
        readers="Cursor editor, CLI and cloud agents",
    ),
    Host(
        name="agents",
        title="Shared folder",
        aliases=("shared", "gemini", "gemini-cli", "copilot", "copilot-cli", "opencode"),
        project_skills=".agents/skills",
        user_skills="skills",
        home=".agents",
        home_variable="",
        marks=("GEMINI_CLI", "COPILOT_CLI", "OPENCODE"),
        session_variable="",
        traces=(".agents", ".gemini", ".opencode"),
        hooks=None,
        leftovers=(),
        readers="Codex, Cursor, Gemini CLI, Copilot CLI, opencode and others",
    ),
)

NAMES: tuple[str, ...] = tuple(host.name for host in HOSTS)
_BY_NAME: dict[str, Host] = {name: host for host in HOSTS for name in (host.name, *host.aliases)}

# Where the row below a detection is of no help: the folder that most programs read.
FALLBACK = "agents"


class Detection(NamedTuple):
    """Host names, and the sentence that says why these."""

    names: tuple[str, ...]
    reason: str


def find(name: str) -> Host | None:
    """The row for a name or alias, whatever its case; None when there is none."""
    return _BY_NAME.get(name.strip().casefold())


def parse(text: str | None) -> tuple[str, ...]:
    """Canonical names from `all`, one name, or a comma list; nothing or an empty text means all.

    Raises `UsageError` when a name is unknown.
    """
    words = [word.strip() for word in (text or "all").split(",") if word.strip()]
    if not words or any(word.casefold() == "all" for word in words):
        return NAMES
    unknown = [word for word in words if find(word) is None]
    if unknown:
        raise UsageError(f"unknown host: {', '.join(unknown)}", hint=f"hosts are {', '.join(NAMES)}, or all")
    chosen = {row.name for word in words if (row := find(word))}
    return tuple(name for name in NAMES if name in chosen)


def row(name: str) -> Host:
    """The row of a canonical name. Raises `KeyError` for anything else."""
    return _BY_NAME[name]


def _is_set(mark: str, environment: Mapping[str, str]) -> bool:
    name, equals, value = mark.partition("=")
    found = environment.get(name, "")
    return found == value if equals else bool(found)


def running(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts whose marks are set: usually one, several when one agent was started from inside another."""
    return tuple(host.name for host in HOSTS if any(_is_set(mark, environment) for mark in host.marks))


def detect(
    environment: Mapping[str, str], root: Path | None, user_home: Path, enabled: Iterable[str] = ()
) -> Detection:
    """Which hosts `init` serves when none is named.

    In this order: `QIJU_AGENT`, the variables that hosts set for their commands, the hosts that the project has already
    (`enabled`), folders in the project, hosts' folders in the user's home, and the shared folder. Raises `UsageError`
    when the environment names several hosts, because either answer could be the wrong one.
    """
    named = find(environment.get("QIJU_AGENT", ""))
    if named:
        return Detection((named.name,), "QIJU_AGENT names it")
    found = running(environment)
    if len(found) > 1:
        raise UsageError(
            f"several hosts are running here: {', '.join(found)}",
            hint=f"say which one: --host {found[0]}, or --host {','.join(found)}",
        )
    if found:
        return Detection(found, "its environment variables are set")
    set_up = {host.name for name in enabled if (host := find(name))}
    if set_up:
        return Detection(tuple(name for name in NAMES if name in set_up), "the project is set up for it")
    if root is not None:
        found = tuple(host.name for host in HOSTS if any((root / trace).is_dir() for trace in host.traces))
        if found:
            return Detection(found, "the project has its folder")
    found = tuple(host.name for host in HOSTS if home_folder(host, environment, user_home).is_dir())
    if found:
        return Detection(found, "your home has its folder")
    return Detection((FALLBACK,), "no host was found, so the skills go where most hosts look")


def home_folder(host: Host, environment: Mapping[str, str], user_home: Path) -> Path:
    """The host's own folder in the user's home, moved by its variable when that is set."""
    moved = environment.get(host.home_variable, "") if host.home_variable else ""
    return _expand(moved, user_home) if moved else user_home / host.home


def _expand(text: str, user_home: Path) -> Path:
    """`text` with a leading `~` replaced by `user_home`, so that tests and `HOME` decide, not the password file."""
    if text == "~":
        return user_home
    return user_home / text[2:] if text.startswith("~/") else Path(text)


def user_path(host: Host, relative: str, environment: Mapping[str, str], user_home: Path) -> Path:
    """A user-level path of the table: below the host's folder, or below the user's home when it begins with `~/`."""
    if relative.startswith("~"):
        return _expand(relative, user_home)
    return home_folder(host, environment, user_home) / relative


def skills_folder(host: Host, root: Path | None, environment: Mapping[str, str], user_home: Path) -> Path:
    """Where the host's skills live: in the project at `root`, or at the user's level when `root` is None."""
    if root is not None:
        return root / host.project_skills
    return user_path(host, host.user_skills, environment, user_home)
