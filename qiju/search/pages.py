"""Pages of a search and the token between them.

The token holds the snapshot, the resolved times, the last row's number and a digest of the query and view: no text of
a record, no path. The sort values of the last row are looked up again. With `--sort relevance` it holds the numbers of
the ranked rows still to come, since a score would change with every record written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from qiju import cursor
from qiju.errors import CursorRejected, UsageError
from qiju.query import Query
from qiju.search.engine import AGAIN, TIMEOUT, Found, Hit, Position, Snapshot, run, snapshot, still_holds
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import apsw

KIND = "search"
SNAPSHOT_KIND = "snapshot"
PAGE = 50  # records of a page when no limit is given
RUNGS = ("", "phrase", "all", "any")
SCORE_UNIT = 10_000  # scores travel as integers


class Binding(NamedTuple):
    """What a cursor belongs to besides its query: the store (its id and cursor key) and the privacy view."""

    key: bytes
    store_id: str
    view: str = "raw_private"


class Page(NamedTuple):
    """`found.hits` name the rows; `next_cursor` is None on the last page."""

    found: Found
    next_cursor: str | None
    snapshot: str
    warnings: list[str]


def page(
    connection: apsw.Connection,
    query: Query,
    binding: Binding,
    *,
    token: str = "",
    limit: int = PAGE,
    count: bool = False,
    timeout: float = TIMEOUT,
    home_project: str = "",
    fit: Callable[[list[Hit]], int] | None = None,
    force: str = "",
) -> Page:
    """One page, inside one read transaction of the caller's. An empty token is the first page.

    `fit` is given the page's hits and tells how many of them are taken, such as what a budget has room for; the next
    page begins behind those.

    Raises `CursorRejected` for a token of another query, view or store, an altered one, and one whose snapshot holds
    a record that was redacted, deleted or retagged since (with a tier filter: moved).
    """
    if limit < 1:
        raise UsageError(f"the page size must be at least 1, not {limit}", hint="--limit 50 is the default of a page")
    if token:
        query, position = _resume(connection, query, binding, token)
    else:
        position = Position(snapshot(connection))
    found = run(
        connection,
        query,
        limit=limit,
        position=position,
        count=count,
        timeout=timeout,
        home_project=home_project,
        force=force,
    )
    if fit is not None:
        found = _shortened(found, position, fit(found.hits))
    following = None if found.next is None else cursor.encode(KIND, binding.key, _payload(query, binding, found.next))
    cut = cursor.encode(SNAPSHOT_KIND, binding.key, _payload(query, binding, Position(found.snapshot)))
    warnings = [f"ranked by relevance: only the best {len(found.hits)} are listed"] if found.capped else []
    return Page(found, following, cut, warnings)


def _shortened(found: Found, began: Position, taken: int) -> Found:
    """The page with its first `taken` hits only, the others left to the next page."""
    if taken >= len(found.hits):
        return found
    kept, rest = found.hits[:taken], found.hits[taken:]
    following = began._replace(snapshot=found.snapshot, total=found.total, match=rest[0].match)
    if kept:
        following = following._replace(last=kept[-1].seq)
    if found.ranked:
        later = found.next.ranked if found.next is not None and found.next.ranked is not None else ()
        following = following._replace(ranked=(*rest, *later))
    return found._replace(hits=kept, next=following)


def _digest(query: Query, binding: Binding) -> bytes:
    return cursor.digest(*query.identity(), *query.times, binding.view, binding.store_id)


def _payload(query: Query, binding: Binding, at: Position) -> cursor.Payload:
    payload: cursor.Payload = {
        "query": _digest(query, binding),
        "seq": at.snapshot.watermark,
        "rev": at.snapshot.rev,
        "tier_rev": at.snapshot.tier_rev,
    }
    for name, bound in (("since", query.filters.since), ("until", query.filters.until), ("total", at.total)):
        if bound is not None:
            payload[name] = bound
    if at.last:
        payload["last"] = at.last
    if at.match:
        payload["match"] = at.match
    if at.ranked is not None:
        numbers: list[int] = []
        for hit in at.ranked:
            numbers += (hit.seq, round((hit.score or 0.0) * SCORE_UNIT) * len(RUNGS) + RUNGS.index(hit.match))
        payload["ranked"] = cursor.pack(numbers)
    return payload


def _resume(connection: apsw.Connection, query: Query, binding: Binding, token: str) -> tuple[Query, Position]:
    payload = cursor.decode(token, KIND, binding.key)
    if payload["query"] != _digest(query, binding):
        raise CursorRejected(
            "the cursor belongs to another query, order or view",
            hint="repeat the options of the first page beside --cursor, or " + AGAIN,
        )

    def number(name: str) -> int | None:
        value = payload.get(name)
        return value if isinstance(value, int) else None

    cut = Snapshot(number("seq") or 0, number("rev") or 0, number("tier_rev") or 0)
    still_holds(connection, cut, tiers=bool(query.filters.tiers))
    filters = query.filters._replace(since=number("since"), until=number("until"))
    ranked = None
    packed = payload.get("ranked")
    if isinstance(packed, bytes):
        numbers = cursor.unpack(packed)
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        ranked = tuple(Hit(seq, RUNGS[code % len(RUNGS)], code // len(RUNGS) / SCORE_UNIT) for seq, code in pairs)
    position = Position(cut, number("last") or 0, str(payload.get("match", "")), number("total"), ranked)
    return query._replace(filters=filters), position
