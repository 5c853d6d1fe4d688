"""Time of the redaction engine: 8 KB of notes, hostile texts of 200 KB, and 1,000 remembered values.

python3 scripts/bench/engine.py

The floors: 8 ms for 8 KB of notes; 1 s for any text of 200 KB; importing the package and redacting nothing costs at
most what an empty program costs; 1,000 remembered values make redacting at most 1.2 times as long. Quiet machine only.
"""

from __future__ import annotations

import json
import random
import statistics
import string
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from qiju.redaction import Engine, Remembered
from qiju.redaction.fingerprint import fingerprints
from qiju.redaction.marker import subkey
from qiju.redaction.rules import RULE_SETS, builtin_rules, rules_dir

RND = random.Random(1)
PHRASE = "the index rebuild took longer than expected because a lock was held by another process and tests pass now"
WORDS = PHRASE.split(" ")
LARGE = 200_000
UNITS = (
    "--token=~key=~secret:~?secret=~id:a,pw:~password is ~token,key\n~a@a.~eyJa.~sk-~xoxb-1-~a~1-~=~\\~[REDACTED~"
    "://a:b~mnemonic abc ~\u5bc6\u7801~\x1b[~curl -u ~kind: Secret\n"
)
HOSTILE = UNITS.split("~")


def note(size: int) -> str:
    """Prose and code with one secret to about eight paragraphs, as records have them."""
    secrets = ["".join(p) for n in RULE_SETS for e in _examples(n) for p in e["must_match"]]
    out: list[str] = []
    total = 0
    while total < size:
        line = (
            " ".join(RND.choice(WORDS) for _ in range(24))
            + f" at {RND.randint(0, 9999)}, see src/mod{RND.randint(0, 99)}.py"
        )
        if len(out) % 8 == 7:
            line += " " + RND.choice(secrets)
        out.append(line)
        total += len(line) + 2
    return "\n\n".join(out)[:size]


def _examples(name: str) -> list[dict[str, list[list[str]]]]:
    found: dict[str, dict[str, list[list[str]]]] = json.loads(
        (rules_dir() / "examples" / f"{name}.json").read_text("utf-8")
    )
    return list(found.values())


def median_ms(work: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


def process_ms(code: str) -> float:
    return median_ms(lambda: subprocess.run([sys.executable, "-I", "-c", code], check=True), 9)


def main() -> None:
    engine = Engine(b"b" * 32)
    text = note(8 * 1024)
    engine.redact_text(text)
    print(f"8 KB of notes: {median_ms(lambda: engine.redact_text(text), 15):.1f} ms")

    slowest = ("", 0.0)
    keywords = [k for rule in builtin_rules() for k in rule.keywords]
    texts = [(unit * (LARGE // len(unit) + 1))[:LARGE] for unit in HOSTILE if unit]
    texts += ["".join(RND.choice(keywords) for _ in range(LARGE // 6))[:LARGE]]
    texts += [
        "".join(RND.choice(string.printable) for _ in range(LARGE)),
        "".join(RND.choice("abcdef0123456789") for _ in range(LARGE)),
    ]
    for hostile in texts:
        start = time.perf_counter()
        engine.redact_text(hostile)
        slowest = max(slowest, (hostile[:16], time.perf_counter() - start), key=lambda pair: pair[1])
    print(f"slowest of {len(texts)} texts of 200 KB: {slowest[1]:.2f} s ({slowest[0]!r})")

    key = subkey(b"b" * 32, "fingerprint")
    stored = [
        entry
        for i in range(1000)
        for entry in fingerprints(key, f"customer-{i:04d}" if i % 4 else f"Maria van {i} Dongen")
    ]
    recalling = Engine(b"b" * 32, remembered=Remembered(key, stored))
    notes = [note(2048) for _ in range(60)]
    plain, with_memory = [], []
    for _ in range(5):
        plain.append(median_ms(lambda: [engine.redact_text(n) for n in notes], 1))
        with_memory.append(median_ms(lambda: [recalling.redact_text(n) for n in notes], 1))
    ratio = statistics.median(with_memory) / statistics.median(plain)
    print(f"1,000 remembered values: {ratio:.2f} times the time without")

    root = str(Path(__file__).resolve().parent.parent.parent)
    empty = process_ms("pass")
    imported = process_ms(f"import sys; sys.path.insert(0, {root!r}); import qiju.redaction")
    used = process_ms(
        f"import sys; sys.path.insert(0, {root!r}); import qiju.redaction as r; r.redact_text('nothing here')"
    )
    print(f"python -c pass: {empty:.1f} ms")
    print(f"importing adds {imported - empty:.1f} ms, a first redaction {used - empty:.1f} ms")


if __name__ == "__main__":
    main()
