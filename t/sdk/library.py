# SPDX-License-Identifier: Apache-2.0
"""The features of the libraries of both languages, through the API: the graphs `features` of `library/`."""

import base64

from languages import client, each, goto_of, modes, notes, stream
from tap import kinds, new_thread, of_kind, say

# --- Streams -------------------------------------------------------------------

@each("streams")
async def _(t, graph):
    wanted = ["values", "updates", "messages-tuple", "custom", "debug", "checkpoints", "tasks", "tools", "lifecycle"]
    parts = await stream(graph("stream"), input=say("Look!"), stream_mode=wanted, stream_subgraphs=True)
    own, below = modes(parts)
    t.equal(own, ["checkpoints", "custom", "debug", "metadata", "tasks", "updates", "values"], "all modes of the graph")
    t.equal(below, ["checkpoints", "custom", "debug", "lifecycle", "messages", "tasks", "tools", "updates", "values"],
            "all modes of its subgraph")
    texts = [part.data[0]["content"] for part in parts
             if part.event.startswith("messages") and part.data[1]["langgraph_node"] == "answer"]
    t.equal("".join(texts), "It is empty.", "tokens of a model in a subgraph")
    t.equal([part.data for part in parts if part.event.startswith("custom")],
            [{"looks at": "the shelf"}, {"counts": 4}], "writers of a tool and of a node")
    t.equal([part.data["event"] for part in parts if part.event.startswith("tools")],
            ["on_tool_start", "on_tool_end"], "the call of a tool")
    t.equal([part.data["event"] for part in parts if part.event.startswith("lifecycle|inner")],
            ["started", "completed"], "the lifecycle of a subgraph")


@each("streams of the graph alone")
async def _(t, graph):
    parts = await stream(graph("stream"), input=say("Look!"), stream_mode=["values", "updates", "custom", "tasks"])
    t.equal(modes(parts)[1], [], "no events of the subgraph")
    t.equal(of_kind(parts, "custom"), [{"counts": 4}], "no writers of the subgraph")
    t.equal([list(update) for update in of_kind(parts, "updates")], [["inner"], ["count"]], "an update for each node")


def message_form(part):
    """An event of the mode `messages`: its name, and the node of metadata or the message."""
    if part.event == "messages/metadata":
        return [part.event, *(one["metadata"]["langgraph_node"] for one in part.data.values())]
    return [part.event, *((one["type"], one["content"]) for one in part.data)]


@each("streams of messages and events")
async def _(t, graph):
    parts = await stream(graph("stream"), input=say("Look!"), stream_mode=["messages", "events"], stream_subgraphs=True)
    growing = ["It", "It ", "It is", "It is ", "It is empty."]
    t.equal([message_form(part) for part in parts if part.event.startswith("messages")], [
        ["messages/metadata", "choose"], ["messages/complete", ("ai", "")],
        ["messages/metadata", "tools"], ["messages/complete", ("tool", "the shelf is empty")],
        ["messages/metadata", "answer"], *(["messages/partial", ("ai", text)] for text in growing),
        ["messages/complete", ("ai", "It is empty.")]], "messages as they come, and complete")
    events = {event["event"] for event in of_kind(parts, "events")}
    t.equal(of_kind(parts, "error"), [], "no error")
    t.ok({"on_chain_start", "on_chat_model_stream", "on_tool_start", "on_tool_end", "on_chain_end"} <= events,
         "events of the model, the tool and the nodes", events)


@each("messages of a subgraph without subgraphs")
async def _(t, graph):
    parts = await stream(graph("stream"), input=say("Look!"), stream_mode=["messages", "messages-tuple"])
    t.equal([message_form(part) for part in parts if part.event.startswith("messages/")], [
        form for message in (("ai", ""), ("tool", "the shelf is empty"), ("ai", "It is empty."))
        for form in (["messages/metadata", "inner"], ["messages/complete", message])], "each is complete at the end of the subgraph's node")
    tuples = [part.data for part in parts if part.event == "messages"]
    t.equal([(message["content"], about["langgraph_node"], about["langgraph_step"]) for message, about in tuples],
            [("", "inner", 1), ("the shelf is empty", "inner", 1), ("It is empty.", "inner", 1)], "and whole as a tuple")


# --- Interrupts, Send, commands --------------------------------------------------

