# SPDX-License-Identifier: Apache-2.0
"""A single node, as a new project begins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from langgraph.graph import StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict


class Context(TypedDict):
    tone: str


@dataclass
class State:
    changeme: str = "example"


async def call_model(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    return {"changeme": f"{state.changeme}, {(runtime.context or {}).get('tone')}, from {os.environ['PLACE']}"}


graph = (StateGraph(State, context_schema=Context).add_node(call_model).add_edge("__start__", "call_model")
         .compile(name="New Graph"))
