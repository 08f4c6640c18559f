# SPDX-License-Identifier: Apache-2.0
"""Processor time of the bare library with its checkpointer in memory, in milliseconds.

    bare.py runs N        of a run, each on a thread of its own
    bare.py chat TURNS    of a turn of one chat: the mean of turns 6 to 15, and of the last ten
"""

import asyncio
import sys
import time

from graph import builder
from langgraph.checkpoint.memory import InMemorySaver

INPUT = {"messages": [{"role": "user", "content": "hello"}]}
# The modes that the runner requests for a client that wants `values`.
MODES = ["checkpoints", "tasks", "values"]

graph = builder.compile(checkpointer=InMemorySaver())


async def run(thread: str) -> None:
    config = {"configurable": {"thread_id": thread}}
    async for _ in graph.astream(INPUT, config, stream_mode=MODES, subgraphs=True):
        pass


async def mean_ms(threads: list[str]) -> float:
    begin = time.process_time()
    for thread in threads:
        await run(thread)
    return 1000 * (time.process_time() - begin) / len(threads)


async def measure_runs(count: int) -> None:
    await mean_ms([f"warm-up {number}" for number in range(1 + count // 10)])
    print(await mean_ms([str(number) for number in range(count)]))


async def measure_chat(turns: int) -> None:
    await mean_ms([f"warm-up {number}" for number in range(100)])
    await mean_ms(["chat"] * 5)
    tenth = await mean_ms(["chat"] * 10)
    await mean_ms(["chat"] * (turns - 25))
    print(tenth, await mean_ms(["chat"] * 10))


asyncio.run({"runs": measure_runs, "chat": measure_chat}[sys.argv[1]](int(sys.argv[2])))
