# SPDX-License-Identifier: Apache-2.0
"""Agents of the libraries above langgraph, with a model that does what it is told; agents.mjs has the same."""

import json
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent


class Obedient(BaseChatModel):
    """Calls the tools that the last message names, in lines `call NAME {arguments}`."""

    @property
    def _llm_type(self) -> str:
        return "obedient"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        lines = [] if last.type == "tool" else [line.split(" ", 2) for line in str(last.text).splitlines()]
        calls = [{"name": line[1], "args": json.loads(line[2]), "id": f"call-{len(messages)}-{number}", "type": "tool_call"}
                 for number, line in enumerate(lines) if line[:1] == ["call"]]
        content = "" if calls else f"done: {last.text}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content, tool_calls=calls))])


@tool
def find(name: str) -> str:
    """Finds a product."""
    return f"{name} is on shelf 5"


@tool
async def order(name: str) -> str:
    """Orders a product."""
    return f"{name} is ordered"


asks = HumanInTheLoopMiddleware(interrupt_on={"order": True})
agent = create_agent(Obedient(), [find, order], middleware=[asks], system_prompt="You sell things.")
brief = create_agent(Obedient(), [find], middleware=[
    SummarizationMiddleware(model=Obedient(), trigger=("messages", 6), keep=("messages", 2))])
react = create_react_agent(Obedient(), [find, order])
deep = create_deep_agent(Obedient(), [order], interrupt_on={"order": True}, subagents=[
    {"name": "finder", "description": "Finds products", "system_prompt": "Find it.", "tools": [find]}])
