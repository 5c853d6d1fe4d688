"""Write docs/reference/hosts.md from the host table; with --check, fail when the page is out of date."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from qiju import hosts, skills
from qiju.hosts import Host
from qiju.install import hookfile
from qiju.install.leftovers import BLOCKS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "hosts.md"

HEAD = """# Hosts

<!-- Written by scripts/docs_hosts.py from qiju/hosts.py. Change the table there, then run the script. -->

A host is a program that runs an agent. `qiju init` gives each host the skills `{skills}`,
in the project or, with `--global`, for the user. Hosts that read one folder share one copy, which goes with the last
of them.

`--host` takes a name, an alias, a comma list or `all`. Without it, `init` serves the host that it runs in, as the
variables below show; else the hosts that the project was set up for; else those whose folders the project has; else
those whose folders your home has; else the shared folder.
"""

FILES = """## What else is written

- `.qiju/config.json` in the project: its name, its UUID, the hosts that are set up. The UUID is the identity; it
  survives renaming and moving.
- one line, `.qiju/`, in the `info/exclude` file of the Git repository, unless something says it already. Worktrees
  share that file.
- with `--hooks`, one entry in the host's own hook file. The rest of that file is not touched.

Every written path is in the store's manifest with its hash. A skill file also carries a digest of itself, so that it is
recognised in a clone, too:

| state | what it is | `update` | `init` | `uninstall` |
|---|---|---|---|---|
| current | exactly what this version installs | nothing | nothing | removed |
| stale | written by another version or the predecessor, and not touched since | replaced | replaced | removed |
| modified | edited by somebody | left and named; `--force` keeps a `.bak` | replaced, `.bak` kept | left and named |
| foreign | not a Qiju skill | left and named; `--force` keeps a `.bak` | left and named | left and named |

Line endings and a byte order mark are not an edit. A symbolic link at a skill's place is left and named.
"""

HOOKS = """## Hooks

`init --hooks` adds the command `{example}`, with the host's name. It prints one
line of JSON that reminds the agent, or the user, of the records. It captures nothing, and whatever goes wrong it exits
with 0.

"""

LEFTOVERS = """## What `uninstall` removes of the predecessor

Blocks are the lines {marks};
the rest of the file stays byte for byte. Files and skills go only while they are the predecessor's own, unedited.

"""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell or "-" for cell in line) + " |" for line in lines) + "\n"


def code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def user_folder(host: Host) -> str:
    """The user's skill folder as people write it."""
    if host.user_skills.startswith("~"):
        return f"`{host.user_skills}`"
    base = f"~/{host.home}"
    moved = f" (`${host.home_variable}/{host.user_skills}`)" if host.home_variable else ""
    return f"`{base}/{host.user_skills}`{moved}"


def folders() -> str:
    head = ("host", "`--host`", "aliases", "in a project", "for the user", "read by")
    return table(
        head,
        (
            (
                host.title,
                f"`{host.name}`",
                code(host.aliases),
                f"`{host.project_skills}`",
                user_folder(host),
                host.readers,
            )
            for host in hosts.HOSTS
        ),
    )


def detection() -> str:
    head = ("host", "its variables", "session id", "folders in a project")
    return table(
        head,
        (
            (
                host.title,
                code(host.marks),
                code([host.session_variable] if host.session_variable else []),
                code(host.traces),
            )
            for host in hosts.HOSTS
        ),
    )


def hooks() -> str:
    rows = []
    for host in hosts.HOSTS:
        if host.hooks is None:
            rows.append((host.title, "not supported", "", "", ""))
            continue
        base = f"${host.home_variable}" if host.home_variable else f"~/{host.home}"
        events = code(name for _, name in host.hooks.events)
        rows.append((host.title, f"`{host.hooks.project}`", f"`{base}/{host.hooks.user}`", events, host.hooks.note))
    return table(("host", "in a project", "for the user", "events", "note"), rows)


def leftovers() -> str:
    rows = []
    for host in hosts.HOSTS:
        for leftover in host.leftovers:
            base = "" if leftover.level == "project" or leftover.path.startswith("~") else f"~/{host.home}/"
            rows.append((host.title, leftover.level, leftover.form, f"`{base}{leftover.path}`"))
    return table(("host", "level", "what", "path"), rows)


def page() -> str:
    """The whole page."""
    marks = " and ".join(f"`{first.decode()}` ... `{last.decode()}`" for first, last in BLOCKS)
    parts = [
        HEAD.format(skills="`, `".join(skills.NAMES)),
        "## Where skills go\n\n" + folders(),
        "## How a host is recognised\n\n" + detection(),
        FILES,
        HOOKS.format(example=hookfile.command_for("claude", "session-start")) + hooks(),
        LEFTOVERS.format(marks=marks) + leftovers(),
    ]
    return "\n".join(parts)


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            print(f"{PAGE.name} is out of date: run scripts/docs_hosts.py", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
