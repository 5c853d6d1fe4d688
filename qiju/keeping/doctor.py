"""Look at everything Qiju depends on, and say what is wrong and what to do; nothing is changed.

Each check is a function that yields findings; one that fails is a finding itself and stops no other. A store is never
migrated by looking at it: its header tells the schema first. What `--fix` can put right is in `qiju.keeping.repair`.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import apsw

import qiju
from qiju import storekey
from qiju.db import SCHEMA_VERSION, Database
from qiju.errors import NewerSchema, QijuError, StoreDamaged
from qiju.jsontext import JsonValue
from qiju.keeping import filesystem
from qiju.store import Store, database_path
from qiju.wording import counted

if TYPE_CHECKING:
    from qiju.place.config import Config

OK, INFO, WARN, FAIL = "ok", "info", "warn", "fail"
LARGE_WAL = 64 * 1024 * 1024  # bytes; a WAL is cut back to 16 MiB after each checkpoint, so this one is held open
LITTLE_ROOM = 200 * 1024 * 1024  # bytes
OLD = 3600.0  # seconds after which a temporary file has no living owner


class Finding(NamedTuple):
    """One thing that was looked at. `status`: ok, info, warn or fail; `hint` says what to do; `facts` are for JSON."""

    check: str
    status: str
    message: str
    hint: str = ""
    facts: Mapping[str, JsonValue] = {}

    def to_json(self) -> dict[str, JsonValue]:
        return {**self._asdict(), "facts": dict(self.facts)}


class Subject(NamedTuple):
    """What is looked at. `root` is the project folder of the call, None where there is none."""

    home: Path
    env: Mapping[str, str]
    user_home: Path | None
    root: Path | None
    config: Config | None


Check = Callable[[Subject], Iterator[Finding]]


def examine(subject: Subject) -> list[Finding]:
    """Run every check, in the order in which a person would ask."""
    from qiju.keeping.doctor_around import AROUND

    found: list[Finding] = []
    for name, check in (*CHECKS, *AROUND):
        try:
            found.extend(check(subject))
        except (QijuError, OSError, apsw.Error, UnicodeDecodeError) as error:
            hint = error.hint if isinstance(error, QijuError) else ""
            found.append(Finding(name, FAIL, f"could not be looked at: {error}", hint))
    return found


# --- the program and the home ----------------------------------------------------------------------------------------


def _program(subject: Subject) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    facts: dict[str, JsonValue] = {
        "qiju": qiju.__version__,
        "python": python,
        "executable": sys.executable,
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "platform": sys.platform,
    }
    yield Finding(
        "program", OK, f"Qiju {qiju.__version__}, Python {python}, SQLite {apsw.sqlite_lib_version()}", facts=facts
    )
    from shutil import which

    if which("qiju", path=subject.env.get("PATH")) is None:
        yield Finding("program", WARN, "no 'qiju' is on the PATH", "agents call it by name: add its folder to the PATH")


def _home(subject: Subject) -> Iterator[Finding]:
    home = subject.home
    if not home.is_dir():
        yield Finding("home", INFO, f"{home} does not exist yet", "the first 'qiju log' or 'qiju init' makes it")
        return
    source = "QIJU_HOME" if subject.env.get("QIJU_HOME", "").strip() else "default, or --home"
    yield Finding("home", OK, f"{home} ({source})", facts={"path": str(home)})
    if not os.access(home, os.W_OK):
        yield Finding("home", WARN, "the folder cannot be written: reading works, 'qiju log' does not", "chmod u+w")
    for path, mode in loose_permissions(home):
        yield Finding("permissions", WARN, f"{path} is open to others ({mode:03o})", "'qiju doctor --fix' closes it")


def loose_permissions(home: Path) -> list[tuple[Path, int]]:
    """The store's own files and folders that others may read or write, with their mode; nothing on Windows."""
    if sys.platform == "win32":
        return []
    names = ("qiju.db", "qiju.db-wal", "qiju.db-shm", storekey.NAME, "backups", "archive", "spool")
    found = []
    for path in (home, *(home / name for name in names)):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue
        if mode & 0o077 and not path.is_symlink():
            found.append((path, mode))
    return found


