"""Write docs/reference/record.md from the record's JSON Schema; with --check, fail when the page is out of date."""

from __future__ import annotations

import json
import sys

from pages import REFERENCE, ROOT, finish, table

PAGE = REFERENCE / "record.md"
SCHEMA = ROOT / "schema" / "record.schema.json"

HEAD = """# The record

<!-- Written by scripts/docs_record.py. Fields come from scripts/schema_files.py; change them there, then run both. -->

A record is a JSON object, schema version 2, the same as the predecessor's. `schema/record.schema.json` in the source
describes it for programs.

"""

TAIL = """
## What `qiju log` takes

The same object, with every field optional. Left out, a field gets its default: the next id of the session, now, the
project of the folder, the agent as [configuration](configuration.md) says, empty texts and lists. `--source` is always
given on the command line.

- `null` for an optional field counts as absent. A `ts` that is no time becomes now, and that is said.
- Unknown keys are kept as they are, at the top and at any depth. Numbers keep their digits: `1.50` stays `1.50`.
- The text must be one JSON object in UTF-8. Duplicate keys, `NaN`, lone surrogates and anything after the object are
  refused with line and column.
- Every string is redacted before it is stored, object keys included. What was replaced is listed in `redactions`.

The same record again, with the same id, is the same record: `qiju log` prints its id and exits with 0. Only what the
call gives is compared. With other content it is refused (exit 4), the fields that differ are named, and nothing
changes.

## Paths in `redactions`

`field` says where: `body_md`, `tags[0]`, `extra.a.b[2]`. A redacted key is named by its place: `extra.~key[i]` is the
i-th key, in canonical order, of the object at `extra`.

## Ids

`<session>:<number>`. Qiju gives the numbers, per session, across the whole store. A record may bring an id of its own.
Two projects may hold the same id; commands then ask for `--project`.

## Time

`ts` is kept as written and ordered by its instant, to the microsecond. Without an offset it is local time of the
machine, fixed when the record is stored.

## Digest

SHA-256 over the canonical JSON of the record (keys sorted, no white space, RFC 8785 layout; numbers keep their digits).
`qiju log --json` prints it; `qiju verify` computes it again.

## Beside the record

Stored with it, but no part of it or of its digest: the tier, the sequence number, and where the session id came from
(`session_source`).
"""


def kind(shape: dict[str, object]) -> str:
    """A field's type in a word or two."""
    if "enum" in shape:
        return " or ".join(f"`{word}`" for word in shape["enum"])  # type: ignore[attr-defined]
    if shape["type"] == "array":
        items = shape["items"]
        return "list of strings" if items["type"] == "string" else "list of objects"  # type: ignore[index]
    return {"string": "string", "integer": "whole number"}[str(shape["type"])]


def page() -> str:
    """The whole page."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    order = json.loads(json.dumps(list(schema["required"])))
    names = [*order, *(name for name in schema["properties"] if name not in order)]
    rows = [
        (f"`{name}`", kind(shape), "yes" if name in order else "no", shape["description"])
        for name in names
        for shape in [schema["properties"][name]]
    ]
    return HEAD + table(("field", "type", "always there", "what"), rows) + TAIL


if __name__ == "__main__":
    sys.exit(finish({PAGE: page()}))
