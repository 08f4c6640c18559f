# SPDX-License-Identifier: Apache-2.0
"""A graph that uses the store: it returns the items that are there, then puts those of its input."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp


class State(TypedDict, total=False):
    key: str
    size: int
    seen: dict[str, Any]


async def note_options(store: BaseStore, seen: dict[str, Any]) -> None:
    """Options of the library that its own stores accept without an index, and conditions of one kind."""
    await store.aput(("options", "python", "a"), "k", {"n": 0}, index=["text"])
    seen["queried"] = len(await store.asearch(("options",), query="anything"))

    async def listed(*conditions: tuple[str, tuple[str, ...]]) -> list[Any]:
        op = ListNamespacesOp(match_conditions=tuple(MatchCondition(*condition) for condition in conditions))
        return [list(one) for one in (await store.abatch([op]))[0]]

    seen["both"] = await listed(("prefix", ("options", "*")), ("prefix", ("*", "python")), ("suffix", ("a",)), ("suffix", ("python", "*")))
    seen["neither"] = await listed(("prefix", ("options",)), ("prefix", ("notes",)))
    try:
        await store.abatch([GetOp(("a",) * 33, "k")])
    except InvalidNamespaceError as error:
        seen["refused"] = str(error)


async def remember(state: State, *, store: BaseStore) -> State:
    namespace = ("notes", "python")
    item = await store.aget(namespace, state["key"])
    found = await store.asearch(("notes",), filter={"n": {"$gte": 1}}, limit=5)
    seen = {
        "value": item.value["n"] if item else None,
        "found": sorted(one.key for one in found),
        "sizes": [len(one.value.get("text", "")) for one in found],
        "namespaces": [list(one) for one in await store.alist_namespaces(prefix=("notes",))],
    }
    await note_options(store, seen)
    value = {"n": 1, "text": "x" * state["size"]}
    await store.abatch([PutOp(namespace, f"{state['key']}{suffix}", value) for suffix in ("", "-b", "-c")])
    return {"seen": seen}


graph = StateGraph(State).add_node("remember", remember).add_edge(START, "remember").add_edge("remember", END).compile()
