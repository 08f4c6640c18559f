# SPDX-License-Identifier: Apache-2.0
"""RemoteGraph of the library: the graphs of `library/` as nodes of a graph of this process."""

import asyncio
import operator
from typing import Annotated, Any
from uuid import uuid4

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import ParentCommand
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command
from langgraph_sdk.errors import ConflictError
from languages import each, goto_of
from tap import SERVER_URL, begun, connect, say, until
from typing_extensions import TypedDict


class Notes(TypedDict, total=False):
    n: int
    notes: Annotated[list[Any], operator.add]


def parent_of(name, schema=Notes):
    """(a graph with the remote one as a node, the remote graph, a config)"""
    remote = RemoteGraph(name, url=SERVER_URL)
    parent = StateGraph(schema).add_node("remote", remote).add_edge(START, "remote").compile(checkpointer=InMemorySaver())
    return parent, remote, {"configurable": {"thread_id": str(uuid4())}}


async def run_ended(config):
    """RemoteGraph leaves the stream at an interrupt, before its run has ended: until then another one is refused."""
    async def is_over():
        return (await connect().threads.get(config["configurable"]["thread_id"]))["status"] != "busy"

    await until(is_over)


@each("RemoteGraph: streams")
async def _(t, graph):
    parent, _, config = parent_of(graph("stream"), MessagesState)
    parts = [part async for part in parent.astream(
        say("Look!"), config, stream_mode=["updates", "custom", "messages", "values"], subgraphs=True)]
    names = {(tuple(place.split(":")[0] for place in ns), mode) for ns, mode, _ in parts}
    t.ok({((), "updates"), (("remote",), "updates"), (("remote", "inner"), "updates"), (("remote", "inner"), "custom")} <= names,
         "events of the remote graph and its subgraph", names)
    t.equal([data for _, mode, data in parts if mode == "custom"], [{"looks at": "the shelf"}, {"counts": 4}],
            "what they write")
    t.equal(len(parts[-1][2]["messages"]), 4, "the result is in the state")


@each("RemoteGraph: interrupts")
async def _(t, graph):
    parent, remote, config = parent_of(graph("deep"))
    await parent.ainvoke({"n": 1}, config)
    state = await parent.aget_state(config)
    t.equal([state.next, [one.value for one in state.interrupts]], [("remote",), ["how many?"]], "the graph stops at the node")
    state = await remote.aget_state(config, subgraphs=True)
    t.equal([state.next, state.tasks[0].interrupts[0].value], [("level",), "how many?"], "the state of the remote graph has the interrupt")
    await run_ended(config)
    values = await remote.ainvoke(Command(resume=6), config)
    t.equal(values["n"], 7, "an answer resumes it")
    _, remote, config = parent_of(graph("questions"))
    await remote.ainvoke({"notes": []}, config)
    await run_ended(config)
    asked = (await remote.aget_state(config)).interrupts
    values = await remote.ainvoke(Command(resume={one.id: one.value["for"] for one in asked}), config)
    t.equal(sorted(values["notes"]), ["blue: blue", "green: green", "red: red"], "several answers")


@each("RemoteGraph: states")
async def _(t, graph):
    _, remote, config = parent_of(graph("steps"))
    await remote.ainvoke({"notes": []}, config)
    await run_ended(config)
    state = await remote.aget_state(config)
    t.equal([state.values["notes"], state.next], [["one", "two"], ("three",)], "its state at a breakpoint")
    written = await remote.aupdate_state(config, {"notes": ["by hand"]}, as_node="two")
    t.equal(set(written["configurable"]) >= {"thread_id", "checkpoint_id"}, True, "an update gives a checkpoint")
    values = await remote.ainvoke(None, config)
    t.equal(values["notes"], ["one", "two", "by hand", "three"], "a run goes on from it")
    history = [state async for state in remote.aget_state_history(config)]
    t.equal([len(history), history[0].next], [6, ()], "its history")
    past = await remote.aget_state(history[2].config)
    t.equal([past.values["notes"], past.next], [["one", "two"], ("three",)], "an earlier state")
    t.equal(sorted((await remote.aget_graph()).nodes), ["__end__", "__start__", "one", "three", "two"], "its drawing")


@each("RemoteGraph: enqueue")
async def _(t, graph):
    _, remote, config = parent_of(graph("waits"))
    client, thread_id = connect(), config["configurable"]["thread_id"]
    first = await client.runs.create(thread_id, graph("waits"), input={"n": 3600}, if_not_exists="create")
    await begun(client, thread_id, first["run_id"])
    error = await t.raises(ConflictError, remote.ainvoke({"n": 0}, config, multitask_strategy="reject"), "with reject, a busy thread refuses it")
    t.ok("already running" in str(error), "and says why", error)
    waiting = asyncio.create_task(remote.ainvoke({"n": 0}, config, multitask_strategy="enqueue"))

    async def are_two():
        runs = await client.runs.list(thread_id)
        return runs if len(runs) == 2 else None

    second, _ = await until(are_two)
    t.equal([second["multitask_strategy"], second["status"], waiting.done()], ["enqueue", "pending", False], "with enqueue, it waits")
    await client.runs.cancel(thread_id, first["run_id"])
    t.equal((await waiting)["notes"], ["waited"], "and is executed after the one before it")
    t.equal((await client.runs.get(thread_id, first["run_id"]))["status"], "interrupted", "which was cancelled")


@each("RemoteGraph: commands")
async def _(t, graph):
    _, remote, config = parent_of(graph("leave"))
    error = await t.raises(ParentCommand, remote.ainvoke({"notes": []}, config), "a command to the parent is the caller's")
    t.equal([error.args[0].goto, error.args[0].update], [goto_of(graph("leave"), "second"), {"notes": ["from afar"]}],
            "the command has the target and the update of the node")


@each("RemoteGraph: errors")
async def _(t, graph):
    parent, _, config = parent_of(graph("fail"))
    error = await t.raises(RemoteException, parent.ainvoke({"n": 0}, config), "an error is the caller's")
    t.ok("OutOfStockError" in str(error), "the error has the name of the remote one", error)
