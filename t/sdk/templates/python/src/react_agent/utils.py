# SPDX-License-Identifier: Apache-2.0
"""The model: `demo/scripted` needs no key. It searches for what the user names, then repeats the result."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    name: str = ""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "Scripted":
        assert [tool.__name__ for tool in tools] == ["search"]
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        system, last = messages[0], messages[-1]
        if last.type == "human":
            call = {"name": "search", "args": {"query": last.text}, "id": f"call-{len(messages)}", "type": "tool_call"}
            answer = AIMessage("", tool_calls=[call])
        else:
            answer = AIMessage(f"{self.name}: {system.text.split('.')[0]}. {last.text}")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def load_chat_model(fully_specified_name: str) -> BaseChatModel:
    return Scripted(name=fully_specified_name.split("/", maxsplit=1)[1])
