# SPDX-License-Identifier: Apache-2.0
"""Streams of a thread: its runs one after the other, including later ones."""

import asyncio

from tap import collect, connect, connect_cut, kinds, new_thread, of_kind, say, scenario


async def follow(client, thread_id, runs, **options):
    """Reads the stream of a thread until `runs` runs have ended."""
    parts = []
    stream = await client.threads.join_stream(thread_id, **options)
    async for part in stream:
        parts.append(part)
        if len(of_kind(parts, "run_done")) == runs:
            break
    return parts


async def play(client, thread_id, text, **more):
    run = await client.runs.create(thread_id, "agent", input=say(text), **more)
    await client.runs.join(thread_id, run["run_id"])
    return run["run_id"]


@scenario("thread stream")
async def thread_stream(t):
    client = connect()
    thread_id = await new_thread(client)
    following = asyncio.create_task(follow(client, thread_id, 2, last_event_id="-"))
    first = await play(client, thread_id, "use clock {}", stream_mode=["values", "updates"])
    second = await play(client, thread_id, "fail", stream_mode="custom")
    parts = await following
    t.equal(kinds(parts), ["error", "metadata", "run_done", "updates", "values"],
            "the stream has the events of runs that are created later")
    t.equal([data["run_id"] for data in of_kind(parts, "metadata")], [first, second],
            "each run begins with its metadata")
    t.equal([(data["run_id"], data["status"]) for data in of_kind(parts, "run_done")],
            [(first, "success"), (second, "error")], "each run ends with its status")
    t.equal(await follow(client, thread_id, 2, last_event_id="-"), parts,
            "the event id - replays all events")
    t.equal(await follow(client, thread_id, 2, last_event_id=parts[3].id), parts[4:],
            "an event id replays the events after it")


@scenario("thread stream in its modes")
async def thread_stream_in_its_modes(t):
    client = connect()
    thread_id = await new_thread(client)
    run_id = await play(client, thread_id, "Hello")
    lifecycle = await follow(client, thread_id, 1, stream_mode="lifecycle", last_event_id="-")
    t.equal([part.event for part in lifecycle], ["metadata", "run_done"],
            "lifecycle has the start and the end of the run")
    t.equal(lifecycle[1].data["run_id"], run_id, "run_done names the run")
    states = await follow(client, thread_id, 1, stream_mode=["state_update", "lifecycle"],
                          last_event_id="-")
    t.equal(of_kind(states, "state_update"), [await client.threads.get_state(thread_id)],
            "state_update is the state after the run")


@scenario("thread stream cut")
async def thread_stream_cut(t):
    client = connect()
    thread_id = await new_thread(client)
    following = asyncio.create_task(
        follow(connect_cut([700, -900, 1]), thread_id, 2, last_event_id="-"))
    await play(client, thread_id, "sleep 300", stream_mode=["values", "messages-tuple"])
    await play(client, thread_id, "Hello again")
    t.equal(await following, await follow(client, thread_id, 2, last_event_id="-"),
            "every event is received once and in order")
    modes = await follow(connect_cut([300]), thread_id, 2, stream_mode="lifecycle",
                         last_event_id="-")
    t.equal(kinds(modes), ["metadata", "run_done"],
            "after a cut, the stream has the requested mode")


@scenario("join_stream in one mode cut")
async def join_stream_in_one_mode_cut(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("sleep 1200"),
                                   stream_mode=["values", "messages-tuple"])
    parts = await collect(connect_cut([500]).runs.join_stream(
        thread_id, run["run_id"], stream_mode="values"))
    t.equal(kinds(parts), ["metadata", "values"], "after a cut, the stream has the requested mode")
