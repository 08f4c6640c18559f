# SPDX-License-Identifier: Apache-2.0
"""Features of the library, a graph for each; features.mjs has the same graphs."""

import asyncio
import hashlib
import operator
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from typing_extensions import TypedDict


class Notes(TypedDict, total=False):
    n: int
    notes: Annotated[list[Any], operator.add]


# --- Streams: a model, a tool and a writer in a subgraph -----------------------

class Talk(MessagesState):
    n: int


@tool
async def look(place: str) -> str:
    """Looks at a place."""
    get_stream_writer()({"looks at": place})
    return f"{place} is empty"


async def choose(state: Talk) -> Any:
    call = {"name": "look", "args": {"place": "the shelf"}, "id": "call-1", "type": "tool_call"}
    return {"messages": [AIMessage("", tool_calls=[call], id=f"choice-{len(state['messages'])}")]}


async def answer(state: Talk) -> Any:
    model = GenericFakeChatModel(messages=iter([AIMessage("It is empty.", id=f"answer-{len(state['messages'])}")]))
    return {"messages": [await model.ainvoke(state["messages"])]}


async def count(state: Talk) -> Any:
    get_stream_writer()({"counts": len(state["messages"])})
    return {"n": len(state["messages"])}


inner = (StateGraph(Talk).add_node("choose", choose).add_node("tools", ToolNode([look])).add_node("answer", answer)
         .add_edge(START, "choose").add_edge("choose", "tools").add_edge("tools", "answer").compile())
stream = (StateGraph(Talk).add_node("inner", inner).add_node("count", count)
          .add_edge(START, "inner").add_edge("inner", "count").compile())


# --- Interrupts, Send, commands ------------------------------------------------

def question(name: str) -> Any:
    async def ask(state: Notes) -> Any:
        return {"notes": [f"{name}: {interrupt({'for': name})}"]}

    return ask


questions = (StateGraph(Notes).add_node("red", question("red")).add_node("green", question("green"))
             .add_node("blue", question("blue")).add_edge(START, "red").add_edge(START, "green").add_edge(START, "blue")
             .compile())


async def square(state: Notes) -> Any:
    return {"notes": [state["n"] ** 2]}


spread = (StateGraph(Notes).add_node("square", square)
          .add_conditional_edges(START, lambda state: [Send("square", {"n": n}) for n in range(state["n"])], ["square"])
          .compile())


def to_parent(state: Notes) -> Any:
    return Command(graph=Command.PARENT, goto="second", update={"notes": ["from the child"]})


child = StateGraph(Notes).add_node("to_parent", to_parent).add_edge(START, "to_parent").compile()
handoff = (StateGraph(Notes).add_node("child", child, destinations=("second",))
           .add_node("second", lambda state: {"notes": ["second"]}).add_edge(START, "child").compile())


def out(state: Notes) -> Any:
    """To the parent of a graph that has none here: its caller gets the command."""
    return Command(graph=Command.PARENT, goto="second", update={"notes": ["from afar"]})


leave = StateGraph(Notes).add_node("out", out).add_edge(START, "out").compile()


# --- Retries, caches, limits, errors -------------------------------------------

tried: Counter[str] = Counter()


class OutOfStockError(Exception):
    pass


async def third_time(state: Notes, config: RunnableConfig) -> Any:
    run_id = config["metadata"]["run_id"]
    tried[run_id] += 1
    if tried[run_id] < 3:
        raise OutOfStockError("not yet")
    return {"notes": [f"attempt {tried[run_id]}"]}


async def cached(state: Notes) -> Any:
    tried["cached"] += 1
    return {"notes": [f"computed {tried['cached']}"]}


attempts = (StateGraph(Notes)
            .add_node("third_time", third_time, retry_policy=RetryPolicy(
                initial_interval=0.001, jitter=False, max_attempts=3, retry_on=OutOfStockError))
            .add_node("cached", cached, cache_policy=CachePolicy(key_func=lambda state: str(state["n"])))
            .add_edge(START, "third_time").add_edge("third_time", "cached").compile(cache=InMemoryCache()))

endless = (StateGraph(Notes).add_node("again", lambda state: {"n": state["n"] + 1})
           .add_edge(START, "again").add_edge("again", "again").compile())


async def sell(state: Notes) -> Any:
    raise OutOfStockError("no more cups")


