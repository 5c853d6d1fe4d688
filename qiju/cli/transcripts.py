"""`qiju trajectory show` and `draft`, and hosts' transcripts and ATIF as sources and forms of `import` and `export`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from qiju.cli import trajectory
from qiju.cli.context import Context, current
from qiju.errors import AmbiguousId, NotFound, UsageError
from qiju.trajectory.types import PrivacyView, RecordKind, TrajectoryQuery

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.readers import SnapshotWalk, StoreTrajectoryReader
    from qiju.trajectory.store import SqliteTrajectoryStore
    from qiju.trajectory.types import LossReport, TrajectoryRecord
    from qiju.transcripts.atif_export import AtifExporter

_CANDIDATES = 10
LARGE_PAGE = 30 << 20  # bytes
FACTS = tuple(kind for kind in RecordKind if kind is not RecordKind.SESSION_RECORD)


# --- in and out ------------------------------------------------------------------------------------------------------


def taker(kind: str) -> trajectory.Taker:
    """What `import` calls for transcripts of `kind`: stores them and tells on standard error what was odd."""

    def take(store: SqliteTrajectoryStore, path: Path, dry_run: bool) -> dict[str, JsonValue]:
        from qiju.keeping.progress import Progress
        from qiju.transcripts.taking import take_in

        context = current()
        with Progress(f"importing {kind}", color=not context.no_color) as step:
            taken = take_in(store, path, kind, dry_run=dry_run, step=step)
        for sentence in taken.report.sentences():
            context.note(sentence)
        return taken.to_json()

    return take


def _atif_exporter() -> AtifExporter:
    from qiju.transcripts.atif_export import AtifExporter

    return AtifExporter()


# --- one session -----------------------------------------------------------------------------------------------------


class Session:
    """One session under a view: its facts in sequence, its records at their time, and what the view left out."""

    def __init__(self, reader: StoreTrajectoryReader, name: str, view: PrivacyView) -> None:
        self.reader = reader
        self.view = view
        self.session_id = find_session((one.session_id for one in reader.sessions()), name)
        self.shown_id = reader.projector(view).identifier("session_id", self.session_id) or ""
        self._walks: list[SnapshotWalk] = []

    def _walk(self, kinds: tuple[RecordKind, ...]) -> SnapshotWalk:
        walk = self.reader.walk(TrajectoryQuery(session_id=self.session_id, kinds=kinds, limit=200), view=self.view)
        self._walks.append(walk)
        return walk

    def facts(self) -> Iterator[TrajectoryRecord]:
        """Everything but the records, in sequence."""
        return iter(self._walk(FACTS))

    def everything(self) -> Iterator[TrajectoryRecord]:
        """The facts, with the session's records put in at their time."""
        from qiju.transcripts.turns import with_records

        return with_records(self.facts(), list(self._walk((RecordKind.SESSION_RECORD,))))

    def loss(self) -> LossReport:
        """What the view left out of everything read so far."""
        from qiju.trajectory.types import LossTally
        from qiju.trajectory.views import POLICIES

        tally = LossTally(POLICIES[self.view])
        for walk in self._walks:
            tally.add_report(walk.loss())
        return tally.report()


@contextmanager
def _session(name: str, view: PrivacyView, source: str | None = None) -> Iterator[Session]:
    with trajectory.open_reader(source, "trajectory") as reader:
        yield Session(reader, name, view)


def find_session(ids: Iterator[str], name: str) -> str:
    """The session that an id or the beginning of one means. Raises `NotFound`, `AmbiguousId` (names candidates)."""
    near = []
    for one in ids:
        if one == name:
            return one
        if name and one.startswith(name):
            near.append(one)
    if not near:
        raise NotFound(f"there is no session {name!r}", hint="'qiju trajectory sessions' lists them")
    if len(near) > 1:
        listed = ", ".join(near[:_CANDIDATES]) + (" ..." if len(near) > _CANDIDATES else "")
        raise AmbiguousId(f"{name!r} is the beginning of several sessions: {listed}", hint="give one of them whole")
    return near[0]


