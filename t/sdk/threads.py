# SPDX-License-Identifier: Apache-2.0
"""Threads and their state."""

import uuid

from langgraph_sdk.errors import (
    BadRequestError, ConflictError, NotFoundError, UnprocessableEntityError)

from tap import UNKNOWN, connect, connect_sync, new_thread, say, scenario


@scenario("threads")
async def threads(t):
    client = connect()
    thread_id = str(uuid.uuid4())
    thread = await client.threads.create(thread_id=thread_id, metadata={"colour": "red"})
    t.equal([thread["thread_id"], thread["status"], thread["metadata"], thread["values"]],
            [thread_id, "idle", {"colour": "red"}, None], "a new thread is idle and has no values")
    t.equal(await client.threads.get(thread_id), thread, "get returns the record of create")
    t.equal(await client.threads.create(thread_id=thread_id, if_exists="do_nothing"), thread,
            "with do_nothing, create returns the existing thread")
    t.equal((await client.threads.update(thread_id, metadata={"size": 1}))["metadata"], {"colour": "red", "size": 1},
            "update merges metadata")
    t.equal(await client.threads.update(thread_id, metadata={"size": 2}, return_minimal=True), None,
            "update may return nothing")
    error = await t.raises(ConflictError, client.threads.create(thread_id=thread_id),
                           "an existing id is a ConflictError")
    t.equal([error.status_code, error.code], [409, "thread_exists"],
            "the conflict has status and code")
    run = await client.runs.create(thread_id, "agent", input=say("Hello"))
    values = await client.runs.join(thread_id, run["run_id"])
    copy = await client.threads.copy(thread_id)
    metadata = (await client.threads.get(thread_id))["metadata"]
    t.equal([copy["metadata"], copy["values"]], [{**metadata, "thread_id": copy["thread_id"]}, values],
            "copy returns the record of the copy, with its values")
    t.equal([(await client.threads.get_state(id))["checkpoint_id"] for id in (thread_id, copy["thread_id"])],
            [(await client.threads.get_state(thread_id))["checkpoint_id"]] * 2,
            "the checkpoints of a copy have the same ids")
    await t.raises(ConflictError, client.threads.copy(UNKNOWN),
                   "the copy of an unknown thread is a ConflictError")
    await client.threads.delete(thread_id)
    await t.raises(NotFoundError, client.threads.get(thread_id),
        "a deleted thread is a NotFoundError")
    await t.raises(NotFoundError, client.threads.delete(UNKNOWN),
                   "an unknown thread cannot be deleted")


@scenario("thread searches")
async def searches(t):
    client = connect()
    search, count = client.threads.search, client.threads.count
    metadata = {"topic": "search-py"}
    ids = [(await client.threads.create(metadata={**metadata, "number": number}))["thread_id"] for number in (1, 2, 3)]
    found = await search(metadata=metadata)
    t.equal([thread["thread_id"] for thread in found], ids[::-1],
            "search returns threads with these metadata, the last changed first")
    t.equal(found[0], await client.threads.get(ids[2]), "search returns the records of threads")
    t.equal(await search(ids=[ids[2], UNKNOWN, ids[0], ids[1]], metadata=metadata, sort_by="created_at", sort_order="asc",
                         limit=1, offset=1, select=["thread_id", "metadata"]),
            [{"thread_id": ids[1], "metadata": {**metadata, "number": 2}}],
            "search has ids, an order, pages and a selection of members")
    run = await client.runs.create(ids[0], "agent", input=say("Hello"))
    values = await client.runs.join(ids[0], run["run_id"])
    busy = await client.runs.create(ids[1], "agent", input=say("sleep 600000"))
    t.equal(await search(metadata=metadata, status="busy", select=["thread_id"]), [{"thread_id": ids[1]}],
            "search has a status")
    t.equal((await search(ids=[ids[0]]))[0]["values"], values, "a found thread has its values")
    t.equal([await count(metadata=metadata), await count(metadata=metadata, status="busy"),
             await count(metadata={"topic": "none"})], [3, 1, 0], "count has the conditions of search")
    await client.runs.cancel(ids[1], busy["run_id"], wait=True)
    for refused in (search(values={"a": 1}), search(extract={"a": "values.a"}), count(values={"a": 1}),
                    search(limit=1001), search(status="none")):
        await t.raises(UnprocessableEntityError, refused, "a condition that is not supported is refused")


