"""The configuration reference says what the code does."""

from __future__ import annotations

from pathlib import Path

from qiju.place import SESSION_VARIABLES, slugify
from qiju.place.config import SETTINGS, Config, load_config

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")


def table(name: str) -> list[list[str]]:
    """The rows of the table after the comment that begins with `name`, cells without code marks."""
    lines = PAGE.split(f"<!-- {name}:")[1].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows[2:]


def test_every_slug_of_the_page_is_the_slug_of_its_name() -> None:
    rows = table("slugs")
    assert len(rows) > 5
    for name, slug in rows:
        assert slugify(name) == slug


def test_the_page_lists_every_setting_with_its_default_and_meaning() -> None:
    config = Config()
    shown = []
    for key, setting in SETTINGS.items():
        part, _, name = key.rpartition(".")
        default = getattr(getattr(config, part) if part else config, name)
        if isinstance(default, bool):
            written = "true" if default else "false"
        else:
            written = f"{default:g}" if isinstance(default, float) else ""
        shown.append([key, written, setting.meaning])
    assert table("settings") == shown


def test_the_example_is_a_configuration_without_faults(tmp_path: Path) -> None:
    example = PAGE.split("```toml\n")[1].split("```")[0]
    (tmp_path / "config.toml").write_text(example, encoding="utf-8")
    config = load_config(tmp_path)
    assert config.warnings == ()
    assert config.lock_wait == 10.0
    assert config.redaction.rules[0]["id"] == "acme-token"


def test_the_page_names_the_session_variables_in_order() -> None:
    places = [PAGE.index(f"`{name}`", PAGE.index("## The session")) for name in SESSION_VARIABLES]
    assert places == sorted(places)
