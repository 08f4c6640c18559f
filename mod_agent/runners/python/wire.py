# SPDX-License-Identifier: Apache-2.0
"""The two pipes to the supervisor: lines in and out, and the answers to `ping`.

The loop reads descriptor 3: a thread that each message wakes would cost time. While a node
blocks the loop, a thread of its own reads, so that this process does not look like a dead
one. Each write wakes the supervisor, so lines are written
together: they wait as long as turns of the loop follow at once, for 5 ms at most, or
until the end of the turn after `hasten()`. Bytes that the pipe does not take
wait here and are written by the thread. The runs bound their number: each has at
most 256 KiB without credit.
"""

import asyncio
import errno
import json
import os
import select
import selectors
import threading
import time
from collections import deque
from typing import Any, Callable

from . import forked

READ_SIZE = 1 << 18
# Lines of this length together are written before the loop turns.
TURN_BYTES = 1 << 16
# Lines wait no longer for others, while the loop turns.
WAIT_SECONDS = 0.005
# A busy loop polls the kernel at most this often: a poll costs as much as a short turn.
POLL_SECONDS = 0.001
# The thread reads while the loop has not turned for so long, and looks so often.
BLOCKED_SECONDS = 0.5
LOOK_MS = 250
# The runs write no more while this much waits for the pipe.
PENDING_BYTES_MAX = 1 << 20


