# SPDX-License-Identifier: Apache-2.0
"""The reports about graphs in `ready`: schemas and drawings."""

import asyncio
import contextlib
import importlib.metadata
import platform
import sys
import warnings
from typing import Any, Callable, Iterator, TypedDict

from . import VERSION, graphs, jsontext, log
from .errors import NotRenderedError, describe_error
from .text import text_of

# Limit of the schemas together, and of the drawing, of a report, which has at most 1 MiB.
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


@contextlib.contextmanager
def _with_typed_dicts() -> Iterator[None]:
    """Pydantic refuses `typing.TypedDict` before Python 3.12, because such a class does not tell its bases. Its
    keys, also those of its bases, are complete, which is enough for a schema."""
    generator = sys.modules.get("pydantic._internal._generate_schema")
    if getattr(generator, "_SUPPORTS_TYPEDDICT", None) is not False:
        yield
        return
    kind = type(TypedDict("Empty", {}))
    setattr(generator, "_SUPPORTS_TYPEDDICT", True)
    # Where a class has none of its own.
    setattr(kind, "__orig_bases__", (TypedDict,))
    try:
        yield
    finally:
        delattr(kind, "__orig_bases__")
        setattr(generator, "_SUPPORTS_TYPEDDICT", False)


def _attempt(name: str, what: str, make: Callable[[], Any]) -> Any:
    """None if the graph has none, or if the library cannot say."""
    try:
        with warnings.catch_warnings(), _with_typed_dicts():
            warnings.simplefilter("ignore")
            return make()
    except Exception as error:  # pylint: disable=broad-except
        reason = text_of(error).strip().split("\n", 1)[0]
        log.write(f"graph {name} has no {what}: {type(error).__name__}: {reason}")
        return None


def _size_of(name: str, what: str, value: Any, limit: int) -> int | None:
    """The length of a part of a report; None if it is longer than the limit, or no JSON."""
    try:
        size = len(jsontext.dumps(value, lenient=True))
    except NotRenderedError as error:
        log.write(f"graph {name}: its {what} is left out: {text_of(error)}")
        return None
    if size <= limit:
        return size
    log.write(f"graph {name}: its {what} is left out: {size} bytes, more than {limit}")
    return None


def _reported_schemas(graph: Any, name: str) -> dict[str, Any]:
    kept = {}
    left = PART_BYTES_MAX
    for key, value in schemas_of(graph, name).items():
        size = _size_of(name, key, value, left)
        if size is not None:
            kept[key] = value
            left -= size
    return kept


def _reported_drawing(graph: Any, name: str) -> Any:
    drawing = _attempt(name, "drawing", lambda: drawing_of(graph.get_graph()))
    return drawing if _size_of(name, "drawing", drawing, PART_BYTES_MAX) is not None else None


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
    """A factory that fails without the configuration of a client is not an error of the graph."""
    try:
        async with graph.use(graphs.DESCRIBE, {"configurable": {}}) as used:
            subgraphs = _attempt(graph.name, "list of subgraphs", lambda: any(True for _ in used.get_subgraphs()))
            return {"description": description, "schemas": _reported_schemas(used, graph.name),
                    "drawing": _reported_drawing(used, graph.name),
                    "factory": graph.is_factory, "has_subgraphs": subgraphs is not False}
    except Exception as error:  # pylint: disable=broad-except
        if not graph.is_factory:
            return _refusal(graph, error)
        described = describe_error(error)
        log.write(f"graph {graph.name}: its factory fails without a client's configuration: {described['error']}: "
                  f"{described['message']}")
        return {"description": description, "factory": True}
    except BaseException as error:  # pylint: disable=broad-except
        # SystemExit, KeyboardInterrupt, CancelledError: the other graphs are of use without this one.
        return _refusal(graph, error)


async def _wait_until(until: float, tasks: list[asyncio.Task[Any]]) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=max(until - asyncio.get_running_loop().time(), 0))


def _refusal(graph: graphs.Graph, error: BaseException) -> dict[str, Any]:
    described = describe_error(error)
    log.write(f"graph {graph.name} cannot be used: {described['error']}: {described['message']}")
    return {"error": described}


async def _describe_alone(graph: graphs.Graph, description: str | None, importing: Callable[[str | None], None]) -> dict[str, Any]:
    importing(graph.name)
    return await describe_graph(graph, description)


async def describe_all(loaded: dict[str, graphs.Graph], descriptions: dict[str, str | None],
                 importing: Callable[[str | None], None], one_by_one: bool) -> dict[str, Any]:
    """All together, since some wait; one_by_one: the supervisor is to know which one ends or blocks the process."""
    reports = {}
    until = asyncio.get_running_loop().time() + USE_SECONDS
    tasks = {}
    for name, graph in loaded.items():
        if graph.error is not None:
            reports[name] = {"error": describe_error(graph.error)}
            continue
        tasks[name] = asyncio.create_task(_describe_alone(graph, descriptions.get(name), importing))
        if one_by_one:
            await _wait_until(until, [tasks[name]])
    await _wait_until(until, list(tasks.values()))
    importing(None)
    for name, task in tasks.items():
        if task.done():
            reports[name] = task.result()
        else:
            # Not awaited: its code may ignore the cancellation.
            task.cancel()
            reports[name] = _refusal(loaded[name], TimeoutError(f"it could not be made within {USE_SECONDS} s"))
    return reports
