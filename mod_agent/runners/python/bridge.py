# SPDX-License-Identifier: Apache-2.0
"""Calls from the threads of nodes into the loop, for the blocking twins of async methods."""

import asyncio
import concurrent.futures
import queue
import threading
from typing import Any, AsyncIterator, Coroutine, Iterator, TypeVar

T = TypeVar("T")


class Bridge:
    """Knows the loop and its thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called on the loop's thread, before any call()."""
        self._loop = loop
        self._thread = threading.get_ident()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Waits in a thread for a coroutine of the loop; refused on the loop's own thread."""
        if self._loop is None or threading.get_ident() == self._thread:
            coroutine.close()
            raise asyncio.InvalidStateError(
                "A blocking call in an async node would stop the loop of all runs: "
                "use the async form (ainvoke, aget, ...), or make the node a plain function, which gets a thread")
        return self._call(coroutine, self._loop)

    @staticmethod
    def _call(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
        """Not by a concurrent future: its lock would stay locked where an exception that another thread raises in this
        one meets it, and the loop would wait for it for ever."""
        answers: queue.SimpleQueue[asyncio.Task[T]] = queue.SimpleQueue()
        loop.call_soon_threadsafe(lambda: loop.create_task(coroutine).add_done_callback(answers.put))
        task = answers.get()
        if task.cancelled():
            raise concurrent.futures.CancelledError
        return task.result()

    def iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        async def next_item() -> tuple[bool, Any]:
            try:
                return True, await anext(iterator)
            except StopAsyncIteration:
                return False, None

        while True:
            is_there, item = self.call(next_item())
            if not is_there:
                return
            yield item
