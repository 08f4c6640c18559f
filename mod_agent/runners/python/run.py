# SPDX-License-Identifier: Apache-2.0
"""One run, from `start` to `end`."""

import asyncio
import contextlib
import functools
import importlib.util
import uuid
from typing import Any, AsyncIterator, Awaitable, Callable, Mapping

from . import graphs, log
from .cache import Cache
from .checkpoints import check_format, configurable_of, values_of
from .errors import ValueTooLargeError, describe_error, is_drained
from .held import Held
from .job import Job, payload_of, to_command
from .output import Output
from .stream import Stream, library_modes
from .strict import strictness
from .unchanged import Snapshot


# Seconds that a cancelled run has to end and to send its states; then those for the newest state alone. The supervisor
# waits 10 s for its end.
CANCEL_SECONDS = 3
NEWEST_SECONDS = 2
TICK_SECONDS = 0.1


class Drained(Exception):
    """The run stops after a checkpoint; another runner goes on."""


def is_parent_command(error: BaseException) -> bool:
    """Whether a node of the root graph has given a command to the parent, which is the caller's graph (RemoteGraph)."""
    return type(error).__name__ == "ParentCommand" and bool(error.args)


@functools.cache
def has_module(name: str) -> bool:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(name) is not None
    return False


class Run(Job):
    def __init__(self, message: Mapping[str, Any], output: Output, blob_part: int, cache: Cache, graph: graphs.Graph) -> None:
        super().__init__(message, output, blob_part, cache)
        self._graph = graph
        self._durability = message.get("durability") or "async"
        self._is_exit = self._durability == "exit"
        self.records.on_put = self.checkpoints.capture
        self.records.on_command = self._show_update
        modes = set(message["stream_modes"])
        self._modes = modes
        self._stream = Stream(output, modes, bool(message.get("stream_subgraphs")), self.metadata)
        self._control = make_control()
        self._is_stopping = False
        # The line that shows the update of the command, until its writes are stored: with `exit` when the run ends, if at all.
        self._update: list[tuple[str, bytes]] | None = None
        # With durability `exit`; else empty.
        self._held = Held()
        self._read_state: Callable[[str | None], Awaitable[dict[str, Any]]]

    def stop(self) -> None:
        self._is_stopping = True
        if self._control is not None:
            self._control.request_drain("drain")

    async def execute(self) -> None:
        status, error = "success", None
        try:
            self.begin()
            await self._perform()
        except BaseException as caught:  # pylint: disable=broad-except
            status, error = self._status_of(caught), caught
        self.is_ending = True
        try:
            self._complete()
        except Exception as caught:  # pylint: disable=broad-except
            status, error = ("error", error or caught) if status == "success" else (status, error)
        if status == "error" and error is not None:
            log.write_traceback(error)
            self._stream.send_error(self.describe(error))
        await self.end(status, error)

    def _status_of(self, error: BaseException) -> str:
        if isinstance(error, asyncio.CancelledError) and self.is_cancelled:
            return "interrupted"
        return "drained" if self._was_drained(error) else "error"

    def _was_drained(self, error: BaseException) -> bool:
        return isinstance(error, Drained) or (is_drained(error) and self._is_stopping)

    async def _perform(self) -> None:
        config = self.config() | {"run_id": uuid.UUID(self.run_id), "run_name": self._graph.name}
        if self.head is not None and await self._is_addressed(self.head):
            config["configurable"]["checkpoint_id"] = self.head
        if self.head is not None and self.message.get("checkpoint_map"):
            # The library asks for the checkpoints of subgraphs when it comes to them.
            config["configurable"]["checkpoint_map"] = {**self.message["checkpoint_map"], "": self.head}
        config["configurable"] |= strictness(self.message)
        context = self.message.get("context") or None
        async with self._graph.use(graphs.RUN, config, context) as graph:
            self._read_state = functools.partial(self._state_of, graph, config)
            await self.records.breakpoints.begin(graph, self.message, self.records.start)
            chunks = self._chunks(graph, await self._input(graph), config, graphs.context_of(graph, context, config))
            try:
                await self._follow(chunks)
            except BaseException as error:
                await self._fail(chunks, error)
                raise

    async def _follow(self, chunks: AsyncIterator[tuple[Any, str, Any]]) -> None:
        """Takes what the library streams, up to its end."""
        try:
            async for ns, mode, data in chunks:
                await self._take(ns, mode, data)
                if not self.output.has_room():
                    await self.output.room()
        except BaseException as error:  # pylint: disable=broad-except
            if not is_parent_command(error):
                raise
            self._stream.send_values()
            self._stream.send_command(error.args[0])
        await self._show_last()
        await self._show_pending()

    async def _is_addressed(self, head: str) -> bool:
        """Whether the library's config must name the checkpoint from which the run starts; raises ForeignStateError.

        For a fork always; for the thread's last checkpoint if the client has named it, in the first attempt only.
        """
        check_format(self.message["checkpoint"])
        if not await self.records.find_start(head):
            return True
        named = ((self.message.get("config") or {}).get("configurable") or {}).get("checkpoint_id")
        return self.epoch == 1 and str(named).lower() == head

    async def _show_unshown(self, until: str | None = None) -> None:
        """Sends root checkpoints before `until` that the library does not stream: those that a node has put, as by
        `graph.aupdate_state()`; in old versions also the one at which a breakpoint after a node stops. The caller
        sends `until` itself."""
        for checkpoint_id in self.records.known.unshown(until):
            await self._show(checkpoint_id)
        if until is not None:
            self.records.known.note_shown(until)

    async def _show(self, checkpoint_id: str) -> None:
        self._stream.send_values()
        state = await self._read_state(checkpoint_id)
        # Not before: a cancel may come while it is read. A state that no line can have is not tried again.
        self.records.known.note_shown(checkpoint_id)
        self.checkpoints.send(state, "")

    async def _show_last(self) -> None:
        """At the end of the library's stream. With durability `exit` what the run holds has its place among them."""
        if (held := self._held.last_id("")) is not None:
            await self._show_unshown(held)
            self._complete()
        await self._show_unshown()

    async def _show_newest(self) -> None:
        self._complete()
        for checkpoint_id in self.records.known.unshown()[-1:]:
            await self._show(checkpoint_id)

    async def _show_pending(self) -> None:
        """At the end: where the run stops in a step with parallel nodes, some of them have ended or asked. Their writes are
        stored already; when another node fails at that moment, the library has not streamed their ends."""
        head, records = self.checkpoints.head, self.records
        if head is None or self.checkpoints.task_count < 2 or records.written != head:
            return
        try:
            self._complete()
            if await records.hold(head):
                before, state = await self._read_state(head), await self._read_state(None)
                self.checkpoints.send_ends(state, self.repeat.lost)
                # The server has the values of the checkpoint without the updates of commands.
                updated = records.updated()
                known = {name: Snapshot(value) for name, value in values_of(before["values"]).items() if name not in updated}
                self.checkpoints.send_pending(known, state)
        except Exception as error:  # pylint: disable=broad-except
            # The run has ended as it has all the same.
            log.write(f"agent runner: the state does not show the results of parallel nodes: {describe_error(error)['message']}")
        finally:
            records.release()

    async def _show_applied(self) -> None:
        """With durability `exit` the library saves what it has applied of a step in which two nodes have written one channel."""
        if (held := self._held.last_id("")) is not None:
            self._held.show("", await self._read_state(held))

    async def _fail(self, chunks: AsyncIterator[tuple[Any, str, Any]], error: BaseException) -> None:
        """What was put before the run failed or was cancelled is the thread's state too. The reason of the end remains that error."""
        left: float = CANCEL_SECONDS
        # An error outside of the library has not ended it: with durability `exit` it then saves its last step.
        if hasattr(chunks, "aclose"):
            left = await self._within(left, chunks.aclose(), is_bounded=True)
        if type(error).__name__ == "InvalidUpdateError":
            left = await self._within(left, self._show_applied())
        await self._within(left if self.is_cancelled else CANCEL_SECONDS, self._show_last())
        # Of more states than there is time for the last one, from which the next run goes on.
        await self._within(NEWEST_SECONDS, self._show_newest())
        # Another runner completes the step.
        if not self._was_drained(error):
            await self._within(NEWEST_SECONDS, self._show_pending())

    async def _within(self, left: float, work: Awaitable[None], is_bounded: bool = False) -> float:
        """Executes the work, in spite of a cancel, which limits its time as `is_bounded` does. Returns the time that is left."""
        task, clock = asyncio.ensure_future(work), asyncio.get_running_loop().time
        while not task.done() and left > 0:
            begun, has_limit, has_room = clock(), is_bounded or self.is_cancelled, self.output.has_room()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=TICK_SECONDS if has_limit else None)
            # The supervisor does not count the time in which lines wait for credit either.
            if has_limit and has_room:
                left -= clock() - begun
        task.cancel()
        if task.done() and not task.cancelled() and isinstance(error := task.exception(), Exception):
            log.write_traceback(error)
        return left

    @staticmethod
    async def _state_of(graph: Any, config: dict[str, Any], checkpoint_id: str | None) -> dict[str, Any]:
        """A state of the root graph; without an id the last one, with the pending writes of its tasks."""
        configurable = {name: value for name, value in config["configurable"].items() if name not in ("checkpoint_map", "checkpoint_id")}
        place = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
        return payload_of(await graph.aget_state({"configurable": {**configurable, "checkpoint_ns": "", **place}}))

    async def _input(self, graph: Any) -> Any:
        command = self.message.get("command")
        # A run that is still to be strict has stored nothing: the library checks the whole command, as in the first attempt.
        if command is not None and self.epoch > 1 and self.head is not None and not self.message.get("strict_resume"):
            command = await self.records.rest_of(command, graph.checkpointer.serde)
        return self.message["input"] if command is None else to_command(command)

    def _chunks(self, graph: Any, value: Any, config: dict[str, Any], context: Any) -> AsyncIterator[tuple[Any, str, Any]]:
        options: dict[str, Any] = {
            "context": context, "durability": self._durability, "subgraphs": True,
            "stream_mode": library_modes(self._modes, has_module("langgraph.pregel._tools")),
            "interrupt_before": self.records.breakpoints.before, "interrupt_after": self.records.breakpoints.after}
        if self._control is not None:
            options["control"] = self._control
        if "events" in self._modes:
            return self._event_chunks(graph, value, config, options)
        return graph.astream(value, config, **options)

    async def _event_chunks(self, graph: Any, value: Any, config: dict[str, Any],
                      options: dict[str, Any]) -> AsyncIterator[tuple[Any, str, Any]]:
        """With the mode `events` the chunks of the other modes come inside the root graph's `on_chain_stream` events."""
        async with contextlib.aclosing(graph.astream_events(value, config, version="v2", **options)) as events:
            async for event in events:
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
        self._show_update()
        if self.records.known.was_read(name, checkpoint_id):
            self.checkpoints.remember(payload, name)
            # The run was started from it, and nothing has changed it.
            is_sent = not ns and checkpoint_id == self.head and not (self.message.get("command") or {}).get("update")
            if not ns and checkpoint_id == self.head and not is_sent:
                self._update = self.checkpoints.update_line(payload)
                self._show_update()
            self._held.drop(name)
        elif self._is_exit:
            self._held.show(name, payload)
        else:
            await self.records.known.wait_for_put(name, checkpoint_id)
            if self.records.known.has_put(name, checkpoint_id):
                if not ns:
                    await self._show_unshown(checkpoint_id)
                self.checkpoints.send(payload, name)
                is_sent = True
                if not ns:
                    self.records.begin_step(payload["tasks"], not self._graph.is_factory)
        self._stream.take_checkpoint(ns, payload, is_sent and not ns)
        if self._is_stopping and self._control is None and is_sent and not ns and payload["next"]:
            # A breakpoint is the end of the run, at which the library stops.
            if not self.records.breakpoints.stops_at(checkpoint_id, payload["next"]):
                raise Drained

    def _show_update(self) -> None:
        if self._update is not None and self.records.has_command:
            line, self._update = self._update, None
            try:
                self.output.send("task", line)
            except ValueTooLargeError as error:
                # The library has stored it: the run goes on.
                log.write(f"agent runner: the state does not show the update of the command: {error}")

    def _take_result(self, ns: str, result: Mapping[str, Any]) -> None:
        if not self._held.end(ns, result) and (checkpoint_id := self.checkpoints.last_id(ns)) is not None:
            self.checkpoints.send_task(ns, checkpoint_id, result)

    def _complete(self) -> None:
        """Sends held values and, with durability `exit`, the held checkpoints with their tasks."""
        self._stream.send_values()
        self._stream.flush_messages()
        self._show_update()
        for ns, payload, ends in self._held.take():
            checkpoint_id = configurable_of(payload["config"])["checkpoint_id"]
            if self.records.known.has_put(ns, checkpoint_id):
                self.checkpoints.send(payload, ns)
                for result in ends:
                    self.checkpoints.send_task(ns, checkpoint_id, result)


def make_control() -> Any:
    """The library's switch to stop before the next step; None in versions without one."""
    try:
        from langgraph.runtime import RunControl
    except ImportError:
        return None
    return RunControl()
