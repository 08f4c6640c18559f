# SPDX-License-Identifier: Apache-2.0
"""The command line: the runner, or `--check` for `agentctl build`."""

import argparse
import asyncio
import gc
import os
import signal
from typing import Any, NoReturn

from . import application, jsontext, log, report
from .bridge import Bridge
from .load import load_graphs

DEFAULT_SLOTS = 100
# Allocations between two garbage collections. With the default, 700, a turn of a long chat causes dozens, one of them full.
YOUNG_OBJECTS = 10_000


def main(arguments: list[str]) -> NoReturn:
    parser = argparse.ArgumentParser(prog="agent-runner-python")
    parser.add_argument("--slots", type=int, default=DEFAULT_SLOTS, help="the largest number of runs at a time")
    parser.add_argument("--check", action="store_true",
                        help="import the graphs of ./langgraph.json, print their reports as the last line, of JSON")
    options = parser.parse_args(arguments)
    if options.check:
        check()
    serve(options.slots)


def check() -> NoReturn:
    """Exits with 0 if all graphs can be used, 1 if some cannot, 2 if langgraph.json cannot be read. Does not wait for threads or tasks."""
    # User prints go to standard error.
    out = os.dup(1)
    output = open(out, "wb", buffering=0)  # pylint: disable=consider-using-with
    os.dup2(2, 1)
    log.install()

    def refuse(*_: object) -> NoReturn:
        raise RuntimeError("no run executes")

    def tell(message: dict[str, Any]) -> None:
        output.write(jsontext.dumps(message, lenient=True) + b"\n")

    def importing(name: str | None) -> None:
        # For agentctl, if this process does not end by itself.
        tell({"type": "importing", "graph_id": name})

    try:
        found = application.read_config(os.getcwd())
        _, reports = asyncio.new_event_loop().run_until_complete(load_graphs(
            found, refuse, refuse, Bridge(), importing, None))
    except Exception as error:  # pylint: disable=broad-except
        log.write(application.reason_of(error))
        os._exit(2)
    tell({"type": "ready", "graphs": reports, "runtime": report.runtime()})
    os._exit(1 if any("error" in one for one in reports.values()) else 0)


def serve(slots: int) -> NoReturn:
    from .loop import Loop
    from .runner import NO_MEMORY, Runner
    from .wire import Turns

    # Before the application's code, which may choose its own.
    gc.set_threshold(YOUNG_OBJECTS)
    log.install()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    turns = Turns()
    loop = Loop(turns)
    asyncio.set_event_loop(loop)
    Runner(loop, turns, slots).start()
    while True:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            # Code of a graph called exit(): its run ends with the error.
            log.write(f"agent runner: {type(error).__name__} in the code of a graph")
        except MemoryError:
            # Of the loop itself: for lines that wait for the pipe.
            os._exit(NO_MEMORY)
