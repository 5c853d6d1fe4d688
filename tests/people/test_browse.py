"""Browsing: the real Datasette over the live store, and what it must never do."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from program import SESSION, Place

pytest.importorskip("datasette")

HOSTILE = (
    "<script>alert(1)</script> [x](javascript:alert(1)) ![p](https://evil.example/p.png) <img src=y onerror=alert(2)>"
)
OTHER = "22222222-2222-4222-8222-222222222222"


class Browsing:
    """A running `qiju browse`."""

    def __init__(self, place: Place, *words: str) -> None:
        self.place = place
        self.process = place.start("browse", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()

    @property
    def port(self) -> int:
        return int(self.url.rstrip("/").rpartition(":")[2])

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
        request = urllib.request.Request(
            self.url + path, method=method, headers=headers, data=b"x=1" if method == "POST" else None
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode("utf-8"), dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode("utf-8"), dict(error.headers)

    def page(self, path: str) -> str:
        code, text, _headers = self.get(path)
        assert code == 200, (path, code, text[:500])
        return text

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        if self.process.poll() is None:
            self.process.send_signal(number)
        _out, err = self.process.communicate(timeout=30)
        return self.process.returncode, err.decode("utf-8")


def fill(place: Place) -> Place:
    """Three records of `demo`, two of them hostile, and one of `other`."""
    body = "# Why\n\nThe **holder** renews."
    place.log(title="Leases are renewed", body_md=body, tags=["locks", "x<y"], next_steps=["tell ops"])
    place.log(
        title="<script>alert(3)</script>", body_md=HOSTILE, tags=["<b>", "<b>"], next_steps=["<i>"], more={"k": "<u>"}
    )
    place.log(session=OTHER, project="other", title="Colours", body_md="lease is not in the title", agent="claude")
    place.log(title="inv\u202etxt.exe \x1b[31m", body_md="\u202eevil")
    return place


@pytest.fixture
def store(place: Place) -> Place:
    return fill(place)


@pytest.fixture
def browsing(store: Place) -> Iterator[Browsing]:
    running = Browsing(store, "--port", "0")
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browsing]:
    """One server for all tests that only look."""
    running = Browsing(fill(Place(tmp_path_factory.mktemp("served"))), "--port", "0")
    try:
        yield running
    finally:
        running.stop()


def test_pages_show_projects_facets_search_queries_and_a_record(served: Browsing) -> None:
    """Start page, list with facets, full-text search, each canned query, a record with its Markdown rendered."""
    start = served.page("")
    assert "4 records in 2" in start
    assert "project__exact=demo" in start
    assert "project__exact=other" in start
    listed = served.page("qiju/record")
    for facet in ("project", "agent", "source", "tier", "tags"):
        assert f'data-column="{facet}"' in listed
    assert "tags__arraycontains=x%3Cy" in listed
    found = json.loads(served.page("qiju/record.json?_search=lease&_shape=array"))
    assert {row["title"] for row in found} == {"Leases are renewed", "Colours"}
    tagged = json.loads(served.page("qiju/record.json?tags__arraycontains=locks&_shape=array"))
    assert [row["id"] for row in tagged] == [f"{SESSION}:1"]
    counted = json.loads(served.page("qiju/record.json?project__exact=demo"))["facet_results"]
    assert {one["value"]: one["count"] for one in counted["tags"]["results"]} == {"locks": 1, "x<y": 1, "<b>": 1}
    assert [one["value"] for one in counted["project"]["results"]] == ["demo"]
    for query in ("recent", "open_next_steps", "by_tag", "by_tag?tag=locks", "sessions", "redactions_by_rule"):
        assert "message-error" not in served.page(f"qiju/{query}")
    steps = json.loads(served.page("qiju/open_next_steps.json?project=demo&_shape=array"))
    assert {row["step"] for row in steps} == {"tell ops", "<i>"}
    assert 'href="/qiju/record/1"' in served.page("qiju/recent")
    record = served.page("qiju/record/1")
    assert "<h1>Why</h1>" in record
    assert "<strong>holder</strong>" in record
    assert "tell ops" in record
    assert f"{SESSION}:1" in served.page(f"id/{SESSION}:1")


def test_internal_tables_stay_out_of_sight(served: Browsing) -> None:
    """A person sees records, projects, redactions and events; every other table of the schema is marked as hidden."""
    listed = json.loads(served.page("qiju.json"))
    shown = {table["name"] for table in listed["tables"] if not table["hidden"]}
    assert shown == {"record", "project", "redaction_audit", "trajectory_event"}
    start = json.loads(served.page("-/databases.json"))
    assert [database["name"] for database in start] == ["qiju"]


def test_text_of_records_is_inert_in_html(served: Browsing) -> None:
    """No tag, script, handler or foreign picture of a record reaches the page as such, and headers forbid the rest."""
    for path in (
        "",
        "qiju/record",
        "qiju/record/2",
        "qiju/recent",
        "qiju/open_next_steps",
        "qiju/by_tag",
        "qiju/record?title__exact=<b>",
    ):
        text = served.page(urllib.parse.quote(path, safe="/?=&"))
        for live in ("<script>alert", "<img src=y", 'href="javascript', "<b>", "<i>", "<u>", '<img src="https'):
            assert live not in text, (path, live)
    _code, text, headers = served.get("qiju/record/2")
    assert "&lt;script&gt;alert(1)" in text
    assert "script-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in {name.lower() for name in headers}


def test_a_real_browser_runs_nothing_of_a_record(served: Browsing, tmp_path: Path) -> None:
    """Headless Chromium, where there is one: no script of a record has changed the page, no picture was fetched."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}",
        "--virtual-time-budget=2000",
    ]
    for path in ("qiju/record/2", "qiju/record", ""):
        seen = subprocess.run(
            [program, *options, "--dump-dom", served.url + path],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        assert "run-by-a-record" not in re.sub(r"&lt;.*?&gt;", "", seen)
        assert not re.search(r"<(script|img|iframe)[^>]*(alert|onerror|evil)", seen)
    assert "&lt;script&gt;" in seen


def test_direction_and_control_characters_are_shown_as_escapes(served: Browsing) -> None:
    """A title that turns the reading direction cannot dress up as another."""
    for path in ("", "qiju/record", "qiju/record/4", "qiju/recent"):
        text = served.page(path)
        assert "\u202e" not in text, path
        assert "\x1b" not in text, path
        assert "\\u202e" in text, path


def test_new_records_show_at_once_and_redacted_ones_are_gone(store: Place, browsing: Browsing) -> None:
    """The store is read live, not as an immutable file, and nothing is cached."""
    assert "fresh-and-new" not in browsing.page("qiju/record")
    store.log(title="fresh-and-new", body_md="hush-hush-value")
    assert "fresh-and-new" in browsing.page("qiju/record")
    paths = ("qiju/record/5", "qiju/record.csv", "qiju/record.json", "qiju/record/5.json", "qiju/record?_search=fresh")
    assert any("hush-hush-value" in browsing.page(path) for path in paths)
    redacted = store.run("redact", "--value-stdin", "--reason", "t", given="hush-hush-value")
    if redacted.code == 2 and "No such command" in redacted.err:
        pytest.skip("this build has no redact")
    assert redacted.code == 0, redacted
    for path in paths:
        assert "hush-hush-value" not in browsing.page(path)


WRITES = (
    "update record set title = 'x'",
    "with x as (select 1) delete from record",
    "with x as (select 1) insert into project (slug) select 'evil'",
    "attach database '/tmp/x.db' as x",
    "pragma query_only = off",
    "select load_extension('x')",
    "select 1; delete from record",
    "vacuum",
)


def test_no_sql_writes(served: Browsing) -> None:
    """The SQL page reads; whatever else is typed into it is refused and changes nothing."""
    before = served.place.db.read_bytes()
    for sql in WRITES:
        assert served.get("qiju?sql=" + urllib.parse.quote_plus(sql))[0] == 400, sql
    assert served.place.db.read_bytes() == before
    assert "4 records in 2" in served.page("")


def test_no_method_but_reading_ones(served: Browsing) -> None:
    """There is no write endpoint of any kind, Datasette's own forms included."""
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        for path in ("qiju", "qiju/recent", "-/messages", "qiju/record/1", "-/permissions"):
            assert served.get(path, method)[0] == 405, (method, path)


def test_only_this_machine_is_answered(served: Browsing) -> None:
    """It listens on loopback alone, and a foreign name that points there is refused (DNS rebinding)."""
    assert served.url.startswith("http://127.0.0.1:")
    assert served.get("", Host="evil.example")[0] == 403
    assert served.get("", Host=f"localhost:{served.port}")[0] == 200
    for address in {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {
        "127.0.0.1"
    }:
        if not str(address).startswith("127."):
            with pytest.raises(OSError, match=r".*"):
                socket.create_connection((str(address), served.port), timeout=2).close()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_the_child_has_no_apsw_and_the_parent_no_reader(served: Browsing) -> None:
    """Two SQLite libraries never meet in one process, and the parent keeps no file of the store open."""
    served.page("")
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children").read_text().split()
    assert len(children) == 1
    maps = Path(f"/proc/{children[0]}/maps").read_text()
    assert "_sqlite3" in maps
    assert "/apsw/" not in maps
    held = [str(link.readlink()) for link in Path(f"/proc/{served.process.pid}/fd").iterdir()]
    assert not [name for name in held if "qiju.db" in name]


def test_stopping_ends_both_and_lets_the_wal_shrink(store: Place) -> None:
    """Ctrl-C is the normal end: exit 0, no child left, and the next write leaves no WAL behind."""
    running = Browsing(store, "--port", "0")
    running.page("qiju/record")
    port = running.port
    code, err = running.stop()
    assert code == 0, err
    assert "Traceback" not in err
    with pytest.raises(OSError, match=r".*"):
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    store.log(title="after")
    wal = store.db.with_name("qiju.db-wal")
    assert not wal.exists() or wal.stat().st_size == 0


def test_readers_do_not_hold_the_wal_while_it_runs(served: Browsing) -> None:
    """Between requests no read transaction is open: a checkpoint can empty the WAL."""
    served.page("qiju/record")
    served.page("qiju/record/1")
    import apsw

    connection = apsw.Connection(str(served.place.db))
    try:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0  # not busy
    finally:
        connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)])
