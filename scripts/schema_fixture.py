"""Write a small store of the current schema, packed, for the tests that upgrade stores of every released schema.

    python scripts/schema_fixture.py                     tests/keeping/data/schemas/<version>.db.gz
    python scripts/schema_fixture.py --output FILE

Run it at a release whose schema is new, and commit the file: from then on it is never written again.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from pathlib import Path

from qiju.db import SCHEMA_VERSION
from qiju.keeping.backup import copy_database
from qiju.projects import Home
from qiju.record import check
from qiju.store import Store

FOLDER = Path(__file__).parent.parent / "tests" / "keeping" / "data" / "schemas"
RECORDS = (
    {"title": "Plain", "body_md": "the lease broke", "tags": ["a", "b"], "ts": "2026-01-02T03:04:05+02:00"},
    {"title": "会话恢复 STRASSE straße", "body_md": "e\u0301 令牌", "extra": {"n": [1, None, {}], "big": 2**62}},
    {"title": "Deleted later", "body_md": "x"},
    {"title": "Late", "body_md": "y", "model": "m", "model_effort": "high", "ts": "2020-01-01T00:00:00Z"},
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=FOLDER / f"{SCHEMA_VERSION:04d}.db.gz")
    target = parser.parse_args().output
    if target.exists():
        print(f"{target} exists; the store of a released schema is never written again")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(Path(folder) / "home") as store:
            for number, value in enumerate(RECORDS, start=1):
                fields = check({**value, "id": f"fixture:{number}", "source": "manual"})  # type: ignore[dict-item]
                store.log(store.admit(fields, session_id="", session_source=""), Home("demo", named=True))
            with store.db.write() as connection:
                gone = store.by_seq(3)
                assert gone is not None
                store.delete(connection, gone)
            copy_database(store.db, Path(folder) / "copy.db")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress((Path(folder) / "copy.db").read_bytes(), 9, mtime=0))
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
