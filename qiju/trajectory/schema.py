"""The JSON Schema of a trajectory record, as an export or `qiju trajectory page` prints it.

Made from the record's own fields, so that the committed file (`schema/trajectory_record.schema.json`) cannot drift from
the code: a test compares the two.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from qiju.trajectory.types import RecordKind, TrajectoryRecord

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue

_TEXT: dict[str, JsonValue] = {"type": "string", "minLength": 1}
_OPTIONAL: dict[str, JsonValue] = {"type": ["string", "null"]}
_SHAPES: dict[str, dict[str, JsonValue]] = {
    "sequence": {"type": "integer", "minimum": 1, "description": "Position in the store the record was read from."},
    "record_id": {**_TEXT, "description": "Unique within its session."},
    "session_id": _TEXT,
    "run_id": _OPTIONAL,
    "work_item_id": _OPTIONAL,
    "kind": {"enum": [kind.value for kind in RecordKind]},
    "ts": {**_OPTIONAL, "description": "Time as its writer wrote it."},
    "payload": {"type": "object", "description": "What the record states, as far as the privacy view shows it."},
    "digest": {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "SHA-256 over the canonical JSON of the payload as shown.",
    },
}


def record_schema() -> dict[str, JsonValue]:
    """The schema as a JSON value (draft 2020-12)."""
    names = [field.name for field in fields(TrajectoryRecord)]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Qiju trajectory record",
        "type": "object",
        "properties": {name: _SHAPES[name] for name in names},
        "required": list(names),
        "additionalProperties": False,
    }


if __name__ == "__main__":
    import sys

    from qiju import jsontext

    sys.stdout.write(jsontext.pretty(record_schema()) + "\n")
