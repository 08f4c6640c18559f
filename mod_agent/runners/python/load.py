# SPDX-License-Identifier: Apache-2.0
"""Loads the graphs of an application, for runs and for `--check`."""

from typing import Any, Callable, Mapping

from . import graphs, report
from .application import Application
from .bridge import Bridge
from .errors import RunnerError
from .saver import Saver, make_serde
from .store import Store

# The graphs and their reports, by name.
Loaded = tuple[dict[str, graphs.Graph], dict[str, Any]]


async def load_graphs(found: Application, find_job: Callable[..., Any], find_output: Callable[..., Any], bridge: Bridge,
                      importing: Callable[[str | None], None], failed: Mapping[str, Any] | None) -> Loaded:
    """Makes this process one of the application, and imports its graphs; raises ApplicationError.

    `find_job` and `find_output` are those of the run whose code uses its checkpointer or its store;
    `importing` is called before code of a graph is executed, and with None after it; `failed` is that of `hello`.
    """
    found.enter()
    saver = Saver(find_job, bridge, make_serde(found.serde))
    left = {name: path for name, path in found.graphs.items() if name not in (failed or {})}
    loaded = graphs.import_graphs(left, found.directory, saver, Store(find_output, bridge), importing)
    loaded |= {name: graphs.Graph(name, error=RunnerError(error["error"], error["message"])) for name, error in (failed or {}).items()}
    return loaded, await report.describe_all(loaded, found.descriptions, importing, failed is not None)
