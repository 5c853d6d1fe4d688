"""Every failure a user can meet: its sentence, the hint that repairs it, and the exit code scripts rely on.

The class is the contract. `kind` is the stable word in JSON errors, `exit_code` what the shell sees, `retryable`
whether the same call may succeed later. The docs table of exit codes is generated from this tree, and one handler
(`qiju.cli`) turns any of these into output. Messages name what is wrong and where; they never hold a record's text
or a secret.

    QijuError                1  failed
      UsageError             2  the call's words are off
      BadConfiguration       1  a marker or config.toml that cannot be used
      InvalidRecord          1  a body that is not a record (line and column named)
        InvalidJson          1  the text is not strict JSON
      StorageFailed          1  disk full, I/O error, permission
        StoreDamaged         1  SQLite cannot read the file
        ReadOnlyStore        1  the store cannot be written
      SearchTimeout          1  a pattern ran out of its time
      BoundedReadUnsupported 1  a source without bounded snapshots
      NotFound               3
        NothingToRedact      3
      Refused                4
        IdConflict           4  the id exists with other content
        AmbiguousId          4  the id or prefix fits several records
        MarkerConflict       4  --project against the project's marker
        NoProject            4  a bare directory has no identity to log under
        CursorRejected       4
        NewerSchema          4
        VerificationFailed   4
        RedactionIncomplete  4
        ExchangeConflict     4  facts of an exchange log contradict each other
      StoreBusy              5  another process holds the write lock
      Interrupted          130
"""

from __future__ import annotations


class QijuError(Exception):
    """Base of all failures. `str(error)` is the sentence; `hint` says what to do, or is empty."""

    kind = "failed"
    exit_code = 1
    retryable = False
    meaning = "the command failed"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def to_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "message": str(self),
            "hint": self.hint,
            "retryable": self.retryable,
            "exit_code": self.exit_code,
        }


class UsageError(QijuError):
    kind = "usage"
    exit_code = 2
    meaning = "the options or arguments are wrong"


class BadConfiguration(QijuError):
    """A marker or `config.toml` that cannot be used; the message names the file and the key."""

    kind = "bad_configuration"
    meaning = "a marker or configuration file cannot be used"


class InvalidRecord(QijuError):
    kind = "invalid_record"
    meaning = "the body is not a valid record"


class InvalidJson(InvalidRecord):
    """Text that is not strict JSON; `line` and `column` count from 1."""

    kind = "invalid_json"
    meaning = "the body is not strict JSON"

    def __init__(self, message: str, *, line: int = 0, column: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.column = column


class StorageFailed(QijuError):
    kind = "storage"
    meaning = "the disk or the operating system refused"


class StoreDamaged(StorageFailed):
    kind = "store_damaged"
    meaning = "the store's file is damaged"


class ReadOnlyStore(StorageFailed):
    kind = "read_only"
    meaning = "the store cannot be written"


class SearchTimeout(QijuError):
    kind = "search_timeout"
    meaning = "a search pattern ran out of its time"


class BoundedReadUnsupported(QijuError):
    """The selected source has no bounded snapshot capability; its history is never materialised as a fallback."""

    kind = "bounded_read_unsupported"
    meaning = "the source cannot be read in bounded pages"


class NotFound(QijuError):
    kind = "not_found"
    exit_code = 3
    meaning = "no such record, project or file"


class NothingToRedact(NotFound):
    kind = "nothing_to_redact"
    meaning = "the value occurs nowhere and nothing is pending"


class Refused(QijuError):
    kind = "refused"
    exit_code = 4
    meaning = "refused to keep data safe"


class IdConflict(Refused):
    kind = "id_conflict"
    meaning = "the id exists with other content"


class AmbiguousId(Refused):
    kind = "ambiguous_id"
    meaning = "the id or prefix fits several records"


class MarkerConflict(Refused):
    kind = "marker_conflict"
    meaning = "--project contradicts the project's marker"


class NoProject(Refused):
    kind = "no_project"
    meaning = "a bare directory has no project identity"


class CursorRejected(Refused):
    """A cursor, or its source, no longer describes the captured snapshot."""

    kind = "cursor_rejected"
    meaning = "the cursor does not belong to this query, view, store or snapshot any more"


class NewerSchema(Refused):
    kind = "newer_schema"
    meaning = "the store was written by a newer Qiju"


class VerificationFailed(Refused):
    kind = "verification_failed"
    meaning = "verification found something wrong"


class RedactionIncomplete(Refused):
    kind = "redaction_incomplete"
    meaning = "the redaction could not be completed or proven"


class ExchangeConflict(Refused):
    """An exchange log would contradict itself; the message names the batch and call ids, never their content."""

    kind = "exchange_conflict"
    meaning = "a fact contradicts the exchange log"


class StoreBusy(QijuError):
    kind = "store_busy"
    exit_code = 5
    retryable = True
    meaning = "another process holds the write lock; try again"


class Interrupted(QijuError):
    kind = "interrupted"
    exit_code = 130
    retryable = True
    meaning = "interrupted by the user"
