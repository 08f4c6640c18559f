# SPDX-License-Identifier: Apache-2.0
"""`strict_resume`: the library refuses a resume that answers no interrupt which waits, before it writes anything."""

import importlib.metadata
from typing import Any, Mapping

from .errors import StrictResumeError

# Its name in `configurable`; older versions ignore it.
KEY = "__pregel_strict_resume"


def strictness(message: Mapping[str, Any]) -> dict[str, Any]:
    """The member, if the run is to be strict; without a resume there is nothing to check."""
    if not message.get("strict_resume") or (message.get("command") or {}).get("resume") is None:
        return {}
    from langgraph import errors

    if not hasattr(errors, "UnknownInterruptError"):
        raise StrictResumeError(f"langgraph {importlib.metadata.version('langgraph')} of the application does not know "
                                "strict_resume: install a newer version, or leave it out")
    return {KEY: True}
