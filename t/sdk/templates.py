# SPDX-License-Identifier: Apache-2.0
"""Applications that are laid out as the public templates are: `templates/`."""

from languages import client, each
from tap import say


async def changed(graph, **options):
    return (await client.runs.wait(None, graph, input={"changeme": "mine"}, **options))["changeme"]


@each("a new project")
async def _(t, graph):
    # The name that the public templates give it.
    new = "agent" if graph("new").startswith("python") else graph("new")
    t.equal(await changed(new, context={"tone": "dry"}), "mine, dry, from the shelf", "its context and its environment")
    t.equal(await changed(new, config={"configurable": {"tone": "warm"}}), "mine, warm, from the shelf",
            "its configuration")


@each("a memory agent")
async def _(t, graph):
    user = graph("ann")

    async def answer(text, **options):
        values = await client.runs.wait(None, graph("memory"), input=say(text), **options)
        return values["messages"][-1]["content"]

    t.equal(await answer("remember tea", config={"configurable": {"user_id": user}}), f"{user}: ['tea']", "it remembers")
    t.equal(await answer("remember cups", context={"user_id": user}), f"{user}: ['cups', 'tea']", "for the user of the context too")
    t.ok("tea" not in await answer("what?", config={"configurable": {"user_id": graph("bob")}}), "not for another user")
    t.equal((await answer("what?")).partition(":")[0], "default", "without a user it has its default")
    found = await client.store.search_items(["memories", user])
    t.equal(sorted(item["value"]["content"] for item in found["items"]), ["cups", "tea"], "clients see what it remembers")


@each("a ReAct agent")
async def _(t, graph):
    async def answers(text, **options):
        return (await client.runs.wait(None, graph("react"), input=say(text), **options))["messages"]

    messages = await answers("tea")
    t.equal([message["type"] for message in messages], ["human", "ai", "tool", "ai"], "its model calls a tool, and answers")
    t.ok(messages[-1]["content"].startswith("scripted: You are a helpful assistant. {"), "with the prompt of the template")
    t.ok('"query": "tea"' in messages[-1]["content"] or '"query":"tea"' in messages[-1]["content"], "and the result of the tool")
    prompt = "systemPromptTemplate" if graph("react").startswith("javascript") else "system_prompt"
    for key in ("context", "config"):
        chosen = {"model": "demo/other", prompt: "Be short. {system_time}"}
        last = (await answers("tea", **{key: chosen if key == "context" else {"configurable": chosen}}))[-1]["content"]
        t.ok(last.startswith("other: Be short. {"), f"its model and prompt are those of the {key}")


@each("a graph that a function makes")
async def _(t, graph):
    t.equal(await changed(graph("made"), config={"configurable": {"tenant": "ann"}}), "for ann", "by its configuration")
    t.equal(await changed(graph("made")), "for all", "without a configuration it has its default")


@each("a graph of a context manager", languages=["python"])
async def _(t, graph):
    for tone in ("dry", "warm"):
        t.equal(await changed(graph("managed"), context={"tone": tone}), f"1 open, {tone}, store: True",
                "it lasts as long as the run")
