# SPDX-License-Identifier: Apache-2.0
"""Parts of the process of the Python runner alone, its pipes, its loop and its log: prints TAP for parts.t."""

import asyncio
import contextlib
import contextvars
import fcntl
import gc
import json
import os
import pathlib
import selectors
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "mod_agent/runners"))

# pylint: disable=wrong-import-position
from python import log, run  # noqa: E402
from python.wire import POLL_SECONDS, Turns, Wire  # noqa: E402
from tap import equal, print_plan  # noqa: E402


class Printing:
    run_id = "r"


def test_turns():
    now = [0.0]
    turns = Turns(lambda: now[0])
    read, written = os.pipe()
    turns.register(read, selectors.EVENT_READ)
    os.write(written, b"x")
    found = [len(turns.select(0)), len(turns.select(None)), len(turns.select(0))]
    now[0] += POLL_SECONDS
    equal([*found, len(turns.select(0)), len(turns.select(0))], [0, 1, 0, 1, 0],
          "turns: a loop that has more to do at once gets events once a millisecond, an idle one at once")
    now[0] += 3
    before = turns.seconds()
    turns.select(0)
    now[0] += POLL_SECONDS / 2
    turns.select(0)
    equal((before, turns.seconds()), (3.0, 0.0), "turns: the length of a turn is known, whether the loop got events before it or not")
    turns.close()


def test_log():
    read, written = os.pipe()
    lines, run = log.Lines(written), Printing()
    for text in "begun", " and left", None, "after", " the end\n", "a rest":
        if text is None:
            lines.end_run(run)
        else:
            contextvars.copy_context().run(lambda text=text: (log.current_run.set(run), lines.write(text)))
    equal(os.read(read, 4096), b"run r: begun and left\nrun r: after the end\n", "log: lines are whole, also after the end of the run")
    kept = len(lines._parts)
    del run
    gc.collect()
    equal((kept, len(lines._parts)), (1, 0), "log: the rest of a line goes with its run")


def test_pong():
    """Between lines: one that the pipe has taken in part is written whole before it."""
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (their_in, their_out, our_out, our_in)]
    for fd in (their_in, their_out, our_out, our_in):
        os.close(fd)
    os.dup2(high[0], 3)
    os.dup2(high[1], 4)
    turns = Turns()
    wire = Wire(types.SimpleNamespace(), turns, print, print, print)
    for kind, size in (("long", 300_000), ("next", 1)):
        wire.write(json.dumps({"type": kind, "data": "x" * size}).encode() + b"\n")
        wire.post()
    os.write(high[2], b'{"type":"ping","id":7}\n')
    wire._read_on_loop()
    found = b""
    os.set_blocking(high[3], False)
    while found.count(b"\n") < 3:
        with contextlib.suppress(BlockingIOError):
            found += os.read(high[3], 1 << 20)
        wire._write_more()
    lines = [line[:14].decode() for line in found.splitlines()]
    equal(lines, ['{"type": "long', '{"type":"pong"', '{"type": "next'], "wire: pong is written after a line that is partly written, before all others")
    turns.close()


async def test_time_of_cancel():
    run.TICK_SECONDS = 0.01
    for has_room, title in ((True, "the time of a cancelled run has a limit"), (False, "the time in which its lines wait for credit is not counted")):
        ticks, enough = 0, asyncio.Event()

        def count_tick(has_room=has_room, enough=enough):
            nonlocal ticks
            ticks += 1
            if ticks == 20:
                enough.set()
            return has_room

        cancelled = types.SimpleNamespace(is_cancelled=True, output=types.SimpleNamespace(has_room=count_tick))
        left = await run.Run._within(cancelled, 0.05, enough.wait())
        equal((left > 0, enough.is_set()), (not has_room, not has_room), f"run: {title}")


test_turns()
test_log()
test_pong()
asyncio.run(test_time_of_cancel())
print_plan()
