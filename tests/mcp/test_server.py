"""The MCP server, asked by the SDK's own client in memory, in both ways the protocol has of saying hello."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from program import SESSION, Place

pytest.importorskip("mcp")

import anyio
from jsonschema import validate
from mcp import Client, StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from qiju.mcp.answers import Answers
from qiju.mcp.server import definitions, server_for
from qiju.projects import Home

OTHER = "22222222-2222-4222-8222-222222222222"
TOKENS_OF_ALL_DEFINITIONS = 1200

Ask = Callable[..., Any]


def asker(place: Place, *, mode: str = "auto", **more: Any) -> Ask:
    """A function that calls one tool and gives its structured answer, or the error object when it is one."""
    more.setdefault("project", Home("demo"))
    server = server_for(Answers(place.home, **more))

    def ask(tool: str, **arguments: Any) -> Any:
        async def call() -> Any:
            async with Client(server, mode=mode) as client:
                return await client.call_tool(tool, arguments)

        result = anyio.run(call)
        assert json.loads(result.content[0].text).keys() == result.structured_content.keys()
        assert result.is_error == ("error" in result.structured_content)
        return result.structured_content["error"] if result.is_error else result.structured_content

    return ask


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a home but SQLite's own transient ones, which readers of a WAL database keep."""
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.name.endswith(("-wal", "-shm"))}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three records in one session of one project, one in another."""
    place = Place(tmp_path_factory.mktemp("template"))
    for number in range(1, 4):
        place.log(title=f"lease {number}", body_md="Workers renew their lease with jitter.", tags=["scheduler"])
    place.log(title="other lease", body_md="Elsewhere.", session=OTHER, project="other")
    return place.home


@pytest.fixture
def filled(place: Place, template: Path) -> Place:
    """A copy of that home."""
    shutil.copytree(template, place.home)
    return place


def test_the_four_definitions_stay_small() -> None:
    """They cost their reader context on every turn (characters divided by four)."""
    offered = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in definitions()]
    assert [tool["name"] for tool in offered] == ["search_records", "get_record", "list_sessions", "read_page"]
    assert len(json.dumps(offered, ensure_ascii=False)) / 4 <= TOKENS_OF_ALL_DEFINITIONS
    assert all(tool["annotations"]["readOnlyHint"] for tool in offered)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_records_are_found_and_read(filled: Place, mode: str) -> None:
    """The client checks every answer against the tool's output schema."""
    ask = asker(filled, mode=mode)
    found = ask("search_records", query="JITTER")
    assert [row["title"] for row in found["records"]] == ["lease 3", "lease 2", "lease 1"]
    assert found["view"] == "raw_private"
    assert "«jitter»" in found["records"][0]["snippet"]
    whole = ask("get_record", id=found["records"][0]["id"])
    assert whole["record"]["body_md"] == "Workers renew their lease with jitter."
    assert whole["tier"] == "short"
    some = ask("get_record", id=found["records"][0]["id"], fields=["title"])
    assert some["record"] == {"title": "lease 3"}


def test_answers_are_those_of_the_command_line(filled: Place) -> None:
    words = ["--scope", "all", "--query", "lease", "--match", "auto", "--sort", "relevance", "--format", "json"]
    printed = filled.ok("search", *words, "--snippet").json()
    ask = asker(filled, project=None)  # the command line is not called in a project of these records, either
    found = ask("search_records", query="lease", scope="all", match="auto", sort="relevance")
    for mine, theirs in zip(found["records"], printed, strict=True):
        assert {name: mine[name] for name in ("id", "title", "snippet")} == {
            name: theirs[name] for name in ("id", "title", "snippet")
        }


def test_scope_is_the_servers_project_unless_named(filled: Place) -> None:
    assert len(asker(filled)("search_records")["records"]) == 3
    assert len(asker(filled)("search_records", scope="all")["records"]) == 4
    assert len(asker(filled)("search_records", scope="other")["records"]) == 1
    nowhere = asker(filled, project=None)
    assert len(nowhere("search_records")["records"]) == 4
    assert nowhere("search_records", scope="current_project")["kind"] == "no_project"


def test_pages_keep_to_their_snapshot(filled: Place) -> None:
    ask = asker(filled)
    first = ask("search_records", query="lease", limit=2)
    filled.log(title="lease later", body_md="b")
    second = ask("search_records", query="lease", limit=2, cursor=first["next_cursor"])
    titles = [row["title"] for page in (first, second) for row in page["records"]]
    assert titles == ["lease 3", "lease 2", "lease 1"]
    assert second["next_cursor"] is None
    assert second["watermark"] == first["watermark"]


