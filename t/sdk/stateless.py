# SPDX-License-Identifier: Apache-2.0
"""Runs on threads that the client does not name."""

import asyncio

from httpx import HTTPStatusError
from langgraph_sdk.errors import NotFoundError

from tap import collect, connect, connect_cut, ids, kinds, say, scenario


@scenario("stateless create")
async def stateless_create(t):
    client = connect()
    created = []
    run = await client.runs.create(None, "agent", input=say("sleep 300"),
                                   on_run_created=created.append)
    t.equal([run["status"], [about["run_id"] for about in created]],
            ["pending", [run["run_id"]]], "create returns the pending run")
    values = await client.runs.join(run["thread_id"], run["run_id"])
    t.equal(len(values["messages"]), 2, "the run can be joined on its thread")
    kept = await client.runs.create(None, "agent", input=say("Hello"), on_completion="keep")
    await client.runs.join(kept["thread_id"], kept["run_id"])
    t.equal(len((await client.threads.get_state(kept["thread_id"]))["values"]["messages"]), 2,
            "with on_completion keep, the thread can be read")


@scenario("stateless wait")
async def stateless_wait(t):
    client = connect()
    values = await client.runs.wait(None, "agent", input=say("use clock {}"))
    t.equal([message["type"] for message in values["messages"]], ["human", "ai", "tool", "ai"],
            "wait returns the values")
    error = await t.raises(Exception, client.runs.wait(None, "agent", input=say("fail")),
                           "wait throws the error of the run")
    t.ok(str(error).startswith("DemoError: "), "the error has name and message", error)
    error = await t.raises(HTTPStatusError, client.runs.wait(None, "nobody", input={}),
                           "an unknown assistant is an HTTPStatusError")
    t.equal(error.response.status_code, 404, "an unknown assistant is 404")
    cut = await connect_cut([20]).runs.wait(None, "agent", input=say("sleep 300"))
    t.equal(len(cut["messages"]), 2, "a wait that is cut is resumed")


@scenario("stateless stream")
async def stateless_stream(t):
    client = connect()
    created = []
    parts = await collect(client.runs.stream(
        None, "agent", input=say("use clock {}"),
        stream_mode=["values", "updates", "messages-tuple"], on_run_created=created.append))
    t.equal(kinds(parts), ["messages", "metadata", "updates", "values"],
            "the events are those of the requested modes")
    t.equal(parts[0].data["run_id"], created[0]["run_id"], "the first event is metadata")
    t.equal(len(parts[-1].data["messages"]), 4, "the last event has the values")
    failed = await collect(client.runs.stream(None, "agent", input=say("fail")))
    t.equal(failed[-1].event, "error", "the last event of a failed run is error")


def check_plan(places):
    @scenario(f"stateless stream cut at {places}")
    async def one_plan(t):
        parts = await collect(connect_cut(places).runs.stream(
            None, "agent", input=say("sleep 1200"), stream_mode=["values", "messages-tuple"]))
        t.equal(ids(parts), list(range(len(parts))), "every event is received once and in order")
        t.equal(len(parts[-1].data["messages"]), 2, "the last event has the answer")


for plan in [0], [2000], [-1500, 1]:
    check_plan(plan)


@scenario("stateless batch")
async def stateless_batch(t):
    client = connect()
    texts = [f"Hello {number}" for number in range(5)]
    runs = await client.runs.create_batch(
        [{"assistant_id": "agent", "input": say(text)} for text in texts])
    t.equal([run["status"] for run in runs], ["pending"] * 5, "the call returns pending runs")
    values = await asyncio.gather(
        *(client.runs.join(run["thread_id"], run["run_id"]) for run in runs))
    t.equal([one["messages"][0]["content"] for one in values], texts,
            "the runs are in the order of the batch")
    t.equal(len({run["thread_id"] for run in runs}), 5, "each run has its own thread")
    await t.raises(NotFoundError, client.runs.create_batch(
        [{"assistant_id": "agent", "input": say("no")}, {"assistant_id": "nobody"}]),
        "an unknown assistant in a batch is not found")
