# SPDX-License-Identifier: Apache-2.0
"""Breakpoints in a repeated attempt of a run, which does not pass those that no client has approved.

The library takes a graph that goes on from a checkpoint for one that a client continues: it notes the versions of all
channels as seen, and passes the breakpoint before the next nodes. An attempt that follows a lost one goes on in the same
way from a checkpoint that its run has made. So the library reads that one with the version of a channel which the graph
does not have: it stays unseen, and the library stops where it would have stopped in the lost attempt.

A breakpoint after nodes is one that the library looks for at the end of their step only. Here the root graph stops
before the nodes that follow, and a subgraph is interrupted when the library reads its checkpoint.

Which breakpoints the graph has that a function calls is not known. Where nothing follows its checkpoint, the library reads
the one before it, with the results of the nodes: it ends their step once more, and stops by itself or goes on.

A subgraph that keeps its state has a checkpoint from each call before. In a repeated attempt the library would continue
there in place of beginning anew, and return what the earlier call has returned.
"""

from typing import Any, AsyncIterator, Awaitable, Callable, Iterable, Mapping

from .checkpoints import UPDATE_ID
from .known import Known
from .references import Stored

INTERRUPT, RESUMING, TASKS = "__interrupt__", "__pregel_resuming", "__pregel_tasks"
# In the library's config: the namespaces of a subgraph's callers -> their checkpoints.
CALLERS = "checkpoint_map"
# The tag of nodes that "*" leaves out.
HIDDEN = "langsmith:hidden"
UNSEEN = "__unseen__"
# Writes other than the results of a task.
NO_RESULTS = ("__error__", "__error_source_node__", INTERRUPT, "__resume__")

Read = Callable[[str, str | None], Awaitable[Stored | None]]
Decode = Callable[[Stored, Any], Awaitable[tuple[dict[str, Any], Any]]]
List = Callable[[str | None, str | None, Mapping[str, Any] | None, int | None], AsyncIterator[Stored]]


