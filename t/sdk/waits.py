# SPDX-License-Identifier: Apache-2.0
"""Runs that are created and waited for in one call."""

import asyncio
import uuid
from datetime import datetime

from httpx import HTTPStatusError

from tap import begun, connect, connect_cut, new_thread, say, scenario, until


@scenario("wait")
async def wait(t):
    client = connect()
    thread_id = await new_thread(client)
    created = []
    values = await client.runs.wait(thread_id, "agent", input=say("use clock {}"),
                                    on_run_created=created.append)
    t.equal([message["type"] for message in values["messages"]], ["human", "ai", "tool", "ai"],
            "returns the values")
    [run] = await client.runs.list(thread_id)
    t.equal(run["status"], "success", "... when the record says success")
    t.equal(created, [{"run_id": run["run_id"], "thread_id": thread_id}],
            "on_run_created gets the ids")
    stopped = await client.runs.wait(thread_id, "agent", input=say("use clock {}"),
                                     interrupt_before=["tools"])
    t.equal([stopped["__interrupt__"], len(stopped["messages"])], [[], 6],
            "at a breakpoint they tell it, beside the state")
    resumed = await client.runs.wait(thread_id, "agent", input=None)
    t.equal(["__interrupt__" in resumed, len(resumed["messages"])], [False, 8],
            "... and go on from it")


@scenario("wait cut")
async def wait_cut(t):
    client = connect()
    for places in [0], [40], [-1, 7]:
        thread_id = await new_thread(client)
        values = await connect_cut(places).runs.wait(thread_id, "agent", input=say("sleep 300"))
        t.equal(values, (await client.threads.get_state(thread_id))["values"],
                f"at {places} it is taken up again")
        t.equal(len(await client.runs.list(thread_id)), 1, "... with the same run")


@scenario("wait for a failing run")
async def wait_for_a_failing_run(t):
    client = connect()
    thread_id = await new_thread(client)
    payload = {"input": say("fail")}
    error = await t.raises(Exception, client.runs.wait(thread_id, "agent", **payload),
                           "throws its error")
    t.ok(str(error).startswith("DemoError: ") and "told it to" in str(error),
         "... which says what happened", error)
    values = await client.runs.wait(thread_id, "agent", **payload, raise_error=False)
    t.equal(values["__error__"]["error"], "DemoError", "... or returns it")
    error = await t.raises(HTTPStatusError, client.runs.wait(thread_id, "nobody", **payload),
                           "an unknown assistant is an HTTPStatusError")
    t.equal(error.response.status_code, 404, "... with 404")


@scenario("wait on a busy thread")
async def wait_on_a_busy_thread(t):
    client = connect()
    thread_id = await new_thread(client)
    first = asyncio.create_task(client.runs.wait(thread_id, "agent", input=say("sleep 60000")))
    [run] = await until(lambda: client.runs.list(thread_id))
    await begun(client, thread_id, run["run_id"])
    error = await t.raises(HTTPStatusError, client.runs.wait(thread_id, "agent", input=say("no")),
                           "is refused with reject")
    t.equal(error.response.status_code, 409, "... with 409")
    second = await client.runs.wait(thread_id, "agent", input=say("Hello"),
                                    multitask_strategy="interrupt")
    t.equal(second["messages"][-1]["type"], "ai", "comes to its turn with interrupt")
    t.equal((await first)["messages"][0]["content"], "sleep 60000",
            "... and the first wait returns")


@scenario("wait of a client that leaves")
async def wait_of_a_client_that_leaves(t):
    client = connect()
    thread_id = await new_thread(client)
    waiting = asyncio.create_task(client.runs.wait(
        thread_id, "agent", input=say("sleep 60000"), on_disconnect="cancel"))
    [run] = await until(lambda: client.runs.list(thread_id))
    waiting.cancel()
    await client.runs.join(thread_id, run["run_id"])
    t.equal((await client.runs.get(thread_id, run["run_id"]))["status"], "interrupted",
            "with on_disconnect cancel the run is cancelled")


@scenario("a thread that is not there yet")
async def a_thread_that_is_not_there_yet(t):
    client = connect()
    thread_id = str(uuid.uuid4())
    error = await t.raises(HTTPStatusError,
                           client.runs.wait(thread_id, "agent", input=say("Hello")),
                           "is refused")
    t.equal(error.response.status_code, 404, "... with 404")
    values = await client.runs.wait(thread_id, "agent", input=say("Hello"),
                                    if_not_exists="create")
    t.equal((await client.threads.get(thread_id))["values"], values,
            "... or made, with if_not_exists")


@scenario("a run that is to begin later")
async def a_run_that_is_to_begin_later(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("Hello"), after_seconds=2)
    await client.runs.join(thread_id, run["run_id"])
    state = await client.threads.get_state(thread_id)
    waited = datetime.fromisoformat(state["created_at"]) - datetime.fromisoformat(run["created_at"])
    t.ok(waited.total_seconds() >= 2, "begins after after_seconds", waited)
    t.equal((await client.runs.get(thread_id, run["run_id"]))["status"], "success",
            "... and ends well")
