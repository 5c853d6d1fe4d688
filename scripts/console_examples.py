"""Run the examples in the documentation, and compare or write what they print.

    python scripts/console_examples.py docs/tutorial.md          # compare
    python scripts/console_examples.py --write docs/tutorial.md  # put today's output into the page

A `console` block has commands after `$ ` (a long one goes on after `> `) and what they print, standard error included.
An `sh` block has commands alone. All blocks of a page run in their order in one shell session, in a HOME of its own,
and every command must succeed unless its block ends in a line that prints its exit code (`; echo $?`). What differs
from run to run (times, ids, digests, markers, sizes) is compared as such; a line `...` in the page stands for any
number of lines. A comment `<!-- setup: ... -->` holds commands that a reader does not see.

`python` blocks belong to the tests of their pages; `json` and `toml` blocks must parse.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PIECE = re.compile(
    r"^<!-- setup:\n(?P<setup>.*?)^-->$|^```(?P<kind>\w+)(?P<more>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
SESSION = "7b1f6a52-0c5e-4d0a-9a53-3f2f3d1c8e10"
SECONDS = 120.0

MASKS = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?", "TIME"),
    (r"\b\d{8}T?-?\d{6}\d*Z?\b", "STAMP"),
    (r"\b\d{4}-\d\d-\d\d\b", "DATE"),
    (r"\b(just now|\d+ (second|minute|hour|day)s? ago|\d+[smhd] ago)\b", "AGO"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{32,64}\b", "DIGEST"),
    (r"(\[REDACTED:[a-z0-9_]+:)[0-9a-f]{8}\]", r"\1MARK]"),
    (r"\bq[A-Za-z0-9_-]{40,}", "CURSOR"),
    (r"\b\d+(\.\d+)? ?(ms|seconds?|s)\b", "SECONDS"),
    (r"\b\d[\d,.]* ?(bytes|B|KB|MB|KiB|MiB|kB)\b", "SIZE"),
    (r'("(?:size_bytes|bytes|[a-z_]*bytes)": )\d+', r"\1SIZE"),
    (r"\b(pid|uid) \d+", r"\1 N"),
    (r"\b3\.\d+\.\d+(\.\d+)?\b", "VERSION"),
    (r" +$", ""),
)


class Command(NamedTuple):
    """One command, as typed, with what the page says it prints; None: the page does not say."""

    typed: str
    expected: str | None


class Shell:
    """A shell session of one page: its folder, variables and files go on from command to command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.user = self.folder / "home" / "me"
        self.state = self.folder / "state"
        programs = self.folder / "bin"
        for one in (self.user, programs):
            one.mkdir(parents=True)
        qiju = programs / "qiju"
        qiju.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m qiju "$@"\n', encoding="utf-8")
        qiju.chmod(0o755)
        kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH", "VIRTUAL_ENV") if name in os.environ}
        self.env = {
            **kept,
            "HOME": str(self.user),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "TZ": "UTC",
            "TERM": "dumb",
            "COLUMNS": "100",
            "EDITOR": "true",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "QIJU_SESSION_ID": SESSION,
        }
        self.state.write_text(f"cd {shlex.quote(str(self.user))}\n", encoding="utf-8")

    def run(self, typed: str) -> tuple[int, str]:
        """Exit code and output of a command, paths as they would be for a person named `me`."""
        state = shlex.quote(str(self.state))
        # `set -a`: what a command assigns is exported, and so found again by the next one.
        keep = f'{{ export -p; printf "cd %q\\n" "$PWD"; }} > {state}'
        script = f"set -a\n. {state}\n{typed}\nqiju_code=$?\n{keep}\nexit $qiju_code\n"
        done = subprocess.run(
            ["bash", "-c", script],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, done.stdout.decode("utf-8").replace(str(self.folder), "")


def commands(kind: str, body: str) -> list[Command]:
    """The commands of a block."""
    if kind == "sh":
        return [Command(line, None) for line in body.splitlines() if line.strip() and not line.startswith("#")]
    found: list[Command] = []
    typed: list[str] = []
    said: list[str] = []

    def close() -> None:
        if typed:
            found.append(Command("\n".join(typed), "\n".join(said)))
            typed.clear()
            said.clear()

    for line in body.splitlines():
        if line.startswith("$ "):
            close()
            typed.append(line[2:])
        elif line.startswith("> ") and typed and not said:
            typed.append(line[2:])
        elif line == ">" and typed and not said:
            typed.append("")
        else:
            said.append(line)
    close()
    return found


def masked(text: str) -> list[str]:
    """The lines of an output with everything that differs from run to run replaced."""
    for pattern, stands in MASKS:
        text = re.sub(pattern, stands, text, flags=re.MULTILINE)
    return [re.sub(r"(?<=\S) {2,}", "  ", line) for line in text.strip("\n").splitlines()]


def same(expected: str, actual: str) -> bool:
    """Whether an output is what the page says, `...` standing for any lines."""
    wanted = "\n".join(re.escape(line) if line.strip() != "..." else "@any@" for line in masked(expected))
    pattern = re.sub(r"@any@\n?", r"(?:.*\n)*?", wanted + "\n")
    return re.fullmatch(pattern, "\n".join(masked(actual)) + "\n") is not None


def run_page(path: Path, *, write: bool = False) -> list[str]:
    """Run all examples of a page; what is wrong, one text a fault. `write` puts the outputs into the page instead."""
    text = path.read_text(encoding="utf-8")
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="qiju-docs-") as name:
        shell = Shell(Path(name))

        def replaced(match: re.Match[str]) -> str:
            line = text.count("\n", 0, match.start()) + 1
            where = f"{path.name}:{line}"
            if match["setup"] is not None:
                code, out = shell.run(match["setup"])
                if code:
                    faults.append(f"{where}: the setup failed ({code})\n{out}")
                return match[0]
            kind = match["kind"]
            if kind in ("json", "toml"):
                faults.extend(_unparsable(where, kind, match["body"]))
            if kind not in ("console", "sh") or "norun" in match["more"]:
                return match[0]
            lines = []
            for command in commands(kind, match["body"]):
                code, out = shell.run(command.typed)
                out = "\n".join(one.rstrip() for one in out.strip("\n").splitlines())
                if code:
                    faults.append(f"{where}: exit {code}\n$ {command.typed}\n{out}")
                elif command.expected is not None and not write and not same(command.expected, out):
                    diff = difflib.unified_diff(masked(command.expected), masked(out), "page", "today", lineterm="")
                    faults.append(f"{where}:\n$ {command.typed}\n" + "\n".join(diff))
                lines.append("$ " + command.typed.replace("\n", "\n> ").replace("> \n", ">\n"))
                keep = command.expected is not None and "..." in command.expected.splitlines()
                shown = command.expected if keep and same(str(command.expected), out) else out
                if shown:
                    lines.append(str(shown))
            if kind == "sh":
                return match[0]
            return f"```console{match['more']}\n" + "\n".join(lines) + "\n```"

        new = PIECE.sub(replaced, text)
    if write and new != text:
        path.write_text(new, encoding="utf-8", newline="\n")
    return faults


def _unparsable(where: str, kind: str, body: str) -> list[str]:
    try:
        if kind == "toml":
            tomllib.loads(body)
        else:
            try:
                json.loads(body)
            except json.JSONDecodeError:  # one value a line is JSON, too
                for line in body.splitlines():
                    json.loads(line)
    except ValueError as error:
        return [f"{where}: this {kind} does not parse: {error}"]
    return []


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--write"]
    if shutil.which("bash") is None:
        print("the examples need bash", file=sys.stderr)
        return 1
    faults = [fault for word in words for fault in run_page(Path(word), write="--write" in sys.argv)]
    print("\n\n".join(faults) or f"{len(words)} pages: every example does what it says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
