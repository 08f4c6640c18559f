# SPDX-License-Identifier: Apache-2.0
"""Cases of the Python runner's executor, one for each name on the command line; each prints its findings."""

import asyncio
import contextvars
import ctypes
import os
import pathlib
import random
import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "mod_agent/runners"))

# pylint: disable=wrong-import-position
from python import bridge, executor, forked, log  # noqa: E402

SLOTS = 3
SHARE = 33
# Long enough for what a defect would leave undone.
LIMIT = 20


class Job:
    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.message = {"graph_id": "graph"}
        self.has_ended = False


class Host:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.requests: list[bool] = []
        self.has_asked = asyncio.Event()
        self.has_recovered = asyncio.Event()
        self.has_stuck = asyncio.Event()
        self.executor = executor.Executor(self.loop, SLOTS, self.take, self.has_stuck.set)
        self.loop.set_default_executor(self.executor)

    def take(self, *wants_replacement: bool) -> None:
        self.requests.extend(wants_replacement)
        (self.has_asked if wants_replacement[0] else self.has_recovered).set()

    def submit(self, job: Job, call: Callable[[], Any]) -> asyncio.Future[Any]:
        context = contextvars.copy_context()
        context.run(log.current_run.set, job)
        return asyncio.wrap_future(context.run(self.executor.submit, call))


async def within(future: Any) -> Any:
    return await asyncio.wait_for(future, LIMIT)


async def recover() -> None:
    """The threads return before the request was sent."""
    executor.REPORT_SECONDS = 0.01
    host, release = Host(), threading.Event()
    jobs = [Job(str(n)) for n in range(SLOTS)]
    futures = [host.submit(job, release.wait) for job in jobs for _ in range(SHARE)]
    for job in jobs:
        host.executor.end(job)
    await within(host.has_asked.wait())
    release.set()
    await within(asyncio.gather(*futures))
    await within(host.has_recovered.wait())
    print("requests:", host.requests)


class Refuser:
    """Lets threads of the executor start, or not."""

    def __init__(self) -> None:
        self.left = 1
        self.refused = 0
        # Between the refusal and the exception.
        self.on_refusal: Callable[[], None] = lambda: None
        start = threading.Thread.start

        def start_or_refuse(thread: threading.Thread) -> None:
            if not thread.name.startswith("agent-node"):
                return start(thread)
            if self.left:
                self.left -= 1
                return start(thread)
            self.refused += 1
            self.on_refusal()
            raise RuntimeError("can't start new thread")

        threading.Thread.start = start_or_refuse  # type: ignore[method-assign]


async def refuse() -> None:
    """Functions for which no thread could be started wait for the one that there is."""
    host, refuser, release = Host(), Refuser(), threading.Event()
    futures = [host.submit(Job("a"), release.wait)]
    futures += [host.submit(Job("b"), lambda n=n: n) for n in range(5)]
    release.set()
    print("values:", *await within(asyncio.gather(*futures, return_exceptions=True)), "refused:", refuser.refused > 0)


async def stacks() -> None:
    """Half of the memory has room for eight large stacks."""
    resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, resource.RLIM_INFINITY))
    host, release, sizes = Host(), threading.Event(), []
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    start = threading.Thread.start

    def start_and_note(thread: threading.Thread) -> None:
        sizes.append(threading.stack_size() >> 20)
        start(thread)

    threading.Thread.start = start_and_note  # type: ignore[method-assign]
    futures = [host.submit(Job("stacks"), release.wait) for _ in range(10)]
    release.set()
    await within(asyncio.gather(*futures))
    print("stacks in MiB:", ", ".join(f"{size} x {sizes.count(size)}" for size in sorted(set(sizes), reverse=True)))


async def refuse_first() -> None:
    """Without one, the function fails."""
    host, refuser = Host(), Refuser()
    refuser.left = 0
    print("first:", repr(await within(asyncio.gather(host.submit(Job("a"), lambda: 1), return_exceptions=True))))


async def refuse_lost() -> None:
    """With one that executes code of a run that has ended, the function waits for it; then the process is replaced."""
    executor.REPORT_SECONDS = 0.05
    host, refuser, release = Host(), Refuser(), threading.Event()
    job = Job("a")
    first, second = host.submit(job, release.wait), host.submit(Job("b"), lambda: 2)
    host.executor.end(job)
    await within(host.has_stuck.wait())
    release.set()
    print("values:", await within(first), await within(second), "refused:", refuser.refused > 0)


