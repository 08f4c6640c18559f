# SPDX-License-Identifier: Apache-2.0
"""One call: an operation that only the code of a graph can do (PROTOCOL.md, `call`)."""

import asyncio
from typing import Any, Mapping

from . import graphs, jsontext, log, report
from .cache import Cache
from .checkpoints import check_format, configurable_of
from .errors import RunnerError, UnknownOperationError
from .job import Job, payload_of, to_command
from .output import Output


class Call(Job):
    def __init__(self, message: Mapping[str, Any], output: Output, blob_part: int, cache: Cache, graph: graphs.Graph) -> None:
        super().__init__(message, output, blob_part, cache)
        self._graph = graph

    async def execute(self) -> None:
        status, error, value = "success", None, None
        try:
            self.begin()
            value = await self._perform(self.message["op"], self.message.get("arguments") or {})
        except BaseException as caught:  # pylint: disable=broad-except
            is_cancel = isinstance(caught, asyncio.CancelledError) and self.is_cancelled
            status, error = "interrupted" if is_cancel else "error", caught
            if status == "error":
                log.write_traceback(caught)
        await self.end(status, error, None if value is None else [("value", value)])

    async def _perform(self, op: str, arguments: Mapping[str, Any]) -> bytes | None:
        """The JSON of `end.value`; None for a call without one."""
        access = {"update": graphs.UPDATE, "describe": graphs.DESCRIBE}.get(op)
        if access is None:
            raise UnknownOperationError(f"this runner has no operation {op}")
        config = self.config()
        async with self._graph.use(access, config, self.message.get("context") or None) as graph:
            if op == "update":
                await self._update(graph, config, arguments["supersteps"])
                return None
            return jsontext.dumps(await self._describe(graph, arguments), lenient=True)

    # --- The operations ------------------------------------------------------

    async def _update(self, graph: Any, config: dict[str, Any], supersteps: list[list[Mapping[str, Any]]]) -> None:
        from langgraph.types import StateUpdate

        parent, ns = self.head, self.message.get("ns") or ""
        # The library finds the graph by its namespace.
        config["configurable"]["checkpoint_ns"] = ns
        if parent is not None:
            check_format(self.message["checkpoint"])
            await self.records.find_start(parent, ns)
        for updates in supersteps:
            if parent is not None:
                config["configurable"]["checkpoint_id"] = parent
            step = [StateUpdate(values_to_write(update), update.get("as_node")) for update in updates]
            after = await graph.abulk_update_state(config, [step])
            payload = payload_of(await graph.aget_state(after))
            # The library names the parent of the original as that of a copy.
            payload["parent_config"] = {"configurable": {"checkpoint_id": parent}}
            payload["metadata"] = {**payload["metadata"], "writes": writes_of(updates)}
            self.checkpoints.send(payload, ns)
            parent = configurable_of(after)["checkpoint_id"]

    async def _describe(self, graph: Any, arguments: Mapping[str, Any]) -> Any:
        what = arguments["what"]
        if what == "schemas":
            return report.schemas_of(graph, self._graph.name)
        if what == "graph":
            return report.drawing_of(await graph.aget_graph(xray=arguments.get("xray") or False))
        if what != "subgraphs":
            raise RunnerError("ValueError", f'a graph has no "{what}"')
        namespace, recurse = arguments.get("namespace"), bool(arguments.get("recurse"))
        # By the library itself only one on the path of a single name is found.
        return {ns: report.schemas_of(subgraph, self._graph.name)
                async for ns, subgraph in graph.aget_subgraphs(recurse=recurse or namespace is not None)
                if is_requested(ns, namespace, recurse)}


def writes_of(updates: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """{node: values} of the updates that name their node."""
    return {update["as_node"]: (update.get("command") or {"update": update.get("values")}).get("update")
            for update in updates if update.get("as_node")} or None


def is_requested(ns: str, namespace: str | None, recurse: bool) -> bool:
    return namespace is None or ns == namespace or recurse and ns.startswith(f"{namespace}|")


def values_to_write(update: Mapping[str, Any]) -> Any:
    if update.get("command") is not None:
        return to_command(update["command"])
    values = update.get("values")
    return to_command({"update": values}) if isinstance(values, list) else values