def _file_system(subject: Subject) -> Iterator[Finding]:
    found = filesystem.kind_of(subject.home)
    facts: dict[str, JsonValue] = {"kind": found.kind, "type": found.name, "where": found.where}
    if message := filesystem.risk(subject.home):
        yield Finding("file system", WARN, message, "move the home to a local disk of its own (QIJU_HOME)", facts)
    elif found.kind == filesystem.MEMORY:
        message = f"{found.where} is kept in memory ({found.name}): the records go with the next restart"
        yield Finding("file system", WARN, message, "move the home to a disk (QIJU_HOME)", facts)
    else:
        name = f" ({found.name})" if found.name else ""
        status, kind = (OK, "local") if found.kind == filesystem.LOCAL else (INFO, "of a kind the system does not tell")
        yield Finding("file system", status, f"{kind}{name}", facts=facts)
    room = _room(subject.home)
    needed = max(LITTLE_ROOM, 2 * _size(database_path(subject.home)))
    if room is not None and room < needed:
        message = f"{room // 1048576} MiB are free; a backup or a rewrite may need {needed // 1048576}"
        yield Finding("file system", WARN, message, "free some space", {"free": room})


def _room(path: Path) -> int | None:
    from shutil import disk_usage

    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        return disk_usage(path).free
    except OSError:
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


# --- the store -------------------------------------------------------------------------------------------------------


def readable(home: Path) -> bool:
    """Whether the database has the schema of this program, so that opening it changes nothing."""
    from qiju.keeping.restore import check_header

    path = database_path(home)
    if not path.is_file() or path.stat().st_size == 0:
        return False
    check_header(path)
    with path.open("rb") as file:
        return int.from_bytes(file.read(64)[60:64], "big") == SCHEMA_VERSION


def _store(subject: Subject) -> Iterator[Finding]:
    path = database_path(subject.home)
    if not path.exists():
        yield Finding("store", INFO, "there is no store yet", "the first 'qiju log' makes it")
        return
    try:
        current = readable(subject.home)
    except NewerSchema as error:
        yield Finding("schema", FAIL, str(error), error.hint)
        return
    except StoreDamaged as error:
        yield Finding("store", FAIL, str(error), "'qiju doctor --fix' saves what can be read, or 'qiju restore'")
        return
    if not current:
        message = "the store has an older schema; the next command brings it up to date, after a backup"
        yield Finding("schema", INFO, message)
        return
    yield Finding("schema", OK, f"version {SCHEMA_VERSION}", facts={"version": SCHEMA_VERSION})
    yield from _inside(subject)


def _inside(subject: Subject) -> Iterator[Finding]:
    from qiju.keeping.verify import verify

    with Store.open_for_reading(subject.home, subject.config) as store:
        report = verify(store, quick=True)
        size = _size(database_path(subject.home))
        tiers: dict[str, JsonValue] = {
            str(tier): int(str(number))
            for tier, number in store.db.connection.execute("SELECT tier, count(*) FROM record GROUP BY tier")
        }
        projects = int(store.db.value("SELECT count(*) FROM project"))
        records = report.counts.get("records", 0)
        message = f"{counted(records, 'record')} in {counted(projects, 'project')}, {size // 1024} KiB"
        yield Finding("store", OK, message, facts={"bytes": size, "projects": projects, "tiers": tiers})
        for fault in report.faults[:20]:
            hint = "'qiju verify' lists everything; 'qiju doctor --fix' repairs what can be repaired"
            yield Finding(fault.check, FAIL, f"{fault.where}: {fault.message}", hint)
        more = len(report.faults) - 20 + sum(report.unlisted.values())
        if more > 0:
            yield Finding("store", FAIL, counted(more, "more fault"), "'qiju verify' lists everything")
        if unsealed := report.counts.get("unsealed", 0):
            message = "written by hand, neither redacted nor sealed: " + counted(unsealed, "record")
            yield Finding("unsealed", WARN, message, "qiju redact --rescan", {"records": unsealed})
        pending = int(store.db.value("SELECT count(*) FROM redaction_pending"))
        if pending:
            message = "begun and not proven: " + counted(pending, "redaction")
            yield Finding("redaction", FAIL, message, "run the same 'qiju redact' again", {"pending": pending})
        if waiting := report.counts.get("spooled", 0):
            message = f"{counted(waiting, 'record waits', 'records wait')} for the next write"
            yield Finding("spool", WARN, message, "'qiju doctor --fix' stores them")
        for notice in report.notices:
            if notice.check == "archive":
                yield Finding("archive", INFO, f"{notice.where}: {notice.message}")
        yield from _journal(subject, store.db)
        yield from _key(subject, store.db)
        yield from _roots(store.db)