fail = (StateGraph(Notes).add_node("before", lambda state: {"n": 1}).add_node("sell", sell)
        .add_edge(START, "before").add_edge("before", "sell").compile())


# --- Context and configuration -------------------------------------------------

@dataclass
class Settings:
    model: str = "small"
    user_id: str = "nobody"


async def show(state: Notes, runtime: Runtime[Settings], config: RunnableConfig) -> Any:
    return {"notes": [runtime.context.model, runtime.context.user_id, config["configurable"].get("user_id")]}


settings = StateGraph(Notes, context_schema=Settings).add_node("show", show).add_edge(START, "show").compile()


@dataclass
class Required:
    user_id: str


async def show_required(state: Notes, runtime: Runtime[Required]) -> Any:
    return {"notes": [runtime.context and runtime.context.user_id]}


strict = (StateGraph(Notes, context_schema=Required).add_node("show", show_required).add_edge(START, "show").compile())


# --- Sizes and values ----------------------------------------------------------

def ask_below(state: Notes) -> Any:
    return {"n": state["n"] + interrupt("how many?")}


def levels(count: int) -> Any:
    graph: Any = ask_below
    for _ in range(count):
        graph = StateGraph(Notes).add_node("level", graph).add_edge(START, "level").compile()
    return graph


deep = levels(11)


class Values(TypedDict, total=False):
    text: str
    data: bytes
    notes: Annotated[list[Any], operator.add]


async def make(state: Values) -> Any:
    return {"text": "x" * 6_000_000, "data": bytes(range(256))}


async def measure(state: Values) -> Any:
    return {"notes": [len(state["text"]), hashlib.sha256(state["data"]).hexdigest()[:8]]}


values = (StateGraph(Values).add_node("make", make).add_node("measure", measure)
          .add_edge(START, "make").add_edge("make", "measure").compile())

opened: dict[str, threading.Event] = {}


def blocks(state: Notes, config: RunnableConfig) -> Any:
    """Ends when the async node beside it has executed."""
    opened.setdefault(config["metadata"]["run_id"], threading.Event()).wait()
    return {"notes": ["blocked"]}


async def opens(state: Notes, config: RunnableConfig) -> Any:
    opened.setdefault(config["metadata"]["run_id"], threading.Event()).set()
    return {"notes": ["opened"]}


beside = (StateGraph(Notes).add_node("blocks", blocks).add_node("opens", opens)
          .add_edge(START, "blocks").add_edge(START, "opens").compile())


async def wait(state: Notes) -> Any:
    await asyncio.sleep(state["n"])
    return {"notes": ["waited"]}


waits = StateGraph(Notes).add_node("wait", wait).add_edge(START, "wait").compile()


async def reply(state: MessagesState) -> Any:
    return {"messages": [AIMessage(f"reply to {state['messages'][-1].content}")]}


chat = StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply").add_edge("reply", END).compile()


def step(name: str) -> Any:
    return lambda state: {"notes": [name]}


steps = (StateGraph(Notes).add_node("one", step("one")).add_node("two", step("two")).add_node("three", step("three"))
         .add_edge(START, "one").add_edge("one", "two").add_edge("two", "three").compile(interrupt_before=["three"]))


# --- Subgraphs that are edited and gone back to ---------------------------------

def ask_last(state: Notes) -> Any:
    return {"notes": [f"{interrupt('which?')} of {' '.join(state['notes'])}"]}


def around(checkpointer: bool | None) -> Any:
    """A graph whose subgraph asks after two steps: with the checkpoints of its parent, or with a history of its own."""
    inside = (StateGraph(Notes).add_node("one", step("one")).add_node("two", step("two")).add_node("ask", ask_last)
              .add_edge(START, "one").add_edge("one", "two").add_edge("two", "ask").compile(checkpointer=checkpointer))
    return (StateGraph(Notes).add_node("inside", inside).add_node("last", step("last"))
            .add_edge(START, "inside").add_edge("inside", "last").compile())


inherits = around(None)
keeps = around(True)


# --- The functional API ----------------------------------------------------------

@task
async def double(n: int) -> int:
    return n * 2


@entrypoint()
async def functional(n: int, *, previous: int | None = None) -> Any:
    doubled = [double(n + more) for more in range(3)]
    return entrypoint.final(value=[await one for one in doubled] + [previous], save=n)