@each("several interrupts")
async def _(t, graph):
    thread_id = await new_thread(client)
    parts = await stream(graph("questions"), thread_id, input={"notes": []}, stream_mode="updates")
    asked = [one for update in of_kind(parts, "updates") for one in update.get("__interrupt__", [])]
    t.equal(sorted(one["value"]["for"] for one in asked), ["blue", "green", "red"], "three branches ask at once")
    thread = await client.threads.get(thread_id)
    t.equal([thread["status"], sum(map(len, thread["interrupts"].values()))], ["interrupted", 3], "the thread has all three")
    some = {one["id"]: "yes" for one in asked if one["value"]["for"] != "green"}
    values = await client.runs.wait(thread_id, graph("questions"), command={"resume": some})
    t.equal([one["value"]["for"] for one in values["__interrupt__"]], ["green"], "the one without an answer asks again")
    rest = {one["id"]: "no" for one in asked if one["value"]["for"] == "green"}
    found = await notes(graph("questions"), thread_id, command={"resume": rest})
    t.equal(sorted(found), ["blue: yes", "green: no", "red: yes"], "each branch gets its answer")
    t.equal((await client.threads.get(thread_id))["status"], "idle", "the thread is idle")


@each("two hundred branches")
async def _(t, graph):
    found = await notes(graph("spread"), input={"n": 200, "notes": []})
    t.equal(found, [n * n for n in range(200)], "their results in order")


@each("commands of nodes")
async def _(t, graph):
    t.equal(await notes(graph("handoff"), input={"notes": []}), ["from the child", "second"],
            "a subgraph goes on in its parent")


@each("a command to the caller")
async def _(t, graph):
    thread_id = await new_thread(client)
    parts = await stream(graph("leave"), thread_id, input={"notes": []}, stream_mode=["updates", "values"])
    command = of_kind(parts, "command")
    t.equal([(one["graph"], one["update"], one["goto"]) for one in command],
            [("__parent__", {"notes": ["from afar"]}, goto_of(graph("leave"), "second"))], "one to the parent of the graph itself is an event")
    runs = await client.runs.list(thread_id)
    t.equal([run["status"] for run in runs], ["success"], "a command to the parent of the root graph ends the run")


@each("commands of clients")
async def _(t, graph):
    thread_id = await new_thread(client)
    t.equal(await notes(graph("steps"), thread_id, input={"notes": []}), ["one", "two"], "a graph's own breakpoint stops a run")
    found = await notes(graph("steps"), thread_id, command={"update": {"notes": ["by a client"]}, "goto": "two"})
    t.equal(found, ["one", "two", "by a client", "three", "two"], "an update, the nodes that were next, and one to go to")
    thread_id = await new_thread(client)
    await notes(graph("spread"), thread_id, input={"n": 1, "notes": []})
    found = await notes(graph("spread"), thread_id, command={
        "goto": [{"node": "square", "input": {"n": 3}}, {"node": "square", "input": {"n": 4}}]})
    t.equal(found, [0, 9, 16], "several Sends")


# --- Retries, caches, limits, errors ---------------------------------------------

@each("retries and caches")
async def _(t, graph):
    first, second, third = [await notes(graph("attempts"), input={"n": n, "notes": []}) for n in (1, 1, 2)]
    t.equal(first, ["attempt 3", "computed 1"], "a node is tried again")
    t.equal(second, ["attempt 3", "computed 1"], "a node's result is cached")
    t.equal(third, ["attempt 3", "computed 2"], "the cached result is for one input only")


@each("limits and errors")
async def _(t, graph):
    thread_id = await new_thread(client)
    parts = await stream(graph("endless"), thread_id, input={"n": 0}, config={"recursion_limit": 7})
    t.equal([error["error"] for error in of_kind(parts, "error")], ["GraphRecursionError"], "the limit of steps")
    state = await client.threads.get_state(thread_id)
    t.equal([state["values"]["n"], state["next"]], [7, ["again"]], "the steps before it are saved")
    thread_id = await new_thread(client)
    parts = await stream(graph("fail"), thread_id, input={"n": 0})
    t.equal(of_kind(parts, "error"), [{"error": "OutOfStockError", "message": "no more cups"}], "an error by its name")
    thread = await client.threads.get(thread_id)
    state = await client.threads.get_state(thread_id)
    t.equal([thread["status"], state["next"], "OutOfStockError" in str(state["tasks"][0]["error"])], ["error", ["sell"], True],
            "the thread has it, and the node")


