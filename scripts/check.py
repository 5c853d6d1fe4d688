"""Everything that must hold before a change lands: lint, types, generated pages, tests.

python3 scripts/check.py            # all of it
python3 scripts/check.py tests/place  # the words after it go to pytest
"""

from __future__ import annotations

import sys

import environment

GENERATED = environment.ROOT / "scripts" / "generated.py"


def main() -> None:
    environment.prepare("test", "lint")
    python = str(environment.program("python"))
    given = sys.argv[1:]
    if not given:
        environment.run([python, "-m", "ruff", "check", "."])
        environment.run([python, "-m", "ruff", "format", "--check", "."])
        environment.run([python, "-m", "mypy"])
        environment.run([python, str(GENERATED), "--check"])
    environment.run([python, "-m", "pytest", "-n", "2", "--dist", "worksteal", *given])


if __name__ == "__main__":
    main()
