# SPDX-License-Identifier: Apache-2.0
"""Loads the graphs of an application, for runs and for `--check`."""

from typing import Any, Callable

from . import graphs, report
from .application import Application
from .bridge import Bridge
from .errors import RunnerError
from .saver import Saver, make_serde
from .store import Store

# The graphs by name, the errors of those that cannot be loaded, and all reports.
Loaded = tuple[dict[str, graphs.Graph], dict[str, RunnerError], dict[str, Any]]


async def load_graphs(found: Application, find_records: Callable[..., Any], find_output: Callable[..., Any], bridge: Bridge) -> Loaded:
    """Makes this process one of the application, and imports its graphs; raises ApplicationError.

    `find_records` and `find_output` are those of the run whose code uses its checkpointer or its store.
    """
    found.enter()
    saver = Saver(find_records, bridge, make_serde(found.serde))
    loaded, errors = graphs.import_graphs(found.graphs, found.directory, saver, Store(find_output, bridge))
    return loaded, errors, await report.describe_all(loaded, errors, found.descriptions)
