"""Rows under a privacy view, with a count of what the view took away.

`raw_private` passes rows through untouched, so that an import elsewhere gives the same digests. `redacted_public`
rebuilds each record from `qiju.views.public_record` and counts, per field, what did not pass; unknown keys are counted
under one name, because their names are text of the record too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from qiju import archive, record
from qiju.jsontext import JsonValue
from qiju.trajectory.types import LossReport, LossTally
from qiju.views import RAW_PRIVATE, public_record

if TYPE_CHECKING:
    from qiju.store import Store

POLICY = "qiju.loss/redacted-public"


class Viewer:
    """One export's view; `loss()` tells at any time what it took away so far."""

    def __init__(self, store: Store, view: str) -> None:
        self.view = view
        self.raw = view == RAW_PRIVATE
        self._engine = None if self.raw else store.engine()
        self._tally = LossTally(POLICY)

    def rows(self, rows: list[archive.Row]) -> list[archive.Row]:
        """The rows as the view shows them."""
        if self.raw:
            return rows
        return [self._row(row) for row in rows]

    def _row(self, row: archive.Row) -> archive.Row:
        public = self._public(row)
        return archive.row_of(
            public, seq=row.seq, rev=row.rev, tier=row.tier, instant=row.instant, digest=public.digest()
        )

    def values(self, rows: Sequence[archive.Row]) -> Iterator[dict[str, JsonValue]]:
        """The records as JSON objects."""
        for row in rows:
            yield (archive.record_of(row) if self.raw else self._public(row)).to_json()

    def text(self, text: str) -> str:
        """A text beside records, such as the id of a deleted one."""
        if self._engine is None:
            return text
        from qiju.redaction import scrub_public

        return scrub_public(text, engine=self._engine)[0]

    def loss(self) -> LossReport:
        return LossReport() if self.raw else self._tally.report()

    def _public(self, row: archive.Row) -> record.Record:
        assert self._engine is not None
        private = archive.record_of(row)
        public = record.build(public_record(self._engine, private))
        for name in record.FIELDS:
            before, after = getattr(private, name), getattr(public, name)
            if before != after:
                self._tally.add(name, "not_allowed" if name == "redactions" else "redacted")
        if dropped := sum(name not in public.extra for name in private.extra):
            self._tally.add("extra", "not_allowed", dropped)
        if changed := sum(name in public.extra and public.extra[name] != private.extra[name] for name in private.extra):
            self._tally.add("extra", "redacted", changed)
        return public
