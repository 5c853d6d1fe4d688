"""`qiju delete`: what is asked, what goes, what stays, and that the text is gone from every byte."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from .conftest import remains

TEXT = "the lease of worker nine was never renewed after the cut"


def test_a_deleted_record_is_gone_from_index_archive_backup_and_exports(place: Any) -> None:
    identity = place.log(ts="2024-01-02T10:00:00Z", title="gone", body_md=TEXT, tags=["only-here-tag"])
    kept = place.log(ts="2024-01-03T10:00:00Z", title="kept", body_md="another text that stays where it is")
    place.ok("maintain")
    place.ok("backup")
    for kind in ("jsonl", "json", "parquet", "sqlite"):
        place.ok("export", "--format", kind, "--view", "raw_private", "--output", str(place.home / f"kept.{kind}"))
    assert remains(place.home, TEXT)
    report = place.ok("delete", identity, "--reason", "logged by mistake", "--yes").json()
    assert [one["id"] for one in report["deleted"]] == [identity]
    assert report["proof"]["passed"] is True
    assert report["proof"]["passages"] >= 1
    assert remains(place.home, TEXT) == []
    assert place.run("show", identity).code == 3
    assert place.ok("show", kept).json()["title"] == "kept"
    for name in ("kept.jsonl", "kept.json"):
        assert "another text" in (place.home / name).read_text("utf-8")
    place.ok("verify")
    audit = place.ok("redact", "--log").json()[-1]
    assert (audit["action"], audit["reason"]) == ("delete", "logged by mistake")
    connection = sqlite3.connect(f"file:{place.db}?mode=ro", uri=True)
    assert connection.execute("SELECT id FROM tombstone WHERE what = 'record'").fetchall() == [(identity,)]
    connection.close()


def test_the_number_of_a_deleted_record_is_not_given_again(place: Any) -> None:
    identity = place.log(body_md=TEXT)
    place.ok("delete", identity, "--reason", "r", "--yes")
    assert place.log(body_md="next") == identity.rpartition(":")[0] + ":2"


def test_it_asks_first(place: Any) -> None:
    """Without a terminal to ask on, `--yes` is needed; nothing happens without it."""
    identity = place.log(body_md=TEXT)
    assert place.run("delete", identity, "--reason", "r").code == 2
    assert place.run("delete", identity, "--reason", " ", "--yes").code == 2
    assert place.run("delete", identity, "--yes").code == 2
    assert place.ok("delete", identity, "--reason", "r", "--dry-run").json()["deleted"][0]["id"] == identity
    place.ok("show", identity)


def test_an_id_must_be_whole_and_plain(place: Any) -> None:
    """A prefix is not enough to delete by; one in two projects has to be told apart."""
    identity = place.log(body_md=TEXT)
    assert place.run("delete", identity[:8], "--reason", "r", "--yes").code == 3
    place.log(id="s:1", project="one")
    place.log(id="s:1", project="two")
    assert place.run("delete", "s:1", "--reason", "r", "--yes").code == 4
    place.ok("delete", "s:1", "--reason", "r", "--yes", "--project", "two")
    assert place.ok("show", "s:1").json()["project"] == "one"
    assert place.run("delete", "s:1", "nosuch:1", "--reason", "r", "--yes").code == 3
    place.ok("show", "s:1")


def test_text_that_other_records_share_is_no_remainder(place: Any) -> None:
    identity = place.log(body_md=TEXT)
    place.log(body_md=TEXT)
    report = place.ok("delete", identity, "--reason", "r", "--yes").json()
    assert report["proof"] == report["proof"] | {"passed": True, "passages": 0}


def test_a_file_in_which_records_cannot_be_told_apart_is_named(place: Any) -> None:
    identity = place.log(body_md=TEXT)
    page = place.home / "kept.md"
    page.write_text(f"# notes\n\n{TEXT}\n", encoding="utf-8")
    done = place.run("delete", identity, "--reason", "r", "--yes")
    assert done.code == 4
    assert "kept.md" in done.err
    page.unlink()
    assert place.ok("delete", identity, "--reason", "r", "--yes").json()["proof"]["passed"] is True
    assert place.run("delete", identity, "--reason", "r", "--yes").code == 3


def test_a_killed_deletion_is_finished_by_the_same_call(place: Any) -> None:
    """As after a kill between the transaction and the cleaning: the row is gone, the mark is there."""
    identity = place.log(body_md=TEXT)
    place.ok("backup")
    connection = sqlite3.connect(place.db)
    connection.execute("PRAGMA secure_delete = OFF")
    gone = json.dumps({"deleted": [{"seq": 1, "project": "demo", "id": identity}]})
    connection.execute("INSERT INTO redaction_audit (action, counts) VALUES ('delete', ?)", (gone,))
    connection.execute(
        "INSERT INTO redaction_pending (audit_id, fingerprint) SELECT max(audit_id), 'delete' FROM redaction_audit"
    )
    connection.execute("DELETE FROM record")
    connection.execute("UPDATE setting SET value = '' WHERE name = 'commitment'")
    connection.commit()
    connection.close()
    assert remains(place.home, TEXT)
    place.ok("delete", identity, "--reason", "r", "--yes")
    assert remains(place.home, TEXT) == []
