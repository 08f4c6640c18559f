# SPDX-License-Identifier: Apache-2.0
"""The graph of reached_breakpoints.t in Python; exits.mjs has the same one. The process that has executed `plan` ends
when the library has ended, before the run does: here at the exit of the factory."""

import asyncio
import contextlib
import os
import signal
from typing import Any, AsyncIterator

from job import Job, count, read_gate
from langgraph.graph import START, StateGraph

gates: list[str] = []


async def plan(state: Job) -> Any:
    count(state, "plan")
    gates.append(state["gate"])
    return {}


async def danger(state: Job) -> Any:
    count(state, "danger")
    return {}


built = (
    StateGraph(Job)
    .add_node("plan", plan)
    .add_node("danger", danger)
    .add_edge(START, "plan")
    .add_edge("plan", "danger")
    .compile()
)


@contextlib.asynccontextmanager
async def graph() -> AsyncIterator[Any]:
    yield built
    if gates:
        await asyncio.to_thread(read_gate, gates.pop())
        os.kill(os.getpid(), signal.SIGKILL)