# --- Context, configuration, durability -------------------------------------------

@each("context")
async def _(t, graph):
    run = {"input": {"notes": []}}
    t.equal(await notes(graph("settings"), **run), ["small", "nobody", None], "a run without a context has the defaults")
    t.equal(await notes(graph("settings"), **run, context={"user_id": "ann"}), ["small", "ann", "ann"],
            "a context, which is in the configuration too")
    t.equal(await notes(graph("settings"), **run, config={"configurable": {"user_id": "bob"}}), ["small", "bob", "bob"],
            "a configuration is the context of a graph that has one")
    t.equal(await notes(graph("strict"), **run, context={"user_id": "ann"}), ["ann"], "a context schema with required members gets them from the context")


@each("a context that cannot be made", languages=["python"])
async def _(t, graph):
    t.equal(await notes(graph("strict"), input={"notes": []}), [None], "without its required members the context is None")


@each("durability")
async def _(t, graph):
    for durability, count in (("async", 4), ("exit", 1)):
        thread_id = await new_thread(client)
        await notes(graph("steps"), thread_id, input={"notes": []}, durability=durability)
        history = await client.threads.get_history(thread_id)
        t.equal([len(history), history[0]["values"]["notes"]], [count, ["one", "two"]], f"{durability}: its checkpoints")
        t.equal(await notes(graph("steps"), thread_id, input=None), ["one", "two", "three"], f"{durability}: a run goes on")


# --- Checkpoints of subgraphs ------------------------------------------------------

async def asked_inside(graph):
    """A thread whose run waits in a subgraph, and the last checkpoint of the subgraph."""
    thread_id = await new_thread(client)
    await client.runs.wait(thread_id, graph, input={"notes": []})
    namespace = "inside"
    if graph.endswith("inherits"):
        namespace = (await client.threads.get_state(thread_id))["tasks"][0]["checkpoint"]["checkpoint_ns"]
    return thread_id, (await client.threads.get_state(thread_id, checkpoint={"checkpoint_ns": namespace}))["checkpoint"]


@each("an edit in a subgraph")
async def _(t, graph):
    for name in ("inherits", "keeps"):
        thread_id, inside = await asked_inside(graph(name))
        before = await client.threads.get_state(thread_id)
        answer = await client.threads.update_state(thread_id, {"notes": ["edited"]}, checkpoint=inside)
        edited, ns = answer["checkpoint"], inside["checkpoint_ns"]
        t.equal([edited["thread_id"], edited["checkpoint_ns"]], [thread_id, ns], f"{name}: the answer names the graph")
        t.equal(edited["checkpoint_map"], {"": before["checkpoint"]["checkpoint_id"], ns: edited["checkpoint_id"]},
                f"{name}: and the checkpoints of those above")
        state = await client.threads.get_state(thread_id, checkpoint={"checkpoint_ns": ns})
        t.equal([state["checkpoint_id"], state["parent_checkpoint_id"], state["metadata"]["source"], state["next"]],
                [edited["checkpoint_id"], inside["checkpoint_id"], "update", ["ask"]], f"{name}: its state is the subgraph's")
        after = await client.threads.get_state(thread_id)
        t.equal([after["checkpoint"], after["next"]], [before["checkpoint"], ["inside"]], f"{name}: that of the thread stays")
        t.equal(await notes(graph(name), thread_id, command={"resume": "this"}),
                ["one", "two", "edited", "this of one two edited", "last"], f"{name}: the run goes on with the edit")


@each("an edit of the last state of a subgraph")
async def _(t, graph):
    thread_id, inside = await asked_inside(graph("inherits"))
    ns = {"checkpoint_ns": inside["checkpoint_ns"]}
    for note in ("first", "second"):
        await client.threads.update_state(thread_id, {"notes": [note]}, checkpoint=ns)
    await client.threads.update_state(thread_id, {"notes": ["instead"]}, as_node="ask", checkpoint=ns)
    t.equal((await client.threads.get_state(thread_id, checkpoint=ns))["next"], [], "an update can take the place of a node")
    t.equal(await notes(graph("inherits"), thread_id, command={"resume": "this"}),
            ["one", "two", "first", "second", "instead", "last"], "each update follows the one before")