def test_a_cursor_used_with_another_query_is_a_typed_error(filled: Place) -> None:
    """The hint speaks of arguments: this client has no flags."""
    ask = asker(filled)
    token = ask("search_records", query="lease", limit=1)["next_cursor"]
    error = ask("search_records", query="other", limit=1, cursor=token)
    assert (error["kind"], error["exit_code"], error["retryable"]) == ("cursor_rejected", 4, False)
    assert "--" not in error["hint"]
    assert ask("list_sessions", cursor=token)["kind"] == "cursor_rejected"
    assert ask("read_page", cursor=token)["kind"] == "cursor_rejected"
    assert ask("search_records", cursor="q" + "A" * 200_000)["kind"] == "cursor_rejected"


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "word"),
    [
        ("search_records", {"limit": 0}, "usage", "limit"),
        ("search_records", {"limit": 101}, "usage", "limit"),
        ("search_records", {"querry": "x"}, "usage", "querry"),
        ("search_records", {"query": ["x"]}, "usage", "query"),
        ("search_records", {"since": "someday"}, "usage", "since"),
        ("search_records", {"query": "(", "regex": True}, "usage", "pattern"),
        ("search_records", {"query": "x", "regex": True, "sort": "relevance"}, "usage", "relevance"),
        ("get_record", {}, "usage", "id"),
        ("get_record", {"id": "nobody:1"}, "not_found", "nobody:1"),
        ("get_record", {"id": "11111111"}, "ambiguous_id", "11111111"),
        ("read_page", {"kinds": ["thought"]}, "usage", "kinds"),
        ("read_page", {"session": "x" * 5000, "after": -1}, "usage", "after"),
    ],
)
def test_mistakes_are_typed_and_name_the_argument(
    filled: Place, tool: str, arguments: dict[str, Any], kind: str, word: str
) -> None:
    error = asker(filled)(tool, **arguments)
    assert error["kind"] == kind
    assert word in error["message"]
    assert len(error["message"]) < 500


def test_an_error_fits_the_output_schema() -> None:
    """Some clients check the result of a failed call, too."""
    error = {"error": {"kind": "usage", "message": "m", "hint": "", "retryable": False, "exit_code": 2}}
    for tool in definitions():
        validate(error, tool.output_schema)


def test_an_unknown_tool_is_an_error_of_the_protocol(filled: Place) -> None:
    async def call() -> MCPError:
        async with Client(server_for(Answers(filled.home))) as client:
            with pytest.raises(MCPError) as raised:
                await client.call_tool("write_record", {})
        return raised.value

    assert "search_records" in str(anyio.run(call))


def test_sessions_are_listed_last_active_first_in_pages(filled: Place) -> None:
    ask = asker(filled)
    first = ask("list_sessions", limit=1)
    assert [(row["session_id"], row["project"], row["records"]) for row in first["sessions"]] == [(OTHER, "other", 1)]
    filled.log(title="lease 4")  # moves the other session up, but not in this snapshot
    second = ask("list_sessions", limit=1, cursor=first["next_cursor"])
    (row,) = second["sessions"]
    assert (row["session_id"], row["title"], row["records"], row["events"]) == (SESSION, "lease 3", 3, 3)
    assert second["next_cursor"] is None
    assert ask("list_sessions")["sessions"][0]["title"] == "lease 4"


def test_facts_are_public_unless_the_view_says_otherwise(filled: Place) -> None:
    filled.log(title="secret place", body_md="see /home/karla/plans.txt")
    assert "karla" not in json.dumps(asker(filled)("read_page", session=SESSION))
    raw = asker(filled, view="raw_private")("read_page", session=SESSION)
    assert raw["view"] == "raw_private"
    assert "karla" in json.dumps(raw)
    public = asker(filled, view="redacted_public")
    assert "karla" not in json.dumps([public("search_records", query="karla"), public("search_records")])
    (found, *_) = public("search_records", query="secret")["records"]
    record = public("get_record", id=found["id"])
    assert record["view"] == "redacted_public"
    assert "karla" not in json.dumps(record)


