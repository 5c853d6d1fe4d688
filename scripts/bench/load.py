"""Writers and readers on one store for a while: records and reads a second, the slowest read, how far the log grew.

    python scripts/bench/load.py [WRITERS_AND_READERS] [SECONDS]

It runs what `tests/faults/test_load.py` runs and judges it as that does, so that a figure is only printed for a run in
which nothing was lost. A second run with readers alone shows what writers cost a reader, as a ratio of medians.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "faults")]

from program import Place  # noqa: E402
from test_load import READER, judge, load  # noqa: E402


def alone(place: Place, seconds: float) -> float:
    """The median read in milliseconds of one reader without writers."""
    until = str(time.time() + seconds)
    command = [sys.executable, "-c", READER, str(place.home), until]
    done = subprocess.run(command, env=place.env, capture_output=True, text=True, check=True)
    return 1000 * float(json.loads(done.stdout)[1])


def main() -> None:
    each, seconds = int((sys.argv[1:] or ["16"])[0]), float((sys.argv[2:] or ["60"])[0])
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        figures = judge(place, load(place, each, seconds))
        quiet = alone(place, min(5.0, seconds))
    figures["records_a_second"] = round(figures["records"] / seconds, 1)
    figures["reads_a_second"] = round(figures["reads"] / seconds, 1)
    figures["read_under_load_to_read_alone"] = round(figures["median_read_ms"] / max(quiet, 0.001), 1)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
