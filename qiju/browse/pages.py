"""Qiju's plugin for Datasette: what the pages show, and what the server refuses.

The child alone loads it. Refused are writes (every connection is `mode=ro` and `query_only`), every method but GET and
HEAD, and host names other than this machine's, so that no web page can read the store by pointing a name of its own at
127.0.0.1. Every answer carries headers that forbid foreign content and keep records out of the browser's cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from datasette import hookimpl
from datasette.utils.asgi import Response
from markupsafe import Markup

from qiju.browse import facets, rendering
from qiju.render import ago

DATABASE = "qiju"
OWN_NAMES = {"127.0.0.1", "localhost", "[::1]"}
_F = TypeVar("_F", bound=Callable[..., Any])
_LISTS = ("tags", "search_terms", "next_steps")

_PROJECTS = """
SELECT project AS slug, count(*) AS records, sum(next_steps <> '[]') AS open, max(instant) AS instant,
    sum(tier = 'short') AS recent
FROM record GROUP BY project ORDER BY max(instant) DESC
"""
_NEWEST = "SELECT seq, id, project, ts, instant, agent, title FROM record ORDER BY instant DESC, seq DESC LIMIT 8"
_NEIGHBOURS = """
SELECT
    (SELECT seq FROM record WHERE session_id = :s AND (number, seq) < (:n, :q) ORDER BY number DESC, seq DESC LIMIT 1),
    (SELECT seq FROM record WHERE session_id = :s AND (number, seq) > (:n, :q) ORDER BY number, seq LIMIT 1),
    (SELECT count(*) FROM record WHERE session_id = :s)
"""


def _hook(function: _F) -> _F:
    """Mark a function as one of Datasette's hooks; what it is called says which."""
    hookimpl(function)
    return function


class Watch:
    """Knows whether the file that is open is still the one at its path; ends the server when it is not."""

    def __init__(self) -> None:
        self.replaced = False
        self._path: Path | None = None
        self._file: tuple[int, int] | None = None
        self._stop: Callable[[], None] = lambda: None

    def begin(self, path: Path, stop: Callable[[], None]) -> None:
        self._path, self._stop = path, stop
        self._file = self._now()

    def _now(self) -> tuple[int, int] | None:
        assert self._path is not None
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return None
        return state.st_dev, state.st_ino

    def ended(self) -> bool:
        """Whether the store was replaced; stops the server then."""
        if self._path is not None and self._now() != self._file:
            self.replaced = True
            self._stop()
        return self.replaced


WATCH = Watch()


# --- what is refused -------------------------------------------------------------------------------------------------


@_hook
def prepare_connection(conn: Any, database: str) -> None:
    """Belt and braces beside `mode=ro`."""
    if database == DATABASE:
        conn.execute("PRAGMA query_only = ON")


@_hook
def asgi_wrapper(datasette: Any) -> Callable[[Any], Any]:
    """Look at each request before Datasette does, and put headers on each answer."""

    def wrap(app: Any) -> Any:
        async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            refusal = _refusal(scope)
            headers = [(name.encode(), value.encode()) for name, value in _headers(scope["path"])]

            async def send_more(event: dict[str, Any]) -> None:
                if event["type"] == "http.response.start":
                    ours = {name for name, _ in headers}
                    kept = [pair for pair in event.get("headers", []) if pair[0].lower() not in ours]
                    event = {**event, "headers": [*kept, *headers]}
                await send(event)

            if refusal is not None:
                await Response.text(refusal[1], status=refusal[0]).asgi_send(send_more)
            else:
                await app(scope, receive, send_more)

        return answer

    return wrap


def _refusal(scope: dict[str, Any]) -> tuple[int, str] | None:
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
    if re.sub(r":\d+$", "", host) not in OWN_NAMES:
        return 403, "Qiju is served to this machine only, as 127.0.0.1 or localhost."
    if scope["method"] not in ("GET", "HEAD"):
        return 405, "The store is served read-only."
    if WATCH.ended():
        return 503, "The store's file was replaced. Start 'qiju browse' again."
    return None


def _headers(path: str) -> list[tuple[str, str]]:
    own = path == "/" or re.fullmatch(rf"/{DATABASE}/record/\d+", path)  # our pages, which need no script at all
    script = "'none'" if own else "'self' 'unsafe-inline'"
    policy = f"default-src 'none'; style-src 'self' 'unsafe-inline'; script-src {script}; img-src 'self' data:; "
    policy += "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    return [
        ("content-security-policy", policy),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ]


