"""`qiju trajectory show` and `draft`, and what `import` and `export` do for hosts' transcripts and ATIF.

`trajectory import` and `trajectory export` find their ways in and out in the tables here; see `qiju.cli.trajectory`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qiju.cli.context import Context, current
from qiju.errors import AmbiguousId, NotFound
from qiju.trajectory.types import PrivacyView, RecordKind, TrajectoryQuery

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.readers import SnapshotWalk, StoreTrajectoryReader
    from qiju.trajectory.types import LossReport, TrajectoryRecord

_CANDIDATES = 10
FACTS = tuple(kind for kind in RecordKind if kind is not RecordKind.SESSION_RECORD)


def import_transcripts(context: Context, path: Path, kind: str, *, dry_run: bool = False) -> dict[str, JsonValue]:
    """Import a file or folder of `claude`, `codex` or `atif` and return the report, whose oddities are also told."""
    from qiju.keeping.progress import Progress
    from qiju.trajectory.store import SqliteTrajectoryStore
    from qiju.transcripts.taking import take_in

    with (
        context.open() as store,
        Progress(f"importing {kind}", color=not context.no_color) as step,
    ):
        taken = take_in(SqliteTrajectoryStore(store), path, kind, dry_run=dry_run, step=step)
        for warning in store.warnings:
            context.note(warning)
    for sentence in taken.report.sentences():
        context.note(sentence)
    return taken.to_json()


def export_atif(context: Context, session: str, output: Path | None, view: PrivacyView) -> dict[str, JsonValue]:
    """Write one session as an ATIF document, to `output` or standard output, and return the receipt."""
    from hashlib import sha256

    from qiju.transcripts.atif import atif_bytes, to_atif

    with Session(context, session, view) as opened:
        records = list(opened.facts())
        document, loss = to_atif(opened.shown_id, view.value, [*records, *opened.authored()], opened.loss())
        data = atif_bytes(document)
        _put(output, [data], opened.protected)
    return {
        "record_count": len(records),
        "size_bytes": len(data),
        "digest": "sha256:" + sha256(data).hexdigest(),
        "privacy_view": view.value,
        "loss": loss.to_dict(),
        "completed": True,
    }


def _put(output: Path | None, pieces: Iterator[bytes] | list[bytes], protected: tuple[Path, ...]) -> int:
    """Write to a file, as a whole or not at all, or to standard output; returns the number of bytes."""
    size = 0
    if output is None:
        import sys

        for piece in pieces:
            size += len(piece)
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return size
    from qiju.files import FileReplacement

    with FileReplacement(output, protected=protected) as file:
        for piece in pieces:
            size += len(piece)
            file.write(piece)
    return size


class Session:
    """One session of the store under a view: its facts in sequence, its records at their time, what the view hid."""

    def __init__(self, context: Context, name: str, view: PrivacyView) -> None:
        self.context = context
        self.name = name
        self.view = view
        self._walks: list[SnapshotWalk] = []

    def __enter__(self) -> Session:
        from qiju.trajectory.readers import StoreTrajectoryReader
        from qiju.trajectory.store import SqliteTrajectoryStore

        self._store = self.context.open_for_reading()
        try:
            source = SqliteTrajectoryStore(self._store)
            self.session_id = find_session((one.session_id for one in source.sessions()), self.name)
            self.reader: StoreTrajectoryReader = StoreTrajectoryReader(source)
        except BaseException:
            self._store.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for walk in self._walks:
            walk.close()
        self._store.close()

    def _walk(self, kinds: tuple[RecordKind, ...]) -> SnapshotWalk:
        walk = self.reader.walk(TrajectoryQuery(session_id=self.session_id, kinds=kinds, limit=200), view=self.view)
        self._walks.append(walk)
        return walk

    def facts(self) -> Iterator[TrajectoryRecord]:
        return iter(self._walk(FACTS))

    def authored(self) -> list[TrajectoryRecord]:
        return list(self._walk((RecordKind.SESSION_RECORD,)))

    def everything(self) -> Iterator[TrajectoryRecord]:
        from qiju.transcripts.turns import with_records

        return with_records(self.facts(), self.authored())

    def loss(self) -> LossReport:
        """What the view left out of everything read so far."""
        from qiju.trajectory.types import LossTally
        from qiju.trajectory.views import POLICIES

        tally = LossTally(POLICIES[self.view])
        for walk in self._walks:
            tally.add_report(walk.loss())
        return tally.report()

    @property
    def shown_id(self) -> str:
        """The session's id as the view shows it."""
        return self._walk(FACTS).projector.identifier("session_id", self.session_id) or ""

    @property
    def protected(self) -> tuple[Path, ...]:
        return self.reader.protected_paths


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
        PrivacyView | None,
        typer.Option("--view", help="What is shown; raw_private by default, redacted_public with --html."),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", min=0, help="Cut longer texts after so many lines; 0: never.")] = 20,
) -> None:
    """Show a session as turns: what was said, calls with their results, steering, records."""
    context = current()
    if html is not None:
        _show_html(context, session, html, view or PrivacyView.REDACTED_PUBLIC)
        return
    from qiju.transcripts.terminal import turn_lines
    from qiju.transcripts.turns import turns

    with Session(context, session, view or PrivacyView.RAW_PRIVATE) as opened:
        put = _printer(context)
        put("turn", f"session {opened.shown_id}")
        put("text", "")
        for turn in turns(opened.everything()):
            for style, line in turn_lines(turn, lines=lines):
                put(style, line)
        hidden = sum(entry.count for entry in opened.loss().entries)
    if hidden:
        context.note(f"{hidden} values are not shown in the view {view}")


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


def _show_html(context: Context, session: str, target: Path, view: PrivacyView) -> None:
    from qiju.transcripts.page import page
    from qiju.transcripts.turns import turns

    with Session(context, session, view) as opened:

        def losses() -> Iterator[LossReport]:
            yield opened.loss()

        pieces = page(opened.shown_id, view.value, turns(opened.everything()), losses())
        _put(target, (piece.encode("utf-8", "backslashreplace") for piece in pieces), opened.protected)
        hidden = sum(entry.count for entry in opened.loss().entries)
    print(target)
    if hidden:
        context.note(f"{hidden} values are not shown in the view {view.value}; the page lists them by field")


def draft(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="A session's id, or the beginning of one.")],
    agent: Annotated[str | None, typer.Option("--agent", help="Whose draft it is; names the file.")] = None,
) -> None:
    """Write a record draft from a session's facts into a staging file, and print its path.

    Finish the file, then store it: qiju log --source manual --body FILE --cleanup
    """
    from qiju.jsontext import pretty
    from qiju.place.identity import agent as agent_of
    from qiju.staging import allocate
    from qiju.transcripts.draft import draft_record

    context = current()
    with Session(context, session, PrivacyView.RAW_PRIVATE) as opened:
        made = draft_record(opened.session_id, opened.facts())
    name = agent_of(agent, context.env, context.marker, configured=context.config.agent or None)
    path = allocate(context.root.path, name)
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(pretty(made) + "\n")
    print(path)


def register(group: typer.Typer) -> None:
    """Add the commands to `qiju trajectory`."""
    group.command("show")(show)
    group.command("draft")(draft)
