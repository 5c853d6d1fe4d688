"""Memory of importing, showing and drafting a large transcript, against a small one.

python3 scripts/bench/transcripts.py [MEGABYTES]   # 200 when not given; about 1.5 s per MB

The claim is a ratio: the large session may need no more than 1.5 times the memory of one of 2 MB.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SMALL = 2
MOST = 1.5
MEASURE = """
import resource, sys
from qiju.cli import frame
code = frame.run(sys.argv[1:])
sys.stdout.flush()
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def transcript(path: Path, megabytes: int) -> None:
    """A Claude Code session of about that size: an answer, a call and a result, over and over."""
    made = random.Random(1)
    words = [f"word{number}" for number in range(2000)]

    def said(count: int) -> str:
        return " ".join(made.choice(words) for _ in range(count))

    size = number = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while size < megabytes * 1_000_000:
            number += 1
            usage = {"input_tokens": 10, "cache_read_input_tokens": 1000, "output_tokens": 20}
            blocks = [{"type": "text", "text": said(60)}]
            calls = [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": said(10)}}]
            results = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": said(300)}]
            answer = {"id": f"m{number}", "role": "assistant", "model": "model", "usage": usage}
            lines = [
                {"type": "assistant", "message": {**answer, "content": blocks}},
                {"type": "assistant", "message": {**answer, "content": calls}},
                {"type": "user", "message": {"role": "user", "content": results}},
            ]
            if number % 20 == 1:
                lines.insert(0, {"type": "user", "message": {"role": "user", "content": said(40)}})
            for part, line in enumerate(lines):
                line |= {"sessionId": f"s{megabytes}", "uuid": f"u{number}.{part}"}
                line["timestamp"] = f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
                size += file.write(json.dumps(line) + "\n")


def peak(home: Path, *words: str) -> int:
    """Peak memory of one call, in KB (on macOS in bytes: only the ratio counts)."""
    env = {**os.environ, "QIJU_HOME": str(home), "QIJU_PROJECT_ROOT": str(home.parent)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
    )
    code, memory = done.stderr.split()[-2:]
    if int(code):
        sys.exit(done.stderr.decode())
    return int(memory)


def main() -> int:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures: dict[str, dict[int, int]] = {}
        for size in (SMALL, megabytes):
            home = folder / f"home{size}"
            path = folder / f"{size}.jsonl"
            transcript(path, size)
            figures.setdefault("import", {})[size] = peak(home, "trajectory", "import", "--host", "claude", str(path))
            figures.setdefault("show", {})[size] = peak(home, "trajectory", "show", f"s{size}")
            page = str(folder / "page.html")
            figures.setdefault("page", {})[size] = peak(home, "trajectory", "show", f"s{size}", "--html", page)
            figures.setdefault("draft", {})[size] = peak(home, "trajectory", "draft", f"s{size}")
    bad = 0
    for what, found in figures.items():
        ratio = found[megabytes] / found[SMALL]
        bad += ratio > MOST
        print(f"{what:8} {SMALL} MB: {found[SMALL]:>8}  {megabytes} MB: {found[megabytes]:>8}  ratio {ratio:.2f}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
