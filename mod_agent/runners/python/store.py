# SPDX-License-Identifier: Apache-2.0
"""The deployment's store: LangGraph's interface on the request `store`.

Each batch is a request of the run whose code makes it, or, where the code has lost that run's
context, as in a ThreadPoolExecutor of its own, of the run that was given the object.
Blocking methods wait for the loop; on the loop itself they are refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Iterable

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, SearchItem, SearchOp

from . import jsontext
from .bridge import Bridge, on_loop
from .output import Output
from .store_ops import PAGE, to_op

OPS_MAX = 1000
# A request's arguments have at most 4 MiB, one value 1 MiB.
BATCH_BYTES = 2 << 20


def item_of(form: dict[str, Any], kind: type[Item], **more: Any) -> Item:
    return kind(namespace=tuple(form["namespace"]), key=form["key"], value=form["value"],
                created_at=datetime.fromisoformat(form["created_at"]),
                updated_at=datetime.fromisoformat(form["updated_at"]), **more)


def result_of(op: Any, form: Any) -> Any:
    if isinstance(op, GetOp):
        return None if form is None else item_of(form, Item)
    if isinstance(op, SearchOp):
        return [item_of(item, SearchItem, score=item.get("score")) for item in form["items"]]
    if isinstance(op, ListNamespacesOp):
        return [tuple(namespace) for namespace in form["namespaces"]]
    return None


class Store(BaseStore):
    supports_ttl = True

    def __init__(self, find: Callable[[Any], Output], bridge: Bridge, run: Any = None) -> None:
        self._find = find
        self._bridge = bridge
        self._run = run

    def of(self, run: Any) -> Store:
        return Store(self._find, self._bridge, run)

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        return self._bridge.call(self.abatch(ops))

    @on_loop
    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        output = self._find(self._run)
        wanted = list(ops)
        results: list[Any] = []
        for group in groups(wanted):
            args = b'{"ops":' + jsontext.array(text for _, text in group) + b"}"
            forms = await _request(output, args)
            results += [result_of(op, form) for (op, _), form in zip(group, forms)]
        for index, op in enumerate(wanted):
            if isinstance(op, (SearchOp, ListNamespacesOp)) and op.limit > PAGE == len(results[index]):
                more = op._replace(limit=op.limit - PAGE, offset=op.offset + PAGE)
                results[index] += (await self.abatch([more]))[0]
        return results


def groups(ops: list[Any]) -> list[list[tuple[Any, bytes]]]:
    """The operations with their text, in requests of legal size; raises ValueError before the first is sent."""
    found: list[list[tuple[Any, bytes]]] = []
    size = 0
    for op in ops:
        text = to_op(op)
        if not found or len(found[-1]) == OPS_MAX or size + len(text) > BATCH_BYTES:
            found.append([])
            size = 0
        found[-1].append((op, text))
        size += len(text) + 1
    return found


async def _request(output: Output, args: bytes) -> list[Any]:
    """The results of all parts, joined."""
    forms: list[Any] = []
    cursor: str | None = None
    while True:
        result, cursor = await output.request("store", args, cursor)
        part = result["results"]
        if forms and part and isinstance(forms[-1], dict) and forms[-1].pop("more", False):
            forms[-1]["items"] += part[0]["items"]
            if part[0].get("more"):
                forms[-1]["more"] = True
            part = part[1:]
        forms += part
        if cursor is None:
            return forms
