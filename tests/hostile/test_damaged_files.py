"""Every file that Qiju reads, bent in every way a disk, an editor or an attacker can: read, or refused by name.

The files are made by Qiju itself; a mutation cuts, flips, repeats or replaces pieces of them, some by JSON that is
valid and still not what the reader expects. Reading must end in a documented answer, must not change what was only to
be read, and must leave the store whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import JSON, TEXTS
from program import Place
from within import Within

PIECES = st.sampled_from(
    [b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"\r", b"\r\n\r\n", b'"', b"{", b"[" * 3_000, b"]", b",",
     b"\\",
     b"\\ud800", b"1e999", b"9" * 5_000, b"NaN", b"-", b"null", b"{}", b"[]", b'{"a":1,"a":1}', b"\x1b[31m", b"../../x"]
) | st.binary(max_size=12)  # fmt: skip
CUTS = st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES)
WHOLE = st.one_of(
    JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.dictionaries(TEXTS, JSON, max_size=3).map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
)


def bent(data: bytes, cuts: list[tuple[float, int, bytes]]) -> bytes:
    """`data` with some stretches replaced; a place is given as a share of the length."""
    for share, length, piece in cuts:
        at = int(share * len(data))
        data = data[:at] + piece + data[at + length :]
    return data


def deepest(data: bytes, value: bytes) -> bytes:
    """A JSON document with one value, somewhere in the middle, replaced by another."""
    at = data.find(b":", len(data) // 2)
    end = min((data.find(mark, at) for mark in (b",", b"}") if data.find(mark, at) > 0), default=-1)
    return data if at < 0 or end < 0 else data[: at + 1] + value + data[end:]


BENDINGS: st.SearchStrategy[Callable[[bytes], bytes]] = st.one_of(
    st.lists(CUTS, min_size=1, max_size=3).map(lambda cuts: lambda data: bent(data, cuts)),
    WHOLE.map(lambda whole: lambda _data: whole),
    WHOLE.map(lambda whole: lambda data: deepest(data, whole)),
    st.floats(0, 1).map(lambda share: lambda data: data[: int(share * len(data))]),
    st.just(lambda data: data * 2),
)

# Name of a file below the place, and the calls that read it. `FILE` stands for its path.
READERS: dict[str, list[list[str]]] = {
    "out/records.jsonl": [["import", "--keep-going", "FILE"], ["import", "FILE"]],
    "out/one.parquet": [["import", "--keep-going", "FILE"]],
    "out/set": [["import", "--keep-going", "FILE"]],
    "out/journal": [["trajectory", "import", "--format", "journal", "FILE"], ["trajectory", "verify", "FILE"]],
    "out/trajectory.json": [["trajectory", "reimport", "FILE"]],
    "out/claude.jsonl": [["trajectory", "import", "--host", "claude", "FILE"], ["trajectory", "import", "FILE"]],
    "out/codex.jsonl": [["trajectory", "import", "--host", "codex", "FILE"]],
    "out/atif.json": [["trajectory", "import", "--format", "atif", "FILE"]],
    "out/run/manifest.json": [["trajectory", "import", "--format", "run-folder", "FOLDER"]],
    "out/run/events.jsonl": [["trajectory", "import", "--format", "run-folder", "FOLDER"]],
    "out/run/steps.jsonl": [["trajectory", "import", "--format", "run-folder", "FOLDER"]],
    "out/copy.db": [["restore", "FILE", "--dry-run"], ["import", "FILE"]],
    "out/copy.db.json": [["backup", "--list"]],
    "old/long/demo.jsonl": [["migrate", "--from-qiju", "OLD", "--dry-run"], ["migrate", "--from-qiju", "OLD"]],
    "old/redaction_log.jsonl": [["migrate", "--from-qiju", "OLD"]],
    "old/registry.d/a.json": [["migrate", "--from-qiju", "OLD"]],
    "store/config.toml": [["search"], ["log", "--source=manual", "--project=demo"], ["doctor"]],
    "store/spool/00000000000000000001-1-00000000.json": [["log", "--source=manual", "--project=demo"], ["doctor"]],
    "store/store.key": [["search", "--page"], ["doctor"]],
    "proj/.qiju/config.json": [["search"], ["temp-entry"], ["init", "--dry-run"], ["update"], ["doctor"]],
    "proj/.claude/settings.local.json": [
        ["init", "--host=claude", "--hooks", "--dry-run"], ["doctor"], ["uninstall", "--dry-run"]
    ],
    "proj/.git/HEAD": [["search"], ["init", "--dry-run"]],
    "proj/.git/info/exclude": [["init", "--dry-run"]],
}  # fmt: skip


def old_record(number: int) -> str:
    return json.dumps({"schema_version": 2, "id": f"o:{number}", "ts": "2026-01-01T00:00:00Z", "project": "demo",
                       "agent": "a", "source": "manual", "title": "old", "tags": [], "search_terms": [],
                       "next_steps": [], "redactions": [], "body_md": "b"})  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place in which every kind of file is as Qiju, a host or the predecessor writes it."""
    from qiju.trajectory import JournalTrajectoryStore, RecordKind, TrajectoryDraft

    place = Place(tmp_path_factory.mktemp("whole") / "own")
    within = Within(place)
    out = place.folder / "out"
    (out / "run").mkdir(parents=True)
    for number in range(3):
        within.ok("log", "--source=manual", "--project=demo", given=json.dumps({"title": f"t{number}", "body_md": "b"}))
    within.ok("init", "--host=claude", "--hooks", "--project=demo")
    within.ok("export", "--view=raw_private", f"--output={out / 'records.jsonl'}")
    within.ok("export", "--view=raw_private", "--format=parquet", f"--output={out / 'one.parquet'}")
    within.ok("export", "--view=raw_private", "--format=parquet", f"--output={out / 'set'}")
    within.ok("trajectory", "export", "--view=raw_private", f"--output={out / 'trajectory.json'}")
    within.ok("backup", str(out / "copy.db"))
    with JournalTrajectoryStore(out / "journal") as journal:
        journal.append_many(
            TrajectoryDraft("s", RecordKind.MESSAGE, {"role": "user", "content": f"m{number}"}) for number in range(4)
        )
    message = {"role": "user", "content": "x"}
    claude = [{"type": "user", "uuid": f"u{number}", "sessionId": "s", "message": message} for number in range(3)]
    codex = [
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "x"}},
    ]
    atif = {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"},
            "steps": [{"step_id": 1, "source": "user", "message": "hi"}]}  # fmt: skip
    texts = {
        out / "claude.jsonl": "".join(json.dumps(line) + "\n" for line in claude),
        out / "codex.jsonl": "".join(json.dumps(line) + "\n" for line in codex),
        out / "atif.json": json.dumps(atif),
        out / "run" / "manifest.json": json.dumps({"run_id": "r", "task": "x"}),
        out / "run" / "events.jsonl": json.dumps({"type": "e", "ts": "2026-01-01T00:00:00Z"}) + "\n",
        out / "run" / "steps.jsonl": json.dumps({"step": 1, "action": {"name": "n", "args": {}}}) + "\n",
        place.folder / "old" / "long" / "demo.jsonl": old_record(1) + "\n" + old_record(2) + "\n",
        place.folder / "old" / "redaction_log.jsonl": json.dumps({"value": "x", "reason": "y"}) + "\n",
        place.folder / "old" / "registry.d" / "a.json": json.dumps({"project": "demo", "path": str(place.project)}),
        place.home / "config.toml": '[search]\ntimeout = 5.0\n[maintain]\nshort_days = 14\n',
        place.home / "spool" / "00000000000000000001-1-00000000.json": "{}",
        place.project / ".git" / "info" / "exclude": "# own\n",
    }  # fmt: skip
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return place


