"""Both ways of listing sessions give the same list, page by page, whatever lies between the sessions' events."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from qiju.store import Store
from qiju.trajectory import RecordKind, SqliteTrajectoryStore, TrajectoryDraft
from qiju.trajectory.session_list import latest_sessions


@settings(max_examples=15)
@given(order=st.lists(st.sampled_from("abcdé"), max_size=30), size=st.integers(1, 3), cut=st.integers(0, 30))
def test_pages_are_those_of_a_plain_list(tmp_path_factory: object, order: list[str], size: int, cut: int) -> None:
    """Events beyond the snapshot count for nothing, though they lie in the same sessions."""
    home: Path = tmp_path_factory.mktemp("home")  # type: ignore[attr-defined]
    with Store.open(home) as store:
        facts = SqliteTrajectoryStore(store)
        facts.append_many(TrajectoryDraft(name, RecordKind.EVENT, {"n": n}) for n, name in enumerate(order))
        upto = min(cut, len(order))
        last = {name: seq for seq, name in enumerate(order[:upto], 1)}
        wanted = [(name, seq, order[:upto].count(name)) for name, seq in sorted(last.items(), key=lambda one: -one[1])]
        with store.db.read():
            for walk in (1, 5, 1000):
                found: list[tuple[str, int, int]] = []
                before = None
                while page := latest_sessions(store.db, upto, before, size, walk=walk):
                    found += [(one.session_id, one.last, one.events) for one in page]
                    before = page[-1].last
                assert found == wanted
