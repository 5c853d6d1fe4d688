"""From a session to a record draft: what the facts say, for an agent or a person to finish and log.

Only found things are written down: what was asked, which files calls named as their target, which calls failed and how,
which steps the session's own lists left open. Nothing is concluded from them; a section with nothing in it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from qiju.trajectory.types import RecordKind
from qiju.transcripts.turns import Entry, opens_turn, turns
from qiju.transcripts.words import content_text, exit_code, inert

if TYPE_CHECKING:
    from qiju.jsontext import JsonValue
    from qiju.trajectory.types import TrajectoryRecord

    JsonObject = dict[str, JsonValue]

MOST = 50  # items of a section
TITLE = 120
LINE = 300
ANSWER = 2000

# Tools that write the file they name, and the arguments that name it.
WRITERS = frozenset(
    {"write", "edit", "multiedit", "notebookedit", "create", "create_file", "write_file", "edit_file", "str_replace"}
    | {"str_replace_editor", "str_replace_based_edit_tool", "str_replace_based_edit", "replace", "insert"}
)
FILE_ARGUMENTS = ("file_path", "path", "notebook_path", "filename", "target_file")
READING_COMMANDS = ("view", "read")
PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
SHELLS = frozenset(
    {
        "bash",
        "shell",
        "shell_command",
        "exec_command",
        "local_shell",
        "run_command",
        "execute_command",
        "run_terminal_cmd",
    }
    | {"powershell", "container.exec", "run_shell_command"}
)
# What hosts put into a person's mouth: context, commands and their output.
BY_HOST = (
    "<command-",
    "<local-command",
    "<environment_context",
    "<user_instructions",
    "<system-reminder",
    "<INSTRUCTIONS",
    "<bash-",
    "<task-notification",
    "<turn_aborted",
    "# AGENTS.md instructions",
    "Caveat: The messages below",
)
COUNTED = {"message": "messages", "tool_call": "tool calls", "steering": "steering", "session_record": "records"}
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
CLOSED = frozenset({"completed", "complete", "done", "cancelled", "canceled", "deleted"})


def draft_record(session_id: str, records: Iterable[TrajectoryRecord]) -> JsonObject:
    """The fields of a record (`title`, `body_md`, `next_steps`, ...) drawn from one session's records, in order."""
    found = _Found()
    for turn in turns(found.watch(records)):
        for entry in turn.entries:
            found.entry(entry)
    return found.record(session_id)


class _Found:
    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self.asked: list[str] = []
        self.steered: list[str] = []
        self.files: dict[str, str] = {}
        self.failures: list[str] = []
        self.unanswered: list[str] = []
        self.steps: dict[tuple[str | None, str], list[tuple[str, str]]] = {}
        self.tasks: dict[str, tuple[str, str]] = {}
        self.answer = ""
        self.model = ""
        self.first = self.last = ""
        self.counts: dict[str, int] = {}

    def watch(self, records: Iterable[TrajectoryRecord]) -> Iterable[TrajectoryRecord]:
        for record in records:
            self.counts[record.kind.value] = self.counts.get(record.kind.value, 0) + 1
            if record.ts:
                self.first = self.first or record.ts
                self.last = record.ts
            yield record

    def entry(self, entry: Entry) -> None:
        record, payload = entry.record, entry.record.payload
        if isinstance(model := payload.get("model"), str) and model and not model.startswith("<"):
            self.model = model
        if record.kind is RecordKind.STATE:
            field = TITLES.get(str(payload.get("type")))
            data = payload.get("data")
            title = data.get(field) if field and isinstance(data, dict) else None
            if isinstance(title, str) and title.strip():
                self.titles[str(payload["type"])] = one_line(title, TITLE)
        elif record.kind is RecordKind.MESSAGE:
            said = content_text(payload.get("content")).strip()
            if opens_turn(record) and record.run_id is None and said and not said.startswith(BY_HOST):
                self.asked.append(one_line(said, LINE))
            elif payload.get("role") == "assistant" and record.run_id is None and said:
                self.answer = said
        elif record.kind is RecordKind.STEERING:
            said = content_text(payload.get("text", payload.get("content"))).strip()
            if said and payload.get("status") != "removed":
                self.steered.append(one_line(said, LINE))
        elif record.kind is RecordKind.TOOL_CALL:
            self.call(entry)

    def call(self, entry: Entry) -> None:
        payload, status = entry.record.payload, entry.status
        name = payload.get("name")
        tool = name if isinstance(name, str) else "unnamed tool"
        arguments = payload.get("arguments")
        given = arguments if isinstance(arguments, dict) else {}
        how = {"failed": " (the call failed)", "no result": " (no result recorded)"}.get(status, "")
        for path in touched(tool, given):
            # A file that one call wrote stays written, whatever a later call on it did.
            if self.files.get(path) != "":
                self.files[path] = how
        self.open_steps(entry, tool.lower(), given)
        said = command(tool, given)
        what = f"`{one_line(said, LINE)}`" if said else f"{tool} {_target(given)}".strip()
        if status == "failed":
            result = entry.results[-1].payload
            code = exit_code(result)
            words = f": {_complaint(content_text(result.get('output')))}"
            self.failures.append(f"{what}{f', exit code {code}' if code is not None else ''}{words}".rstrip(": "))
        elif status == "no result":
            self.unanswered.append(what)

    def open_steps(self, entry: Entry, tool: str, given: JsonObject) -> None:
        run = entry.record.run_id
        for field, words in (("todos", "content"), ("plan", "step")):
            steps = given.get(field)
            if isinstance(steps, list):
                self.steps[run, field] = [_step(step, words) for step in steps]
        subject = given.get("subject")
        if tool == "taskcreate" and isinstance(subject, str) and entry.status != "failed":
            self.tasks[_task_number(entry) or f"+{len(self.tasks)}"] = (subject, "pending")
        number = given.get("taskId")
        if tool == "taskupdate" and isinstance(number, str) and number in self.tasks:
            before = self.tasks[number]
            status, renamed = given.get("status"), given.get("subject")
            self.tasks[number] = (
                renamed if isinstance(renamed, str) else before[0],
                status if isinstance(status, str) else before[1],
            )

    def record(self, session_id: str) -> JsonObject:
        title = next((self.titles[name] for name in TITLES if name in self.titles), "")
        title = title or (one_line(self.asked[0], TITLE) if self.asked else f"Session {session_id}")
        listed = [step for steps in self.steps.values() for step in steps] + list(self.tasks.values())
        left = [(text, status) for text, status in listed if text and status not in CLOSED]
        told = ", ".join(f"{label}: {self.counts[kind]}" for kind, label in COUNTED.items() if kind in self.counts)
        when = f", {self.first} to {self.last}" if self.first else ""
        body = [
            f"Drawn from the facts of session `{inert(session_id)}` ({told}{when}); check and finish before logging.",
            _section("Asked", self.asked),
            *([_section("Asked while it worked", self.steered)] if self.steered else []),
            _section("Files touched", [f"{inert(path)}{how}" for path, how in self.files.items()]),
            _section("Commands and calls that failed", self.failures),
            _section("Calls without a result", self.unanswered),
            _section("Open steps, as found", [f"{text} ({status})" if status else text for text, status in left]),
            "## Last answer\n\n" + (_quoted(self.answer) if self.answer else "None found."),
        ]
        draft: JsonObject = {
            "title": title,
            "body_md": "\n\n".join(body),
            "tags": [],
            "search_terms": [],
            "next_steps": [text for text, _ in left[:MOST]],
        }
        if self.model:
            draft["model"] = self.model
        return draft


