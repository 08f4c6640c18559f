# SPDX-License-Identifier: Apache-2.0
"""The state that the API shows: lines `checkpoint` and `task` from what the graph streamed.

Values are sent as differences from the checkpoint before; see `kept` for what counts
as unchanged.
"""

from typing import Any, Mapping

from . import jsontext
from .kept import Kept
from .lane import Lane

# The name under which a state without names is shown.
ROOT = "__root__"


def values_of(payload: Any) -> dict[str, Any]:
    return payload if isinstance(payload, dict) else {} if payload is None else {ROOT: payload}


def namespace_member(ns: str) -> list[tuple[str, bytes]]:
    return [("ns", jsontext.name_of(ns, 2048))] if ns else []


def configurable_of(config: Any) -> dict[str, Any]:
    return (config or {}).get("configurable") or {}


def render_value(value: Any, before: Kept | None) -> tuple[bytes, Kept]:
    """The JSON of a channel's value, by difference from `before`."""
    if before is not None and before.is_unchanged(value):
        return b'{"$same":true}', before
    if type(value) is list:
        keep = before.common(value) if before is not None else 0
        items = jsontext.dumps(value[keep:])
        text = b'{"$list":{"keep":%d,"items":%s}}' % (keep, items) if keep else items
        return text, Kept(value, before if keep else None, keep)
    text = jsontext.dumps(value)
    # It would have a meaning of its own if it had no other member; wrapped it has none.
    if text.startswith((b'{"$list":', b'{"$same":', b'{"$value":')):
        text = b'{"$value":' + text + b"}"
    return text, Kept(value)


class States:
    """The checkpoints of a run; the last one of each namespace."""

    def __init__(self, lane: Lane, head: str | None, head_values: dict[str, Kept]) -> None:
        self._lane = lane
        self._head = head
        self._head_values = head_values
        self._last: dict[str, tuple[str, dict[str, Kept]]] = {}
        self.head = head
        self.next: list[str] | None = None

    def send(self, payload: Mapping[str, Any], ns: str) -> None:
        """`payload` is that of the library's mode `checkpoints`. Raises NotRenderedError, ValueTooLargeError."""
        checkpoint_id = configurable_of(payload["config"])["checkpoint_id"]
        parent = configurable_of(payload.get("parent_config")).get("checkpoint_id")
        known = self._known(ns, parent)
        texts, kept = [], {}
        for name, value in values_of(payload["values"]).items():
            text, kept[name] = render_value(value, known.get(name))
            texts.append((name, text))
        metadata = dict(payload.get("metadata") or {})
        metadata.setdefault("writes", None)
        self._lane.send("checkpoint", [
            *namespace_member(ns), ("checkpoint_id", jsontext.dumps(checkpoint_id)), ("parent", jsontext.dumps(parent)),
            ("values", jsontext.members(texts)), ("next", jsontext.dumps(list(payload["next"]))),
            ("tasks", jsontext.dumps([task_line(task) for task in payload["tasks"]], lenient=True)),
            ("metadata", jsontext.dumps(metadata, lenient=True)), ("opaque", b"null")])
        self._last[ns] = (checkpoint_id, kept)
        if not ns:
            self.head, self.next = checkpoint_id, list(payload["next"])

    def note(self, payload: Mapping[str, Any], ns: str) -> None:
        """The run goes on from this checkpoint, which an earlier run has sent."""
        self._last[ns] = (configurable_of(payload["config"])["checkpoint_id"], {} if ns else self._head_values)
        if not ns:
            self.next = list(payload["next"])

    def _known(self, ns: str, parent: str | None) -> dict[str, Kept]:
        last = self._last.get(ns)
        if last is not None:
            return last[1] if last[0] == parent else {}
        return self._head_values if not ns and parent is not None and parent == self._head else {}

    def last_id(self, ns: str) -> str | None:
        return self._last[ns][0] if ns in self._last else self._head if not ns else None

    def send_task(self, ns: str, checkpoint_id: str, result: Mapping[str, Any]) -> None:
        """`result` is that of the library's mode `tasks`, at the end of a task."""
        form = task_form(result)
        # Unknown here: the members of the checkpoint stay.
        del form["checkpoint"], form["state"]
        self._lane.send("task", [
            *namespace_member(ns), ("checkpoint_id", jsontext.dumps(checkpoint_id)), ("task", jsontext.dumps(form, lenient=True))])


def task_line(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task of a checkpoint."""
    return task_form(task) | {"name": task["name"], "path": list(task.get("path") or ["__pregel_pull", task["name"]])}


def error_text(error: Any) -> str:
    message = jsontext.text_of(error)
    return f"{type(error).__name__}: {message}" if isinstance(error, BaseException) else message


def task_form(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task as the API shows it."""
    error, state = task.get("error"), task.get("state")
    return {
        "id": task["id"],
        "error": None if error is None else error_text(error),
        "interrupts": list(task.get("interrupts") or []),
        "checkpoint": configurable_of(state) or None if isinstance(state, dict) else None,
        "state": None,
        "result": task.get("result"),
    }
