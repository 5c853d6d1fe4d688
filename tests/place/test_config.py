"""Settings: defaults, the file, the marker, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from qiju.errors import BadConfiguration
from qiju.jsontext import Number
from qiju.place import Marker, marker_path, read_marker, write_marker
from qiju.place.config import SETTINGS, Config, load_config


def configured(home: Path, text: str) -> Path:
    (home / "config.toml").write_text(text, encoding="utf-8")
    return home


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert config == Config()
    assert (config.lock_wait, config.maintain.short_days, config.maintain.staging_hours) == (30.0, 14.0, 24.0)
    assert load_config(tmp_path / "absent", Marker("p")) == Config()


def test_the_file_is_read_and_the_marker_outweighs_it(tmp_path: Path) -> None:
    home = configured(tmp_path, 'lock_wait = 5\nagent = "codex"\n[maintain]\nshort_days = 3\nstaging_hours = 1.5\n')
    config = load_config(home)
    assert (config.lock_wait, config.agent, config.maintain.short_days) == (5.0, "codex", 3.0)
    assert config.maintain.staging_hours == 1.5
    assert config.maintain.archive_days == 92.0
    marked = load_config(home, Marker("p", settings={"lock_wait": 0, "maintain": {"short_days": 7}}))
    assert (marked.lock_wait, marked.maintain.short_days, marked.agent) == (0.0, 7.0, "codex")
    assert marked.warnings == ()


def test_a_fraction_in_a_marker_is_a_number(tmp_path: Path) -> None:
    write_marker(tmp_path, Marker("p", settings={"lock_wait": Number("2.50"), "later": Number("1.0")}))
    config = load_config(tmp_path, read_marker(tmp_path))
    assert config.lock_wait == 2.5
    assert len(config.warnings) == 1
    assert "2.50" in marker_path(tmp_path).read_text(encoding="utf-8")
    with pytest.raises(BadConfiguration, match="lock_wait"):
        load_config(tmp_path, Marker("p", settings={"lock_wait": Number("1e999")}))


def test_rules_of_file_and_marker_add_up(tmp_path: Path) -> None:
    home = configured(tmp_path, '[[redaction.rules]]\nid = "a"\npattern = "x+"\n')
    marker = Marker("p", settings={"redaction": {"rules": [{"id": "b", "pattern": "y+"}]}})
    assert load_config(home, marker).redaction.rules == (
        {"id": "a", "pattern": "x+"},
        {"id": "b", "pattern": "y+"},
    )


def test_a_marker_cannot_exempt_anything_from_redaction(tmp_path: Path) -> None:
    home = configured(tmp_path, '[redaction]\nallow = ["fine"]\n')
    config = load_config(home, Marker("p", settings={"redaction": {"allow": ["anything"]}}))
    assert config.redaction.allow == ("fine",)
    assert len(config.warnings) == 1
    assert "redaction.allow" in config.warnings[0]


def test_an_unknown_key_is_warned_of_with_the_nearest_known_one(tmp_path: Path) -> None:
    config = load_config(configured(tmp_path, "lockwait = 5\nzzz = 1\n[maintain]\nshort_day = 3\n"))
    assert [warning.partition(": ")[2] for warning in config.warnings] == [
        "lockwait is not a setting; did you mean lock_wait?",
        "zzz is not a setting",
        "maintain.short_day is not a setting; did you mean maintain.short_days?",
    ]
    assert all(str(tmp_path / "config.toml") in warning for warning in config.warnings)
    assert config._replace(warnings=()) == Config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lock_wait = -1", "lock_wait"),
        ('lock_wait = "5"', "lock_wait"),
        ("lock_wait = true", "lock_wait"),
        ("lock_wait = inf", "lock_wait"),
        ("lock_wait = nan", "lock_wait"),
        ("lock_wait = 1" + "0" * 400, "lock_wait"),
        ("agent = ''", "agent"),
        ('agent = "a\\nb"', "agent"),
        ("maintain = 3", "maintain is not a table"),
        ("[search]\ntimeout = 0", "search.timeout"),
        ("[maintain]\nshort_days = []", "maintain.short_days"),
        ("[redaction]\nallow = 'x'", "redaction.allow"),
        ("[redaction]\nallow = [1]", "redaction.allow"),
        ("[redaction]\nrules = ['x']", "redaction.rules"),
        ("lock_wait = \n", "not TOML.*line 1"),
        ("a = 1\na = 2", "not TOML"),
        ("a = " + "[" * 50_000, "not TOML"),
    ],
)
def test_a_bad_value_is_refused_naming_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadConfiguration, match=says) as caught:
        load_config(configured(tmp_path, text))
    assert str(tmp_path / "config.toml") in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"agent = '\xff'")
    with pytest.raises(BadConfiguration, match="UTF-8"):
        load_config(tmp_path)
    (tmp_path / "config.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(BadConfiguration, match="too large"):
        load_config(tmp_path)


def test_a_bad_value_in_a_marker_names_the_marker(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=r"config\.json: maintain.short_days"):
        load_config(tmp_path, Marker("p", settings={"maintain": {"short_days": "x"}}), tmp_path)


def test_every_setting_lands_in_a_field_and_every_field_is_a_setting() -> None:
    tables = {"search": Config().search, "maintain": Config().maintain, "redaction": Config().redaction}
    fields = {name for name in Config._fields if name not in tables and name != "warnings"}
    for table, part in tables.items():
        fields |= {f"{table}.{name}" for name in type(part).__annotations__}
    assert fields == set(SETTINGS)