def show(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="A session's id, or the beginning of one.")],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML page that needs nothing else.")
    ] = None,
    view: Annotated[
        Literal["redacted_public", "raw_private", "metadata_only"] | None,
        typer.Option("--view", help="What is shown; raw_private by default, redacted_public with --html."),
    ] = None,
    lines: Annotated[
        int | None,
        typer.Option("--lines", min=0, metavar="N", help="Cut texts on the terminal after N lines (20); 0: never."),
    ] = None,
    source: trajectory.Source = None,
) -> None:
    """Show a session as turns: what was said, calls with their results, steering, records."""
    if html is not None:
        if lines is not None:
            raise UsageError("--lines is for the terminal", hint="the page folds long texts; leave --lines out")
        _show_html(session, html, PrivacyView(view or PrivacyView.REDACTED_PUBLIC), source)
        return
    from qiju.transcripts.terminal import turn_lines
    from qiju.transcripts.turns import turns

    context = current()
    shown = PrivacyView(view or PrivacyView.RAW_PRIVATE)
    with _session(session, shown, source) as opened:
        put = _printer(context)
        put("turn", f"session {opened.shown_id}")
        put("text", "")
        for turn in turns(opened.everything()):
            for style, line in turn_lines(turn, lines=20 if lines is None else lines):
                put(style, line)
        hidden = sum(entry.count for entry in opened.loss().entries)
    if hidden:
        context.note(f"{hidden} values are not shown in the view {shown.value}")


def _printer(context: Context) -> Callable[[str, str], None]:
    """Plain lines, or lines with colour where a person looks at a terminal that wants it."""
    from qiju.render import inert_text

    if not context.color:
        return lambda _style, line: print(inert_text(line))
    from rich.console import Console
    from rich.text import Text

    from qiju.transcripts.terminal import STYLES

    console = Console(highlight=False, markup=False, emoji=False)

    def put(style: str, line: str) -> None:
        console.print(Text(inert_text(line), style=STYLES[style]))

    return put


def _show_html(name: str, target: Path, view: PrivacyView, source: str | None) -> None:
    from qiju.files import FileReplacement
    from qiju.transcripts.page import page
    from qiju.transcripts.turns import turns

    with _session(name, view, source) as opened:

        def losses() -> Iterator[LossReport]:
            yield opened.loss()

        with FileReplacement(target, protected=opened.reader.protected_paths) as file:
            for piece in page(opened.shown_id, view.value, turns(opened.everything()), losses()):
                file.write(piece.encode("utf-8", "backslashreplace"))
        hidden = sum(entry.count for entry in opened.loss().entries)
        size = target.stat().st_size
    print(target)
    if size > LARGE_PAGE:
        current().note(f"the page has {size >> 20} MB; a browser may need long to open it")
    if hidden:
        current().note(f"{hidden} values are not shown in the view {view.value}; the page lists them by field")


def draft(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="A session's id, or the beginning of one.")],
    agent: Annotated[str | None, typer.Option("--agent", help="Whose draft it is; a label in the file's name.")] = None,
) -> None:
    """Write a record draft from a session's facts into a staging file, and print its path.

    Finish the file, then store it: qiju log --source manual --body FILE --cleanup
    """
    from qiju.jsontext import pretty
    from qiju.place.identity import agent as agent_of
    from qiju.staging import allocate
    from qiju.transcripts.draft import draft_record

    context = current()
    with _session(session, PrivacyView.RAW_PRIVATE) as opened:
        made = draft_record(opened.session_id, opened.facts())
    name = agent_of(agent, context.env, context.marker, configured=context.config.agent or None)
    path = allocate(context.root.path, "" if name == "unknown" else name)
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(pretty(made) + "\n")
    print(path)


for _kind in ("claude", "codex", "atif"):
    trajectory.TAKERS[_kind] = taker(_kind)
trajectory.EXPORTERS["atif"] = _atif_exporter
trajectory.app.command("show")(show)
trajectory.app.command("draft")(draft)
