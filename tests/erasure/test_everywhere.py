"""One value in every place where Qiju can hold it, redacted by one call; what is left is looked for independently."""

from __future__ import annotations

import base64
import json
import sqlite3
import unicodedata
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from .conftest import VALUE, remains

SESSION = "22222222-2222-4222-8222-222222222222"


def plant(place: Any) -> None:
    """Records in three tiers and two projects, events, files, backups, exports: all of them hold `VALUE`."""
    nested = {VALUE: {"deep": [VALUE, {"x " + VALUE: VALUE}]}, "a " + VALUE: 1, "b " + VALUE: 2, VALUE + VALUE: 3}
    encoded = "\n".join(
        (
            "raw " + VALUE,
            "nfd " + unicodedata.normalize("NFD", VALUE),
            "url " + urllib.parse.quote(VALUE, safe=""),
            "json " + json.dumps({"k": VALUE}),
            "twice " + json.dumps(json.dumps(VALUE)),
            *("b64 " + base64.b64encode(b"x" * lead + VALUE.encode() + b"tail").decode() for lead in range(3)),
        )
    )
    for month in ("2024-01", "2026-11"):
        place.log(
            ts=f"{month}-03T10:00:00Z", title="t " + VALUE, body_md=encoded, tags=[VALUE, "plain"],
            search_terms=["s " + VALUE], next_steps=["mail " + VALUE], extra=nested, **{VALUE: VALUE},
        )  # fmt: skip
    place.log(session="sess", project="other", title="no secret here", body_md="stays as it is")
    place.log(project="other", id="zqv-x9-session-77:3", title="an id", body_md="b")
    place.ok("maintain")
    add_event(place)
    place.ok("backup")
    place.ok("export", "--format", "jsonl", "--view", "raw_private", "--output", str(place.home / "kept.jsonl"))
    place.ok("export", "--format", "parquet", "--view", "raw_private", "--output", str(place.home / "kept.parquet"))
    place.ok("export", "--format", "sqlite", "--view", "raw_private", "--output", str(place.home / "kept.sqlite"))
    place.ok("export", "--format", "markdown", "--view", "raw_private", "--output", str(place.home / "kept.md"))
    place.ok("export", "--format", "trajectory", "--view", "raw_private", "--output", str(place.home / "kept.tj.json"))
    add_journal(place.home / "kept.journal")
    staging = place.project / ".qiju" / "tmp"
    staging.mkdir(parents=True, exist_ok=True)
    (staging / f"qiju-entry.codex.{'0' * 32}.json").write_text(json.dumps({"title": VALUE}), encoding="utf-8")
    (place.project / ".qiju" / "short.jsonl").write_text(json.dumps({"body_md": VALUE}) + "\n{torn " + VALUE, "utf-8")
    (place.home / "notes-utf16.txt").write_bytes(VALUE.encode("utf-16"))


def add_event(place: Any) -> None:
    from qiju.trajectory import RecordKind, TrajectoryDraft
    from qiju.trajectory.store import SqliteTrajectoryStore

    with SqliteTrajectoryStore.open(place.home, writable=True) as store:
        for number in (1, 2):
            payload = {"role": "user", "text": "say " + VALUE, VALUE: number}
            store.append(TrajectoryDraft(SESSION, RecordKind.MESSAGE, payload, record_id=f"m{number}", run_id="r"))


def add_journal(path: Path) -> None:
    from qiju.trajectory import RecordKind, TrajectoryDraft
    from qiju.trajectory.journal import JournalTrajectoryStore

    with JournalTrajectoryStore(path) as journal:
        for number in (1, 2):
            journal.append(
                TrajectoryDraft(SESSION, RecordKind.MESSAGE, {"text": VALUE, "n": number}, record_id=f"j{number}")
            )


