"""Exports: the same bytes again for the raw view, losses declared for the rest, files whole or as they were."""

from __future__ import annotations

import dataclasses
import errno
import io
import os
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from qiju import jsontext
from qiju.errors import (
    BoundedReadUnsupported,
    CursorRejected,
    InvalidRecord,
    NotFound,
    Refused,
    StorageFailed,
    UsageError,
    VerificationFailed,
)
from qiju.projects import Home
from qiju.record import check
from qiju.trajectory import (
    CanonicalTrajectoryExporter,
    ExportCancelled,
    JournalTrajectoryStore,
    PrivacyView,
    RecordKind,
    StoreTrajectoryReader,
    TrajectoryDraft,
    TrajectoryQuery,
    events,
    read_artifact,
    read_page,
)
from qiju.trajectory.importing import reimport_into
from qiju.trajectory.record_export import export_records_as_trajectory

RAW = PrivacyView.RAW_PRIVATE
PUBLIC = PrivacyView.REDACTED_PUBLIC
QUERY = TrajectoryQuery()


@pytest.fixture
def exporter() -> CanonicalTrajectoryExporter:
    return CanonicalTrajectoryExporter()


@pytest.fixture
def reader(store, draft):
    store.append_many([draft(number) for number in range(1, 8)])
    store.append(
        TrajectoryDraft(
            "s1", RecordKind.EVENT, {"n": 2**70, "f": 1.25, "path": "/home/alicewong/x", "text": "é\U0001f600"}
        )
    )
    admitted = store.store.admit(
        check({"source": "agent", "title": "t", "own": [1]}), session_id="s1", session_source="x"
    )
    store.store.log(admitted, Home("demo", named=True))
    return StoreTrajectoryReader(store)


def digest(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def test_a_raw_export_reimports_exactly(exporter, reader):
    """Same records, same digests, and exporting them again gives the same bytes."""
    trajectory = reader.read_session("s1", view=RAW)
    artifact = exporter.export(trajectory, view=RAW)
    assert artifact.exact_reimport
    assert artifact.digest == digest(artifact.data)
    again = exporter.reimport(artifact)
    assert again == trajectory
    assert exporter.export(again, view=RAW).data == artifact.data
    assert read_artifact(artifact.data) == artifact


def test_a_public_export_declares_its_losses(exporter, reader):
    """It is no exact reimport, says what went, and reimports as the projection it is."""
    trajectory = reader.read_session("s1", view=RAW)
    artifact = exporter.export(trajectory)
    assert artifact.privacy_view is PUBLIC
    assert not artifact.exact_reimport
    assert not artifact.loss.lossless
    assert b"alicewong" not in artifact.data
    again = exporter.reimport(artifact)
    assert len(again.records) == len(trajectory.records)
    assert again.records != trajectory.records
    assert again.loss == artifact.loss


def test_a_lossy_trajectory_is_never_exact(exporter, reader):
    """Raw view or not: what was lost before the export counts."""
    public = reader.read_session("s1", view=PUBLIC)
    assert not exporter.export(public, view=RAW).exact_reimport


def test_the_default_view_is_public(exporter, reader, tmp_path):
    """Private data must be asked for by name."""
    assert exporter.export(reader.read_session("s1", view=RAW)).privacy_view is PUBLIC
    assert exporter.export_file(reader, QUERY, tmp_path / "x.json").privacy_view is PUBLIC
    assert read_page(reader, QUERY).records[0] == reader.read_session("s1").records[0]


def test_an_exported_file_is_canonical_and_says_where_it_is_from(exporter, reader, store, tmp_path):
    """Canonical JSON; provenance names version, store, snapshot, view, query and rules; the receipt its digest."""
    target = tmp_path / "out.json"
    receipt = exporter.export_file(reader, TrajectoryQuery(session_id="s1", limit=2), target, view=RAW)
    data = target.read_bytes()
    assert (receipt.digest, receipt.size_bytes, receipt.record_count) == (digest(data), len(data), 9)
    assert receipt.completed
    assert jsontext.canonical(jsontext.parse(data)).encode() == data
    provenance = read_artifact(data).provenance
    assert provenance["source_id"] == "store:" + store.store.db.setting("store_id")
    assert provenance["snapshot"]["watermark"] == 9
    assert {"qiju_version", "rules", "view", "query"} <= set(provenance)
    assert exporter.reimport(read_artifact(data)).records == reader.read_session("s1", view=RAW).records


def test_a_raw_file_comes_back_into_another_store(exporter, reader, tmp_path):
    """Same canonical bytes and digests; a second time nothing is added."""
    from qiju.trajectory import SqliteTrajectoryStore

    target = tmp_path / "out.json"
    exporter.export_file(reader, QUERY, target, view=RAW)
    artifact = read_artifact(target.read_bytes())
    trajectory = exporter.reimport(artifact)
    with SqliteTrajectoryStore.open(tmp_path / "other", writable=True) as other:
        report = reimport_into(other, trajectory)
        assert (report["added"], report["same_digest"]) == (9, 9)
        assert reimport_into(other, trajectory)["identical"] == 9
        assert StoreTrajectoryReader(other).read_session("s1", view=RAW).records == trajectory.records


@pytest.mark.parametrize("change", ["cut", "flip", "reformat", "count", "record", "order"])
def test_an_altered_export_is_refused(exporter, reader, change):
    """Whoever altered it, and however."""
    artifact = exporter.export(reader.read_session("s1", view=RAW), view=RAW)
    data = artifact.data
    document = jsontext.parse(data)
    if change == "cut":
        data = data[:-5]
    elif change == "flip":
        data = data.replace(b"text 3", b"TEXT 3")
    elif change == "reformat":
        data = jsontext.pretty(document).encode()
    else:
        if change == "count":
            document["records"].pop()
        elif change == "record":
            document["records"][0]["payload"]["content"] = "other"
        else:
            document["records"].reverse()
        data = jsontext.canonical(document).encode()
    with pytest.raises(VerificationFailed):
        exporter.reimport(dataclasses.replace(artifact, data=data))
    with pytest.raises((VerificationFailed, InvalidRecord)):
        exporter.reimport(dataclasses.replace(artifact, data=data, digest=digest(data)))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"exporter_id":"x"}', b"{" * 5000])
