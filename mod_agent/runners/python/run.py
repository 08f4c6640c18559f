# SPDX-License-Identifier: Apache-2.0
"""One run, from `start` to `end`."""

import asyncio
import contextlib
import functools
import importlib.util
import uuid
from typing import Any, AsyncIterator, Mapping

from . import graphs, jsontext, log, strict
from .blobs import Blobs, Cache
from .lane import Lane, RequestError, ValueTooLargeError
from .metadata import Metadata
from .records import Records
from .state import States, check_format, configurable_of
from .stream import Stream, library_modes


# Names of a config that say where a run begins; the runner sets them itself.
PLACE = {"checkpoint_id", "checkpoint_ns", "checkpoint_map"}
# Names of the library, and those in which a graph finds the authenticated user: no client may set them.
RESERVED = ("__", "langgraph_auth_")


class Drained(Exception):
    """The run stops after a checkpoint; another runner goes on."""


class Job:
    """What a run and a call have in common."""

    def __init__(self, message: Mapping[str, Any], lane: Lane, blob_part: int, cache: Cache) -> None:
        self.message = message
        self.run_id: str = message["run_id"]
        self.epoch: int = message["epoch"]
        self.thread_id: str | None = message.get("thread_id")
        self.lane = lane
        checkpoint = message.get("checkpoint") or {}
        self.head: str | None = checkpoint.get("checkpoint_id")
        self.records = Records(lane, Blobs(lane, blob_part, cache), self.head,
                               self.head is None and message.get("op") in (None, "update"))
        self.states = States(lane, self.head, self.records.head_values)
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False
        self.has_begun = False
        self.is_ending = False
        # Its threads may go on (executor.py).
        self.has_ended = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.lane.cancel()
        # A task that is cancelled before its first step would never send `end`.
        if self.task is not None and self.has_begun and not self.is_ending:
            self.task.cancel()

    def begin(self) -> None:
        """The first step of execute(); raises CancelledError."""
        self.has_begun = True
        if self.is_cancelled:
            raise asyncio.CancelledError

    def stop(self) -> None:
        """Asked to stop at the next checkpoint; a call is short."""

    def config(self) -> dict[str, Any]:
        """The library's config: the client's, with the ids of the run."""
        given = self.message.get("config") or {}
        ids = {"run_id": self.run_id, "thread_id": self.thread_id, "graph_id": self.message["graph_id"]}
        if "assistant_id" in self.message:
            ids["assistant_id"] = self.message["assistant_id"]
        # The members of the context too, for code that reads the older `configurable`.
        own = given.get("configurable") or {}
        if own.get("user_id") == "":
            # The server sends "" for no user; applications expect the member to be absent.
            own = {name: value for name, value in own.items() if name != "user_id"}
        members = {**(self.message.get("context") or {}), **own}
        configurable = {name: value for name, value in members.items() if not name.startswith(RESERVED) and name not in PLACE}
        config: dict[str, Any] = {
            "configurable": {**configurable, **ids, "checkpoint_ns": ""},
            "metadata": {**(given.get("metadata") or {}), **ids},
            "tags": list(given.get("tags") or []),
        }
        if given.get("recursion_limit") is not None:
            config["recursion_limit"] = given["recursion_limit"]
        return config

    async def finish(self, status: str, error: BaseException | None, extra: list[tuple[str, bytes]] | None = None) -> None:
        self.is_ending = True
        shown = b"null"
        if error is not None and status == "error":
            shown = jsontext.dumps({"error": name_of(error), "message": jsontext.one_line(error)})
        log.end_run(self.run_id)
        try:
            await self.lane.finish([("status", jsontext.dumps(status)), ("error", shown), *(extra or [])])
        except ValueTooLargeError as too_large:
            await self.finish("error", too_large)


def payload_of(snapshot: Any) -> dict[str, Any]:
    """A state of the library in the form of its stream mode `checkpoints`."""
    return {
        "config": snapshot.config, "parent_config": snapshot.parent_config, "values": snapshot.values,
        "metadata": snapshot.metadata or {}, "next": list(snapshot.next),
        "tasks": [{"id": task.id, "name": task.name, "path": task.path, "error": task.error,
                   "interrupts": task.interrupts, "result": getattr(task, "result", None),
                   "state": task.state if isinstance(task.state, dict) else None} for task in snapshot.tasks]}


