"""The project's own virtual environment, `.venv` at the top of the checkout: made when missing, brought up to date."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv"


def program(name: str) -> Path:
    """A program inside the environment."""
    return FOLDER / ("Scripts" if os.name == "nt" else "bin") / (f"{name}.exe" if os.name == "nt" else name)


def prepare(*groups: str) -> None:
    """Make the environment and install Qiju into it, with these dependency groups of `pyproject.toml`."""
    if sys.version_info < (3, 11):  # noqa: UP036 - said before pip would say it less clearly
        sys.exit("Qiju needs Python 3.11 or newer")
    if not program("python").exists():
        print(f"making {FOLDER.relative_to(ROOT)} with {sys.executable}", flush=True)
        venv.create(FOLDER, with_pip=True)
    pip = [str(program("python")), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--upgrade", "pip>=25.1"])  # dependency groups came with 25.1
    run([*pip, "--editable", ".", *(word for group in groups for word in ("--group", group))])


def run(words: list[str], **more: object) -> None:
    """Run a command at the top of the checkout; stop with its exit code when it fails."""
    done = subprocess.run(words, cwd=ROOT, check=False, **more)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(done.returncode)
