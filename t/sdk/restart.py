# SPDX-License-Identifier: Apache-2.0
"""Streams during which the server is restarted."""

import asyncio

from tap import connect, ids, new_thread, say, scenario

STREAMS = 4


@scenario("restarted server")
async def restarted_server(t):
    requests = []
    begun = []

    async def count(request):
        requests.append(request)

    client = connect()
    client.http.client.event_hooks["request"] = [count]
    direct = connect()
    threads = [await new_thread(direct) for _ in range(STREAMS)]

    async def read(thread_id):
        parts = []
        async for part in client.runs.stream(thread_id, "gated", input=say("use gate {}"),
                                             stream_mode=["values", "messages-tuple"]):
            parts.append(part)
            if len(parts) == 5:
                begun.append(thread_id)
                if len(begun) == STREAMS:
                    print("ready", flush=True)
        return parts

    streams = await asyncio.gather(*map(read, threads))
    # After each stream the SDK requests its run.
    t.ok(len(requests) > 2 * STREAMS, "the restart cuts the streams", len(requests))
    t.equal([ids(parts) for parts in streams], [list(range(len(parts))) for parts in streams],
            "every event is received once and in order")
    t.equal([len(parts[-1].data["messages"]) for parts in streams], [4] * STREAMS,
            "the last event of each stream has the answer")
    runs = await asyncio.gather(*map(direct.runs.list, threads))
    t.equal([run["status"] for [run] in runs], ["success"] * STREAMS, "the runs succeed")
