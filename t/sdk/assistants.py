# SPDX-License-Identifier: Apache-2.0
"""Assistants, and the schemas and drawings of their graphs."""

from langgraph_sdk.errors import NotFoundError

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
