# SPDX-License-Identifier: Apache-2.0
"""Assistants, and the schemas and drawings of their graphs."""

from langgraph_sdk.errors import ConflictError, NotFoundError

from tap import UNKNOWN, connect, scenario

AGENT = "fe096781-5601-53d2-b2f6-0d3403f7e9ca"


@scenario("assistants")
async def assistants(t):
    client = connect()
    # The first one follows the start of a runner.
    found = []
    while not found:
        found = await client.assistants.search(graph_id="agent", metadata={"created_by": "system"})
    t.equal([[a["assistant_id"], a["name"], a["version"]] for a in found], [[AGENT, "agent", 1]],
            "search returns the system assistant of a graph")
    t.equal(await client.assistants.get(AGENT), found[0], "get returns the record of search")
    page = await client.assistants.search(limit=1, response_format="object")
    t.equal(len(page["assistants"]), 1, "search returns pages")
    graph = await client.assistants.get_graph(AGENT, xray=True)
    t.equal([node["id"] for node in graph["nodes"]], ["__start__", "agent", "tools", "__end__"],
            "get_graph returns the drawing")
    schemas = await client.assistants.get_schemas("agent")
    t.equal([schemas["graph_id"], schemas["input_schema"]["type"]], ["agent", "object"],
            "get_schemas returns the schemas")
    t.equal(await client.assistants.get_subgraphs(AGENT, recurse=True), {},
            "get_subgraphs returns none")
    await t.raises(NotFoundError, client.assistants.get(UNKNOWN),
                   "an unknown assistant is a NotFoundError")


@scenario("assistants of clients")
async def assistants_of_clients(t):
    client = connect()
    made = await client.assistants.create("agent", name="py", config={"tags": ["one"]}, context={"c": 1},
                                          metadata={"sdk": "py"}, description="d")
    t.equal([made[key] for key in ("graph_id", "name", "version", "config", "context", "metadata", "description")],
            ["agent", "py", 1, {"tags": ["one"]}, {"c": 1}, {"sdk": "py"}, "d"], "create returns the record")
    assistant = made["assistant_id"]
    t.equal(await client.assistants.create("agent", assistant_id=assistant, if_exists="do_nothing"), made,
            "create with if_exists do_nothing returns the existing one")
    await t.raises(ConflictError, client.assistants.create("agent", assistant_id=assistant),
                   "an id that is taken is a ConflictError")
    updated = await client.assistants.update(assistant, metadata={"more": 1}, config={"tags": ["two"]})
    t.equal([updated[key] for key in ("version", "name", "metadata", "config")],
            [2, "py", {"sdk": "py", "more": 1}, {"tags": ["two"]}], "update makes a version")
    versions = await client.assistants.get_versions(assistant)
    t.equal([version["version"] for version in versions], [2, 1], "get_versions lists them")
    latest = await client.assistants.set_latest(assistant, 1)
    t.equal(latest["config"], {"tags": ["one"]}, "set_latest makes one the current one")
    t.equal(await client.assistants.count(metadata={"sdk": "py"}), 1, "count returns a number")
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, assistant, input={"messages": [{"role": "user", "content": "Hello"}]})
    kwargs = run["kwargs"]
    t.equal([kwargs["config"]["tags"], kwargs["context"], kwargs["config"]["metadata"]["sdk"]],
            [["one"], {"c": 1}, "py"], "a run takes the config, the context and the metadata of its assistant")
    values = await client.runs.join(thread, run["run_id"])
    t.equal(values["messages"][0]["content"], "Hello", "and is executed")
    await client.assistants.delete(assistant, delete_threads=True)
    await t.raises(NotFoundError, client.assistants.get(assistant), "delete deletes the assistant")
    await t.raises(NotFoundError, client.threads.get(thread), "delete with delete_threads deletes its threads")
    await t.raises(ConflictError, client.assistants.delete(AGENT), "a system assistant is not deleted")
