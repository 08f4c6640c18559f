# SPDX-License-Identifier: Apache-2.0
"""The graph of histories.t in Python; histories.mjs has the same one. Executed as a program, it does what the lines of
its input ask for with the bare library, and answers each with the states of the thread."""

import asyncio
import json
import operator
import sys
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    n: int
    most: int
    fail: bool


async def plan(state: State) -> Any:
    if state.get("fail"):
        raise ValueError("as the input said")
    return {"log": [{"by": "plan"}], "n": state.get("n", 0) + 1}


def route(state: State) -> Any:
    return [["join"], ["b", "c"], [Send("w", {"i": 1}), Send("w", {"i": 2}), "b"], ["sub", "b"]][state["n"] % 4]


async def b(state: State) -> Any:
    return {"log": [{"by": "b"}]}


async def c(state: State) -> Any:
    return {"log": [{"by": "c", "said": [interrupt("c1"), interrupt("c2")]}]}


async def w(state: Any) -> Any:
    return {"log": [{"by": "w", "said": interrupt("w") if state["i"] == 2 else None}]}


async def join(state: State) -> Any:
    return {"log": [{"by": "join"}]}


def again(state: State) -> str:
    return "plan" if state["n"] < state.get("most", 1) else END


class SubState(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


async def s1(state: SubState) -> Any:
    return {"log": [{"by": "s1", "of": len(state["log"])}]}


async def s2(state: SubState) -> Any:
    return {"log": [{"by": "s2", "said": interrupt("s")}]}


def make(checkpointer: Any = None) -> Any:
    sub = StateGraph(SubState).add_node("s1", s1).add_node("s2", s2).add_edge(START, "s1").add_edge("s1", "s2").compile()
    builder = StateGraph(State)
    for name, node in {"plan": plan, "b": b, "c": c, "w": w, "sub": sub, "join": join}.items():
        builder.add_node(name, node)
    builder.add_edge(START, "plan").add_conditional_edges("plan", route, ["join", "b", "c", "w", "sub"])
    for name in ("b", "c", "w", "sub"):
        builder.add_edge(name, "join")
    return builder.add_conditional_edges("join", again, ["plan", END]).compile(checkpointer=checkpointer)


graph = make()


def command_of(form: Any, ids: dict[str, str]) -> Any:
    resume = form.get("resume")
    if isinstance(resume, dict):
        resume = {ids[question]: answer for question, answer in resume.items()}
    return Command(resume=resume, update=form.get("update"), goto=form.get("goto") or ())


async def perform(bare: Any, request: dict[str, Any]) -> dict[str, Any]:
    config = {"configurable": {"thread_id": request["thread"]}}
    states = [state async for state in bare.aget_state_history(config)][::-1]
    at = config if request.get("at") is None else states[request["at"]].config
    error = None
    try:
        if request["op"] == "update":
            await bare.aupdate_state(at, request["values"], as_node=request["as_node"])
        else:
            before = await bare.aget_state(config)
            ids = {question.value: question.id for task in before.tasks for question in task.interrupts}
            given = command_of(request["command"], ids) if request.get("command") else request["input"]
            await bare.ainvoke(given, at, interrupt_before=request.get("before"), interrupt_after=request.get("after"),
                               durability=request["durability"])
    except Exception as caught:  # pylint: disable=broad-except
        error = type(caught).__name__
    states = [state async for state in bare.aget_state_history(config)][::-1]
    numbers = {state.config["configurable"]["checkpoint_id"]: number for number, state in enumerate(states)}
    now = await bare.aget_state(config)
    return {
        "error": error, "values": now.values, "next": sorted(now.next),
        "questions": [question.value for task in now.tasks for question in task.interrupts],
        "history": [{"values": state.values, "next": sorted(state.next), "source": state.metadata["source"], "step": state.metadata["step"],
                     "parent": numbers.get(((state.parent_config or {}).get("configurable") or {}).get("checkpoint_id"))}
                    for state in states]}


async def serve() -> None:
    bare = make(InMemorySaver())
    for line in sys.stdin:
        try:
            answer = await perform(bare, json.loads(line))
        except InvalidUpdateError:
            # Two commands have written one channel at a checkpoint: the library can no longer read the thread.
            answer = None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(serve())
