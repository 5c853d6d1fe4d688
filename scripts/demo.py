"""Set Qiju up and show its main job on real input: log a record, find it from another folder, read it, open the file.

    python3 scripts/demo.py

Everything happens in a temporary home and project; nothing of yours is touched.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import environment

RECORD = {
    "title": "Retry the lease renewal with jitter",
    "tags": ["scheduler", "decision"],
    "search_terms": ["lease", "thundering herd", "backoff"],
    "next_steps": ["load-test the scheduler with 200 workers"],
    "body_md": (
        "## Decision (accepted)\nWorkers renew their lease with full jitter.\n\n"
        "## Why\nAll workers woke in the same second after a failover (see `scheduler/lease.py`, `test_failover`).\n\n"
        "## Tried and dropped\nA fixed backoff of 2 s: the herd came back in step.\n\n"
        "The staging log showed the header `Authorization: Bearer " + "eyJhbGciOi" + "JIUzI1NiJ9.eyJzdWIiOiJkZW1vIn0."
        "c2lnbmF0dXJlLW9mLXRoZS1kZW1v`, by mistake."
    ),
}


def main() -> None:
    environment.prepare()
    qiju = str(environment.program("qiju"))
    with tempfile.TemporaryDirectory(prefix="qiju-demo-") as name:
        place = Path(name)
        home, project, elsewhere = place / "home", place / "orders-service", place / "elsewhere"
        for folder in (project, elsewhere):
            folder.mkdir()
        for part in ("objects", "refs"):  # enough to be the top of a Git repository, on a machine without Git, too
            (project / ".git" / part).mkdir(parents=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        env = {k: v for k, v in os.environ.items() if not k.startswith("QIJU_")}
        env.update(QIJU_HOME=str(home), NO_COLOR="1")

        def show(words: list[str], cwd: Path, given: str | None = None) -> str:
            said = shlex.join(["qiju" if word == qiju else word for word in words])
            print(f"\n{cwd.name}$ {said}{' < record.json' if given else ''}", flush=True)
            done = subprocess.run(
                words, cwd=cwd, env=env, input=given, text=True, capture_output=True, encoding="utf-8"
            )
            print(done.stdout + done.stderr, end="", flush=True)
            if done.returncode:
                sys.exit(f"that failed with exit code {done.returncode}")
            return done.stdout

        identity = show([qiju, "log", "--source", "agent", "--agent", "claude"], project, json.dumps(RECORD)).strip()
        show([qiju, "search", "--scope", "all", "--query", "jitter", "--format", "summary"], elsewhere)
        shown = show([qiju, "show", identity, "--format", "markdown"], elsewhere)
        if "[REDACTED:" not in shown:
            sys.exit("the token in the demo's record was not redacted")
        if shutil.which("sqlite3"):
            query = "SELECT id, title FROM recent; SELECT rowid FROM record_fts('lease')"
            show(["sqlite3", str(home / "qiju.db"), query], elsewhere)
        show([qiju, "verify"], elsewhere)
    print("\nThat was the main job. Next: qiju init (in a project of yours), and docs/tutorial.md")


if __name__ == "__main__":
    main()
