# SPDX-License-Identifier: Apache-2.0
"""Threads of a suite, each with a run that is held open, whose checkpointer the suite uses."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
import uuid
from collections import OrderedDict
from contextvars import Context, copy_context
from typing import Any, AsyncIterator, TypedDict

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

# Runs that are held at a time; the one that was used longest ago ends first.
MOST_HELD = 20


class State(TypedDict, total=False):
    url: str
    results: list[Any]


class Held:
    """A run that executes, seen from its own code: its context and its checkpointer."""

    def __init__(self, saver: Any, context: Context) -> None:
        self.saver = saver
        self.context = context
        self.run_id = ""
        self.released = asyncio.Event()
        # The checkpoints of the root graph that were put, as the library shows them.
        self.shown: dict[str, dict[str, Any]] = {}

    async def call(self, is_blocking: bool, name: str, *args: Any, **options: Any) -> Any:
        """A method of the checkpointer, on the loop or in a thread; of `list` all results."""
        if is_blocking:
            method = getattr(self.saver, name)
            call = (lambda: list(method(*args, **options))) if name == "list" else lambda: method(*args, **options)
            return await asyncio.get_running_loop().run_in_executor(None, self.context.copy().run, call)
        return await asyncio.get_running_loop().create_task(self._await(name, args, options), context=self.context)

    async def _await(self, name: str, args: Any, options: Any) -> Any:
        called = getattr(self.saver, "a" + name)(*args, **options)
        return [item async for item in called] if name == "list" else await called


_begun: dict[str, asyncio.Future[Held]] = {}


class HeldGraph(CompiledStateGraph):
    """A graph whose run waits for the suite, then shows the checkpoints that it has put."""

    async def astream(self, _input: Any, config: Any = None, **_options: Any) -> AsyncIterator[Any]:
        held = Held(self.checkpointer, copy_context())
        _begun[config["configurable"]["thread_id"]].set_result(held)
        await held.released.wait()
        for payload in held.shown.values():
            yield (), "checkpoints", payload


def node_graph(name: str, node: Any) -> CompiledStateGraph:
    return StateGraph(State).add_node(name, node).set_entry_point(name).set_finish_point(name).compile()


thread = node_graph("wait", lambda state: state)
thread.__class__ = HeldGraph


class Threads:
    """The threads of a suite by its own names. Methods are called one after another."""

    def __init__(self, url: str, prefix: str) -> None:
        self._url = url
        self._prefix = prefix
        self._ids: dict[str, str] = {}
        self._held: OrderedDict[str, Held] = OrderedDict()
        self.names: list[str] = []
        # The suite's id of a run -> thread and run of the server.
        self._runs: dict[str, tuple[str, str]] = {}

    def id_of(self, name: str) -> str:
        return self._ids.setdefault(name, str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._prefix} {name}")))

    async def of(self, name: str, run: str | None = None) -> Held:
        """The run of a thread; another one than before for another id of a run of the suite."""
        held = self._held.get(name)
        if run is not None and held is not None and self._runs.get(run, ("", ""))[1] != held.run_id:
            await self.release(name)
            held = None
        if held is None:
            while len(self._held) >= MOST_HELD:
                await self.release(next(iter(self._held)))
            held = self._held[name] = await self._begin(name)
            if name not in self.names:
                self.names.append(name)
        self._held.move_to_end(name)
        if run is not None:
            self._runs[run] = (self.id_of(name), held.run_id)
        return held

    async def _begin(self, name: str) -> Held:
        thread_id = self.id_of(name)
        begun = _begun[thread_id] = asyncio.get_running_loop().create_future()
        await self.ask("POST", "/threads", {"thread_id": thread_id, "if_exists": "do_nothing"})
        run = await self.ask("POST", f"/threads/{thread_id}/runs", {"assistant_id": "thread", "input": {}})
        held = await begun
        held.run_id = run["run_id"]
        return held

    async def release(self, name: str) -> None:
        """Ends the run of a thread."""
        held = self._held.pop(name, None)
        if held is not None:
            held.released.set()
            path = f"/threads/{self.id_of(name)}/runs/{held.run_id}"
            await self.ask("GET", path + "/join")
            status = (await self.ask("GET", path))["status"]
            if status != "success":
                raise RuntimeError(f"the run of {name} ended with {status}")

    async def release_all(self) -> None:
        for name in list(self._held):
            await self.release(name)

    # --- Operations of the server ------------------------------------------------

    async def ask(self, method: str, path: str, body: Any = None, missing: Any = None) -> Any:
        """The answer of the API; `missing` for a thread or run that does not exist, if it is given."""
        def send() -> Any:
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
            try:
                with urllib.request.urlopen(request) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                text = error.read().decode()
                if missing is not None and error.code == 404:
                    return missing
                raise RuntimeError(f"{method} {path}: {error.code} {text}") from None
        return await asyncio.to_thread(send)

    async def delete(self, name: str) -> None:
        await self.release(name)
        await self.ask("DELETE", f"/threads/{self.id_of(name)}", missing=())

    async def delete_run(self, run: str) -> None:
        if run in self._runs:
            for name in list(self._held):
                if self.id_of(name) == self._runs[run][0]:
                    await self.release(name)
            thread_id, run_id = self._runs.pop(run)
            await self.ask("DELETE", f"/threads/{thread_id}/runs/{run_id}")

    async def copy(self, source: str, target: str) -> None:
        await self.release(source)
        self._ids[target] = (await self.ask("POST", f"/threads/{self.id_of(source)}/copy", {}))["thread_id"]

    async def prune(self, names: list[str], strategy: str) -> None:
        for name in names:
            await self.release(name)
        if names:
            await self.ask("POST", "/threads/prune",
                           {"thread_ids": [self.id_of(name) for name in names], "strategy": strategy})
