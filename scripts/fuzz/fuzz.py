"""Coverage-guided fuzzing of what reads text from outside, with atheris. Run on demand, on Linux:

    pip install --group fuzz
    python scripts/fuzz/fuzz.py TARGET [-max_total_time=60] [libFuzzer options] [CORPUS]

Each target gives bytes to one reader and lets only its documented error pass; whatever else it raises is a finding, and
libFuzzer writes the input to a file. `python scripts/fuzz/fuzz.py` lists the targets. Nothing here touches a store but
those below a temporary folder.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["qiju"]):
    from qiju import cursor, jsontext, query, record, spool
    from qiju.errors import QijuError
    from qiju.legacy.lines import read_values
    from qiju.place.marker import read_marker
    from qiju.place.slug import slugify
    from qiju.redaction.engine import Engine
    from qiju.search import trigrams, watch
    from qiju.trajectory import JournalTrajectoryStore
    from qiju.trajectory.exchange import ExchangeLog
    from qiju.transcripts.claude import read_claude
    from qiju.transcripts.codex import read_codex
    from qiju.transcripts.report import ImportReport

FOLDER = Path(tempfile.mkdtemp(prefix="qiju-fuzz-"))
ENGINE = Engine(b"k" * 32)
KEY = b"k" * 32


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def on_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """A target that reads a file with the given bytes."""
    path = FOLDER / name

    def target(data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        read(path)

    return target


def a_record(data: bytes) -> None:
    value = jsontext.parse(data)
    assert jsontext.parse(jsontext.canonical(value)) == value
    assert jsontext.parse(jsontext.pretty(value)) == value
    whole = record.Record.from_json(value)
    assert record.Record.from_json(jsontext.parse(whole.canonical())) == whole


def a_pattern(data: bytes) -> None:
    text = text_of(data[:200])
    watch.compiled(text)
    trigrams.pattern(watch.source(text), watch.FLAGS)


def a_redaction(data: bytes) -> None:
    done = ENGINE.redact_text(text_of(data))
    assert ENGINE.redact_text(done.text).text == done.text


def a_slug(data: bytes) -> None:
    slug = slugify(text_of(data))
    assert slugify(slug) == slug


def a_journal(path: Path) -> None:
    for leftover in path.parent.glob(f"{path.name}?*"):
        leftover.unlink()
    with JournalTrajectoryStore(path, read_only=True) as journal:
        for one in journal.sessions():
            journal.read_session(one.session_id)


TARGETS: dict[str, Callable[[bytes], object]] = {
    "record": a_record,
    "time": lambda data: (query.since(text_of(data)), query.until(text_of(data))),
    "pattern": a_pattern,
    "cursor": lambda data: cursor.decode(text_of(data), "search", KEY),
    "redaction": a_redaction,
    "slug": a_slug,
    "exchange": lambda data: ExchangeLog.from_dict(jsontext.parse(data)),  # type: ignore[arg-type]
    "journal": on_file("journal", a_journal),
    "spool": on_file("entry.json", spool.load),
    "marker": on_file(".qiju/config.json", lambda path: read_marker(path.parents[1])),
    "lines": on_file("old.jsonl", lambda path: list(read_values(path))),
    "claude": on_file("claude.jsonl", lambda path: list(read_claude(path, ImportReport("claude")))),
    "codex": on_file("codex.jsonl", lambda path: list(read_codex(path, ImportReport("codex")))),
}


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        print(f"usage: fuzz.py TARGET [libFuzzer options]; targets: {', '.join(TARGETS)}")
        return 2
    read = TARGETS[sys.argv.pop(1)]

    def one(data: bytes) -> None:
        try:
            read(data)
        except QijuError as error:
            str(error).encode("utf-8")  # a refusal is a sentence that can be printed

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
