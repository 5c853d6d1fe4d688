"""`qiju uninstall`: take Qiju's files away again; records only with `--purge-data`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from qiju import hosts, place, storekey
from qiju.cli.context import Context, current
from qiju.cli.setting_up import check_path, finish, open_database, user_level, worktree_here
from qiju.cli.update import scan_roots
from qiju.db import Database
from qiju.errors import MarkerConflict, NotFound, UsageError
from qiju.install import purge, run, scan
from qiju.install.skillfiles import Place
from qiju.place.home import real_path
from qiju.registry import Registry
from qiju.store import Store
from qiju.wording import counted


def register(app: typer.Typer) -> None:
    app.command("uninstall", help="Remove skills, hooks and markers. Records stay unless --purge-data says otherwise.")(
        uninstall
    )


def uninstall(
    user_only: Annotated[bool, typer.Option("--user-only", help="Only what was installed for the user.")] = False,
    project_only: Annotated[bool, typer.Option("--project-only", help="Only what was installed in projects.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be removed, and remove nothing.")
    ] = False,
    project_root: Annotated[
        str | None,
        typer.Option(
            "--project-root", "--project-path", metavar="DIR", help="This project, instead of the current one."
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="NAME", help="All folders of this project, and no others.")
    ] = None,
    host: Annotated[
        str, typer.Option("--hosts", "--host", metavar="HOSTS", help="Only these: a comma list, or all.")
    ] = "all",
    scan_projects: Annotated[
        bool | None,
        typer.Option(
            "--scan-projects/--no-scan-projects",
            help="Clean every registered and found project, too. On, unless a project or --user-only is named.",
            show_default=False,
        ),
    ] = None,
    scan_root: Annotated[
        list[str] | None, typer.Option("--scan-root", metavar="DIR", help="Folder to scan; repeatable.")
    ] = None,
    scan_depth: Annotated[int, typer.Option("--scan-depth", help="How deep a scan goes.")] = scan.DEFAULT_DEPTH,
    bin_dir: Annotated[
        str | None, typer.Option("--bin-dir", metavar="DIR", help="Where the predecessor's command is (~/.local/bin).")
    ] = None,
    install_root: Annotated[
        str | None, typer.Option("--install-root", metavar="DIR", help="The predecessor's engine (~/.qiju/qiju).")
    ] = None,
    purge_data: Annotated[
        bool, typer.Option("--purge-data", help="Delete all records, too, after the word is typed and a backup taken.")
    ] = False,
    backup: Annotated[
        bool, typer.Option("--backup/--no-backup", help="With --purge-data: keep a last backup, or delete all backups.")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --purge-data: do not ask for the word.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> int:
    context = current()
    if user_only and project_only:
        raise UsageError("--user-only and --project-only leave nothing to do", hint="Give one of them, or none.")
    if user_only and (project_root or project):
        raise UsageError("--user-only leaves projects alone, but a project is named", hint="Leave one of them out.")
    names = hosts.parse(host)
    where = user_level(context)
    if purge_data and not dry_run:
        purge.confirm(_ask, yes=yes)
    scanning = scan_projects if scan_projects is not None else not (user_only or project_root or project)
    with open_database(context, change=not dry_run, create=False) as db:
        roots: list[Path] = []
        if not user_only:
            roots = _roots(context, db, project_root, project)
            if scanning:
                roots += [Path(root.path) for root in Registry(db).roots() if Path(root.path).is_dir()]
                roots += scan_roots(context, where, scan_root, scan_depth)
        whole = not project_only and names == hosts.NAMES
        report = run.uninstall(
            db,
            where,
            names,
            list(dict.fromkeys(roots)),
            context.home,
            user_level=not project_only,
            engine=_engine(context, where, bin_dir, install_root) if whole else None,
            dry_run=dry_run,
        )
    if purge_data and not report.failed:
        report.value["purged"] = _purge(context, dry_run=dry_run, keep_backup=backup)
    return finish(context, report, _text(report.value), as_json=as_json)


def _roots(context: Context, db: Database, root: str | None, project: str | None) -> list[Path]:
    """The named project, all folders of the named project, or the current one."""
    named = real_path(root, context.env, named="--project-root") if root is not None else None
    if project is None:
        if named is not None:
            return [check_path(named)]
        here = worktree_here(context.root.path)
        return [check_path(context.root.path), *([here] if here is not None else [])]
    registry = Registry(db)
    slug = place.slugify(project)
    known = [Path(each.path) for each in registry.roots_of(slug)]
    if named is None:
        if not known:
            raise NotFound(f"no folder is registered for the project {slug!r}", hint="qiju projects lists them.")
        return known
    marker = place.read_marker(named)
    if named not in known and (marker is None or marker.project != slug):
        raise MarkerConflict(f"{named} does not belong to the project {slug!r}", hint="Leave --project out.")
    return [check_path(named)]


def _engine(context: Context, where: Place, bin_dir: str | None, install_root: str | None) -> tuple[Path, Path]:
    """The predecessor's bin folder and engine folder."""

    def folder(flag: str | None, variable: str, named: str, default: Path) -> Path:
        text = flag or context.env.get(variable, "")
        return real_path(text, context.env, named=named) if text else default

    home = where.user_home
    return (
        folder(bin_dir, "QIJU_BIN_DIR", "--bin-dir", home / ".local" / "bin"),
        folder(install_root, "QIJU_INSTALL_ROOT", "--install-root", home / ".qiju" / "qiju"),
    )


