# SPDX-License-Identifier: Apache-2.0
"""The graph of lost_answers.t in Python; asking.mjs has the same one. A subgraph asks twice; its next node ends the process the
first time, and asks then."""

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


async def ask(state: State) -> Any:
    return {"done": [f"{interrupt('first')} {interrupt('second')}"]}


async def later(state: State) -> Any:
    if count(state, "later") == 1:
        await asyncio.to_thread(read_gate, state["gate"])
        os.kill(os.getpid(), signal.SIGKILL)
    return {"done": [interrupt("later")]}


inner = StateGraph(State).add_node("ask", ask).add_node("later", later).add_edge(START, "ask").add_edge("ask", "later").compile()
graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()
