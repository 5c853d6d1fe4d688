"""Check ATIF exports with the format's published models, in an environment of their own.

python3 scripts/check_atif.py            # exports made from small built-in transcripts
python3 scripts/check_atif.py FILE...    # these documents

The package `atif` brings pydantic with it, which Qiju itself must never import; so it goes into a temporary environment
that is removed afterwards. Exit code 1 names the documents that do not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "atif>=1.8,<1.9"
CHECK = """
import json, sys
from atif import Trajectory
bad = 0
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        document = json.load(file)
    try:
        steps = Trajectory.model_validate(document).steps
    except ValueError as error:
        bad += 1
        print(f"{name}: {error}")
    else:
        print(f"{name}: {document['schema_version']}, {len(steps)} steps, holds")
sys.exit(bool(bad))
"""


def samples(folder: Path) -> list[Path]:
    """ATIF documents of sessions with every oddity: parallel, orphaned and repeated results, subagents, steering."""

    def line(kind: str, **fields: object) -> str:
        number = len(lines) + 1
        stamp = f"2026-01-02T03:04:{number:02d}Z"
        return json.dumps({"type": kind, "uuid": f"u{number}", "sessionId": "claude-1", "timestamp": stamp, **fields})

    def call(name: str) -> dict[str, object]:
        return {"type": "tool_use", "id": name, "name": "Task", "input": {"prompt": "x"}}

    def result(name: str) -> dict[str, object]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "y"}]}

    lines: list[str] = []
    spent = {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 1}
    lines.append(line("user", message={"role": "user", "content": "go"}, version="2.1"))
    blocks = [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}, call("t1"), call("t2")]
    lines.append(line("assistant", message={"id": "m1", "model": "x", "content": blocks, "usage": spent}))
    for name in ("t2", "t1", "t1", "t9"):
        lines.append(line("user", message=result(name), toolUseResult={"agentId": "a1"}))
    lines.append(line("user", message={"role": "user", "content": "inside"}, isSidechain=True, agentId="a1"))
    lines.append(line("attachment", attachment={"type": "queued_command", "prompt": "wait"}))
    lines.append(line("assistant", message={"id": "m2", "content": [call("t1")]}))
    lines.append('{"type": "user", "mess')
    (folder / "claude.jsonl").write_text("\n".join(lines), encoding="utf-8")
    items = [
        ("session_meta", {"id": "codex-1", "cli_version": "0.9"}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
        ("response_item", {"type": "function_call", "id": "f1", "call_id": "c1", "name": "f", "arguments": "[1"}),
        ("response_item", {"type": "function_call_output", "call_id": "f1", "output": "x"}),
        ("event_msg", {"type": "token_count", "info": {"total_token_usage": {}, "last_token_usage": {}}}),
    ]
    rollout = [json.dumps({"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": item}) for kind, item in items]
    (folder / "codex.jsonl").write_text("\n".join(rollout), encoding="utf-8")
    env = {**os.environ, "QIJU_HOME": str(folder / "home")}
    made = []
    for host in ("claude", "codex"):
        qiju("trajectory", "import", "--host", host, str(folder / f"{host}.jsonl"), env=env)
        for view in ("raw_private", "redacted_public", "metadata_only"):
            target = folder / f"{host}.{view}.json"
            words = ("--session", f"{host}-1", "--view", view, "--output", str(target))
            qiju("trajectory", "export", "--format", "atif", *words, env=env)
            made.append(target)
    return made


def qiju(*words: str, env: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "qiju", *words], cwd=ROOT, env=env, check=True, capture_output=True)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = [Path(word).resolve() for word in sys.argv[1:]] or samples(folder)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True)
        return subprocess.run([python, "-c", CHECK, *map(str, documents)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
