"""`qiju trajectory`: the facts of sessions, in bounded pages, exports with their losses, and the way back.

Commands about hosts' transcripts (`show`, `draft`, `import --host`) live in `qiju.cli.transcripts`; that module adds
its commands to `app`, its readers to `TAKERS`, which `import` looks in, and its exporters to `EXPORTERS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from qiju import jsontext, render
from qiju.cli.context import Context, current
from qiju.errors import NotFound, UsageError, VerificationFailed
from qiju.trajectory.importing import HistoryReader, open_journal, open_run_folder, read_export, reimport_into
from qiju.trajectory.types import PrivacyView, RecordKind, TrajectoryCursor, TrajectoryQuery
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.readers import StoreTrajectoryReader
    from qiju.trajectory.store import SqliteTrajectoryStore
    from qiju.trajectory.types import FileExportReceipt, TrajectoryDraft

app = typer.Typer(
    help="Read, export and check the facts of sessions: messages, tool calls, results, and records.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

READERS: dict[str, HistoryReader] = {"journal": open_journal, "run-folder": open_run_folder}
"""What `import` can take, by the name that --format or --host gives it."""

Taker = Callable[["SqliteTrajectoryStore", Path, bool], "dict[str, JsonValue]"]
TAKERS: dict[str, Taker] = {}
"""What `import` can take that stores its own facts, in steps: given the store, a path and whether it is a dry run."""

EXPORTERS: dict[str, Callable[[], Any]] = {}
"""What makes an exporter for a --format of `export`, beside the canonical one."""

HOSTS = ("claude", "codex")
FORMATS = ("atif", "journal", "run-folder")

View = Annotated[
    Literal["redacted_public", "raw_private", "metadata_only"],
    typer.Option("--view", help="What is shown; raw_private must be asked for."),
]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="PATH",
        help="Read this journal, run folder or home (the predecessor's, too) instead of the store.",
    ),
]
Selector = Annotated[
    Literal["trajectory", "legacy"],
    typer.Option("--selector", help="'legacy' passes over database and journal at --source."),
]
Session = Annotated[str | None, typer.Option("--session", metavar="ID", help="Only this session.")]
Run = Annotated[str | None, typer.Option("--run", metavar="ID", help="Only this run.")]
WorkItem = Annotated[str | None, typer.Option("--work-item", metavar="ID", help="Only this work item.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help=f"Only this kind; repeatable: {', '.join(RecordKind)}."),
]
After = Annotated[int | None, typer.Option("--after", metavar="N", help="Only records behind this sequence.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only report what would become of each record.")]


@app.command("sessions")
def sessions(
    source: Source = None,
    selector: Selector = "trajectory",
    view: View = "raw_private",  # an id is listed to be used: a scrubbed one would find nothing
    json: AsJson = False,
) -> None:
    """List the sessions, in order of their first record."""
    rows: list[JsonValue] = []
    with open_reader(source, selector) as reader:
        projector = reader.projector(PrivacyView(view))
        for one in reader.sessions():
            row = one._asdict()
            row["session_id"] = projector.identifier("session_id", one.session_id)
            rows.append(row)
    if json:
        print(render.json_text(rows))
        return
    for listed in rows:
        assert isinstance(listed, dict)
        name, records = render.one_line(str(listed["session_id"])), int(str(listed["records"]))
        print(f"{name}\t{counted(records, 'record')}\t{listed['first_sequence']}-{listed['last_sequence']}")


@app.command("page")
def page(
    session: Session = None,
    run: Run = None,
    work_item: WorkItem = None,
    kind: Kinds = None,
    after: After = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Page size; 100 when not given.")] = None,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="TOKEN", help="Go on where a page ended.")] = None,
    view: View = "redacted_public",
    source: Source = None,
    selector: Selector = "trajectory",
    format: Annotated[  # the option's name
        Literal["json", "jsonl"],
        typer.Option("--format", help="json: the page with its cursors; jsonl: its records, one a line."),
    ] = "json",
) -> None:
    """Print one page of a fixed snapshot."""
    query = _query(session, run, work_item, kind, after, limit)
    with open_reader(source, selector) as reader:
        found = reader.read_page(query, TrajectoryCursor(cursor) if cursor else None, view=PrivacyView(view))
    if format == "jsonl":
        for record in found.records:
            print(jsontext.line(record.to_dict()))
        if found.next_cursor is not None:
            current().note(f"there is more: --cursor {found.next_cursor.token}")
        return
    records: list[JsonValue] = [record.to_dict() for record in found.records]
    envelope: dict[str, JsonValue] = {
        "records": records,
        "returned": len(records),
        "next_cursor": None if found.next_cursor is None else found.next_cursor.token,
        "snapshot": found.snapshot.token,
        "watermark": found.watermark,
        "view": view,
        "loss": found.loss.to_dict(),
    }
    print(render.json_text(envelope))


@app.command("export")
def export(
    session: Session = None,
    run: Run = None,
    work_item: WorkItem = None,
    kind: Kinds = None,
    after: After = None,
    output: Annotated[str | None, typer.Option("--output", metavar="FILE", help="Write this file as a whole.")] = None,
    view: View = "redacted_public",
    format: Annotated[  # the option's name
        Literal["trajectory", "atif"],
        typer.Option("--format", help="trajectory: canonical, comes in again; atif: one session for other tools."),
    ] = "trajectory",
    receipt: Annotated[
        str | None, typer.Option("--receipt", metavar="FILE", help="Write the receipt here instead of standard error.")
    ] = None,
    source: Source = None,
    selector: Selector = "trajectory",
) -> None:
    """Export a snapshot as JSON, its losses declared; a file is replaced whole or left as it was."""
    from qiju.files import FileReplacement, refuse_target
    from qiju.keeping.progress import Progress
    from qiju.trajectory.exporter import CanonicalTrajectoryExporter
    from qiju.trajectory.store import store_files

    query = _query(session, run, work_item, kind, after, None)
    exporter = EXPORTERS.get(format, CanonicalTrajectoryExporter)()
    context = current()
    with open_reader(source, selector) as reader, Progress("exporting", color=not context.no_color) as step:

        def tick() -> bool:
            step()
            return False

        made: FileExportReceipt
        if output is None:
            made = exporter.export_stream(reader, query, sys.stdout.buffer, view=PrivacyView(view), cancelled=tick)
            sys.stdout.buffer.flush()
        else:
            # Whatever the source is, the store of this home is no target.
            refuse_target(_path(output), protected=store_files(context.home))
            made = exporter.export_file(reader, query, _path(output), view=PrivacyView(view), cancelled=tick)
    text = jsontext.line(made.to_dict())
    if receipt is None:
        print(text, file=sys.stderr)
    else:
        with FileReplacement(_path(receipt), protected=store_files(context.home)) as file:
            file.write(text.encode() + b"\n")


@app.command("verify")
def verify(
    path: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="A journal or an export; the store when not given.")
    ] = None,
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="sha256:HEX", help="What an export's receipt says.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Check every payload against its digest: of the store, of a journal, or of an export."""
    from qiju.trajectory import verifying
    from qiju.trajectory.store import SqliteTrajectoryStore

    if path is None:
        with current().open_for_reading() as store:
            result = verifying.verify_store(SqliteTrajectoryStore(store))
    elif verifying.is_journal(_existing(path)):
        result = verifying.verify_journal(_path(path))
    else:
        result = verifying.verify_export(_path(path), digest)
    if json:
        print(render.json_text(result.to_dict()))
    else:
        print(f"{result.kind}: {counted(result.records, 'record')} checked, {counted(len(result.problems), 'problem')}")
        for problem in result.problems:
            print(render.one_line(problem))
    if result.problems:
        raise VerificationFailed(
            f"{len(result.problems)} problems found", hint="restore a backup, or export again from the store"
        )