def test_trajectory_files_stay_readable(place: Any) -> None:
    """An export keeps its digests in step, a journal its frames; both read as before, without the value."""
    from qiju.trajectory import read_artifact
    from qiju.trajectory.exporter import CanonicalTrajectoryExporter
    from qiju.trajectory.journal import JournalTrajectoryStore

    plant(place)
    place.ok("redact", "--value-stdin", "--reason", "r", given=VALUE)
    artifact = read_artifact((place.home / "kept.tj.json").read_bytes())
    assert len(CanonicalTrajectoryExporter().reimport(artifact).records) == 4
    with JournalTrajectoryStore(place.home / "kept.journal", read_only=True) as journal:
        texts = [record.payload["text"] for record in journal.read_session(SESSION).records]
    assert texts == ["[REDACTED:manual]"] * 2


def test_a_value_planted_everywhere_is_gone_from_every_byte(place: Any) -> None:
    """The case the command is for. What it prints holds neither the value, and `verify` finds the store sound."""
    plant(place)
    assert remains(place.folder, VALUE)
    done = place.ok("redact", "--value-stdin", "--reason", "leaked " + VALUE, given=VALUE + "\n")
    assert remains(place.folder, VALUE) == []
    assert VALUE not in done.out + done.err
    report = done.json()
    assert report["proof"]["passed"] is True
    assert report["remains"] == []
    assert report["counts"]["events"] == 2
    assert report["counts"]["archive"] == 1
    assert {"backup", "staging", "short", "file"} <= set(report["counts"]["files"])
    place.ok("verify")
    kept = place.ok("show", "sess:1", "--project", "other").json()
    assert kept["title"] == "no secret here"
    assert place.run("redact", "--value-stdin", "--reason", "again", given=VALUE).code == 3


def test_what_stays_of_the_records_is_whole(place: Any) -> None:
    """Keys that become equal both stay, types are kept, recorded places are those of the markers."""
    plant(place)
    place.ok("redact", "--value-stdin", "--reason", "r", given=VALUE)
    records = place.ok("search", "--scope", "all", "--format", "json", "--query", "b64").json()
    assert len(records) == 2
    for record in records:
        extra = record["extra"]
        assert sorted(value for value in extra.values() if isinstance(value, int)) == [1, 2, 3]
        assert record["tags"] == ["[REDACTED:manual]", "plain"]
        for entry in record["redactions"]:
            if entry["field"] in ("title", "body_md"):
                assert record[entry["field"]][entry["start"] : entry["end"]] == entry["placeholder"]
        assert len([e for e in record["redactions"] if e["field"] == "body_md"]) >= 7


def test_exports_and_backups_stay_usable(place: Any) -> None:
    """JSON lines stay JSON, Parquet stays Parquet with right digests, a public copy stays searchable."""
    plant(place)
    place.ok("redact", "--value-stdin", "--reason", "r", given=VALUE)
    lines = [json.loads(line) for line in (place.home / "kept.jsonl").read_text("utf-8").splitlines()]
    assert len(lines) == 4
    from qiju import archive

    for row in archive.read(place.home / "kept.parquet"):
        assert archive.record_of(row).digest() == row.digest
    copy = sqlite3.connect(place.home / "kept.sqlite")
    found = copy.execute("SELECT count(*) FROM record_fts WHERE record_fts MATCH 'stays'").fetchone()
    copy.close()
    assert found == (1,)
    backups = sorted((place.home / "backups").glob("*.db"))
    assert len(backups) == 1
    place.ok("restore", str(backups[0]))
    assert remains(place.folder, VALUE) == []
    place.ok("verify")


