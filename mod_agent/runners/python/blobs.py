# SPDX-License-Identifier: Apache-2.0
"""Values of the library: encoded, named by their digests, sent and read in parts.

They belong to a run; the cache is that of the process.
"""

import base64
import hashlib
from collections import OrderedDict
from typing import Any, Iterable

from . import jsontext
from .cache import Cache, Encoded
from .errors import NotRenderedError, ValueTooLargeError
from .output import Output
from .recent import Recent
from .references import Reference
from .unchanged import Change, Objects, change_of, is_unchanged, objects_of

# A request names at most 100 digests, a reference 65,536.
REQUEST_DIGESTS = 100
LIST_DIGESTS_MAX = 65_536
PARTS_MAX = 16
# Digests of values that are not sent again; more than those of a few long lists.
DIGESTS_MAX = 262_144
MEMO_VALUES_MAX = 512
# As encoded, and of the objects in them. A larger value is encoded again where the library writes it twice.
MEMO_BYTES_MAX = 4 << 20
OBJECT_BYTES = 16

# Lists of these are one value: a blob for each element would cost more.
_SMALL = (int, float, bool, type(None))


def digest_of(value: Encoded) -> str:
    text = hashlib.sha256(value[0].encode() + b"\n" + value[1]).hexdigest()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


def is_stored_by_element(value: Any) -> bool:
    """Lists of objects and of long texts; the rest is one value."""
    return type(value) is list and 0 < len(value) <= LIST_DIGESTS_MAX and not any(
        isinstance(item, _SMALL) or (isinstance(item, str) and len(item) < 256) for item in value)


class Blobs:
    def __init__(self, output: Output, part_max: int, cache: Cache) -> None:
        self._output = output
        self._part_max = part_max
        self._cache = cache
        # Digests that this run has sent or read.
        self._known: Recent[str] = Recent(DIGESTS_MAX)
        # Recently encoded objects, by id(): a task's writes come again as values of channels.
        self._memo: OrderedDict[int, tuple[Objects, str, int]] = OrderedDict()
        self._memo_bytes = 0

    # --- Writing -------------------------------------------------------------

    def reference(self, value: Any, serde: Any,
                  before: Reference | None = None) -> tuple[bytes, Reference, Change | None]:
        """Sends the blobs that the run has not sent. `before`: of the channel in the parent. The Change is for lists only."""
        if not is_stored_by_element(value):
            digest = self._send_value(value, serde)
            return jsontext.plain(digest), Reference([digest], False, None), None
        change = change_of(value, before.snapshot if before is not None else None)
        keep = change.keep
        fresh = [self._find_sent(item) or self._send_new(item, serde, saved) for item, saved in change.snapshot.elements(keep)]
        digests = before.digests[:keep] + fresh if before is not None and keep else fresh
        text = b'{"list":{"keep":%d,"items":%b}}' % (keep, jsontext.array(map(jsontext.plain, fresh)))
        return text, Reference(digests, True, change.snapshot), change

    def written(self, value: Any, serde: Any) -> bytes:
        """Like the text of reference(), for what a task wrote, which is compared with nothing."""
        if not is_stored_by_element(value):
            return jsontext.plain(self._send_value(value, serde))
        return b'{"list":{"keep":0,"items":%b}}' % jsontext.array([jsontext.plain(self._send_value(item, serde)) for item in value])

    def _send_value(self, value: Any, serde: Any) -> str:
        return self._find_sent(value) or self._send_new(value, serde, objects_of(value))

    def _find_sent(self, value: Any) -> str | None:
        found = self._memo.get(id(value))
        return found[1] if found is not None and is_unchanged(value, found[0]) else None

    def _send_new(self, value: Any, serde: Any, saved: Objects) -> str:
        """saved: the objects of the value, as it is now."""
        try:
            encoded = serde.dumps_typed(value)
        except TypeError as error:
            # Of the same name as what cannot be rendered.
            raise NotRenderedError(str(error)) from error
        digest = digest_of(encoded)
        if digest not in self._known:
            self._send_parts(digest, encoded)
            self._known.add(digest)
            self._cache.add(digest, encoded)
        self._remember(value, saved, digest, len(encoded[1]))
        return digest

    def _remember(self, value: Any, saved: Objects, digest: str, length: int) -> None:
        if (old := self._memo.pop(id(value), None)) is not None:
            self._memo_bytes -= old[2]
        if saved is None:
            return
        cost = length + OBJECT_BYTES * len(saved[0])
        if cost > MEMO_BYTES_MAX:
            return
        # The snapshot holds the object, so that its id() is not reused.
        self._memo[id(value)] = (saved, digest, cost)
        self._memo_bytes += cost
        while len(self._memo) > MEMO_VALUES_MAX or self._memo_bytes > MEMO_BYTES_MAX:
            self._memo_bytes -= self._memo.popitem(last=False)[1][2]

    def _send_parts(self, digest: str, encoded: Encoded) -> None:
        kind, data = encoded
        parts = max(1, -(-len(data) // self._part_max))
        if parts > PARTS_MAX:
            raise ValueTooLargeError(f"a value of the library has {len(data)} bytes, more than {PARTS_MAX * self._part_max}")
        for part in range(parts):
            piece = data[part * self._part_max:(part + 1) * self._part_max]
            members = [("digest", jsontext.plain(digest)), ("value_type", jsontext.dumps(kind)),
                       ("base64", b'"' + base64.b64encode(piece) + b'"')]
            if parts > 1:
                members += [("part", b"%d" % part), ("parts", b"%d" % parts)]
            self._output.send("blob", members)

    # --- Reading -------------------------------------------------------------

    def note(self, digests: Iterable[str]) -> None:
        """The run has read them in a reply: it need not send their values."""
        self._known.update(digests)

    async def load(self, digests: Iterable[str]) -> dict[str, Encoded]:
        """The encoded values; raises RunnerError."""
        values: dict[str, Encoded] = {}
        missing: list[str] = []
        for digest in dict.fromkeys(digests):
            cached = self._cache.get(digest)
            if cached is not None:
                values[digest] = cached
            else:
                missing.append(digest)
        for start in range(0, len(missing), REQUEST_DIGESTS):
            await self._request(missing[start:start + REQUEST_DIGESTS], values)
        return values

    async def _request(self, digests: list[str], values: dict[str, Encoded]) -> None:
        args = jsontext.dumps({"digests": digests})
        cursor: str | None = None
        parts: dict[str, tuple[str, list[bytes]]] = {}
        while True:
            result, cursor = await self._output.request("blob.get", args, cursor)
            for blob in result["blobs"]:
                data = blob["text"].encode() if blob.get("text") is not None else base64.b64decode(blob["base64"])
                parts.setdefault(blob["digest"], (blob["value_type"], []))[1].append(data)
            if cursor is None:
                break
        for digest, (kind, pieces) in parts.items():
            values[digest] = (kind, b"".join(pieces))
            self._cache.add(digest, values[digest])
