# SPDX-License-Identifier: Apache-2.0
"""The tools of the agent."""

from collections.abc import Callable
from typing import Any

from langgraph.runtime import get_runtime
from react_agent.context import Context


async def search(query: str) -> dict[str, Any]:
    """Search for pages about something."""
    runtime = get_runtime(Context)
    return {"query": query, "max_results": runtime.context.max_search_results}


TOOLS: list[Callable[..., Any]] = [search]
