"""The marker: written whole, read strictly, and friendly to what it does not know."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from qiju.errors import BadConfiguration, Refused, StorageFailed
from qiju.place import Marker, is_uuid, marker_path, new_uuid, read_marker, write_marker

UUID = "0b1c2d3e-4f50-4a61-8b72-9c83ad94be05"


def put(root: Path, text: str | bytes) -> Path:
    path = marker_path(root)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def test_a_root_without_a_marker_has_none(tmp_path: Path) -> None:
    assert read_marker(tmp_path) is None
    (tmp_path / ".qiju").touch()
    assert read_marker(tmp_path) is None


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    marker = Marker("日本", UUID, ("claude", "codex"), "codex", {"lock_wait": 5})
    assert write_marker(tmp_path, marker) == marker
    assert read_marker(tmp_path) == marker._replace(extra={})
    text = marker_path(tmp_path).read_text(encoding="utf-8")
    assert "日本" in text
    assert text.endswith("}\n")
    assert [path.name for path in marker_path(tmp_path).parent.iterdir()] == ["config.json"]


def test_a_new_marker_gets_a_uuid_and_a_slug(tmp_path: Path) -> None:
    written = write_marker(tmp_path, Marker("My Project"))
    assert written.uuid is not None
    assert is_uuid(written.uuid)
    assert written.project.startswith("my-project-")
    assert read_marker(tmp_path) == written._replace(extra={}, settings={})


def test_the_predecessor_s_marker_is_read_and_gets_a_uuid_when_written(tmp_path: Path) -> None:
    old = {
        "schema_version": 1,
        "project": "foo_bar",
        "qiju_home": "/somewhere",
        "enabled_agents": ["codex"],
        "default_agent": "codex",
        "created_at": "2026-01-01T00:00:00+00:00",
    }
    put(tmp_path, json.dumps(old))
    marker = read_marker(tmp_path)
    assert marker is not None
    assert (marker.project, marker.uuid, marker.default_agent, marker.schema_version) == ("foo_bar", None, "codex", 1)
    written = write_marker(tmp_path, marker)
    again = json.loads(marker_path(tmp_path).read_text(encoding="utf-8"))
    assert again == old | {"schema_version": 2, "uuid": written.uuid}


def test_unknown_keys_and_a_later_version_survive(tmp_path: Path) -> None:
    put(tmp_path, json.dumps({"schema_version": 9, "project": "p", "uuid": UUID.upper(), "later": {"a": [1, None]}}))
    marker = read_marker(tmp_path)
    assert marker is not None
    assert marker.uuid == UUID
    write_marker(tmp_path, marker._replace(enabled_agents=("kiro",)))
    again = json.loads(marker_path(tmp_path).read_text(encoding="utf-8"))
    assert again["schema_version"] == 9
    assert again["later"] == {"a": [1, None]}
    assert again["enabled_agents"] == ["kiro"]


def test_a_byte_order_mark_is_no_damage(tmp_path: Path) -> None:
    put(tmp_path, b"\xef\xbb\xbf" + b'{"project": "p"}')
    marker = read_marker(tmp_path)
    assert marker is not None
    assert marker.project == "p"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("<<<<<<< HEAD\n{}", "line 1 column 1"),
        ('{"project": "p"', "line 1 column"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{}", "project"),
        ('{"project": ""}', "project"),
        ('{"project": 7}', "project"),
        ('{"project": "p", "project": "q"}', "twice"),
        ('{"project": "p", "uuid": "nope"}', "uuid"),
        ('{"project": "p", "uuid": 5}', "uuid"),
        ('{"project": "p", "enabled_agents": "codex"}', "enabled_agents"),
        ('{"project": "p", "default_agent": []}', "default_agent"),
        ('{"project": "p", "settings": []}', "settings"),
        ('{"project": "p", "schema_version": "2"}', "schema_version"),
        ('{"project": "p", "schema_version": true}', "schema_version"),
        ('{"project": "p", "x": NaN}', "NaN"),
        ('{"project": "p", "x": ' + "[" * 100_000, "deep"),
        ('{"project": "\\ud800"}', "line 1"),
        (b'{"project": "\xff"}', "UTF-8"),
        (b" " * (1024 * 1024 + 1), "too large"),
    ],
)
def test_a_damaged_marker_is_an_error_that_names_the_file(tmp_path: Path, text: str | bytes, says: str) -> None:
    path = put(tmp_path, text)
    with pytest.raises(BadConfiguration, match=says) as caught:
        read_marker(tmp_path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / ".qiju").symlink_to(target)
    with pytest.raises(Refused, match="symbolic link"):
        write_marker(root, Marker("p"))
    assert list(target.iterdir()) == []
    (root / ".qiju").unlink()
    (root / ".qiju").mkdir()
    outside = tmp_path / "outside"
    outside.write_text("kept", encoding="utf-8")
    marker_path(root).symlink_to(outside)
    with pytest.raises(Refused, match="symbolic link"):
        write_marker(root, Marker("p"))
    assert outside.read_text(encoding="utf-8") == "kept"


def test_a_root_that_is_gone_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="gone"):
        write_marker(tmp_path / "gone", Marker("p"))


def test_fresh_uuids_are_uuids_of_version_4_and_differ() -> None:
    fresh = {new_uuid() for _ in range(50)}
    assert len(fresh) == 50
    assert all(is_uuid(text) and text[14] == "4" and text[19] in "89ab" for text in fresh)


@pytest.mark.parametrize("text", ["", UUID[:-1], UUID + "0", UUID.replace("-", "x", 1), "-" * 36, "g" + UUID[1:]])
def test_other_text_is_no_uuid(text: str) -> None:
    assert not is_uuid(text)
