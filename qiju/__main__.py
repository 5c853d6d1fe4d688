"""`python -m qiju`."""

from __future__ import annotations

from qiju.cli import main

if __name__ == "__main__":
    main()
