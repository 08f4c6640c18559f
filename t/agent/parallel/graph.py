# SPDX-License-Identifier: Apache-2.0
"""The graphs of finished_tasks.t in Python; graph.mjs has the same ones. Nodes a and b are parallel, c follows both.
`do` of the input names what b does the first time. Each execution of a node appends its name to the file `log`."""

import asyncio
import operator
import os
import signal
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    do: str
    log: str
    gate: str
    done: Annotated[list[Any], operator.add]


def count(state: State, name: str) -> int:
    """Notes an execution; returns how many there were."""
    with open(state["log"], "a+") as log:
        log.write(f"{name}\n")
        log.flush()
        log.seek(0)
        return log.read().split().count(name)


def read_gate(path: str) -> None:
    """Returns when the test has opened the pipe."""
    with open(path, "rb") as gate:
        gate.read()


async def a(state: State) -> Any:
    count(state, "a")
    return {"done": ["a"]}


async def b(state: State) -> Any:
    executions = count(state, "b")
    do = state["do"]
    if do == "ask":
        return {"done": [interrupt("?")]}
    if executions == 1 and do == "wait":
        await asyncio.Event().wait()
    if executions == 1:
        await asyncio.to_thread(read_gate, state["gate"])
        if do == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("the first execution")
    return {"done": ["b"]}


async def c(state: State) -> Any:
    count(state, "c")
    return {"done": ["c"]}


async def before(state: State) -> Any:
    count(state, "before")
    return {}


fan = (
    StateGraph(State)
    .add_node("a", a)
    .add_node("b", b)
    .add_node("c", c)
    .add_edge(START, "a")
    .add_edge(START, "b")
    .add_edge(["a", "b"], "c")
    .compile()
)
inner = (
    StateGraph(State)
    .add_node("before", before)
    .add_node("a", a)
    .add_node("b", b)
    .add_edge(START, "before")
    .add_edge("before", "a")
    .add_edge("before", "b")
    .compile()
)
outer = StateGraph(State).add_node("inner", inner).add_node("c", c).add_edge(START, "inner").add_edge("inner", "c").compile()
