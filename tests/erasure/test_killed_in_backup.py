"""A redaction killed inside a backup, between its rows and its indexes: the next run finds that and finishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qiju.db import Database
from qiju.erasure import databases
from qiju.erasure import indexes as index_work

SECRET = "canary" + "word6610q"


def test_old_segments_of_a_backup_are_cleaned_by_the_next_run(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from qiju.erasure.secret import Secret

    place.log(title="other")
    place.log(title=f"t {SECRET}")
    place.ok("backup")
    (backup,) = Path(place.home, "backups").glob("*.db")

    def killed(_db: Database) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(index_work, "merge", killed)
        with pytest.raises(KeyboardInterrupt):
            databases.clean(backup, Secret(SECRET))
    assert SECRET.encode() in backup.read_bytes()
    place.ok("redact", "--value", SECRET, "--reason", "r")
    assert SECRET.encode() not in backup.read_bytes()
    assert place.run("redact", "--value", SECRET, "--reason", "r").code == 3
    assert place.run("restore", "--dry-run", str(backup)).code == 0
