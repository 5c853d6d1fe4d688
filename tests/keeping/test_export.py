"""Export: one snapshot, one view, one whole file or none; what comes back in is the same, digest for digest."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qiju import record
from qiju.errors import QijuError, Refused, StorageFailed, StoreBusy, UsageError
from qiju.jsontext import JsonValue, Number, parse
from qiju.keeping import dataset, export, importing, selection
from qiju.keeping.export import Receipt, Request
from qiju.projects import Home, ensure
from qiju.query import Filters, Query
from qiju.record import FIELDS, check
from qiju.store import Store

DAY = 86_400_000_000
NOW = 1_780_000_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def put(store: Store, *values: dict[str, Any], project: str = "demo") -> None:
    with store.bulk() as bulk:
        owner = ensure(store.db.connection, Home(project, named=True))
        for place, value in enumerate(values, start=1):
            fields: dict[str, JsonValue] = {
                "id": f"s:{place}", "ts": record.format_instant(NOW - place * DAY), "project": project,
                "agent": "codex", "source": "manual", "title": f"t{place}", **value,
            }  # fmt: skip
            bulk.add(store.admit(check(fields), session_id="", session_source="id"), owner)


def write(
    store: Store,
    form: str,
    output: Path | None = None,
    *,
    view: str = "raw_private",
    query: Query | None = None,
    since_rev: int | None = None,
    stdout: io.BytesIO | None = None,
) -> Receipt:
    request = Request(form, view, output, since_rev)
    out = stdout or io.BytesIO()
    return export.export(store, query or Query(), request, stdout=out, timeout=5.0, progress=lambda _: None)


def lines(data: bytes) -> list[Any]:
    return [parse(line) for line in data.splitlines()]


def digests(store: Store) -> dict[str, str]:
    return dict(store.db.connection.execute("SELECT project || ' ' || id, digest FROM record").fetchall())


def copied(source: Path, folder: Path) -> dict[str, str]:
    """What a fresh store holds after importing `source`."""
    with Store.open(folder) as other:
        report = importing.import_path(other, str(source), importing.Options(), lambda _: None)
        assert report.clean, report.to_json()
        return digests(other)


# --- round trips -----------------------------------------------------------------------------------------------------

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.sampled_from([Number("18446744073709551616"), Number("-0.0"), Number("1e400"), 2**63 - 1, 0])
json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
bodies = st.fixed_dictionaries(
    {"title": text, "body_md": text, "tags": st.lists(text, max_size=2), "next_steps": st.lists(text, max_size=2)},
    optional={"schema_version": st.integers(1, 5)},
)
unknown = st.dictionaries(text.filter(lambda key: key not in FIELDS and key not in ("change", "rev")), json_values)


@given(
    st.lists(st.tuples(bodies, unknown), min_size=1, max_size=3),
    st.sampled_from(["jsonl", "json", "parquet", "sqlite"]),
)
def test_any_record_comes_back_equal_from_every_format(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[dict[str, Any], dict[str, Any]]], form: str
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    with Store.open(folder / "store") as store:
        put(store, *({**extra, **body} for body, extra in drawn))
        receipt = write(store, form, folder / "out")
        assert receipt.record_count == len(drawn)
        assert copied(folder / "out", folder / "other") == digests(store)


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "sqlite"])
def test_projects_months_and_redacted_records_come_back_equal(store: Store, tmp_path: Path, form: str) -> None:
    secret = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    put(store, {"body_md": f"token {secret} here"}, {"ts": "2020-02-29T23:59:59.9999999+05:30"}, {"ts": "2019-01-01"})
    put(store, {"id": "s:1", "model": "m"}, project="other")
    assert secret not in json.dumps(digests(store))
    write(store, form, tmp_path / "out")
    assert copied(tmp_path / "out", tmp_path / "other") == digests(store)


def test_a_single_parquet_file_is_written_when_the_path_says_so(store: Store, tmp_path: Path) -> None:
    put(store, {}, {})
    receipt = write(store, "parquet", tmp_path / "out.parquet")
    data = (tmp_path / "out.parquet").read_bytes()
    assert receipt.digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert receipt.size_bytes == len(data)
    assert copied(tmp_path / "out.parquet", tmp_path / "other") == digests(store)


# --- receipts, order, filters ----------------------------------------------------------------------------------------


def test_the_receipt_is_of_the_bytes_written(store: Store, tmp_path: Path) -> None:
    put(store, {}, {"title": "会话"})
    stdout = io.BytesIO()
    to_stream = write(store, "jsonl", stdout=stdout)
    to_file = write(store, "jsonl", tmp_path / "out")
    data = (tmp_path / "out").read_bytes()
    assert data == stdout.getvalue()
    assert to_file._replace(output="-") == to_stream
    assert to_file.digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert (to_file.size_bytes, to_file.record_count, to_file.completed) == (len(data), 2, True)
    assert to_file.to_json()["loss"] == {"policy_id": "qiju.loss/none", "entries": []}


def test_records_come_oldest_first_and_filters_apply(store: Store) -> None:
    put(store, *({"title": f"n{n}", "agent": "codex" if n % 2 else "claude"} for n in range(6)))
    stdout = io.BytesIO()
    write(store, "jsonl", stdout=stdout, query=Query(Filters(agent="codex")))
    assert [value["title"] for value in lines(stdout.getvalue())] == ["n5", "n3", "n1"]
    stdout = io.BytesIO()
    write(store, "jsonl", stdout=stdout, query=Query(text="n2 n4"))
    assert [value["title"] for value in lines(stdout.getvalue())] == ["n4", "n2"]


@pytest.mark.parametrize("rows", [1, 2, 3, 1000])
def test_batches_of_any_size_neither_skip_nor_repeat(store: Store, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    put(store, *({"ts": "2026-01-01T00:00:00Z"} for _ in range(7)))
    monkeypatch.setattr(selection, "BATCH_ROWS", rows)
    monkeypatch.setattr(selection, "BATCH_TEXT", 1 if rows == 3 else 10**6)
    for query in (Query(), Query(text="t")):
        stdout = io.BytesIO()
        write(store, "jsonl", stdout=stdout, query=query)
        assert [value["id"] for value in lines(stdout.getvalue())] == [f"s:{n}" for n in range(1, 8)]


def test_markdown_and_an_empty_selection(store: Store, tmp_path: Path) -> None:
    put(store, {"title": "Pool", "body_md": "Raised the limit.", "next_steps": ["watch it"]})
    stdout = io.BytesIO()
    write(store, "markdown", stdout=stdout)
    assert "# Pool" in stdout.getvalue().decode()
    nothing = Query(Filters(agent="nobody"))
    for form, want in (("jsonl", b""), ("json", b"[]\n"), ("markdown", b"")):
        stdout = io.BytesIO()
        assert write(store, form, stdout=stdout, query=nothing).record_count == 0
        assert stdout.getvalue() == want
    for form in ("parquet", "sqlite"):
        assert write(store, form, tmp_path / form, query=nothing).record_count == 0
    assert pq.read_table(tmp_path / "parquet" / "records-0001.parquet").num_rows == 0
    assert copied(tmp_path / "parquet", tmp_path / "other") == {}


# --- consistency -----------------------------------------------------------------------------------------------------


def test_records_written_meanwhile_are_not_seen(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, {}, {}, {})
    monkeypatch.setattr(selection, "BATCH_ROWS", 1)
    seen: list[int] = []

    def meanwhile(_: int) -> None:
        if not seen:
            put(store, {"ts": "2000-01-01"}, {"ts": "2030-01-01"}, project="late")
        seen.append(1)

    stdout = io.BytesIO()
    request = Request("jsonl", "raw_private", None)
    receipt = export.export(store, Query(), request, stdout=stdout, timeout=5.0, progress=meanwhile)
    assert receipt.record_count == 3
    assert {value["project"] for value in lines(stdout.getvalue())} == {"demo"}


def redact(store: Store, title: str) -> None:
    with store.db.write() as connection:
        old = store.by_seq(1)
        assert old is not None
        store.replace(connection, old, old.record._replace(title=title))


@pytest.mark.parametrize("form", ["jsonl", "parquet", "sqlite", "trajectory"])
def test_a_redaction_in_between_starts_the_export_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    put(store, {"title": "planted value"}, {})
    done: list[int] = []

    def meanwhile(_: int) -> None:
        if not done:
            done.append(1)
            redact(store, "[REDACTED]")

    request = Request(form, "raw_private", tmp_path / "out")
    export.export(store, Query(), request, stdout=io.BytesIO(), timeout=5.0, progress=meanwhile)
    files = [path for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")] if path.is_file()]
    assert files
    assert not any(b"planted" in path.read_bytes() for path in files)
    assert done


def test_a_store_that_never_holds_still_is_a_clean_refusal(store: Store, tmp_path: Path) -> None:
    put(store, {}, {})
    (tmp_path / "out").write_bytes(b"old")
    count: list[int] = []

    def always(_: int) -> None:
        count.append(1)
        redact(store, f"n{len(count)}")

    with pytest.raises(StoreBusy, match="redacted or changed 5 times"):
        export.export(
            store, Query(), Request("jsonl", "raw_private", tmp_path / "out"), stdout=io.BytesIO(), timeout=5.0,
            progress=always,
        )  # fmt: skip
    assert (tmp_path / "out").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "store"]


def test_standard_output_gets_nothing_of_an_export_that_fails(store: Store) -> None:
    put(store, {}, {})

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    stdout = io.BytesIO()
    with pytest.raises(KeyboardInterrupt):
        export.export(
            store, Query(), Request("jsonl", "raw_private", None), stdout=stdout, timeout=5.0, progress=interrupted
        )
    assert stdout.getvalue() == b""


def test_a_finished_export_is_noted_in_the_store(store: Store, tmp_path: Path) -> None:
    put(store, {})
    receipt = write(store, "jsonl", tmp_path / "out")
    found = store.db.connection.execute("SELECT path, kind, owner, sha256 FROM file_manifest").fetchall()
    assert found == [(str((tmp_path / "out").resolve()), "export", "jsonl", receipt.digest.removeprefix("sha256:"))]


# --- changes ---------------------------------------------------------------------------------------------------------


def test_a_change_feed_tells_additions_changes_redactions_and_deletions(store: Store) -> None:
    put(store, {}, {}, {}, {})
    first = write(store, "jsonl")
    with store.db.write() as connection:
        one, two, three = (store.by_seq(n) for n in (1, 2, 3))
        assert one is not None
        assert two is not None
        assert three is not None
        store.replace(connection, one, one.record._replace(title="changed"))
        store.replace(connection, two, two.record._replace(redactions=({"field": "title"},)))
        store.delete(connection, three)
    put(store, {"title": "new"}, project="second")
    stdout = io.BytesIO()
    second = write(store, "jsonl", since_rev=first.rev, stdout=stdout)
    found = lines(stdout.getvalue())
    assert [(entry["change"], entry["seq"]) for entry in found] == [
        ("changed", 1), ("redacted", 2), ("deleted", 3), ("added", 5),
    ]  # fmt: skip
    assert found[2]["id"] == "s:3"
    assert [entry["rev"] for entry in found] == sorted(entry["rev"] for entry in found)
    assert second.rev > first.rev
    assert write(store, "jsonl", since_rev=second.rev).record_count == 0


def test_feeds_in_a_row_give_everything_once(store: Store) -> None:
    seen: dict[str, int] = {}
    rev = 0
    for round_ in range(4):
        put(store, *({"id": f"r{round_}:{n}", "ts": f"20{30 - round_}-01-01"} for n in range(1, 3)))
        stdout = io.BytesIO()
        rev = write(store, "jsonl", since_rev=rev, stdout=stdout).rev
        for entry in lines(stdout.getvalue()):
            seen[entry["record"]["id"]] = seen.get(entry["record"]["id"], 0) + 1
    assert sorted(seen) == sorted(f"r{r}:{n}" for r in range(4) for n in (1, 2))
    assert set(seen.values()) == {1}


def test_a_change_number_ahead_of_the_store_is_refused(store: Store) -> None:
    with pytest.raises(Refused, match="put back to an earlier state"):
        write(store, "jsonl", since_rev=99)
    with pytest.raises(UsageError, match="cannot hold"):
        write(store, "markdown", since_rev=0)


# --- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "sqlite", "parquet", "trajectory"])
def test_the_stores_own_files_are_never_a_target(store: Store, form: str) -> None:
    put(store, {})
    for name in ("qiju.db", "qiju.db-wal", "store.key", "archive"):
        with pytest.raises(QijuError):
            write(store, form, store.home / name)
    with pytest.raises(QijuError):
        write(store, form, store.home)
    assert digests(store)


def test_a_wider_dataset_is_replaced_without_leftovers(store: Store, tmp_path: Path) -> None:
    put(store, {}, {"ts": "2020-01-01"})
    write(store, "parquet", tmp_path / "set")
    write(store, "parquet", tmp_path / "set", query=Query(Filters(since=NOW - 10 * DAY)))
    assert [path.parent.name for path in (tmp_path / "set").rglob("*.parquet")] == ["month=2026-05"]
    described = json.loads((tmp_path / "set" / "export.json").read_text(encoding="utf-8"))
    assert described["record_count"] == 1
    assert [part["path"] for part in described["files"]] == ["month=2026-05/records-0001.parquet"]


def test_a_folder_with_somebody_elses_files_is_refused(store: Store, tmp_path: Path) -> None:
    put(store, {})
    write(store, "parquet", tmp_path / "set")
    (tmp_path / "set" / "notes.txt").write_bytes(b"mine")
    with pytest.raises(Refused, match=r"notes\.txt"):
        write(store, "parquet", tmp_path / "set")
    assert (tmp_path / "set" / "notes.txt").read_bytes() == b"mine"


def test_a_full_disk_leaves_the_old_dataset(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, {}, {"ts": "2020-01-01"})
    write(store, "parquet", tmp_path / "set")
    before = {path: path.read_bytes() for path in (tmp_path / "set").rglob("*") if path.is_file()}

    def full(path: Path) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dataset, "file_sha256", full)
    with pytest.raises(StorageFailed, match="No space left"):
        write(store, "parquet", tmp_path / "set")
    assert {path: path.read_bytes() for path in (tmp_path / "set").rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set", "store"]


# --- the public view -------------------------------------------------------------------------------------------------

PRIVATE = {
    "title": "call",
    "body_md": "open /home/dana/.netrc failed for dana@example.org",
    "cwd": "/home/dana/acme",
    "host": "lap-7",
    "nested": [{"file": "/home/dana/k.pem"}],
    "dana secret": 1,
    "count": 7,
    "empty": {},
    "flags": {"ok": True, "n": None, "deep": [1, 2, {"x": 3}]},
}


@pytest.mark.parametrize("form", ["jsonl", "json", "markdown", "parquet", "sqlite", "trajectory"])
def test_the_public_view_lets_nothing_private_through(store: Store, tmp_path: Path, form: str) -> None:
    put(store, PRIVATE)
    receipt = write(store, form, tmp_path / "out", view="redacted_public")
    if form in ("parquet", "sqlite"):
        with Store.open(tmp_path / "other") as other:
            assert importing.import_path(other, str(tmp_path / "out"), importing.Options(), lambda _: None).clean
            shown = write(other, "jsonl", tmp_path / "shown") and (tmp_path / "shown").read_text(encoding="utf-8")
    else:
        shown = (tmp_path / "out").read_text(encoding="utf-8")
    for leak in ("dana", "lap-7", "acme", "k.pem", "example.org"):
        assert leak not in shown, leak
        assert leak not in json.dumps(receipt.to_json())
    assert not receipt.loss.lossless


def test_unknown_keys_without_text_pass_and_the_loss_is_counted(store: Store) -> None:
    put(store, PRIVATE)
    stdout = io.BytesIO()
    receipt = write(store, "jsonl", view="redacted_public", stdout=stdout)
    (value,) = lines(stdout.getvalue())
    assert {name for name in value if name not in FIELDS} == {"count", "empty", "flags"}
    assert value["flags"] == PRIVATE["flags"]
    told = {(entry.field, entry.reason): entry.count for entry in receipt.loss.entries}
    assert told == {("body_md", "redacted"): 1, ("extra", "not_allowed"): 4}


# --- the public copy -------------------------------------------------------------------------------------------------


def test_the_sqlite_copy_is_searchable_and_not_in_wal_mode(store: Store, tmp_path: Path) -> None:
    import sqlite_utils

    put(store, {"title": "Connection pools", "tags": ["db"]}, {"title": "other"})
    write(store, "sqlite", tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "store"]
    connection = sqlite3.connect(tmp_path / "copy.db")
    try:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        hits = connection.execute(
            "SELECT id FROM record_fts JOIN record ON record.seq = record_fts.rowid WHERE record_fts MATCH 'pool'"
        )
        assert hits.fetchall() == [("s:1",)]
        assert connection.execute("SELECT slug, records FROM project").fetchall() == [("demo", 2)]
        live = {row[1] for row in store.db.connection.execute("PRAGMA table_info(record)")}
        copy = {row[1] for row in connection.execute("PRAGMA table_info(record)")}
        assert copy <= live
        connection.execute("INSERT INTO record_fts (record_fts, rank) VALUES ('integrity-check', 1)")
        assert sqlite_utils.Database(connection)["record"].detect_fts() == "record_fts"
    finally:
        connection.close()
