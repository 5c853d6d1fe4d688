"""Move all records of one project into another, so that it can be undone.

One history often lands under two names: a wrong `--project`, a renamed folder, a name in another case. A move is one
transaction: records, the registry, the project row, and a note of what every record was called before (`retag`,
`retag_record`). A record whose id the target already holds keeps its place in the session under a marked id; nothing is
overwritten, and nothing is dropped. Everything is checked before the first change (`plan`), and the same plan is what
`--dry-run` prints.

The markers in the folders of the moved project are rewritten afterwards, because they would found it anew with the next
`log`; a folder that cannot be reached is named. Undoing puts records, registry and markers back; records that came
after the move stay where they were written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qiju.errors import NotFound, QijuError, Refused, UsageError
from qiju.jsontext import JsonValue
from qiju.keeping.collate import marked_id
from qiju.place.marker import read_marker, write_marker
from qiju.place.slug import slugify
from qiju.projects import Home, ensure
from qiju.wording import counted

if TYPE_CHECKING:
    import apsw

    from qiju.store import Store

Step = Callable[[int], object]


class Plan(NamedTuple):
    """What a move does. `marked` maps ids that the target holds already to the ids the moved records get."""

    kind: str
    source: str
    target: str
    records: int
    marked: dict[str, str]
    roots: tuple[str, ...]
    unreachable: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        marked: list[JsonValue] = [{"id": old, "kept_as": new} for old, new in self.marked.items()]
        return {
            "operation": self.kind,
            "from_project": self.source,
            "to_project": self.target,
            "records": self.records,
            "conflicts": marked,
            "roots": list(self.roots),
            "unreachable": list(self.unreachable),
        }


class Move(NamedTuple):
    """A move as recorded: `retag_id` is what `undo` takes."""

    retag_id: int
    kind: str
    source: str
    target: str
    at: str
    records: int
    undone_at: str


def plan(store: Store, source: str, target: str, *, kind: str = "merge") -> Plan:
    """Check all that could stop the move. Raises `UsageError` for one project given twice, `NotFound`, `Refused`.

    Both names are slugs as stored (`normalise` moves slugs that are none), so they are looked up before they are
    slugged.
    """
    source, target = _known(store, source), _known(store, target, missing_is_new=True)
    if source == target:
        raise UsageError(f"{source} cannot be moved into itself")
    connection = store.db.connection
    total = int(store.db.value("SELECT count(*) FROM record WHERE project = ?", (source,)))
    # A row nobody sealed has had no redaction; moving it would give it a digest as if it had.
    unsealed = int(store.db.value("SELECT count(*) FROM record WHERE project = ? AND digest = ''", (source,)))
    if unsealed:
        raise Refused(
            f"{counted(unsealed, 'record was', 'records were')} written by hand into {source} and never sealed",
            hint="run 'qiju redact --rescan' first",
        )
    taken = connection.execute(
        "SELECT id FROM record AS r WHERE project = ?1 AND EXISTS"
        " (SELECT 1 FROM record AS t WHERE t.id = r.id AND t.project = ?2) ORDER BY seq",
        (source, target),
    ).fetchall()
    marked: dict[str, str] = {}
    for (identity,) in taken:
        marked[str(identity)] = _free_id(store, str(identity), source, target)
    roots = [str(row[0]) for row in connection.execute("SELECT path FROM project_root WHERE project = ?", (source,))]
    unreachable = tuple(path for path in roots if not Path(path).is_dir())
    return Plan(kind, source, target, total, marked, tuple(roots), unreachable)


def apply(
    store: Store, what: Plan, *, target_home: Home | None = None, step: Step | None = None
) -> tuple[int, list[str]]:
    """Carry the plan out in one transaction, then rewrite the markers; the move's number, and warnings.

    `target_home` is what a marker says of the target: a project that the store does not know yet gets its UUID.
    """
    with store.db.write() as connection:
        if target_home is not None:
            ensure(connection, target_home)
        if plan(store, what.source, what.target, kind=what.kind) != what:
            raise Refused("the projects changed since the plan was made", hint="run it again")
        source_uuid, source_name = connection.execute(
            "SELECT uuid, name FROM project WHERE slug = ?", (what.source,)
        ).fetchone() or ("", "")
        connection.execute(
            "INSERT INTO project (slug) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM project WHERE slug = ?1)",
            (what.target,),
        )
        roots = connection.execute(
            "SELECT path, hosts FROM project_root WHERE project = ? ORDER BY path", (what.source,)
        ).fetchall()
        detail = {"name": source_name, "roots": [[path, hosts] for path, hosts in roots]}
        sql = "INSERT INTO retag (kind, source, source_uuid, target, detail) VALUES (?, ?, ?, ?, ?)"
        connection.execute(
            sql, (what.kind, what.source, source_uuid, what.target, json.dumps(detail, ensure_ascii=False))
        )
        retag_id = connection.last_insert_rowid()
        sql = "SELECT seq FROM record WHERE project = ? ORDER BY seq"
        seqs: list[tuple[Any, ...]] = connection.execute(sql, (what.source,)).fetchall()
        for row in seqs:
            _move(store, connection, int(row[0]), what, retag_id)
            if step is not None:
                step(1)
        connection.execute("UPDATE project_root SET project = ? WHERE project = ?", (what.target, what.source))
        connection.execute("DELETE FROM project WHERE slug = ?", (what.source,))
        target_uuid = str(store.db.value("SELECT uuid FROM project WHERE slug = ?", (what.target,)))
    return retag_id, _rewrite_markers([str(path) for path, _ in roots], what.target, target_uuid)


def undo(store: Store, retag_id: int | None = None, *, dry_run: bool = False) -> tuple[Move, int, list[str]]:
    """Take a move back: the given one, or the last that was not undone; the move, records put back, warnings.

    Raises `NotFound` when there is none, `Refused` when a moved record's old place has been taken meanwhile.
    """
    with store.db.write() as connection:
        move = _to_undo(store, connection, retag_id)
        found: list[tuple[Any, ...]] = connection.execute(
            "SELECT r.seq, r.old_project, r.old_id FROM retag_record AS r JOIN record USING (seq)"
            " WHERE r.retag_id = ? AND record.project = ? ORDER BY seq",
            (move.retag_id, move.target),
        ).fetchall()
        rows = [(int(seq), str(project), str(identity)) for seq, project, identity in found]
        detail: dict[str, Any] = json.loads(
            store.db.value("SELECT detail FROM retag WHERE retag_id = ?", (move.retag_id,))
        )
        source_uuid = str(store.db.value("SELECT source_uuid FROM retag WHERE retag_id = ?", (move.retag_id,)))
        taken = [old_id for seq, old_project, old_id in rows if store.find(old_id, old_project) is not None]
        if taken:
            raise Refused(f"{move.source} holds {len(taken)} of the ids again that would come back to it: {taken[0]}")
        if dry_run:
            return move, len(rows), []
        same_uuid = store.db.value("SELECT slug FROM project WHERE uuid = ?", (source_uuid,)) if source_uuid else None
        if source_uuid and same_uuid is None and not _exists(store, move.source):
            connection.execute(
                "INSERT INTO project (slug, uuid, name) VALUES (?, ?, ?)",
                (move.source, source_uuid, str(detail.get("name", ""))),
            )
        for seq, old_project, old_id in rows:
            stored = store.by_seq(seq)
            assert stored is not None
            store.replace(connection, stored, stored.record._replace(project=old_project, id=old_id))
        back = [path for path, _hosts in detail.get("roots", [])]
        for path in back:
            connection.execute(
                "UPDATE project_root SET project = ? WHERE path = ? AND project = ?", (move.source, path, move.target)
            )
        connection.execute(
            "UPDATE retag SET undone_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE retag_id = ?", (move.retag_id,)
        )
    return move, len(rows), _rewrite_markers(back, move.source, source_uuid)


def moves(store: Store) -> list[Move]:
    """Every recorded move, newest first."""
    rows: list[tuple[Any, ...]] = store.db.connection.execute(
        "SELECT retag_id, kind, source, target, at, (SELECT count(*) FROM retag_record AS r"
        " WHERE r.retag_id = retag.retag_id), undone_at FROM retag ORDER BY retag_id DESC"
    ).fetchall()
    return [Move(*row) for row in rows]


def normalise_plans(store: Store, only: str | None = None) -> list[Plan]:
    """Moves that give every project a slug: names in another case or with characters no slug has, written by hand."""
    slugs = [str(row[0]) for row in store.db.connection.execute("SELECT slug FROM project ORDER BY slug")]
    wanted = None if only is None else slugify(only)
    return [
        plan(store, slug, slugify(slug), kind="normalise")
        for slug in slugs
        if slugify(slug) != slug and wanted in (None, slugify(slug))
    ]


def _known(store: Store, name: str, *, missing_is_new: bool = False) -> str:
    for slug in (name, slugify(name)):
        if _exists(store, slug):
            return slug
    if missing_is_new:
        return slugify(name)
    raise NotFound(f"there is no project {name!r}", hint="qiju projects lists them")


def _exists(store: Store, slug: str) -> bool:
    return store.db.value("SELECT 1 FROM project WHERE slug = ?", (slug,)) is not None


def _free_id(store: Store, identity: str, source: str, target: str) -> str:
    from qiju.jsontext import digest

    attempt = 0
    while True:
        found = marked_id(identity, digest(f"{source}\n{identity}\n{attempt}"))
        if store.find(found, target) is None and store.find(found, source) is None:
            return found
        attempt += 1


def _move(store: Store, connection: apsw.Connection, seq: int, what: Plan, retag_id: int) -> None:
    stored = store.by_seq(seq)
    assert stored is not None
    connection.execute(
        "INSERT INTO retag_record (retag_id, seq, old_project, old_id) VALUES (?, ?, ?, ?)",
        (retag_id, seq, stored.record.project, stored.record.id),
    )
    new_id = what.marked.get(stored.record.id, stored.record.id)
    store.replace(connection, stored, stored.record._replace(project=what.target, id=new_id))


def _to_undo(store: Store, connection: apsw.Connection, retag_id: int | None) -> Move:
    found = [move for move in moves(store) if retag_id in (None, move.retag_id)]
    if not found:
        raise NotFound("there is no such move to undo" if retag_id else "nothing was moved yet")
    open_moves = [move for move in found if not move.undone_at]
    if not open_moves:
        raise Refused("the move has been undone already" if retag_id else "every move has been undone already")
    move = open_moves[0]
    later = connection.execute(
        "SELECT retag_id FROM retag WHERE retag_id > ? AND undone_at = '' AND (source = ? OR source = ? OR target = ?)",
        (move.retag_id, move.target, move.source, move.source),
    ).fetchone()
    if later is not None:
        raise Refused(
            f"move {later[0]} came after it and concerns the same project", hint=f"undo move {later[0]} first"
        )
    return move


def _rewrite_markers(roots: list[str], slug: str, uuid: str) -> list[str]:
    """Let the markers of these folders name the project; what could not be written is returned as warnings."""
    warnings = []
    for path in roots:
        root = Path(path)
        if not root.is_dir():
            warnings.append(f"{path} cannot be reached; a marker there still names the old project")
            continue
        try:
            marker = read_marker(root)
            if marker is not None and (marker.project, marker.uuid) != (slug, uuid or marker.uuid):
                write_marker(root, marker._replace(project=slug, uuid=uuid or marker.uuid))
        except QijuError as error:
            warnings.append(f"the marker of {path} still names the old project: {error}")
    return warnings
