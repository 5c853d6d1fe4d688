"""Write docs/reference/schema.md from the migrations; with --check, fail when the page is out of date."""

from __future__ import annotations

import re
import sys

from pages import REFERENCE, ROOT, finish

PAGE = REFERENCE / "schema.md"
FOLDER = ROOT / "schema" / "migrations"

HEAD = """# The database

<!-- Written by scripts/docs_schema.py from schema/migrations/. Change the comments there, then run the script. -->

The store is one SQLite file, `qiju.db` in the home (`qiju path db` prints it). Any SQLite from 3.40 on can read it,
search it and insert into it; no extension is needed. The whole schema, triggers included, is `schema/store.sql` in the
source.

## With the sqlite3 shell

```sql
-- newest first
SELECT id, ts, title FROM recent LIMIT 10;
-- words, best first
SELECT record.id, record.title FROM record_fts JOIN record ON record.seq = record_fts.rowid
WHERE record_fts MATCH 'lease AND jitter' ORDER BY rank;
-- by hand: every other column has a default
INSERT INTO record (id, ts, project, agent, source, title, body_md)
VALUES ('by-hand:1', '2026-03-01T09:00:00Z', 'demo', 'me', 'manual', 'A title', 'A text');
```

The views `short`, `long` and `archive` show one tier each; `recent` shows all, newest first. Triggers keep numbers,
instants, indexes, projects and trajectory events right, whoever writes. A row inserted by hand has no digest and has
not been redacted: `qiju verify` and `qiju doctor` name it as unsealed, and `qiju redact --rescan` redacts and seals it.
`INSERT OR REPLACE` onto an existing id is refused.

Three numbers order things: `record.seq` numbers inserts, `rev` every change of content in the whole store, `tier_rev`
moves between tiers. `trajectory_event.seq` orders a session's facts, records among them.

Copy a store with `qiju backup`, not with `cp`: what was written last may still be in `qiju.db-wal`.

## Tables and views

"""
OWN_WORDS = {"record": "The records, one row each, in all tiers."}
_OBJECT = re.compile(r"^CREATE (TABLE|VIRTUAL TABLE|VIEW) (\w+)", re.MULTILINE)


def objects() -> list[tuple[str, str, str, str]]:
    """(kind, name, what the comment above says, the statement) of every table and view, in order."""
    found = []
    for path in sorted(FOLDER.glob("*.sql")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            match = _OBJECT.match(line)
            if match is None:
                continue
            above = number
            while above and lines[above - 1].startswith("-- "):
                above -= 1
            said = " ".join(text.removeprefix("-- ") for text in lines[above:number])
            end = number
            while not lines[end].rstrip().endswith(";") and not re.search(r"\)\s*(STRICT)?;", lines[end]):
                end += 1
            found.append((match[1].lower(), match[2], said, "\n".join(lines[number : end + 1])))
    return found


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for kind, name, said, statement in objects():
        text = said.replace("<", "&lt;").replace("*", "\\*").replace("$", "\\$")
        parts.append(f"### {name}\n\n{text or OWN_WORDS.get(name, f'A {kind}.')}\n\n```sql\n{statement}\n```\n\n")
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(finish({PAGE: page()}))
