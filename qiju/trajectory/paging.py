"""Bounded pages over any source: cursors that belong to one store, query, view and snapshot, and full iterations.

A page is cut from a snapshot; its cursors carry the snapshot's mark, so later pages come from the same history or not
at all (`CursorRejected`). Whatever a third party hands in, nothing here reads a whole history to serve a page of it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from qiju import cursor as codec
from qiju.errors import BoundedReadUnsupported, CursorRejected
from qiju.trajectory.sources import Snapshot, SnapshotSource
from qiju.trajectory.types import (
    PrivacyView,
    TrajectoryCursor,
    TrajectoryPage,
    TrajectoryQuery,
    TrajectoryRecord,
)

if TYPE_CHECKING:
    from qiju.trajectory.views import Projector

__all__ = [
    "DEFAULT_PAGE",
    "BoundedReadUnsupported",
    "CursorRejected",
    "TrajectoryCursor",
    "TrajectoryPage",
    "iter_records",
    "read_page",
]

DEFAULT_PAGE = 100  # records, when the query names no limit
TOKEN_KIND = "trajectory"
FRESH_CUTS = 3


def read_page(
    reader: Any,
    query: TrajectoryQuery,
    cursor: TrajectoryCursor | None = None,
    *,
    view: PrivacyView = PrivacyView.REDACTED_PUBLIC,
) -> TrajectoryPage:
    """One page from any reader with the bounded capability (a `read_page` of its own).

    Returns at most `query.limit` records (default 100). Raises `BoundedReadUnsupported` when the reader lacks it: a
    third party's whole history is never read as a fallback; `CursorRejected` when the cursor does not belong here.
    """
    page = getattr(reader, "read_page", None)
    if page is None:
        raise _unsupported()
    result = page(query, cursor, view=view)
    if not isinstance(result, TrajectoryPage):
        raise BoundedReadUnsupported("the reader's read_page does not return a TrajectoryPage")
    return result


def iter_records(
    reader: Any, query: TrajectoryQuery, *, view: PrivacyView = PrivacyView.REDACTED_PUBLIC
) -> Iterator[TrajectoryRecord]:
    """Iterate a snapshot; output is partial until exhaustion, when the whole snapshot has been checked once more.

    Closing early releases everything and claims nothing. Memory holds one page (`query.limit` records). Raises
    `BoundedReadUnsupported` at once for a reader without the capability, and while iterating `CursorRejected` when the
    snapshot does not hold any more, `VerificationFailed` for a record that does not match its digest.
    """
    walk = getattr(reader, "walk", None)
    if walk is not None:
        records: Iterator[TrajectoryRecord] = walk(query, view=view)
        return records
    if getattr(reader, "read_page", None) is None:
        raise _unsupported()
    return _by_pages(reader, query, view)


def _by_pages(reader: Any, query: TrajectoryQuery, view: PrivacyView) -> Iterator[TrajectoryRecord]:
    cursor: TrajectoryCursor | None = None
    while True:
        page = read_page(reader, query, cursor, view=view)
        yield from page.records
        cursor = page.next_cursor
        if cursor is None:
            return


def page_of(
    source: SnapshotSource,
    query: TrajectoryQuery,
    cursor: TrajectoryCursor | None,
    projector: Projector,
    *,
    whole: bool = False,
) -> TrajectoryPage:
    """Cut or recognise the snapshot, read one slice of it, project it."""
    binding = _binding(source, query, projector.view)
    size = query.limit or DEFAULT_PAGE
    for attempt in range(FRESH_CUTS):
        if cursor is None:
            snapshot, after = source.cut(), 0
        else:
            snapshot, after = _open_token(cursor, source, binding)
        try:
            with source.opened(snapshot, whole=whole):
                records = source.select(snapshot, query, after, size + 1)
            break
        except CursorRejected:
            # Without a cursor nobody asked for this very snapshot: a change just after the cut asks for another one.
            if cursor is not None or attempt == FRESH_CUTS - 1:
                raise
    served = records[:size]
    more = len(records) > size
    return TrajectoryPage(
        records=tuple(projector.project(record) for record in served),
        next_cursor=_token(source, binding, snapshot, served[-1].sequence) if more else None,
        snapshot=_token(source, binding, snapshot, 0),
        watermark=snapshot.watermark,
        loss=projector.loss(),
    )


def walk_of(
    source: SnapshotSource, snapshot: Snapshot, query: TrajectoryQuery, projector: Projector
) -> Generator[TrajectoryRecord]:
    """All records of a snapshot, checked whole before the first and after the last."""
    size, after = query.limit or DEFAULT_PAGE, 0
    with source.opened(snapshot, whole=True):
        pass
    while True:
        with source.opened(snapshot):
            records = source.select(snapshot, query, after, size)
        for record in records:
            yield projector.project(record)
        if len(records) < size:
            break
        after = records[-1].sequence
    with source.opened(snapshot, whole=True):
        pass


def _binding(source: SnapshotSource, query: TrajectoryQuery, view: PrivacyView) -> bytes:
    """What a cursor must be used with again. The page size is not part of it: it may change from page to page."""
    return codec.digest(
        source.source_id,
        view.value,
        *("=" + value if value is not None else "" for value in (query.session_id, query.run_id, query.work_item_id)),
        ",".join(sorted({kind.value for kind in query.kinds})),
        str(query.after_sequence or 0),
    )


def _token(source: SnapshotSource, binding: bytes, snapshot: Snapshot, after: int) -> TrajectoryCursor:
    payload: codec.Payload = {"b": binding, "w": snapshot.watermark, "s": snapshot.state, "a": after}
    return TrajectoryCursor(codec.encode(TOKEN_KIND, source.cursor_key, payload))


def _open_token(cursor: TrajectoryCursor, source: SnapshotSource, binding: bytes) -> tuple[Snapshot, int]:
    payload = codec.decode(cursor.token, TOKEN_KIND, source.cursor_key)
    if payload.get("b") != binding:
        raise CursorRejected(
            "the cursor belongs to another store, query or view",
            hint="use it with the query and view it came from, or start again without a cursor",
        )
    watermark, state, after = payload.get("w"), payload.get("s"), payload.get("a")
    if not isinstance(watermark, int) or not isinstance(after, int) or not isinstance(state, str):
        raise CursorRejected("that is not a cursor of trajectory pages", hint="start again without a cursor")
    return Snapshot(watermark, state), after


def _unsupported() -> BoundedReadUnsupported:
    return BoundedReadUnsupported(
        "the reader cannot be read in bounded pages",
        hint="read it session by session (read_session), or import it into a store first",
    )
