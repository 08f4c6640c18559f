# SPDX-License-Identifier: Apache-2.0
"""The graphs of finished_tasks.t in Python; parallel.mjs has the same ones. Nodes a and b are parallel, c follows both.
Node b does what the input names the first time."""

import asyncio
import operator
import os
import signal
from typing import Annotated, Any

from job import Job, count, read_gate
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(Job, total=False):
    done: Annotated[list[Any], operator.add]


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
