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
            ["pending", thread_id, "red", "reject"], "it is returned at once")
    t.equal(created, [{"run_id": run_id, "thread_id": thread_id}],
            "on_run_created gets its ids")
    values = await client.runs.join(thread_id, run_id)
    t.equal(values["messages"][0]["content"], "Hello", "join returns the values")
    done = await client.runs.get(thread_id, run_id)
    t.equal(done["status"], "success", "then the record says success")
    t.equal(await client.runs.join(thread_id, run_id), values, "a join of it returns at once")
    t.equal(await client.runs.list(thread_id), [done], "it is listed")
    t.equal(await client.runs.list(thread_id, status="success", select=["run_id", "status"]),
            [{"run_id": run_id, "status": "success"}],
            "... by status, with the fields asked for")
    t.equal(await client.runs.list(thread_id, status="error"), [], "... and not by another")
    t.equal(await client.runs.list(thread_id, offset=1), [], "... once")
    await client.runs.delete(thread_id, run_id)
    await t.raises(NotFoundError, client.runs.get(thread_id, run_id), "deleted it is gone")


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
            "with wait the run is interrupted when it returns")
    t.equal((await joined)["messages"][0]["content"], "sleep 60000",
            "a join of it returns the values")
    second = await start()
    t.equal(await client.runs.cancel(thread_id, second), None, "without wait it returns at once")
    await client.runs.join(thread_id, second)
    t.equal(await status(second), "interrupted", "... and the run is interrupted soon")
    values = (await client.threads.get_state(thread_id))["values"]
    third = await start()
    await client.runs.cancel(thread_id, third, wait=True, action="rollback")
    await t.raises(NotFoundError, client.runs.get(thread_id, third),
                   "with rollback the run is gone")
    t.equal((await client.threads.get_state(thread_id))["values"], values,
            "... and what it had done")
    await t.raises(NotFoundError, client.runs.cancel(thread_id, UNKNOWN),
                   "a run that never was cannot be cancelled")


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
            "returns nothing")
    await client.runs.join(thread_id, run_ids[2])
    statuses = [(await client.runs.get(thread_id, run_id))["status"] for run_id in run_ids]
    t.equal(statuses, ["interrupted", "interrupted", "success"], "cancels those runs, and no other")
    await t.raises(NotFoundError,
                   client.runs.cancel_many(thread_id=thread_id, run_ids=[UNKNOWN]),
                   "runs that never were are a NotFoundError")


@scenario("interrupt_before")
async def interrupt_before(t):
    client = connect()
    thread_id = await new_thread(client)
    stopped = await collect(client.runs.stream(
        thread_id, "agent", input=say("use clock {}"), interrupt_before=["tools"],
        stream_mode=["values", "updates"]))
    t.equal(of_kind(stopped, "values")[-1]["__interrupt__"], [],
            "the last values tell the breakpoint")
    t.equal(of_kind(stopped, "updates")[-1], {"__interrupt__": []}, "... and the last update")
    state = await client.threads.get_state(thread_id)
    t.equal([state["next"], [task["name"] for task in state["tasks"]]], [["tools"], ["tools"]],
            "the state says what comes next")
    t.equal((await client.threads.get(thread_id))["status"], "interrupted",
            "the thread is interrupted")
    resumed = await collect(client.runs.stream(thread_id, "agent", input=None,
                                               stream_mode="updates"))
    t.equal([next(iter(update)) for update in of_kind(resumed, "updates")], ["tools", "agent"],
            "a run without input goes on")
    t.equal((await client.threads.get(thread_id))["status"], "idle", "... to the end")
    run = await client.runs.create(thread_id, "agent", input=say("use clock {}"),
                                   interrupt_after="*")
    await client.runs.join(thread_id, run["run_id"])
    t.equal((await client.threads.get_state(thread_id))["next"], ["tools"],
            "interrupt_after stops after a node")
    await collect(client.runs.stream(thread_id, "agent", command={"resume": "go on"}))
    t.equal((await client.threads.get_state(thread_id))["next"], [], "a command resumes too")


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
    error = await t.raises(ConflictError, start("no", "reject"), "reject is a ConflictError")
    t.ok("already running" in error.message, "... that says why", error.message)
    t.equal(len(await client.runs.list(thread_id)), 1, "... and stores no run")
    await begun(client, thread_id, first)
    second = await start("sleep 60001", "interrupt")
    await client.runs.join(thread_id, first)
    t.equal(await status(first), "interrupted", "interrupt stops the run before")
    third = await start("sleep 60002", "rollback")
    await until(lambda: is_gone(second))
    t.ok(await is_gone(second), "rollback removes the run before")
    fourth = await start("last", "enqueue")
    t.equal([await status(third), await status(fourth)], ["pending", "pending"], "enqueue waits")
    await begun(client, thread_id, third)
    await client.runs.cancel(thread_id, third)
    values = await client.runs.join(thread_id, fourth)
    t.equal(await status(fourth), "success", "... until it is its turn")
    t.equal([message["content"] for message in values["messages"] if message["type"] == "human"],
            ["sleep 60000", "sleep 60002", "last"], "the thread has what was not rolled back")


@scenario("refused")
async def refused(t):
    client = connect()
    thread_id = await new_thread(client)

    def create(thread, assistant, **more):
        return client.runs.create(thread, assistant, input=say("no"), **more)

    await t.raises(NotFoundError, create(UNKNOWN, "agent"), "an unknown thread is a NotFoundError")
    error = await t.raises(NotFoundError, create(thread_id, "nobody"),
                           "an unknown assistant is a NotFoundError")
    t.ok(error.message.startswith('No assistant found for "nobody"'), "... and named",
         error.message)
    await t.raises(UnprocessableEntityError, create(thread_id, "agent", stream_mode="nonsense"),
                   "an unknown stream mode is an UnprocessableEntityError")
    error = await t.raises(UnprocessableEntityError,
                           create(thread_id, "agent", multitask_strategy="nonsense"),
                           "an unknown strategy too")
    t.ok("/multitask_strategy" in error.message, "... which points at the place", error.message)
    error = await t.raises(HTTPStatusError, client.runs.join(thread_id, UNKNOWN),
                           "a join of an unknown run is an HTTPStatusError")
    t.equal(error.response.status_code, 404, "... with 404")
    await t.raises(NotFoundError, collect(client.runs.join_stream(thread_id, UNKNOWN)),
                   "its stream is a NotFoundError")
    await t.raises(NotFoundError, collect(client.runs.stream(thread_id, "nobody")),
                   "so is a stream of an unknown assistant")
    t.equal(await client.runs.list(thread_id), [], "nothing of it was stored")


@scenario("failing run")
async def failing_run(t):
    client = connect()
    thread_id = await new_thread(client)
    parts = await collect(client.runs.stream(thread_id, "agent", input=say("fail")))
    t.equal(parts[-1].event, "error", "its stream ends with an error")
    error = parts[-1].data
    t.ok(error["error"] == "DemoError" and "told it to" in error["message"],
         "... that says what happened", error)
    [run] = await client.runs.list(thread_id)
    t.equal(run["status"], "error", "the record says so")
    t.equal(await client.runs.join(thread_id, run["run_id"]), {"__error__": error},
            "a join of it returns the error")
    t.equal((await client.threads.get(thread_id))["status"], "error", "and so does the thread")
