# SPDX-License-Identifier: Apache-2.0
"""Which values and which elements of lists a step has left as they were.

The reducers of the library make new lists of the same objects. An element is the
same if it is the same object, its members are, and so are the members of its
dicts and lists: a change deeper in an object that stays in its place is not found.
"""

import operator
from typing import Any

Snapshot = tuple[tuple[Any, ...], tuple[tuple[Any, ...], ...]]


def _parts(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    if kind is dict:
        return tuple(value.values())
    if kind is list:
        return tuple(value)
    fields = getattr(value, "__dict__", None)
    return tuple(fields.values()) if fields else ()


def snapshot(value: Any) -> Snapshot:
    parts = _parts(value)
    return parts, tuple(_parts(part) for part in parts if type(part) in (dict, list))


def _are_same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(map(operator.is_, left, right))


class Kept:
    """A value as it was when it was stored or sent; of a list, each element."""

    __slots__ = ("value", "_snapshots")

    def __init__(self, value: Any, before: "Kept | None" = None, common: int = 0) -> None:
        """The first `common` elements are those of `before`."""
        if type(value) is list:
            old = before._snapshots[:common] if before is not None else []
            self.value = list(value)
            self._snapshots = old + [snapshot(item) for item in value[common:]]
        else:
            self.value = value
            self._snapshots = [snapshot(value)]

    def is_unchanged(self, value: Any) -> bool:
        if type(value) is list:
            return type(self.value) is list and self.common(value) == len(value) == len(self.value)
        return value is self.value and _is_unchanged(value, self._snapshots[0])

    def common(self, value: list[Any]) -> int:
        """The number of elements at the beginning that both lists have."""
        if type(self.value) is not list:
            return 0
        count = 0
        for old, new, saved in zip(self.value, value, self._snapshots):
            if old is not new or not _is_unchanged(new, saved):
                break
            count += 1
        return count


def _is_unchanged(value: Any, saved: Snapshot) -> bool:
    parts, inner = snapshot(value)
    return _are_same(parts, saved[0]) and len(inner) == len(saved[1]) and all(map(_are_same, inner, saved[1]))
