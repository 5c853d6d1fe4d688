"""Plan Qiju's entry in the hook files of the hosts that have one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from qiju import hosts
from qiju.hosts import HookFile
from qiju.install import hookfile
from qiju.install.jsonedit import NotPlainJson
from qiju.install.plan import Note, Plan, Step, Unreadable, digest, look, made_for
from qiju.install.skillfiles import Place, belongs
from qiju.registry import ManifestRow

_MARK = b"\xef\xbb\xbf"


def hook_path(name: str, hooks: HookFile, place: Place) -> Path:
    """The hook file of a host at one level."""
    if place.root is not None:
        return place.root / hooks.project
    return hosts.user_path(hosts.row(name), hooks.user, place.env, place.user_home)


def plan_hooks(place: Place, names: Collection[str], rows: Mapping[str, ManifestRow]) -> Plan:
    """Add the entry for each named host that has hooks; the others are named."""
    plan = Plan()
    for name in names:
        hooks = hosts.row(name).hooks
        if hooks is None:
            where = place.skills_folder(hosts.row(name))
            plan.notes.append(Note(where, "hook", "unsupported", f"{name} has no file for session hooks", name))
            continue
        path = hook_path(name, hooks, place)
        found = look(path)
        if isinstance(found, Unreadable):
            plan.notes.append(Note(path, "hook", "blocked", f"{found.what}; no hook is added", name))
            continue
        try:
            mark, text = _decoded(found or b"")
            patched = hookfile.add(text, hooks, name)
        except (NotPlainJson, UnicodeDecodeError) as error:
            plan.notes.append(Note(path, "hook", "unusable", f"not plain JSON ({error}); add the hook by hand", name))
            continue
        after = mark + patched.text.encode()
        if after == found:
            plan.notes.append(Note(path, "hook", "current", "the hook is there", name))
            continue
        earlier = rows.get(str(path))
        old: dict[str, Any] = earlier.detail if earlier else {"missing": found is None}
        detail = {**old, "pieces": [*old.get("pieces", []), *patched.pieces]}
        row = ManifestRow(str(path), "hook", (name,), place.level, digest(after), detail)
        plan.steps.append(Step(path, "hook", found, after, "add the reminder to the host's hooks", row=row))
    return plan


def plan_unhook(place: Place, names: Collection[str], rows: Mapping[str, ManifestRow]) -> Plan:
    """Take the entry of the named hosts out again, and the file with it when Qiju made it and nothing else is in it."""
    plan = Plan()
    for name in names:
        hooks = hosts.row(name).hooks
        if hooks is None:
            continue
        path = hook_path(name, hooks, place)
        row = rows.get(str(path))
        row = row if row and row.root == place.level else None
        found = look(path)
        if found is None:
            if row:
                plan.forget.append(row.path)
                plan.made += made_for(row)
            continue
        if isinstance(found, Unreadable) or (row is None and not belongs(path, place)):
            continue
        try:
            mark, text = _decoded(found)
            rest = hookfile.take(text, list(row.detail.get("pieces", [])) if row else [])
        except (NotPlainJson, UnicodeDecodeError) as error:
            if b"qiju hook " in found:
                plan.notes.append(
                    Note(path, "hook", "unusable", f"not plain JSON ({error}); remove the hook by hand", name)
                )
            continue
        after: bytes | None = mark + rest.encode()
        if after == found:
            if row:
                plan.forget.append(row.path)
            continue
        if row and row.detail.get("missing") and _is_bare(rest, hooks):
            after = None
        plan.steps.append(Step(path, "hook", found, after, "take the reminder out of the host's hooks"))
        if row:
            plan.made += made_for(row)
    return plan


def _decoded(content: bytes) -> tuple[bytes, str]:
    """The byte order mark, if any, and the text after it."""
    if content.startswith(_MARK):
        return _MARK, content[len(_MARK) :].decode("utf-8")
    return b"", content.decode("utf-8")


def _is_bare(text: str, hooks: HookFile) -> bool:
    """Whether nothing is left but what Qiju put there to make the file valid."""
    return not text.strip() or hookfile.is_bare(text, hooks)
