"""Small transcripts of the shapes that hosts write, built line by line, and their drafts as records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from qiju.jsontext import canonical, digest
from qiju.trajectory.types import TrajectoryDraft, TrajectoryRecord
from qiju.transcripts.atif_read import read_atif
from qiju.transcripts.claude import read_claude
from qiju.transcripts.codex import read_codex
from qiju.transcripts.report import ImportReport

READERS = {"claude": read_claude, "codex": read_codex, "atif": read_atif}


class Claude:
    """Lines of a Claude Code session, each the child of the one before."""

    def __init__(self, session: str = "session-1") -> None:
        self.session = session
        self.lines: list[Any] = []
        self.parent: str | None = None
        self.count = 0

    def line(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.count += 1
        uuid = fields.pop("uuid", f"u{self.count}")
        entry = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.parent,
            "isSidechain": False,
            "sessionId": self.session,
            "timestamp": f"2026-01-02T03:04:{self.count % 60:02d}.000Z",
            "version": "2.1.0",
            **fields,
        }
        self.parent = uuid
        self.lines.append(entry)
        return entry

    def user(self, content: Any, **fields: Any) -> None:
        self.line("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, message: str, *blocks: Any, usage: Any = None, **fields: Any) -> None:
        inner: dict[str, Any] = {"id": message, "role": "assistant", "model": "model-1", "content": list(blocks)}
        if usage is not None:
            inner["usage"] = usage
        self.line("assistant", message=inner, **fields)

    def call(self, message: str, call_id: str, name: str = "Bash", **arguments: Any) -> None:
        self.assistant(message, {"type": "tool_use", "id": call_id, "name": name, "input": arguments})

    def result(self, call_id: str, output: Any, *, is_error: bool | None = None, **fields: Any) -> None:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": output}
        if is_error is not None:
            block["is_error"] = is_error
        self.user([block], **fields)


class Codex:
    """Lines of a Codex rollout."""

    def __init__(self, session: str = "thread-1") -> None:
        self.lines: list[Any] = []
        self.add("session_meta", {"id": session, "cwd": "/repo", "cli_version": "0.9"})

    def add(self, frame: str, payload: dict[str, Any]) -> None:
        stamp = f"2026-01-02T03:{len(self.lines) // 60:02d}:{len(self.lines) % 60:02d}Z"
        self.lines.append({"timestamp": stamp, "type": frame, "payload": payload})

    def item(self, kind: str, **fields: Any) -> None:
        self.add("response_item", {"type": kind, **fields})

    def event(self, kind: str, **fields: Any) -> None:
        self.add("event_msg", {"type": kind, **fields})

    def said(self, role: str, text: str, **fields: Any) -> None:
        part = "input_text" if role == "user" else "output_text"
        self.item("message", role=role, content=[{"type": part, "text": text}], **fields)


@pytest.fixture
def claude() -> Claude:
    return Claude()


@pytest.fixture
def codex() -> Codex:
    return Codex()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write lines (text as it is, anything else as JSON) to a file; `tail` follows without a newline."""

    def written(lines: Iterable[Any], name: str = "session.jsonl", tail: str = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("".join(f"{text}\n" for text in texts) + tail, encoding="utf-8", newline="\n")
        return path

    return written


@pytest.fixture
def read() -> Callable[..., tuple[list[TrajectoryDraft], ImportReport]]:
    def taken(path: Path, host: str = "claude", **options: Any) -> tuple[list[TrajectoryDraft], ImportReport]:
        report = ImportReport(host)
        return list(READERS[host](path, report, **options)), report

    return taken


@pytest.fixture
def stored() -> Callable[[Iterable[TrajectoryDraft]], list[TrajectoryRecord]]:
    """Drafts as the records that a store would make of them."""

    def made(drafts: Iterable[TrajectoryDraft]) -> list[TrajectoryRecord]:
        return [
            TrajectoryRecord(
                number,
                draft.record_id or f"record-{number}",
                draft.session_id,
                draft.run_id,
                draft.work_item_id,
                draft.kind,
                draft.ts,
                draft.payload,
                digest(canonical(draft.payload)),
            )
            for number, draft in enumerate(drafts, 1)
        ]

    return made
