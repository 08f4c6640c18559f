# SPDX-License-Identifier: Apache-2.0
"""The common part of a run and a call: their configuration, their end."""

import asyncio
from contextvars import Context
from typing import Any, Coroutine, Mapping

from . import directory, jsontext, log
from .blobs import Blobs
from .breakpoints import Breakpoints
from .cache import Cache
from .checkpoints import Checkpoints
from .errors import ValueTooLargeError, describe_error
from .metadata import Metadata
from .output import Output
from .records import Records
from .repeat import Repeat
from .user import USER, User

# Names of a config that say where a run begins; the runner sets them itself.
PLACE = {"checkpoint_id", "checkpoint_ns", "checkpoint_map"}
# Of a context whose members are members of `configurable` too.
CONTEXT_MEMBERS_MAX = 256
# Names of the library, which no client may set.
RESERVED = "__"
# Those in which a graph finds the authenticated user: the server sets them, and none comes from a context.
IDENTITY = "langgraph_auth_"


# The message of a CancelledError that the server has not asked for.
CANCELLED = "code of the application has cancelled tasks of the run, or all tasks of the process"


class JobTask(asyncio.Task[None]):
    """The task of a job; the log says which other run has cancelled it, as code does that cancels all tasks of the loop."""

    def __init__(self, job: "Job", coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop, context: Context) -> None:
        self._job = job
        super().__init__(coroutine, loop=loop, context=context)

    def cancel(self, msg: Any = None) -> bool:
        other = log.current_run.get()
        if other is not None and other is not self._job:
            log.write(f"code of this run cancels the tasks of run {self._job.run_id}")
        return super().cancel(msg)


class Job:
    """What a run and a call have in common."""

    def __init__(self, message: Mapping[str, Any], output: Output, blob_part: int, cache: Cache) -> None:
        self.message = message
        self.run_id: str = message["run_id"]
        self.epoch: int = message["epoch"]
        self.thread_id: str | None = message.get("thread_id")
        self.output = output
        checkpoint = message.get("checkpoint") or {}
        self.head: str | None = checkpoint.get("checkpoint_id")
        self.repeat = Repeat(self.run_id, message.get("answered") is True)
        self.records = Records(output, Blobs(output, blob_part, cache), self.head, self.head is None, self.repeat,
                               message.get("durability") == "sync")
        self.records.breakpoints = Breakpoints(
            self.run_id, self.records.known, self.records.get, self.records.values, self.records.list)
        self.metadata = Metadata(self.config)
        self.checkpoints = Checkpoints(output, self.head, self.records.head_values)
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False
        self.has_begun = False
        self.is_ending = False
        # Its threads may go on (executor.py).
        self.has_ended = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.output.cancel()
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
        # The members of the context too, for code that reads the older `configurable`; but the
        # library copies them for each task, so not those of a large one.
        context = self.message.get("context") or {}
        own = given.get("configurable") or {}
        if own.get("user_id") == "":
            # The server sends "" for no user; applications expect the member to be absent.
            own = {name: value for name, value in own.items() if name != "user_id"}
        shared = context if len(context) <= CONTEXT_MEMBERS_MAX else {}
        members = {**{name: value for name, value in shared.items() if not name.startswith(IDENTITY)}, **own}
        configurable = {name: value for name, value in members.items() if not name.startswith(RESERVED) and name not in PLACE}
        if isinstance(configurable.get(USER), dict):
            configurable[USER] = User(configurable[USER])
        config: dict[str, Any] = {
            "configurable": {**configurable, **ids, "checkpoint_ns": ""},
            "metadata": {**(given.get("metadata") or {}), **ids},
            "tags": list(given.get("tags") or []),
        }
        if given.get("recursion_limit") is not None:
            config["recursion_limit"] = given["recursion_limit"]
        return config

    @staticmethod
    def describe(error: BaseException) -> dict[str, str]:
        is_unasked = isinstance(error, asyncio.CancelledError) and not error.args
        return describe_error(error) | ({"message": CANCELLED} if is_unasked else {})

    async def end(self, status: str, error: BaseException | None, extra: list[tuple[str, bytes]] | None = None) -> None:
        self.is_ending = True
        directory.restore(self.run_id, self.message["graph_id"])
        shown = b"null"
        if error is not None and status == "error":
            shown = jsontext.dumps(self.describe(error))
        log.end_run(self)
        try:
            await self.output.end([("status", jsontext.dumps(status)), ("error", shown), *(extra or [])])
        except ValueTooLargeError as too_large:
            await self.end("error", too_large)


def payload_of(state: Any) -> dict[str, Any]:
    """A state of the library in the form of its stream mode `checkpoints`."""
    return {
        "config": state.config, "parent_config": state.parent_config, "values": state.values,
        "metadata": state.metadata or {}, "next": list(state.next),
        "tasks": [{"id": task.id, "name": task.name, "path": task.path, "error": task.error,
                   "interrupts": task.interrupts, "result": getattr(task, "result", None),
                   "state": task.state if isinstance(task.state, dict) else None} for task in state.tasks]}


def to_command(form: Mapping[str, Any]) -> Any:
    """The library's Command of a client's."""
    from langgraph.types import Command

    goto, update = form.get("goto") or (), form.get("update")
    if isinstance(update, list):
        update = [tuple(pair) for pair in update]
    return Command(update=update, resume=form.get("resume"),
                   goto=[target_of(value) for value in goto] if isinstance(goto, list) else target_of(goto))


def target_of(form: Any) -> Any:
    """A name, or the library's Send. `arg` and `args` are the names in Python and in JavaScript, where graphs send it (RemoteGraph)."""
    from langgraph import types

    if not isinstance(form, Mapping):
        return form
    arg, timeout, options = form.get("input", form.get("arg", form.get("args"))), form.get("timeout"), {}
    # Older versions have none.
    if timeout is not None and hasattr(types.Send, "timeout"):
        options["timeout"] = types.TimeoutPolicy(**timeout) if isinstance(timeout, Mapping) else timeout
    return types.Send(form["node"], arg, **options)