@each("back to a checkpoint of a subgraph")
async def _(t, graph):
    thread_id, inside = await asked_inside(graph("keeps"))
    await client.runs.wait(thread_id, graph("keeps"), command={"resume": "this"})
    history = await client.threads.get_history(thread_id, checkpoint={"checkpoint_ns": inside["checkpoint_ns"]})
    start = next(state["checkpoint"] for state in history if state["next"] == ["two"])
    parts = await stream(graph("keeps"), thread_id, input=None, checkpoint=start, stream_mode="updates", stream_subgraphs=True)
    t.equal([node for part in parts for node in part.data if part.event == "updates|inside"], ["two", "__interrupt__"],
            "the nodes after it execute again")
    t.equal(await notes(graph("keeps"), thread_id, command={"resume": "that"}), ["one", "two", "that of one two", "last"],
            "and the run goes on")
    edited = (await client.threads.update_state(thread_id, {"notes": ["edited"]}, checkpoint=start))["checkpoint"]
    run = await client.runs.create(thread_id, graph("keeps"), input=None, checkpoint=edited)
    shown = run["kwargs"]["config"]["configurable"]
    t.equal({name: shown[name] for name in edited}, edited, "the record shows where the run starts")
    await client.runs.join(thread_id, run["run_id"])
    t.equal(await notes(graph("keeps"), thread_id, command={"resume": "that"}),
            ["one", "edited", "two", "that of one edited two", "last"], "a run starts from an edit of it")


# --- Sizes and values --------------------------------------------------------------

@each("eleven levels")
async def _(t, graph):
    thread_id = await new_thread(client)
    await client.runs.wait(thread_id, graph("deep"), input={"n": 1})
    state = await client.threads.get_state(thread_id, subgraphs=True)
    levels = 0
    while state and state["tasks"]:
        levels, last, state = levels + 1, state, state["tasks"][0]["state"]
    t.equal([levels, last["tasks"][0]["interrupts"][0]["value"]], [11, "how many?"], "the state of each is in that above")
    values = await client.runs.wait(thread_id, graph("deep"), command={"resume": 6})
    t.equal(values["n"], 7, "an answer gets to the last")
    drawing = await client.assistants.get_graph(graph("deep"), xray=True)
    if graph("deep").startswith("python"):  # The library for JavaScript draws no subgraph whose name is that of its parent.
        t.ok(any(node["id"].count(":") == 10 for node in drawing["nodes"]), "the drawing has all", drawing["nodes"])


@each("large and binary values")
async def _(t, graph):
    thread_id = await new_thread(client)
    values = await client.runs.wait(thread_id, graph("values"), input={"notes": []})
    t.equal(len(values["text"]), 6_000_000, "a state of 6 MB")
    t.equal(base64.b64decode(values["data"]), bytes(range(256)), "bytes are shown in base64")
    t.equal(values["notes"], [6_000_000, "40aff2e9"], "the next node gets bytes")


@each("a blocking node")
async def _(t, graph):
    t.equal(sorted(await notes(graph("beside"), input={"notes": []})), ["blocked", "opened"],
            "it ends beside an asynchronous one, for which that of Python waits in its thread")


async def chat(t, graph, turns):
    """Each turn is a run, of which 50 wait at a time. Only the last state is read."""
    thread_id = await new_thread(client)
    for first in range(0, turns, 50):
        for turn in range(first, first + 50):
            run = await client.runs.create(thread_id, graph("chat"), input=say(f"turn {turn}"), multitask_strategy="enqueue")
        await client.runs.join(thread_id, run["run_id"])
    messages = (await client.threads.get_state(thread_id))["values"]["messages"]
    t.equal([message["content"] for message in messages], [text for turn in range(turns) for text in (f"turn {turn}", f"reply to turn {turn}")],
            "the state has all in their order")
    t.equal(len({message["id"] for message in messages}), 2 * turns, "each message has an id of its own")
    t.equal([len(await client.runs.list(thread_id, status=status, limit=1000)) for status in ("error", "pending", "running")], [0, 0, 0],
            "each run has ended well")
    storage = await client.http.get(f"/threads/{thread_id}/storage")
    t.equal(storage["checkpoints"]["count"], 3 * turns, "its storage: three checkpoints of each run")
    t.ok(storage["channel_values"]["by_channel"]["messages"]["bytes"] < 2 * turns * 1000 < storage["total_bytes"] * 100,
         "its storage: that of the messages does not grow with each turn", storage)


@each("a chat of two thousand turns", languages=["python"])
async def _(t, graph):
    await chat(t, graph, 2000)


