# SPDX-License-Identifier: Apache-2.0
"""The graph: a model and its tools in a loop, until the model calls none."""

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from shop_agent.model import ScriptedModel
from shop_agent.tools import TOOLS

# A real one: init_chat_model("anthropic:...").bind_tools(TOOLS)
model = ScriptedModel().bind_tools(TOOLS)


async def agent(state: MessagesState) -> dict:
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = (
    StateGraph(MessagesState)
    .add_node("agent", agent)
    .add_node("tools", ToolNode(TOOLS))
    .add_edge(START, "agent")
    .add_conditional_edges("agent", tools_condition)
    .add_edge("tools", "agent")
    .compile()
)
