# SPDX-License-Identifier: Apache-2.0
"""Agents of langchain, langgraph and deepagents in both languages: tools, approvals, files, subagents."""

from languages import client, each, stream
from tap import new_thread, of_kind, say


async def ask(graph, thread_id, text):
    return await client.runs.wait(thread_id, graph, input=say(text))


def contents(values):
    return [f"{message['type']}: {message['content']}" for message in values["messages"]]


async def answer(graph, thread_id, *decisions):
    return await client.runs.wait(thread_id, graph, command={"resume": {"decisions": list(decisions)}})


@each("create_agent")
async def _(t, graph):
    thread_id = await new_thread(client)
    values = await ask(graph("agent"), thread_id, 'call find {"name": "cup"}')
    t.equal(contents(values)[2:], ["tool: cup is on shelf 5", "ai: done: cup is on shelf 5"], "it calls a tool")
    values = await ask(graph("agent"), thread_id, 'call find {"name": "pot"}\ncall order {"name": "pot"}')
    request = values["__interrupt__"][0]["value"]
    actions = request.get("action_requests") or request.get("actionRequests")
    t.equal([(one["name"], one["args"]) for one in actions], [("order", {"name": "pot"})], "it asks before one of them")
    state = await client.threads.get_state(thread_id)
    t.equal(len(state["interrupts"]), 1, "the state has the question")
    edited = {"name": "order", "args": {"name": "jug"}}
    values = await answer(graph("agent"), thread_id, {"type": "edit", "edited_action": edited, "editedAction": edited})
    t.ok("jug is ordered" in str(contents(values)[-3:-1]) and "tool: pot is on shelf 5" in contents(values)[-3:-1],
         "an answer may change it", contents(values)[-3:])
    await ask(graph("agent"), thread_id, 'call order {"name": "pan"}')
    values = await answer(graph("agent"), thread_id, {"type": "reject", "message": "not today"})
    t.ok("not today" in str(contents(values)[-2:]), "an answer may reject the call", contents(values)[-2:])


@each("summaries")
async def _(t, graph):
    thread_id = await new_thread(client)
    for turn in range(5):
        values = await ask(graph("brief"), thread_id, f"turn {turn}")
    t.equal(contents(values)[-2:], ["human: turn 4", "ai: done: turn 4"], "the last turn stays")
    t.ok(len(values["messages"]) < 10 and "summary" in contents(values)[0].lower(), "those before are a summary", contents(values))
    state = await client.threads.get_state(thread_id)
    t.equal(state["values"], values, "the state has it")


@each("create_react_agent")
async def _(t, graph):
    parts = await stream(graph("react"), input=say('call find {"name": "cup"}\ncall order {"name": "cup"}'),
                         stream_mode=["updates", "values"])
    t.equal(sorted(contents(of_kind(parts, "values")[-1])[2:]),
            ["ai: done: cup is ordered", "tool: cup is on shelf 5", "tool: cup is ordered"], "two tools at once")
    updates = [list(update)[0] for update in of_kind(parts, "updates")]
    t.equal([updates[0], set(updates[1:-1]), updates[-1]], ["agent", {"tools"}, "agent"], "its updates")


@each("deepagents")
async def _(t, graph):
    thread_id = await new_thread(client)
    values = await ask(graph("deepagent"), thread_id, 'call write_file {"file_path": "/list.txt", "content": "cups"}')
    t.ok("cups" in str(values["files"]["/list.txt"]["content"]), "a file is in the state", values["files"])
    values = await ask(graph("deepagent"), thread_id, 'call read_file {"file_path": "/list.txt"}')
    t.ok("cups" in contents(values)[-2], "the next run reads it", contents(values))
    task = '{"description": "call find {\\"name\\": \\"cup\\"}", "subagent_type": "finder"}'
    parts = await stream(graph("deepagent"), thread_id, input=say(f"call task {task}"), stream_mode=["values", "updates", "lifecycle"],
                         stream_subgraphs=True)
    t.equal(contents(of_kind(parts, "values")[-1])[-1], "ai: done: done: cup is on shelf 5", "a subagent calls its tool")
    t.ok(any(part.event.startswith("updates|tools:") for part in parts), "its updates are streamed")
    values = await ask(graph("deepagent"), thread_id, 'call order {"name": "pot"}')
    t.equal(len(values["__interrupt__"]), 1, "it asks before a tool")
    values = await answer(graph("deepagent"), thread_id, {"type": "approve"})
    t.equal(contents(values)[-1], "ai: done: pot is ordered", "an answer resumes it")
    t.equal(len(values["messages"]), 16, "all messages are there, in a channel of differences")
    state = await client.threads.get_state(thread_id)
    t.equal(state["values"], values, "the state has them")
