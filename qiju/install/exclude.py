"""Keep `.qiju/` out of Git without touching a tracked file: one line in the repository's `info/exclude`.

The file of the common Git folder serves all worktrees. The line is added once for the whole repository; the manifest
row remembers the inserted bytes and the roots that asked for it, and the last of them takes it away again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qiju.install.plan import Note, Plan, Step, Unreadable, digest, look, made_for
from qiju.place.git import find_repository
from qiju.registry import ManifestRow

LINE = ".qiju/"
_SAME = {b".qiju", b".qiju/", b"/.qiju", b"/.qiju/", b"**/.qiju", b"**/.qiju/"}


def exclude_file(root: Path) -> Path | None:
    """The exclude file of the repository that contains `root`, or None outside of Git."""
    repository = find_repository(root)
    return repository.common_dir / "info" / "exclude" if repository else None


def plan_exclude(root: Path, rows: Mapping[str, ManifestRow]) -> Plan:
    """Add the line unless some line already says it."""
    plan = Plan()
    path = exclude_file(root)
    if path is None:
        return plan
    row = rows.get(str(path))
    found = look(path)
    if isinstance(found, Unreadable):
        plan.notes.append(Note(path, "exclude", "blocked", f"{found.what}; add the line {LINE} yourself"))
        return plan
    if found is not None and any(line.strip() in _SAME for line in found.splitlines()):
        plan.notes.append(Note(path, "exclude", "current", "already ignores .qiju/"))
        if row and str(root) not in row.detail.get("roots", []):
            roots = [*row.detail.get("roots", []), str(root)]
            plan.rows.append(row._replace(detail={**row.detail, "roots": roots}))
        return plan
    content = found or b""
    newline = b"\r\n" if b"\r\n" in content else b"\n"
    piece = (newline if content and not content.endswith(b"\n") else b"") + LINE.encode() + newline
    detail = {"pieces": [piece.decode()], "created": found is None, "roots": [str(root)]}
    after = content + piece
    new_row = ManifestRow(str(path), "exclude", (), "", digest(after), detail)
    plan.steps.append(Step(path, "exclude", found, after, "keep .qiju/ out of Git", row=new_row))
    return plan


def plan_unexclude(root: Path, rows: Mapping[str, ManifestRow]) -> Plan:
    """Take the line away when this root was the last that wanted it; a line that Qiju did not write stays."""
    plan = Plan()
    for row in rows.values():
        roots = row.detail.get("roots", [])
        if row.kind != "exclude" or str(root) not in roots:
            continue
        others = [each for each in roots if each != str(root)]
        path = Path(row.path)
        if others:
            plan.rows.append(row._replace(detail={**row.detail, "roots": others}))
            continue
        found = look(path)
        piece = str(row.detail.get("pieces", [""])[0]).encode()
        at = _line_at(found, piece) if isinstance(found, bytes) else -1
        if not isinstance(found, bytes) or at < 0:
            if isinstance(found, bytes):
                plan.notes.append(Note(path, "exclude", "modified", "the line was changed; it is left as it is"))
            plan.forget.append(row.path)
            continue
        after: bytes | None = found[:at] + found[at + len(piece) :]
        if row.detail.get("created") and not after:
            after = None
        plan.steps.append(Step(path, "exclude", found, after, "stop ignoring .qiju/"))
        plan.made += made_for(row)
    return plan


def _line_at(content: bytes, piece: bytes) -> int:
    """Where `piece` stands as whole lines, or -1."""
    at = content.rfind(piece)
    whole = at <= 0 or content[at - 1 : at] == b"\n" or piece[:1] in (b"\r", b"\n")
    return at if whole else -1
