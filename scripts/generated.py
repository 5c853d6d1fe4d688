"""Run every generator of committed files: `schema_files.py`, then `docs_*.py`. With --check, only compare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GENERATORS = [HERE / "schema_files.py", *sorted(HERE.glob("docs_*.py"))]


def main() -> int:
    """The worst exit code of them."""
    return max(subprocess.run([sys.executable, str(one), *sys.argv[1:]], check=False).returncode for one in GENERATORS)


if __name__ == "__main__":
    sys.exit(main())