@scenario("pruned threads")
async def pruned(t):
    client = connect()
    kept, gone = await new_thread(client), await new_thread(client)
    t.equal(await client.threads.prune([gone, UNKNOWN]), {"pruned_count": 1}, "prune deletes threads")
    await t.raises(NotFoundError, client.threads.get(gone), "a pruned thread is not found")
    for text in ("Hello", "Again"):
        run = await client.runs.create(kept, "agent", input=say(text))
        await client.runs.join(kept, run["run_id"])
    state = await client.threads.get_state(kept)
    t.equal(await client.threads.prune([kept], strategy="keep_latest"), {"pruned_count": 1},
            "prune keep_latest counts threads")
    t.equal([one["checkpoint_id"] for one in await client.threads.get_history(kept)], [state["checkpoint_id"]],
            "prune keep_latest leaves the last checkpoint")
    t.equal((await client.threads.get_state(kept))["values"], state["values"], "prune keep_latest leaves the values")


@scenario("storage of a thread")
async def storage_of_thread(t):
    """No method of the SDK has it."""
    client = connect()
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "agent", input=say("Hello"))
    await client.runs.join(thread_id, run["run_id"])
    storage = await client.http.get(f"/threads/{thread_id}/storage")
    t.equal([storage["thread_id"], storage["checkpoints"]["count"], sorted(storage)],
            [thread_id, 3, ["channel_values", "checkpoints", "pending_writes", "thread_id", "total_bytes"]],
            "storage has its members")
    t.ok(storage["channel_values"]["by_channel"]["messages"]["bytes"] > 0, "storage has the bytes of each channel", storage)
    await t.raises(NotFoundError, client.http.get(f"/threads/{UNKNOWN}/storage"), "an unknown thread has no storage")


@scenario("state")
async def state(t):
    client = connect()
    thread_id = await new_thread(client)
    t.equal((await client.threads.get_state(thread_id))["next"], [],
            "next of a new thread is empty")
    run = await client.runs.create(thread_id, "agent", input=say("use clock {}"))
    values = await client.runs.join(thread_id, run["run_id"])
    now = await client.threads.get_state(thread_id)
    t.equal(now["values"], values, "the values after a run are the result of join")
    t.equal([message["type"] for message in values["messages"]], ["human", "ai", "tool", "ai"],
            "the values have the messages of the run")
    t.equal([now["next"], now["tasks"], now["metadata"]["run_id"]], [[], [], run["run_id"]],
            "next and tasks are empty after a run")
    t.equal(now["checkpoint"]["checkpoint_id"], now["checkpoint_id"],
            "checkpoint names the checkpoint")
    before = await client.threads.get_state(
        thread_id, checkpoint_id=now["parent_checkpoint"]["checkpoint_id"])
    t.equal([before["next"], len(before["values"]["messages"])], [["agent"], 3],
            "the state at an earlier checkpoint can be read")
    t.equal((await client.threads.get(thread_id))["values"], values,
            "the record of the thread has the values")
    await t.raises(NotFoundError, client.threads.get_state(UNKNOWN),
        "the state of an unknown thread is not found")


@scenario("history")
async def history(t):
    client = connect()
    thread_id = await new_thread(client)
    t.equal(await client.threads.get_history(thread_id), [], "the history of a new thread is empty")
    run = await client.runs.create(thread_id, "agent", input=say("Hello"))
    await client.runs.join(thread_id, run["run_id"])
    states = await client.threads.get_history(thread_id)
    t.equal([state["metadata"]["step"] for state in states], [1, 0, -1],
            "the history has a state for each step, newest first")
    t.equal(states[0], await client.threads.get_state(thread_id), "the first state is that of the thread")
    t.equal(await client.threads.get_history(thread_id, limit=1, before=states[1]["checkpoint_id"]), [states[2]],
            "limit and before select states")
    t.equal(await client.threads.get_history(thread_id, before=states[0]["checkpoint"], metadata={"step": 0}),
            [states[1]], "metadata select states")
    t.equal(await client.threads.get_history(thread_id, checkpoint=states[1]["checkpoint"]), [states[1]],
            "checkpoint selects a state")
    t.equal(await client.threads.get_state(thread_id, checkpoint=states[1]["checkpoint"]), states[1],
            "the state at a checkpoint can be read")


