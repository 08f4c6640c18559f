# SPDX-License-Identifier: Apache-2.0
"""Threads and their state."""

import uuid

from langgraph_sdk.errors import ConflictError, NotFoundError

from tap import UNKNOWN, connect, connect_sync, new_thread, say, scenario


@scenario("threads")
async def threads(t):
    client = connect()
    thread_id = str(uuid.uuid4())
    thread = await client.threads.create(thread_id=thread_id, metadata={"colour": "red"})
    t.equal([thread["thread_id"], thread["status"], thread["metadata"], thread["values"]],
            [thread_id, "idle", {"colour": "red"}, None], "a new one is idle and empty")
    t.equal(await client.threads.get(thread_id), thread, "it is there")
    t.equal(await client.threads.create(thread_id=thread_id, if_exists="do_nothing"), thread,
            "made again with do_nothing it is the same")
    error = await t.raises(ConflictError, client.threads.create(thread_id=thread_id),
                           "made again it is a ConflictError")
    t.equal([error.status_code, error.code], [409, "thread_exists"], "... with status and code")
    await client.threads.delete(thread_id)
    await t.raises(NotFoundError, client.threads.get(thread_id), "deleted it is a NotFoundError")
    await t.raises(NotFoundError, client.threads.delete(UNKNOWN),
                   "one that never was cannot be deleted")


@scenario("state")
async def state(t):
    client = connect()
    thread_id = await new_thread(client)
    t.equal((await client.threads.get_state(thread_id))["next"], [],
            "an empty thread has nothing to do")
    run = await client.runs.create(thread_id, "agent", input=say("use clock {}"))
    values = await client.runs.join(thread_id, run["run_id"])
    now = await client.threads.get_state(thread_id)
    t.equal(now["values"], values, "the state after a run is what its join returns")
    t.equal([message["type"] for message in values["messages"]], ["human", "ai", "tool", "ai"],
            "it has the messages")
    t.equal([now["next"], now["tasks"], now["metadata"]["run_id"]], [[], [], run["run_id"]],
            "nothing is left to do")
    t.equal(now["checkpoint"]["checkpoint_id"], now["checkpoint_id"], "a checkpoint is named")
    before = await client.threads.get_state(
        thread_id, checkpoint_id=now["parent_checkpoint"]["checkpoint_id"])
    t.equal([before["next"], len(before["values"]["messages"])], [["agent"], 3],
            "the state at the checkpoint before can be read")
    t.equal((await client.threads.get(thread_id))["values"], values,
            "the thread has the values too")
    await t.raises(NotFoundError, client.threads.get_state(UNKNOWN), "no thread, no state")


@scenario("sync client")
async def sync_client(t):
    client = connect_sync()
    thread_id = client.threads.create()["thread_id"]
    run = client.runs.create(thread_id, "agent", input=say("Hello"))
    values = client.runs.join(thread_id, run["run_id"])
    t.equal(client.threads.get_state(thread_id)["values"], values, "runs, joins and reads the state")
    t.equal(client.runs.get(thread_id, run["run_id"])["status"], "success", "... and the record")
    parts = list(client.runs.stream(thread_id, "agent", input=say("Hello again")))
    t.equal(parts[-1].data, client.threads.get_state(thread_id)["values"], "... and streams")
    client.threads.delete(thread_id)