def plain_form(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint of the library as it is stored: without the version that Breakpoints.form() has added."""
    form = dict(checkpoint)
    if UNSEEN in (form.get("channel_versions") or {}):
        form["channel_versions"] = {name: version for name, version in form["channel_versions"].items() if name != UNSEEN}
    return form


def breakpoints_of(given: Any) -> Any:
    """Breakpoints of a run, "*" or names, as the library compares them with each task: in the same time for any number of them."""
    return frozenset(given) if isinstance(given, list) else given


def meets(graph: Any, breakpoints: Any, names: Iterable[str]) -> bool:
    """Whether one of the nodes is among the breakpoints, "*" or names, of its graph."""
    if breakpoints != "*":
        return any(name in (breakpoints or ()) for name in names)
    return any(HIDDEN not in (getattr(graph.nodes.get(name), "tags", None) or ()) for name in names)


def graph_at(graph: Any, ns: str) -> tuple[Any, bool]:
    """The subgraph of a namespace, or None, and whether it is certain: that the nodes are the graphs themselves. A function may
    call another graph than the one that the library has found in it."""
    is_certain = True
    for part in ns.split("|"):
        node = graph.nodes.get(part.split(":")[0]) if hasattr(graph, "nodes") else None
        graph = next(iter(getattr(node, "subgraphs", None) or ()), None)
        is_certain = is_certain and graph is not None and getattr(node, "bound", None) is graph
    return graph, is_certain


def latest_of(versions: Mapping[str, Any]) -> str:
    """The number of the newest of some versions, without its random part."""
    return max(str(version).split(".", maxsplit=1)[0] for version in versions.values())


class Breakpoints:
    """Of a run: read, decode and list_ are those of its records."""

    def __init__(self, run_id: str, known: Known, read: Read, decode: Decode, list_: List) -> None:
        self._run_id = run_id
        self._known = known
        self._read = read
        self._decode = decode
        self._list = list_
        self._graph: Any = None
        self._start: Stored | None = None
        # The nodes before which the root graph stops, and the run's own after which it does.
        self.before: Any = None
        self.after: Any = None
        # Checkpoints that lost attempts have made and this one has read.
        self._own: set[str] = set()

    async def begin(self, graph: Any, message: Mapping[str, Any], start: Stored | None) -> None:
        """start: the checkpoint from which the run starts."""
        self._graph, self._start = graph, start
        self.before = breakpoints_of(message.get("interrupt_before")) or graph.interrupt_before_nodes
        self.after = breakpoints_of(message.get("interrupt_after"))
        after = self.after or graph.interrupt_after_nodes
        if start is not None and await self._is_after(graph, after, start, graph.checkpointer.serde):
            self.before = list(message["checkpoint"]["next"])

    def _is_open(self, stored: Stored) -> bool:
        """Whether a lost attempt has made the checkpoint, so that a breakpoint there is approved by nobody.

        A run that passes one at a checkpoint that it makes for that (a fork, a command) has stored the versions as seen.
        """
        own, checkpoint = stored.tuple, stored.tuple["checkpoint"]
        if own.get("run_id") != self._run_id or self._known.has_put(own["ns"], own["checkpoint_id"]):
            return False
        seen = (checkpoint.get("versions_seen") or {}).get(INTERRUPT) or {}
        versions = checkpoint.get("channel_versions") or {}
        return any(name not in seen or version > seen[name] for name, version in versions.items())

    def form(self, stored: Stored) -> dict[str, Any]:
        """The checkpoint as the library is to read it."""
        checkpoint = stored.tuple["checkpoint"]
        if not self._is_open(stored):
            return checkpoint
        versions = checkpoint["channel_versions"]
        return {**checkpoint, "channel_versions": {**versions, UNSEEN: max(versions.values())}}

    def stops_at(self, checkpoint_id: str, names: Iterable[str]) -> bool:
        """Whether the library stops before the nodes that follow a root checkpoint, which it shows."""
        is_approved = self._known.was_read("", checkpoint_id) and not (self._start is not None and self._is_open(self._start))
        return not is_approved and meets(self._graph, self.before, names)

    def _begin_anew(self, own: Mapping[str, Any], configurable: dict[str, Any]) -> None:
        """Makes a subgraph begin anew whose checkpoint is of another call, in an attempt that goes on from one of its run."""
        callers = (configurable.get(CALLERS) or {}).items()
        if any(checkpoint_id in self._own for _, checkpoint_id in callers) and not callers <= (own["metadata"].get("parents") or {}).items():
            configurable.pop(RESUMING, None)

    async def check(self, stored: Stored, configurable: dict[str, Any], serde: Any) -> Stored:
        """The library reads a checkpoint, with the `configurable` of the graph that does. Returns the one that it is to have. Raises
        GraphInterrupt where a subgraph has stopped after a node."""
        if stored.tuple.get("run_id") == self._run_id and not self._known.has_put(stored.tuple["ns"], stored.tuple["checkpoint_id"]):
            self._own.add(stored.tuple["checkpoint_id"])
        self._begin_anew(stored.tuple, configurable)
        # A graph that has stopped executes no task.
        if not stored.tuple["ns"] or not configurable.get(RESUMING) or not self._is_open(stored) or stored.writes:
            return stored
        graph, is_certain = graph_at(self._graph, stored.tuple["ns"])
        if not is_certain and (parent := await self._before_end(stored, serde)) is not None:
            return parent
        if await self._is_after(graph, getattr(graph, "interrupt_after_nodes", None), stored, serde):
            from langgraph.errors import GraphInterrupt

            raise GraphInterrupt
        return stored

    async def _before_end(self, stored: Stored, serde: Any) -> Stored | None:
        """The parent of a subgraph's checkpoint, if it has the results of all nodes of the step that has made the checkpoint, and
        no subgraph of the step that follows has a checkpoint."""
        own = stored.tuple
        makers = await self._makers(stored, serde)
        parent = await self._read(own["ns"], own["parent"]) if makers and own["parent"] else None
        ended = {write[0] for write in parent.writes if write[2] not in NO_RESULTS} - {UPDATE_ID} if parent is not None else set()
        if not makers or len(ended) < len(makers):
            return None
        parents = {**(own["metadata"].get("parents") or {}), own["ns"]: own["checkpoint_id"]}
        async for _ in self._list(None, None, {"parents": parents}, 1):
            return None
        return parent

    async def _is_after(self, graph: Any, after: Any, stored: Stored, serde: Any) -> bool:
        return bool(after) and self._is_open(stored) and meets(graph, after, await self._makers(stored, serde))

    async def _makers(self, stored: Stored, serde: Any) -> list[str]:
        """The nodes of the tasks whose step has made a checkpoint: they have seen other versions than at its parent."""
        ns, own = stored.tuple["ns"], stored.tuple
        if own["metadata"].get("source") != "loop":
            return []
        parent = await self._read(ns, own["parent"]) if own["parent"] else None
        before = parent.tuple["checkpoint"]["versions_seen"] if parent is not None else {}
        seen = {name: versions for name, versions in own["checkpoint"]["versions_seen"].items() if versions and name != INTERRUPT}
        changed = {name for name, versions in seen.items() if versions != before.get(name)}
        if parent is None or parent.tuple["metadata"].get("step", 0) + 1 != own["metadata"].get("step"):
            # With durability `exit` the steps between the two are not stored.
            last = max(map(latest_of, seen.values()), default=None)
            return [name for name in changed if latest_of(seen[name]) == last]
        # A task that Send has made sees no version.
        values, _ = await self._decode(parent, serde)
        return [*changed, *(getattr(task, "node", "") for task in values.get(TASKS) or ())]
