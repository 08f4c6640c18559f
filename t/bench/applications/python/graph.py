# SPDX-License-Identifier: Apache-2.0
"""One node that answers one message: what the demo model does for `hello`."""

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


async def agent(_: MessagesState) -> dict:
    return {"messages": [AIMessage("You said: hello")]}


builder = StateGraph(MessagesState).add_node("agent", agent)
graph = builder.add_edge(START, "agent").add_edge("agent", END).compile()
