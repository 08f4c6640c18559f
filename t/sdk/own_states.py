# SPDX-License-Identifier: Apache-2.0
"""The graph of own_states.t: a node writes a state of its thread itself, as code with a copy of the graph may."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    n: int
    names: Annotated[list[str], operator.add]


async def write(state: State, config: RunnableConfig) -> State:
    own = {"configurable": {"thread_id": config["configurable"]["thread_id"], "__pregel_checkpointer": config["configurable"]["__pregel_checkpointer"]}}
    # 14: a state that is too long for a line.
    await graph.aupdate_state(own, {"names": ["own" if state.get("n") != 14 else "x" * (9 << 20)]}, as_node="write")
    if state.get("n") in (13, 14):
        raise ValueError("thirteen")
    if state.get("n") == 15:
        await asyncio.sleep(60)
    return {"names": ["write"]}


async def last(state: State) -> State:
    return {"names": ["last"]}


graph = StateGraph(State).add_node("write", write).add_node("last", last).add_edge(START, "write").add_edge("write", "last").add_edge("last", END).compile()
