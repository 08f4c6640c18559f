# SPDX-License-Identifier: Apache-2.0
"""The working directory, which all runs of the process share: a run that leaves it is undone at its end."""

import functools
import os
from typing import Any, Callable

from . import log

# The one that the application has chosen when its graphs are imported.
_own: str | None = None
# The run that changed it last; None: no run, or none that is known.
_leaver: str | None = None


def enter(path: str) -> None:
    """At the start, before the application is imported."""
    os.chdir(path)
    os.chdir, os.fchdir = _noting(os.chdir), _noting(os.fchdir)


def settle() -> None:
    """When the application is imported: runs begin in this one."""
    global _own
    _own = os.getcwd()


def _noting(change: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(change)
    def changed(*args: Any, **options: Any) -> None:
        global _leaver
        change(*args, **options)
        run = log.current_run.get()
        _leaver = None if run is None else run.run_id

    return changed


def restore(run_id: str, graph_id: str) -> None:
    """At the end of a run. Another one that still executes may be elsewhere."""
    global _leaver
    if _own is None or _leaver not in (None, run_id) or _is_own():
        return
    try:
        os.chdir(_own)
    except OSError as error:
        log.write(f"graph {graph_id} has changed the working directory, and it cannot be restored: {error}")
    else:
        log.write(f"graph {graph_id} has changed the working directory; it is the application's again")
    _leaver = None


def _is_own() -> bool:
    try:
        return os.getcwd() == _own
    except OSError:
        # The other one was deleted.
        return False
