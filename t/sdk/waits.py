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
            "wait returns the values")
    [run] = await client.runs.list(thread_id)
    t.equal(run["status"], "success", "the run has succeeded when wait returns")
    t.equal(created, [{"run_id": run["run_id"], "thread_id": thread_id}],
            "on_run_created receives the ids")
    stopped = await client.runs.wait(thread_id, "agent", input=say("use clock {}"),
                                     interrupt_before=["tools"])
    t.equal(["__interrupt__" in stopped, len(stopped["messages"])], [False, 6],
            "at a breakpoint, the values have no __interrupt__")
    resumed = await client.runs.wait(thread_id, "agent", input=None)
    t.equal(["__interrupt__" in resumed, len(resumed["messages"])], [False, 8],
            "without input, wait resumes")


@scenario("wait cut")
async def wait_cut(t):
    client = connect()
    for places in [0], [40], [-1, 7]:
        thread_id = await new_thread(client)
        values = await connect_cut(places).runs.wait(thread_id, "agent", input=say("sleep 300"))
        t.equal(values, (await client.threads.get_state(thread_id))["values"],
                f"a wait that is cut at {places} is resumed")
        t.equal(len(await client.runs.list(thread_id)), 1, f"a wait that is cut at {places} creates one run")


@scenario("wait for a failing run")
async def wait_for_a_failing_run(t):
    client = connect()
    thread_id = await new_thread(client)
    payload = {"input": say("fail")}
    error = await t.raises(Exception, client.runs.wait(thread_id, "agent", **payload),
                           "wait throws the error of the run")
    t.ok(str(error).startswith("DemoError: ") and "told it to" in str(error),
         "the error has name and message", error)
    values = await client.runs.wait(thread_id, "agent", **payload, raise_error=False)
    t.equal(values["__error__"]["error"], "DemoError", "wait can return the error instead")
    error = await t.raises(HTTPStatusError, client.runs.wait(thread_id, "nobody", **payload),
                           "an unknown assistant is an HTTPStatusError")
    t.equal(error.response.status_code, 404, "an unknown assistant is 404")


@scenario("wait on a busy thread")
async def wait_on_a_busy_thread(t):
    client = connect()
    thread_id = await new_thread(client)
    first = asyncio.create_task(client.runs.wait(thread_id, "agent", input=say("sleep 60000")))
    [run] = await until(lambda: client.runs.list(thread_id))
    await begun(client, thread_id, run["run_id"])
    error = await t.raises(HTTPStatusError, client.runs.wait(thread_id, "agent", input=say("no")),
                           "with reject, a second wait is refused")
    t.equal(error.response.status_code, 409, "with reject, a second wait is 409")
    second = await client.runs.wait(thread_id, "agent", input=say("Hello"),
                                    multitask_strategy="interrupt")
    t.equal(second["messages"][-1]["type"], "ai",
            "with interrupt, a second wait returns its values")
    t.equal((await first)["messages"][0]["content"], "sleep 60000",
            "with interrupt, the first wait returns its values")


@scenario("wait of a client that leaves")
async def wait_of_a_client_that_leaves(t):
    client = connect()
    thread_id = await new_thread(client)
    waiting = asyncio.create_task(client.runs.wait(
        thread_id, "agent", input=say("sleep 60000"), on_disconnect="cancel"))
    [run] = await until(lambda: client.runs.list(thread_id))
    waiting.cancel()
    await client.runs.join(thread_id, run["run_id"])
    ended = await client.runs.get(thread_id, run["run_id"])
    t.equal([ended["status"], ended["cancel_reason"]], ["interrupted", "disconnect: the client disconnected"],
            "with on_disconnect cancel, the run is cancelled")


@scenario("wait on a thread that does not exist")
async def wait_on_a_thread_that_does_not_exist(t):
    client = connect()
    thread_id = str(uuid.uuid4())
    error = await t.raises(HTTPStatusError,
                           client.runs.wait(thread_id, "agent", input=say("Hello")),
                           "the run is refused by default")
    t.equal(error.response.status_code, 404, "an unknown thread is 404")
    values = await client.runs.wait(thread_id, "agent", input=say("Hello"),
                                    if_not_exists="create")
    t.equal((await client.threads.get(thread_id))["values"], values,
            "with if_not_exists create, the thread is created")


@scenario("delayed run")
async def delayed_run(t):
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("Hello"), after_seconds=2)
    await client.runs.join(thread_id, run["run_id"])
    state = await client.threads.get_state(thread_id)
    waited = datetime.fromisoformat(state["created_at"]) - datetime.fromisoformat(run["created_at"])
    t.ok(waited.total_seconds() >= 2, "the run begins after after_seconds", waited)
    t.equal((await client.runs.get(thread_id, run["run_id"]))["status"], "success",
            "the run succeeds")
