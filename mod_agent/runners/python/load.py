# SPDX-License-Identifier: Apache-2.0
"""Loads the graphs of an application, for runs and for `--check`."""

from typing import Any, Callable

from . import graphs, report
from .application import Application
from .bridge import Bridge
from .saver import PipeSaver, make_serde
from .store import PipeStore

# The graphs by name, the errors of those that cannot be loaded, and all reports.
Loaded = tuple[dict[str, graphs.Graph], dict[str, graphs.GraphError], dict[str, Any]]


async def load(found: Application, find_records: Callable[..., Any], find_lane: Callable[..., Any], bridge: Bridge) -> Loaded:
    """Makes this process one of the application, and imports its graphs; raises ApplicationError.

    `find_records` and `find_lane` are those of the run whose code uses its checkpointer or its store.
    """
    found.enter()
    saver = PipeSaver(find_records, bridge, make_serde(found.serde))
    loaded, errors = graphs.load(found.graphs, found.directory, saver, PipeStore(find_lane, bridge))
    return loaded, errors, await report.of_all(loaded, errors, found.descriptions)
