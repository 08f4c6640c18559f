# SPDX-License-Identifier: Apache-2.0
"""A bounded set that keeps the most recently used items, in two generations, for runs of millions of steps."""

from typing import Any, Generic, Hashable, Iterable, TypeVar

# Namespaces whose last values are kept.
NAMESPACES_MAX = 256

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


def keep_newest(of_namespaces: dict[str, Any], ns: str, value: Any) -> None:
    """Stores a namespace's value and evicts others: the least recently stored, never the root's; and with a checkpoint
    of the root those of subgraphs (with colons), since the tasks of the previous step have ended."""
    for ended in [ns] if ns else [name for name in of_namespaces if not name or ":" in name]:
        of_namespaces.pop(ended, None)
    of_namespaces[ns] = value
    if len(of_namespaces) > NAMESPACES_MAX:
        del of_namespaces[next(name for name in of_namespaces if name)]
