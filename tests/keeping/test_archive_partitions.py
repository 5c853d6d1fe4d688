"""Month partitions: safe names, atomic replacement, and hands off whatever is not provably ours."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju import archive
from qiju.errors import QijuError, Refused
from qiju.keeping import partitions


def row(seq: int, title: str = "t") -> archive.Row:
    head = (seq, seq, "archive", f"s:{seq}", "demo", "2025-01-02T00:00:00Z", 1_735_776_000_000_000, "codex", "manual")
    return archive.Row(*head, "", "", title, "[]", "[]", "[]", "b", "[]", 2, "{}", f"{seq:064x}")


def put(home: Path, *titles: str, store_id: str = "store") -> partitions.Manifest:
    rows = [row(n, title) for n, title in enumerate(titles, start=1)]
    prepared = partitions.prepare(home, store_id, "demo", "2025-01", lambda: rows)
    assert partitions.publish(prepared)
    return prepared.manifest


def files(home: Path) -> list[str]:
    return sorted(path.name for path in partitions.folder_of(home, "demo", "2025-01").iterdir())


def test_a_partition_is_one_file_and_its_manifest(tmp_path: Path) -> None:
    manifest = put(tmp_path, "a", "b")
    folder = tmp_path / "archive" / "project=demo" / "month=2025-01"
    assert files(tmp_path) == sorted([manifest.file, "manifest.json"])
    assert (manifest.rows, manifest.rev) == (2, 2)
    assert manifest.digest == partitions.rows_digest([row(1).digest, row(2).digest])
    assert partitions.load(folder) == manifest
    assert partitions.sound(folder, manifest) == ""
    assert [r.title for r in archive.read(folder / manifest.file)] == ["a", "b"]
    assert partitions.foreign(tmp_path, "store") == []


def test_a_rewrite_replaces_the_old_file(tmp_path: Path) -> None:
    old, new = put(tmp_path, "secret"), put(tmp_path, "[gone]")
    assert old.file != new.file
    assert files(tmp_path) == sorted([new.file, "manifest.json"])


def test_a_prepared_file_that_was_swept_away_is_told(tmp_path: Path) -> None:
    old = put(tmp_path, "a")
    prepared = partitions.prepare(tmp_path, "store", "demo", "2025-01", lambda: [row(1, "b")])
    partitions.sweep(prepared.folder, keep=old.file)
    assert not partitions.publish(prepared)
    assert partitions.load(prepared.folder) == old


def test_a_rewrite_that_fails_leaves_the_old_partition_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = put(tmp_path, "a")
    before = files(tmp_path)

    def differs(path: Path, rows: object) -> int:
        raise Refused("read back differently")

    monkeypatch.setattr(archive, "compare", differs)
    with pytest.raises(Refused):
        put(tmp_path, "b")
    assert files(tmp_path) == before
    assert partitions.sound(partitions.folder_of(tmp_path, "demo", "2025-01"), old) == ""


@pytest.mark.parametrize("cut_at", ["manifest", "sweep"])
def test_a_run_killed_at_any_step_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_at: str
) -> None:
    put(tmp_path, "a")

    def killed(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(partitions, "FileReplacement" if cut_at == "manifest" else "sweep", killed)
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path, "b")
    assert len(files(tmp_path)) == 3
    reasons = [found.reason for found in partitions.foreign(tmp_path, "store")]
    assert reasons == ["a leftover of an interrupted run; the next maintain removes it"]
    new = put(tmp_path, "b")
    assert files(tmp_path) == sorted([new.file, "manifest.json"])


def test_what_is_not_provably_ours_is_named_and_never_touched(tmp_path: Path) -> None:
    put(tmp_path, "a")
    folder = partitions.folder_of(tmp_path, "demo", "2025-01")
    strangers = {
        "entries.parquet": (b"\x93" * 500, "damaged: not readable as Parquet"),
        "empty.parquet": (b"", "an empty file"),
        "records-0123456789abcdef.parquet": (b"torn", "damaged: not readable as Parquet"),
        "notes.txt": (b"mine", "not a file of the archive"),
    }
    for name, (data, _) in strangers.items():
        (folder / name).write_bytes(data)
    found = {item.path.name: item.reason for item in partitions.foreign(tmp_path, "store")}
    assert found == {name: reason for name, (_, reason) in strangers.items()}
    put(tmp_path, "b")
    partitions.drop(folder)
    assert {name: (folder / name).read_bytes() for name in files(tmp_path)} == {
        name: data for name, (data, _) in strangers.items()
    }


def test_a_flipped_byte_is_found_by_the_manifest(tmp_path: Path) -> None:
    manifest = put(tmp_path, "a")
    path = partitions.folder_of(tmp_path, "demo", "2025-01") / manifest.file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "damaged" in partitions.sound(path.parent, manifest)
    assert [item.path for item in partitions.foreign(tmp_path, "store")] == [path]
    path.unlink()
    assert "missing" in partitions.sound(path.parent, manifest)


def test_another_stores_partition_is_named(tmp_path: Path) -> None:
    put(tmp_path, "a", store_id="other")
    assert [item.reason for item in partitions.foreign(tmp_path, "store")] == ["belongs to another store"]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 9}', '{"format": 1, "file": "../../etc"}'])
def test_a_manifest_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(QijuError, match=r"manifest\.json"):
        partitions.load(tmp_path)


def test_an_emptied_partition_goes_with_its_folders(tmp_path: Path) -> None:
    put(tmp_path, "a")
    partitions.drop(partitions.folder_of(tmp_path, "demo", "2025-01"))
    assert list((tmp_path / "archive").iterdir()) == []


HARD = ["a/b", "a=b", "a%2fb", "a b", "100%", "x..y", "..", ".", "con", "NUL", "Demo", "demo", "a:b", "x.", "项目", "é"]


def test_hard_project_names_become_different_plain_folder_names() -> None:
    got = [partitions.name_for(name) for name in HARD]
    assert len({unicodedata.normalize("NFC", name).casefold() for name in got}) == len(HARD)
    assert partitions.name_for("my-project_2.0") == "my-project_2.0"
    assert partitions.name_for("项目") == "项目"


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_any_project_name_is_one_safe_folder_name(left: str, right: str) -> None:
    name = partitions.name_for(left)
    assert not set(name) & set('/\\:*?"<>|= \0')
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert len(name.encode()) <= 200
    if left != right and right.isprintable():
        assert unicodedata.normalize("NFC", name).casefold() != partitions.name_for(right).casefold()
