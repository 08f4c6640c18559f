# SPDX-License-Identifier: Apache-2.0
"""Calls from the threads of nodes into the loop: of the blocking twins of async methods, and of async code on loops of its own."""

import asyncio
import concurrent.futures
import contextlib
import functools
import queue
import threading
from typing import Any, AsyncIterator, Callable, Coroutine, Iterator, TypeVar

T = TypeVar("T")


def on_loop(method: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """For async methods of an object with a `_bridge`: they execute on the loop, whatever loop their caller is on."""
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **options: Any) -> T:
        return await self._bridge.run(method(self, *args, **options))

    return call


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

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Awaits a coroutine of the loop; also on another one, as asyncio.run() makes in a plain function."""
        loop, own = self._loop, asyncio.get_running_loop()
        if loop is None or loop is own:
            return await coroutine
        answer: asyncio.Future[asyncio.Task[T]] = own.create_future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(loop.create_task(coroutine))
            tasks[0].add_done_callback(end)

        def end(task: asyncio.Task[T]) -> None:
            # The caller no longer waits, and has closed its loop.
            with contextlib.suppress(RuntimeError):
                own.call_soon_threadsafe(give, task)

        def give(task: asyncio.Task[T]) -> None:
            if not answer.done():
                answer.set_result(task)

        loop.call_soon_threadsafe(begin)
        try:
            task = await answer
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(lambda: tasks[0].cancel())
            raise
        return task.result()

    def iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        while True:
            is_there, item = self.call(_next_item(iterator))
            if not is_there:
                return
            yield item

    async def iterate_on(self, iterator: AsyncIterator[T]) -> AsyncIterator[T]:
        """iterate() for a caller on any loop."""
        while True:
            is_there, item = await self.run(_next_item(iterator))
            if not is_there:
                return
            yield item


async def _next_item(iterator: AsyncIterator[T]) -> tuple[bool, Any]:
    try:
        return True, await anext(iterator)
    except StopAsyncIteration:
        return False, None