class Turns(selectors.DefaultSelector):
    """The selector of the loop, which asks it for events at the end of each turn."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        # Called at the end of a turn while lines wait, with whether the loop has nothing else to execute at once, and the time.
        self.on_end: Callable[[bool, float], None] | None = None
        # When the turn began; None: the loop waits for events.
        self._since: float | None = clock()
        self._polled_at = self._since

    def select(self, timeout: float | None = None) -> Any:
        is_idle, now = timeout is None or timeout > 0, self._clock()
        if self.on_end is not None:
            self.on_end(is_idle, now)
        if not is_idle and now - self._polled_at < POLL_SECONDS:
            self._since = now
            return []
        self._since = None
        try:
            return super().select(timeout)
        finally:
            self._since = self._polled_at = self._clock()

    def seconds(self) -> float:
        """How long the turn has lasted so far; in any thread."""
        since = self._since
        return 0 if since is None else self._clock() - since


def identity_of(fd: int) -> tuple[int, int]:
    """Of the open file."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class Wire:
    """Owns descriptors 3 and 4, which no child process inherits.

    `on_message` is called on the loop with each message but `ping`, in their order; `on_end` in
    any thread at the end of the input or at the first error, and does not return; `on_room` on the
    loop when the pipe has taken what waited.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns, on_message: Callable[[dict[str, Any]], None],
                 on_end: Callable[[str | Exception | None], None], on_room: Callable[[], None]) -> None:
        """turns: the selector of the loop."""
        self._loop = loop
        self._turns = turns
        self._on_message = on_message
        self._on_end = on_end
        self._on_room = on_room
        # Lines of this turn of the loop and those before it; when the first of them came. On the loop only.
        self._turn: list[bytes] = []
        self._turn_bytes = 0
        self._turn_since = 0.0
        self._has_haste = False
        self._lock = threading.Lock()
        self._pending: deque[memoryview] = deque()
        self._pending_bytes = 0
        self._was_full = False
        self._is_watching = self._reads_input = False
        self._wake_out, self._wake_in = os.pipe()
        # Of what either thread has read: the start of a line, and messages that the loop has not taken.
        self._input = threading.Lock()
        self._buffer = bytearray()
        self._messages: deque[dict[str, Any]] = deque()
        self._wants_replacement = self._has_asked = False
        # Set at the end of a run that has left almost no descriptors to others.
        self.lacks_descriptors = False
        self._pipes = {fd: identity_of(fd) for fd in (3, 4)}
        for fd in (3, 4, self._wake_in, self._wake_out):
            os.set_inheritable(fd, False)
            os.set_blocking(fd, False)
        os.register_at_fork(after_in_child=self._close_in_child)

    def start(self) -> None:
        self._loop.add_reader(3, self._read_on_loop)
        threading.Thread(target=self._serve, name="agent-wire", daemon=True).start()

    def ask_replacement(self, wants_replacement: bool) -> None:
        """Asks the supervisor for a new process, in the next `pong` and all later ones; False takes that back."""
        self._wants_replacement = wants_replacement

    def is_full(self) -> bool:
        return self._pending_bytes > PENDING_BYTES_MAX

    def write(self, line: bytes) -> None:
        """Writes a line, which ends with LF, soon; on the loop."""
        if not self._turn:
            self._turn_since = time.monotonic()
            self._turns.on_end = self._end_turn
        self._turn.append(line)
        self._turn_bytes += len(line)
        if self._turn_bytes > TURN_BYTES:
            self.post()

    def hasten(self) -> None:
        """The lines that wait are written at the end of this turn."""
        self._has_haste = True

    def _end_turn(self, is_idle: bool, now: float) -> None:
        if is_idle or self._has_haste or now - self._turn_since > WAIT_SECONDS:
            self.post()

    def post(self) -> None:
        """Writes the lines that wait, also before code that may block the loop. On the loop."""
        lines, self._turn, self._turn_bytes = self._turn, [], 0
        self._has_haste, self._turns.on_end = False, None
        if lines:
            self._write(lines[0] if len(lines) == 1 else b"".join(lines))

    def _write(self, lines: bytes) -> None:
        with self._lock:
            rest = memoryview(lines)
            if not self._pending:
                rest = self._write_some(rest)
            if not rest:
                return
            self._pending.append(rest)
            self._pending_bytes += len(rest)
            self._was_full = self._was_full or self.is_full()
        self._wake()

    def flush(self) -> None:
        """Writes what waits, before the process exits; blocks. On the loop."""
        self.post()
        with self._lock:
            os.set_blocking(4, True)
            while self._pending:
                self._write_pending()

    def _write_some(self, data: memoryview) -> memoryview:
        try:
            return data[os.write(4, data):]
        except BlockingIOError:
            return data
        except OSError as error:
            if error.errno == errno.EBADF:
                # A graph has closed it, or a process that a node has forked goes on with the runs.
                self._on_end("descriptor 4 is closed")
            # The supervisor is gone; the end of descriptor 3 ends the process.
            return data[len(data):]

    def _write_pending(self) -> None:
        rest = self._write_some(self._pending[0])
        self._pending_bytes -= len(self._pending[0]) - len(rest)
        if rest:
            self._pending[0] = rest
        else:
            self._pending.popleft()

    def _wake(self) -> None:
        try:
            os.write(self._wake_in, b"w")
        except BlockingIOError:
            pass

    def _close_in_child(self) -> None:
        for fd in (3, 4, self._wake_in, self._wake_out):
            try:
                os.close(fd)
            except OSError:
                pass
        self._turns.on_end = None
        # A child that returns to the loop would go on with all runs beside its parent.
        for handle in getattr(self._loop, "_ready", ()):
            handle.cancel()
        self._loop.call_soon(os._exit, forked.STATUS)
        forked.end_with_function()

    # --- Input -----------------------------------------------------------------

    def _read_on_loop(self) -> None:
        try:
            if not self._read():
                self._end(None)
        except Exception as error:  # pylint: disable=broad-except
            self._end(error)
        self._pass_messages()

    def _end(self, reason: Exception | str | None) -> None:
        """A pipe that a graph has closed is the reason, whatever the thread that comes to it first has read there."""
        closed = self._find_closed()
        self._on_end(reason if closed is None else f"descriptor {closed} is closed")

    def _read(self) -> bool:
        """Reads what is there; false at the end of the input."""
        with self._input:
            try:
                data = os.read(3, READ_SIZE)
            except BlockingIOError:
                # The other thread has read it.
                return True
            buffer = self._buffer
            start = len(buffer)
            buffer += data
            begin = 0
            while (end := buffer.find(b"\n", max(begin, start))) >= 0:
                self._take(bytes(buffer[begin:end]))
                begin = end + 1
            del buffer[:begin]
            return bool(data)

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        if message["type"] == "ping":
            self._answer_ping(message["id"])
        else:
            self._messages.append(message)

    def _pass_messages(self) -> None:
        try:
            while self._messages:
                self._on_message(self._messages.popleft())
        finally:
            if self._messages:
                self._loop.call_soon(self._pass_messages)

    def _answer_ping(self, number: int) -> None:
        self._has_asked = self._has_asked or self._wants_replacement or self.lacks_descriptors
        spent = b',"spent":true' if self._has_asked else b""
        line = b'{"type":"pong","id":%d,"busy_ms":%d%b}\n' % (number, int(self._turns.seconds() * 1000), spent)
        with self._lock:
            # After a line that is partly written, before all others.
            rest = memoryview(line) if self._pending else self._write_some(memoryview(line))
            if rest:
                self._pending.insert(min(1, len(self._pending)), rest)
                self._pending_bytes += len(rest)
        if rest:
            self._wake()

    # --- The thread ------------------------------------------------------------

    def _serve(self) -> None:
        try:
            self._watch()
            self._end(None)
        except Exception as error:  # pylint: disable=broad-except
            self._end(error)

    def _watch(self) -> None:
        """Returns at the end of the input, and when a pipe is closed here."""
        poll = select.poll()
        poll.register(self._wake_out, select.POLLIN)
        while True:
            if self._find_closed() is not None:
                return
            self._watch_output(poll)
            is_blocked = self._watch_input(poll)
            for fd, _ in poll.poll(LOOK_MS):
                if fd == self._wake_out:
                    os.read(self._wake_out, 4096)
                elif fd == 4:
                    self._write_more()
                elif not self._read():
                    return
            if is_blocked and self._messages:
                self._loop.call_soon_threadsafe(self._pass_messages)

    def _find_closed(self) -> int | None:
        """A pipe that a graph has closed, and would be watched in vain. Its number may be that of another file by now."""
        for fd, identity in self._pipes.items():
            try:
                if identity_of(fd) != identity:
                    return fd
            except OSError:
                return fd
        return None

    def _watch_input(self, poll: select.poll) -> bool:
        """Whether the loop is blocked."""
        is_blocked = self._turns.seconds() > BLOCKED_SECONDS
        if is_blocked:
            poll.register(3, select.POLLIN)
        elif self._reads_input:
            poll.unregister(3)
        self._reads_input = is_blocked
        return is_blocked

    def _watch_output(self, poll: select.poll) -> None:
        # Only while output waits: poll() reports POLLERR for any mask, and would return at once again and again.
        if self._pending:
            poll.register(4, select.POLLOUT)
        elif self._is_watching:
            poll.unregister(4)
        self._is_watching = bool(self._pending)

    def _write_more(self) -> None:
        with self._lock:
            if self._pending:
                self._write_pending()
            has_room = self._was_full and not self.is_full()
            self._was_full = self._was_full and not has_room
        if has_room:
            self._loop.call_soon_threadsafe(self._on_room)
