# SPDX-License-Identifier: Apache-2.0
"""Streams of runs: every mode, what they hold, joining them."""

import asyncio

from tap import collect, connect, ids, kinds, new_thread, of_kind, say, scenario

PROMPT = 'custom {"done": 0.5} and use clock {}'

# The events of each mode.
MODES = {
    "values": ["values"],
    "updates": ["updates"],
    "messages": ["messages/complete", "messages/metadata", "messages/partial"],
    "messages-tuple": ["messages"],
    "custom": ["custom"],
    "tasks": ["tasks"],
    "checkpoints": ["checkpoints"],
    "debug": ["debug"],
    "events": ["events"],
}


def check_mode(mode, events):
    @scenario(f"mode {mode}")
    async def one_mode(t):
        client = connect()
        thread_id = await new_thread(client)
        parts = await collect(client.runs.stream(thread_id, "agent", input=say(PROMPT),
                                                 stream_mode=mode))
        t.equal(kinds(parts), sorted(["metadata", *events]), "its own events and metadata")
        t.equal(parts[0].event, "metadata", "metadata comes first")
        t.equal(ids(parts), list(range(len(parts))), "ids count from 0")
        [run] = await client.runs.list(thread_id)
        t.equal(parts[0].data, {"run_id": run["run_id"], "attempt": 1}, "metadata names the run")
        t.equal(run["status"], "success", "the stream ends with the run")


for name, kinds_of_mode in MODES.items():
    check_mode(name, kinds_of_mode)


@scenario("all modes")
async def all_modes(t):
    client = connect()
    thread_id = await new_thread(client)
    created = []
    parts = await collect(client.runs.stream(
        thread_id, "agent", input=say(PROMPT), stream_mode=list(MODES), stream_subgraphs=True,
        on_run_created=created.append))
    run_id = parts[0].data["run_id"]
    t.equal(created, [{"run_id": run_id, "thread_id": thread_id}], "on_run_created gets the ids")
    t.equal(kinds(parts), sorted(["metadata", *sum(MODES.values(), [])]),
            "come together, without subgraphs under their own names")
    state = await client.threads.get_state(thread_id)
    t.equal(of_kind(parts, "values")[-1], state["values"], "the last values are the state")
    t.equal(of_kind(parts, "custom"), [{"done": 0.5}], "custom is what the graph said")
    t.equal([list(update) for update in of_kind(parts, "updates")],
            [["agent"], ["tools"], ["agent"]], "an update comes from each node")
    answer = state["values"]["messages"][-1]
    chunks = [chunk for chunk, _ in of_kind(parts, "messages") if chunk["id"] == answer["id"]]
    t.equal("".join(chunk["content"] for chunk in chunks), answer["content"],
            "chunks add up to the answer")
    t.equal(of_kind(parts, "messages/complete")[-1], [answer], "... which comes complete")
    t.equal(of_kind(parts, "events")[-1]["data"]["output"], state["values"],
            "the traced graph ends with the state")
    t.equal(of_kind(parts, "checkpoints")[-1]["checkpoint"]["checkpoint_id"],
            state["checkpoint_id"], "the last checkpoint is that of the state")
    t.equal(await collect(client.runs.join_stream(thread_id, run_id, last_event_id="-1")), parts,
            "the finished run is replayed in full")
    t.equal(await collect(client.runs.join_stream(thread_id, run_id, last_event_id="6")),
            parts[7:], "... or from the event after an id")


@scenario("join_stream")
async def join_stream(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("sleep 1000"),
                                   stream_mode=["values", "messages-tuple"],
                                   stream_resumable=True)
    one, two = await asyncio.gather(
        *(collect(client.runs.join_stream(thread_id, run["run_id"])) for _ in range(2)))
    t.equal(ids(one), list(range(len(one))), "follows a run to its end")
    t.equal(two, one, "... for as many as like")
    t.equal(kinds(one), ["messages", "metadata", "values"], "... in the modes of the run")
    t.equal((await client.runs.get(thread_id, run["run_id"]))["status"], "success",
            "... which has ended then")
    filtered = await collect(client.runs.join_stream(
        thread_id, run["run_id"], last_event_id="-1", stream_mode=["values"]))
    t.equal(filtered, [part for part in one if part.event != "messages"],
            "... in one of its modes")


@scenario("version 2")
async def version_2(t):
    client = connect()
    thread_id = await new_thread(client)
    parts = await collect(client.runs.stream(
        thread_id, "agent", input=say("use clock {}"), interrupt_before=["tools"],
        stream_mode=["values", "updates"], version="v2"))
    t.equal(sorted({part["type"] for part in parts}), ["metadata", "updates", "values"],
            "parts have their types")
    t.equal([parts[-1]["type"], parts[-1]["interrupts"], parts[-1]["ns"]], ["values", [], []],
            "... and what they need beside")


@scenario("silence")
async def silence(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("sleep 6500"),
                                   stream_mode="values")
    values, parts = await asyncio.gather(
        client.runs.join(thread_id, run["run_id"]),
        collect(client.runs.join_stream(thread_id, run["run_id"])))
    t.equal([part.event for part in parts], ["metadata", "values", "values"],
            "heartbeats are not events")
    t.equal(ids(parts), [0, 1, 2], "... and have no ids")
    t.equal(values, parts[-1].data, "... and no part of a join")


async def leave(client, thread_id, stream):
    """Reads a stream until its first values, then leaves."""
    async for part in stream:
        if part.event == "values":
            break
    await stream.aclose()
    [run, *_] = await client.runs.list(thread_id)
    await client.runs.join(thread_id, run["run_id"])
    return (await client.runs.get(thread_id, run["run_id"]))["status"]


@scenario("client that leaves")
async def client_that_leaves(t):
    client = connect()
    thread_id = await new_thread(client)

    def stream(seconds, **more):
        return client.runs.stream(thread_id, "agent", input=say(f"sleep {seconds}000"), **more)

    t.equal(await leave(client, thread_id, stream(60, on_disconnect="cancel")), "interrupted",
            "with on_disconnect cancel its run is cancelled")
    t.equal(await leave(client, thread_id, stream(1)), "success", "without it the run goes on")
    run = await client.runs.create(thread_id, "agent", input=say("sleep 60000"))
    joined = client.runs.join_stream(thread_id, run["run_id"], cancel_on_disconnect=True)
    t.equal(await leave(client, thread_id, joined), "interrupted",
            "a joined stream can cancel it too")
