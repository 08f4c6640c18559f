# SPDX-License-Identifier: Apache-2.0
"""Processor time of the bare library with its checkpointer in memory, in milliseconds.

    bare.py runs N        of a run, each on a thread of its own
    bare.py chat TURNS    of a turn of one chat: the mean of turns 6 to 15, and of the last ten
    bare.py lines         a run for each line of standard input, and a line after it: the caller measures
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


async def execute_lines() -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        await run(line.decode())
        print(flush=True)


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


MEASURES = {"runs": measure_runs, "chat": measure_chat, "lines": execute_lines}
asyncio.run(MEASURES[sys.argv[1]](*map(int, sys.argv[2:])))
