# SPDX-License-Identifier: Apache-2.0
"""The stacks of threads.

Calls through C, as the key of sorted() or a validator of pydantic, are on the thread's stack: in one of 1 MiB they exceed it,
and end the process, before Python's limit for recursion is reached. Stacks count as data, which AgentRunnerMemory limits: with
more threads than have room in half of it, the others have small stacks.
"""

import resource
import sys
import threading

LARGE = 4 << 20
SMALL = 1 << 20


class Stacks:
    def __init__(self) -> None:
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        # Threads that may still get large ones.
        self._left = sys.maxsize if limit == resource.RLIM_INFINITY else limit // 2 // LARGE
        # For the threads that libraries start.
        threading.stack_size(LARGE)

    def start(self, thread: threading.Thread, size: int | None) -> int:
        """Starts the thread with a stack of that size, or the largest that there is. Returns the size. On the loop."""
        chosen = size or (LARGE if self._left > 0 else SMALL)
        try:
            threading.stack_size(chosen)
            thread.start()
        finally:
            threading.stack_size(LARGE)
        if size is None and chosen == LARGE:
            self._left -= 1
        return chosen
