"""What both readers need of a file that is being read: ids that stay the same, oddities with their place, drafts.

**Record ids.** A re-import must find the same ids in a file that has grown, was renamed or copied. The host's own id
of a line is taken where there is one; else a digest of the line. A bare digest of text would let anyone who holds the
database test guesses against it, so an importer passes `identify`, which keys it with the store's secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from qiju.jsontext import canonical, digest
from qiju.trajectory.types import RecordKind, TrajectoryDraft
from qiju.transcripts.report import PLACES

if TYPE_CHECKING:
    from pathlib import Path

    from qiju.jsontext import JsonValue
    from qiju.transcripts.ledger import Ledger
    from qiju.transcripts.lines import Line
    from qiju.transcripts.report import ImportReport

    JsonObject = dict[str, JsonValue]

Identify = Callable[[str], str]
LONGEST_ID = 200


def plain_identity(hexdigest: str) -> str:
    """The unkeyed identity of 64 hex digits, for use where nothing is stored (tests, a look at a file)."""
    return hexdigest[:24]


class Source:
    """One file, one ledger, one report. `session` is what lines without a session id belong to."""

    def __init__(self, host: str, path: Path, ledger: Ledger, report: ImportReport, identify: Identify) -> None:
        self.host = host
        self.name = path.name
        self.session = path.stem
        self.ledger = ledger
        self.report = report
        self.identify = identify

    def odd(self, name: str, line: int, count: int = 1) -> None:
        self.report.anomaly(name, f"{self.name}:{line}", count)

    def unknown(self, name: str, line: int) -> None:
        self.report.unknown_type(name, f"{self.name}:{line}")

    def line_id(self, line: Line, session: str, own: str, *, dated: bool) -> str | None:
        """The id that this line's records share, or None when the same line was there before (and is reported).

        `own` is the host's id or ''. A line with neither an id nor a time (`dated`) may rightly occur again (a mode
        switched back), so its occurrence is part of its identity.
        """
        before = self.ledger.note("line", f"{session}\0{line.digest}", line.number)
        if before and (own or dated):
            self.odd("duplicate_line", line.number)
            return None
        identity = self.identify(line.digest)
        if not own or len(own) > LONGEST_ID:
            return f"{self.host}:{identity}" + (f"+{before}" if before else "")
        if self.ledger.note("own", f"{session}\0{own}", line.number):
            self.odd("repeated_id", line.number)
            return f"{self.host}:{own}~{identity[:8]}"
        return f"{self.host}:{own}"

    def value_id(self, value: JsonValue) -> str:
        return self.identify(digest(canonical(value)))[:12]

    def draft(
        self,
        kind: RecordKind,
        payload: JsonObject,
        record_id: str,
        *,
        session: str = "",
        run: str | None = None,
        ts: str | None = None,
    ) -> TrajectoryDraft:
        session = session or self.session
        self.report.drafted(kind, session)
        kept: JsonObject = {key: value for key, value in payload.items() if value is not None}
        return TrajectoryDraft(session, kind, kept, record_id, run, None, ts)

    def no_object(self, line: Line) -> Iterator[TrajectoryDraft]:
        """The event that stands for a line no reader could read, or for JSON that is no object; once a line."""
        base = self.line_id(line, self.session, "", dated=False)
        if base is not None and line.trouble:
            yield self.unreadable(line, base)
        elif base is not None:
            self.odd("not_an_object", line.number)
            yield self.draft(RecordKind.EVENT, {"type": "not_an_object", "raw": line.value}, base)

    def unreadable(self, line: Line, record_id: str) -> TrajectoryDraft:
        """The event that stands for a line no reader could read: its text if there is any, and its length."""
        self.odd(line.trouble, line.number)
        payload: JsonObject = {"type": line.trouble, "bytes": line.size}
        if line.raw:
            payload["raw"] = line.raw
        else:
            self.report.left_out("line", "oversized")
        return self.draft(RecordKind.EVENT, payload, record_id)

    def call(self, call_id: str | None, other: str | None, line: int) -> None:
        """Note a call, and the second name it goes by."""
        names = [name for name in (call_id, other) if name]
        if not names:
            self.odd("missing_call_id", line)
            return
        if self.ledger.note("call", names[0], line):
            self.odd("repeated_call_id", line)
        if len(names) == 2 and names[0] != names[1]:
            self.odd("call_with_two_ids", line)
            self.ledger.alias(names[1], names[0])

    def result(self, call_id: str | None, line: int) -> None:
        """Note a result; a second one for the same call is odd, and kept."""
        if not call_id:
            self.odd("missing_call_id", line)
        elif self.ledger.note_key("result", self.ledger.call_key(call_id), line):
            self.odd("duplicate_result", line)

    def close(self) -> None:
        """Report what only the end of the file tells: pairs that were never completed."""
        for name, scope, target in (
            ("unanswered_call", "call", "result"),
            ("orphan_result", "result", "call"),
            ("broken_parent", "parent", "uuid"),
        ):
            count, lines = self.ledger.missing(scope, target, PLACES)
            for line in lines:
                self.odd(name, line)
            if count > len(lines):
                self.odd(name, lines[-1], count - len(lines))


def text_of(value: object) -> str | None:
    """A non-empty string, or None."""
    return value if isinstance(value, str) and value else None


def whole(value: object) -> int:
    """A count of tokens; anything else than a whole number at or above zero counts as none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def parts_of(content: JsonValue, leave_out: Callable[[str, str], None]) -> JsonValue:
    """A host's content as text or parts: one text part becomes its text, embedded media become a description.

    The bytes of pictures and sounds are not kept (`leave_out(field, reason)` is told): base64 in a store of facts is
    dead weight that no search and no redaction can read.
    """
    if not isinstance(content, list):
        return content
    parts = [_part(part, leave_out) for part in content]
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"type", "text"}:
        return parts[0]["text"]
    return parts


TEXT_PARTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")


def _part(part: JsonValue, leave_out: Callable[[str, str], None]) -> JsonValue:
    if not isinstance(part, dict):
        return part
    kind, text = part.get("type"), part.get("text")
    if (
        kind in TEXT_PARTS
        and isinstance(text, str)
        and not any(part[key] for key in part if key not in ("type", "text"))
    ):
        return {"type": "text", "text": text}
    source = part.get("source")
    data = source.get("data") if isinstance(source, dict) else None
    if isinstance(source, dict) and isinstance(data, str) and source.get("type") == "base64":
        leave_out(f"{kind}.data", "embedded_media")
        return {"type": kind, "media_type": source.get("media_type"), "bytes": len(data) * 3 // 4}
    link = part.get("image_url")
    if isinstance(link, str) and link.startswith("data:"):
        leave_out("image.data", "embedded_media")
        head, _, body = link.partition(",")
        return {"type": "image", "media_type": head[5:].partition(";")[0][:80], "bytes": len(body) * 3 // 4}
    return part


def without_media(value: JsonValue, leave_out: Callable[[str, str], None]) -> JsonValue:
    """A host's structured result without the bytes of pictures (fields named `base64`); `leave_out` is told of them."""
    if isinstance(value, dict):
        kept: JsonObject = {}
        for key, inner in value.items():
            if key == "base64" and isinstance(inner, str):
                leave_out("host_result.base64", "embedded_media")
                kept["bytes"] = len(inner) * 3 // 4
            else:
                kept[key] = without_media(inner, leave_out)
        return kept
    if isinstance(value, list):
        return [without_media(inner, leave_out) for inner in value]
    return value
