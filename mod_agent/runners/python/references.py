# SPDX-License-Identifier: Apache-2.0
"""References to values (PROTOCOL.md, "Records of the library"): the digest of one, or those of the elements of a list.

And a checkpoint with those that it has.
"""

from typing import Any, Iterator, Mapping

from .cache import Encoded
from .unchanged import Snapshot


class Reference:
    """A stored value: its digest, or the digests of a list's elements."""

    __slots__ = ("digests", "is_list", "snapshot")

    def __init__(self, digests: list[str], is_list: bool, snapshot: Snapshot | None) -> None:
        self.digests = digests
        self.is_list = is_list
        self.snapshot = snapshot


def join(before: Any, after: Any) -> Any:
    """A reference and its continuation in a later part."""
    if isinstance(before, dict) and isinstance(after, dict):
        items = before["list"]["items"][:after["list"]["keep"]] + after["list"]["items"]
        return {"list": {"keep": 0, "items": items}}
    return after


def digests_of(reference: Any) -> list[str]:
    if reference is None:
        return []
    return reference["list"]["items"] if isinstance(reference, dict) else [reference]


def decode(reference: Any, encoded: Mapping[str, Encoded], serde: Any) -> Any:
    if reference is None:
        return None
    if isinstance(reference, dict):
        return [serde.loads_typed(encoded[digest]) for digest in reference["list"]["items"]]
    return serde.loads_typed(encoded[reference])


class Stored:
    """A checkpoint as it was read: its parts joined, its values not decoded."""

    def __init__(self, tuple_: dict[str, Any]) -> None:
        self.tuple = tuple_
        self.channels: dict[str, Any] = {}
        self.writes: list[list[Any]] = []
        # Whether the command of the run is stored with it.
        self.has_command = False

    def add(self, part: Mapping[str, Any]) -> None:
        for name, reference in (part.get("channels") or {}).items():
            self.channels[name] = join(self.channels.get(name), reference)
        for write in part.get("writes") or []:
            # The list of a write may continue in the next part.
            if self.writes and self.writes[-1][:3] == write[:3] and isinstance(write[3], dict):
                self.writes[-1][3] = join(self.writes[-1][3], write[3])
            else:
                self.writes.append(list(write))

    def references(self) -> Iterator[Any]:
        yield from self.channels.values()
        yield from (write[3] for write in self.writes)
