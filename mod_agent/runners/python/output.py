# SPDX-License-Identifier: Apache-2.0
"""The lines of one run or call: their order, credit, requests and acknowledgements.

A line without credit waits here, and so do all after it; code that produces output
calls `room()` before the next step, which waits for the credit. Used on the loop
only.
"""

import asyncio
import contextlib
import functools
from collections import deque
from typing import Any, Callable, NamedTuple

from . import jsontext
from .errors import RunEndedError, RunnerError, ValueTooLargeError
from .wire import Wire

# PROTOCOL.md, "Flow control"; the first without the line's LF.
LONG_LINE = 65_536
FREE_BYTES = 262_144
ARGS_BYTES_MAX = 4096
STORE_ARGS_BYTES_MAX = 4 << 20


# The contents of a line of each type, for a message to the author of the graph.
CONTENTS = {
    "checkpoint": "what a step changes in the state", "event": "an event", "task": "the result of a task",
    "put": "a checkpoint of the library", "put_writes": "what a task wrote", "end": "the value of a call"}


class Line(NamedTuple):
    text: bytes
    # The credit that it needs, in bytes.
    cost: int
    # By a cancel.
    may_be_dropped: bool


def may_be_dropped(members: list[tuple[str, bytes]]) -> bool:
    """Whether a cancelled run may leave out the event: not `error`, and not `values` of a checkpoint."""
    found = dict(members)
    return found["event"] != b'"error"' and not (found["event"] == b'"values"' and "checkpoint_id" in found)


@functools.cache
def member_start(name: str) -> bytes:
    """Of a member of a line; there are few names."""
    return b',"%b":' % name.encode()


