"""What each tool answers: the same queries, views, pages and errors as the command line, without any MCP.

Every call opens the store for reading and closes it again: an answer is as fresh as the call, and no lock outlives it.
Without a chosen view each tool has that of the command it stands for: records as `qiju search` shows them
(`raw_private`), the facts of sessions as `qiju trajectory page` does (`redacted_public`). Whoever may start this server
may run those commands, so it opens nothing further; and every answer names its view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qiju import cursor, jsontext, query
from qiju.errors import CursorRejected, NoProject, StoreDamaged, UsageError
from qiju.lookup import lookup
from qiju.mcp.tools import PAGE, TOKENS
from qiju.place.slug import slugify
from qiju.query import BY_RELEVANCE, BY_SESSION, Filters, Query
from qiju.record import fold
from qiju.render import project_fields
from qiju.search import engine, pages, snippet
from qiju.search.engine import Hit
from qiju.store import Store
from qiju.trajectory import events, scrub
from qiju.trajectory.readers import StoreTrajectoryReader
from qiju.trajectory.session_list import ListedSession, latest_sessions
from qiju.trajectory.sources import Snapshot
from qiju.trajectory.store import SqliteTrajectoryStore
from qiju.trajectory.types import PrivacyView, RecordKind, TrajectoryCursor, TrajectoryPage, TrajectoryQuery
from qiju.views import RAW_PRIVATE, public_record

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.place.config import Config
    from qiju.projects import Home
    from qiju.rows import Stored

Arguments = Mapping[str, Any]
Answer = dict[str, "JsonValue"]

ROW = ("id", "ts", "project", "agent", "title", "tags")  # of a hit, beside its tier and passage
SESSIONS_KIND = "sessions"
CHARACTERS_A_TOKEN = 4


class Answers:
    """The four tools over the store of one home. Arguments have been checked against the tools' schemas."""

    def __init__(
        self, home: Path, *, project: Home | None = None, view: str | None = None, config: Config | None = None
    ) -> None:
        """`project` is the one the server was started in, or None; `view` outweighs every tool's own."""
        self.home, self.project, self.config = home, project, config
        self.records_view = view or RAW_PRIVATE
        self.facts_view = PrivacyView(view or PrivacyView.REDACTED_PUBLIC)
        self.timeout = engine.TIMEOUT if config is None else config.search.timeout
        self.tools: dict[str, Callable[[Store, Arguments], Answer]] = {
            "search_records": self._search,
            "get_record": self._record,
            "list_sessions": self._sessions,
            "read_page": self._facts,
        }

    def answer(self, tool: str, arguments: Arguments) -> Answer:
        """The answer of a tool. Raises `QijuError` for everything that the command line would refuse, too."""
        with Store.open_for_reading(self.home, self.config) as store:
            return self.tools[tool](store, arguments)

    # --- records ---------------------------------------------------------------------------------------------------

    def _search(self, store: Store, given: Arguments) -> Answer:
        rows: list[JsonValue] = []
        with store.db.read() as connection:
            home = self._home_project(store)
            asked = self._query(given, home)
            finder = _finder(asked)

            def fit(hits: list[Hit]) -> int:
                rows.extend(self._row(store, hit, finder) for hit in hits)
                return len(hits)

            page = pages.page(
                connection,
                asked,
                pages.Binding(store.key("cursor"), store.db.setting("store_id"), self.records_view),
                token=given.get("cursor", ""),
                limit=given.get("limit", PAGE),
                timeout=self.timeout,
                home_project=home or "",
                fit=fit,
            )
        answer: Answer = {
            "view": self.records_view,
            "records": rows,
            "next_cursor": page.next_cursor,
            "watermark": page.found.snapshot.watermark,
        }
        warnings: list[JsonValue] = [*page.warnings, *store.warnings]
        return {**answer, "warnings": warnings} if warnings else answer

    def _query(self, given: Arguments, home: str | None) -> Query:
        sort = given.get("sort")
        regex = bool(given.get("regex", False))
        if regex and sort == BY_RELEVANCE:
            raise UsageError("sort=relevance ranks words, not patterns", hint="leave out regex or sort")
        since, until = given.get("since"), given.get("until")
        filters = Filters(
            projects=self._projects(given.get("scope"), home),
            session=given.get("session", ""),
            tags=tuple(given.get("tags", ())),
            since=None if since is None else query.since(since),
            until=None if until is None else query.until(until),
            source=given.get("source", ""),
            agent=given.get("agent", ""),
            tiers=tuple(given.get("tier", ())),
        )
        by_session = bool(filters.session) and sort is None
        return query.checked(
            Query(
                filters,
                given.get("query", ""),
                given.get("match", "any"),
                regex,
                BY_SESSION if by_session else sort or "ts",
                not by_session,
                (since or "", until or ""),
            )
        )

    def _projects(self, scope: str | None, home: str | None) -> tuple[str, ...] | None:
        """The slugs meant; None for all. Without a word: the server's project, or all when it stands in none."""
        if scope == "all" or (scope is None and self.project is None):
            return None
        if scope is None or scope == "current_project":
            if self.project is None:
                raise NoProject(
                    "this server was not started in a project",
                    hint="name a project in scope, or start the server with --project NAME",
                )
            return () if home is None else (home,)
        names = [name.strip() for name in scope.split(",") if name.strip()]
        if not names:
            raise UsageError("scope is empty", hint="current_project, all, or project names with commas between")
        return tuple(dict.fromkeys(slugify(name) for name in names))

    def _home_project(self, store: Store) -> str | None:
        return None if self.project is None else store.project_of(self.project)

    def _row(self, store: Store, hit: Hit, finder: snippet.Terms | snippet.Pattern | None) -> Answer:
        stored = store.listed(hit.seq)
        if stored is None:
            raise StoreDamaged(f"the index names a record that is not there (seq {hit.seq})", hint="run 'qiju verify'")
        shown = self._shown(store, stored)
        row: Answer = {name: shown.get(name) for name in ROW}
        row["tier"] = stored.tier
        row["snippet"] = snippet.passage(shown, finder)
        if hit.match:
            row["match"] = hit.match
        return row

    def _shown(self, store: Store, stored: Stored) -> Answer:
        if self.records_view == RAW_PRIVATE:
            return stored.record.to_json()
        return public_record(store.engine(), stored.record)

    def _record(self, store: Store, given: Arguments) -> Answer:
        project = given.get("project")
        with store.db.read():
            stored = lookup(store, given["id"], None if project is None else slugify(project))
            record = self._shown(store, stored)
        if fields := given.get("fields"):
            record = project_fields(record, fields)
        return {"view": self.records_view, "tier": stored.tier, "record": record}

    # --- facts of sessions -----------------------------------------------------------------------------------------

    def _sessions(self, store: Store, given: Arguments) -> Answer:
        """Titles are texts of records, so the view is that of the records."""
        limit = given.get("limit", PAGE)
        facts = SqliteTrajectoryStore(store)
        view = self.records_view
        binding = cursor.digest(facts.source_id, view)
        with store.db.read():
            snapshot, before = _resumed(facts, given.get("cursor"), binding)
            listed = latest_sessions(store.db, snapshot.watermark, before, limit + 1)
        following = None
        if len(listed) > limit:
            payload: cursor.Payload = {
                "b": binding,
                "w": snapshot.watermark,
                "s": snapshot.state,
                "a": listed[limit - 1].last,
            }
            following = cursor.encode(SESSIONS_KIND, facts.cursor_key, payload)
        public = None if view == RAW_PRIVATE else scrub.scrub_for(facts)
        rows: list[JsonValue] = [_session(one, public) for one in listed[:limit]]
        return {"view": view, "sessions": rows, "next_cursor": following, "watermark": snapshot.watermark}

    def _facts(self, store: Store, given: Arguments) -> Answer:
        limit = given.get("limit", PAGE)
        asked = TrajectoryQuery(
            session_id=given.get("session"),
            kinds=tuple(RecordKind(kind) for kind in given.get("kinds", ())),
            after_sequence=given.get("after"),
            limit=limit,
        )
        token = given.get("cursor")
        with StoreTrajectoryReader(SqliteTrajectoryStore(store)) as reader:
            begin = None if token is None else TrajectoryCursor(token)
            page = reader.read_page(asked, begin, view=self.facts_view)
            room = _room(page, given.get("max_tokens", TOKENS))
            if room < len(page.records):
                # The size of a page is not what its cursor is bound to: the same snapshot, cut shorter.
                shorter = TrajectoryQuery(asked.session_id, None, None, asked.kinds, asked.after_sequence, room)
                page = reader.read_page(shorter, begin or page.snapshot, view=self.facts_view)
        return {
            "view": self.facts_view.value,
            "records": [record.to_dict() for record in page.records],
            "next_cursor": None if page.next_cursor is None else page.next_cursor.token,
            "watermark": page.watermark,
            "loss": page.loss.to_dict(),
        }


