"""Copies of one record: which are the same, which one stands for another, and that no order decides it."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.keeping.collate import Candidate, Decision, collate, is_redaction_of, pack, unpack
from qiju.legacy.parquet import loosely_equal
from qiju.record import parse_ts


def mark(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def copy(tier: str, source: str = "", *, exact: bool | None = None, identity: str = "s:1", **more: Any) -> Candidate:
    value: dict[str, Any] = {"id": identity, "project": "demo", "title": "t", "redactions": []}
    value |= {"ts": "2026-01-01T00:00:00Z", **more}
    exact = tier != "archive" if exact is None else exact
    return Candidate("demo", identity, parse_ts(value["ts"]), tier, exact, source or tier, pack(value))


def titles(decisions: list[Decision]) -> dict[str, str]:
    return {decision.id: str(unpack(decision.packed)["title"]) for decision in decisions}


def test_equal_copies_are_one_record_in_the_hottest_tier() -> None:
    (only,) = collate([copy("archive", exact=True), copy("long"), copy("short")], mark)
    assert (only.id, only.tier, only.sources) == ("s:1", "short", ("archive", "long", "short"))


def test_an_archived_copy_that_lost_its_offset_is_the_same_record_and_the_exact_one_is_kept() -> None:
    exact = copy("long", ts="2026-01-01T02:00:00+02:00", extra={"a": None, "b": 1})
    worn = copy("archive", ts="2026-01-01T00:00:00+00:00", extra={"b": 1})
    (only,) = collate([worn, exact], mark)
    assert unpack(only.packed) == unpack(exact.packed)


def test_different_content_is_kept_under_a_marked_id_of_the_same_session() -> None:
    found = titles(collate([copy("long", title="from long"), copy("short", title="from short")], mark))
    assert found.pop("s:1") == "from short"
    ((marked, title),) = found.items()
    assert title == "from long"
    assert marked.startswith("s~")
    assert marked.endswith(":1")


def test_the_redacted_copy_stands_for_the_one_the_redaction_missed() -> None:
    plain = copy("short", body_md="the key is hunter2-77, twice hunter2-77")
    entry = {"field": "*", "type": "retroactive", "placeholder": "[REDACTED:manual]"}
    redacted = copy("long", body_md="the key is [REDACTED:manual], twice [REDACTED:manual]", redactions=[entry])
    (only,) = collate([plain, redacted], mark)
    assert "hunter2" not in str(unpack(only.packed))
    assert only.replaced == ("short",)


def test_a_change_beside_the_redaction_is_no_redaction() -> None:
    entry = {"field": "*", "type": "retroactive", "placeholder": "[X]"}
    plain: dict[str, Any] = {"title": "a", "body_md": "secret here", "redactions": []}
    assert is_redaction_of({"title": "a", "body_md": "[X] here", "redactions": [entry]}, plain)
    assert not is_redaction_of({"title": "b", "body_md": "[X] here", "redactions": [entry]}, plain)
    assert not is_redaction_of({"title": "a", "body_md": "[X] there", "redactions": [entry]}, plain)
    assert not is_redaction_of({"title": "a", "body_md": "[X] here", "redactions": []}, plain)


def test_decisions_come_in_time_order() -> None:
    late = copy("short", identity="s:2", ts="2026-05-01T00:00:00Z")
    never = copy("long", identity="s:3", ts="no time")
    assert [d.id for d in collate([late, never, copy("archive")], mark)] == ["s:3", "s:1", "s:2"]


COPIES = st.lists(
    st.builds(
        copy,
        st.sampled_from(["short", "long", "archive"]),
        st.sampled_from(["a:1", "b:2", "c:3"]),
        identity=st.sampled_from(["s:1", "s:2"]),
        title=st.sampled_from(["x", "y"]),
        ts=st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"]),
        more=st.sampled_from([None, 1]),
    ),
    max_size=7,
)


@settings(max_examples=60, deadline=None)
@given(copies=COPIES, data=st.data())
def test_no_order_decides_anything_and_no_content_is_lost(copies: list[Candidate], data: st.DataObject) -> None:
    decided = collate(copies, mark)
    assert collate(data.draw(st.permutations(copies)), mark) == decided
    assert len({(d.project, d.id) for d in decided}) == len(decided)
    for one in copies:
        assert any(
            unpack(d.packed)["id"] == one.id and loosely_equal(unpack(d.packed), unpack(one.packed)) for d in decided
        )
    assert sum(len(d.sources) for d in decided) == len(copies)
