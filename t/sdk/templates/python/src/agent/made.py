# SPDX-License-Identifier: Apache-2.0
"""Graphs that functions make for each use."""

import contextlib
from typing import Any, AsyncIterator

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph_sdk.runtime import ServerRuntime

from .graph import Context, State

open_now: list[str] = []


def graph_that_says(text: str) -> Any:
    return StateGraph(State, context_schema=Context).add_node(
        "say", lambda state: {"changeme": text}).add_edge("__start__", "say")


def by_config(config: RunnableConfig) -> Any:
    return graph_that_says(f"for {config['configurable'].get('tenant', 'all')}")


@contextlib.asynccontextmanager
async def managed(config: RunnableConfig, runtime: ServerRuntime[Context]) -> AsyncIterator[Any]:
    """Connects for the time of a run only."""
    execution = runtime.execution_runtime
    if execution is None:
        yield graph_that_says(runtime.access_context)
        return
    open_now.append("connection")
    try:
        yield graph_that_says(f"{len(open_now)} open, {execution.context['tone']}, store: {runtime.store is not None}")
    finally:
        open_now.pop()