def bend_and_read(whole: Place, folder: Path, name: str, bend: Callable[[bytes], bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole.folder, folder, symlinks=True)
    place = Place.__new__(Place)
    place.__dict__.update(whole.__dict__, folder=folder, user=folder / "user", home=folder / "store")
    place.project = folder / "proj"
    place.env = {**whole.env, "HOME": str(place.user), "USERPROFILE": str(place.user), "QIJU_HOME": str(place.home)}
    target = folder / name
    if target.is_dir():
        target = sorted(path for path in target.rglob("*") if path.is_file())[0]
    target.write_bytes(bend(target.read_bytes()) if target.exists() else bend(b"{}"))
    content = target.read_bytes()
    places = {"FILE": str(folder / name), "FOLDER": str((folder / name).parent), "OLD": str(folder / "old")}
    within = Within(place)
    for words in READERS[name]:
        within.run(*(places.get(word, word) for word in words), given=b'{"title": "t", "body_md": "b"}')
        if name.startswith(("out/", "old/")):
            assert target.read_bytes() == content, "what was only to be read was changed"
    target.unlink()
    if name != "store/store.key":
        assert within.run("verify", "--quick").code == 0


@settings(max_examples=60)
@given(name=st.sampled_from(sorted(READERS)), bend=BENDINGS)
def test_a_bent_file_is_read_or_refused(
    whole: Place, tmp_path: Path, name: str, bend: Callable[[bytes], bytes]
) -> None:
    bend_and_read(whole, tmp_path / "own", name, bend)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(name=st.sampled_from(sorted(READERS)), bend=BENDINGS)
def test_a_bent_file_is_read_or_refused_for_long(
    whole: Place, tmp_path: Path, name: str, bend: Callable[[bytes], bytes]
) -> None:
    bend_and_read(whole, tmp_path / "own", name, bend)


@pytest.mark.parametrize("name", sorted(READERS))
def test_an_unbent_file_is_what_the_readers_expect(whole: Place, tmp_path: Path, name: str) -> None:
    """The fixture holds good files: otherwise bending them would prove nothing."""
    assert (whole.folder / name).exists()
    bend_and_read(whole, tmp_path / "own", name, lambda data: data)
