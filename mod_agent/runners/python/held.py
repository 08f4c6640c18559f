# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in a run with durability `exit`, and the results of their tasks.

The library shows each step, and saves the last one of each graph when the run ends.
"""

from typing import Any, Mapping

from .checkpoints import configurable_of

Payload = Mapping[str, Any]


class Held:
    def __init__(self) -> None:
        # Namespace -> the checkpoint, the ends of its tasks.
        self._last: dict[str, tuple[Payload, list[Payload]]] = {}

    def show(self, ns: str, payload: Payload) -> None:
        """The checkpoint that a graph shows, in place of its last one."""
        self._last[ns] = (payload, [])

    def drop(self, ns: str) -> None:
        """The graph goes on from a checkpoint that is saved already."""
        self._last.pop(ns, None)

    def last_id(self, ns: str) -> str | None:
        return configurable_of(self._last[ns][0]["config"])["checkpoint_id"] if ns in self._last else None

    def end(self, ns: str, task: Payload) -> bool:
        """The end of a task of the graph in that namespace. False if no checkpoint of it is held."""
        if ns not in self._last:
            return False
        self._last[ns][1].append(task)
        return True

    def take(self) -> list[tuple[str, Payload, list[Payload]]]:
        """The namespace, the checkpoint and the ends of its tasks, of each graph once."""
        found = [(ns, payload, ends) for ns, (payload, ends) in self._last.items()]
        self._last.clear()
        return found
