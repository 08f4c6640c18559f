# SPDX-License-Identifier: Apache-2.0
"""The graph of large_values.t in Python: `do` of the input names what its node does."""

import asyncio
import operator
from typing import Annotated, Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class Pile(TypedDict, total=False):
    do: str
    parts: Annotated[list[dict[str, str]], operator.add]
    text: str


async def work(state: Pile) -> Any:
    do = state["do"]
    if do == "wait":
        await asyncio.Event().wait()
    if do == "pile" and len(state["parts"]) == 750:
        return {"text": "x" * 6_000_000}
    if do == "pile":
        return {"parts": [{"text": "x" * 20_000} for _ in range(250)]}
    if do == "return too much":
        return {"text": "x" * 9_000_000}
    if do == "write too much":
        get_stream_writer()("x" * 9_000_000)
    return {"parts": [{"text": "one more"}]}


graph = (
    StateGraph(Pile)
    .add_node("work", work)
    .add_edge(START, "work")
    .add_conditional_edges("work", lambda state: END if state["do"] != "pile" or state.get("text") else "work")
    .compile()
)