def _journal(subject: Subject, db: Database) -> Iterator[Finding]:
    wal = _size(database_path(subject.home).with_name("qiju.db-wal"))
    mode = str(db.value("PRAGMA journal_mode"))
    facts: dict[str, JsonValue] = {"journal_mode": mode, "wal_bytes": wal}
    if mode not in ("wal", "memory"):
        yield Finding("journal", WARN, f"the journal mode is {mode}, not wal", "'qiju doctor --fix' sets it", facts)
    elif wal > LARGE_WAL:
        message = f"the write-ahead log has grown to {wal // 1048576} MiB: some process keeps an old snapshot open"
        yield Finding("journal", WARN, message, "end it; 'qiju doctor --fix' then cuts the log back", facts)
    else:
        yield Finding("journal", OK, f"write-ahead log, {wal // 1024} KiB", facts=facts)
    holder = db.lock_holder()
    if holder is not None:
        yield Finding("lock", INFO, f"process {holder} is writing at this moment", facts={"pid": holder})
    else:
        told = "nobody holds the write lock" if sys.platform == "linux" else "this system does not say who writes"
        yield Finding("lock", OK, told)


def _key(subject: Subject, db: Database) -> Iterator[Finding]:
    consequence = "open cursors end, equal secrets get other markers, and redacted values are not recognised again"
    key = storekey.read(subject.home)
    wanted = db.setting("key_id")
    if key is None:
        if wanted:
            message = f"the store key is missing: {consequence}"
            yield Finding("key", FAIL, message, f"put {storekey.NAME} back from 'qiju backup --with-key'")
        return
    if wanted and storekey.subkey(key, "id").hex()[:16] != wanted:
        yield Finding("key", WARN, f"the store key is not the one this store was written with: {consequence}")
    else:
        yield Finding("key", OK, "the store key is there")


def _roots(db: Database) -> Iterator[Finding]:
    from qiju.place.marker import read_marker

    for row in db.connection.execute("SELECT path, project FROM project_root ORDER BY path").fetchall():
        path = Path(str(row[0]))
        if not path.is_dir():
            message = f"{path} ({row[1]}) is registered and not there"
            yield Finding("projects", WARN, message, "'qiju update' drops folders that are gone")
            continue
        try:
            read_marker(path)
        except QijuError as error:
            yield Finding("projects", WARN, str(error), error.hint)


def _backups(subject: Subject) -> Iterator[Finding]:
    from qiju.keeping.backup import listed

    found = [kept for kept in listed(subject.home) if kept.kind == "backup"]
    if not found:
        if database_path(subject.home).exists():
            yield Finding("backups", INFO, "there is no backup below the home", "qiju backup --keep 5")
        return
    age = (time.time() - found[-1].path.stat().st_mtime) / 86400
    facts: dict[str, JsonValue] = {"count": len(found), "newest": str(found[-1].path), "days": int(age)}
    yield Finding("backups", OK, f"{len(found)}, the newest {int(age)} days old", facts=facts)


def leftovers(home: Path) -> list[Path]:
    """What killed runs left in the home, an hour old or more: copies of a restore or a check, temporary files."""
    if not home.is_dir():
        return []
    found = []
    from qiju.keeping.partitions import folders as partitions

    folders = [home, *(folder for folder in (home / "backups", home / "spool") if folder.is_dir()), *partitions(home)]
    for path in (path for folder in folders for path in folder.iterdir()):
        own = path.name.startswith((".restore-", ".salvage-", ".verify-")) or ".qiju-tmp-" in path.name
        own |= path.suffix == ".tmp" and (path.parent.name == "spool" or path.name.startswith("store.key."))
        if own and not path.is_symlink() and time.time() - path.lstat().st_mtime > OLD:
            found.append(path)
    return sorted(found)


def _leftovers(subject: Subject) -> Iterator[Finding]:
    for path in leftovers(subject.home):
        yield Finding("leftovers", WARN, f"{path} was left by a killed run", "'qiju doctor --fix' removes it")


CHECKS: tuple[tuple[str, Check], ...] = (
    ("program", _program),
    ("home", _home),
    ("file system", _file_system),
    ("store", _store),
    ("backups", _backups),
    ("leftovers", _leftovers),
)
