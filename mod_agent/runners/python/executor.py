# SPDX-License-Identifier: Apache-2.0
"""The threads of plain functions: the loop's default executor, which the runs share.

Python cannot end a thread. One that executes a function of a run that has ended is lost until the
function returns: another one takes its place, up to a bound.
"""

import asyncio
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from typing import Any, Callable

from . import log

# Places beside one for each run, and one for code outside of runs: those of which a run may have several.
SHARED = 64
REPORT_SECONDS = 60
# Runs that a line of the log names.
NAMED = 5


class Owner:
    """The functions of a run, or (job None) of code outside of runs."""

    def __init__(self, job: Any) -> None:
        self.job = job
        self.waiting: deque[Item] = deque()
        # Those that execute.
        self.busy = 0
        self.has_ended = job is not None and job.has_ended


class Item:
    """A function that waits for a thread, or executes."""

    def __init__(self, owner: Owner, call: Callable[[], Any]) -> None:
        self.owner = owner
        self.call = call
        self.future: Future[Any] = Future()
        # No thread could be started for it.
        self.is_refused = False


class Executor(ThreadPoolExecutor):
    """Gives each run a thread at once, and more in turns.

    A run gets another thread only while more of the shared places are free than it has: a run that
    is alone takes half of them, and those after it always find some. Both callbacks are called on
    the loop: `on_spent` once, when the process should be replaced; `on_stuck` when a run has got no
    thread for a whole interval because lost ones have all places.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, slots: int, on_spent: Callable[[], None], on_stuck: Callable[[], None]) -> None:
        self._size = slots + 1 + SHARED
        # Lost ones that are replaced.
        self._spare = self._size
        # The base class starts the threads, and has always one for what begins here.
        super().__init__(self._size + self._spare, "agent-node")
        self._loop = loop
        self._on_spent = on_spent
        self._on_stuck = on_stuck
        self._guard = threading.Lock()
        self._owners: dict[Any, Owner] = {}
        # Those with functions that wait, in the order of their turns.
        self._turns: dict[Owner, None] = {}
        # Threads of runs that go on; those of them beside the first of each; of runs that have ended.
        self._busy = 0
        self._shared = 0
        self._lost = 0
        self._begun = 0
        self._is_spent = False
        self._is_watching = False
        # Whether a run without a thread has waited at the last report.
        self._was_waiting = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        job = log.current_run.get()
        with self._guard:
            owner = self._owners.get(job)
            if owner is None:
                owner = self._owners[job] = Owner(job)
            item = Item(owner, lambda: fn(*args, **kwargs))
            owner.waiting.append(item)
            self._turns.setdefault(owner)
        self._begin()
        return item.future

    def end(self, job: Any) -> None:
        """The run has ended: the threads that it still has are lost."""
        with self._guard:
            job.has_ended = True
            owner = self._owners.get(job)
            if owner is not None:
                busy = owner.busy
                self._add(owner, -busy)
                owner.has_ended = True
                self._add(owner, busy)
        self._begin()

    # --- Places; under the lock ------------------------------------------------

    def _add(self, owner: Owner, count: int) -> None:
        """So many threads more."""
        before, owner.busy = owner.busy, owner.busy + count
        if owner.has_ended:
            self._lost += count
            if count > 0:
                self._loop.call_soon_threadsafe(self._look, context=Context())
        else:
            self._busy += count
            self._shared += max(0, owner.busy - 1) - max(0, before - 1)

    def _may_begin(self, owner: Owner) -> bool:
        if owner.has_ended:
            return self._lost < self._spare
        # Lost ones that are not replaced take the shared places first.
        beyond = max(0, self._lost - self._spare)
        if self._busy + beyond >= self._size:
            return False
        return owner.busy == 0 or SHARED - self._shared - beyond >= owner.busy

    def _take_next(self) -> Item | None:
        """The next function that gets a thread."""
        for owner in list(self._turns):
            while owner.waiting and owner.waiting[0].future.cancelled():
                owner.waiting.popleft()
            if owner.waiting and not self._may_begin(owner):
                continue
            del self._turns[owner]
            if not owner.waiting:
                self._forget_idle(owner)
                continue
            item = owner.waiting.popleft()
            self._add(owner, 1)
            self._begun += 1
            if owner.waiting:
                self._turns[owner] = None
            return item
        return None

    def _forget_idle(self, owner: Owner) -> None:
        if owner.busy == 0 and not owner.waiting:
            self._owners.pop(owner.job, None)

    def _leave(self, item: Item) -> None:
        self._add(item.owner, -1)
        self._forget_idle(item.owner)

    # --- Threads ---------------------------------------------------------------

    def _begin(self) -> None:
        """Gives a thread to each function that may have one."""
        while True:
            with self._guard:
                item = self._take_next()
            if item is None:
                return
            try:
                super().submit(self._execute, item)
            except RuntimeError as error:
                # No memory for a thread. The base class keeps the function in its queue nevertheless.
                item.is_refused = True
                with self._guard:
                    self._leave(item)
                if item.future.set_running_or_notify_cancel():
                    item.future.set_exception(error)

    def _execute(self, item: Item | None) -> None:
        if item is not None and item.is_refused:
            return
        while item is not None:
            item = self._execute_one(item)
            self._begin()

    def _execute_one(self, item: Item) -> Item | None:
        """Returns the next function for this thread."""
        result = error = None
        is_wanted = item.future.set_running_or_notify_cancel()
        if is_wanted:
            try:
                result = item.call()
            except BaseException as caught:  # pylint: disable=broad-except
                error = caught
        # Before the result: the next function of the run finds the place.
        with self._guard:
            self._leave(item)
            following = self._take_next()
        if is_wanted and error is not None:
            item.future.set_exception(error)
            # Its traceback has this frame.
            error = None
        elif is_wanted:
            item.future.set_result(result)
        return following

    # --- Lost threads; on the loop ---------------------------------------------

    def _look(self) -> None:
        with self._guard:
            lost = self._lost
        if 2 * lost > self._spare and not self._is_spent:
            self._is_spent = True
            self._on_spent()
            log.write(f"agent runner: {self._describe_lost()}; at most {self._spare} are replaced: "
                      "this process should get no more runs")
        if lost and not self._is_watching:
            self._is_watching = True
            self._loop.call_later(REPORT_SECONDS, self._report, self._begun, context=Context())

    def _report(self, begun: int) -> None:
        """Once in an interval, while threads are lost; `begun`: the functions before it."""
        self._is_watching = False
        with self._guard:
            lost = self._lost
            is_waiting = any(not owner.busy and not owner.has_ended for owner in self._turns)
        if lost:
            log.write(f"agent runner: {self._describe_lost()}")
        if lost > self._spare and is_waiting and self._was_waiting and begun == self._begun:
            self._on_stuck()
        self._was_waiting = is_waiting
        self._look()

    def _describe_lost(self) -> str:
        with self._guard:
            owners = [(owner.job, owner.busy) for owner in self._owners.values() if owner.has_ended and owner.busy]
        named = [f"{busy} of run {job.run_id} of graph {job.message['graph_id']}" for job, busy in owners[:NAMED]]
        rest = f" and {len(owners) - NAMED} other runs" if len(owners) > NAMED else ""
        return f"{sum(busy for _, busy in owners)} threads execute code of runs that have ended: {', '.join(named)}{rest}"