def test_fact_pages_stop_at_the_budget_and_lose_nothing(filled: Place) -> None:
    """A row larger than the budget comes alone, so that every page goes on."""
    filled.log(title="long", body_md="word " * 4000)
    ask = asker(filled, view="raw_private")
    for tokens in (1, 400, 100_000):
        seen, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            more = {} if cursor is None else {"cursor": cursor}
            page = ask("read_page", max_tokens=tokens, **more)
            seen += [row["sequence"] for row in page["records"]]
            cursor, pages = page["next_cursor"], pages + 1
        assert seen == [1, 2, 3, 4, 5]
        assert pages == {1: 5, 400: 3, 100_000: 1}[tokens]


def test_numbers_arrive_and_their_text_is_as_stored(place: Place) -> None:
    """JSON has numbers that no float holds: the structured answer says the nearest or the text, the text all of it."""
    body = '{"title": "n", "body_md": "b", "big": 12345678901234567890123, "huge": 1e400, "money": 1.50}'
    identity = place.ok("log", "--source", "agent", "--project", "demo", given=body).out.strip()
    server = server_for(Answers(place.home))

    async def call() -> Any:
        async with Client(server) as client:
            return await client.call_tool("get_record", {"id": identity})

    result = anyio.run(call)
    record = result.structured_content["record"]
    assert (record["huge"], record["money"]) == ("1e400", 1.5)
    assert record["big"] == pytest.approx(12345678901234567890123)
    for token in ("12345678901234567890123", "1e400", "1.50"):
        assert token in result.content[0].text


def test_redaction_outranks_a_list_of_sessions(filled: Place) -> None:
    """A cursor whose snapshot holds a record that changed since is refused."""
    ask = asker(filled)
    token = ask("list_sessions", limit=1)["next_cursor"]
    from qiju.store import Store

    with Store.open(filled.home) as store, store.db.write() as connection:
        connection.execute("UPDATE record SET title = 'x', digest = '' WHERE seq = 1")
    assert ask("list_sessions", limit=1, cursor=token)["kind"] == "cursor_rejected"


def test_nothing_is_written(filled: Place) -> None:
    before = tree(filled.home)
    ask = asker(filled)
    for tool, arguments in (
        ("search_records", {"query": "lease"}),
        ("get_record", {"id": f"{SESSION}:1"}),
        ("list_sessions", {}),
        ("read_page", {}),
    ):
        assert "view" in ask(tool, **arguments)
    assert tree(filled.home) == before


def test_without_a_store_everything_is_empty_and_nothing_is_made(place: Place) -> None:
    ask = asker(place)
    assert ask("search_records")["records"] == []
    assert ask("list_sessions")["sessions"] == []
    assert ask("read_page")["records"] == []
    assert ask("get_record", id="a:1")["kind"] == "not_found"
    assert not place.home.exists()


def test_many_calls_at_once(filled: Place) -> None:
    """Calls run in threads, each with a connection of its own; a pattern in a thread keeps its time limit, too."""
    server = server_for(Answers(filled.home, project=Home("demo")))
    answers: list[Any] = []

    async def call() -> None:
        async with Client(server) as client, anyio.create_task_group() as group:

            async def one(number: int) -> None:
                arguments = {"query": "l.ase", "regex": True} if number % 2 else {"query": "lease"}
                answers.append(await client.call_tool("search_records", arguments))

            for number in range(12):
                group.start_soon(one, number)

    anyio.run(call)
    assert [len(answer.structured_content["records"]) for answer in answers] == [3] * 12


def test_the_command_serves_over_standard_input_and_output(filled: Place) -> None:
    """The real process, as a host starts it."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "qiju", "mcp", "--project", "other"],
        env={**filled.env},
        cwd=filled.project,
    )

    async def ask(call: Callable[[Client], Awaitable[Any]]) -> Any:
        with open(os.devnull, "w", encoding="utf-8") as quiet:
            async with Client(stdio_client(server, errlog=quiet)) as client:
                return await call(client)

    found = anyio.run(ask, lambda client: client.call_tool("search_records", {}))
    assert [row["title"] for row in found.structured_content["records"]] == ["other lease"]


def test_the_command_ends_with_its_client(place: Place) -> None:
    done = place.run("mcp", given="")
    assert (done.code, done.out) == (0, "")
    assert not place.home.exists()


def test_without_the_sdk_the_command_says_how_to_install_it(place: Place) -> None:
    watch = "import sys; sys.modules['mcp'] = None; from qiju.cli.frame import run; sys.exit(run(['mcp']))"
    done = subprocess.run(
        [sys.executable, "-c", watch], cwd=place.project, env=place.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'qiju[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr
