# SPDX-License-Identifier: Apache-2.0
"""Background runs: records, joins, cancels, breakpoints, busy threads, errors."""

import asyncio

from httpx import HTTPStatusError
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tap import UNKNOWN, begun, collect, connect, new_thread, of_kind, say, scenario, until


@scenario("background run")
async def background_run(t):
    client = connect()
    thread_id = await new_thread(client)
    created = []
    run = await client.runs.create(
        thread_id, "agent", input=say("Hello"), metadata={"colour": "red"},
        config={"tags": ["a"]}, on_run_created=created.append)
    run_id = run["run_id"]
    t.equal([run["status"], run["thread_id"], run["metadata"]["colour"],
             run["multitask_strategy"]],
            ["pending", thread_id, "red", "reject"], "create returns the pending record")
    t.equal(created, [{"run_id": run_id, "thread_id": thread_id}],
            "on_run_created receives the ids of the run")
    values = await client.runs.join(thread_id, run_id)
    t.equal(values["messages"][0]["content"], "Hello", "join returns the values")
    done = await client.runs.get(thread_id, run_id)
    t.equal(done["status"], "success", "after a join the status is success")
    t.equal(await client.runs.join(thread_id, run_id), values,
            "join of a finished run returns the same values")
    t.equal(await client.runs.list(thread_id), [done], "list returns the record")
    t.equal(await client.runs.list(thread_id, status="success", select=["run_id", "status"]),
            [{"run_id": run_id, "status": "success"}],
            "list filters by status and selects fields")
    t.equal(await client.runs.list(thread_id, status="error"), [],
            "list with another status is empty")
    t.equal(await client.runs.list(thread_id, offset=1), [], "list with offset 1 is empty")
    await client.runs.delete(thread_id, run_id)
    await t.raises(NotFoundError, client.runs.get(thread_id, run_id), "a deleted run is not found")


@scenario("cancel")
async def cancel(t):
    client = connect()
    thread_id = await new_thread(client)

    async def start():
        run = await client.runs.create(thread_id, "agent", input=say("sleep 60000"))
        return run["run_id"]

    async def status(run_id):
        return (await client.runs.get(thread_id, run_id))["status"]

    first = await start()
    joined = asyncio.create_task(client.runs.join(thread_id, first))
    await begun(client, thread_id, first)
    await client.runs.cancel(thread_id, first, wait=True)
    t.equal(await status(first), "interrupted",
            "with wait, the run is interrupted when the call returns")
    t.equal((await joined)["messages"][0]["content"], "sleep 60000",
            "join of a cancelled run returns the values")
    other = await start()
    await client.runs.cancel(thread_id, other, wait=True, params={"reason": "no longer needed"})
    t.equal(await client.runs.list(thread_id, limit=1, select=["run_id", "cancel_reason"]),
            [{"run_id": other, "cancel_reason": "no longer needed"}], "the record has the reason of the cancel")
    second = await start()
    t.equal(await client.runs.cancel(thread_id, second), None,
            "without wait, the call returns nothing")
    await client.runs.join(thread_id, second)
    t.equal(await status(second), "interrupted", "without wait, the run is interrupted later")
    values = (await client.threads.get_state(thread_id))["values"]
    third = await start()
    await client.runs.cancel(thread_id, third, wait=True, action="rollback")
    await t.raises(NotFoundError, client.runs.get(thread_id, third),
                   "with rollback, the run is removed")
    t.equal((await client.threads.get_state(thread_id))["values"], values,
            "with rollback, the state is that before the run")
    await t.raises(NotFoundError, client.runs.cancel(thread_id, UNKNOWN),
                   "an unknown run is not found")


@scenario("cancel many")
async def cancel_many(t):
    client = connect()
    thread_id = await new_thread(client)
    run_ids = []
    for text in "sleep 60000", "sleep 60001", "Hello":
        run = await client.runs.create(thread_id, "agent", input=say(text),
                                       multitask_strategy="enqueue")
        run_ids.append(run["run_id"])
    t.equal(await client.runs.cancel_many(thread_id=thread_id, run_ids=run_ids[:2]), None,
            "the call returns nothing")
    await client.runs.join(thread_id, run_ids[2])
    statuses = [(await client.runs.get(thread_id, run_id))["status"] for run_id in run_ids]
    t.equal(statuses, ["interrupted", "interrupted", "success"],
            "the named runs are interrupted, and no other")
    await t.raises(NotFoundError,
                   client.runs.cancel_many(thread_id=thread_id, run_ids=[UNKNOWN]),
                   "unknown runs are a NotFoundError")


@scenario("interrupt_before")
async def interrupt_before(t):
    client = connect()
    thread_id = await new_thread(client)
    stopped = await collect(client.runs.stream(
        thread_id, "agent", input=say("use clock {}"), interrupt_before=["tools"],
        stream_mode=["values", "updates"]))
    t.equal(of_kind(stopped, "values")[-1]["__interrupt__"], [],
            "the last values have __interrupt__")
    t.equal(of_kind(stopped, "updates")[-1], {"__interrupt__": []},
            "the last update has __interrupt__")
    state = await client.threads.get_state(thread_id)
    t.equal([state["next"], [task["name"] for task in state["tasks"]]], [["tools"], ["tools"]],
            "the state names the next node")
    [run] = await client.runs.list(thread_id)
    t.equal(run["status"], "success", "the run is success")
    t.equal((await client.threads.get(thread_id))["status"], "interrupted",
            "the thread is interrupted")
    resumed = await collect(client.runs.stream(thread_id, "agent", input=None,
                                               stream_mode="updates"))
    t.equal([next(iter(update)) for update in of_kind(resumed, "updates")], ["tools", "agent"],
            "a run without input resumes")
    t.equal((await client.threads.get(thread_id))["status"], "idle",
            "after the resumed run the thread is idle")
    run = await client.runs.create(thread_id, "agent", input=say("use clock {}"),
                                   interrupt_after="*")
    await client.runs.join(thread_id, run["run_id"])
    t.equal((await client.runs.get(thread_id, run["run_id"]))["status"], "success",
            "with interrupt_after, the run is success")
    t.equal((await client.threads.get_state(thread_id))["next"], ["tools"],
            "interrupt_after stops after a node")
    await collect(client.runs.stream(thread_id, "agent", command={"resume": "go on"}))
    t.equal((await client.threads.get_state(thread_id))["next"], [],
            "a run with a command resumes as well")
    t.equal([run["status"] for run in await client.runs.list(thread_id)], ["success"] * 4,
            "all runs are success")


@scenario("busy thread")
async def busy_thread(t):
    client = connect()
    thread_id = await new_thread(client)

    async def start(text, strategy):
        run = await client.runs.create(thread_id, "agent", input=say(text),
                                       multitask_strategy=strategy)
        return run["run_id"]

    async def status(run_id):
        return (await client.runs.get(thread_id, run_id))["status"]

    async def is_gone(run_id):
        try:
            return not await status(run_id)
        except NotFoundError:
            return True

    first = await start("sleep 60000", None)
    error = await t.raises(ConflictError, start("no", "reject"),
    "with reject, a second run is a ConflictError")
    t.ok("already running" in error.message, "the conflict has a reason", error.message)
    t.equal(len(await client.runs.list(thread_id)), 1, "with reject, no second run is created")
    await begun(client, thread_id, first)
    second = await start("sleep 60001", "interrupt")
    await client.runs.join(thread_id, first)
    t.equal(await status(first), "interrupted", "with interrupt, the run before it is interrupted")
    third = await start("sleep 60002", "rollback")
    await until(lambda: is_gone(second))
    t.ok(await is_gone(second), "with rollback, the run before it is removed")
    fourth = await start("last", "enqueue")
    t.equal([await status(third), await status(fourth)], ["pending", "pending"],
            "with enqueue, both runs are pending")
    await begun(client, thread_id, third)
    await client.runs.cancel(thread_id, third)
    values = await client.runs.join(thread_id, fourth)
    t.equal(await status(fourth), "success",
            "with enqueue, the run is executed after the one before it")
    t.equal([message["content"] for message in values["messages"] if message["type"] == "human"],
            ["sleep 60000", "sleep 60002", "last"],
            "the thread has the inputs of all runs but the one rolled back")


@scenario("refused")
async def refused(t):
    client = connect()
    thread_id = await new_thread(client)

    def create(thread, assistant, **more):
        return client.runs.create(thread, assistant, input=say("no"), **more)

    await t.raises(NotFoundError, create(UNKNOWN, "agent"), "an unknown thread is a NotFoundError")
    error = await t.raises(NotFoundError, create(thread_id, "nobody"),
                           "an unknown assistant is a NotFoundError")
    t.ok(error.message.startswith('No assistant found for "nobody"'), "the error names the unknown assistant",
         error.message)
    error = await t.raises(UnprocessableEntityError,
                           create(thread_id, "agent", stream_mode=["values", "nonsense"]),
                           "an unknown stream mode is an UnprocessableEntityError")
    t.ok(error.message.startswith("/stream_mode/1: "),
         "the error of an unknown stream mode has its JSON pointer", error.message)
    error = await t.raises(UnprocessableEntityError,
                           create(thread_id, "agent", multitask_strategy="nonsense"),
                           "an unknown strategy is an UnprocessableEntityError")
    t.ok("/multitask_strategy" in error.message, "the error of a bad member names it", error.message)
    error = await t.raises(HTTPStatusError, client.runs.join(thread_id, UNKNOWN),
                           "a join of an unknown run is an HTTPStatusError")
    t.equal(error.response.status_code, 404, "a join of an unknown run is 404")
    await t.raises(NotFoundError, collect(client.runs.join_stream(thread_id, UNKNOWN)),
                   "a stream of an unknown run is a NotFoundError")
    await t.raises(NotFoundError, collect(client.runs.stream(thread_id, "nobody")),
                   "a stream with an unknown assistant is a NotFoundError")
    t.equal(await client.runs.list(thread_id), [], "refused requests create no run")


@scenario("failing run")
async def failing_run(t):
    client = connect()
    thread_id = await new_thread(client)
    parts = await collect(client.runs.stream(thread_id, "agent", input=say("fail")))
    t.equal(parts[-1].event, "error", "the stream ends with an error event")
    error = parts[-1].data
    t.ok(error["error"] == "DemoError" and "told it to" in error["message"],
         "the error event has name and message", error)
    [run] = await client.runs.list(thread_id)
    t.equal(run["status"], "error", "the status of the run is error")
    t.equal(await client.runs.join(thread_id, run["run_id"]), {"__error__": error},
            "join returns the error")
    t.equal((await client.threads.get(thread_id))["status"], "error",
            "the status of the thread is error")
