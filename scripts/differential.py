"""Ask the predecessor and Qiju the same questions over the same records, and list every answer that differs.

    python scripts/differential.py PATH/TO/predecessor/bin/qiju [--qiju PATH/TO/qiju] [--queries 300] [--seed 1]

The records are made up, written as the predecessor's files (long tiers, one short tier), and taken over with
`qiju migrate --from-qiju`; so this tests migration and search at once. Every flag of the predecessor's `search` is
drawn, alone and together. Not drawn, because the answers differ on purpose: a date as `--until` (it includes its day
now), times with different offsets (ordered by instant, not by text), prefixes of sessions (they match now), `--session`
with an order (which counts now), letters whose case folding is more than lower case, `--limit 0` (a mistake in the call
now), `--ids-only` with `--fields`, and the columns of a table of `--ids-only`. Ties under `--sort` are compared as
sets: the predecessor's order among them was that of its files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORDS = ["lease", "deadlock", "retry", "cache", "index", "migration", "cursor", "会话恢复", "令牌", "backpressure"]
WORDS += ["timeout", "schema", "release", "Größe", "café", "snapshot", "E7741", "core::retry", "a.b(c)", "100%"]
WORDS += ["under_score", "[x]", "C++", "don't", "λ-calculus", "пример"]
TAGS = ["auth", "Auth", "db", "perf", "两岸", "ui-kit", "x.y"]
PROJECTS = ["alpha", "beta", "gamma-3"]
SESSIONS = [f"{n:08x}-1111-4111-8111-111111111111" for n in range(1, 9)]
AGENTS, MODELS, EFFORTS = ["codex", "claude", "kiro"], ["gpt-5", "opus 4"], ["high", "low"]
FIELDS = ["id", "title", "ts", "project", "agent", "tags", "model", "next_steps", "nothing"]
PATTERNS = [r"dead\w+", "^lease", "retry$", r"E\d{4}", "(cache|index).*schema", "会话.", r"a\.b\(c\)", r"\bui-kit\b"]


def make_records(count: int, chance: random.Random) -> list[dict[str, Any]]:
    """Records in time order, each at a second of its own, all in UTC, so that text order is time order."""
    numbers = dict.fromkeys(SESSIONS, 0)
    records = []
    for position in range(count):
        session = chance.choice(SESSIONS)
        numbers[session] += 1
        minute, second = divmod(position, 60)
        record: dict[str, Any] = {
            "schema_version": 2,
            "id": f"{session}:{numbers[session]}",
            "ts": f"2026-0{1 + position * 6 // count}-{1 + minute % 28:02d}T{minute // 28 % 24:02d}:00:{second:02d}Z",
            "project": chance.choice(PROJECTS),
            "agent": chance.choice(AGENTS),
            "source": chance.choice(["manual", "agent"]),
            "title": " ".join(chance.choices(WORDS, k=chance.randint(1, 5))),
            "tags": chance.sample(TAGS, k=chance.randint(0, 3)),
            "search_terms": chance.sample(WORDS, k=chance.randint(0, 2)),
            "next_steps": [" ".join(chance.choices(WORDS, k=3)) for _ in range(chance.randint(0, 2))],
            "redactions": [],
            "body_md": "\n".join(" ".join(chance.choices(WORDS, k=6)) for _ in range(chance.randint(0, 4))),
        }
        if chance.random() < 0.5:
            record["model"] = chance.choice(MODELS)
        if chance.random() < 0.3:
            record["model_effort"] = chance.choice(EFFORTS)
        if chance.random() < 0.2:
            record["extra"] = {"n": position, "none": None, "list": [], "ratio": 1.5}
        records.append(record)
    # Equal texts of time would be told apart by file order alone.
    by_ts = {record["ts"]: record for record in records}
    return [by_ts[ts] for ts in sorted(by_ts)]


def write_predecessor(home: Path, root: Path, records: list[dict[str, Any]]) -> None:
    """The files the predecessor would have: every record in its long tier, the newest of one project in short, too."""
    (home / "long").mkdir(parents=True)
    (root / ".qiju").mkdir(parents=True)
    (root / ".qiju" / "config.json").write_text('{"schema_version": 1, "project": "alpha"}', encoding="utf-8")

    def lines(chosen: list[dict[str, Any]]) -> str:
        return "".join(
            json.dumps(one, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n" for one in chosen
        )

    for project in PROJECTS:
        own = [record for record in records if record["project"] == project]
        (home / "long" / f"{project}.jsonl").write_text(lines(own), encoding="utf-8", newline="\n")
        if project == "alpha":
            (root / ".qiju" / "short.jsonl").write_text(lines(own[-20:]), encoding="utf-8", newline="\n")


def draw(chance: random.Random, records: list[dict[str, Any]]) -> list[str]:
    """The options of one search."""
    some = chance.choice(records)
    query = " ".join(chance.choices([*WORDS, "absent", some["title"][:6], "DEADLOCK"], k=chance.randint(1, 3)))
    options: dict[str, list[str]] = {
        "scope": ["--scope", chance.choice(["all", "current_project", "beta", "alpha,gamma-3", "beta,alpha"])],
        "project": ["--project", chance.choice(PROJECTS)],
        "query": [f"--query={query}"],
        "regex": [f"--query={chance.choice(PATTERNS)}", "--regex"],
        "session": ["--session", chance.choice(SESSIONS)],
        "tags": [part for tag in chance.sample(TAGS, k=chance.randint(1, 2)) for part in ("--tags", tag)],
        "since": ["--since", some["ts"]],
        "until": ["--until", some["ts"]],
        "source": ["--source", chance.choice(["manual", "agent"])],
        "agent": ["--agent", chance.choice([*AGENTS, "nobody"])],
        "model": ["--model", chance.choice([*MODELS, "gpt"])],
        "effort": ["--model-effort", chance.choice(EFFORTS)],
        "sort": ["--sort", chance.choice(["ts", "title", "agent", "id", "source"])],
        "order": ["--order", chance.choice(["asc", "desc"])],
        "limit": ["--limit", str(chance.choice([1, 3, 50]))],
        "ids": ["--ids-only"],
        "fields": ["--fields", ",".join(chance.sample(FIELDS, k=chance.randint(1, 4)))],
    }
    chosen = chance.sample(list(options), k=chance.randint(1, 5))
    if "session" in chosen:
        chosen = [name for name in chosen if name not in ("sort", "order")]
    if "ids" in chosen and "fields" in chosen:
        chosen.remove("fields")
    if "query" in chosen and "regex" in chosen:
        chosen.remove("regex")
    words = [word for name in chosen for word in options[name]]
    if "scope" not in chosen and "project" not in chosen:
        words += ["--scope", "all"]
    forms = ["json", "json", "json", "jsonl", "summary", "actions", *([] if "ids" in chosen else ["table"])]
    return [*words, "--format", chance.choice(forms)]


def ask(program: str, home: Path, root: Path, words: list[str]) -> tuple[int, str]:
    env = {**os.environ, "QIJU_HOME": str(home), "QIJU_PROJECT_ROOT": str(root), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run([program, *words], capture_output=True, env=env, cwd=root, check=False)
    return done.returncode, done.stdout.decode("utf-8")


def comparable(words: list[str], text: str) -> Any:
    """An answer in the form in which two are compared."""
    form = words[words.index("--format") + 1]
    if form in ("json", "jsonl"):
        rows = json.loads(text) if form == "json" else [json.loads(line) for line in text.splitlines()]
    else:
        # Columns are as wide as they look now, not as many characters; what stands in them is the same.
        rows = [" ".join(line.replace("--", "").split()) for line in text.splitlines()]
    tied = "--sort" in words and words[words.index("--sort") + 1] not in ("ts", "id") and "--session" not in words
    if tied and "--limit" not in words:
        return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
    # Which of the tied records a limit cuts off is chance; actions of other records are other actions.
    if tied:
        return None if form == "actions" else len(rows)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("predecessor", help="the predecessor's program")
    parser.add_argument("--qiju", default=str(Path(sys.executable).with_name("qiju")), help="this project's program")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    records = make_records(given.records, chance)
    differing = answered = 0
    with tempfile.TemporaryDirectory() as folder:
        old_home, new_home, root = (Path(folder) / name for name in ("old", "new", "root"))
        write_predecessor(old_home, root, records)
        take_over = ["migrate", "--from-qiju", str(old_home), "--project-root", str(root)]
        code, text = ask(given.qiju, new_home, root, take_over)
        report = json.loads(text)
        if code != 0 or report["added"] != len(records):
            print(f"the take-over failed: exit {code}, {report}")
            return 1
        print(f"{len(records)} records taken over, {report['redactions']} redactions")
        for _ in range(given.queries):
            words = ["search", *draw(chance, records)]
            (old_code, old), (new_code, new) = (
                ask(given.predecessor, old_home, root, words),
                ask(given.qiju, new_home, root, words),
            )
            if old_code != 0 or new_code != 0:
                same = old_code == new_code
            else:
                same = comparable(words, old) == comparable(words, new)
                answered += bool(old.strip(" []\n"))
            if not same:
                differing += 1
                print(f"differs: {words[1:]} (exit {old_code}, {new_code})\n  old: {old[:300]!r}\n  new: {new[:300]!r}")
    print(f"{given.queries} questions, {answered} with an answer, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
