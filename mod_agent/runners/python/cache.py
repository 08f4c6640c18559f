# SPDX-License-Identifier: Apache-2.0
"""The encoded values that runs used last, so that the next run of a thread need not read them again."""

from collections import OrderedDict

CACHE_BYTES_MAX = 64 << 20

# The library's name of the encoding, and the bytes.
Encoded = tuple[str, bytes]


class Cache:
    """The encoded values that were used last, at most CACHE_BYTES_MAX."""

    def __init__(self, limit: int = CACHE_BYTES_MAX) -> None:
        self._limit = limit
        self._bytes = 0
        self._values: OrderedDict[str, Encoded] = OrderedDict()

    def get(self, digest: str) -> Encoded | None:
        value = self._values.get(digest)
        if value is not None:
            self._values.move_to_end(digest)
        return value

    def add(self, digest: str, value: Encoded) -> None:
        if digest in self._values or len(value[1]) > self._limit // 4:
            return
        self._values[digest] = value
        self._bytes += len(value[1]) + 200
        while self._bytes > self._limit:
            _, (_, data) = self._values.popitem(last=False)
            self._bytes -= len(data) + 200
