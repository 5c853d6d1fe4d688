"""Import: every piece is accounted for, nothing is stored twice or half, nothing goes in unredacted."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qiju.errors import Refused, StorageFailed
from qiju.keeping import importing, sources
from qiju.keeping.importing import Options, Report
from qiju.store import Store

SECRET = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def entry(identity: str = "s:1", **changes: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "ts": "2026-01-02T03:04:05Z",
        "project": "demo",
        "source": "manual",
        "title": "t",
        **changes,
    }


def file_of(folder: Path, *values: Any, name: str = "in.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(v if isinstance(v, bytes) else json.dumps(v).encode() + b"\n" for v in values))
    return path


def take(store: Store, path: Path | str, *, keep_going: bool = False, dry_run: bool = False) -> Report:
    report = importing.import_path(store, str(path), Options(keep_going, dry_run), lambda _: None)
    counted = sum(report.count(name) for name in importing.OUTCOMES)
    assert report.read == counted
    return report


def counts(report: Report) -> tuple[int, int, int, int, int]:
    added, identical, conflicting, invalid = (report.count(name) for name in importing.OUTCOMES)
    return added, identical, conflicting, invalid, report.stored


def ids(store: Store) -> list[str]:
    return [row[0] for row in store.db.connection.execute("SELECT id FROM record ORDER BY seq")]


# --- counting --------------------------------------------------------------------------------------------------------


def test_importing_twice_changes_nothing(store: Store, tmp_path: Path) -> None:
    path = file_of(tmp_path, entry("s:1"), entry("s:2", extra_key={"a": [1, None]}))
    assert counts(take(store, path)) == (2, 0, 0, 0, 2)
    rev = store.db.counter("rev")
    assert counts(take(store, path)) == (0, 2, 0, 0, 0)
    assert store.db.counter("rev") == rev


def test_one_bad_line_and_nothing_of_the_file_is_stored(store: Store, tmp_path: Path) -> None:
    path = file_of(tmp_path, entry("s:1"), b'{"torn":\n', b"\n", entry("s:3", tags="no list"), entry("s:4"))
    report = take(store, path)
    assert counts(report) == (2, 0, 0, 2, 0)
    assert ids(store) == []
    value = report.to_json()
    assert value["lines"] == {"added": [1, 5], "invalid": [2, 4]}
    assert [problem["line"] for problem in value["problems"]] == [2, 4]
    assert "torn" in value["problems"][0]["reason"]
    assert "tags must be a list" in value["problems"][1]["reason"]
    assert isinstance(importing.refusal([report], Options()), Refused)


def test_keep_going_stores_what_is_good(store: Store, tmp_path: Path) -> None:
    path = file_of(tmp_path, entry("s:1"), b"nonsense\n", entry("s:2"))
    report = take(store, path, keep_going=True)
    assert counts(report) == (2, 0, 0, 1, 2)
    assert ids(store) == ["s:1", "s:2"]
    refusal = importing.refusal([report], Options(keep_going=True))
    assert refusal is not None
    assert refusal.exit_code == 4


def test_other_content_under_a_known_id_never_overwrites(store: Store, tmp_path: Path) -> None:
    take(store, file_of(tmp_path, entry("s:1", title="first")))
    for keep_going in (False, True):
        report = take(store, file_of(tmp_path, entry("s:1", title="second"), entry("s:2")), keep_going=keep_going)
        assert counts(report) == (1, 0, 1, 0, int(keep_going))
        assert "title" in report.problems[0]["reason"]
        assert "second" not in json.dumps(report.to_json())
    assert store.by_id("s:1")[0].record.title == "first"


def test_twins_within_a_file_are_told_apart(store: Store, tmp_path: Path) -> None:
    path = file_of(tmp_path, entry("s:1"), entry("s:1"), entry("s:1", title="other"), entry("s:1", project="elsewhere"))
    report = take(store, path, keep_going=True)
    assert counts(report) == (2, 1, 1, 0, 2)
    assert report.problems[0] == {
        "line": 3, "outcome": "conflicting", "reason": "s:1 stands at line 1 with other content",
    }  # fmt: skip


@pytest.mark.parametrize("missing", ["id", "project", "source"])
def test_a_record_without_its_identity_is_invalid(store: Store, tmp_path: Path, missing: str) -> None:
    value = entry()
    del value[missing]
    report = take(store, file_of(tmp_path, value))
    assert report.problems[0]["reason"] == f"the record has no {missing}"


def test_a_time_that_is_none_becomes_now_and_stays_the_same_record(store: Store, tmp_path: Path) -> None:
    path = file_of(tmp_path, entry("s:1", ts="soon"))
    first = take(store, path)
    assert (counts(first), first.dated) == ((1, 0, 0, 0, 1), 1)
    assert counts(take(store, path)) == (0, 1, 0, 0, 0)


def test_a_dry_run_says_what_a_run_would_do_and_writes_nothing(store: Store, tmp_path: Path) -> None:
    take(store, file_of(tmp_path, entry("s:1")))
    path = file_of(tmp_path, entry("s:1"), entry("s:2"), entry("s:2"), entry("s:2", title="x"), b"{\n")
    with Store.open_for_reading(store.home) as reading:
        foreseen = take(reading, path, dry_run=True)
    done = take(store, path, keep_going=True)
    assert counts(foreseen)[:4] == counts(done)[:4] == (1, 2, 1, 1)
    assert foreseen.stored == 0
    with Store.open_for_reading(tmp_path / "nowhere") as reading:
        assert counts(take(reading, path, dry_run=True))[:4] == (2, 1, 1, 1)
    assert not (tmp_path / "nowhere").exists()


# --- order, redaction, interruption ----------------------------------------------------------------------------------


def test_records_go_in_oldest_first(store: Store, tmp_path: Path) -> None:
    path = file_of(tmp_path, *(entry(f"s:{n}", ts=f"2026-01-{30 - n:02d}T00:00:00Z") for n in range(1, 10)))
    take(store, path)
    assert ids(store) == [f"s:{n}" for n in range(9, 0, -1)]
    assert store.db.value("SELECT count(*) FROM record WHERE late = 1") == 0


def test_every_string_is_redacted_on_the_way_in(store: Store, tmp_path: Path) -> None:
    told = [{"field": "title", "note": f"was {SECRET}"}]
    path = file_of(
        tmp_path, entry("s:1", body_md=f"use {SECRET}", deep={"k": [SECRET], f"key {SECRET}": 1}, redactions=told)
    )
    report = take(store, path)
    assert report.redactions == 4
    assert SECRET.encode() not in b"".join(p.read_bytes() for p in store.home.rglob("*") if p.is_file())
    assert store.db.value("SELECT count(*) FROM redaction_audit WHERE action = 'import'") == 4
    assert counts(take(store, path)) == (0, 1, 0, 0, 0)


def test_what_was_imported_is_found_by_search(store: Store, tmp_path: Path) -> None:
    from qiju.query import Query
    from qiju.search.engine import run

    take(store, file_of(tmp_path, entry("s:1", title="Verbindungspool"), entry("s:2", body_md="会话恢复")))
    for text, want in (("bindungsp", ["s:1"]), ("会话", ["s:2"]), ("nothing", [])):
        with store.db.read() as connection:
            hits = run(connection, Query(text=text)).hits
        assert [store.by_seq(hit.seq).record.id for hit in hits] == want  # type: ignore[union-attr]
    store.db.connection.execute("INSERT INTO record_trigram (record_trigram, rank) VALUES ('integrity-check', 1)")


def test_an_interruption_stores_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_of(tmp_path, *(entry(f"s:{n}") for n in range(1, 20)))
    real = importing._unpacked
    count: list[int] = []

    def interrupted(staged: Any) -> Any:
        count.append(1)
        if len(count) == 10:
            raise KeyboardInterrupt
        return real(staged)

    with monkeypatch.context() as patched:
        patched.setattr(importing, "_unpacked", interrupted)
        with pytest.raises(KeyboardInterrupt):
            take(store, path)
    assert ids(store) == []
    assert store.db.counter("bulk") == 0
    assert counts(take(store, path)) == (19, 0, 0, 0, 19)


# --- sources ---------------------------------------------------------------------------------------------------------


def test_what_an_editor_does_to_a_file_does_not_matter(store: Store, tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + json.dumps(entry("s:1")).encode() + b"\r\n\r\n" + json.dumps(entry("s:2")).encode()
    assert counts(take(store, file_of(tmp_path, data))) == (2, 0, 0, 0, 2)
    listed = json.dumps([entry("s:1"), entry("s:2")], indent=4).encode()
    assert counts(take(store, file_of(tmp_path, listed, name="in.json"))) == (0, 2, 0, 0, 0)
    report = take(store, file_of(tmp_path, data.decode("utf-8-sig").encode("utf-16"), name="u16"))
    assert report.error is not None
    assert "UTF-16" in str(report.error)


def test_glued_records_are_named_not_guessed(store: Store, tmp_path: Path) -> None:
    glued = (json.dumps(entry("s:1")) + json.dumps(entry("s:2"))).encode()
    report = take(store, file_of(tmp_path, glued))
    assert "glued" in report.problems[0]["reason"]


def test_a_change_feed_gives_its_records_but_no_deletions(store: Store, tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        {"change": "added", "rev": 1, "seq": 1, "record": entry("s:1")},
        {"change": "deleted", "rev": 2, "seq": 2, "id": "s:2", "project": "demo", "at": ""},
    )
    report = take(store, path, keep_going=True)
    assert counts(report) == (1, 0, 0, 1, 1)
    assert "deletion" in report.problems[0]["reason"]


def test_somebody_elses_parquet_is_read_as_json(store: Store, tmp_path: Path) -> None:
    """DuckDB infers types and adds nulls; a null is an absent key, a timestamp becomes ISO text."""
    import datetime as dt

    rows = [
        {**entry("s:1"), "ts": dt.datetime(2026, 1, 2, 3, 4, 5), "m": {"p": 1, "q": 2}, "model": "x"},
        {**entry("s:2"), "ts": dt.datetime(2026, 1, 3, 3, 4, 5), "m": {"p": 4, "q": None}, "model": None},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "foreign.parquet")
    assert counts(take(store, tmp_path / "foreign.parquet")) == (2, 0, 0, 0, 2)
    second = store.by_id("s:2")[0].record
    assert (second.extra, second.model, second.ts) == ({"m": {"p": 4}}, "", "2026-01-03T03:04:05+00:00")


def test_a_row_that_does_not_match_its_digest_is_refused(store: Store, tmp_path: Path) -> None:
    from qiju import archive

    take(store, file_of(tmp_path, entry("s:1")))
    row = archive.Row(*store.db.connection.execute(f"SELECT {', '.join(archive.NAMES)} FROM record").fetchall()[0])
    archive.write(tmp_path / "bad.parquet", [row._replace(title="edited")], view="raw_private")
    report = take(store, tmp_path / "bad.parquet")
    assert counts(report) == (0, 0, 0, 1, 0)
    assert "does not match its digest" in report.problems[0]["reason"]


@pytest.mark.parametrize("data", [b"PAR1", b"PAR1" + b"\x00" * 400, b"SQLite format 3\0" + b"\xff" * 200])
def test_a_damaged_source_is_an_error_of_that_source(store: Store, tmp_path: Path, data: bytes) -> None:
    report = take(store, file_of(tmp_path, data, name="damaged"))
    assert report.error is not None
    assert "damaged" in str(report.error)
    assert ids(store) == []


def test_sources_that_hold_nothing_are_said(store: Store, tmp_path: Path) -> None:
    missing = take(store, tmp_path / "missing")
    assert missing.error is not None
    assert missing.error.exit_code == 3
    folder = take(store, tmp_path)
    assert folder.error is not None
    assert "neither" in str(folder.error)
    assert counts(take(store, file_of(tmp_path, b""))) == (0, 0, 0, 0, 0)


def test_an_sqlite_file_of_somebody_else_is_refused(store: Store, tmp_path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("CREATE TABLE record (a)")
    connection.close()
    report = take(store, tmp_path / "x.db")
    assert report.error is not None
    assert "without Qiju's table" in str(report.error)


def test_an_unreadable_file_is_a_clean_failure(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, *args: Any, **kwargs: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    path = file_of(tmp_path, entry())
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(StorageFailed, match="Permission denied"):
        sources.recognise(str(path))


def test_standard_input_is_a_source(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(json.dumps(entry("s:1")).encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert counts(take(store, "-")) == (1, 0, 0, 0, 1)


# --- reports ---------------------------------------------------------------------------------------------------------


def test_line_numbers_are_ranges_and_stay_few() -> None:
    told = importing.Lines()
    for line in (5, 1, 2, 3, 9):
        told.add("", line)
    assert told.to_json() == ["1-3", 5, 9]
    many = importing.Lines()
    for line in range(1, 2001, 2):
        many.add("", line)
    listed = many.to_json()
    assert len(listed) == importing.MOST_RANGES + 1
    assert listed[-1] == f"and {1000 - importing.MOST_RANGES} more"


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_value_redacted_while_records_wait_does_not_come_back(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_going: bool
) -> None:
    from qiju.redaction.fingerprint import fingerprints

    value = "harmless-looking-but-secret-7731"
    path = file_of(tmp_path, entry("s:1", body_md=f"we used {value} there"))
    real = importing._read

    def then_redacted(*args: Any) -> None:
        real(*args)
        known = [(each,) for each in fingerprints(store.key("fingerprint"), value)]
        store.db.connection.executemany("INSERT INTO redacted_value (fingerprint) VALUES (?)", known)

    with monkeypatch.context() as patched:
        patched.setattr(importing, "_read", then_redacted)
        assert counts(take(store, path, keep_going=keep_going)) == (1, 0, 0, 0, 1)
    found = store.by_id("s:1")[0].record
    assert value not in found.body_md
    assert len(found.redactions) == 1
    assert counts(take(store, path)) == (0, 1, 0, 0, 0)


def test_recorded_redactions_follow_their_placeholders(store: Store, tmp_path: Path) -> None:
    """A new finding in front of an old marker moves it; every entry must still point at its placeholder."""
    mark = "[REDACTED:password:0a1b2c3d]"
    body = f"token {SECRET} then {mark} and {mark}"
    told = [
        {"field": "body_md", "start": body.index(mark), "end": body.index(mark) + len(mark), "placeholder": mark},
        {"field": "body_md", "start": body.rindex(mark), "end": body.rindex(mark) + len(mark), "placeholder": mark},
        {"field": "body_md", "start": 0, "end": 4, "placeholder": "[REDACTED:gone:00000000]"},
    ]
    take(store, file_of(tmp_path, entry("s:1", body_md=body, redactions=told)))
    found = store.by_id("s:1")[0].record
    assert SECRET not in found.body_md
    places = []
    for one in found.redactions:
        assert isinstance(one, dict)
        if "start" in one:
            assert found.body_md[one["start"] : one["end"]] == one["placeholder"]  # type: ignore[misc]
            places.append(one["start"])
    assert len(places) == len(set(places)) == 3
    assert len(found.redactions) == 4


def test_the_store_itself_is_not_a_source(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    take(store, file_of(tmp_path, entry("s:1")))
    monkeypatch.setattr(sqlite3, "connect", None)
    report = take(store, store.home / ".." / store.home.name / "qiju.db")
    assert report.error is not None
    assert "the store itself" in str(report.error)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_named_pipe_is_read_once_and_whole(store: Store, tmp_path: Path) -> None:
    import os
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = b"".join(json.dumps(entry(f"s:{n}")).encode() + b"\n" for n in range(1, 4))
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert counts(take(store, pipe)) == (3, 0, 0, 0, 3)
    writer.join()


def test_what_an_export_wrote_for_reading_is_refused_as_a_whole(store: Store, tmp_path: Path) -> None:
    """A Markdown export was answered with one torn record a line."""
    path = tmp_path / "out.md"
    path.write_text("# A title\n\n- id: s:1\n", encoding="utf-8")
    report = take(store, path, keep_going=True)
    assert isinstance(report.error, Refused)
    assert (report.read, report.stored) == (0, 0)


def test_a_trajectory_document_is_sent_to_its_own_import(store: Store, tmp_path: Path) -> None:
    report = take(store, file_of(tmp_path, {"exporter_id": "qiju.trajectory/canonical-json", "records": []}))
    assert "qiju trajectory reimport" in report.problems[0]["reason"]
