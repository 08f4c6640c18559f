# SPDX-License-Identifier: Apache-2.0
"""Index of a run's checkpoints: read, put, not yet sent; and the callers that wait for a put."""

import asyncio

from .recent import Recent

CHECKPOINTS_MAX = 65536


class Known:
    def __init__(self) -> None:
        # The library streams each soon after its put.
        self._put: Recent[tuple[str, str]] = Recent(CHECKPOINTS_MAX)
        self.has_put_any = False
        self._read: Recent[tuple[str, str]] = Recent(CHECKPOINTS_MAX)
        # Checkpoints of the root graph that were put and not shown yet; the graph's own code may have put them.
        self._unshown: set[str] = set()
        # Callers of wait_for_put(): the checkpoint, and their future.
        self._waiting: list[tuple[str, str, asyncio.Future[None]]] = []
        # Namespaces in which a put has failed: no other put follows there.
        self._failed: set[str] = set()

    def add_read(self, ns: str, checkpoint_id: str) -> None:
        self._read.add((ns, checkpoint_id))

    def add_put(self, ns: str, checkpoint_id: str) -> None:
        self._put.add((ns, checkpoint_id))
        self.has_put_any = True
        if ns == "":
            self._unshown.add(checkpoint_id)
        self._notify()

    def fail_puts(self, ns: str) -> None:
        """A put of the namespace has failed."""
        self._failed.add(ns)
        self._notify()

    def has_put(self, ns: str, checkpoint_id: str) -> bool:
        return (ns, checkpoint_id) in self._put

    def was_read(self, ns: str, checkpoint_id: str) -> bool:
        """Whether the run has read the checkpoint, which an earlier run put."""
        return (ns, checkpoint_id) in self._read and (ns, checkpoint_id) not in self._put

    def unshown(self, until: str | None = None) -> list[str]:
        """The root checkpoints that were put and not shown, in order; only those before `until`."""
        return sorted(name for name in self._unshown if until is None or name < until)

    def note_shown(self, checkpoint_id: str) -> None:
        self._unshown.discard(checkpoint_id)

    def _is_settled(self, ns: str, checkpoint_id: str) -> bool:
        return ns in self._failed or (ns, checkpoint_id) in self._put

    def _notify(self) -> None:
        for ns, checkpoint_id, future in self._waiting:
            if self._is_settled(ns, checkpoint_id) and not future.done():
                future.set_result(None)

    async def wait_for_put(self, ns: str, checkpoint_id: str) -> None:
        """Returns when the checkpoint was put, or when a put of its namespace has failed."""
        if not self._is_settled(ns, checkpoint_id):
            entry = (ns, checkpoint_id, asyncio.get_running_loop().create_future())
            self._waiting.append(entry)
            try:
                await entry[2]
            finally:
                self._waiting.remove(entry)