def name_of(error: BaseException) -> str:
    return jsontext.one_line(error.name if isinstance(error, (graphs.GraphError, RequestError)) else type(error).__name__, 200)


def to_command(form: Mapping[str, Any]) -> Any:
    """The library's Command of a client's."""
    from langgraph.types import Command, Send

    def target(value: Any) -> Any:
        if isinstance(value, Mapping):
            return Send(value["node"], value.get("input", value.get("arg")))
        return value

    goto, update = form.get("goto") or (), form.get("update")
    if isinstance(update, list):
        update = [tuple(pair) for pair in update]
    return Command(update=update, resume=form.get("resume"),
                   goto=[target(value) for value in goto] if isinstance(goto, list) else target(goto))


def is_parent_command(error: BaseException) -> bool:
    """Whether a node of the root graph has given a command to the parent, which is the caller's graph (RemoteGraph)."""
    return type(error).__name__ == "ParentCommand" and bool(error.args)


@functools.cache
def has_module(name: str) -> bool:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(name) is not None
    return False


class Run(Job):
    def __init__(self, message: Mapping[str, Any], lane: Lane, blob_part: int, cache: Cache, graph: graphs.Graph) -> None:
        super().__init__(message, lane, blob_part, cache)
        self._graph = graph
        self._durability = message.get("durability") or "async"
        self._is_exit = self._durability == "exit"
        self.records.is_sync = self._durability == "sync"
        self.records.on_put = self.states.on_put
        modes = set(message["stream_modes"])
        self._modes = modes
        self._stream = Stream(lane, modes, bool(message.get("stream_subgraphs")), Metadata(self.config()))
        self._control = make_control()
        self._is_stopping = False
        # With durability `exit`: checkpoints that may be saved at the end, and the results of their tasks.
        self._held: dict[str, Mapping[str, Any]] = {}
        self._held_tasks: dict[str, list[Mapping[str, Any]]] = {}

    def stop(self) -> None:
        self._is_stopping = True
        if self._control is not None:
            self._control.request_drain("drain")

    async def execute(self) -> None:
        status, error = "success", None
        try:
            self.begin()
            await self._execute()
        except Drained:
            status = "drained"
        except BaseException as caught:  # pylint: disable=broad-except
            status, error = self._status_of(caught), caught
        self.is_ending = True
        try:
            self._complete()
        except Exception as caught:  # pylint: disable=broad-except
            status, error = ("error", error or caught) if status == "success" else (status, error)
        if status == "error" and error is not None:
            log.write_traceback(error)
            self._stream.error(name_of(error), jsontext.one_line(error))
        await self.finish(status, error)

    def _status_of(self, error: BaseException) -> str:
        if isinstance(error, asyncio.CancelledError) and self.is_cancelled:
            return "interrupted"
        return "drained" if type(error).__name__ == "GraphDrained" and self._is_stopping else "error"

    async def _execute(self) -> None:
        config = self.config() | {"run_id": uuid.UUID(self.run_id), "run_name": self._graph.name}
        if self.head is not None and await self._is_addressed(self.head):
            config["configurable"]["checkpoint_id"] = self.head
        if self.head is not None and self.message.get("checkpoint_map"):
            # The library asks for the checkpoints of subgraphs when it comes to them.
            config["configurable"]["checkpoint_map"] = {**self.message["checkpoint_map"], "": self.head}
        strict.apply(config["configurable"], self.message)
        context = self.message.get("context") or None
        async with self._graph.use(graphs.RUN, config, context) as graph:
            try:
                async for ns, mode, data in self._items(graph, config, graphs.context_of(graph, context, config)):
                    await self._take(ns, mode, data)
                    await self.lane.room()
            except Exception as error:
                if not is_parent_command(error):
                    raise
                self._stream.flush_values()
                self._stream.command(error.args[0])
            await self._show_last(graph, config)

    async def _is_addressed(self, head: str) -> bool:
        """Whether the library's config must name the checkpoint from which the run starts; raises ForeignStateError.

        For a fork always; for the thread's last checkpoint if the client has named it, in the first attempt only.
        """
        check_format(self.message["checkpoint"])
        if not await self.records.find_start(head):
            return True
        named = ((self.message.get("config") or {}).get("configurable") or {}).get("checkpoint_id")
        return self.message["attempt"] == 1 and str(named).lower() == head

    async def _show_last(self, graph: Any, config: dict[str, Any]) -> None:
        """Old versions do not stream the checkpoint at which a breakpoint after a node stops."""
        last = self.records.last_put("")
        if last is not None and last != self.states.head and not self._is_exit:
            self._stream.flush_values()
            for name in ("checkpoint_id", "checkpoint_map"):
                config["configurable"].pop(name, None)
            self.states.send(payload_of(await graph.aget_state(config)), "")

    def _items(self, graph: Any, config: dict[str, Any], context: Any) -> AsyncIterator[tuple[Any, str, Any]]:
        message = self.message
        value = to_command(message["command"]) if message.get("command") is not None else message["input"]
        options: dict[str, Any] = {
            "context": context, "durability": self._durability, "subgraphs": True,
            "stream_mode": library_modes(self._modes, has_module("langgraph.pregel._tools")),
            "interrupt_before": message.get("interrupt_before"), "interrupt_after": message.get("interrupt_after")}
        if self._control is not None:
            options["control"] = self._control
        if "events" in self._modes:
            return self._events(graph, value, config, options)
        return graph.astream(value, config, **options)

    async def _events(self, graph: Any, value: Any, config: dict[str, Any],
                      options: dict[str, Any]) -> AsyncIterator[tuple[Any, str, Any]]:
        """With the mode `events` the chunks of the other modes come inside the root graph's `on_chain_stream` events."""
        async for event in graph.astream_events(value, config, version="v2", **options):
            if event["event"] == "on_chain_stream" and str(event["run_id"]) == self.run_id:
                yield event["data"]["chunk"]
            else:
                yield (), "events", event

    # --- Items of the stream --------------------------------------------------

    async def _take(self, ns: tuple[str, ...], mode: str, data: Any) -> None:
        if mode == "checkpoints":
            await self._take_checkpoint(ns, data)
        elif mode == "events":
            self._stream.take_event(data)
        elif mode == "debug" and data["type"] == "checkpoint":
            self._stream.take_debug(ns, data)
        else:
            if mode == "tasks" and "result" in data:
                self._take_result("|".join(ns), data)
            self._stream.take(ns, mode, data)

    async def _take_checkpoint(self, ns: tuple[str, ...], payload: Mapping[str, Any]) -> None:
        name, checkpoint_id = "|".join(ns), configurable_of(payload["config"])["checkpoint_id"]
        is_sent = False
        if self.records.was_read(name, checkpoint_id):
            self.states.note(payload, name)
            # The run was started from it, and nothing has changed it.
            is_sent = not ns and checkpoint_id == self.head and not (self.message.get("command") or {}).get("update")
            self._held.pop(name, None)
        elif self._is_exit:
            self._held[name], self._held_tasks[name] = payload, []
        else:
            await self.records.wait_for_put(name, checkpoint_id)
            if self.records.has_put(name, checkpoint_id):
                self.states.send(payload, name)
                is_sent = True
        self._stream.take_checkpoint(ns, payload, is_sent and not ns)
        if self._is_stopping and self._control is None and is_sent and not ns and payload["next"]:
            raise Drained

    def _take_result(self, ns: str, result: Mapping[str, Any]) -> None:
        if ns in self._held:
            self._held_tasks[ns].append(result)
        elif (checkpoint_id := self.states.last_id(ns)) is not None:
            self.states.send_task(ns, checkpoint_id, result)

    def _complete(self) -> None:
        """Sends held values and, with durability `exit`, the held checkpoints with their tasks."""
        self._stream.flush_values()
        self._stream.flush_messages()
        for ns, payload in self._held.items():
            checkpoint_id = configurable_of(payload["config"])["checkpoint_id"]
            if self.records.has_put(ns, checkpoint_id):
                self.states.send(payload, ns)
                for result in self._held_tasks[ns]:
                    self.states.send_task(ns, checkpoint_id, result)


def make_control() -> Any:
    """The library's switch to stop before the next step; None in versions without one."""
    try:
        from langgraph.runtime import RunControl
    except ImportError:
        return None
    return RunControl()