@app.command("reimport")
def reimport(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A file that 'trajectory export' wrote.")],
    dry_run: DryRun = False,
) -> None:
    """Check an export and store what of it is missing; says whether what came back is exactly what went out."""
    trajectory, exact = read_export(_existing(path))
    context = current()
    with _store(context, dry_run) as store:
        report = reimport_into(store, trajectory, dry_run=dry_run)
    report["exact_reimport"] = exact
    report["dry_run"] = dry_run
    print(render.json_text(report))
    if not exact:
        context.note("the export is a projection: what it left out is not in the store either (see loss)")


@app.command("import")
def import_(
    paths: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files or folders to take in.")],
    host: Annotated[
        Literal["claude", "codex"] | None, typer.Option("--host", help="A transcript of this host.")
    ] = None,
    format: Annotated[  # the option's name
        Literal["atif", "journal", "run-folder"] | None, typer.Option("--format", help="What the file is.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Take a session's facts in, redacted like everything that is stored; nothing is stored twice."""
    if (host is None) == (format is None):
        raise UsageError(
            "name either --host or --format", hint=f"hosts: {', '.join(HOSTS)}; formats: {', '.join(FORMATS)}"
        )
    from qiju.keeping.progress import Progress

    name = host or format or ""
    if name not in READERS and name not in TAKERS:
        raise UsageError(f"this Qiju cannot read {name}", hint="it reads " + ", ".join(sorted({*READERS, *TAKERS})))
    context = current()
    reports: list[JsonValue] = []
    found = [_existing(path) for path in paths]
    with (
        _store(context, dry_run) as store,
        Progress(f"importing {name}", color=not context.no_color) as step,
    ):
        for path in found:
            if name in TAKERS:
                reports.append({"path": str(path), "dry_run": dry_run, **TAKERS[name](store, path, dry_run)})
                continue
            history = READERS[name](path, store.store)
            try:
                imported = store.import_drafts(_stepping(history.drafts, step), dry_run=dry_run)
            finally:
                history.close()
            reports.append({"path": str(path), "dry_run": dry_run, **imported.to_dict(), **history.report()})
        warnings = list(store.store.warnings)
    for warning in warnings:
        context.note(warning)
    print(render.json_text(reports[0] if len(reports) == 1 else reports))


def register(root: typer.Typer) -> None:
    """Add the commands, those about transcripts included."""
    if find_spec("qiju.cli.transcripts") is not None:
        import_module("qiju.cli.transcripts")
    root.add_typer(app, name="trajectory")


@contextmanager
def open_reader(source: str | None, selector: str) -> Iterator[StoreTrajectoryReader]:
    """The store's reader, or that of another place."""
    from qiju.trajectory.readers import StoreTrajectoryReader, default_reader
    from qiju.trajectory.store import SqliteTrajectoryStore

    if source is not None:
        with default_reader(_existing(source), selector=selector) as reader:
            yield reader
        return
    if selector != "trajectory":
        raise UsageError("--selector legacy needs --source", hint="give the folder of the older history")
    with current().open_for_reading() as store:
        yield StoreTrajectoryReader(SqliteTrajectoryStore(store))


@contextmanager
def _store(context: Context, dry_run: bool) -> Iterator[SqliteTrajectoryStore]:
    from qiju.store import database_path
    from qiju.trajectory.store import SqliteTrajectoryStore

    # A dry run does the work and takes it back; where there is no store yet, in memory, so that none is made.
    fresh = dry_run and not database_path(context.home).exists()
    with context.open_for_reading() if fresh else context.open() as store:
        yield SqliteTrajectoryStore(store)


def _stepping(drafts: Iterator[TrajectoryDraft], step: Callable[[], object]) -> Iterator[TrajectoryDraft]:
    for draft in drafts:
        step()
        yield draft


def _query(
    session: str | None,
    run: str | None,
    work_item: str | None,
    kinds: list[str] | None,
    after: int | None,
    limit: int | None,
) -> TrajectoryQuery:
    return TrajectoryQuery(session, run, work_item, tuple(kinds or ()), after, limit)  # type: ignore[arg-type]


def _path(text: str) -> Path:
    if not text:
        raise UsageError("the path is empty")
    return Path(text)


def _existing(text: str) -> Path:
    path = _path(text)
    if not path.exists():
        raise NotFound(f"there is no {path}")
    return path