def _ask(question: str) -> str:
    """Ask on standard error, because standard output is for the report."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline()


def _purge(context: Context, *, dry_run: bool, keep_backup: bool) -> dict[str, Any]:
    """Delete the store, after its last backup."""
    doomed = purge.targets(context.home, with_backups=not keep_backup)
    if dry_run:
        return {"removed": [str(path) for path in doomed], "backup": None, "executed": False}
    kept = _last_backup(context) if keep_backup and doomed else None
    done = purge.purge(context.home, kept, with_backups=not keep_backup)
    if kept is not None:
        context.note(f"a last backup is kept: {kept}; delete it to be rid of everything")
    return {"removed": [str(path) for path in done.removed], "backup": str(kept) if kept else None, "executed": True}


def _last_backup(context: Context) -> Path:
    """One file with every record, and the store key beside it: the purge deletes both originals."""
    from qiju.keeping.backup import backup

    with Store.open(context.home) as store:
        return backup(store, with_key=storekey.path(context.home).exists()).path


def _text(value: dict[str, Any]) -> str:
    lines = ["qiju uninstall (dry run)" if value["dry_run"] else "qiju uninstall"]
    actions = value["actions"]
    if actions:
        lines += ["", "Would be removed:" if value["dry_run"] else "Removed:"]
    for each in actions:
        failed = f"  FAILED: {each['error']}" if each.get("error") else ""
        kept = f" (kept as {each['backup']})" if each.get("backup") else ""
        lines.append(f"  [{each['action']}] {each['path']}{kept}{failed}")
    if value["preserved"]:
        lines += ["", "Preserved:"]
    for each in value["preserved"]:
        lines += [f"  {each['path']}", f"    reason: {each['reason']}"]
    gone = value.get("purged")
    if gone:
        lines += ["", "Records deleted:" if gone["executed"] else "Records that would be deleted:"]
        lines += [f"  {path}" for path in gone["removed"]] or ["  there is no store"]
    done = sum(1 for each in actions if each["executed"]) if not value["dry_run"] else len(actions)
    verb = "would be removed or changed" if value["dry_run"] else "removed or changed"
    lines += ["", f"Summary: {counted(done, 'path')} {verb}, {len(value['preserved'])} preserved"]
    return "\n".join(lines)
