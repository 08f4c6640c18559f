# SPDX-License-Identifier: Apache-2.0
"""The log: standard output and error by lines, each with the id of its run.

`current_run` is the run whose code executes; the library passes it to its tasks
and to the threads of nodes.
"""

import contextlib
import io
import os
import sys
import threading
import traceback
from contextvars import ContextVar
from typing import Any, Iterator
from weakref import WeakKeyDictionary

current_run: ContextVar[Any] = ContextVar("agent_current_run", default=None)

# The supervisor cuts a line after 8,000 bytes.
LINE_BYTES_MAX = 7_900
BLOCKED_SECONDS = 5



class Lines(io.TextIOBase):
    """A text stream that writes whole lines to a descriptor."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        # Of each run the start of a line, and of this object that of the process. A thread that a run leaves behind may
        # print after its end: that goes with the run.
        self._parts: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        # A finalizer or a handler of a signal may print while its thread is in write().
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._unlock)

    encoding = "utf-8"
    errors = "replace"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    @property
    def buffer(self) -> "LinesOfBytes":
        return LinesOfBytes(self)

    def reconfigure(self, **_: Any) -> None:
        """Ignored: the log is UTF-8, line by line."""

    def _unlock(self) -> None:
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        run = current_run.get()
        prefix, owner = (f"run {run.run_id}: ", run) if run is not None else ("", self)
        with self._lock:
            *lines, rest = (self._parts.pop(owner, "") + text).split("\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], ""
            if rest:
                self._parts[owner] = rest
        for line in lines:
            for start in range(0, len(line) or 1, LINE_BYTES_MAX):
                self._write_line(prefix + line[start:start + LINE_BYTES_MAX])
        return len(text)

    def _write_line(self, line: str) -> None:
        data = (line + "\n").encode("utf-8", "replace")
        try:
            while data:
                data = data[os.write(self._fd, data):]
        except OSError:
            # The log is gone; the run goes on.
            pass

    def end_run(self, run: Any) -> None:
        """Writes the rest of the run's last line."""
        with self._lock:
            rest = self._parts.pop(run, "")
        if rest:
            self._write_line(f"run {run.run_id}: {rest}")


class LinesOfBytes(io.RawIOBase):
    """`sys.stdout.buffer`."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._lines.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


# Also where code of a graph has replaced sys.stdout and sys.stderr.
_out, _errors = Lines(1), Lines(2)


def install() -> None:
    """Takes the place of sys.stdout and sys.stderr."""
    sys.stdout, sys.stderr = _out, _errors


def write(text: str) -> None:
    """A line of the runner itself, about the current run if there is one."""
    _errors.write(text + "\n")


def end_run(run: Any) -> None:
    _out.end_run(run)
    _errors.end_run(run)


@contextlib.contextmanager
def watch(what: str) -> Iterator[None]:
    """Logs code of the application that blocks the process: nothing in the process can interrupt it."""
    timer = threading.Timer(BLOCKED_SECONDS, write, [f"{what} has blocked the process for {BLOCKED_SECONDS} s"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def write_traceback(error: BaseException) -> None:
    try:
        text = "".join(traceback.format_exception(error)).rstrip()
    except Exception as reason:  # pylint: disable=broad-except
        text = f"{type(error).__name__}, whose traceback cannot be shown: {type(reason).__name__}"
    write(text)
