# SPDX-License-Identifier: Apache-2.0
"""The threads of plain functions: the loop's default executor, which the runs share.

Python cannot end a thread. A thread that executes a function of a run that has ended is lost until the
function returns: another one takes its place, up to a bound.

Another thread may raise an exception in one of these at any instruction (PyThreadState_SetAsyncExc), as libraries for
time limits do. So the loop does all the counting, no lock is taken here, and the code that a thread executes around a
function does no harm when it is executed twice.
"""

import asyncio
import os
import queue
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from typing import Any, Callable

from . import forked, log, stacks

# Threads shared by all runs, in addition to one per run and one for code outside of runs.
SHARED = 64
REPORT_SECONDS = 60
# Runs that a line of the log names.
NAMED = 5


class Owner:
    """The functions of a run, or (job None) of code outside of runs."""

    def __init__(self, job: Any) -> None:
        self.job = job
        self.waiting: deque[Item] = deque()
        # Threads that execute.
        self.busy = 0
        # Functions that have returned; their number at the last report at which others waited.
        self.returned = 0
        self.reported: int | None = None
        self.has_ended = job is not None and job.has_ended


class Item:
    """A function that waits for a thread, or executes."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.owner: Owner
        self.call = call
        self.future: Future[Any] = Future()
        self.has_begun = False
        # (result, error) when it has returned.
        self.outcome: tuple[Any, BaseException | None] | None = None


class Worker:
    """A thread with the function that the loop has given it; without one it is idle. `stack`: bytes, when it was started."""

    def __init__(self, item: Item) -> None:
        self.item: Item | None = item
        self.stack: int | None = None
        # Ends its wait; one too many does no harm.
        self.wakes: queue.SimpleQueue[None] = queue.SimpleQueue()


class Executor(ThreadPoolExecutor):
    """Gives each run a thread at once, and more in turns.

    A run gets another thread only while more shared threads are free than it already has. So a run
    that is alone takes half of them and leaves some for later runs, since no thread can be taken back
    from it. Both callbacks are called on the loop: `on_spent` with true when the process should be
    replaced, and with false when it no longer need be; `on_stuck` when a run has got no thread for a
    whole interval because all threads that there may be, or that could be started, are lost.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, slots: int, on_spent: Callable[[bool], None], on_stuck: Callable[[], None]) -> None:
        self._size = slots + 1 + SHARED
        # Lost ones that are replaced.
        self._spare = self._size
        # The loop takes no other class. The threads are not those of the base class: it keeps a function in
        # its queue for which it could start none, and any other thread executes it later.
        super().__init__(1)
        self._stacks = stacks.Stacks()
        self._loop = loop
        self._on_spent = on_spent
        self._on_stuck = on_stuck
        self._thread = threading.get_ident()
        self._pid = os.getpid()
        self._idle: dict[Worker, None] = {}
        self._owners: dict[Any, Owner] = {}
        # Those with functions that wait, in the order of their turns.
        self._turns: dict[Owner, None] = {}
        # Busy threads of active runs; how many of these are shared ones; busy threads of ended runs.
        self._busy = 0
        self._shared = 0
        self._lost = 0
        # The fewest lost ones since the last report.
        self._least_lost = 0
        self._begun = 0
        self._wants_replacement = False
        self._is_watching = False
        # Whether a run without a thread has waited at the last report.
        self._was_waiting = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        item = Item(lambda: fn(*args, **kwargs))
        job = log.current_run.get()
        if threading.get_ident() == self._thread:
            self._add_waiting(job, item)
        else:
            self._loop.call_soon_threadsafe(self._add_waiting, job, item, context=Context())
        return item.future

    def _add_waiting(self, job: Any, item: Item) -> None:
        owner = self._owners.get(job)
        if owner is None:
            owner = self._owners[job] = Owner(job)
        item.owner = owner
        owner.waiting.append(item)
        self._turns.setdefault(owner)
        self._begin()
        if owner.waiting and not self._is_watching:
            self._look_soon()

    def end(self, job: Any) -> None:
        """The run has ended: the threads that it still has are lost. On the loop."""
        job.has_ended = True
        owner = self._owners.get(job)
        if owner is not None:
            busy = owner.busy
            self._add(owner, -busy)
            owner.has_ended = True
            self._add(owner, busy)
        self._begin()

    # --- Places; on the loop ---------------------------------------------------

    def _add(self, owner: Owner, count: int) -> None:
        """Adds to the number of threads that execute functions of a run."""
        before, owner.busy = owner.busy, owner.busy + count
        if owner.has_ended:
            self._lost += count
            self._least_lost = min(self._least_lost, self._lost)
            if count > 0 or self._wants_replacement:
                self._look_soon()
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

    def _leave(self, owner: Owner) -> None:
        self._add(owner, -1)
        self._forget_idle(owner)

    def _give(self, worker: Worker, item: Item | None) -> None:
        """Gives a thread its next function; without one it is idle."""
        worker.item = item
        if item is None:
            self._idle[worker] = None
        else:
            item.future.set_running_or_notify_cancel()
            worker.wakes.put(None)

    def _begin(self) -> None:
        """Gives a thread to each function that may have one."""
        while (item := self._take_next()) is not None:
            if self._idle:
                self._give(self._idle.popitem()[0], item)
                continue
            try:
                self._start(Worker(item))
                item.future.set_running_or_notify_cancel()
            except (RuntimeError, MemoryError) as error:
                if self._put_back(item):
                    return
                item.future.set_exception(error)

    def _start(self, worker: Worker) -> None:
        # A thread in the place of another one has a stack as large as that.
        worker.stack = self._stacks.start(
            threading.Thread(target=self._work, args=(worker,), name="agent-node", daemon=True), worker.stack)

    def _put_back(self, item: Item) -> bool:
        """No thread could be started for it. Returns false if there is no other that will execute it."""
        owner = item.owner
        # Each of these takes the next function when its own returns. If none does, `on_stuck` follows.
        will_be_free = self._busy + self._lost > 1
        if will_be_free:
            owner.waiting.appendleft(item)
            self._turns.setdefault(owner)
        self._begun -= 1
        self._leave(owner)
        return will_be_free

    def _take_outcome(self, worker: Worker, item: Item) -> None:
        """Takes the outcome of a function that has returned; the thread may report it twice."""
        if worker.item is not item or item.outcome is None:
            return
        item.owner.returned += 1
        # Before the result: the next function of the run finds the place.
        self._leave(item.owner)
        self._give(worker, self._take_next())
        self._begin()
        result, error = item.outcome
        if error is None:
            item.future.set_result(result)
        else:
            item.future.set_exception(error)
            # Its traceback has a frame with the item.
            item.outcome = (None, None)

    @staticmethod
    def _note_raised(name: str) -> None:
        log.write(f"agent runner: {name} was raised in a thread of plain functions that executed none: it is ignored")

    # --- The threads -----------------------------------------------------------

    def _work(self, worker: Worker) -> None:
        try:
            while True:
                try:
                    self._serve(worker)
                except BaseException as caught:  # pylint: disable=broad-except
                    # Raised by another thread, too late for the function, or for want of memory.
                    self._tell(self._note_raised, type(caught).__name__)
        finally:
            # A second one, raised right after the first, has ended the thread: another one goes on in its place.
            self._tell(self._start, worker)

    def _serve(self, worker: Worker) -> None:
        """Goes on where an exception has ended it."""
        while True:
            item = worker.item
            if item is not None:
                self._execute(item)
                self._end_fork()
                self._tell(self._take_outcome, worker, item)
                # The outcome may hold much.
                item = None
            worker.wakes.get()

    @staticmethod
    def _execute(item: Item) -> None:
        if item.outcome is not None:
            return
        if item.has_begun:
            # Two exceptions, one right after the other.
            item.outcome = None, RuntimeError("the function was interrupted")
            return
        try:
            item.has_begun = True
            item.outcome = item.call(), None
        except BaseException as caught:  # pylint: disable=broad-except
            if item.outcome is None:
                item.outcome = None, caught

    def _end_fork(self) -> None:
        """In a process that the function has forked: the other functions are those of its parent."""
        if os.getpid() != self._pid:
            os._exit(forked.STATUS)

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(call, *arguments, context=Context())

    # --- Reports; on the loop --------------------------------------------------

    def _look_soon(self) -> None:
        self._loop.call_soon(self._look, context=Context())

    def _look(self) -> None:
        is_needed = self._lost > 0 or any(not owner.has_ended for owner in self._turns)
        if self._wants_replacement and 2 * self._lost <= self._spare:
            self._wants_replacement = False
            self._on_spent(False)
            log.write("agent runner: enough of these threads have returned: a request for another process that was not sent is taken back")
        if is_needed and not self._is_watching:
            self._is_watching = True
            self._loop.call_later(REPORT_SECONDS, self._report, self._begun, context=Context())

    def _report(self, begun: int) -> None:
        """Once in an interval, while threads are lost or functions wait; `begun`: the functions before it."""
        self._is_watching = False
        lost, least = self._lost, self._least_lost
        self._least_lost = lost
        is_waiting = any(not owner.busy and not owner.has_ended for owner in self._turns)
        has_others = self._busy > 0 and lost <= self._spare
        blocked = self._take_blocked()
        if lost:
            log.write(f"agent runner: {self._describe_lost()}")
        if blocked:
            log.write(f"agent runner: runs wait for threads, and none of their functions has returned for {REPORT_SECONDS} s: "
                      f"{_names([(owner.job, f'{owner.busy} execute and {len(owner.waiting)} wait') for owner in blocked])}")
        # Those of runs that were cancelled together return in most cases, and a new process imports everything.
        if 2 * least > self._spare and not self._wants_replacement:
            self._wants_replacement = True
            self._on_spent(True)
            log.write(f"agent runner: {self._describe_lost()}; at most {self._spare} are replaced: "
                      "this process should get no more runs")
        if lost and not has_others and is_waiting and self._was_waiting and begun == self._begun:
            self._on_stuck()
        self._was_waiting = is_waiting
        self._look()

    def _take_blocked(self) -> list[Owner]:
        """The runs that have waited since the last report while none of their functions returned."""
        waiting = [owner for owner in self._turns if owner.job is not None and not owner.has_ended]
        blocked = [owner for owner in waiting if owner.reported == owner.returned]
        for owner in waiting:
            owner.reported = owner.returned
        return blocked

    def _describe_lost(self) -> str:
        owners = [(owner.job, owner.busy) for owner in self._owners.values() if owner.has_ended and owner.busy]
        return f"{sum(busy for _, busy in owners)} threads execute code of runs that have ended: {_names(owners)}"


def _names(counted: list[tuple[Any, Any]]) -> str:
    named = [f"{count} of run {job.run_id} of graph {job.message['graph_id']}" for job, count in counted[:NAMED]]
    return ", ".join(named) + (f" and {len(counted) - NAMED} other runs" if len(counted) > NAMED else "")
