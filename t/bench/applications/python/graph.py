# SPDX-License-Identifier: Apache-2.0
"""The graphs of the bench, each of one node."""

import asyncio
import time

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from typing_extensions import TypedDict


async def agent(_: MessagesState) -> dict:
    """Answers one message: what the demo model does for `hello`."""
    return {"messages": [AIMessage("You said: hello")]}


builder = StateGraph(MessagesState).add_node("agent", agent)
graph = builder.add_edge(START, "agent").add_edge("agent", END).compile()


async def answer_in_parts(state: MessagesState) -> dict:
    """Gives the same answer from a chat model that sends it in parts."""
    model = GenericFakeChatModel(messages=iter([AIMessage("You said: hello")]))
    return {"messages": [await model.ainvoke(state["messages"])]}


chat = StateGraph(MessagesState).add_node("chat", answer_in_parts).add_edge(START, "chat").add_edge("chat", END).compile()


def wait(_: MessagesState) -> dict:
    """Holds its thread for 50 ms, as a library that knows no event loop does."""
    time.sleep(0.05)
    return {"messages": [AIMessage("You said: hello")]}


waiter = StateGraph(MessagesState).add_node("wait", wait).add_edge(START, "wait").add_edge("wait", END).compile()


class Ticks(TypedDict):
    """The input that t/bench/streams.c sends."""

    ticks: int
    every_ms: int


async def tick(state: Ticks) -> dict:
    """Writes events at a steady rate, each with its time in microseconds."""
    write = get_stream_writer()
    begin = time.monotonic()
    for number in range(state["ticks"]):
        write({"at": time.time_ns() // 1000})
        await asyncio.sleep(begin + (number + 1) * state["every_ms"] / 1000 - time.monotonic())
    return {}


ticker = StateGraph(Ticks).add_node("tick", tick).add_edge(START, "tick").add_edge("tick", END).compile()
