"""The audit of erasures: who, when, why, what was counted, a keyed fingerprint. Never the value.

Also the pending marks (erasures that no proof has closed yet) and the fingerprints by which a value is known again.
"""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING, Any

from qiju import jsontext
from qiju.erasure.secret import SHORTEST
from qiju.jsontext import JsonValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    import apsw

    from qiju.db import Database
    from qiju.erasure.secret import Secret
    from qiju.store import Store

LITERAL, RESCAN, DELETE = "literal", "rescan", "delete"
_COLUMNS = (
    "audit_id", "at", "action", "actor", "reason", "record_seq", "event_seq", "field", "kind", "rule", "start", "end",
    "placeholder", "fingerprint", "counts",
)  # fmt: skip


def actor(env: Mapping[str, str]) -> str:
    """Who does it, as far as the system tells: the agent, if one calls, and the user."""
    user = env.get("LOGNAME") or env.get("USER") or env.get("USERNAME") or ""
    if not user and hasattr(os, "getuid"):
        user = f"uid {os.getuid()}"
    agent = env.get("QIJU_AGENT", "")
    return f"{agent} ({user})" if agent and user else agent or user


def identity(store: Store, literal: str) -> str:
    """The keyed fingerprint of a value as a whole, 32 hexadecimal digits; equal for both Unicode forms."""
    import hmac

    plain = unicodedata.normalize("NFC", literal).encode("utf-8", "surrogatepass")
    return hmac.digest(store.key("fingerprint"), b"value\0" + plain, "sha256").hex()[:32]


def pending(db: Database, fingerprint: str) -> int | None:
    """The audit id of an erasure of this value that is not proven yet."""
    row = db.connection.execute(
        "SELECT audit_id FROM redaction_pending WHERE fingerprint = ? ORDER BY pending_id LIMIT 1", (fingerprint,)
    ).fetchone()
    return None if row is None else int(row[0])


def others_pending(db: Database, fingerprint: str) -> int:
    """How many other erasures wait for their proof."""
    return int(db.value("SELECT count(*) FROM redaction_pending WHERE fingerprint <> ?", (fingerprint,)))


def begin(
    connection: apsw.Connection,
    *,
    action: str,
    who: str,
    reason: str,
    placeholder: str,
    fingerprint: str,
    counts: JsonValue,
) -> int:
    """Write the audit row and the pending mark; the audit id. Only inside a write."""
    connection.execute(
        "INSERT INTO redaction_audit (action, actor, reason, kind, rule, placeholder, fingerprint, counts)"
        " VALUES (?1, ?2, ?3, ?1, ?1, ?4, ?5, ?6)",
        (action, who, reason, placeholder, fingerprint, jsontext.canonical(counts)),
    )
    audit_id = connection.last_insert_rowid()
    connection.execute("INSERT INTO redaction_pending (audit_id, fingerprint) VALUES (?, ?)", (audit_id, fingerprint))
    return audit_id


def finish(connection: apsw.Connection, audit_id: int, fingerprint: str, counts: dict[str, JsonValue]) -> None:
    """The proof has passed: the mark goes, the counts are completed. Only inside a write.

    A killed run may have counted already what it had done; what the run that finishes it did is added.
    """
    row = connection.execute("SELECT counts FROM redaction_audit WHERE audit_id = ?", (audit_id,)).fetchone()
    known = jsontext.parse(str(row[0])) if row else {}
    connection.execute("DELETE FROM redaction_pending WHERE fingerprint = ?", (fingerprint,))
    connection.execute(
        "UPDATE redaction_audit SET counts = ? WHERE audit_id = ?",
        (jsontext.canonical(_merged(known, counts)), audit_id),
    )


def _merged(known: JsonValue, new: JsonValue) -> JsonValue:
    if isinstance(known, dict) and isinstance(new, dict):
        return {name: _merged(known.get(name), new.get(name)) for name in {**known, **new}}
    if isinstance(known, int) and isinstance(new, int) and not isinstance(new, bool):
        return known + new
    if isinstance(known, list) and isinstance(new, list):
        return [*known, *(item for item in new if item not in known)]
    return known if new is None else new


def remember(store: Store, connection: apsw.Connection, secret: Secret, audit_id: int) -> bool:
    """Keep the value's fingerprints, so that it is known when it comes back. Short values are not: they would be cut
    out of everything that is stored from now on. Only inside a write."""
    from qiju.redaction.fingerprint import fingerprints

    if len(secret.literal) < SHORTEST:
        return False
    known = fingerprints(store.key("fingerprint"), secret.literal)
    connection.executemany(
        "INSERT INTO redacted_value (fingerprint, audit_id) SELECT ?1, ?2"
        " WHERE NOT EXISTS (SELECT 1 FROM redacted_value WHERE fingerprint = ?1)",
        [(each, audit_id) for each in known],
    )
    return bool(known)


def listed(db: Database) -> list[JsonValue]:
    """The whole audit, oldest first; empty columns are left out. `pending` is there when no proof has passed yet."""
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    found: list[JsonValue] = []
    with db.read() as connection:
        waiting = {row[0] for row in connection.execute("SELECT audit_id FROM redaction_pending")}
        for row in connection.execute(f"SELECT {names} FROM redaction_audit ORDER BY audit_id"):
            values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
            counts = jsontext.parse(values.pop("counts"))
            entry: dict[str, JsonValue] = {k: v for k, v in values.items() if v not in (None, "")}
            if counts:
                entry["counts"] = counts
            if row[0] in waiting:
                entry["pending"] = True
            found.append(entry)
    return found
