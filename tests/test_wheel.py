"""What users install: the wheel carries the SQL and the skills, and does the main job on its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from program import Place

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the project's own backend."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build as b; print(b.build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", build], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_carries_everything_that_is_not_python(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("schema", "qiju"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_dir() or path.suffix in (".pyc", ".py") or "__pycache__" in path.parts:
                continue
            inside = path.relative_to(ROOT).as_posix()
            assert (f"qiju/{inside}" if folder == "schema" else inside) in names


def test_the_main_job_runs_from_the_installed_wheel(wheel: Path, place: Place) -> None:
    """Unpacked into a folder of its own, far from the checkout; only dependencies come from outside."""
    site = place.folder / "site"
    zipfile.ZipFile(wheel).extractall(site)
    outside = sysconfig.get_paths()["purelib"]
    env = {**place.env, "PYTHONPATH": os.pathsep.join([str(site), outside])}

    def run(*words: str, given: str = "") -> str:
        # -S and -I would lose PYTHONPATH; -P keeps the working folder off the path.
        done = subprocess.run(
            [sys.executable, "-P", "-S", "-m", "qiju", *words],
            input=given, cwd=place.project, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = subprocess.run(
        [sys.executable, "-P", "-S", "-c", "import qiju; print(qiju.__file__)"],
        cwd=place.project, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(site)
    identity = run("log", "--source", "agent", "--project", "demo", given='{"title": "lease", "body_md": "b"}').strip()
    assert identity in run("search", "--scope", "all", "--query", "lease", "--format", "summary")
    assert '"title": "lease"' in run("show", identity)