def touched(tool: str, given: JsonObject) -> list[str]:
    """The files that a call names as the ones it writes."""
    if tool.lower() in WRITERS and given.get("command") not in READING_COMMANDS:
        named = (given.get(key) for key in FILE_ARGUMENTS)
        return [path for path in named if isinstance(path, str) and path][:1]
    texts = (value if isinstance(value, str) else content_text(value) for value in given.values())
    patches = (text for text in texts if "*** Begin Patch" in text)
    return [(one or two).strip() for text in patches for one, two in PATCHED.findall(text.replace("\\n", "\n"))]


def command(tool: str, given: JsonObject) -> str:
    """The command line of a shell call, or ''."""
    if tool.lower() not in SHELLS:
        return ""
    said = given.get("command", given.get("cmd"))
    if said is None and isinstance(action := given.get("action"), dict):
        said = action.get("command")
    if isinstance(said, list):
        # `bash -lc SCRIPT` says no more than SCRIPT.
        words = [word for word in said if isinstance(word, str)]
        return words[2] if len(words) == 3 and words[1] in ("-lc", "-c") else " ".join(words)
    return said if isinstance(said, str) else ""


def one_line(text: str, most: int) -> str:
    """`text` on one line, inert, cut to `most` characters."""
    line = " ".join(inert(text).split())
    return line if len(line) <= most else line[: most - 3].rstrip() + "..."


def _target(given: JsonObject) -> str:
    value = next((given[key] for key in FILE_ARGUMENTS if isinstance(given.get(key), str)), "")
    return one_line(str(value), LINE)


def _complaint(output: str) -> str:
    """The first line of an output that says something; the exit code is told already."""
    lines = (line.strip() for line in output.splitlines())
    telling = (line for line in lines if line and not re.fullmatch(r"(Error: )?Exit code:? -?\d+", line))
    return one_line(next(telling, ""), LINE)


def _step(step: JsonValue, words: str) -> tuple[str, str]:
    if isinstance(step, dict):
        text, status = step.get(words), step.get("status")
        return (one_line(text, LINE) if isinstance(text, str) else "", status if isinstance(status, str) else "")
    return (one_line(step, LINE) if isinstance(step, str) else "", "")


def _task_number(entry: Entry) -> str | None:
    for result in entry.results:
        if found := re.search(r"[Tt]ask #(\d+)", content_text(result.payload.get("output"))[:400]):
            return found[1]
    return None


def _section(heading: str, items: list[str]) -> str:
    shown = [f"- {item}" for item in items[:MOST]]
    if len(items) > MOST:
        shown.append(f"- ... and {len(items) - MOST} more")
    return f"## {heading}\n\n" + ("\n".join(shown) if shown else "None found.")


def _quoted(text: str) -> str:
    kept = text if len(text) <= ANSWER else text[:ANSWER].rstrip() + " ..."
    return "\n".join(f"> {line}".rstrip() for line in inert(kept).split("\n"))
