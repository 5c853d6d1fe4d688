"""The source archive holds all that is needed to build, test, document and release from it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_sdist_is_complete_and_holds_nothing_else(tmp_path: Path) -> None:
    build = f"import hatchling.build as b; print(b.build_sdist({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", build], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("qiju", "schema", "tests", "docs", "scripts"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and not {"__pycache__", "_build"} & set(path.parts) and path.suffix != ".pyc":
                assert path.relative_to(ROOT).as_posix() in inside
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml"} <= inside
    assert "qiju/py.typed" in inside
    tops = {name.partition("/")[0] for name in inside if name}
    assert tops <= {
        "qiju", "schema", "tests", "docs", "scripts", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
        "SECURITY.md", "pyproject.toml", "tox.ini", "PKG-INFO", ".gitignore",
    }  # fmt: skip
    assert not any(name.endswith(".db") or "/.qiju/" in name for name in inside)