@each("a chat of three hundred turns", languages=["javascript"])
async def _(t, graph):
    """The same with fewer turns, for the time that the test takes."""
    await chat(t, graph, 300)


@each("supersteps")
async def _(t, graph):
    steps = [[kind, node] for kind, node in (("human", "__input__"), ("human", "__start__"), ("ai", "reply"))]
    thread = await client.threads.create(graph_id=graph("chat"), supersteps=[
        {"updates": [{"values": {"messages": [{"type": kind, "content": kind, "id": kind}]}, "as_node": node}]} for kind, node in steps])
    t.equal([message["content"] for message in thread["values"]["messages"]], ["human", "ai"], "a new thread has their state")
    history = await client.threads.get_history(thread["thread_id"])
    t.equal([(state["metadata"]["source"], state["next"]) for state in history],
            [("update", []), ("update", ["reply"]), ("input", ["__start__"])], "each is a state of the history")
    values = await client.runs.wait(thread["thread_id"], graph("chat"), input=say("more"))
    t.equal([message["content"] for message in values["messages"]], ["human", "ai", "more", "reply to more"], "a run continues it")


@each("history")
async def _(t, graph):
    thread_id = await new_thread(client)
    for tag in ("first", "second"):
        await client.runs.wait(thread_id, graph("spread"), input={"n": 1, "notes": []}, metadata={"tag": tag})
    every = [state["checkpoint"] for state in await client.threads.get_history(thread_id, limit=100)]
    t.equal(len(every), 6, "three states of each run")

    async def found(**options):
        return [state["checkpoint"] for state in await client.threads.get_history(thread_id, **options)]

    t.equal(await found(limit=2), every[:2], "a limit")
    t.equal(await found(before=every[2], limit=100), every[3:], "those before a checkpoint")
    t.equal(await found(before=every[1]["checkpoint_id"], limit=2), every[2:4], "those before its id")
    t.equal(await found(metadata={"source": "input"}, limit=100), [every[2], every[5]], "those with metadata")
    t.equal(await found(metadata={"source": "loop", "step": 1}, limit=100), [every[3]], "with several")


@each("a Send with a timeout")
async def _(t, graph):
    thread_id = await new_thread(client)
    t.equal(await notes(graph("waits"), thread_id, input={"n": 0, "notes": []}), ["waited"], "a node without one")
    timeout = 0.1 if graph("").startswith("python") else 100
    values = await client.runs.wait(thread_id, graph("waits"), raise_error=False, command={
        "goto": [{"node": "wait", "input": {"n": 60}, "timeout": timeout}]})
    t.equal(values["__error__"]["error"], "NodeTimeoutError", "its node ends with the error of the library")


@each("a chat with a long past")
async def _(t, graph):
    thread_id = (await client.threads.create(graph_id=graph("chat")))["thread_id"]
    said = [{"type": kind, "content": f"{kind} {turn}", "id": f"{kind}-{turn}"} for turn in range(2000) for kind in ("human", "ai")]
    await client.threads.update_state(thread_id, {"messages": said}, as_node="reply")
    for turn in range(3):
        parts = await stream(graph("chat"), thread_id, input=say(f"turn {turn}"), stream_mode="updates")
        t.equal(of_kind(parts, "updates")[0]["reply"]["messages"][0]["content"], f"reply to turn {turn}", f"turn {turn}")
    messages = (await client.threads.get_state(thread_id))["values"]["messages"]
    t.equal([len(messages), messages[3999]["id"], messages[-1]["content"]], [4006, "ai-1999", "reply to turn 2"],
            "the messages keep their places and ids")


@each("functional")
async def _(t, graph):
    thread_id = await new_thread(client)
    for number, wanted in ((1, [2, 4, 6, None]), (5, [10, 12, 14, 1])):
        parts = await stream(graph("functional"), thread_id, input=number, stream_mode=["updates", "values"])
        t.equal(of_kind(parts, "values")[-1:], [wanted], f"the result for {number}")
        t.equal((await client.threads.get_state(thread_id))["values"], wanted, f"the state for {number}")
        t.equal(await client.runs.wait(await new_thread(client), graph("functional"), input=number), wanted[:3] + [None],
                f"the result of a wait for {number}")
        t.ok({"double", "functional"} <= {name for update in of_kind(parts, "updates") for name in update},
             f"the updates of its tasks for {number}", kinds(parts))