@scenario("supersteps")
async def supersteps(t):
    client = connect()
    source = await new_thread(client)
    run = await client.runs.create(source, "agent", input=say("Hello"))
    await client.runs.join(source, run["run_id"])
    states = list(reversed(await client.threads.get_history(source)))
    start = states[0]["metadata"]["writes"]["__start__"]
    thread = await client.threads.create(graph_id="agent", supersteps=[
        {"updates": [{"values": start, "as_node": "__input__"}]},
        {"updates": [{"values": start, "as_node": "__start__"}]},
        {"updates": [{"values": values, "as_node": node} for node, values in states[2]["metadata"]["writes"].items()]}])
    t.equal([message["content"] for message in thread["values"]["messages"]],
            [message["content"] for message in states[2]["values"]["messages"]],
            "a history is replayed on a new thread")
    t.equal(len(await client.threads.get_history(thread["thread_id"])), 3, "each superstep makes a state")


@scenario("update state")
async def update_state(t):
    client = connect()
    thread_id = await new_thread(client)
    error = await t.raises(BadRequestError, client.threads.update_state(thread_id, {"messages": []}),
                           "a thread without a graph cannot be updated")
    t.equal(error.code, "no_graph", "the error has a code")
    run = await client.runs.create(thread_id, "agent", input=say("Hello"))
    await client.runs.join(thread_id, run["run_id"])
    old = await client.threads.get_state(thread_id)
    made = await client.threads.update_state(thread_id, say("More"), as_node="__start__")
    now = await client.threads.get_state(thread_id)
    t.equal(made["checkpoint"], now["checkpoint"], "update_state returns the new checkpoint")
    t.equal([now["values"]["messages"][-1]["content"], now["next"], now["metadata"]["source"]],
            ["More", ["agent"], "update"], "the message is appended, the agent is next")
    values = await client.runs.wait(thread_id, "agent")
    t.equal([message["type"] for message in values["messages"]], ["human", "ai", "human", "ai"],
            "a run without input continues there")
    await client.threads.update_state(thread_id, None, as_node="agent", checkpoint=old["checkpoint"])
    t.equal((await client.threads.get_state(thread_id))["values"], old["values"],
            "an update may continue an earlier checkpoint")
    await t.raises(UnprocessableEntityError,
                   client.threads.update_state(thread_id, say("x"), as_node="nowhere"),
                   "an unknown node is refused")
    await t.raises(NotFoundError, client.threads.update_state(UNKNOWN, {}),
                   "an unknown thread cannot be updated")
    busy = await client.runs.create(thread_id, "agent", input=say("sleep 600000"))
    await t.raises(ConflictError, client.threads.update_state(thread_id, say("x")),
                   "a busy thread cannot be updated")
    await client.runs.cancel(thread_id, busy["run_id"], wait=True)


@scenario("sync client")
async def sync_client(t):
    client = connect_sync()
    thread_id = client.threads.create()["thread_id"]
    run = client.runs.create(thread_id, "agent", input=say("Hello"))
    values = client.runs.join(thread_id, run["run_id"])
    t.equal(client.threads.get_state(thread_id)["values"], values,
            "join returns the values of the state")
    t.equal(client.runs.get(thread_id, run["run_id"])["status"], "success",
            "the status of a joined run is success")
    parts = list(client.runs.stream(thread_id, "agent", input=say("Hello again")))
    t.equal(parts[-1].data, client.threads.get_state(thread_id)["values"],
            "the last event of a stream has the values of the state")
    client.threads.delete(thread_id)
