# SPDX-License-Identifier: Apache-2.0
"""The reports about graphs in `ready`: schemas and drawings."""

import asyncio
import importlib.metadata
import platform
import warnings
from typing import Any, Callable

from . import VERSION, graphs, jsontext, log
from .errors import RunnerError, describe_error
from .text import text_of

# The protocol admits 1 MiB; a drawing or a schema that is larger is left out.
PART_BYTES_MAX = 500_000
# Time limit of all factories together, some of which connect somewhere; the supervisor waits 30 s for `ready`.
USE_SECONDS = 10


def runtime() -> dict[str, Any]:
    try:
        version = importlib.metadata.version("langgraph")
    except importlib.metadata.PackageNotFoundError:
        version = None
    return {"language": "python", "version": platform.python_version(), "library": "langgraph",
            "library_version": version, "runner_version": VERSION}


def _attempt(name: str, what: str, make: Callable[[], Any]) -> Any:
    """None if the graph has none, or if the library cannot say."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = make()
        return value if len(jsontext.dumps(value, lenient=True)) <= PART_BYTES_MAX else None
    except Exception as error:  # pylint: disable=broad-except
        log.write(f"graph {name} has no {what}: {type(error).__name__}: {text_of(error)}")
        return None


def schemas_of(graph: Any, name: str) -> dict[str, Any]:
    def state() -> Any:
        from langgraph.graph.state import CompiledStateGraph

        if isinstance(graph, CompiledStateGraph):
            return graph.builder.state_schema and _schema_of(graph, graph.builder.state_schema)
        return graph.get_output_jsonschema()

    found = {
        "input_schema": _attempt(name, "input schema", graph.get_input_jsonschema),
        "output_schema": _attempt(name, "output schema", graph.get_output_jsonschema),
        "state_schema": _attempt(name, "state schema", state),
        "config_schema": _attempt(name, "config schema", graph.get_config_jsonschema),
        "context_schema": _attempt(name, "context schema", graph.get_context_jsonschema),
    }
    return {key: value for key, value in found.items() if isinstance(value, dict)}


def _schema_of(graph: Any, schema: Any) -> Any:
    from langgraph.graph.state import _get_json_schema

    return _get_json_schema(typ=schema, schemas=graph.builder.schemas, channels=graph.builder.channels,
                            name=graph.get_name("State"))


def drawing_of(drawn: Any) -> dict[str, Any]:
    """The library's drawing in the protocol's format."""
    form = drawn.to_json()
    nodes = [{"id": str(node["id"]), "type": node.get("type"), "data": node.get("data")} for node in form["nodes"]]
    edges = [{"source": str(edge["source"]), "target": str(edge["target"]),
              "conditional": bool(edge.get("conditional", False))} for edge in form["edges"]]
    return {"nodes": nodes, "edges": edges}


async def describe_graph(graph: graphs.Graph, description: str | None) -> dict[str, Any]:
    try:
        async with graph.use(graphs.DESCRIBE, {"configurable": {}}) as used:
            drawing = _attempt(graph.name, "drawing", lambda: drawing_of(used.get_graph()))
            subgraphs = _attempt(graph.name, "list of subgraphs", lambda: any(True for _ in used.get_subgraphs()))
            return {"description": description, "schemas": schemas_of(used, graph.name), "drawing": drawing,
                    "factory": graph.is_factory, "has_subgraphs": subgraphs is not False}
    except (Exception, SystemExit) as error:  # pylint: disable=broad-except
        return _refusal(graph, error)


def _refusal(graph: graphs.Graph, error: BaseException) -> dict[str, Any]:
    described = describe_error(error)
    log.write(f"graph {graph.name} cannot be used: {described['error']}: {described['message']}")
    return {"error": described}


async def describe_all(loaded: dict[str, graphs.Graph], errors: dict[str, RunnerError],
                 descriptions: dict[str, str | None]) -> dict[str, Any]:
    reports = {name: {"error": describe_error(error)} for name, error in errors.items()}
    tasks = {name: asyncio.create_task(describe_graph(graph, descriptions.get(name))) for name, graph in loaded.items()}
    if tasks:
        await asyncio.wait(tasks.values(), timeout=USE_SECONDS)
    for name, task in tasks.items():
        if task.done():
            reports[name] = task.result()
        else:
            # Not awaited: its code may ignore the cancellation.
            task.cancel()
            reports[name] = _refusal(loaded[name], TimeoutError(f"it could not be made within {USE_SECONDS} s"))
    return reports
