"""A run folder as drafts: `manifest.json`, `events.jsonl` and `steps.jsonl`, as agent runtimes leave them.

The manifest names the run and becomes a state. An event line becomes an event. A step line becomes a state, except
that its actions become tool calls of one batch, and its action results the results of those calls, when each action
has a name and there is one result for each: otherwise both stay in the state, since pairing them would be a guess.
Events come before the step whose `step_id` they carry, each file in its own order. Unknown keys are kept.

Record ids follow from the run and the line, so importing a folder twice adds nothing, and importing it again when the
run has gone on adds what is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qiju import jsontext
from qiju.errors import InvalidJson, InvalidRecord, NotFound, StorageFailed
from qiju.legacy import lines
from qiju.trajectory.types import LossTally, RecordKind, TrajectoryDraft

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue

MANIFEST, EVENTS, STEPS = "manifest.json", "events.jsonl", "steps.jsonl"


def is_run_folder(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and ((folder / EVENTS).is_file() or (folder / STEPS).is_file())


def run_folder_files(folder: Path) -> list[Path]:
    return [path for name in (MANIFEST, EVENTS, STEPS) if (path := folder / name).is_file()]


def run_folder_drafts(folder: Path, loss: LossTally) -> Iterator[TrajectoryDraft]:
    """Stream the folder's drafts. Lines that hold no object are counted in `loss` and passed over.

    Raises `NotFound` without a manifest, `InvalidJson` or `InvalidRecord` for one that is no JSON object.
    """
    manifest = _manifest(folder / MANIFEST)
    run = _Run(manifest, folder.name)
    yield run.manifest()
    events = _objects(folder / EVENTS, loss)
    waiting = next(events, None)
    for number, step in _objects(folder / STEPS, loss):
        step_id = step.get("step_id")
        while waiting is not None and _not_after(waiting[1].get("step_id"), step_id):
            yield run.event(*waiting)
            waiting = next(events, None)
        yield from run.step(number, step)
    while waiting is not None:
        yield run.event(*waiting)
        waiting = next(events, None)


class _Run:
    def __init__(self, manifest: dict[str, JsonValue], folder_name: str) -> None:
        self._manifest = manifest
        self.run_id = _first_text(manifest, "run_id", "id") or folder_name
        self.session_id = _first_text(manifest, "session_id") or self.run_id
        self.work_item_id = _first_text(manifest, "work_item_id", "task_id")

    def manifest(self) -> TrajectoryDraft:
        # The manifest is rewritten when a run ends; its digest in the id keeps both states, each once.
        digest = jsontext.digest(jsontext.canonical(self._manifest))
        ts = _first_text(self._manifest, "updated_at", "created_at", "ts")
        return self._draft(RecordKind.STATE, {"type": "run", **self._manifest}, f"manifest-{digest[:12]}", ts)

    def event(self, number: int, event: dict[str, JsonValue]) -> TrajectoryDraft:
        payload = {key: value for key, value in event.items() if key not in ("run_id", "ts")}
        return self._draft(RecordKind.EVENT, payload, f"event-{number}", _first_text(event, "ts"))

    def step(self, number: int, step: dict[str, JsonValue]) -> Iterator[TrajectoryDraft]:
        rest, ts = dict(step), _first_text(step, "ts")
        calls = _calls(step)
        if calls:
            rest = {key: value for key, value in step.items() if key not in ("actions", "action_results")}
        yield self._draft(RecordKind.STATE, {"type": "step", **rest}, f"step-{number}", ts)
        batch = f"{self.run_id}:step-{number}"
        for index, (name, arguments, _result) in enumerate(calls):
            payload: dict[str, JsonValue] = {"batch_id": batch, "call_id": f"{batch}.{index}", "name": name}
            payload["arguments"] = arguments
            yield self._draft(RecordKind.TOOL_CALL, payload, f"step-{number}-call-{index}", ts)
        for index, (_name, _arguments, result) in enumerate(calls):
            payload = {"batch_id": batch, "call_id": f"{batch}.{index}", "output": result}
            payload["is_error"] = _failed(result)
            yield self._draft(RecordKind.TOOL_RESULT, payload, f"step-{number}-result-{index}", ts)

    def _draft(self, kind: RecordKind, payload: dict[str, JsonValue], tail: str, ts: str | None) -> TrajectoryDraft:
        return TrajectoryDraft(
            self.session_id,
            kind,
            payload,
            record_id=f"{self.run_id}:{tail}",
            run_id=self.run_id,
            work_item_id=self.work_item_id,
            ts=ts,
        )


def _calls(step: dict[str, JsonValue]) -> list[tuple[str, JsonValue, JsonValue]]:
    """(name, arguments, result) of each action, when all of them say that plainly; else nothing."""
    actions, results = step.get("actions"), step.get("action_results")
    if not isinstance(actions, list) or not isinstance(results, list) or len(actions) != len(results):
        return []
    calls: list[tuple[str, JsonValue, JsonValue]] = []
    for action, result in zip(actions, results, strict=True):
        name = _first_text(action, "name", "tool", "tool_name") if isinstance(action, dict) else None
        if name is None or not isinstance(action, dict):
            return []
        known = next((key for key in ("arguments", "args", "input") if key in action), None)
        extra = set(action) - {"name", "tool", "tool_name", known}
        # An action that says more than name and arguments is kept whole rather than in part.
        arguments: JsonValue = action if extra or known is None else action[known]
        calls.append((name, arguments, result))
    return calls


def _failed(result: JsonValue) -> bool | None:
    """What a result says of its success; None when it says nothing."""
    if not isinstance(result, dict):
        return None
    if isinstance(result.get("ok"), bool):
        return not result["ok"]
    if isinstance(result.get("status"), str):
        return result["status"] in ("error", "failed", "failure", "timeout")
    return True if result.get("error") else None


def _not_after(left: JsonValue, right: JsonValue) -> bool:
    return isinstance(left, int) and isinstance(right, int) and left <= right


def _manifest(path: Path) -> dict[str, JsonValue]:
    try:
        value = jsontext.parse(path.read_bytes(), name="manifest.json")
    except FileNotFoundError:
        raise NotFound(f"{path.parent} is no run folder: it has no manifest.json") from None
    except InvalidJson as error:
        error.add_note(f"in {path}")
        raise
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    if not isinstance(value, dict):
        raise InvalidRecord(f"{path} holds no JSON object")
    return value


def _objects(path: Path, loss: LossTally) -> Iterator[tuple[int, dict[str, JsonValue]]]:
    if not path.is_file():
        return
    for item in lines.read_values(path):
        if isinstance(item, lines.Found):
            yield item.line, item.value
        else:
            loss.add(path.name, item.kind)


def _first_text(value: dict[str, JsonValue], *names: str) -> str | None:
    for name in names:
        text = value.get(name)
        if isinstance(text, str) and text:
            return text
    return None
