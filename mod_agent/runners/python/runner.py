# SPDX-License-Identifier: Apache-2.0
"""The messages of the supervisor, and the runs and calls that execute."""

import asyncio
import errno
import gc
import os
import resource
from contextvars import copy_context
from typing import Any, Mapping

from . import application, directory, graphs, jsontext, log, report
from .bridge import Bridge
from .cache import Cache
from .call import Call
from .checkpoints import configurable_of
from .executor import Executor
from .job import Job, JobTask
from .load import load_graphs
from .output import Output
from .run import Run
from .wire import Turns, Wire


# The version of PROTOCOL.md.
PROTOCOL = 2
# The status of a process whose threads are all lost; of one that has no more memory.
STUCK = 3
NO_MEMORY = 71


def is_nearly_full() -> bool:
    """Whether the process has used seven eighths of the descriptors that it may have: the lowest free one tells."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        lowest = os.dup(3)
    except OSError as error:
        return error.errno == errno.EMFILE
    os.close(lowest)
    return limit != resource.RLIM_INFINITY and lowest >= limit * 7 // 8


class Runner:
    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns, slots: int) -> None:
        self._loop = loop
        self._slots = slots
        self._wire = Wire(loop, turns, self._take, self._input_ended, self._pump)
        self._runs: dict[str, Job] = {}
        self._graphs: dict[str, graphs.Graph] = {}
        self._is_draining = False
        self._limits = {"line": 8_388_608, "blob_part": 4_194_304}
        self._cache = Cache()
        self._bridge = Bridge()
        self._bridge.bind(loop)
        self._executor = Executor(loop, slots, self._wire.ask_replacement, self._end_stuck)
        loop.set_default_executor(self._executor)

    def start(self) -> None:
        self._wire.start()

    def find_job(self, config: Mapping[str, Any] | None) -> Job:
        """The current run; outside of its context, the run on the thread that the config names."""
        thread_id = configurable_of(config).get("thread_id")
        job: Job | None = log.current_run.get()
        if job is None:
            job = next((other for other in self._runs.values() if other.thread_id == thread_id), None)
        if job is None:
            raise RuntimeError("checkpoints can be used by a run only")
        if thread_id is not None and str(thread_id) != job.thread_id:
            raise ValueError(f"a run reads and writes its own thread, {job.thread_id}, not {thread_id}")
        return job

    @staticmethod
    def find_output(own: Job | None) -> Output:
        """The output of the current run; outside of its context, of the run that was given the store."""
        job: Job | None = log.current_run.get() or own
        if job is None:
            raise RuntimeError("the store can be used by a run only, in its own tasks and threads")
        return job.output

    # --- Messages ------------------------------------------------------------

    def _take(self, message: dict[str, Any]) -> None:
        try:
            self._handle(message)
        except Exception as error:  # pylint: disable=broad-except
            # A run whose `start` fails here would have no end; other processes execute all runs again.
            log.write_traceback(error)
            self._input_ended(error)

    def _handle(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "hello" and message["protocol"] != PROTOCOL:
            self._fail(f"the server speaks version {message['protocol']}")
        elif kind == "hello":
            self._loop.create_task(self._hello(message))
        elif kind == "drain":
            self._is_draining = True
            self._exit_if_drained()
        elif kind in ("start", "call"):
            self._begin(message, Run if kind == "start" else Call)
        elif kind in ("cancel", "stop", "go", "reply"):
            self._pass_on(kind, message)
        else:
            self._fail(f"unknown message: {kind}")

    def _pass_on(self, kind: str, message: dict[str, Any]) -> None:
        job = self._runs.get(message["run_id"])
        if job is None or job.epoch != message["epoch"]:
            return
        if kind == "cancel":
            job.cancel()
        elif kind == "stop":
            job.stop()
        elif kind == "go":
            job.output.take_go()
        else:
            job.output.take_reply(message)

    async def _hello(self, message: Mapping[str, Any]) -> None:
        try:
            await self._prepare(message)
        except Exception as error:  # pylint: disable=broad-except
            # Without `ready` the process would be of no use to anyone.
            self._fail(application.reason_of(error))

    async def _prepare(self, message: Mapping[str, Any]) -> None:
        found = self._application(message)
        self._limits |= message.get("limits") or {}
        self._graphs, reports = await load_graphs(
            found, self.find_job, self.find_output, self._bridge, self._importing, message.get("failed"))
        directory.settle()
        # Excludes the imported modules, most objects of the process, from garbage collection.
        gc.collect()
        gc.freeze()
        self._wire.write(jsontext.dumps({
            "type": "ready", "graphs": reports, "slots": self._slots, "runtime": report.runtime()},
            lenient=True) + b"\n")

    def _importing(self, name: str | None) -> None:
        """Tells the supervisor before code of the graph is executed, which may end or block the process."""
        self._wire.write(jsontext.dumps({"type": "importing", "graph_id": name}) + b"\n")
        self._wire.post()

    @staticmethod
    def _application(message: Mapping[str, Any]) -> application.Application:
        """langgraph.json of the folder; the graphs are those of `hello`."""
        found = application.read_config((message.get("application") or {}).get("directory") or os.getcwd())
        found.graphs = {name: graph["path"] for name, graph in message["graphs"].items()}
        found.descriptions = {name: graph.get("description") for name, graph in message["graphs"].items()}
        return found

    def _begin(self, message: dict[str, Any], kind: type[Run] | type[Call]) -> None:
        if message["run_id"] in self._runs or len(self._runs) >= self._slots or self._is_draining:
            self._fail("a run that is active already, exceeds the slots or follows drain")
        output = Output(self._wire, message["run_id"], message["epoch"], self._limits["line"])
        name = message["graph_id"]
        graph = self._graphs.get(name) or graphs.absent(name)
        job = kind(message, output, self._limits["blob_part"], self._cache, graph)
        self._runs[job.run_id] = job
        context = copy_context()
        context.run(log.current_run.set, job)
        job.task = JobTask(job, self._execute(job), self._loop, context)

    async def _execute(self, job: Run | Call) -> None:
        try:
            await job.execute()
        finally:
            del self._runs[job.run_id]
            self._executor.end(job)
            self._look_at_descriptors(job)
            self._exit_if_drained()

    def _look_at_descriptors(self, job: Job) -> None:
        """Descriptors that nodes leave open are lost for the later runs of the process."""
        had_some = not self._wire.lacks_descriptors
        self._wire.lacks_descriptors = is_nearly_full()
        if self._wire.lacks_descriptors and had_some:
            log.write(f"agent runner: almost all descriptors are in use at the end of run {job.run_id} of graph {job.message['graph_id']}: "
                      "this process should get no more runs")

    # --- The process ---------------------------------------------------------

    def _pump(self) -> None:
        for job in list(self._runs.values()):
            job.output.pump()

    def _exit_if_drained(self) -> None:
        if self._is_draining and not self._runs:
            self._leave(0)

    def _end_stuck(self) -> None:
        """The runs that wait for threads would do so for ever: other processes execute all of them again."""
        log.write("agent runner: these threads leave none for other runs: the process ends")
        self._leave(STUCK)

    def _fail(self, reason: str) -> None:
        log.write(f"agent runner: {reason}")
        self._leave(2)

    def _input_ended(self, reason: str | Exception | None) -> None:
        """The supervisor is gone, or wrote what is not JSON or cannot be done, or a pipe was closed here, or there is no memory for what it wrote."""
        if isinstance(reason, MemoryError):
            os._exit(NO_MEMORY)
        if reason is not None:
            log.write(f"agent runner: {f'{type(reason).__name__}: {reason}' if isinstance(reason, Exception) else reason}")
        os._exit(0 if reason is None else 2)

    def _leave(self, status: int) -> None:
        """Threads of nodes may still execute: nothing waits for them."""
        self._wire.flush()
        os._exit(status)
