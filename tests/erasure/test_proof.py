"""The proof must be able to fail: remainders planted behind Qiju's back are found, look-alikes are not."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from qiju.db import Database
from qiju.erasure import proof
from qiju.erasure.rows import Pieces
from qiju.erasure.secret import Secret

VALUE = "canary" + "-word-9481"


@pytest.fixture
def store(place: Any) -> Any:
    place.log(body_md="nothing to see")
    return place


def left(path: Path) -> proof.DatabaseProof:
    with Database.open(path) as db:
        return proof.DatabaseProof(db, Secret(VALUE), "")


def test_a_clean_store_passes(store: Any) -> None:
    assert left(store.db).remains == []


def test_bytes_on_a_free_page_are_found(store: Any) -> None:
    """Freed by a program that does not overwrite what it frees."""
    connection = sqlite3.connect(store.db)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("CREATE TABLE scratch (x)")
    connection.execute("INSERT INTO scratch VALUES (?)", (VALUE * 2000,))
    connection.commit()
    connection.execute("DROP TABLE scratch")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    found = left(store.db)
    assert found.bytes_left
    assert found.free_pages > 0
    assert found.retry


def test_bytes_in_the_log_are_found(store: Any) -> None:
    connection = sqlite3.connect(store.db)
    connection.execute("INSERT INTO setting VALUES ('x', ?)", (VALUE,))
    connection.commit()
    try:
        assert any("-wal" in what for what in left(store.db).bytes_left)
    finally:
        connection.close()


def test_a_word_that_only_the_index_knows_is_found(store: Any) -> None:
    """An entry without a row, as a damaged index has it."""
    connection = sqlite3.connect(store.db)
    connection.execute("INSERT INTO record_fts (rowid, title) VALUES (99, ?)", (VALUE,))
    connection.execute("INSERT INTO record_trigram (rowid, text) VALUES (99, ?)", (VALUE,))
    connection.commit()
    connection.close()
    found = left(store.db)
    assert found.terms_left
    assert len(found.indexes_wrong) == 2


def test_pieces_that_do_not_agree_are_found(store: Any) -> None:
    with Database.open(store.db) as db:
        rev = int(db.value("SELECT rev FROM record WHERE seq = 1"))
        right = Pieces(1, rev, frozenset(("zzz",)), frozenset(("not",)))
        assert proof.wrong_pieces(db, [right]) == []
        assert proof.wrong_pieces(db, [right._replace(gone=frozenset(("see",)))])
        assert proof.wrong_pieces(db, [right._replace(came=frozenset(("zzz",)))])
        assert proof.wrong_pieces(db, [right._replace(gone=frozenset(("see",)), rev=rev + 1)]) == []


def test_a_hit_at_the_edge_of_two_chunks_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the value lies in the file."""
    monkeypatch.setattr(proof, "CHUNK", 1000)
    secret = Secret(VALUE)
    noise = os.urandom(5000)
    for at in range(0, 4000, 7):
        path = tmp_path / "file"
        path.write_bytes(noise[:at] + VALUE.encode() + noise[at:])
        assert proof.file_holds(path, secret) == 1, at


def test_the_live_file_keeps_its_locks(store: Any) -> None:
    """Opening the database a second time with Python would drop the locks of the first; SQLite's own layer does not."""
    locks = Path("/proc/locks")
    if not locks.exists():
        pytest.skip("needs Linux")

    def held() -> int:
        inode = f":{store.db.stat().st_ino} "
        return sum(inode in line and f" {os.getpid()} " in line for line in locks.read_text("ascii").splitlines())

    with Database.open(store.db) as db:
        with db.read() as connection:
            connection.execute("SELECT count(*) FROM record").fetchall()
        before = held()
        assert before > 0
        assert proof.remains_in_file(db, Secret(VALUE)) == []
        assert proof.dirty_free_pages(db) == 0
        assert held() == before
