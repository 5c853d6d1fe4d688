"""What lies around the store: configuration, session, hosts and their skills, predecessors' stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qiju.errors import QijuError
from qiju.jsontext import JsonValue
from qiju.keeping.doctor import FAIL, INFO, OK, WARN, Check, Finding, Subject, readable


def _configuration(subject: Subject) -> Iterator[Finding]:
    from qiju.place.config import load_config
    from qiju.place.marker import read_marker

    try:
        marker = None if subject.root is None else read_marker(subject.root)
        config = load_config(subject.home, marker, subject.root)
    except QijuError as error:
        yield Finding("configuration", FAIL, str(error), error.hint)
        return
    for warning in config.warnings:
        yield Finding("configuration", WARN, warning)
    if not config.warnings:
        yield Finding("configuration", OK, "nothing to object to")


def _redaction(subject: Subject) -> Iterator[Finding]:
    from qiju.redaction.rules import load_user_rules
    from qiju.redaction.scanner import active_engines, available

    settings = subject.config.redaction if subject.config is not None else None
    wanted = settings is not None and settings.scanner
    engines = active_engines(wanted)
    own = len(load_user_rules(settings.rules)) if settings is not None else 0
    message = " and ".join(engines) + (f", {own} rules of your own" if own else "")
    facts: dict[str, JsonValue] = {"engines": list(engines), "own_rules": own}
    if wanted and not available():
        yield Finding("redaction", FAIL, message, "pip install 'qiju[scanner]', or take redaction.scanner out", facts)
    else:
        yield Finding("redaction", OK, message, facts=facts)


def _identity(subject: Subject) -> Iterator[Finding]:
    from qiju.place.identity import SESSION_VARIABLES, host_of

    named = [name for name in SESSION_VARIABLES if subject.env.get(name, "").strip()]
    host = host_of(subject.env)
    facts: dict[str, JsonValue] = {"variables": list(named), "host": host}
    session = f"from {named[0]}" if named else "a fresh one for each 'qiju log' (no variable names it)"
    yield Finding("session", INFO, f"{session}; host: {host or 'none recognised'}", facts=facts)


def _project(subject: Subject) -> Iterator[Finding]:
    from qiju.place.marker import read_marker

    if subject.root is None:
        return
    marker = read_marker(subject.root)
    if marker is None:
        yield Finding("project", INFO, f"{subject.root} has no marker", "'qiju init' gives it one")
    elif marker.uuid is None:
        message = f"{marker.project}: the marker is the predecessor's and has no identity yet"
        yield Finding("project", INFO, message, "'qiju init' or 'qiju migrate' gives it one")
    else:
        yield Finding("project", OK, f"{marker.project} at {subject.root}", facts={"uuid": marker.uuid})


def _hosts(subject: Subject) -> Iterator[Finding]:
    """Every installed skill, at the user's level, in this project and in every registered one, with its state."""
    from qiju import hosts
    from qiju.install.skillfiles import Place, survey
    from qiju.registry import ManifestRow, Registry
    from qiju.skills import SkillState
    from qiju.store import Store

    if subject.user_home is None:
        return
    rows: dict[str, ManifestRow] = {}
    roots = [] if subject.root is None else [subject.root]
    if _is_readable(subject.home):
        with Store.open_for_reading(subject.home) as store:
            registry = Registry(store.db)
            rows = registry.rows()
            roots += [Path(root.path) for root in registry.roots() if Path(root.path).is_dir()]
    states: dict[str, list[str]] = {}
    listed: list[JsonValue] = []
    for root in (None, *dict.fromkeys(roots)):
        for file in survey(Place(root, subject.env, subject.user_home), hosts.NAMES, rows):
            if file.state is SkillState.MISSING and file.row is None:
                continue
            state = str(file.state) if file.state else "unreadable"
            states.setdefault(state, []).append(str(file.path))
            owners: list[JsonValue] = [*file.owners]
            listed.append({"path": str(file.path), "hosts": owners, "state": state})
    running = hosts.running(subject.env)
    message = ", ".join(f"{len(paths)} {state}" for state, paths in sorted(states.items())) or "none installed"
    facts: dict[str, JsonValue] = {"running": list(running), "skills": listed}
    yield Finding("skills", OK if set(states) <= {"current"} and states else INFO, message, facts=facts)
    advice = {
        "stale": "'qiju update' brings them to this version",
        "modified": "edited by you; 'qiju update --force' replaces them and keeps a copy",
        "missing": "'qiju update' or 'qiju init' writes them again",
        "unreadable": "look at what stands there",
    }
    for state, hint in advice.items():
        for path in states.get(state, []):
            yield Finding("skills", WARN if state != "modified" else INFO, f"{path}: {state}", hint)


def _is_readable(home: Path) -> bool:
    try:
        return readable(home)
    except QijuError:
        return False


def _predecessors(subject: Subject) -> Iterator[Finding]:
    from qiju.legacy import is_store
    from qiju.store import Store

    if subject.user_home is None:
        return
    taken = 0
    if _is_readable(subject.home):
        with Store.open_for_reading(subject.home) as store:
            taken = int(store.db.value("SELECT count(*) FROM taken_over"))
    commands = ((".qiju", "qiju migrate --from-qiju ~/.qiju"), (".kedu", "qiju migrate --from-kedu"))
    for path, command in [(subject.user_home / name, command) for name, command in commands]:
        if is_store(path):
            what = "holds a predecessor's store"
            done = f"; {taken} of its lines and others' have been taken over already" if taken else ""
            yield Finding("predecessor", INFO, f"{path} {what}{done}", command, {"path": str(path)})
    known = {(subject.user_home / name).resolve() for name, _ in commands}
    if subject.home.resolve() not in known and is_store(subject.home):
        command = f"qiju migrate --from-qiju {subject.home}"
        yield Finding("predecessor", INFO, f"{subject.home} holds a predecessor's store, too", command)
    if subject.root is not None and (subject.root / ".qiju" / "short.jsonl").is_file():
        command = f"qiju migrate --from-qiju ~/.qiju --project-root {subject.root}"
        yield Finding("predecessor", INFO, f"{subject.root} holds a predecessor's short tier", command)


AROUND: tuple[tuple[str, Check], ...] = (
    ("configuration", _configuration),
    ("redaction", _redaction),
    ("session", _identity),
    ("project", _project),
    ("skills", _hosts),
    ("predecessor", _predecessors),
)
