# SPDX-License-Identifier: Apache-2.0
"""The working directory and the mask of new files, which all runs of the process share: a run that changes them is undone at its end."""

import functools
import os
from typing import Any, Callable

from . import log

# The one that the application has chosen when its graphs are imported.
_own: str | None = None
# The run that changed it last; None: no run, or none that is known.
_leaver: str | None = None
# The mask, likewise, and the run that changed it.
_own_mask: int | None = None
_masker: str | None = None
_change_mask = os.umask


def enter(path: str) -> None:
    """At the start, before the application is imported."""
    os.chdir(path)
    os.chdir, os.fchdir, os.umask = _noting(os.chdir), _noting(os.fchdir), _note_mask


def settle() -> None:
    """When the application is imported: runs begin in this one."""
    global _own, _own_mask
    _own = os.getcwd()
    # It can be read by a change only.
    _own_mask = _change_mask(0o077)
    _change_mask(_own_mask)


def _noting(change: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(change)
    def changed(*args: Any, **options: Any) -> None:
        global _leaver
        change(*args, **options)
        run = log.current_run.get()
        _leaver = None if run is None else run.run_id

    return changed


@functools.wraps(os.umask)
def _note_mask(mask: int) -> int:
    global _masker
    before = _change_mask(mask)
    run = log.current_run.get()
    _masker = None if run is None else run.run_id
    return before


def _restore_mask(run_id: str, graph_id: str) -> None:
    global _masker
    if _own_mask is not None and _masker in (None, run_id):
        if _change_mask(_own_mask) != _own_mask:
            log.write(f"graph {graph_id} has changed the mask of new files; it is the application's again")
        _masker = None


def restore(run_id: str, graph_id: str) -> None:
    """At the end of a run. Another one that still executes may be elsewhere."""
    global _leaver
    _restore_mask(run_id, graph_id)
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
