"""Whatever a model sends as arguments, the server answers with a result or a refusal it can read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import HALVES, JSON, TEXTS
from within import Within

pytest.importorskip("mcp")
pytest.importorskip("jsonschema")

from qiju.mcp import server
from qiju.mcp.answers import Answers
from qiju.mcp.tools import TOOLS, Tool


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema of these tools takes, hostile ones first."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(fitting(schema["items"]), max_size=4)
    if schema["type"] == "integer":
        return st.sampled_from([1.0, 5.0, 0, 100, 2**31, 2**63 - 1, 2**63, 2**64, 10**30]) | st.integers()
    return {"string": HALVES, "boolean": st.booleans()}[schema["type"]]


def arguments(tool: Tool) -> st.SearchStrategy[dict[str, Any]]:
    known = {name: fitting(schema) for name, schema in tool.takes["properties"].items()}
    needed = {name: known.pop(name) for name in tool.takes.get("required", ())}
    return st.fixed_dictionaries(needed, optional=known) | st.dictionaries(
        st.sampled_from(sorted(tool.takes["properties"])) | TEXTS, JSON, max_size=3
    )


CALLS = st.sampled_from(TOOLS).flatmap(lambda tool: st.tuples(st.just(tool.name), arguments(tool)))


def called(within: Within, name: str, given: dict[str, Any]) -> Any:
    result = server._called(Answers(within.place.home), name, given)
    assert len(result.content) == 1
    result.model_dump_json()  # what goes over the wire
    return result


@settings(max_examples=150)
@given(call=CALLS)
def test_any_arguments_are_answered_or_refused(within: Within, call: tuple[str, dict[str, Any]]) -> None:
    result = called(within, *call)
    if result.is_error:
        assert set(result.structured_content["error"]) == {"kind", "message", "hint", "retryable", "exit_code"}


MANY = [f"t{number}" for number in range(50_000)]


@pytest.mark.parametrize(
    ("name", "given", "refused"),
    [
        ("search_records", {"tags": MANY}, True),
        ("search_records", {"scope": ",".join(MANY)}, True),
        ("search_records", {"query": " ".join(MANY)}, True),
        ("search_records", {"tier": ["short"] * len(MANY)}, True),
        ("search_records", {"query": "(" * 5_000, "regex": True}, True),
        ("search_records", {"query": "x" * 1_000_000}, True),
        ("get_record", {"id": "s1:1", "fields": MANY[:2_000]}, False),
        ("read_page", {"kinds": ["message"] * 5_000}, False),
        ("read_page", {"after": 10**30}, True),
        ("search_records", {"limit": 1.0}, False),
        ("read_page", {"limit": 1.0, "after": 1.0, "max_tokens": 5.0}, False),
        ("search_records", {"query": "\ud800"}, True),
        ("search_records", {"\ud800": 1}, True),
    ],
    ids=lambda value: str(value)[:30].encode("ascii", "replace").decode(),
)
def test_too_much_is_a_usage_error_and_never_sqlites_limit(
    within: Within, name: str, given: dict[str, Any], refused: bool
) -> None:
    result = called(within, name, given)
    assert result.is_error is refused
    if refused:
        assert result.structured_content["error"]["kind"] == "usage"
