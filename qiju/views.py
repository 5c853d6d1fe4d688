"""What of a record may leave the house: the public view.

An allow-list of fields. Unknown keys do not pass, unless they hold no text at all: numbers, true, false, null, empty
lists and objects, under names that look like names. Every text is redacted again with today's rules, and home paths,
the machine's user and host names, e-mail and addresses are taken out.
"""

from __future__ import annotations

import re

from qiju.jsontext import JsonValue, line
from qiju.record import FIELDS, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.redaction import Engine

RAW_PRIVATE = "raw_private"
REDACTED_PUBLIC = "redacted_public"
VIEWS = (RAW_PRIVATE, REDACTED_PUBLIC)
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"


def public_record(engine: Engine, record: Record) -> dict[str, JsonValue]:
    """The public view of a record, as a JSON object of known fields."""
    from qiju.redaction import scrub_public

    def scrubbed(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            text, _found = scrub_public(value, engine=engine)
            return text
        if isinstance(value, list):
            return [scrubbed(item) for item in value]
        if isinstance(value, dict):
            return {key: scrubbed(item) for key, item in value.items()}
        return value

    def harmless(value: JsonValue) -> bool:
        if isinstance(value, list):
            return all(map(harmless, value))
        if isinstance(value, dict):
            return all(
                re.fullmatch(_NAME, key) and scrubbed(key) == key and harmless(item) for key, item in value.items()
            )
        if isinstance(value, str):
            return False
        # A number may be a card's, a phone's or an account's: the rules see it as text.
        return isinstance(value, bool) or value is None or scrubbed(line(value)) == line(value)

    whole = record.to_json()
    kept = {name: scrubbed(value) for name, value in whole.items() if name in FIELDS and name != "redactions"}
    kept.update({name: value for name, value in record.extra.items() if harmless({name: value})})
    kept["redactions"] = [_without_place(item) for item in record.redactions]
    return kept


def _without_place(item: JsonValue) -> JsonValue:
    """A recorded redaction without offsets, which index the private text, and without its path, which may name keys."""
    if not isinstance(item, dict):
        return None
    return {name: item[name] for name in ("type", "rule", "placeholder") if name in item}
