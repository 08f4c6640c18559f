# SPDX-License-Identifier: Apache-2.0
"""A process that a node has forked: it ends when it returns from the node, or raises."""

import os
import queue
import sys
from types import FrameType
from typing import Any

STATUS = 2


class _End:
    """In place of a function's future: its result is the end of the process."""

    def set_result(self, _: Any) -> None:
        os._exit(STATUS)

    def set_exception(self, _: BaseException) -> None:
        os._exit(STATUS)


def end_with_function() -> None:
    """In the process: a function in a thread of the library's or of the application's pools ends it.

    A result would call what its parent waits with, which takes locks that other threads of the parent have
    held: here nobody releases them. The functions that wait for threads of the pools are the parent's too.
    """
    # Private names: without them such a process goes on as a second thread of its parent's pool.
    module = sys.modules.get("concurrent.futures.thread")
    for work in list(getattr(module, "_threads_queues", {}).values()):
        try:
            while True:
                work.get_nowait()
        except queue.Empty:
            pass
    run = getattr(getattr(module, "_WorkItem", None), "run", None)
    code = getattr(run, "__code__", None)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is code:
            frame.f_locals["self"].future = _End()
        frame = frame.f_back
