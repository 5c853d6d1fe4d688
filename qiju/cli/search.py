"""`qiju search`: find records by text, filters and time; newest first, by another field, or by relevance."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from qiju import query as asked
from qiju import render
from qiju.cli.context import Context, home_of
from qiju.cli.options import Command, Option
from qiju.cli.show import VIEWS, field_names, shown
from qiju.errors import StoreDamaged, UsageError
from qiju.jsontext import JsonValue, Number, line
from qiju.query import BY_RELEVANCE, BY_SESSION, Filters, Query
from qiju.record import fold
from qiju.search import engine, pages
from qiju.search.engine import Hit
from qiju.store import Store
from qiju.values import NamedTuple
from qiju.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.search import snippet as snippets

FORMATS = ("json", "jsonl", "summary", "table", "actions", "markdown")
COMPACT = ("id", "ts", "project", "agent", "title", "tier")  # what a hit is told by where its passage is shown
IDS = ("id", "project", "title")
CHARACTERS_A_TOKEN = 4

Row = dict[str, JsonValue]


class _Shape(NamedTuple):
    """How hits become rows: view, fields (none: the whole record), and what is added beside them."""

    view: str
    fields: list[str]
    snippet: bool
    finder: snippets.Terms | snippets.Pattern | None
    asked: Query


def run(context: Context, **options: object) -> int:
    """Print the records that match, or one page of them."""
    given = Given(**options)  # type: ignore[arg-type]
    if given.limit is not None and given.limit < 1:
        raise UsageError(f"--limit must be at least 1, not {given.limit}", hint="leave it out to have all records")
    if given.max_tokens is not None and given.max_tokens < 1:
        raise UsageError(f"--max-tokens must be at least 1, not {given.max_tokens}", hint="such as --max-tokens 4000")
    paged = given.page or given.total or given.cursor is not None
    with context.open_for_reading() as store, store.db.read() as connection:
        query = query_of(context, store, given)
        home_project = _home_project(context, store) if query.sort == BY_RELEVANCE else ""
        timeout = given.timeout if given.timeout is not None else context.config.search.timeout
        if not timeout > 0:
            raise UsageError(f"--timeout must be above 0, not {timeout:g}", hint="seconds, such as --timeout 10")
        shape = _shape(given, query)
        printer = _Printer(context, given.format, shape)
        if not paged:
            found = engine.run(connection, query, limit=given.limit, timeout=timeout, home_project=home_project)
            printed = printer.listed(_rows(store, found.hits, shape), given.max_tokens)
            _say_what_is_left(context, given, found, printed)
        else:
            binding = pages.Binding(store.key("cursor"), store.db.setting("store_id"), given.view)
            rows: list[Row] = []

            def fit(hits: list[Hit]) -> int:
                rows.extend(printer.within(_rows(store, hits, shape), given.max_tokens))
                return len(rows)

            page = pages.page(
                connection,
                query,
                binding,
                token=given.cursor or "",
                limit=given.limit or pages.PAGE,
                count=given.total,
                timeout=timeout,
                home_project=home_project,
                fit=fit,
            )
            found = page.found
            printer.page(rows, page)
            for warning in page.warnings:
                context.note(warning)
        for warning in store.warnings:
            context.note(warning)
    if given.explain:
        print(f"qiju search: {found.explanation}", file=sys.stderr)
    return 0


class Given(NamedTuple):
    """The options as given; None or () where they were left out."""

    scope: str
    project: str | None
    query: str | None
    session: str | None
    tags: tuple[str, ...]
    since: str | None
    until: str | None
    source: str | None
    agent: str | None
    model: str | None
    model_effort: str | None
    tier: tuple[str, ...]
    match: str
    regex: bool
    timeout: float | None
    sort: str | None
    order: str | None
    limit: int | None
    page: bool
    cursor: str | None
    total: bool
    format: str
    ids_only: bool
    fields: str | None
    snippet: bool
    max_tokens: int | None
    view: str
    explain: bool


def query_of(context: Context, store: Store, given: Given) -> Query:
    sort, order = given.sort, given.order
    by_session = bool(given.session) and sort is None and order is None
    sort = BY_SESSION if by_session else sort or "ts"
    descending = not by_session and order != "asc"
    if sort == BY_RELEVANCE:
        if given.regex:
            raise UsageError("--sort relevance ranks words, not patterns", hint="leave out --regex or --sort")
        if not descending:
            raise UsageError("--sort relevance lists the best first", hint="leave out --order asc")
    filters = Filters(
        projects=_projects(context, store, given),
        session=given.session or "",
        tags=given.tags,
        since=asked.since(given.since) if given.since is not None else None,
        until=asked.until(given.until) if given.until is not None else None,
        source=given.source or "",
        agent=given.agent or "",
        model=given.model or "",
        model_effort=given.model_effort or "",
        tiers=given.tier,
    )
    return asked.checked(
        Query(
            filters,
            given.query or "",
            given.match,
            given.regex,
            sort,
            descending,
            (given.since or "", given.until or ""),
        )
    )


def _projects(context: Context, store: Store, given: Given) -> tuple[str, ...] | None:
    """The slugs that `--scope` and `--project` mean; None for all of them."""
    if given.scope == "all" and given.project is None:
        return None
    if given.scope in ("all", "current_project"):
        claim = home_of(context.project(given.project, reading=True))
        slug = store.project_of(claim)
        if slug is None and given.project is not None:
            _say_unknown(context, store, (claim.slug,))
        return () if slug is None else (slug,)
    from qiju.place.slug import slugify

    names = [name.strip() for name in given.scope.split(",") if name.strip()]
    if not names:
        raise UsageError("--scope is empty", hint="current_project, all, or project names with commas between")
    slugs = tuple(dict.fromkeys(slugify(name) for name in names))
    _say_unknown(context, store, slugs)
    return slugs


def _say_unknown(context: Context, store: Store, slugs: tuple[str, ...]) -> None:
    """An empty list is right for a project that holds nothing, but a misspelt name would look the same."""
    known = tuple(str(row[0]) for row in store.db.connection.execute("SELECT slug FROM project ORDER BY slug"))
    there = set(known)
    unknown = [slug for slug in slugs if slug not in there]
    if unknown:
        near = f"; the nearest is {asked.nearest(unknown[0], known)!r}" if known else ""
        more = f" (nor {len(unknown) - 1} more of those named)" if len(unknown) > 1 else ""
        context.note(f"the store knows no project {unknown[0]!r}{near}{more}")


def _home_project(context: Context, store: Store) -> str:
    """The project this call is made from, which relevance favours a little; '' where there is none."""
    from qiju.errors import NoProject

    try:
        return store.project_of(home_of(context.project(None, reading=True))) or ""
    except NoProject:
        return ""


def _shape(given: Given, query: Query) -> _Shape:
    # A summary and the open steps have a layout of their own, which needs what --fields might leave out.
    own_layout = given.format in ("summary", "actions")
    fields = [] if own_layout else field_names(given.fields)
    if given.ids_only:
        fields = list(IDS)
    elif given.snippet and not fields and not own_layout:
        fields = list(COMPACT)
    finder: snippets.Terms | snippets.Pattern | None = None
    if given.snippet and not query.blank:
        from qiju.search import snippet

        if query.regex:
            from qiju.search.watch import compiled

            finder = snippet.Pattern(compiled(query.text))
        elif query.match == "phrase":
            finder = snippet.Terms([fold(query.text.strip())])
        else:
            finder = snippet.Terms(_words(query), beginnings=query.sort == BY_RELEVANCE)
    return _Shape(given.view, fields, given.snippet, finder, query)


def _words(query: Query) -> list[str]:
    if query.sort != BY_RELEVANCE:
        return list(asked.terms(query.text))
    from qiju.search.ranking import shown_words

    return shown_words(query.text)


def _rows(store: Store, hits: Iterable[Hit], shape: _Shape) -> Iterable[Row]:
    """The hits as they are shown, one after another, so that a long list is never held."""
    for hit in hits:
        stored = store.listed(hit.seq)
        if stored is None:
            raise StoreDamaged(f"the index names a record that is not there (seq {hit.seq})", hint="run 'qiju verify'")
        row = shown(store, stored, shape.view)
        beside: Row = {"tier": stored.tier}
        if hit.score is not None:
            beside["score"] = Number(f"{hit.score:.4f}")
        if hit.match:
            beside["match"] = hit.match
        if shape.snippet:
            from qiju.search.snippet import passage

            beside["snippet"] = passage(row, shape.finder)
        whole = {**row, **beside}
        if shape.fields:
            always = ("match", "snippet", *(("score",) if list(COMPACT) == shape.fields else ()))
            names = [*shape.fields, *(name for name in always if name in beside and name not in shape.fields)]
            yield {name: whole.get(name) for name in names}
        else:
            del whole["tier"]
            yield whole


class _Printer:
    """Writes rows in one format. JSON lists and lines go out as they come."""

    def __init__(self, context: Context, form: str, shape: _Shape) -> None:
        self.context, self.form, self.shape = context, form, shape
        self.put: Callable[[str], object] = sys.stdout.write

    def within(self, rows: Iterable[Row], budget: int | None) -> Iterable[Row]:
        """Rows until the next one would pass the budget of tokens (characters divided by four, rounded up)."""
        left = (budget or 0) * CHARACTERS_A_TOKEN - len("[]\n")
        for row in rows:
            if budget is not None:
                left -= len(self._one(row))
                if left < 0:
                    return
            yield row

    def listed(self, rows: Iterable[Row], budget: int | None) -> int:
        """Print the rows and count them."""
        rows = self.within(rows, budget)
        if self.form == "json":
            return self._json(rows)
        if self.form == "jsonl":
            count = 0
            for row in rows:
                self.put(line(row) + "\n")
                count += 1
            return count
        kept = list(rows)
        if self.context.terminal:
            from qiju import reading

            table = self.form == "table"
            lines = reading.listing(self.context, kept, self.shape.fields) if table else self._lines(kept)
            reading.paged(self.context, lines)
            return len(kept)
        for text in self._lines(kept):
            self.put(text + "\n")
        return len(kept)

    def page(self, rows: list[Row], page: pages.Page) -> None:
        """Print a page: as an envelope where the format is JSON, else the rows, and how to go on beside them."""
        if self.form not in ("json", "jsonl"):
            self.listed(rows, None)
            if page.found.total is not None:
                self.context.note(f"{counted(page.found.total, 'record')} in all")
            if page.next_cursor is not None:
                self.context.note(f"more: the same command with --cursor {page.next_cursor}")
            return
        envelope: Row = {
            "records": [*rows],
            "returned": len(rows),
            "next_cursor": page.next_cursor,
            "snapshot": page.snapshot,
            "watermark": page.found.snapshot.watermark,
            "warnings": [*page.warnings],
        }
        if page.found.total is not None:
            envelope["total"] = page.found.total
        self.put((render.json_text(envelope) if self.form == "json" else line(envelope)) + "\n")

    def _json(self, rows: Iterable[Row]) -> int:
        count = 0
        for count, row in enumerate(rows, 1):
            self.put("[\n  " if count == 1 else ",\n  ")
            self.put(render.json_text(row).replace("\n", "\n  "))
        self.put("\n]\n" if count else "[]\n")
        return count

    def _lines(self, rows: list[Row]) -> Iterable[str]:
        if self.form == "actions":
            return render.actions(rows)
        if self.form == "markdown":
            return ["\n---\n\n".join(render.markdown(row) for row in rows).rstrip("\n")] if rows else []
        if self.form == "summary":
            return [self._summary(row) for row in rows]
        from shutil import get_terminal_size

        columns = self.shape.fields or ["ts", "id", "title"]
        return render.table(rows, columns, get_terminal_size((100, 24)).columns)

    def _summary(self, row: Row) -> str:
        text = render.summary(row)
        return f"{text}\n    {render.one_line(str(row['snippet']))}" if row.get("snippet") else text

    def _one(self, row: Row) -> str:
        """A row as it will be printed, with what parts it from the next, to be counted."""
        if self.form == "json":
            return ",\n  " + render.json_text(row).replace("\n", "\n  ")
        if self.form == "jsonl":
            return line(row) + "\n"
        return "\n".join(self._lines([row])) + "\n"


def _say_what_is_left(context: Context, given: Given, found: engine.Found, printed: int) -> None:
    """One line on standard error when the list was cut, and how to go on."""
    left = len(found.hits) - printed
    if left and given.max_tokens is not None:
        more = " and more matched beyond --limit" if found.next is not None else ""
        first = "" if printed else "; the first alone is larger: raise --max-tokens, or name fewer --fields"
        bound = counted(given.max_tokens, "token")
        context.note(f"{counted(left, 'record')} left out to stay within {bound}{more}{first}")
    elif found.next is not None:
        context.note(f"--limit {given.limit} cut the list; add --page to have a cursor for the rest, or raise it")
    if found.capped and found.next is None:
        context.note(f"ranked by relevance: only the best {len(found.hits)} are listed")


COMMAND = Command(
    "search",
    "Find records by literal text, pattern, filters and time.",
    (
        Option("query", ("--query", "-q"), "Words to look for; each is a literal piece of text, case ignored."),
        Option("match", ("--match",), "any word, all words, the phrase, or auto: the best of the three that finds "
               "something.", default="any", choices=asked.MATCHES),
        Option("regex", ("--regex",), "The query is a Python regular expression (case ignored, multi-line).", bool,
               False),
        Option("timeout", ("--timeout",), "Seconds a pattern may take (10).", float, metavar="SECONDS"),
        Option("scope", ("--scope",), "current_project, all, or project names with commas between.",
               default="current_project", metavar="SCOPE"),
        Option("project", ("--project",), "This project instead of the current one.", complete="project"),
        Option("session", ("--session",), "Records of this session, or of sessions that begin so; by number."),
        Option("tags", ("--tags",), "Only with this tag, case ignored; repeat it to require several.", multiple=True,
               complete="tag"),
        Option("since", ("--since",), "From this time on: 2026-03-01, an ISO instant, 7d, 2w, 12h, yesterday. Local "
               "time without an offset.", metavar="TIME"),
        Option("until", ("--until",), "Up to this time; a date includes its day.", metavar="TIME"),
        Option("source", ("--source",), "Only records logged by hand, or by an agent.", choices=asked.SOURCES),
        Option("agent", ("--agent",), "Only of this agent, exactly."),
        Option("model", ("--model",), "Only of this model, exactly."),
        Option("model_effort", ("--model-effort",), "Only of this model effort, exactly."),
        Option("tier", ("--tier",), "Only in this tier; repeatable.", choices=asked.TIERS, multiple=True),
        Option("sort", ("--sort",), "ts (default), relevance, or any scalar field.", metavar="FIELD"),
        Option("order", ("--order",), "desc (default: newest first) or asc.", choices=("asc", "desc")),
        Option("limit", ("--limit",), "At most so many records; the page size with --page (50).", int),
        Option("page", ("--page",), "Print a page: the records and the cursor for the next page.", bool, False),
        Option("cursor", ("--cursor",), "The page after this cursor, with the options of the first.", metavar="TOKEN"),
        Option("total", ("--count",), "Add the total of all matches to the page.", bool, False),
        Option("format", ("--format",), "How to print the records.", default="json", choices=FORMATS),
        Option("ids_only", ("--ids-only",), "Only id, project and title.", bool, False),
        Option("fields", ("--fields",), "Only these fields, such as title,ts,next_steps.", metavar="A,B"),
        Option("snippet", ("--snippet",), "Add the best matching passage, matches between « and »; without --fields a "
               "hit is then told by id, ts, project, agent, title, tier.", bool, False),
        Option("max_tokens", ("--max-tokens",), "Stop before so many tokens are printed (characters divided by four).",
               int, metavar="N"),
        Option("view", ("--view",), "redacted_public leaves out what may not be shared.", default=VIEWS[0],
               choices=VIEWS),
        Option("explain", ("--explain",), "Say on standard error how the records were found.", bool, False),
    ),
    run,
    json_formats=("json", "jsonl"),
)  # fmt: skip