def _finder(asked: Query) -> snippet.Terms | snippet.Pattern | None:
    if asked.blank:
        return None
    if asked.regex:
        from qiju.search.watch import compiled

        return snippet.Pattern(compiled(asked.text))
    if asked.match == "phrase":
        return snippet.Terms([fold(asked.text.strip())])
    if asked.sort == BY_RELEVANCE:
        from qiju.search.ranking import shown_words

        return snippet.Terms(shown_words(asked.text), beginnings=True)
    return snippet.Terms(query.terms(asked.text))


def _resumed(facts: SqliteTrajectoryStore, token: str | None, binding: bytes) -> tuple[Snapshot, int | None]:
    """The snapshot to list from, and the sequence to go on before."""
    if token is None:
        return events.cut(facts.store.db), None
    payload = cursor.decode(token, SESSIONS_KIND, facts.cursor_key)
    watermark, state, before = payload.get("w"), payload.get("s"), payload.get("a")
    if payload.get("b") != binding or not isinstance(watermark, int) or not isinstance(before, int):
        raise CursorRejected("the cursor belongs to another store or view", hint="start again without a cursor")
    snapshot = Snapshot(watermark, str(state))
    events.confirm(facts.store.db, snapshot)
    return snapshot, before


def _session(one: ListedSession, public: Callable[..., Any] | None) -> Answer:
    row: Answer = dict(one._asdict())
    if public is not None:
        for name in ("session_id", "project", "agent", "title"):
            row[name] = public(str(row[name]), name, frozenset()).text
    return row


def _room(page: TrajectoryPage, tokens: int) -> int:
    """How many records of the page fit into so many tokens; at least one, so that every page goes on."""
    spent = 0
    for count, record in enumerate(page.records):
        spent += -(-len(jsontext.line(record.to_dict())) // CHARACTERS_A_TOKEN)
        if spent > tokens and count:
            return count
    return len(page.records)
