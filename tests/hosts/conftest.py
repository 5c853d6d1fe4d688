"""A scratch home, store and project for the tests of hosts and skills."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from qiju import hosts
from qiju.db import Database
from qiju.install import run
from qiju.install.run import Report
from qiju.install.skillfiles import Place


def tree(*folders: Path) -> dict[str, bytes | str]:
    """Every file below the folders with its bytes, every folder, every link with its target."""
    found: dict[str, bytes | str] = {}
    for top in folders:
        for folder, names, files in os.walk(top):
            for name in [*names, *files]:
                path = Path(folder) / name
                if path.is_symlink():
                    found[str(path)] = f"-> {path.readlink()}"
                else:
                    found[str(path)] = path.read_bytes() if path.is_file() else "folder"
    return found


def make_repository(root: Path) -> None:
    """As much of a Git repository as finding its top level needs."""
    for name in ("objects", "refs", "info"):
        (root / ".git" / name).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")


class Bench:
    """One user with a home, a store that lies outside of it, and one project in Git."""

    def __init__(self, top: Path) -> None:
        self.user_home = top / "user home"
        self.home = top / "store"
        self.root = top / "my project"
        self.env = {"HOME": str(self.user_home)}
        self.user_home.mkdir()
        self.root.mkdir()
        make_repository(self.root)
        self.db = Database.open(self.home / "qiju.db")

    @property
    def user(self) -> Place:
        return Place(None, self.env, self.user_home)

    @property
    def project(self) -> Place:
        return Place(self.root, self.env, self.user_home)

    def init(
        self,
        names: str = "all",
        *,
        where: Place | None = None,
        project: str | None = None,
        hooks: bool = False,
        dry_run: bool = False,
    ) -> Report:
        return run.init(
            self.db,
            where or self.project,
            hosts.parse(names),
            self.home,
            project=project,
            with_hooks=hooks,
            dry_run=dry_run,
        )

    def update(self, names: str = "all", *roots: Path, force: bool = False, dry_run: bool = False) -> Report:
        return run.update(self.db, self.user, hosts.parse(names), roots, force=force, dry_run=dry_run)

    def uninstall(
        self,
        names: str = "all",
        *,
        roots: list[Path] | None = None,
        user_level: bool = False,
        engine: tuple[Path, Path] | None = None,
        dry_run: bool = False,
    ) -> Report:
        return run.uninstall(
            self.db,
            self.user,
            hosts.parse(names),
            [self.root] if roots is None else roots,
            self.home,
            user_level=user_level,
            engine=engine,
            dry_run=dry_run,
        )

    def skill(self, host: str = "claude", name: str = "qiju-log", where: Place | None = None) -> Path:
        return (where or self.project).skills_folder(hosts.row(host)) / name / "SKILL.md"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path.resolve())
    yield made
    made.db.close()