async def meet() -> None:
    """A thread becomes free while another one is refused."""
    host, refuser, release = Host(), Refuser(), threading.Event()
    calls: list[int] = []

    def free() -> None:
        release.set()
        # Whatever would take the function does so in this time.
        threading.Event().wait(0.2)

    def call(number: int) -> Callable[[], int]:
        return lambda: calls.append(number) or number  # type: ignore[func-returns-value]

    first = host.submit(Job("a"), release.wait)
    refuser.on_refusal = free
    job = Job("b")
    futures = [first, host.submit(job, call(2)), host.submit(job, call(3))]
    print("values:", *await within(asyncio.gather(*futures, return_exceptions=True)), "calls:", *calls)


async def interrupt() -> None:
    """An exception is raised in a thread that executes nothing."""
    host = Host()
    idle = await within(host.submit(Job("a"), threading.get_ident))
    for n in range(2):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(idle), ctypes.py_object(TimeoutError))
        print("value:", await within(host.submit(Job(f"b{n}"), lambda n=n: n)))


class Raiser:
    """Raises an exception in a random thread that has executed a function, again and again, sometimes twice at once."""

    def __init__(self, seed: int, count: int) -> None:
        self.known: set[int] = set()
        self._random = random.Random(seed)
        self._left = count
        self._thread = threading.Thread(target=self._raise_all, daemon=True)
        self._thread.start()

    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def _raise_all(self) -> None:
        while self._left:
            # Processor time of the others, so that they are at another place each time.
            time.sleep(self._random.random() / 2000)
            idents = [thread.ident for thread in threading.enumerate() if thread.ident in self.known]
            if idents:
                self._left -= 1
                ident = ctypes.c_ulong(self._random.choice(idents) or 0)
                for _ in range(self._random.choice((1, 1, 1, 2, 3))):
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(TimeoutError))
                    time.sleep(0)


async def storm() -> None:
    """Exceptions at any instruction: no function, thread or place is lost, and the loop never waits for a lock."""
    sys.setswitchinterval(1e-5)
    log.write = lambda text: None  # type: ignore[assignment]
    threading.excepthook = lambda _: None
    host = Host()
    bridge_of_loop = bridge.Bridge()
    bridge_of_loop.bind(host.loop)
    raiser = Raiser(1, 2000)
    ended, number = 0, 0

    async def answer() -> int:
        return 1

    def note() -> int:
        raiser.known.add(threading.get_ident())
        return 1

    while not raiser.has_ended():
        number += 1
        job = Job(str(number))
        calls = [lambda: bridge_of_loop.call(answer()), lambda: sum(range(2000)), note]
        found = await within(asyncio.gather(*(host.submit(job, call) for call in calls * 3), return_exceptions=True))
        ended += sum(1 for value in found if value is not None)
        if number % 3 == 0:
            host.executor.end(job)
    of = host.executor
    await within(asyncio.gather(*(host.submit(Job("last"), lambda: 1) for _ in range(SHARE)), return_exceptions=True))
    for _ in range(3):
        await asyncio.sleep(0.05)
    threads = sum(thread.name.startswith("agent-node") for thread in threading.enumerate())
    print("ended:", ended == 9 * number, "busy:", of._busy, of._shared, of._lost, "owners:", len(of._owners),
          "turns:", len(of._turns), "idle:", len(of._idle) == threads, "threads:", threads <= 2 * SHARE)


async def block() -> None:
    """A run all of whose threads wait for another one of its functions."""
    executor.REPORT_SECONDS = 0.05
    host, release = Host(), threading.Event()
    lines: asyncio.Queue[str] = asyncio.Queue()
    log.write = lines.put_nowait  # type: ignore[assignment]
    job = Job("blocked")
    futures = [host.submit(job, release.wait) for _ in range(SHARE)]
    futures.append(host.submit(job, release.set))
    print("log:", await within(lines.get()))
    release.set()
    await within(asyncio.gather(*futures))


def fork() -> None:
    """In a pool whose lock another thread holds at that moment, and whose functions end with a call that needs it."""
    os.register_at_fork(after_in_child=forked.end_with_function)
    pool, has_lock, has_forked = ThreadPoolExecutor(1), threading.Event(), threading.Event()

    def call() -> int:
        has_lock.wait()
        pid = os.fork()
        if pid:
            has_forked.set()
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return 0

    future = pool.submit(call)
    future.add_done_callback(lambda _: pool.submit(int))
    with pool._shutdown_lock:
        has_lock.set()
        has_forked.wait()
    print("status:", future.result(LIMIT))


for name in sys.argv[1:]:
    case: Any = globals()[name]()
    if case is not None:
        asyncio.run(case)
