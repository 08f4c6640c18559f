# SPDX-License-Identifier: Apache-2.0
"""Finds the values and the elements of lists that a step left unchanged.

Reducers build new lists from the same objects, and a node may mutate an object at any
depth. So an element is unchanged if it is the same object, and so is every object in
it: comparing them takes a fraction of the time of encoding them.
"""

import datetime
import decimal
import enum
import functools
import operator
import types
from typing import Any, Iterator, NamedTuple

# All objects in a value, itself first; the containers among them; the number of members of each container.
# None: the value cannot be compared, and always counts as changed.
Objects = tuple[list[Any], list[Any], list[int]] | None

# A value of more objects is always encoded.
OBJECTS_MAX = 16_384

_LEAVES = frozenset({
    str, int, float, bool, type(None), bytes, complex, decimal.Decimal, datetime.date, datetime.datetime,
    datetime.time, datetime.timedelta, datetime.timezone, types.EllipsisType})
# Of an element that is not a container.
_LEAF: Objects = ([], [], [])
_SEQUENCES = frozenset({list, tuple, set, frozenset})
_HEAP_TYPE = 1 << 9


@functools.lru_cache(maxsize=4096)
def _slots_of(kind: type) -> tuple[Any, ...] | None:
    """The slots of a class; None if its objects have a state that Python code does not see."""
    bases = kind.__mro__[:-1]
    if any(not base.__flags__ & _HEAP_TYPE or base.__module__ == "collections" for base in bases):
        return None
    return tuple(slot for base in bases for slot in vars(base).values() if type(slot) is types.MemberDescriptorType)


def _add_members(objects: list[Any], value: Any, kind: type) -> bool:
    """Appends the members of a container; False if they are too many, or not visible to Python."""
    if kind is dict:
        objects += value
        objects += value.values()
    elif kind in _SEQUENCES:
        objects += value
    elif not issubclass(kind, (enum.Enum, type)):
        slots = _slots_of(kind)
        fields = getattr(value, "__dict__", None)
        if slots is None or (fields is None and not slots):
            return False
        if fields:
            objects += fields
            objects += fields.values()
        for slot in slots:
            try:
                objects.append(slot.__get__(value))
            except AttributeError:
                objects.append(...)
    return len(objects) <= OBJECTS_MAX


def objects_of(value: Any) -> Objects:
    objects = [value]
    containers: list[Any] = []
    lengths: list[int] = []
    # The list grows while it is read.
    for item in objects:
        kind = type(item)
        if kind not in _LEAVES:
            before = len(objects)
            if not _add_members(objects, item, kind):
                return None
            containers.append(item)
            lengths.append(len(objects) - before)
    return objects, containers, lengths


def is_unchanged(value: Any, saved: Objects) -> bool:
    """Whether a value is as it was when its objects were listed of it."""
    if saved is None or value is not saved[0][0]:
        return False
    # If the known containers have the same members, there are no other containers: leaves need no check.
    objects, (before, containers, lengths) = [value], saved
    for item, length in zip(containers, lengths):
        end = len(objects) + length
        if not _add_members(objects, item, type(item)) or len(objects) != end:
            return False
    return all(map(operator.is_, objects, before))


class Snapshot:
    """A value as it was when it was stored or sent; of a list, each element."""

    __slots__ = ("value", "_objects")

    def __init__(self, value: Any, before: "Snapshot | None" = None, common: int = 0) -> None:
        """The first `common` elements are those of `before`."""
        if type(value) is list:
            old = before._objects[:common] if before is not None else []
            self.value = list(value)
            self._objects = old + [_LEAF if type(item) in _LEAVES else objects_of(item) for item in value[common:]]
        else:
            self.value = value
            self._objects = [objects_of(value)]

    def is_unchanged(self, value: Any) -> bool:
        """Of a value other than a list."""
        return value is self.value and is_unchanged(value, self._objects[0])

    def elements(self, start: int) -> Iterator[tuple[Any, Objects]]:
        """Of a list the elements from `start` on, each with its objects."""
        for item, saved in zip(self.value[start:], self._objects[start:]):
            yield item, objects_of(item) if saved is _LEAF else saved

    def common(self, value: list[Any]) -> int:
        """The length of the common prefix of both lists."""
        if type(self.value) is not list:
            return 0
        count = 0
        for new, old, saved in zip(value, self.value, self._objects):
            if new is not old if saved is _LEAF else not is_unchanged(new, saved):
                break
            count += 1
        return count


class Change(NamedTuple):
    """A list and its predecessor `before`: `keep`, the length of their common prefix; `snapshot`, to compare the next list with."""

    before: Snapshot | None
    keep: int
    snapshot: Snapshot

    def is_none(self) -> bool:
        return self.before is not None and type(self.before.value) is list and \
            self.keep == len(self.snapshot.value) == len(self.before.value)


def change_of(value: list[Any], before: Snapshot | None) -> Change:
    keep = before.common(value) if before is not None else 0
    return Change(before, keep, Snapshot(value, before if keep else None, keep))
