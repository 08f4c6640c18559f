# SPDX-License-Identifier: Apache-2.0
"""The end of a stream: the final status of the run can be read before it. The SDK
asks for the status when a stream has ended without an error, and reconnects
while the run is pending."""

import asyncio
import re

from tap import collect, connect, connect_sync, new_thread, say, scenario

TIMES = 5

# How a run ends: (words, text, further arguments, status).
ENDS = [
    ("succeeds", "use clock {}", {}, "success"),
    ("fails", "fail", {}, "error"),
    ("is cancelled", "sleep 60000", {}, "interrupted"),
    ("stops at a breakpoint", "use clock {}", {"interrupt_before": ["tools"]}, "success"),
]


def connect_noting(notes):
    """A client that notes its requests: of a run's record the status, of others
    the last segment of the path."""
    async def note(response):
        last = response.request.url.path.rpartition("/")[2]
        if re.fullmatch(r"[0-9a-f-]{36}", last):
            await response.aread()
            last = response.json()["status"]
        notes.append(last)

    client = connect()
    client.http.client.event_hooks["response"].append(note)
    return client


async def read_all(direct, thread_id, text, stream):
    """Reads a stream to its end; cancels a run that sleeps when it has sent values."""
    parts = []
    async for part in stream:
        parts.append(part)
        if text.startswith("sleep") and len(parts) == 2:
            await direct.runs.cancel(thread_id, parts[0].data["run_id"])
    return parts


async def read_created(direct, client, thread_id, text, more):
    return await read_all(direct, thread_id, text, client.runs.stream(
        thread_id, "agent", input=say(text), **more))


async def read_joined(direct, client, thread_id, text, more):
    run = await direct.runs.create(thread_id, "agent", input=say(text), **more)
    return await read_all(direct, thread_id, text,
                          client.runs.join_stream(thread_id, run["run_id"]))


async def play(read, text, more):
    direct = connect()
    thread_id = await new_thread(direct)
    notes = []
    parts = await read(direct, connect_noting(notes), thread_id, text, more)
    run = await direct.runs.get(thread_id, parts[0].data["run_id"])
    return run["status"], notes


def check_end(shape, read, how, text, more, status):
    @scenario(f"end of {shape}: a run that {how}")
    async def one_end(t):
        found = await asyncio.gather(*(play(read, text, more) for _ in range(TIMES)))
        t.equal([one for one, _ in found], [status] * TIMES, "the final status of the run can be read")
        asked = [] if status == "error" else [status]
        t.equal([notes for _, notes in found], [["stream", *asked]] * TIMES,
                "the SDK asks for the status once and does not reconnect")


for end in ENDS:
    check_end("stream", read_created, *end)
    check_end("join_stream", read_joined, *end)


@scenario("end of a stream of the sync client")
async def end_of_a_stream_of_the_sync_client(t):
    client = connect_sync()
    thread_id = await new_thread(connect())

    def read():
        parts = list(client.runs.stream(thread_id, "agent", input=say("use clock {}")))
        return client.runs.get(thread_id, parts[0].data["run_id"])

    run = await asyncio.to_thread(read)
    t.equal(run["status"], "success", "the final status of the run can be read")


@scenario("end of a stateless run")
async def end_of_a_stateless_run(t):
    client = connect()
    run = await client.runs.create(None, "agent", input=say("use clock {}"))
    await collect(client.runs.join_stream(run["thread_id"], run["run_id"]))
    run = await client.runs.get(run["thread_id"], run["run_id"])
    t.equal(run["status"], "success", "the final status of the run can be read")
    parts = await collect(client.runs.stream(None, "agent", input=say("use clock {}")))
    values = await client.http.get(f"/runs/{parts[0].data['run_id']}/join")
    t.equal(values, parts[-1].data, "a join after its stream has the values")


@scenario("end of a run in a thread stream")
async def end_of_a_run_in_a_thread_stream(t):
    client = connect()
    thread_id = await new_thread(client)

    async def follow():
        found = []
        async for part in await client.threads.join_stream(thread_id, last_event_id="-"):
            if part.event == "run_done":
                run = await client.runs.get(thread_id, part.data["run_id"])
                found.append((part.data["status"], run["status"]))
            if len(found) == len(ENDS):
                break
        return found

    following = asyncio.create_task(follow())
    for _, text, more, _ in ENDS:
        await read_created(client, client, thread_id, text, more)
    t.equal(await following, [(status, status) for *_, status in ENDS],
            "run_done follows the commit of the final status")


@scenario("end of a wait and a join")
async def end_of_a_wait_and_a_join(t):
    client = connect()
    thread_id = await new_thread(client)
    for how, text, more, status in ENDS:
        if how == "is cancelled":
            continue
        await client.runs.wait(thread_id, "agent", input=say(text), raise_error=False, **more)
        [run] = await client.runs.list(thread_id, limit=1)
        t.equal(run["status"], status, f"the final status can be read after a wait: {status}")
        run = await client.runs.create(thread_id, "agent", input=say(text), **more)
        await client.runs.join(thread_id, run["run_id"])
        run = await client.runs.get(thread_id, run["run_id"])
        t.equal(run["status"], status, f"the final status can be read after a join: {status}")
