"""A pattern's time limit that holds: Python cannot interrupt `re` from a thread, since matching keeps the GIL.

On the main thread of a POSIX system an interval timer does it: matching looks for signals, and the handler raises.
Anywhere else (Windows, a server's worker thread) a pattern that can run away is matched in a child process, which is
killed when its time is up; a pattern that cannot is matched here, with a look at the clock between two texts. Ctrl-C
works in each.
"""

from __future__ import annotations

import re
import time
from types import TracebackType

from qiju.errors import SearchTimeout, UsageError
from qiju.search.trigrams import runs_away

FLAGS = re.IGNORECASE | re.MULTILINE


def source(text: str) -> str:
    """The pattern as it is compiled: NFC, like the text it runs over."""
    import unicodedata

    return unicodedata.normalize("NFC", text)


def compiled(text: str) -> re.Pattern[str]:
    """The pattern of a query, or `UsageError` naming the position of its fault."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FutureWarning about set syntax is for the author of code, not of a query
            return re.compile(source(text), FLAGS)
    except re.error as error:
        where = f" at position {error.pos}" if error.pos is not None else ""
        raise UsageError(
            f"the pattern is not a regular expression: {error.msg}{where}",
            hint="Python's syntax; put \\ before a character that is meant literally, or leave out --regex",
        ) from None
    except (OverflowError, RecursionError, MemoryError):
        raise UsageError(
            "the pattern is too large to compile", hint="shorten it, or lower its counts in braces"
        ) from None


class Watch:
    """A context in which `search(text)` tells whether the pattern occurs, until `seconds` have passed in all."""

    def __init__(self, pattern: re.Pattern[str], seconds: float, *, how: str = "") -> None:
        """`how` forces "alarm", "child" or "clock"; otherwise the surest way that this thread and system allow."""
        self.pattern, self.seconds = pattern, seconds
        self.how = how or _best(pattern)
        self.ends = time.monotonic() + seconds
        self._child: _Child | None = None
        self._before: object = None

    def __enter__(self) -> Watch:
        self.ends = time.monotonic() + self.seconds
        if self.how == "alarm":
            import signal

            self._before = signal.signal(signal.SIGALRM, self._expired)
        elif self.how == "child":
            self._child = _Child(self.pattern)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.how == "alarm":
            import signal

            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)  # type: ignore[arg-type]
        elif self._child is not None:
            self._child.close()

    def search(self, text: str) -> bool:
        """Raises `SearchTimeout` when the time is up, in the middle of a text or between two."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise self._timeout()
        if self.how == "clock":
            return self.pattern.search(text) is not None
        if self._child is not None:
            answer = self._child.ask(text, left)
            if answer is None:
                raise self._timeout()
            return answer
        import signal

        signal.setitimer(signal.ITIMER_REAL, left)
        try:
            return self.pattern.search(text) is not None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _expired(self, *_: object) -> None:
        raise self._timeout()

    def _timeout(self) -> SearchTimeout:
        return SearchTimeout(
            f"the pattern did not finish within {self.seconds:g} seconds",
            hint="make it more specific, narrow the search with --project or --since, or raise --timeout",
        )


def _best(pattern: re.Pattern[str]) -> str:
    import signal
    import threading

    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        return "alarm"
    return "child" if runs_away(pattern.pattern, FLAGS) else "clock"


# Reads `length newline, text` and answers one byte each; the pattern comes first. It imports nothing of Qiju.
_CHILD = """
import re, sys
source, sink = sys.stdin.buffer, sys.stdout.buffer
def text():
    return source.read(int(source.readline() or b"-1")).decode("utf-8", "surrogatepass")
flags = int(source.readline())
pattern = re.compile(text(), flags)
while True:
    head = source.readline()
    if not head:
        break
    found = pattern.search(source.read(int(head)).decode("utf-8", "surrogatepass"))
    sink.write(b"1" if found else b"0")
    sink.flush()
"""


class _Child:
    """A Python process that matches one text after another and can be killed in the middle of one."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        import queue
        import subprocess
        import sys
        import threading

        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.answers: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        assert self.process.stdin is not None
        self.process.stdin.write(b"%d\n" % FLAGS.value)
        self._send(pattern.pattern)

    def ask(self, text: str, seconds: float) -> bool | None:
        """Whether the pattern occurs in `text`; None when it did not answer in time."""
        import queue

        self._send(text)
        try:
            answer = self.answers.get(timeout=seconds)
        except queue.Empty:
            return None
        if not answer:
            raise SearchTimeout("the process that matches the pattern ended", hint="try again with a simpler pattern")
        return answer == b"1"

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:  # what was still to be written has no reader any more
                pass

    def _send(self, text: str) -> None:
        assert self.process.stdin is not None
        raw = text.encode("utf-8", "surrogatepass")
        try:
            self.process.stdin.write(b"%d\n" % len(raw) + raw)
            self.process.stdin.flush()
        except OSError:
            self.answers.put(b"")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while answer := self.process.stdout.read(1):
            self.answers.put(answer)
        self.answers.put(b"")
