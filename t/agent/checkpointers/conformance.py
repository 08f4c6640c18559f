# SPDX-License-Identifier: Apache-2.0
"""LangGraph's conformance suite for checkpointers, on the runner's own, in its async and its blocking form."""

from __future__ import annotations

import copy
from typing import Any, AsyncIterator, Mapping, Sequence

from held import State, Threads, node_graph, thread  # noqa: F401
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import ProgressCallbacks
from langgraph.checkpoint.memory import InMemorySaver


class SuiteSaver(BaseCheckpointSaver[str]):
    """Passes calls on to the runner's checkpointer, with the server's ids in place of the suite's names."""

    def __init__(self, threads: Threads, is_blocking: bool) -> None:
        super().__init__()
        self._threads = threads
        self._is_blocking = is_blocking

    async def _call(self, name: str, config: Any, *args: Any, run: str | None = None, **options: Any) -> Any:
        thread_name = config["configurable"]["thread_id"]
        held = await self._threads.of(thread_name, run)
        ours = self._with_thread(config, self._threads.id_of(thread_name))
        if name == "get_delta_channel_history":
            return await held.call(self._is_blocking, name, config=ours, **options)
        return await held.call(self._is_blocking, name, ours, *args, **options)

    @staticmethod
    def _with_thread(config: Any, thread_id: str) -> Any:
        return {**config, "configurable": {**config["configurable"], "thread_id": thread_id}}

    def _tuple(self, found: Any, name: str) -> Any:
        parent = found.parent_config
        return found._replace(config=self._with_thread(found.config, name),
                              parent_config=self._with_thread(parent, name) if parent else None)

    async def aget_tuple(self, config: Any) -> Any:
        found = await self._call("get_tuple", config)
        return None if found is None else self._tuple(found, config["configurable"]["thread_id"])

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        names = list(self._threads.names) if config is None else [config["configurable"]["thread_id"]]
        for name in names:
            for found in await self._call("list", config or {"configurable": {"thread_id": name}}, **options):
                yield self._tuple(found, name)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        name = config["configurable"]["thread_id"]
        # The runner keeps what a graph has put, which does not change it.
        after = await self._call("put", config, copy.deepcopy(checkpoint), metadata, new_versions, run=metadata.get("run_id"))
        if not config["configurable"].get("checkpoint_ns"):
            await self._show(name, config["configurable"].get("checkpoint_id"), after)
        return self._with_thread(after, name)

    async def _show(self, name: str, parent: str | None, after: Any) -> None:
        held = await self._threads.of(name)
        configurable = {**after["configurable"], "checkpoint_id": parent}
        held.shown.setdefault(after["configurable"]["checkpoint_id"], {
            "config": after, "parent_config": {"configurable": configurable} if parent else None,
            "values": {}, "metadata": {"source": "loop", "step": 0, "parents": {}}, "next": [], "tasks": []})

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await self._call("put_writes", config, writes, task_id, task_path)

    async def aget_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Mapping[str, Any]:
        return await self._call("get_delta_channel_history", config, channels=channels)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._threads.delete(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        for run in run_ids:
            await self._threads.delete_run(run)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._threads.copy(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._threads.prune(list(thread_ids), strategy)


# --- Delta history: the same operations on the library's own saver --------------------

CHANNELS = ["log", "plain", "never"]


async def build(saver: Any, name: str) -> list[Any]:
    """A chain with a fork: `log` changes in each step and has values in the second and the fifth, `plain` in the first."""
    configs: list[Any] = []
    for step in range(8):
        parent = configs[3] if step == 6 else configs[-1] if configs else None
        values: dict[str, Any] = {"other": step}
        if step in (1, 4):
            values["log"] = [{"seed": step, "text": "s" * 300}, {"seed": step, "second": True}]
        if step == 0:
            values["plain"] = "first"
        new_versions = {name: step + 1 for name in ("log", *values)}
        checkpoint = {"v": 4, "id": f"1f1e75c{step}-0e05-6e41-bfff-0aba6e3a38bb", "ts": "2026-11-23T10:00:00+00:00",
                      "channel_values": values, "channel_versions": {"plain": 1, **new_versions},
                      "versions_seen": {}, "updated_channels": None}
        config = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        if parent is not None:
            config["configurable"]["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
        metadata = {"source": "loop", "step": step, "parents": {}}
        if "log" not in values:
            metadata["counters_since_delta_snapshot"] = {"log": [1, 1], "never": [0, step]}
        after = await saver.aput(config, checkpoint, metadata, new_versions)
        configs.append(after)
        # The order is that of the paths, not of the ids or of the calls.
        for task, path in (("b", "~2"), ("a", "~3"), ("c", "~1")):
            writes = [("log", [{"task": task, "step": step}]), ("other", 1), ("log", f"{task} once more"),
                      ("plain", {"step": step})]
            await saver.aput_writes(after, writes, task, path)
    return configs


async def compare_history(saver: SuiteSaver, tell: Any) -> None:
    theirs = InMemorySaver()
    configs = await build(saver, "delta")
    await build(theirs, "delta")

    async def compare(title: str, config: Any, expected_of: Any = None) -> None:
        found = await saver.aget_delta_channel_history(config=config, channels=CHANNELS)
        expected = await theirs.aget_delta_channel_history(config=expected_of or config, channels=CHANNELS)
        tell(title, found == expected, f"{found} is not {expected}")

    for step, config in enumerate(configs):
        await compare(f"delta: step {step} as the library's own saver", config)
        walked = await BaseCheckpointSaver.aget_delta_channel_history(saver, config=config, channels=CHANNELS)
        found = await saver.aget_delta_channel_history(config=config, channels=CHANNELS)
        tell(f"delta: step {step} as a walk over the parents", found == walked, f"{found} is not {walked}")
    last = {"configurable": {"thread_id": "delta", "checkpoint_ns": ""}}
    await compare("delta: without an id it is that of the last checkpoint", last, configs[-1])
    missing = {"configurable": {"thread_id": "none", "checkpoint_ns": ""}}
    found = await saver.aget_delta_channel_history(config=missing, channels=["log"])
    tell("delta: a thread without checkpoints has none", found == {"log": {"writes": []}}, str(found))
    many = [f"channel {number}" for number in range(100)]
    found = await saver.aget_delta_channel_history(config=configs[-1], channels=many)
    tell("delta: more channels than a request may have", list(found) == many, str(len(found)))

    await saver.acopy_thread("delta", "copy")
    copied = {"configurable": {"thread_id": "copy", "checkpoint_ns": ""}}
    await compare("delta: a copy of the thread has the same", copied, configs[-1])

    await saver.aprune(["delta"])
    await compare("delta: it is the same after keep_latest", last, configs[-1])
    left = [found.config["configurable"]["checkpoint_id"] async for found in saver.alist(last)]
    tell("delta: keep_latest keeps the ancestors back to the value", left == [
        configs[step]["configurable"]["checkpoint_id"] for step in (7, 6, 3, 2, 1)], str(left))


async def execute(threads: Threads, is_blocking: bool, tell: Any) -> None:
    saver = SuiteSaver(threads, is_blocking)

    @checkpointer_test(name="agent runner")
    async def registered() -> AsyncIterator[Any]:
        yield saver

    def report(capability: str, test: str, is_passed: bool, error: str | None) -> None:
        tell(f"{capability}: {test}", is_passed, error)

    # The server deletes, copies and prunes threads, in whatever form the library asks.
    capabilities = {"put", "put_writes", "get_tuple", "list"} if is_blocking else None
    await validate(registered, capabilities=capabilities, progress=ProgressCallbacks(on_test_result=report))
    await compare_history(saver, tell)
    await threads.release_all()


async def execute_suite(state: State) -> State:
    results: list[Any] = []
    for form in ("async", "blocking"):
        def tell(name: str, is_passed: bool, reason: str | None, prefix: str = form) -> None:
            results.append({"name": f"{prefix}: {name}", "reason": None if is_passed else reason or "failed"})

        await execute(Threads(state["url"], form), form == "blocking", tell)
    return {"results": results}


suite = node_graph("execute", execute_suite)
