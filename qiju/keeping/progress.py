"""Progress of long work, on a terminal only: rich is loaded when there is one to draw on, and never otherwise."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any


class Progress:
    """`with Progress("importing", total) as step: step(n)`: a bar on a terminal's stderr, nothing anywhere else.

    `total` is None where it is not known. Without `color` (`--no-color`; rich itself respects `NO_COLOR`) it is plain.
    """

    def __init__(self, label: str, total: int | None = None, *, color: bool = True) -> None:
        self.label = label
        self.total = total
        self.color = color
        self.shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if self.shown:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True, no_color=not self.color or None), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self.label, total=self.total)
        return self

    def __call__(self, amount: int = 1) -> None:
        if self._bar is not None:
            self._bar.advance(self._task, amount)

    def phase(self, label: str, total: int | None = None) -> None:
        """Begin a new stretch of the same work."""
        if self._bar is not None:
            self._bar.reset(self._task, description=label, total=total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
