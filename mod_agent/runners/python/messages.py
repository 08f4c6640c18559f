# SPDX-License-Identifier: Apache-2.0
"""The older form of the stream mode `messages`: each message whole, as far as it has come."""

from typing import Any, Iterator

# Messages that have not ended; the oldest is forgotten.
OPEN_MAX = 256


class LegacyMessages:
    def __init__(self) -> None:
        self._open: dict[str, Any] = {}

    def take(self, message: Any, metadata: Any) -> Iterator[tuple[str, Any]]:
        """The events for a message or a piece of one: (name, data)."""
        from langchain_core.messages import BaseMessageChunk, message_chunk_to_message

        is_chunk = isinstance(message, BaseMessageChunk)
        before = self._open.get(message.id)
        if before is None:
            yield "messages/metadata", {message.id: {"metadata": metadata}}
        if not is_chunk:
            self._open.pop(message.id, None)
            yield "messages/complete", [message]
            return
        whole = message if before is None else before + message
        self._open[message.id] = whole
        if len(self._open) > OPEN_MAX:
            del self._open[next(iter(self._open))]
        yield "messages/partial", [message_chunk_to_message(whole)]
        if getattr(message, "chunk_position", None) == "last":
            del self._open[message.id]
            yield "messages/complete", [message_chunk_to_message(whole)]
