# SPDX-License-Identifier: Apache-2.0
"""Streams that are cut: the SDK resumes them by itself and receives every event
once and in order."""

import asyncio

from tap import collect, connect, connect_cut, connect_sync, ids, new_thread, say, scenario

PAYLOAD = {
    "input": say("sleep 1200"),
    "stream_mode": ["values", "messages-tuple", "updates"],
}

# Cuts in the head of the first event, in its data, before and after its id; far
# into the run; two and three cuts; by an end and by a reset of the connection.
PLANS = [
    [0], [1], [7], [60], [94], [95], [100], [101], [102], [2000], [-2000], [-1],
    [3000, 500], [-3000, 1], [500, 0], [1500, 1, -2500],
]


async def check(t, thread_id, parts):
    """The events received through cuts equal the stored ones."""
    run_id = parts[0].data["run_id"]
    t.equal(ids(parts), list(range(len(parts))), "every event is received once and in order")
    stored = await collect(connect().runs.join_stream(thread_id, run_id, last_event_id="-1"))
    t.equal(parts, stored, "the events equal the stored ones")
    t.equal(parts[-1].data["messages"][-1]["type"], "ai", "the last event has the answer")


def check_plan(places):
    @scenario(f"stream cut at {places}")
    async def one_plan(t):
        thread_id = await new_thread(connect())
        created = []
        parts = await collect(connect_cut(places).runs.stream(
            thread_id, "agent", **PAYLOAD, on_run_created=created.append))
        await check(t, thread_id, parts)
        t.equal(len(created), 1, "onRunCreated is called once")
        t.equal(len(await connect().runs.list(thread_id)), 1, "the thread has one run")


for plan in PLANS:
    check_plan(plan)


@scenario("stream ended by a proxy")
async def stream_ended_by_a_proxy(t):
    direct = connect()
    thread_id = await new_thread(direct)
    parts = await collect(connect_cut(["700."]).runs.stream(
        thread_id, "agent", input=say("sleep 5000"), stream_mode=PAYLOAD["stream_mode"]))
    await check(t, thread_id, parts)


@scenario("creation whose response is cut")
async def creation_whose_response_is_cut(t):
    thread_id = await new_thread(connect())
    await t.raises(Exception, connect_cut([0]).runs.create(thread_id, "agent", **PAYLOAD),
                   "the call fails")
    t.equal(len(await connect().runs.list(thread_id)), 1, "the request is not repeated")


@scenario("join_stream cut")
async def join_stream_cut(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", **PAYLOAD)
    parts = await collect(connect_cut([700, -1500]).runs.join_stream(thread_id, run["run_id"]))
    await check(t, thread_id, parts)
    late = await collect(connect_cut([300, 900]).runs.join_stream(
        thread_id, run["run_id"], last_event_id="4"))
    t.equal(late, parts[5:], "a replay after an event is resumed as well")


@scenario("sync client cut")
async def sync_client_cut(t):
    thread_id = await new_thread(connect())

    def stream():
        return list(connect_sync([900, -2000]).runs.stream(thread_id, "agent", **PAYLOAD))

    await check(t, thread_id, await asyncio.to_thread(stream))


@scenario("mounted below a prefix")
async def mounted_below_a_prefix(t):
    thread_id = await new_thread(connect("/mounted"))
    created = []
    parts = await collect(connect_cut([2000], "/mounted").runs.stream(
        thread_id, "agent", **PAYLOAD, on_run_created=created.append))
    await check(t, thread_id, parts)
    t.equal(created, [{"run_id": parts[0].data["run_id"], "thread_id": thread_id}],
            "on_run_created receives the ids")
