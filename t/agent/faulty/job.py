# SPDX-License-Identifier: Apache-2.0
"""The state of the graphs of this folder in Python; job.mjs has the same one. `do` of the input names what a node does.
Each execution of a node appends its name to the file `log`."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypedDict


class Job(TypedDict, total=False):
    do: str
    log: str
    gate: str


def count(state: Mapping[str, Any], name: str) -> int:
    """Notes an execution; returns how many there were."""
    with open(state["log"], "a+") as log:
        log.write(f"{name}\n")
        log.flush()
        log.seek(0)
        return log.read().split().count(name)


def read_gate(path: str) -> None:
    """Returns when the test has opened the pipe."""
    with open(path, "rb") as gate:
        gate.read()
