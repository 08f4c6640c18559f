# SPDX-License-Identifier: Apache-2.0
"""Processor time of a run in the bare library."""

import asyncio
import sys
import time

from graph import builder
from langgraph.checkpoint.memory import InMemorySaver

INPUT = {"messages": [{"role": "user", "content": "hello"}]}


async def execute(graph, first: int, count: int) -> None:
    for number in range(first, first + count):
        config = {"configurable": {"thread_id": str(number)}}
        async for _ in graph.astream(INPUT, config, stream_mode=["checkpoints", "tasks"], subgraphs=True):
            pass


async def main(count: int) -> None:
    graph = builder.compile(checkpointer=InMemorySaver())
    await execute(graph, 0, count // 10)
    begin = time.process_time()
    await execute(graph, count, count)
    print(1000 * (time.process_time() - begin) / count)


asyncio.run(main(int(sys.argv[1])))