def test_what_is_no_export_is_refused(data):
    """A typed error for any bytes."""
    with pytest.raises(InvalidRecord):
        read_artifact(data)


def test_exporting_a_record_that_does_not_match_its_digest_fails(exporter, reader):
    """An export never blesses damage."""
    trajectory = reader.read_session("s1", view=RAW)
    bad = dataclasses.replace(trajectory.records[0], digest="0" * 64)
    with pytest.raises(VerificationFailed):
        exporter.export(dataclasses.replace(trajectory, records=(bad,)), view=RAW)


def staging(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name != "out.json"]


@pytest.fixture
def target(tmp_path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "out.json").write_text("old", encoding="utf-8")
    return folder / "out.json"


@pytest.mark.parametrize("form", ["callable", "event"])
def test_a_cancelled_export_leaves_the_old_file(exporter, reader, target, form):
    """And no staging file; a callable or anything with is_set() will do."""
    asked = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 3

    event = threading.Event()
    event.set()
    with pytest.raises(ExportCancelled):
        exporter.export_file(reader, QUERY, target, cancelled=cancelled if form == "callable" else event)
    assert target.read_text(encoding="utf-8") == "old"
    assert staging(target.parent) == []


def test_an_interrupted_export_leaves_the_old_file(exporter, reader, target):
    """Ctrl-C in the middle is as good as a cancellation."""

    def interrupted() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exporter.export_file(reader, QUERY, target, cancelled=interrupted)
    assert target.read_text(encoding="utf-8") == "old"
    assert staging(target.parent) == []


def test_cancelled_must_be_something_that_can_be_asked(exporter, reader, target):
    """A mistake in the call, found before anything is written."""
    with pytest.raises(UsageError):
        exporter.export_file(reader, QUERY, target, cancelled="yes")
    assert target.read_text(encoding="utf-8") == "old"


def test_a_change_inside_the_snapshot_leaves_the_old_file(exporter, reader, store, target):
    """Found by the check after the last record, before anything is replaced."""
    done = []

    def meddle() -> bool:
        if not done:
            done.append(1)
            with store.store.db.write():
                events.delete(store.store.db, [1])
        return False

    with pytest.raises(CursorRejected):
        exporter.export_file(reader, TrajectoryQuery(limit=1000), target, cancelled=meddle)
    assert target.read_text(encoding="utf-8") == "old"
    assert staging(target.parent) == []


def test_a_full_disk_leaves_the_old_file(exporter, reader, target, monkeypatch):
    """Whichever write is refused."""
    real = Path.open

    class Full(io.BytesIO):
        def write(self, data) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(
        Path, "open", lambda self, mode="r", *a, **k: Full() if mode == "wb" else real(self, mode, *a, **k)
    )
    with pytest.raises(StorageFailed, match="No space"):
        exporter.export_file(reader, QUERY, target)
    monkeypatch.undo()
    assert target.read_text(encoding="utf-8") == "old"
    assert staging(target.parent) == []


