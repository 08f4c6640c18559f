# SPDX-License-Identifier: Apache-2.0
"""The two pipes to the supervisor: lines in and out, and the answers to `ping`.

A thread of its own reads descriptor 3, so that a node that blocks the loop does
not look like a dead process. Each write wakes the supervisor, so lines are written
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
# The runs write no more while this much waits for the pipe.
PENDING_BYTES_MAX = 1 << 20


class Turns(selectors.DefaultSelector):
    """The selector of the loop, which asks it for events at the end of each turn."""

    def __init__(self) -> None:
        super().__init__()
        # Called at the end of a turn while lines wait, with whether the loop has nothing else to execute at once.
        self.on_end: Callable[[bool], None] | None = None

    def select(self, timeout: float | None = None) -> Any:
        if self.on_end is not None:
            self.on_end(timeout is None or timeout > 0)
        return super().select(timeout)


class Wire:
    """Owns descriptors 3 and 4, which no child process inherits.

    `on_message` is called on the loop with each message but `ping`; `on_end` in
    any thread at the end of the input or at the first error, and does not return; `on_room` on the
    loop when the pipe has taken what waited.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns, on_message: Callable[[dict[str, Any]], None],
                 on_end: Callable[[str | None], None], on_room: Callable[[], None]) -> None:
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
        self._is_watching = False
        self._wake_out, self._wake_in = os.pipe()
        # When the oldest call was passed that the loop has not executed yet; None: there is none.
        self._owed_since: float | None = None
        self._is_spent = self._has_asked = False
        for fd in (3, 4, self._wake_in, self._wake_out):
            os.set_inheritable(fd, False)
            os.set_blocking(fd, False)
        os.register_at_fork(after_in_child=self._close_in_child)

    def start(self) -> None:
        threading.Thread(target=self._serve, name="agent-wire", daemon=True).start()

    def ask_replacement(self, is_spent: bool) -> None:
        """Asks the supervisor for a new process, in the next `pong` and all later ones; False takes that back."""
        self._is_spent = is_spent

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
            self._write_turn()

    def hasten(self) -> None:
        """The lines that wait are written at the end of this turn."""
        self._has_haste = True

    def _end_turn(self, is_idle: bool) -> None:
        if is_idle or self._has_haste or time.monotonic() - self._turn_since > WAIT_SECONDS:
            self._write_turn()

    def _write_turn(self) -> None:
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
        self._write_turn()
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

    # --- The thread ----------------------------------------------------------

    def _serve(self) -> None:
        try:
            self._on_end(self._read_lines())
        except Exception as error:  # pylint: disable=broad-except
            self._on_end(f"{type(error).__name__}: {error}")

    def _read_lines(self) -> str | None:
        poll = select.poll()
        poll.register(self._wake_out, select.POLLIN)
        poll.register(3, select.POLLIN)
        buffer = bytearray()
        while True:
            self._watch_output(poll)
            for fd, _ in poll.poll():
                if fd == self._wake_out:
                    os.read(self._wake_out, 4096)
                elif fd == 4:
                    self._write_more()
                elif not self._read(buffer):
                    return None

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
            self._pass_to_loop(self._on_room)

    def _read(self, buffer: bytearray) -> bool:
        data = os.read(3, READ_SIZE)
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
            self._pass_to_loop(self._on_message, message)

    def _answer_ping(self, number: int) -> None:
        owed = self._owed_since
        busy = 0 if owed is None else int((time.monotonic() - owed) * 1000)
        self._has_asked = self._has_asked or self._is_spent
        spent = b',"spent":true' if self._has_asked else b""
        line = b'{"type":"pong","id":%d,"busy_ms":%d%b}\n' % (number, busy, spent)
        with self._lock:
            # After a line that is partly written, before all others.
            rest = memoryview(line) if self._pending else self._write_some(memoryview(line))
            if rest:
                self._pending.insert(min(1, len(self._pending)), rest)
                self._pending_bytes += len(rest)
        self._pass_to_loop(lambda: None)

    def _pass_to_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        if self._owed_since is None:
            self._owed_since = time.monotonic()
        self._loop.call_soon_threadsafe(self._on_loop, call, arguments)

    def _on_loop(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._owed_since = None
        call(*arguments)
