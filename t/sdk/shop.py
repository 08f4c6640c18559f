# SPDX-License-Identifier: Apache-2.0
"""The example applications: tools, tokens, an approval, breakpoints, updates of the
state. The graph `shop` is the same in both languages."""

import asyncio

from tap import collect, connect, new_thread, of_kind, say, scenario

client = connect()


def types(values):
    return [message["type"] for message in values["messages"]]


def last(values):
    return values["messages"][-1]["content"]


def identities(values):
    return [message["id"] for message in values["messages"]]


async def ask(thread_id, text, **options):
    return await client.runs.wait(thread_id, "shop", input=say(text), **options)


async def answer(thread_id, text):
    return await client.runs.wait(thread_id, "shop", command={"resume": text})


async def status_of(thread_id):
    return (await client.threads.get(thread_id))["status"]


@scenario("shop: tools")
async def _(t):
    values = await ask(await new_thread(client), "price of a kettle")
    t.equal(types(values), ["human", "ai", "tool", "ai"],
            "a run has the messages of the model and its tool")
    t.equal(last(values), "A kettle is 39 EUR.", "the variables of langgraph.json are set")
    t.equal(values["messages"][1]["tool_calls"][0]["name"], "find_price", "the model calls a tool")
    t.equal(last(await ask(None, "price of a cup")), "A cup is 7 EUR.", "a run needs no thread")


@scenario("shop: turns")
async def _(t):
    thread_id = await new_thread(client)
    first = await ask(thread_id, "price of a kettle")
    second = await ask(thread_id, "price of a cup")
    t.equal(len(second["messages"]), 8, "a second turn continues the thread")
    t.equal(identities(second)[:4], identities(first), "messages keep their ids")
    state = await client.threads.get_state(thread_id)
    t.equal(state["values"], second, "the state is the result of the run")


@scenario("shop: tokens")
async def _(t):
    parts = await collect(client.runs.stream(
        await new_thread(client), "shop", input=say("price of a teapot"),
        stream_mode=["messages-tuple", "updates"]))
    chunks = [message["content"] for message, _ in of_kind(parts, "messages")
              if message["type"].lower().startswith("ai") and message["content"]]
    t.ok(len(chunks) > 1, "a model streams its tokens", chunks)
    t.equal("".join(chunks), "A teapot is 24 EUR.", "the tokens are the answer")
    t.equal([node for update in of_kind(parts, "updates") for node in update],
            ["agent", "tools", "agent"], "each node sends its update")


async def order(t):
    thread_id = await new_thread(client)
    parts = await collect(client.runs.stream(
        thread_id, "shop", input=say("order 2 cups"), stream_mode="updates"))
    interrupt = of_kind(parts, "updates")[-1]["__interrupt__"][0]
    t.equal(interrupt["value"]["question"], "Order 2 x cup for 14 EUR?", "a tool asks")
    return thread_id


@scenario("shop: approval")
async def _(t):
    thread_id = await order(t)
    t.equal(await status_of(thread_id), "interrupted", "the thread waits")
    state = await client.threads.get_state(thread_id)
    t.equal(state["next"], ["tools"], "the state names the node that asks")
    t.equal(state["tasks"][0]["interrupts"][0]["value"]["quantity"], 2, "its task has the question")
    t.equal(last(await answer(thread_id, "yes")), "Ordered 2 x cup for 14 EUR.",
            "the answer resumes the tool")
    t.equal(await status_of(thread_id), "idle", "the thread is idle again")


@scenario("shop: refusal")
async def _(t):
    thread_id = await order(t)
    t.equal(last(await answer(thread_id, "no")), "The order was not approved.",
            "another answer declines")


@scenario("shop: breakpoints")
async def _(t):
    thread_id = await new_thread(client)
    await ask(thread_id, "price of a cup", interrupt_before=["tools"])
    t.equal((await client.threads.get_state(thread_id))["next"], ["tools"],
            "a run stops before a node")
    t.equal(last(await client.runs.wait(thread_id, "shop", input=None)), "A cup is 7 EUR.",
            "a run without input continues it")


@scenario("shop: update")
async def _(t):
    thread_id = await new_thread(client)
    await ask(thread_id, "hello")
    await client.threads.update_state(thread_id, say("price of a cup"), as_node="__start__")
    state = await client.threads.get_state(thread_id)
    t.equal([last(state["values"]), state["next"]], ["price of a cup", ["agent"]],
            "an update is applied by the graph")
    t.equal(last(await client.runs.wait(thread_id, "shop", input=None)), "A cup is 7 EUR.",
            "a run continues from it")


@scenario("shop: assistant")
async def _(t):
    (assistant,) = await client.assistants.search(graph_id="shop")
    t.equal(assistant["description"], "Finds products and orders them, with your approval",
            "it has the description of langgraph.json")
    drawing = await client.assistants.get_graph(assistant["assistant_id"])
    t.equal(sorted(node["id"] for node in drawing["nodes"]),
            ["__end__", "__start__", "agent", "tools"], "its drawing has the nodes")


@scenario("shop: concurrency")
async def _(t):
    threads = [await new_thread(client) for _ in range(20)]
    results = await asyncio.gather(*(
        ask(thread_id, f"order {i + 1} cups") for i, thread_id in enumerate(threads)))
    t.equal([types(values) for values in results], [["human", "ai"]] * 20,
            "twenty runs at once stop at their questions")
    answers = await asyncio.gather(*(answer(thread_id, "yes") for thread_id in threads))
    t.equal([last(values) for values in answers],
            [f"Ordered {i + 1} x cup for {(i + 1) * 7} EUR." for i in range(20)],
            "each has its own answer")
