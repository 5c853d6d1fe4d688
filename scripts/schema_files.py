"""Write what `schema/` holds beside the migrations: the resulting DDL, and the JSON Schemas of what commands print.

    python scripts/schema_files.py            # write
    python scripts/schema_files.py --check    # fail when a file is out of date

The released migrations are the source of `store.sql`; nothing is ever applied from it.
"""

from __future__ import annotations

import sys
from typing import Any

from pages import ROOT, finish

FOLDER = ROOT / "schema"
STORE_HEAD = """-- The schema of a store as the migrations leave it, written by scripts/schema_files.py.
-- Nothing is applied from here. The tables that FTS5 keeps for itself are left out.
"""
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}

RECORD_FIELDS: dict[str, dict[str, Any]] = {
    "schema_version": {"type": "integer", "minimum": 1, "description": "2 for records written by this version."},
    "id": {
        "type": "string",
        "pattern": r"^[^\s\u0000-\u001f\u007f]+:[1-9][0-9]{0,17}$",
        "description": "`<session>:<number>`, unique within a project.",
    },
    "ts": {"type": "string", "description": "ISO 8601, exactly as written. Ordered by its instant."},
    "project": {"type": "string", "description": "Slug of the project."},
    "agent": {"type": "string", "description": "Who wrote it, such as `claude` or `codex`; `unknown` when not said."},
    "source": {"enum": ["manual", "agent"], "description": "Who asked for the record: a person, or the agent."},
    "title": {"type": "string", "description": "One line."},
    "tags": {**TEXTS, "description": "Words to filter by."},
    "search_terms": {**TEXTS, "description": "Words somebody may search for that the text does not have."},
    "next_steps": {**TEXTS, "description": "What is left to do."},
    "redactions": {
        "type": "array",
        "description": "What was replaced in this record, never the value.",
        "items": {
            "type": "object",
            "properties": {
                "field": {"type": "string", "description": "Path, such as `body_md`, `tags[0]`, `extra.a.b[2]`."},
                "type": {"type": "string", "description": "Kind of the value."},
                "rule": {"type": "string", "description": "The rule that found it."},
                "start": {"type": "integer", "minimum": 0, "description": "Characters into the stored text."},
                "end": {"type": "integer", "minimum": 0, "description": "`text[start:end]` is the placeholder."},
                "placeholder": {"type": "string", "description": "What stands in the value's place."},
            },
        },
    },
    "body_md": {"type": "string", "description": "The record itself, in Markdown."},
    "model": {"type": "string", "minLength": 1, "description": "The exact model; absent when unknown."},
    "model_effort": {"type": "string", "minLength": 1, "description": "The model's effort label; absent when unknown."},
}
OPTIONAL = ("model", "model_effort")


def store_sql() -> str:
    """The DDL of a store in the newest version."""
    import apsw

    from qiju import migrate

    connection = apsw.Connection(":memory:")
    for _number, path in sorted(migrate.files(None).items()):
        connection.execute(path.read_text(encoding="utf-8"))
    # FTS5's own tables are named after the virtual table they belong to.
    shadows = {
        f"{row[0]}_{part}"
        for row in connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
        for part in ("data", "idx", "content", "docsize", "config")
    }
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    kept = [
        str(sql).rstrip() + ";" for name, sql in rows if name not in shadows and not str(name).startswith("sqlite_")
    ]
    application = connection.execute("PRAGMA application_id").fetchone()
    assert application is not None
    version = max(migrate.files(None))
    facts = f"PRAGMA application_id = {application[0]};\nPRAGMA user_version = {version};\n"
    return STORE_HEAD + "\n" + facts + "\n" + "\n\n".join(kept) + "\n"


def record_schema() -> dict[str, Any]:
    """The JSON Schema of a stored record."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Qiju record",
        "description": "A stored record as commands print it. `qiju log` takes the same object with every field "
        "optional, and fills in what is left out. Unknown keys are kept.",
        "type": "object",
        "properties": RECORD_FIELDS,
        "required": [name for name in RECORD_FIELDS if name not in OPTIONAL],
        "additionalProperties": True,
    }


def main() -> int:
    from qiju import jsontext
    from qiju.trajectory.schema import record_schema as trajectory_schema

    return finish(
        {
            FOLDER / "store.sql": store_sql(),
            FOLDER / "record.schema.json": jsontext.pretty(record_schema()) + "\n",
            FOLDER / "trajectory_record.schema.json": jsontext.pretty(trajectory_schema()) + "\n",
        }
    )


if __name__ == "__main__":
    sys.exit(main())
