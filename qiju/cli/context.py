"""What a command runs in: home, root, marker, configuration, terminal. Worked out when first asked for.

There is one context a process (`current`), set up by the frame before the command's body runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.place import ProjectRef, Root
    from qiju.place.config import Config
    from qiju.place.marker import Marker
    from qiju.projects import Home
    from qiju.store import Store


class Context:
    """See the module. `command` is the name for messages, such as `trajectory page`."""

    def __init__(
        self,
        command: str = "",
        *,
        home: str | None = None,
        json_errors: bool = False,
        no_color: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.command = command
        self.json_errors = json_errors
        self.no_color = no_color
        self.env: Mapping[str, str] = os.environ if env is None else env
        self._home_flag = home
        self._home: Path | None = None
        self._root: Root | None = None
        self._config: Config | None = None

    @property
    def home(self) -> Path:
        """The store's folder; it need not exist."""
        if self._home is None:
            from qiju.place.home import home

            self._home = home(self._home_flag, self.env)
        return self._home

    @property
    def root(self) -> Root:
        """The folder this call belongs to."""
        if self._root is None:
            from qiju.place.root import find_root

            self._root = find_root(None, self.env)
        return self._root

    @property
    def marker(self) -> Marker | None:
        """The root's marker."""
        from qiju.place.marker import read_marker

        return read_marker(self.root.path)

    @property
    def config(self) -> Config:
        """The settings in force; what they warn of is said once."""
        if self._config is None:
            from qiju.errors import QijuError
            from qiju.place.config import load_config

            try:
                root = self.root
            except QijuError:
                root = None  # a deleted working folder has no marker; commands that need a root say so themselves
            self._config = load_config(
                self.home, None if root is None else self.marker, None if root is None else root.path
            )
            for warning in self._config.warnings:
                self.note(warning)
        return self._config

    def project(self, flag: str | None, *, reading: bool = False) -> ProjectRef:
        """The project that a call with this `--project` means; see `qiju.place.resolve_project`."""
        from qiju.place.identity import resolve_project

        return resolve_project(flag, self.root, reading=reading)

    def open(self) -> Store:
        """The store, for writing."""
        from qiju.store import Store, database_path

        if not database_path(self.home).exists():
            self._warn_of_place()
        return self._told(Store.open(self.home, self.config))

    def _warn_of_place(self) -> None:
        """Said once, when the store is made: later calls would only repeat what 'qiju doctor' says at any time."""
        from qiju.keeping.filesystem import risk

        if why := risk(self.home):
            self.note(f"{why}; give the store another place (QIJU_HOME)")

    def open_for_reading(self) -> Store:
        """The store, for reading; nothing is created."""
        from qiju.store import Store

        return self._told(Store.open_for_reading(self.home, self.config))

    def _told(self, store: Store) -> Store:
        for note in store.db.notes:
            self.note(note)
        return store

    def note(self, text: str) -> None:
        """One line for the person, on standard error."""
        print(f"qiju {self.command}: {inert(text)}".replace(" : ", ": "), file=sys.stderr)

    @property
    def terminal(self) -> bool:
        """Whether standard output is a terminal that a person looks at."""
        return sys.stdout.isatty() and self.env.get("TERM") != "dumb"

    @property
    def color(self) -> bool:
        """Whether colour is wanted."""
        return self.terminal and not self.no_color and not self.env.get("NO_COLOR")


def inert(text: str) -> str:
    """Text with control and direction characters shown as escapes, so that it cannot steer a terminal."""
    if text.isascii() and text.isprintable():
        return text
    from qiju.render import inert_text

    return inert_text(text)


def home_of(ref: ProjectRef) -> Home:
    """A call's claim as the store takes it."""
    from qiju.projects import Home

    root = "" if ref.root is None else str(ref.root)
    return Home(ref.slug, ref.uuid or "", root, ref.how == "flag" and ref.uuid is None)


_current = Context()


def current() -> Context:
    """The context of the command that runs."""
    return _current


def set_current(context: Context) -> None:
    """Called by the frame alone."""
    global _current
    _current = context
