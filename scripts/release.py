"""Make a release: check that everything says the same version, build, look inside, and try what was built.

    python3 scripts/release.py               # check, build, try
    python3 scripts/release.py --tag v1.2.3  # the same, and the tag must be this version
    python3 scripts/release.py --build       # build and try, without asking the changelog
    python3 scripts/release.py --try         # only try what lies in dist/

Nothing is published from here: the workflow does that for a tag, with PyPI's trusted publishing. Building needs the
dependency group `build` (`pip install --group build`); trying makes fresh environments of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SOURCES = ("qiju", "schema", "tests", "docs", "scripts")
LEFT_OUT = {"__pycache__", "_build"}


def stop(why: str) -> None:
    sys.exit(f"release: {why}")


def version() -> str:
    """The version that `qiju/__init__.py` and `pyproject.toml` agree on."""
    source = (ROOT / "qiju" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)"$', source, re.MULTILINE)
    if found is None:
        stop("qiju/__init__.py has no version such as 1.2.3")
    assert found is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if found[1] != project:
        stop(f"qiju/__init__.py says {found[1]}, pyproject.toml says {project}")
    return found[1]


def check(tag: str | None) -> None:
    """Version, tag and changelog agree, and the version is not the one released last."""
    now = version()
    if tag is not None and tag != f"v{now}":
        stop(f"the tag is {tag}, the version {now}")
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not sections or sections[0] != now:
        stop(f"the newest section of CHANGELOG.md is {sections[0] if sections else 'missing'}, not {now}")
    tags = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tag is None and f"v{now}" in tags.stdout.split():
        stop(f"v{now} has been tagged already: raise the version in qiju/__init__.py and pyproject.toml")


def build() -> None:
    """An sdist, and a wheel made from that sdist, so that the sdist is known to be complete."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built())], check=True)
    missing = sorted(expected() - inside_sdist())
    if missing:
        stop(f"the sdist lacks {len(missing)} files, such as {missing[0]}")
    names = set(zipfile.ZipFile(built()[0]).namelist())
    carried = {name for name in expected() if name.startswith("qiju/")}
    carried |= {f"qiju/{name}" for name in expected() if name.startswith("schema/")}
    if carried - names:
        stop(f"the wheel lacks {sorted(carried - names)[0]}")


def built() -> tuple[Path, Path]:
    """The wheel and the sdist in dist/."""
    wheels, sources = sorted(DIST.glob("*.whl")), sorted(DIST.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        stop("dist/ must hold one wheel and one sdist")
    return wheels[0], sources[0]


def expected() -> set[str]:
    """Every file of the project that users or packagers need, relative to its top."""
    files = {name for name in ("LICENSE", "tox.ini", "pyproject.toml") if (ROOT / name).is_file()}
    files |= {path.name for path in ROOT.glob("*.md")}
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and not LEFT_OUT & set(path.parts) and path.suffix != ".pyc":
                files.add(path.relative_to(ROOT).as_posix())
    return files


def inside_sdist() -> set[str]:
    with tarfile.open(built()[1]) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def try_out() -> None:
    """Install wheel and sdist, each into a fresh environment with a HOME of its own, and do the main job there."""
    for artifact in built():
        with tempfile.TemporaryDirectory(prefix="qiju-release-") as name:
            place = Path(name)
            venv.create(place / "env", with_pip=True)
            programs = place / "env" / ("Scripts" if os.name == "nt" else "bin")
            python = programs / ("python.exe" if os.name == "nt" else "python")
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(artifact)], check=True)
            main_job(programs / ("qiju.exe" if os.name == "nt" else "qiju"), place)
            print(f"release: {artifact.name} installs and does the main job", flush=True)


def main_job(qiju: Path, place: Path) -> None:
    """Log, find, read, verify; stop at the first wrong answer."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("QIJU_", "PYTHON"))}
    env |= {"HOME": str(place), "USERPROFILE": str(place), "QIJU_HOME": str(place / "home")}

    def run(*words: str, given: str = "") -> str:
        done = subprocess.run(
            [str(qiju), *words], input=given, env=env, cwd=place, capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode:
            stop(f"'qiju {' '.join(words)}' failed with {done.returncode}: {done.stderr}")
        return done.stdout

    if run("--version").strip() != f"qiju {version()}":
        stop("the installed program has another version")
    record = json.dumps({"title": "Release", "body_md": "renew the lease with jitter"})
    identity = run("log", "--source", "manual", "--project", "demo", given=record).strip()
    if identity not in run("search", "--scope", "all", "--query", "JITTER", "--format", "summary"):
        stop("the record was not found")
    if json.loads(run("show", identity))["title"] != "Release":
        stop("the record was not read back")
    if not run("verify").startswith("sound"):
        stop("the store is not sound")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", metavar="vX.Y.Z")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--try", dest="only_try", action="store_true")
    given = parser.parse_args()
    if not given.only_try:
        if not given.build:
            check(given.tag)
        build()
    try_out()
    print(f"release: {version()} is ready" + ("" if given.tag else f"; publish with: git tag v{version()}"))


if __name__ == "__main__":
    main()
