# SPDX-License-Identifier: Apache-2.0
"""A chat model that needs no key and no network: it follows a script.

`order 2 cups` and `price of a kettle` call a tool; the text of a tool is
repeated; everything else is answered with what the agent can do.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

ORDER = re.compile(r"\border (\d+) (?:x )?([a-z]+?)s?\b", re.IGNORECASE)
PRICE = re.compile(r"\bprice of (?:an? |the )?([a-z]+?)s?\b", re.IGNORECASE)
HELP = "I can find prices (price of a kettle) and place orders (order 2 cups)."


def _tool_call(name: str, arguments: dict[str, Any], count: int) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": f"call_{count}", "type": "tool_call"}


def _answer(messages: Sequence[BaseMessage]) -> AIMessage:
    last = messages[-1]
    text = last.text
    if isinstance(last, ToolMessage):
        return AIMessage(text)
    if match := ORDER.search(text):
        arguments = {"product": match[2].lower(), "quantity": int(match[1])}
        return AIMessage("", tool_calls=[_tool_call("place_order", arguments, len(messages))])
    if match := PRICE.search(text):
        arguments = {"product": match[1].lower()}
        return AIMessage("", tool_calls=[_tool_call("find_price", arguments, len(messages))])
    return AIMessage(HELP)


class ScriptedModel(BaseChatModel):
    """Streams its answers word by word, as models do."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "ScriptedModel":
        return self

    def _generate(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> Iterator[ChatGenerationChunk]:
        answer = _answer(messages)
        if answer.tool_calls:
            yield ChatGenerationChunk(
                message=AIMessageChunk("", tool_calls=answer.tool_calls)
            )
            return
        for word in re.findall(r"\S+\s*", answer.content):
            yield ChatGenerationChunk(message=AIMessageChunk(word))

    async def _astream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages):
            yield chunk
