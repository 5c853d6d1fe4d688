"""Moving a project's records into another, and back: nothing lost, nothing overwritten, digests and search right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qiju.errors import NotFound, Refused, UsageError
from qiju.keeping import merge
from qiju.place.marker import Marker, read_marker, write_marker
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store, commitment_term


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        yield opened


def log(store: Store, project: str, identity: str, title: str, *, root: Path | None = None) -> None:
    fields = check({"id": identity, "title": title, "body_md": title, "source": "manual", "ts": "2026-01-01T00:00:00Z"})
    home = Home(project, root="" if root is None else str(root), named=root is None)
    store.log(store.admit(fields, session_id="", session_source=""), home)


def state(store: Store) -> list[tuple[Any, ...]]:
    sql = "SELECT seq, id, project, session_id, number, title, digest FROM record ORDER BY seq"
    return store.db.connection.execute(sql).fetchall()


def sound(store: Store) -> bool:
    """Digests, commitment and search index agree with the rows."""
    rows = state(store)
    total = sum(commitment_term(row[0], row[6]) for row in rows) % (1 << 256)
    for table in ("record_fts", "record_trigram"):
        store.db.connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    digests = all((stored := store.by_seq(row[0])) is not None and stored.record.digest() == row[6] for row in rows)
    return digests and store.db.setting("commitment") == f"{total:064x}"


def move(store: Store, source: str, target: str) -> int:
    return merge.apply(store, merge.plan(store, source, target))[0]


def test_all_records_move_and_the_old_project_is_gone(store: Store) -> None:
    log(store, "a", "s:1", "one")
    log(store, "b", "s:2", "two")
    move(store, "a", "b")
    assert [(row[1], row[2]) for row in state(store)] == [("s:1", "b"), ("s:2", "b")]
    assert store.db.value("SELECT count(*) FROM project") == 1
    assert sound(store)


def test_an_id_the_target_holds_is_kept_beside_it_under_a_marked_id(store: Store) -> None:
    log(store, "a", "s:1", "from a")
    log(store, "b", "s:1", "from b")
    plan = merge.plan(store, "a", "b")
    assert list(plan.marked) == ["s:1"]
    merge.apply(store, plan)
    assert {row[1]: row[5] for row in state(store)} == {plan.marked["s:1"]: "from a", "s:1": "from b"}
    assert sound(store)


def test_undo_puts_everything_back_as_it_was(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    marker = write_marker(root, Marker("a"))
    fields = check({"id": "s:1", "title": "from a", "source": "manual"})
    admitted = store.admit(fields, session_id="", session_source="")
    store.log(admitted, Home("a", str(marker.uuid), str(root)))
    log(store, "b", "s:1", "from b")
    log(store, "a", "s:2", "other")
    before = state(store)
    project = store.db.connection.execute("SELECT slug, uuid FROM project ORDER BY slug").fetchall()
    roots = store.db.connection.execute("SELECT path, project FROM project_root").fetchall()

    move(store, "a", "b")
    moved = read_marker(root)
    assert moved is not None
    assert (moved.project, moved.uuid) == ("b", dict(project)["b"])

    merge.undo(store)
    assert state(store) == before
    assert store.db.connection.execute("SELECT slug, uuid FROM project ORDER BY slug").fetchall() == project
    assert store.db.connection.execute("SELECT path, project FROM project_root").fetchall() == roots
    assert read_marker(root) == marker
    assert sound(store)


def test_records_written_after_the_move_stay_and_deleted_ones_do_not_return(store: Store) -> None:
    log(store, "a", "s:1", "moved")
    log(store, "a", "s:2", "moved, then deleted")
    number = move(store, "a", "b")
    log(store, "b", "s:3", "after")
    gone = store.find("s:2", "b")
    assert gone is not None
    with store.db.write() as connection:
        store.delete(connection, gone)
    _move, records, _warnings = merge.undo(store, number)
    assert records == 1
    assert [(row[1], row[2]) for row in state(store)] == [("s:1", "a"), ("s:3", "b")]
    assert sound(store)


def test_a_move_is_undone_once_and_in_order(store: Store) -> None:
    log(store, "a", "s:1", "x")
    log(store, "c", "s:2", "y")
    first = move(store, "a", "b")
    second = move(store, "b", "c")
    with pytest.raises(Refused, match=f"move {second} came after"):
        merge.undo(store, first)
    merge.undo(store, second)
    merge.undo(store, first)
    with pytest.raises(Refused, match="already"):
        merge.undo(store, first)
    assert [(row[1], row[2]) for row in state(store)] == [("s:1", "a"), ("s:2", "c")]


def test_undo_refuses_when_the_old_place_was_taken(store: Store) -> None:
    log(store, "a", "s:1", "x")
    move(store, "a", "b")
    log(store, "a", "s:1", "new here")
    before = state(store)
    with pytest.raises(Refused, match="s:1"):
        merge.undo(store)
    assert state(store) == before


def test_mistakes_are_named_and_change_nothing(store: Store) -> None:
    log(store, "a", "s:1", "x")
    with pytest.raises(NotFound, match="'nowhere'"):
        merge.plan(store, "nowhere", "a")
    with pytest.raises(UsageError, match="into itself"):
        merge.plan(store, "a", "A")
    with pytest.raises(NotFound):
        merge.undo(store)


def test_rows_written_by_hand_stop_the_move(store: Store) -> None:
    log(store, "a", "s:1", "x")
    with store.db.write() as connection:
        connection.execute("INSERT INTO record (id, ts, project, title) VALUES ('s:2', '2026-01-01', 'a', 'by hand')")
    with pytest.raises(Refused, match="1 record was written by hand into a"):
        merge.plan(store, "a", "b")


def test_a_plan_that_no_longer_holds_is_refused(store: Store) -> None:
    log(store, "a", "s:1", "x")
    plan = merge.plan(store, "a", "b")
    log(store, "a", "s:2", "y")
    with pytest.raises(Refused, match="changed since"):
        merge.apply(store, plan)


def test_names_that_are_no_slugs_are_put_right(store: Store) -> None:
    log(store, "myproj", "s:1", "slug")
    with store.db.write() as connection:
        connection.execute("INSERT INTO project (slug) VALUES ('MyProj')")
        stored = store.by_seq(1)
        assert stored is not None
        store.replace(connection, stored, stored.record._replace(project="MyProj"))
    (plan,) = merge.normalise_plans(store)
    assert (plan.source, plan.target) == ("MyProj", "myproj")
    merge.apply(store, plan)
    assert [row[2] for row in state(store)] == ["myproj"]
    assert merge.normalise_plans(store) == []
    assert sound(store)


def test_a_folder_that_cannot_be_reached_is_named(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    log(store, "a", "s:1", "x", root=root)
    root.rmdir()
    plan = merge.plan(store, "a", "b")
    assert plan.unreachable == (str(root),)
    _number, warnings = merge.apply(store, plan)
    assert any(str(root) in warning for warning in warnings)
