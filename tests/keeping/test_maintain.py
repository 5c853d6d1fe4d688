"""Maintain: labels, partitions, drafts; finished by the next run wherever it was cut; hands off what is not ours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qiju import archive, record, staging
from qiju.errors import StorageFailed, StoreBusy
from qiju.keeping import cold, compact, maintain, partitions, tiers
from qiju.keeping.tiers import MIB, Month
from qiju.place.config import MaintainConfig
from qiju.projects import Home, ensure
from qiju.record import check
from qiju.store import Store

DAY = tiers.DAY
NOW = 1_780_000_000_000_000  # 2026-05-28
LIMITS = MaintainConfig()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def put(store: Store, *ages: float, project: str = "demo", **fields: Any) -> None:
    """One record for each age in days."""
    with store.bulk() as bulk:
        owner = ensure(store.db.connection, Home(project, named=True))
        first = int(store.db.value("SELECT coalesce(max(number), 0) FROM record"))
        for place, age in enumerate(ages, start=first + 1):
            value = {
                "id": f"s:{place}", "ts": record.format_instant(NOW - int(age * DAY)), "project": project,
                "source": "manual", "title": f"t{place}", **fields,
            }  # fmt: skip
            bulk.add(store.admit(check(value), session_id="", session_source="id"), owner)


def run(store: Store, roots: list[Path] | None = None, **task: Any) -> dict[str, Any]:
    report = maintain.maintain(store, LIMITS, roots or [], maintain.Task(now=NOW, **task), lambda _: None)
    assert report.failed == []
    return report.value


def labels(store: Store) -> dict[int, str]:
    return dict(store.db.connection.execute("SELECT number, tier FROM record").fetchall())


def files(store: Store) -> list[Path]:
    return sorted(path for path in (store.home / "archive").rglob("*") if path.is_file())


def in_archive(store: Store) -> set[str]:
    return {row.id for path in files(store) if path.suffix == ".parquet" for row in archive.read(path)}


# --- thresholds ------------------------------------------------------------------------------------------------------


def month(age_days: float, size: int = 100, name: str = "2026-01") -> Month:
    return Month("demo", name, 1, size, NOW - int(age_days * DAY))


@pytest.mark.parametrize(
    ("months", "due"),
    [
        ([month(91, 3 * MIB)], []),
        ([month(93, 2 * MIB)], []),
        ([month(93, 2 * MIB + 1)], ["2026-01"]),
        ([month(366)], []),
        ([month(367)], ["2026-01"]),
        ([month(30, 51 * MIB)], []),
        ([month(32, 51 * MIB)], ["2026-01"]),
        # Under pressure the oldest go first, and only until the pressure is gone.
        ([month(40, 30 * MIB, "2026-02"), month(70, 30 * MIB, "2026-01")], ["2026-01"]),
    ],
)
def test_a_month_goes_when_it_is_old_and_large_enough(months: list[Month], due: list[str]) -> None:
    assert [found.month for found in tiers.due_for_archive(months, NOW, LIMITS)] == due


def test_records_leave_short_after_a_fortnight_and_long_after_a_year(store: Store) -> None:
    put(store, 1, 13.9, 14.1, 300, 400, 500)
    value = run(store)
    assert labels(store) == {1: "short", 2: "short", 3: "long", 4: "long", 5: "archive", 6: "archive"}
    assert (value["rotation"]["removed"], value["rotation"]["kept"]) == (4, 2)
    assert value["tiers"] == {"short": 2, "long": 2, "archive": 2}
    (demo,) = value["archives"]
    assert (demo["project"], demo["remaining"], demo["warnings"]) == ("demo", 2, [])
    assert [(item["month"], item["entries"]) for item in demo["archived"]] == [("2025-01", 1), ("2025-04", 1)]
    assert in_archive(store) == {"s:5", "s:6"}


def test_moving_changes_neither_content_nor_digest_nor_rev(store: Store) -> None:
    put(store, 20, 400)
    before = store.db.connection.execute("SELECT id, seq, rev, digest, revised FROM record ORDER BY seq").fetchall()
    run(store)
    assert (
        store.db.connection.execute("SELECT id, seq, rev, digest, revised FROM record ORDER BY seq").fetchall()
        == before
    )


def test_a_record_whose_time_is_none_stays(store: Store) -> None:
    put(store, 20)
    store.db.connection.execute(
        "INSERT INTO record (id, ts, project, source, title, instant) "
        "VALUES ('hand:7', 'once', 'demo', 'manual', 'x', 5)"
    )
    run(store)
    assert labels(store)[7] == "short"


def test_a_row_written_by_hand_is_not_archived_before_it_is_sealed(store: Store) -> None:
    store.db.connection.execute(
        "INSERT INTO record (id, ts, project, source, title) VALUES ('hand:1', '2020-01-01', 'demo', 'manual', 'x')"
    )
    run(store)
    assert labels(store) == {1: "long"}
    assert files(store) == []


def test_only_the_named_project_is_maintained(store: Store) -> None:
    put(store, 400)
    put(store, 400, project="other")
    run(store, project="demo")
    assert labels(store) == {1: "archive", 2: "short"}


def test_a_dry_run_reports_the_run_and_changes_nothing(store: Store) -> None:
    put(store, 1, 20, 400, 401)
    planned = run(store, dry_run=True)
    assert set(labels(store).values()) == {"short"}
    assert files(store) == []
    done = run(store)
    assert planned["rotation"]["removed"] == done["rotation"]["removed"] == 3
    for value in (planned, done):
        assert [(a["project"], a["remaining"]) for a in value["archives"]] == [("demo", 1)]
        assert [item["total_entries"] for a in value["archives"] for item in a["archived"]] == [2]


# --- partitions ------------------------------------------------------------------------------------------------------


def test_each_partition_has_a_manifest_and_is_noted_in_the_store(store: Store) -> None:
    put(store, 400, 401)
    run(store)
    folder = store.home / "archive" / "project=demo" / "month=2025-04"
    manifest = partitions.load(folder)
    assert manifest is not None
    assert (manifest.rows, manifest.rev) == (2, 2)
    noted = store.db.connection.execute("SELECT path, rows, rev, digest, sha256 FROM archive_partition").fetchall()
    path = f"archive/project=demo/month=2025-04/{manifest.file}"
    assert noted == [(path, 2, 2, manifest.digest, manifest.sha256)]
    assert run(store)["partitions"]["current"] == 1


def test_a_redaction_rewrites_the_partition(store: Store) -> None:
    put(store, 400, body_md="planted value")
    run(store)
    with store.db.write() as connection:
        old = store.by_seq(1)
        assert old is not None
        store.replace(connection, old, old.record._replace(body_md="[REDACTED]"))
    value = run(store)
    assert len(value["partitions"]["rewritten"]) == 1
    (path,) = [path for path in files(store) if path.suffix == ".parquet"]
    assert [row.body_md for row in archive.read(path)] == ["[REDACTED]"]


def test_late_rows_and_deletions_rewrite_the_partition(store: Store) -> None:
    put(store, 400)
    run(store)
    put(store, 400.5)
    run(store)
    assert in_archive(store) == {"s:1", "s:2"}
    with store.db.write() as connection:
        old = store.by_seq(1)
        assert old is not None
        store.delete(connection, old)
    run(store)
    assert in_archive(store) == {"s:2"}


def test_a_retag_moves_the_row_to_the_other_projects_partition(store: Store) -> None:
    put(store, 400)
    run(store)
    with store.db.write() as connection:
        old = store.by_seq(1)
        assert old is not None
        ensure(connection, Home("renamed", named=True))
        store.replace(connection, old, old.record._replace(project="renamed"))
    value = run(store)
    assert len(value["partitions"]["removed"]) == len(value["partitions"]["rewritten"]) == 1
    assert [path.parent.parent.name for path in files(store)] == ["project=renamed", "project=renamed"]
    assert store.db.value("SELECT group_concat(project) FROM archive_partition") == "renamed"


def test_a_lost_or_damaged_file_of_ours_is_written_anew(store: Store) -> None:
    put(store, 400)
    run(store)
    (path,) = [path for path in files(store) if path.suffix == ".parquet"]
    whole = path.read_bytes()
    for damage in (None, whole[:-10], b""):
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
        run(store)
        assert in_archive(store) == {"s:1"}


def test_rows_that_the_store_does_not_know_are_never_thrown_away(store: Store, tmp_path: Path) -> None:
    """After the database was lost, or put back, a partition may be the only copy."""
    put(store, 400, 401)
    run(store)
    with store.db.write() as connection:
        connection.execute("DELETE FROM record WHERE seq = 2")
        connection.execute("DELETE FROM tombstone")
    report = maintain.maintain(store, LIMITS, [], maintain.Task(now=NOW), lambda _: None)
    assert len(report.failed) == 1
    assert "holds 1 record that the store neither has nor has deleted" in report.failed[0]
    assert in_archive(store) == {"s:1", "s:2"}


def test_what_is_not_ours_is_named_and_left_alone(store: Store) -> None:
    put(store, 400)
    folder = store.home / "archive" / "project=demo" / "month=2025-04"
    folder.mkdir(parents=True)
    (folder / "entries.parquet").write_bytes(os.urandom(500))
    (folder / "empty.parquet").write_bytes(b"")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    value = run(store)
    assert {(Path(found["path"]).name, found["reason"]) for found in value["foreign"]} == {
        ("entries.parquet", "damaged: not readable as Parquet"),
        ("empty.parquet", "an empty file"),
    }
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert "s:1" in {row.id for path in files(store) if path.name.startswith("records-") for row in archive.read(path)}


def test_hand_edited_rows_do_not_break_the_archive(store: Store) -> None:
    put(store, 400)
    run(store)
    store.db.connection.execute("UPDATE record SET title = 'by hand' WHERE seq = 1")
    run(store)
    (path,) = [path for path in files(store) if path.suffix == ".parquet"]
    (row,) = archive.read(path)
    assert row.title == "by hand"
    assert archive.record_of(row).digest() == row.digest


def test_a_redaction_while_a_month_is_compressed_is_not_undone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, 400, body_md="planted value")
    real, done = archive.compare, []

    def then_redacted(*args: Any) -> int:
        count = real(*args)
        if not done:
            done.append(1)
            with Store.open(store.home) as other, other.db.write() as connection:
                old = other.by_seq(1)
                assert old is not None
                other.replace(connection, old, old.record._replace(body_md="[REDACTED]"))
        return count

    monkeypatch.setattr(archive, "compare", then_redacted)
    run(store)
    assert [row.body_md for path in files(store) if path.suffix == ".parquet" for row in archive.read(path)] == [
        "[REDACTED]"
    ]
    assert labels(store) == {1: "archive"}


# --- interruptions ---------------------------------------------------------------------------------------------------

CUTS = [(tiers, "move"), (cold, "_note"), (partitions, "FileReplacement"), (partitions, "sweep"), (archive, "compare")]


@pytest.mark.parametrize(("module", "name"), CUTS, ids=lambda value: getattr(value, "__name__", value))
def test_the_next_run_finishes_wherever_one_was_cut(
    store: Store, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    put(store, 20, 400, 401, 500)

    def cut(*args: object, **kwargs: object) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, name, cut)
        with pytest.raises(KeyboardInterrupt):
            run(store)
    run(store)
    assert labels(store) == {1: "long", 2: "archive", 3: "archive", 4: "archive"}
    assert in_archive(store) == {"s:2", "s:3", "s:4"}
    assert run(store)["foreign"] == []
    assert len(files(store)) == 4


def test_a_run_cut_between_two_steps_of_labels_is_finished(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, *(400 + n / 100 for n in range(10)))
    monkeypatch.setattr(tiers, "STEP", 3)
    real, count = tiers.time.sleep, []

    def cut(seconds: float) -> None:
        count.append(1)
        if len(count) == 5:
            raise KeyboardInterrupt
        real(0)

    monkeypatch.setattr(tiers.time, "sleep", cut)
    with pytest.raises(KeyboardInterrupt):
        run(store)
    assert len(set(labels(store).values())) == 2
    run(store)
    assert set(labels(store).values()) == {"archive"}
    assert len(in_archive(store)) == 10


def test_a_full_disk_moves_no_label_and_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, 400)

    def full(*args: object, **kwargs: object) -> Any:
        raise StorageFailed("cannot write x: No space left on device")

    monkeypatch.setattr(archive, "write", full)
    report = maintain.maintain(store, LIMITS, [], maintain.Task(now=NOW), lambda _: None)
    assert report.failed == ["cannot write x: No space left on device"]
    assert report.value["archives"][0]["warnings"] == ["2025-04: cannot write x: No space left on device"]
    assert labels(store) == {1: "long"}


def test_two_runs_do_not_meet(store: Store) -> None:
    lock = maintain._only_one(store.home)
    try:
        with pytest.raises(StoreBusy, match="another maintain"):
            run(store)
    finally:
        lock.release()
    run(store)


# --- drafts, spool, space --------------------------------------------------------------------------------------------


def test_old_drafts_are_swept_and_young_ones_kept(store: Store, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    old, young = staging.allocate(root, "codex"), staging.allocate(root, "codex")
    now = NOW / 1e6
    os.utime(old, (now - 25 * 3600, now - 25 * 3600))
    os.utime(young, (now - 23 * 3600, now - 23 * 3600))
    assert run(store, [root, root], dry_run=True)["staging_sweep"] == {"removed": 1, "kept": 1, "ttl_hours": 24}
    assert old.exists()
    assert run(store, [root])["staging_sweep"] == {"removed": 1, "kept": 1, "ttl_hours": 24}
    assert (old.exists(), young.exists()) == (False, True)


def test_what_waits_in_the_spool_is_stored(store: Store) -> None:
    from qiju import admission, spool

    fields = check({"source": "manual", "title": "waiting", "project": "demo"})
    admitted = store.admit(fields, session_id="w", session_source="flag")
    spool.keep(store.home, admission.spool_value(admitted, Home("demo", named=True)))
    run(store)
    assert store.db.value("SELECT title FROM record") == "waiting"
    assert spool.pending(store.home) == []


def test_compacting_keeps_everything_findable_and_gives_space_back(store: Store) -> None:
    put(store, *range(1, 12), body_md="pool " * 2000)
    for _ in range(3):
        put(store, 1)
    with store.db.write() as connection:
        for seq in range(1, 9):
            old = store.by_seq(seq)
            assert old is not None
            store.delete(connection, old)
    value = run(store, compact=True)
    assert value["compact"]["after"] < value["compact"]["before"]
    assert value["wal"] == {"bytes": 0}
    for table in compact.INDEXES:
        store.db.connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
    hits = store.db.connection.execute("SELECT count(*) FROM record_fts WHERE record_fts MATCH 'pool'")
    assert hits.fetchall() == [(3,)]


def test_a_reader_does_not_hold_maintain_up(store: Store) -> None:
    put(store, 20)
    with Store.open_for_reading(store.home) as other, other.db.read() as connection:
        connection.execute("SELECT count(*) FROM record").fetchall()
        began = time.monotonic()
        run(store)
        assert time.monotonic() - began < 15
    assert store.db.lock_wait == 30.0


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_its_report(place: Any) -> None:
    place.log()
    report = place.ok("maintain").json()
    assert {"dry_run", "rotation", "staging_sweep", "archives"} <= set(report)
    assert report["rotation"] == {"path": str(place.db), "removed": 0, "kept": 1}
    damaged = place.home / "archive" / "project=demo" / "month=2025-01" / "entries.parquet"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"\x01" * 500)
    done = place.ok("maintain", "--dry-run")
    assert "entries.parquet: damaged" in done.err