@pytest.mark.parametrize("where", ["id", "project", "session"])
def test_a_name_that_holds_the_value_changes_and_the_old_one_does_not_answer(place: Any, where: str) -> None:
    """The record stays reachable under the new id or project, which is printed; the tombstones change, too."""
    name = "acme-" + "corp-x"
    if where == "id":
        place.log(id=f"{name}:7", title="kept")
        place.log(id=f"{name}-two:7", title="also kept")
    elif where == "project":
        place.log(project=name, title="kept", id="s:7")
        place.log(project="redacted", title="taken", id="s:8")
    else:
        place.log(session=name, title="kept")
    done = place.ok("redact", "--value", name, "--reason", "r")
    report = done.json()
    assert name not in done.out + done.err
    assert remains(place.home, name) == []
    if where == "project":
        assert report["projects"] == ["redacted-2"]
        assert place.run("search", "--project", name, "--ids-only").json() == []
        assert place.ok("show", "s:7", "--project", "redacted-2").json()["title"] == "kept"
        assert {one["slug"] if "slug" in one else one["project"] for one in place.ok("projects", "--json").json()} >= {
            "redacted", "redacted-2"
        }  # fmt: skip
    else:
        assert report["renamed"]
        for one in report["renamed"]:
            assert place.ok("show", one["id"]).json()["project"] == one["project"]
        assert place.run("show", f"{name}:7" if where == "id" else f"{name}:1").code == 3
    place.ok("verify")


def test_two_ids_that_become_equal_both_answer(place: Any) -> None:
    """Composed and decomposed spellings of one value in two ids of the same number."""
    composed = "caf\u00e9-vault"
    place.log(id=f"{composed}:1", title="one")
    place.log(id=unicodedata.normalize("NFD", composed) + ":1", title="two")
    report = place.ok("redact", "--value", composed, "--reason", "r").json()
    titles = {place.ok("show", one["id"]).json()["title"] for one in report["renamed"]}
    assert titles == {"one", "two"}
    place.ok("verify")


def test_the_archive_follows_a_renamed_project(place: Any) -> None:
    """Folders and manifests below the archive carry the project's name."""
    name = "acme-" + "corp-x"
    place.log(project=name, ts="2024-01-03T10:00:00Z", body_md="cold")
    place.ok("maintain")
    assert list((place.home / "archive").glob(f"project={name}"))
    place.ok("redact", "--value", name, "--reason", "r")
    assert [path.name for path in (place.home / "archive").iterdir()] == ["project=redacted"]
    assert remains(place.home, name) == []
    place.ok("verify")


def test_a_project_keeps_its_folder_when_its_name_is_redacted(place: Any) -> None:
    """The marker in the folder gets the new name under the same UUID, so the next record goes to the same project."""
    name = "acme-" + "corp-x"
    place.ok("init", "--project", name, "--host", "claude-code", "--local")
    place.log(project="", title="before")
    place.ok("redact", "--value", name, "--reason", "r")
    assert remains(place.folder, name) == []
    place.log(project="", title="after")
    titles = {record["title"] for record in place.ok("search", "--format", "json").json()}
    assert titles == {"before", "after"}


def test_a_root_named_by_the_value_is_cleaned_and_dropped_with_a_warning(place: Any, tmp_path: Path) -> None:
    """The registry may not hold the value; the folder's name is the person's to change."""
    name = "acme-" + "corp-x"
    root = tmp_path / name
    for part in ("objects", "refs"):
        (root / ".git" / part).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    place.ok("log", "--source", "manual", given=json.dumps({"title": "t"}), cwd=root)
    (root / ".qiju").mkdir(exist_ok=True)
    (root / ".qiju" / "short.jsonl").write_text(json.dumps({"body_md": name}) + "\n", encoding="utf-8")
    done = place.run("redact", "--value", name, "--reason", "r")
    assert name not in done.out + done.err
    assert "rename it" in done.err
    assert remains(place.home, name) == []
    assert name not in (root / ".qiju" / "short.jsonl").read_text("utf-8")


def test_numbers_hold_no_value_either(place: Any) -> None:
    """A number whose digits are the value becomes the marker, an integer and one too long for SQLite alike."""
    digits = "40128" + "88888881881"
    place.log(extra={"a": int(digits), "b": int("9" + digits + "7" * 10), "c": [1.5, 2]})
    place.ok("redact", "--value", digits, "--reason", "r")
    extra = place.ok("search", "--format", "json", "--scope", "all").json()[0]["extra"]
    assert extra["a"] == "[REDACTED:manual]"
    assert extra["c"] == [1.5, 2]
    assert remains(place.home, digits) == []
