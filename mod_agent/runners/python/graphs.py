# SPDX-License-Identifier: Apache-2.0
"""Graphs of an application: imported by path, compiled, or made by a factory for each use.

A graph's own checkpointer and store are replaced by the server's.
"""

import contextlib
import copy
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any, AsyncIterator, Callable

from . import log
from .errors import RunnerError
from .text import text_of
from .user import USER

RUN = "threads.create_run"
UPDATE = "threads.update"
DESCRIBE = "assistants.read"


def import_attribute(path: str, directory: str) -> Any:
    """The object that "file.py:name" or "package.module:name" names."""
    place, colon, attribute = path.rpartition(":")
    if not colon or not place:
        raise RunnerError("ValueError", f"{path}: neither FILE:NAME nor MODULE:NAME")
    module = _import_file(directory, place) if _is_file(place) else importlib.import_module(place)
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise RunnerError("AttributeError", f"{place} has no {attribute}") from None


def _is_file(place: str) -> bool:
    return "/" in place or place.endswith(".py")


def _import_file(directory: str, place: str) -> ModuleType:
    """Imports a file; under its dotted name if it is in a package on the path, as the application itself would."""
    file = os.path.normpath(os.path.join(directory, place))
    for name, module in list(sys.modules.items()):
        if name.startswith("agent_graph_") and getattr(module, "__file__", None) == file:
            return module
    if (dotted := _module_name(file)) is not None:
        return importlib.import_module(dotted)
    name = "agent_graph_" + hashlib.sha256(file.encode()).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(name, file)
    if not os.path.isfile(file):
        # Clients see it: not where the application is.
        raise RunnerError("FileNotFoundError", f"there is no file {place}")
    if spec is None or spec.loader is None:
        raise RunnerError("ImportError", f"{place}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_name(file: str) -> str | None:
    """The name by which the application itself would import a file that is in a package."""
    if not os.path.isfile(os.path.join(os.path.dirname(file), "__init__.py")):
        return None
    parts = [os.path.basename(file).removesuffix(".py")]
    folder = os.path.dirname(file)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        parts.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    is_found = folder in sys.path and all(part.isidentifier() for part in parts)
    return ".".join(parts) if is_found else None


class Graph:
    """A graph by name; `use()` gives the object of the library."""

    def __init__(self, name: str, exported: Any = None, saver: Any = None, store: Any = None, error: RunnerError | None = None) -> None:
        """error: of a graph that cannot be used, with which its runs end. Raises RunnerError."""
        self.name = name
        self.error = error
        self._saver = saver
        self._store = store
        self._compiled: Any = None
        self._make: Callable[..., Any] | None = None
        if error is None:
            self._adopt(exported)

    def _adopt(self, exported: Any) -> None:
        from langgraph.graph import StateGraph
        from langgraph.pregel import Pregel

        if isinstance(exported, StateGraph):
            exported = exported.compile()
        if isinstance(exported, Pregel):
            self._compiled = self._equip(exported, self._store)
        elif callable(exported):
            self._make = exported
        else:
            raise RunnerError("TypeError", f"{self.name}: neither a graph nor a function that makes one, but of type {type(exported).__name__}")

    @property
    def is_factory(self) -> bool:
        return self._make is not None

    def _equip(self, graph: Any, store: Any) -> Any:
        from langgraph.graph import StateGraph
        from langgraph.pregel import Pregel

        if isinstance(graph, StateGraph):
            graph = graph.compile()
        if not isinstance(graph, Pregel):
            raise RunnerError("TypeError", f"{self.name} made a {type(graph).__name__}, not a graph")
        return graph.copy({"checkpointer": self._saver, "store": store})

    @contextlib.asynccontextmanager
    async def use(self, access: str, config: dict[str, Any], context: Any = None) -> AsyncIterator[Any]:
        """The graph, for as long as the block lasts."""
        if self.error is not None:
            raise self.error
        store = self._store.of(log.current_run.get())
        if self._make is None:
            graph = copy.copy(self._compiled)
            graph.store = store
            yield graph
            return
        # Watched at start-up only, where it delays other graphs: a timer thread for each run would be too expensive.
        with log.watch(f"the factory of graph {self.name}") if access == DESCRIBE else contextlib.nullcontext():
            made = self._make(**factory_arguments(self._make, access, config, context, store))
        if hasattr(made, "__aenter__"):
            async with made as graph:
                yield self._equip(graph, store)
        elif hasattr(made, "__enter__") and not hasattr(made, "astream"):
            with made as graph:
                yield self._equip(graph, store)
        else:
            yield self._equip(await made if inspect.isawaitable(made) else made, store)


def absent(name: str) -> Graph:
    return Graph(name, error=RunnerError("GraphNotFound", f"the application has no graph {name}"))


def factory_arguments(make: Callable[..., Any], access: str, config: dict[str, Any], context: Any,
                      store: Any) -> dict[str, Any]:
    """`config` and `runtime` for the parameters that take them, by annotation, else by name."""
    try:
        parameters = inspect.signature(make, eval_str=True).parameters
    except (NameError, TypeError, ValueError):
        parameters = inspect.signature(make).parameters
    arguments: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if "ServerRuntime" in str(parameter.annotation) or name == "runtime":
            arguments[name] = make_runtime(access, context, store, config["configurable"].get(USER))
        elif "RunnableConfig" in str(parameter.annotation) or name == "config" or not arguments and \
                parameter.default is parameter.empty:
            arguments[name] = config
    return arguments


def make_runtime(access: str, context: Any, store: Any, user: Any) -> Any:
    # Private names: the public one, ServerRuntime, is a type without a constructor.
    try:
        from langgraph_sdk.runtime import _ExecutionRuntime, _ReadRuntime
    except ImportError:
        raise RunnerError("ImportError", "a factory with a runtime needs a langgraph-sdk that has ServerRuntime") from None
    if access == RUN:
        return _ExecutionRuntime(access_context=access, store=store, context=context, user=user)
    return _ReadRuntime(access_context=access, store=store, user=user)


def context_of(graph: Any, given: Any, config: dict[str, Any]) -> Any:
    """The context of a run: the client's. Without it a graph with a context schema gets one of the schema's
    defaults and the members of `configurable` with its names (older clients); None if the schema requires more."""
    schema = getattr(graph, "context_schema", None)
    if given or schema is None:
        return given
    is_class = hasattr(schema, "model_fields") or hasattr(schema, "__dataclass_fields__")
    names = getattr(schema, "model_fields", None) or getattr(schema, "__dataclass_fields__", None) or getattr(
        schema, "__annotations__", {})
    found = {name: config["configurable"][name] for name in names if name in config["configurable"]}
    try:
        return schema(**found) if is_class else found
    except Exception:  # pylint: disable=broad-except
        return None


def import_graphs(paths: dict[str, str], directory: str, saver: Any, store: Any,
                  importing: Callable[[str | None], None]) -> dict[str, Graph]:
    """All graphs; those that cannot be imported have an error."""
    found: dict[str, Graph] = {}
    for name, path in paths.items():
        importing(name)
        try:
            with log.watch(f"the import of graph {name}"):
                found[name] = Graph(name, import_attribute(path, directory), saver, store)
            continue
        except RunnerError as error:
            reason = error
        except BaseException as error:  # pylint: disable=broad-except
            # Also SystemExit: an application's module must not end the runner.
            reason = RunnerError(type(error).__name__, f"{path}: {text_of(error)}")
            log.write_traceback(error)
        found[name] = Graph(name, error=reason)
        log.write(f"graph {name} cannot be loaded: {reason.name}: {reason}")
    importing(None)
    return found
