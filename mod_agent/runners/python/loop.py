# SPDX-License-Identifier: Apache-2.0
"""The event loop, which all runs of the process share."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import log
from .executor import Executor


def _ignore(call: str) -> None:
    job = log.current_run.get()
    of = "outside of runs" if job is None else f"of run {job.run_id} of graph {job.message['graph_id']}"
    log.write(f"agent runner: {call}() in code {of} is ignored: other runs use this loop")


class Loop(asyncio.SelectorEventLoop):
    """Code of a graph cannot replace its threads and tasks, on which the other runs depend."""

    def set_default_executor(self, executor: ThreadPoolExecutor) -> None:
        if isinstance(executor, Executor):
            super().set_default_executor(executor)
        else:
            _ignore("set_default_executor")

    async def shutdown_default_executor(self, *_: Any, **__: Any) -> None:
        _ignore("shutdown_default_executor")

    def set_task_factory(self, _factory: Any) -> None:
        _ignore("set_task_factory")