class Output:
    def __init__(self, wire: Wire, run_id: str, epoch: int, line_max: int) -> None:
        self._wire = wire
        self._line_max = line_max
        self._tail = jsontext.dumps({"run_id": run_id, "epoch": epoch})[1:-1]
        # The start of a line of each type.
        self._heads: dict[str, bytes] = {}
        # Lines that wait for credit, or come after one that does.
        self._queue: deque[Line] = deque()
        self._sent = 0
        # The number of lines for which credit is requested.
        self._granted = 0
        self._room = asyncio.Event()
        self._room.set()
        self._next_id = 0
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._one_request = asyncio.Lock()
        self._acks = asyncio.Semaphore(16)
        self._unacknowledged: set[asyncio.Future[Any]] = set()
        self._is_cancelled = False
        self._end: asyncio.Future[None] | None = None

    # --- Lines ---------------------------------------------------------------

    def line(self, kind: str, members: list[tuple[str, bytes]]) -> bytes:
        """Raises ValueTooLargeError, before it copies the members."""
        head = self._heads.get(kind)
        if head is None:
            head = self._heads[kind] = b'{"type":"%s",%s' % (kind.encode(), self._tail)
        pieces = [head]
        for name, text in members:
            pieces += (member_start(name), text)
        pieces.append(b"}\n")
        length = sum(map(len, pieces)) - 1
        if length > self._line_max:
            name = next((f" {text.decode()}" for member, text in members if member == "event"), "")
            raise ValueTooLargeError(f"{CONTENTS.get(kind, kind)}{name} has {length} bytes in a line to the "
                                     f"server, more than {self._line_max}")
        return b"".join(pieces)

    def send(self, kind: str, members: list[tuple[str, bytes]]) -> None:
        text = self.line(kind, members)
        self._put(text, len(text), members if kind == "event" else None)

    def hasten(self) -> None:
        """The lines that have credit are written before other code of the run executes."""
        self._wire.hasten()

    def _put(self, text: bytes, cost: int, event: list[tuple[str, bytes]] | None = None) -> None:
        """event: the members of one."""
        if self._end is not None:
            raise RunEndedError("the run has ended")
        # Most lines have credit; the rest is pump()'s.
        if not self._queue and not self._granted and not self._needs_credit(cost) and not self._wire.is_full():
            self._write(text, cost)
            return
        self._queue.append(Line(text, cost, event is not None and may_be_dropped(event)))
        self.pump()

    def pump(self) -> None:
        """Writes the lines that have credit, and requests more for the next ones."""
        while self._queue and not self._granted and not self._wire.is_full():
            if self._needs_credit(self._queue[0].cost):
                self._want()
            else:
                self._write_next()
        if self._queue:
            self._room.clear()
        else:
            self._room.set()
            if self._end is not None and not self._end.done():
                self._end.set_result(None)

    def _needs_credit(self, cost: int) -> bool:
        return cost > 0 and (cost - 1 > LONG_LINE or self._sent + cost > FREE_BYTES)

    def _write(self, text: bytes, cost: int) -> None:
        self._sent += cost
        self._wire.write(text)

    def _write_next(self) -> None:
        line = self._queue.popleft()
        self._write(line.text, line.cost)

    def _want(self) -> None:
        """Requests credit for one long line, or for the next lines of together at most LONG_LINE bytes."""
        total = 0
        for line in self._queue:
            if total and total + line.cost > LONG_LINE:
                break
            total += line.cost
            self._granted += 1
        self._wire.write(self.line("want", [("bytes", b"%d" % total)]))

    def take_go(self) -> None:
        granted, self._granted, self._sent = self._granted, 0, 0
        for _ in range(granted):
            self._write_next()
        self.pump()

    def has_room(self) -> bool:
        """Whether all lines are written."""
        return self._room.is_set()

    async def room(self) -> None:
        """Waits until all lines are written."""
        while not self._room.is_set():
            await self._room.wait()

    def cancel(self) -> None:
        """Cancels the run: drops events without credit, and releases the callers that wait for an acknowledgement."""
        self._is_cancelled = True
        for reply in self._unacknowledged:
            if not reply.done():
                reply.set_result((None, None))
        lines = list(self._queue)
        self._queue = deque(lines[:self._granted] + [line for line in lines[self._granted:] if not line.may_be_dropped])
        self.pump()

    async def end(self, members: list[tuple[str, bytes]]) -> None:
        """Sends `end`, and returns when it is written. No line follows it."""
        end = asyncio.get_running_loop().create_future()
        self.send("end", members)
        self._end = end
        self.pump()
        # Threads that the run leaves behind may wait for these.
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(RunEndedError("the run has ended"))
                reply.exception()
        while not end.done():
            # Code of a graph may cancel all tasks of the loop.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(end)

    # --- Requests ------------------------------------------------------------

    async def request(self, op: str, args: bytes, cursor: str | None = None) -> tuple[Any, str | None]:
        """One part of a result, and the cursor of the next; raises RunnerError, and ValueError for too long args."""
        most = STORE_ARGS_BYTES_MAX if op == "store" else ARGS_BYTES_MAX
        if len(args) > most:
            raise ValueError(f"{op}: arguments of {len(args)} bytes, at most {most}")
        await self._one_request.acquire()
        try:
            number, reply = self._new_reply()
            # A long request needs credit, as output does.
            line = self.line("request", [("id", b"%d" % number), ("op", jsontext.dumps(op)), ("args", args),
                                         ("cursor", jsontext.dumps(cursor))])
            self._put(line, 0 if len(line) - 1 <= LONG_LINE else len(line))
        except BaseException:
            self._one_request.release()
            raise
        # The next request waits for the reply even if this caller no longer does (asyncio.wait_for).
        reply.add_done_callback(self._end_request)
        return await asyncio.shield(reply)

    def _end_request(self, reply: asyncio.Future[Any]) -> None:
        self._one_request.release()
        # The loop logs errors that nobody has looked at.
        reply.exception()

    def _new_reply(self) -> tuple[int, asyncio.Future[Any]]:
        self._next_id += 1
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[self._next_id] = reply
        return self._next_id, reply

    async def send_acknowledged(self, kind: str, members: list[tuple[str, bytes]], on_sent: Callable[[], None]) -> None:
        """Sends a record and waits until it is committed."""
        await self._acks.acquire()
        if self._is_cancelled:
            self._acks.release()
            self.send(kind, members)
            on_sent()
            return
        number, reply = self._new_reply()
        self._unacknowledged.add(reply)
        # The record is one of the 16 until its reply comes, even if this caller no longer waits (asyncio.wait_for).
        reply.add_done_callback(self._end_record)
        try:
            self.send(kind, [*members, ("ack", b"%d" % number)])
        except BaseException:
            del self._replies[number]
            reply.cancel()
            raise
        on_sent()
        await asyncio.shield(reply)

    def _end_record(self, reply: asyncio.Future[Any]) -> None:
        self._unacknowledged.discard(reply)
        self._acks.release()
        if not reply.cancelled():
            # The loop logs errors that nobody has looked at.
            reply.exception()

    def take_reply(self, message: dict[str, Any]) -> None:
        reply = self._replies.pop(message["id"], None)
        if reply is None or reply.done():
            return
        if message["ok"]:
            reply.set_result((message.get("result"), message.get("cursor")))
        else:
            error = message.get("error") or {}
            reply.set_exception(RunnerError(error.get("code", ""), error.get("message", "")))
