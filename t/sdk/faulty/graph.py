# SPDX-License-Identifier: Apache-2.0
"""The graph of application_faults.t: `do` of the input names what its second
node does. Each execution of a node appends its name to the file `log`."""

import asyncio
import os
import signal
from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class Job(TypedDict, total=False):
    do: str
    log: str
    done: list[str]


def count(state: Job, name: str) -> int:
    """Notes an execution; returns how many there were."""
    with open(state["log"], "a+") as log:
        log.write(f"{name}\n")
        log.flush()
        log.seek(0)
        return log.read().split().count(name)


async def first(state: Job) -> Any:
    count(state, "first")
    return {"done": ["first"]}


async def second(state: Job) -> Any:
    executions = count(state, "second")
    do = state["do"]
    if do == "die once" and executions == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if do == "block":
        while True:
            pass
    if do == "allocate":
        blocks = []
        while True:
            blocks.append(bytearray(b"x") * 2**24)
    if do == "close the pipe":
        os.close(4)
    if do == "leave":
        os._exit(3)
    if do == "change directory":
        os.chdir("/")
    if do == "wait":
        await asyncio.Event().wait()
    return {"done": [*state["done"], "second"]}


graph = (
    StateGraph(Job)
    .add_node("first", first)
    .add_node("second", second)
    .add_edge(START, "first")
    .add_edge("first", "second")
    .compile()
)
