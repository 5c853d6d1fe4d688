"""`redact --rescan`: newer rules reach what is stored, and rows written by hand are redacted and sealed."""

from __future__ import annotations

import sqlite3
from typing import Any

from .conftest import remains

TOKEN = "gh" + "p_" + "x7Kq2Vt9Lm4Rb8Ns1W" + "d6Fy3Hj5Pc0Gz2TaUe"


def by_hand(place: Any, *rows: tuple[str, str, str]) -> None:
    """Insert records (id, ts, body) as a person with a shell does."""
    connection = sqlite3.connect(place.db)
    for identity, ts, body in rows:
        connection.execute(
            "INSERT INTO record (id, ts, project, agent, source, title, body_md)"
            " VALUES (?, ?, 'demo', 'me', 'manual', 'by hand', ?)",
            (identity, ts, body),
        )
    connection.commit()
    connection.close()


def test_rows_written_by_hand_are_redacted_and_sealed(place: Any) -> None:
    place.log(body_md="logged")
    by_hand(place, ("h:1", "2026-03-01T10:00:00,5Z", f"token {TOKEN} end"), ("h:2", "2026-03-02T10:00:00Z", "plain"))
    report = place.ok("redact", "--rescan").json()
    assert (report["sealed"], report["redacted"]) == (2, 1)
    assert report["proof"]["passed"] is True
    assert remains(place.home, TOKEN) == []
    record = place.ok("show", "h:1").json()
    entry = record["redactions"][0]
    assert record["body_md"][entry["start"] : entry["end"]] == entry["placeholder"]
    assert "0 unsealed" in place.ok("verify").out
    again = place.ok("redact", "--rescan").json()
    assert (again["sealed"], again["redacted"]) == (0, 0)


def test_a_row_whose_id_is_none_is_left_and_named(place: Any) -> None:
    place.log(body_md="logged")
    by_hand(place, ("x", "", "no id"), ("h:1", "", "good"))
    report = place.ok("redact", "--rescan").json()
    assert report["sealed"] == 1
    assert len(report["left"]) == 1
    assert "record 2" in report["left"][0]


def test_newer_rules_reach_stored_records_and_events(place: Any) -> None:
    """A rule added to the configuration finds what was stored before it."""
    from qiju.trajectory import RecordKind, TrajectoryDraft
    from qiju.trajectory.store import SqliteTrajectoryStore

    identity = place.log(body_md="badge ACME-1234567 here", extra={"badge": "ACME-7654321"})
    with SqliteTrajectoryStore.open(place.home, writable=True) as store:
        store.append(TrajectoryDraft("s", RecordKind.MESSAGE, {"role": "user", "text": "ACME-1111111"}, record_id="m"))
    (place.home / "config.toml").write_text(
        '[redaction]\nrules = [{id = "acme-badge", kind = "badge", pattern = "ACME-[0-9]{7}", keywords = ["acme-"]}]\n',
        encoding="utf-8",
    )
    planned = place.ok("redact", "--rescan", "--dry-run").json()
    report = place.ok("redact", "--rescan", "--reason", "new rule").json()
    assert (planned["redacted"], planned["events"]) == (report["redacted"], report["events"]) == (1, 1)
    assert "ACME-1" not in place.ok("show", identity).out
    for value in ("ACME-1234567", "ACME-7654321", "ACME-1111111"):
        assert remains(place.home, value) == []
    place.ok("verify")
    audit = place.ok("redact", "--log").json()
    assert {entry["action"] for entry in audit} >= {"rescan"}


def test_sealing_gives_a_row_the_instant_of_its_ts(place: Any) -> None:
    """SQL cannot read `2026-03-01T10` (no minutes); until sealed it sorts by the time of its insert."""
    place.log(ts="2026-03-02T00:00:00Z", title="later")
    by_hand(place, ("h:1", "20260301T1000Z", "earlier"))
    place.ok("redact", "--rescan")
    found = place.ok("search", "--project", "demo", "--order", "asc", "--sort", "ts", "--ids-only").json()
    assert found[0]["id"] == "h:1"
    place.ok("verify")


def test_a_rescan_takes_no_value(place: Any) -> None:
    assert place.run("redact", "--rescan", "--value", "something").code == 2
