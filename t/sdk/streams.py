# SPDX-License-Identifier: Apache-2.0
"""Streams of runs: their modes, their events, joining them."""

import asyncio

from tap import UNKNOWN, collect, connect, ids, kinds, new_thread, of_kind, say, scenario

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
    "tools": ["tools"],
    # Of subgraphs, which a built-in graph has not.
    "lifecycle": [],
}


def check_mode(mode, events):
    @scenario(f"mode {mode}")
    async def one_mode(t):
        client = connect()
        thread_id = await new_thread(client)
        parts = await collect(client.runs.stream(thread_id, "agent", input=say(PROMPT),
                                                 stream_mode=mode))
        t.equal(kinds(parts), sorted(["metadata", *events]),
                "the stream has metadata and the events of the mode")
        t.equal(parts[0].event, "metadata", "the first event is metadata")
        t.equal(ids(parts), list(range(len(parts))), "ids count from 0")
        [run] = await client.runs.list(thread_id)
        t.equal(parts[0].data, {"run_id": run["run_id"], "attempt": 1}, "metadata names the run")
        t.equal(run["status"], "success", "the run has succeeded when the stream ends")


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
    t.equal(created, [{"run_id": run_id, "thread_id": thread_id}],
            "on_run_created receives the ids")
    t.equal(kinds(parts), sorted(["metadata", *sum(MODES.values(), [])]),
            "one stream has the events of all modes, and none of subgraphs")
    state = await client.threads.get_state(thread_id)
    t.equal(of_kind(parts, "values")[-1], state["values"], "the last values are the state")
    t.equal(of_kind(parts, "custom"), [{"done": 0.5}], "custom has the data of the graph")
    t.equal([list(update) for update in of_kind(parts, "updates")],
            [["agent"], ["tools"], ["agent"]], "updates has one event for each node")
    answer = state["values"]["messages"][-1]
    chunks = [chunk for chunk, _ in of_kind(parts, "messages") if chunk["id"] == answer["id"]]
    t.equal("".join(chunk["content"] for chunk in chunks), answer["content"],
            "the chunks of messages make up the answer")
    t.equal(of_kind(parts, "messages/complete")[-1], [answer], "messages/complete has the answer")
    call_id = state["values"]["messages"][2]["tool_call_id"]
    t.equal([(data["event"], data["name"], data["toolCallId"]) for data in of_kind(parts, "tools")],
            [(event, "clock", call_id) for event in ("on_tool_start", "on_tool_end")],
            "tools has the start and the end of the call of a tool")
    t.equal(of_kind(parts, "events")[-1]["data"]["output"], state["values"],
            "the last of events has the state as its output")
    t.equal(of_kind(parts, "checkpoints")[-1]["checkpoint"]["checkpoint_id"],
            state["checkpoint_id"], "the last checkpoint is that of the state")
    t.equal(await collect(client.runs.join_stream(thread_id, run_id, last_event_id="-1")), parts,
            "a finished run is replayed in full")
    t.equal(await collect(client.runs.join_stream(thread_id, run_id, last_event_id="6")),
            parts[7:], "a finished run is replayed after an id")


@scenario("join_stream")
async def join_stream(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("sleep 1000"),
                                   stream_mode=["values", "messages-tuple"],
                                   stream_resumable=True)
    one, two = await asyncio.gather(
        *(collect(client.runs.join_stream(thread_id, run["run_id"])) for _ in range(2)))
    t.equal(ids(one), list(range(len(one))), "the stream has all events of the run")
    t.equal(two, one, "two streams of a run have the same events")
    t.equal(kinds(one), ["messages", "metadata", "values"], "the stream has the modes of the run")
    t.equal((await client.runs.get(thread_id, run["run_id"]))["status"], "success",
            "the run has ended when the stream ends")
    filtered = await collect(client.runs.join_stream(
        thread_id, run["run_id"], last_event_id="-1", stream_mode=["values"]))
    t.equal(filtered, [part for part in one if part.event != "messages"],
            "stream_mode selects some of the modes of the run")
    t.equal(await collect(client.runs.join_stream(
        thread_id, run["run_id"], last_event_id="-1", stream_mode=["values", "messages-tuple"])),
            one, "stream_mode may name several modes")


@scenario("namespace")
async def namespace(t):
    client = connect()
    thread_id = await new_thread(client)
    root = await collect(client.runs.stream(
        thread_id, "agent", input=say("Hello"), stream_subgraphs=True, params={"namespace": [""]}))

    async def join(**more):
        return await collect(client.runs.join_stream(
            thread_id, root[0].data["run_id"], last_event_id="-1", **more))

    t.equal(await join(), root, "a stream of the root graph has all events of a graph without subgraphs")
    t.equal(kinds(await join(params={"namespace": ["tools:1", "tools:2"]})), ["metadata"],
            "an unknown namespace has no events")


@scenario("join_stream after a checkpoint")
async def join_stream_after_a_checkpoint(t):
    client = connect()
    thread_id = await new_thread(client)
    parts = await collect(client.runs.stream(
        thread_id, "agent", input=say("use clock {}"),
        stream_mode=["values", "checkpoints", "updates"]))

    async def join(checkpoint_id, last_event_id="-1"):
        return await collect(client.runs.join_stream(
            thread_id, parts[0].data["run_id"], last_event_id=last_event_id,
            params={"checkpoint_id": checkpoint_id}))

    # The first one, of the input, has no values event.
    checkpoints = [data["checkpoint"]["checkpoint_id"] for data in of_kind(parts, "checkpoints")][1:]
    places = [place for place, part in enumerate(parts) if part.event == "values"]
    t.equal([await join(one) for one in checkpoints], [parts[place + 1:] for place in places],
            "the stream has the events after the values of the checkpoint")
    t.equal(await join(checkpoints[0], "7"), parts[8:], "Last-Event-ID takes precedence")
    t.equal(await join(UNKNOWN), parts, "an unknown checkpoint has no effect")


@scenario("version 2")
async def version_2(t):
    client = connect()
    thread_id = await new_thread(client)
    parts = await collect(client.runs.stream(
        thread_id, "agent", input=say("use clock {}"), interrupt_before=["tools"],
        stream_mode=["values", "updates"], version="v2"))
    t.equal(sorted({part["type"] for part in parts}), ["metadata", "updates", "values"],
            "each part has its type")
    t.equal([parts[-1]["type"], parts[-1]["interrupts"], parts[-1]["ns"]], ["values", [], []],
            "the last part has interrupts and ns")


@scenario("heartbeats")
async def heartbeats(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("sleep 6500"),
                                   stream_mode="values")
    values, parts = await asyncio.gather(
        client.runs.join(thread_id, run["run_id"]),
        collect(client.runs.join_stream(thread_id, run["run_id"])))
    t.equal([part.event for part in parts], ["metadata", "values", "values"],
            "heartbeats are not events")
    t.equal(ids(parts), [0, 1, 2], "heartbeats have no ids")
    t.equal(values, parts[-1].data, "heartbeats are not part of the values of join")


async def leave(client, thread_id, stream):
    """Reads a stream until its first values, then disconnects."""
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
            "with on_disconnect cancel, the run is cancelled")
    t.equal(await leave(client, thread_id, stream(1)), "success",
            "by default, the run is executed to its end")
    run = await client.runs.create(thread_id, "agent", input=say("sleep 60000"))
    joined = client.runs.join_stream(thread_id, run["run_id"], cancel_on_disconnect=True)
    t.equal(await leave(client, thread_id, joined), "interrupted",
            "with cancel_on_disconnect, a joined stream cancels the run")
