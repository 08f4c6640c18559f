# SPDX-License-Identifier: Apache-2.0
"""Remembers what the user says, in the store, under the user's id."""

from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.graph import END, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from memory_agent import tools
from memory_agent.context import Context


async def call_model(state: MessagesState, runtime: Runtime[Context]) -> dict[str, Any]:
    last = state["messages"][-1]
    if last.type == "human" and str(last.content).startswith("remember "):
        call = {"name": "upsert_memory", "args": {"content": str(last.content)[9:]}, "id": "call-1", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call])]}
    found = await cast(BaseStore, runtime.store).asearch(
        ("memories", runtime.context.user_id), query=str(last.content), limit=10)
    return {"messages": [AIMessage(f"{runtime.context.user_id}: {sorted(item.value['content'] for item in found)}")]}


async def store_memory(state: MessagesState, *, runtime: Runtime[Context]) -> dict[str, Any]:
    calls = getattr(state["messages"][-1], "tool_calls", [])
    return {"messages": [
        {"role": "tool", "tool_call_id": call["id"], "content": await tools.upsert_memory(
            **call["args"], user_id=runtime.context.user_id, store=cast(BaseStore, runtime.store))} for call in calls]}


def route_message(state: MessagesState) -> str:
    return "store_memory" if getattr(state["messages"][-1], "tool_calls", None) else END


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node(call_model)
builder.add_node(store_memory)
builder.add_edge("__start__", "call_model")
builder.add_conditional_edges("call_model", route_message, ["store_memory", END])
builder.add_edge("store_memory", "call_model")
graph = builder.compile()
graph.name = "MemoryAgent"