def test_the_child_never_outlives_its_parent(store: Place, number: int) -> None:
    """However the parent goes, the port is free again soon."""
    running = Browsing(store, "--port", "0")
    running.page("")
    port = running.port
    running.stop(number)
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    pytest.fail("the child still listens")


def test_a_taken_port_is_refused_and_named(store: Place) -> None:
    """`--port N` means N."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        done = store.run("browse", "--port", str(number))
    assert done.code == 4
    assert f"port {number}" in done.err
    assert "--port 0" in done.err


def test_what_cannot_be_served_is_said(place: Place) -> None:
    """No store, and a port that is none."""
    missing = place.run("browse", "--port", "0")
    assert missing.code == 3
    assert "no store" in missing.err
    assert not place.home.exists()
    place.log(title="t")
    assert place.run("browse", "--port", "70000").code == 2


def test_without_datasette_the_install_command_is_printed(store: Place, tmp_path: Path) -> None:
    """The extra is named, as a command that can be copied."""
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'datasette': raise ModuleNotFoundError(name)\n"
        "import importlib.util as util\n"
        "kept = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'datasette' else kept(name, package)\n",
        encoding="utf-8",
    )
    done = store.run("browse", env={"PYTHONPATH": str(tmp_path / "hide")})
    assert done.code == 1
    assert "pip install 'qiju[browse]'" in done.err


def test_a_replaced_store_ends_the_server(store: Place, browsing: Browsing) -> None:
    """After a restore the open file is the old one: the server says so and ends instead of showing what is gone."""
    replacement = store.db.with_name("new.db")
    replacement.write_bytes(store.db.read_bytes())
    replacement.replace(store.db)
    assert browsing.get("")[0] == 503
    _out, err = browsing.process.communicate(timeout=30)
    assert b"replaced" in err


def test_the_public_copy_opens_with_plain_datasette(store: Place, tmp_path: Path) -> None:
    """`qiju export --format sqlite` makes a file that stock Datasette serves, search included."""
    copy = tmp_path / "public.db"
    store.ok("export", "--format", "sqlite", "--output", str(copy))
    words = ["--get", "/public/record.json?_search=lease&_shape=array", "-i", str(copy)]
    done = subprocess.run(
        [sys.executable, "-m", "datasette", *words], capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert {row["title"] for row in json.loads(done.stdout)} == {"Leases are renewed", "Colours"}
    assert not copy.with_name("public.db-wal").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store_is_served_from_a_copy(store: Place) -> None:
    """A folder that cannot be written is read through a private copy, and that is said."""
    store.home.chmod(0o500)
    try:
        running = Browsing(store, "--port", "0")
        assert "4 records in 2" in running.page("")
        _code, err = running.stop()
        assert "copy" in err
    finally:
        store.home.chmod(0o700)
