# SPDX-License-Identifier: Apache-2.0
"""The graphs of application_faults.t in Python; graph.mjs has the same ones. The second node does what the input names."""

import asyncio
import os
import signal
import sys
from typing import Any

from job import Job, count, read_gate
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph


class State(Job, total=False):
    done: list[Any]


def spin() -> None:
    while True:
        pass


def fork() -> int:
    """The exit status of a child that writes to the pipe of the runner."""
    child = os.fork()
    if child == 0:
        try:
            os.write(4, b"garbage\n")
        except OSError:
            os._exit(7)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def first(state: State) -> Any:
    count(state, "first")
    return {"done": ["first"]}


async def second(state: State) -> Any:
    executions = count(state, "second")
    do = state["do"]
    if do == "wait":
        await asyncio.to_thread(read_gate, state["gate"])
    if do == "die once" and executions == 1:
        await asyncio.to_thread(read_gate, state["gate"])
        os.kill(os.getpid(), signal.SIGKILL)
    if do == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if do == "leave":
        os._exit(3)
    if do == "exit":
        sys.exit("the node leaves")
    if do == "close the pipe":
        os.close(4)
    if do == "close the input":
        os.close(3)
        await asyncio.Event().wait()
    if do == "close both pipes":
        os.closerange(3, 5)
    if do == "block":
        spin()
    if do == "block a thread":
        await asyncio.to_thread(spin)
    if do == "loop":
        while True:
            await asyncio.sleep(0)
    if do == "allocate":
        blocks = []
        while True:
            blocks.append(bytearray(b"x") * 2**24)
    if do == "print":
        for _ in range(512):
            print("x" * 2**20)
            print("y" * 2**20, file=sys.stderr)
            await asyncio.sleep(0)
    if do == "fork":
        return {"done": [fork()]}
    if do == "change directory":
        os.chdir("/")
    if do == "change the mask":
        os.umask(0o077)
    if do == "name the mask":
        return {"done": [os.umask(0o022)]}
    if do == "name the directory":
        return {"done": [os.getcwd()]}
    if do == "catch signals":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, lambda *_: None)
        os.kill(os.getpid(), signal.SIGTERM)
    if do == "return an object":
        return {"done": [object()]}
    if do == "send a large event":
        get_stream_writer()("x" * 9_000_000)
    return {"done": [*state["done"], "second"]}


graph = (
    StateGraph(State)
    .add_node("first", first)
    .add_node("second", second)
    .add_edge(START, "first")
    .add_edge("first", "second")
    .compile()
)


def named(name: str) -> Any:
    """A graph whose node has a subgraph and that name."""
    inner = StateGraph(State).add_node("first", first).add_edge(START, "first").compile()
    return StateGraph(State).add_node(name, inner).add_edge(START, name).compile()


long = named("n" * 500)
wide = named("\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 600)
too_long = named("n" * 2100)
