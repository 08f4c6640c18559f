# SPDX-License-Identifier: Apache-2.0
"""The stream mode `messages`: each message so far, made of its chunks, and complete at its end.

A part repeats what came before it. It is sent when the chunks have grown by 1/32, so that the
bytes are linear in the length of the message, not quadratic.
"""

import functools
import operator
from typing import Any, Iterator, Mapping

from . import jsontext

# Messages that have not ended; the oldest is forgotten.
OPEN_MAX = 256
# Chunks of a message that are not joined yet.
CHUNKS_MAX = 4096


def messages_of(result: Mapping[str, Any] | None) -> Iterator[Any]:
    """The messages with an id of a task's result: its channels, with a message or some in each."""
    from langchain_core.messages import BaseMessage

    for value in (result or {}).values():
        for write in value["$writes"] if isinstance(value, dict) and "$writes" in value else [value]:
            found = write if isinstance(write, (list, tuple)) else [write]
            yield from (message for message in found if isinstance(message, BaseMessage) and message.id)


class Open:
    """A message that has not ended. To join its chunks costs its length: their JSON is parsed again."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.is_shown = True
        self._chunks: list[Any] = []
        self._bytes = self._shown_bytes = 0

    def add(self, chunk: Any) -> None:
        self._chunks.append(chunk)
        self._bytes += len(jsontext.dumps(chunk, lenient=True))
        self.is_shown = False
        if len(self._chunks) > CHUNKS_MAX:
            self.join()

    def has_grown(self) -> bool:
        return self._bytes > self._shown_bytes + self._shown_bytes // 32

    def show(self) -> tuple[str, Any]:
        self.is_shown, self._shown_bytes = True, self._bytes
        return self._event("messages/partial")

    def complete(self) -> tuple[str, Any]:
        return self._event("messages/complete")

    def _event(self, name: str) -> tuple[str, Any]:
        from langchain_core.messages import message_chunk_to_message

        return name, [message_chunk_to_message(self.join())]

    def join(self) -> Any:
        from langchain_core.messages import AIMessageChunk

        first, *others = self._chunks
        if others and all(isinstance(chunk, AIMessageChunk) for chunk in self._chunks):
            self._chunks = [first + others]
        else:
            self._chunks = [functools.reduce(operator.add, self._chunks)]
        return self._chunks[0]


class Messages:
    def __init__(self) -> None:
        self._open: dict[str, Open] = {}

    def take(self, message: Any, metadata: Any) -> Iterator[tuple[str, Any]]:
        """The events for a message or a piece of one: (name, data). A name has no namespace, as on the official servers."""
        from langchain_core.messages import BaseMessageChunk

        if message.id not in self._open:
            yield "messages/metadata", {message.id: {"metadata": metadata}}
        if not isinstance(message, BaseMessageChunk):
            self._open.pop(message.id, None)
            yield "messages/complete", [message]
            return
        entry = self._open.setdefault(message.id, Open((metadata or {}).get("langgraph_checkpoint_ns")))
        entry.add(message)
        # LangChain adds an empty last chunk to those of a model that marks none.
        is_last = getattr(message, "chunk_position", None) == "last"
        if entry.has_grown() and (message.content or not is_last):
            yield entry.show()
        if is_last:
            yield self._open.pop(message.id).complete()
        if len(self._open) > OPEN_MAX:
            yield from self._show_rest([next(iter(self._open))])

    def end_task(self, name: str, has_failed: bool) -> Iterator[tuple[str, Any]]:
        """The end of a task. Its messages are complete: models of old versions do not mark the last chunk."""
        keys = [key for key, entry in self._open.items() if entry.task == name]
        if has_failed:
            yield from self._show_rest(keys)
        else:
            yield from [self._open.pop(key).complete() for key in keys]

    def end(self) -> Iterator[tuple[str, Any]]:
        """The end of the run: messages of tasks that were cancelled stay parts."""
        yield from self._show_rest(list(self._open))

    def _show_rest(self, keys: list[str]) -> Iterator[tuple[str, Any]]:
        for key in keys:
            entry = self._open.pop(key)
            if not entry.is_shown:
                yield entry.show()