def test_a_disk_that_forgets_leaves_the_old_file(exporter, reader, target, monkeypatch):
    """What was staged is read back before it replaces anything."""
    from qiju.trajectory import exporter as module

    real = module._validate

    def corrupt(path: Path, receipt) -> None:
        path.write_bytes(path.read_bytes().replace(b"text", b"TEXT"))
        real(path, receipt)

    monkeypatch.setattr(module, "_validate", corrupt)
    with pytest.raises(VerificationFailed):
        exporter.export_file(reader, QUERY, target)
    assert target.read_text(encoding="utf-8") == "old"
    assert staging(target.parent) == []


@pytest.mark.skipif(os.name == "nt", reason="symlinks need a privilege on Windows")
def test_a_symlink_is_no_target(exporter, reader, target, tmp_path):
    """Neither is what it points to touched."""
    link = tmp_path / "link.json"
    link.symlink_to(target)
    with pytest.raises(Refused):
        exporter.export_file(reader, QUERY, link)
    assert target.read_text(encoding="utf-8") == "old"


def test_folders_and_the_sources_own_files_are_no_targets(exporter, reader, store, tmp_path, draft):
    """The store, its key and a journal are never overwritten by an export of themselves."""
    home = store.store.home
    for path in (tmp_path, home, home / "qiju.db", home / "qiju.db-wal", home / "store.key"):
        with pytest.raises(Refused):
            exporter.export_file(reader, QUERY, path)
    with pytest.raises(NotFound):
        exporter.export_file(reader, QUERY, tmp_path / "no" / "such" / "x")
    with JournalTrajectoryStore(tmp_path / "a.journal") as journal:
        journal.append(draft(1))
    with StoreTrajectoryReader.from_journal(tmp_path / "a.journal") as own, pytest.raises(Refused):
        exporter.export_file(own, QUERY, tmp_path / "a.journal")
    assert read_page(reader, QUERY, view=RAW).watermark == 9


def test_a_reader_without_pages_cannot_be_exported(exporter, target):
    """Its whole history is never read instead."""
    with pytest.raises(BoundedReadUnsupported):
        exporter.export_file(object(), QUERY, target)
    assert target.read_text(encoding="utf-8") == "old"


def test_what_another_readers_view_left_out_is_not_taken_for_nothing(exporter, reader, target):
    """A third party's public projection has unknown losses."""

    class Foreign:
        def read_page(self, query, cursor=None, *, view):
            return reader.read_page(query, cursor, view=view)

    receipt = exporter.export_file(Foreign(), TrajectoryQuery(limit=2), target)
    assert receipt.record_count == 9
    assert not receipt.loss.lossless
    assert not read_artifact(target.read_bytes()).exact_reimport


def test_an_export_of_chosen_records(exporter, reader, store):
    """What `qiju export --format trajectory` writes: records only, in sequence, under the view."""
    for number in range(3):
        admitted = store.store.admit(
            check({"source": "agent", "title": f"t{number}", "own": 1}), session_id="s2", session_source="x"
        )
        store.store.log(admitted, Home("demo", named=True))
    out = io.BytesIO()
    receipt = export_records_as_trajectory(store.store, [4, 2], out, view=RAW)
    artifact = read_artifact(out.getvalue())
    assert (receipt.digest, receipt.record_count) == (artifact.digest, 2)
    assert [record.payload["title"] for record in exporter.reimport(artifact).records] == ["t0", "t2"]
    assert artifact.exact_reimport
    public = io.BytesIO()
    assert not export_records_as_trajectory(store.store, [2], public).loss.lossless
    assert b'"own"' not in public.getvalue()


def test_two_views_of_one_record(exporter, store, tmp_path):
    """Nested private fields, text and metadata: nowhere in the public file, nor in its receipt or file names (E06)."""
    bearer = "Bea" + "rer abc.def"
    extra = {
        "cwd": "/home/dana/acme",
        "host": "lap-7",
        "cmd": f"curl -H 'Authorization: {bearer}'",
        "err": "open /home/dana/.netrc failed",
        "nested": [{"file": "/home/dana/k.pem"}],
    }
    fields = check({"source": "agent", "title": "call", "body_md": "dana@lap-7:/home/dana$ ls", "extra": extra})
    store.store.log(store.store.admit(fields, session_id="s1", session_source="x"), Home("demo", named=True))
    reader = StoreTrajectoryReader(store)
    public, private = tmp_path / "public" / "x.json", tmp_path / "private.json"
    public.parent.mkdir()
    receipt = exporter.export_file(reader, QUERY, public)
    exporter.export_file(reader, QUERY, private, view=RAW)
    shown = public.read_text(encoding="utf-8") + jsontext.canonical(receipt.to_dict())
    shown += "".join(path.name for path in public.parent.iterdir())
    for word in ("dana", "lap-7", "abc.def", "k.pem", "acme"):
        assert word not in shown
    assert "/home/dana/k.pem" in private.read_text(encoding="utf-8")
    assert [path.name for path in public.parent.iterdir()] == ["x.json"]
