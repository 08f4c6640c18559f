# SPDX-License-Identifier: Apache-2.0
"""Things that were added or found last, where all of a run would be too many: some runs take millions of steps."""

from typing import Generic, Hashable, Iterable, TypeVar

Item = TypeVar("Item", bound=Hashable)


class Recent(Generic[Item]):
    def __init__(self, most: int) -> None:
        """most: items that are kept at least; twice as many at most."""
        self._most = most
        self._newer: set[Item] = set()
        self._older: set[Item] = set()

    def add(self, item: Item) -> None:
        self._newer.add(item)
        if len(self._newer) >= self._most:
            self._older, self._newer = self._newer, set()

    def update(self, items: Iterable[Item]) -> None:
        for item in items:
            self.add(item)

    def __contains__(self, item: Item) -> bool:
        if item in self._newer:
            return True
        is_older = item in self._older
        if is_older:
            self.add(item)
        return is_older
