"""The one way in: a checked record is completed and every string of it redacted before anything touches a disk.

`log`, `import`, `migrate` and the spool all store what `admit` returns. It also knows which keys the caller wrote,
because the same record logged again is compared in those only.
"""

from __future__ import annotations

from qiju import jsontext
from qiju import record as records
from qiju.errors import InvalidRecord
from qiju.jsontext import JsonValue
from qiju.projects import Home
from qiju.record import Record
from qiju.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.redaction import Engine


class Admitted(NamedTuple):
    """A record ready to be stored: redacted, complete but for the id's number. `given`: the keys the caller wrote."""

    fields: dict[str, JsonValue]
    given: frozenset[str]
    instant: int
    session_id: str
    session_source: str
    redactions: int
    notes: tuple[str, ...]


def admit(engine: Engine, fields: dict[str, JsonValue], *, session_id: str, session_source: str) -> Admitted:
    """Checked fields, completed and redacted: values and keys, ids and unknown fields.

    `fields` come from `qiju.record.check` and hold `source`. Raises `InvalidRecord`; a redaction that fails raises, and
    nothing is stored.
    """
    given = frozenset(fields)
    notes: list[str] = []
    complete = dict(fields)
    instant = records.parse_ts(ts) if isinstance(ts := complete.get("ts"), str) else None
    if instant is None:
        complete["ts"] = records.now_ts()
        instant = records.parse_ts(str(complete["ts"])) or 0
        given -= {"ts"}
        if "ts" in fields:
            notes.append(f"ts was not an ISO 8601 time; the record is dated {complete['ts']}")
    # What the caller says was redacted is text of the caller's like any other.
    earlier, inner = engine.redact_value(_kept_redactions(complete.pop("redactions", [])), "redactions")
    value, found = engine.redact_value(complete)
    if not isinstance(value, dict):
        raise InvalidRecord("a record is a JSON object")
    made: list[JsonValue] = [one.to_json() for one in (*inner, *found)]
    value["redactions"] = [*_kept_redactions(earlier), *made]
    if isinstance(identity := value.get("id"), str):
        if not records.valid_id(identity):
            raise InvalidRecord("id must be <session>:<number>", hint="leave id out to have one given")
        session_id, session_source = records.split_id(identity)[0], "id"
    return Admitted(value, given, instant, session_id, session_source, len(made), tuple(notes))


NOT_COMPARED = frozenset(("ts", "agent", "project", "source", "redactions", "schema_version", "id"))


def differences(known: Record, new: Record, given: frozenset[str]) -> list[str]:
    """The names of fields in which two records differ. What the caller left out is not compared, nor are redactions."""
    differing = []
    for name in Record._fields:
        if name in ("redactions", "extra") or (name in NOT_COMPARED and name not in given):
            continue
        if getattr(known, name) != getattr(new, name):
            differing.append(name)
    for name in sorted({*known.extra, *new.extra}):
        if known.extra.get(name) != new.extra.get(name) or (name in known.extra) != (name in new.extra):
            differing.append(name)
    return differing


def _kept_redactions(earlier: JsonValue) -> list[JsonValue]:
    return list(earlier) if isinstance(earlier, list) else []


def twin_key(admitted: Admitted) -> str:
    content = {name: value for name, value in admitted.fields.items() if name not in ("ts", "redactions")}
    if "ts" in admitted.given:
        content["ts"] = admitted.fields["ts"]
    return admitted.session_id + "\n" + jsontext.canonical(content)


def spool_value(admitted: Admitted, home_of: Home) -> dict[str, JsonValue]:
    given: list[JsonValue] = [*sorted(admitted.given)]
    notes: list[JsonValue] = [*admitted.notes]
    return {
        "fields": admitted.fields,
        "given": given,
        "instant": admitted.instant,
        "session_id": admitted.session_id,
        "session_source": admitted.session_source,
        "redactions": admitted.redactions,
        "notes": notes,
        "project": home_of.to_json(),
    }


def from_spool(value: JsonValue) -> tuple[Admitted, Home] | None:
    if not isinstance(value, dict):
        return None
    fields, given, instant = value.get("fields"), value.get("given"), value.get("instant")
    redactions = value.get("redactions")
    home_of = Home.from_json(value.get("project"))
    if (
        not isinstance(fields, dict)
        or not isinstance(given, list)
        or not isinstance(instant, int)
        or not isinstance(redactions, int)
        or home_of is None
    ):
        return None
    admitted = Admitted(
        fields,
        frozenset(str(name) for name in given),
        instant,
        str(value.get("session_id", "")),
        str(value.get("session_source", "")),
        redactions,
        (),
    )
    return admitted, home_of