# --- what is shown ---------------------------------------------------------------------------------------------------


@_hook
def extra_css_urls(datasette: Any) -> list[str]:
    """The style of the pages."""
    return [datasette.urls.path("/assets/qiju.css")]


@_hook
def register_facet_classes() -> list[Any]:
    """In place of Datasette's own, which `serve` takes out."""
    return facets.CLASSES


@_hook
def register_routes() -> list[tuple[str, Any]]:
    """`/id/<record id>` leads to the record, so that an id that `qiju search` prints can be looked up."""
    return [(r"^/id/(?P<id>.+)$", by_id)]


async def by_id(datasette: Any, request: Any) -> Any:
    """Redirect to a record by its id, or to the list of those that have it."""
    found = await datasette.get_database(DATABASE).execute(
        "SELECT seq FROM record WHERE id = ? ORDER BY project", [request.url_vars["id"]]
    )
    seqs = [row["seq"] for row in found.rows]
    table = datasette.urls.table(DATABASE, "record")
    if len(seqs) == 1:
        return Response.redirect(f"{table}/{seqs[0]}")
    from urllib.parse import quote_plus

    return Response.redirect(f"{table}?id__exact={quote_plus(request.url_vars['id'])}")


@_hook
def render_cell(row: Any, value: Any, column: str, table: str | None, database: str, datasette: Any) -> Any:
    """Titles lead to their record, tags and projects to their list; all other text is shown inert."""
    if database != DATABASE or not isinstance(value, str) or not value:
        return None
    names = row.keys()
    where = datasette.urls.table(DATABASE, "record")
    if column in ("title", "step", "id") and "seq" in names:
        return Markup('<a href="{}/{}">{}</a>').format(where, row["seq"], rendering.plain(value))
    if column in ("tag", "tags"):
        tags = _list(value) if column == "tags" else [value]
        if tags is not None:
            return Markup(" ").join(tag_link(where, tag) for tag in tags) or Markup("&nbsp;")
    if column == "session_id":
        return Markup('<a href="{}?session_id__exact={}&_sort=number">{}</a>').format(
            where, _quoted(value), rendering.plain(value)
        )
    limit = datasette.setting("truncate_cells_html")
    shown = value if len(value) <= limit else value[:limit] + "…"
    return rendering.plain(shown) if not shown.isprintable() else None


def tag_link(where: str, tag: str) -> Markup:
    """A tag that leads to the records that have it."""
    return Markup('<a class="tag" href="{}?_facet_array=tags&tags__arraycontains={}">{}</a>').format(
        where, _quoted(tag), rendering.plain(tag)
    )


@_hook
def extra_template_vars(template: str, table: str | None, request: Any, datasette: Any) -> Any:
    """What the start page and the record page show beyond Datasette's own."""

    async def more() -> dict[str, Any]:
        shown: dict[str, Any] = {"ago": _ago, "tag_link": tag_link, "plain": rendering.plain, "as_list": _list}
        database = datasette.get_database(DATABASE)
        if template == "index.html":
            shown["projects"] = (await database.execute(_PROJECTS)).rows
            shown["newest"] = (await database.execute(_NEWEST)).rows
            shown["total"] = sum(project["records"] for project in shown["projects"])
        elif template.startswith("row") and table == "record":
            shown.update(await _record(database, request.url_vars["pks"]))
        return shown

    return more


async def _record(database: Any, seq: str) -> dict[str, Any]:
    rows = (await database.execute("SELECT * FROM record WHERE seq = ?", [seq])).rows
    if not rows:
        return {}
    row = dict(rows[0])
    place = {"s": row["session_id"], "n": row["number"], "q": row["seq"]}
    before, after, session_size = (await database.execute(_NEIGHBOURS, place)).rows[0]
    extra = json.loads(row["extra"])
    return {
        "record": row,
        "lists": {name: _list(row[name]) or [] for name in _LISTS},
        "body": rendering.markdown(row["body_md"]),
        "redactions": json.loads(row["redactions"]),
        "extra": json.dumps(extra, indent=2, ensure_ascii=False) if extra else "",
        "before": before,
        "after": after,
        "session_size": session_size,
    }


def _list(text: str) -> list[str] | None:
    """A JSON array as texts; None when it is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return [str(item) for item in value] if isinstance(value, list) else None


def _ago(instant: int | None) -> str:
    return "" if instant is None else ago(instant, int(datetime.now(UTC).timestamp() * 1_000_000))


def _quoted(text: str) -> str:
    from urllib.parse import quote_plus

    return quote_plus(text)
