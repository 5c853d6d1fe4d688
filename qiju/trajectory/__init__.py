"""The trajectory API: a session's append-only facts, in bounded, snapshot-fixed pages under a privacy view.

    from qiju.trajectory import PrivacyView, TrajectoryQuery, default_reader, iter_records

    with default_reader("~/.local/share/qiju") as reader:
        for record in iter_records(reader, TrajectoryQuery(session_id="..."), view=PrivacyView.RAW_PRIVATE):
            ...

Importing this package loads none of its parts; each name brings its own module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.errors import BoundedReadUnsupported, CursorRejected
    from qiju.trajectory.exchange import (
        EXCHANGE_LOG_SCHEMA_VERSION,
        ExchangeAnomaly,
        ExchangeItem,
        ExchangeLog,
        MessageItem,
        SteeringItem,
        ToolCall,
        ToolCallBatch,
        ToolResultItem,
        exchange_from_records,
    )
    from qiju.trajectory.exporter import CanonicalTrajectoryExporter, read_artifact
    from qiju.trajectory.journal import JournalTrajectoryStore
    from qiju.trajectory.paging import iter_records, read_page
    from qiju.trajectory.readers import StoreTrajectoryReader, default_reader
    from qiju.trajectory.sources import SnapshotSource, TrajectoryStore
    from qiju.trajectory.store import SqliteTrajectoryStore
    from qiju.trajectory.types import (
        ExportArtifact,
        ExportCancelled,
        FileExportReceipt,
        LossEntry,
        LossReport,
        PrivacyView,
        RecordKind,
        Trajectory,
        TrajectoryCursor,
        TrajectoryDraft,
        TrajectoryPage,
        TrajectoryQuery,
        TrajectoryRecord,
    )

_MODULES = {
    "qiju.errors": ("BoundedReadUnsupported", "CursorRejected"),
    "qiju.trajectory.exchange": (
        "EXCHANGE_LOG_SCHEMA_VERSION",
        "ExchangeAnomaly",
        "ExchangeItem",
        "ExchangeLog",
        "MessageItem",
        "SteeringItem",
        "ToolCall",
        "ToolCallBatch",
        "ToolResultItem",
        "exchange_from_records",
    ),
    "qiju.trajectory.exporter": ("CanonicalTrajectoryExporter", "read_artifact"),
    "qiju.trajectory.journal": ("JournalTrajectoryStore",),
    "qiju.trajectory.paging": ("iter_records", "read_page"),
    "qiju.trajectory.readers": ("StoreTrajectoryReader", "default_reader"),
    "qiju.trajectory.sources": ("SnapshotSource", "TrajectoryStore"),
    "qiju.trajectory.store": ("SqliteTrajectoryStore",),
    "qiju.trajectory.types": (
        "ExportArtifact",
        "ExportCancelled",
        "FileExportReceipt",
        "LossEntry",
        "LossReport",
        "PrivacyView",
        "RecordKind",
        "Trajectory",
        "TrajectoryCursor",
        "TrajectoryDraft",
        "TrajectoryPage",
        "TrajectoryQuery",
        "TrajectoryRecord",
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "EXCHANGE_LOG_SCHEMA_VERSION",
    "BoundedReadUnsupported",
    "CanonicalTrajectoryExporter",
    "CursorRejected",
    "ExchangeAnomaly",
    "ExchangeItem",
    "ExchangeLog",
    "ExportArtifact",
    "ExportCancelled",
    "FileExportReceipt",
    "JournalTrajectoryStore",
    "LossEntry",
    "LossReport",
    "MessageItem",
    "PrivacyView",
    "RecordKind",
    "SnapshotSource",
    "SqliteTrajectoryStore",
    "SteeringItem",
    "StoreTrajectoryReader",
    "ToolCall",
    "ToolCallBatch",
    "ToolResultItem",
    "Trajectory",
    "TrajectoryCursor",
    "TrajectoryDraft",
    "TrajectoryPage",
    "TrajectoryQuery",
    "TrajectoryRecord",
    "TrajectoryStore",
    "default_reader",
    "exchange_from_records",
    "iter_records",
    "read_artifact",
    "read_page",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
