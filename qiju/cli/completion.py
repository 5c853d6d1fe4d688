"""What the shell offers after Tab: slugs, hosts, agents, tags, sessions and ids that the store knows. Never an error.

What a flag takes is one table here (`FLAGS`), whatever command it belongs to. Only values that no shell has to quote
are offered: a tag from elsewhere must not become a command by being completed into one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from qiju.errors import QijuError

MOST = 50
PATIENCE = 0.3  # seconds to wait for a lock; a shell that completes must not hang
_ZSH = '\n[[ $funcstack[1] == _%(prog_name)s ]] && %(complete_func)s "$@" || true\n'
_SAFE = re.compile(r"[\w@%+:.][\w@%+=:,./-]*")

FLAGS = {
    "--project": "project",
    "--into": "project",
    "--retag-from": "project",
    "--scope": "scope",
    "--agent": "agent",
    "--tags": "tag",
    "--session": "session",
    "--host": "host",
    "--hosts": "host",
}
_LISTS = ("scope", "host")  # take several values with commas between
_OPEN = {"scope": ("current_project", "all"), "host": ("all",)}

_QUERIES = {
    "project": "SELECT slug FROM project WHERE substr(slug, 1, length(?1)) = ?1 ORDER BY slug LIMIT ?2",
    "agent": "SELECT DISTINCT agent FROM record WHERE substr(agent, 1, length(?1)) = ?1 ORDER BY agent LIMIT ?2",
    "tag": "SELECT DISTINCT value FROM record, json_each(record.tags) AS item WHERE item.type = 'text'"
    " AND substr(value, 1, length(?1)) = ?1 ORDER BY value LIMIT ?2",
    "id": "SELECT id FROM record WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT ?2",
    "session": "SELECT DISTINCT session_id FROM record WHERE session_id >= ?1 AND session_id < ?1 || char(1114111)"
    " ORDER BY session_id LIMIT ?2",
    "newest": "SELECT id FROM record ORDER BY instant DESC, seq DESC LIMIT ?2",
}


def candidates(what: str, beginning: str, home: str | None = None) -> list[str]:
    """Values of a kind (`project`, `scope`, `agent`, `tag`, `session`, `id`, `host`) with this beginning.

    At most `MOST`; in a list with commas, the last value is completed. `home` is `--home`, where it was typed.
    """
    before, comma, last = beginning.rpartition(",") if what in _LISTS else ("", "", beginning)
    open_values = [] if comma else [word for word in _OPEN.get(what, ()) if word.startswith(last)]
    found = _hosts(last) if what == "host" else _stored("project" if what == "scope" else what, last, home)
    taken = set(before.split(","))
    return [
        f"{before}{comma}{value}" for value in (*open_values, *found) if value not in taken and _SAFE.fullmatch(value)
    ][:MOST]


def _hosts(beginning: str) -> list[str]:
    from qiju.hosts import HOSTS

    names = [host.name for host in HOSTS if host.name.startswith(beginning)]
    return names or [alias for host in HOSTS for alias in host.aliases if alias.startswith(beginning)]


def _stored(what: str, beginning: str, home: str | None) -> list[str]:
    from qiju.cli.context import Context
    from qiju.db import Database
    from qiju.store import database_path

    name = "newest" if what == "id" and not beginning else what
    try:
        with (
            Database.open_for_reading(database_path(Context(home=home).home), lock_wait=PATIENCE) as db,
            db.read() as connection,
        ):
            return [str(row[0]) for row in connection.execute(_QUERIES[name], (beginning, MOST))]
    except (QijuError, OSError):
        return []  # a shell that completes must not print errors into the line being typed


def for_words(what: str) -> Callable[..., list[str]]:
    """A completion as Typer calls it."""
    import typer

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return candidates(what, incomplete, ctx.params.get("home") or ctx.find_root().params.get("home"))

    # Typer looks at the annotations, which `from __future__` made texts.
    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str}
    return complete


def equip(annotation: Any) -> None:
    """Give an option that a command module declared for Typer the completion that belongs to its flag."""
    from typer.models import OptionInfo

    for info in getattr(annotation, "__metadata__", ()):
        if isinstance(info, OptionInfo) and info.autocompletion is None:
            # In an annotation the first flag stands where a default would.
            flags = (info.default, *(info.param_decls or ()))
            what = next((FLAGS[flag] for flag in flags if isinstance(flag, str) and flag in FLAGS), None)
            if what is not None:
                info.autocompletion = for_words(what)


def mend_zsh() -> None:
    """Let zsh complete at the first Tab: the script that it loads then must run the completion, not only define it."""
    from typer import _completion_classes, _completion_shared

    if _ZSH not in _completion_shared.COMPLETION_SCRIPT_ZSH:
        script = _completion_shared.COMPLETION_SCRIPT_ZSH.rstrip() + _ZSH
        _completion_shared._completion_scripts["zsh"] = script
        _completion_classes.ZshComplete.source_template = script


def mend_bash() -> None:
    """Let bash complete ids: it takes them apart at their colon, so they are put together again here."""
    from typer._click.shell_completion import CompletionItem, add_completion_class, split_arg_string
    from typer._completion_classes import BashComplete

    class Bash(BashComplete):
        cut = 0  # characters of a candidate that stand in the line already, as words of their own

        def get_completion_args(self) -> tuple[list[str], str]:
            place = int(os.environ["COMP_CWORD"])
            words = split_arg_string(os.environ["COMP_WORDS"])[: place + 1]
            split = len(words) > place and place > 0 and ":" in (words[place], words[place - 1])
            words = [*joined(words), *([""] if len(words) <= place else [])]
            self.cut = words[-1].rfind(":") + 1 if split else 0
            return words[1:-1], words[-1]

        def format_completion(self, item: CompletionItem) -> str:
            return str(item.value)[self.cut :]

    add_completion_class(Bash, "bash")


def joined(words: list[str]) -> list[str]:
    """Words with a lone colon, and what follows it, put back to the word before."""
    whole: list[str] = []
    for place, word in enumerate(words):
        if whole and place and (word == ":" or words[place - 1] == ":"):
            whole[-1] += word
        else:
            whole.append(word)
    return whole
