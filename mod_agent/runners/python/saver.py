# SPDX-License-Identifier: Apache-2.0
"""The checkpointer of all graphs: LangGraph's interface on the records of a run.

It has no state of its own. A call belongs to the run whose code makes it, or, from a
thread that the application has made, to the run of the thread that its config names.
Blocking methods wait for the loop; on the loop itself they are refused.
"""

from __future__ import annotations

import inspect
import itertools
import random
from typing import Any, AsyncIterator, Callable, Iterator, Mapping, NoReturn, Sequence

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .breakpoints import plain_form
from .bridge import Bridge, on_loop
from .checkpoints import configurable_of
from .job import Job
from .records import Records, delta_groups
from .references import Stored

Config = Mapping[str, Any]


def config_of(thread_id: str, ns: str, checkpoint_id: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}


def make_serde(options: Mapping[str, Any]) -> Any:
    """The library's serializer with the options of `checkpointer.serde` that its version has."""
    known = inspect.signature(JsonPlusSerializer).parameters
    given = {name: value for name, value in options.items() if name in known}
    for name in ("allowed_json_modules", "allowed_msgpack_modules"):
        if isinstance(given.get(name), list):
            given[name] = [tuple(item) if isinstance(item, list) else (item,) for item in given[name]]
    return JsonPlusSerializer(**given)


class Saver(BaseCheckpointSaver[str]):
    def __init__(self, find: Callable[[Config | None], Job], bridge: Bridge, serde: Any = None) -> None:
        super().__init__(serde=serde)
        self._find = find
        self._bridge = bridge

    # --- Reading -------------------------------------------------------------

    @on_loop
    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        records = self._find(config).records
        configurable = config["configurable"]
        stored = await records.get(configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id"))
        if stored is None:
            return None
        stored = await records.breakpoints.check(stored, configurable, self.serde)
        return await self._tuple(records, configurable["thread_id"], stored)

    async def _tuple(self, records: Records, thread_id: str, stored: Stored) -> CheckpointTuple:
        values, writes = await records.values(stored, self.serde)
        ns, parent = stored.tuple["ns"], stored.tuple["parent"]
        return CheckpointTuple(
            config_of(thread_id, ns, stored.tuple["checkpoint_id"]),
            {**records.breakpoints.form(stored), "channel_values": values},
            stored.tuple["metadata"],
            config_of(thread_id, ns, parent) if parent else None,
            writes)

    def alist(self, config: Config | None, *, filter: dict[str, Any] | None = None,
              before: Config | None = None, limit: int | None = None) -> AsyncIterator[CheckpointTuple]:
        return self._bridge.iterate_on(self._list(config, filter, before, limit))

    async def _list(self, config: Config | None, filter_: dict[str, Any] | None, before: Config | None,
                    limit: int | None) -> AsyncIterator[CheckpointTuple]:
        records = self._find(config).records
        configurable = configurable_of(config)
        before_id = configurable_of(before).get("checkpoint_id")
        if (only := configurable.get("checkpoint_id")) is not None:
            is_listed = limit != 0 and (before_id is None or only < before_id)
            found = await self.aget_tuple(config) if is_listed else None
            if found is not None and has_members(found.metadata, filter_ or {}):
                yield found
            return
        async for stored in records.list(configurable.get("checkpoint_ns"), before_id, filter_, limit):
            yield await self._tuple(records, configurable["thread_id"], stored)

    @on_loop
    async def aget_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> Mapping[str, Any]:
        if not channels:
            return {}
        records = self._find(config).records
        configurable = config["configurable"]
        ns, checkpoint_id = configurable.get("checkpoint_ns", ""), configurable.get("checkpoint_id")
        if checkpoint_id is None:
            stored = await records.get(ns, None)
            if stored is None:
                return {name: {"writes": []} for name in channels}
            checkpoint_id = stored.tuple["checkpoint_id"]
        history: dict[str, Any] = {}
        for names in delta_groups(ns, channels):
            history |= await records.delta(ns, checkpoint_id, names, self.serde)
        return history

    # --- Writing -------------------------------------------------------------

    @on_loop
    async def aput(self, config: Config, checkpoint: Any, metadata: Any,
                   new_versions: Mapping[str, Any]) -> dict[str, Any]:
        configurable = config["configurable"]
        ns = configurable.get("checkpoint_ns", "")
        body = plain_form(checkpoint)
        del body["channel_values"]
        job = self._find(config)
        bounded = job.metadata.bounded
        copied = {name: bounded(config.get(name)) for name in ("configurable", "metadata")}
        stored_metadata = dict(get_checkpoint_metadata({**config, **copied}, bounded(metadata)))
        stored_metadata.pop("writes", None)
        await job.records.put(
            ns, checkpoint["id"], configurable.get("checkpoint_id"), body, stored_metadata,
            checkpoint["channel_values"], list(new_versions), self.serde)
        return config_of(configurable["thread_id"], ns, checkpoint["id"])

    @on_loop
    async def aput_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str,
                          task_path: str = "") -> None:
        configurable = config["configurable"]
        # Numbers are those among the writes of channels. Older versions save what they have read once more, and beside it there
        # may be more or less questions and answers: a write with another number would be applied twice.
        numbers = itertools.count()
        numbered = [(WRITES_IDX_MAP[channel] if channel in WRITES_IDX_MAP else next(numbers), channel, value)
                    for channel, value in writes]
        await self._find(config).records.put_writes(configurable.get("checkpoint_ns", ""), configurable["checkpoint_id"],
                                            task_id, task_path, numbered, self.serde)

    # The library inspects it once in each run.
    aput_writes.__signature__ = inspect.signature(aput_writes)  # type: ignore[attr-defined]

    def get_next_version(self, current: Any, channel: Any = None) -> str:
        """Greater than `current`; the random part tells two branches of a thread apart."""
        if current is None:
            number = 0
        elif isinstance(current, str):
            number = int(current.split(".")[0])
        else:
            number = int(current)
        return f"{number + 1:032}.{random.random():016}"

    # --- Operations of the server ---------------------------------------------

    async def adelete_thread(self, thread_id: str) -> None:
        _refuse("deletes threads", "DELETE /threads/{thread_id}")

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        _refuse("deletes runs", "DELETE /threads/{thread_id}/runs/{run_id}")

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        _refuse("copies threads", "POST /threads/{thread_id}/copy")

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        _refuse("prunes threads", "POST /threads/prune")

    # --- The blocking twins --------------------------------------------------

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        return self._bridge.call(self.aget_tuple(config))

    def list(self, config: Config | None, *, filter: dict[str, Any] | None = None,
             before: Config | None = None, limit: int | None = None) -> Iterator[CheckpointTuple]:
        return self._bridge.iterate(self._list(config, filter, before, limit))

    def get_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> Mapping[str, Any]:
        return self._bridge.call(self.aget_delta_channel_history(config=config, channels=channels))

    def put(self, config: Config, checkpoint: Any, metadata: Any, new_versions: Mapping[str, Any]) -> dict[str, Any]:
        return self._bridge.call(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str,
                   task_path: str = "") -> None:
        self._bridge.call(self.aput_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        self._bridge.call(self.adelete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._bridge.call(self.adelete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._bridge.call(self.acopy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._bridge.call(self.aprune(thread_ids, strategy=strategy))


def _refuse(action: str, request: str) -> NoReturn:
    raise NotImplementedError(f"The server {action}: {request}")


def has_members(value: Mapping[str, Any], members: Mapping[str, Any]) -> bool:
    """Compares the metadata of one checkpoint as checkpoint.list does."""
    return all(name in value and value[name] == members[name] for name in members)
