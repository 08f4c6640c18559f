# SPDX-License-Identifier: Apache-2.0
"""The state that the API shows: lines `checkpoint` and `task` from what the graph streamed.

Values are sent as differences from the checkpoint before; see unchanged.py for what counts
as unchanged.
"""

from collections import OrderedDict
from typing import Any, Mapping, NamedTuple

from . import jsontext
from .errors import ForeignStateError
from .output import Output
from .recent import keep_newest
from .text import text_of
from .unchanged import Change, Snapshot, change_of

# The format of a checkpoint's records: those of the library for Python.
FORMAT = "python"
FORMAT_TEXT = jsontext.dumps(FORMAT)
# The name under which a state without names is shown.
ROOT = "__root__"
# The id of the task under which the library keeps the writes of a command.
UPDATE_ID = "00000000-0000-0000-0000-000000000000"
# The id of the task as which the state with pending writes is sent.
PENDING_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
# Prefixes of the library's own channels, which a state does not show.
HIDDEN = ("__start__", "__pregel_", "__error__", "__no_writes__", "branch:", "join:")
# Limits of checkpoints that were rendered at their put and not sent yet; beyond them the oldest is rendered again when sent.
CAPTURED_MAX = 256
CAPTURED_BYTES_MAX = 8 << 20


def check_format(checkpoint: Mapping[str, Any]) -> None:
    """Raises ForeignStateError for a checkpoint that a built-in graph or a graph in another language has saved."""
    if checkpoint.get("format") != FORMAT:
        writer = {"javascript": "a graph in JavaScript", None: "a built-in graph"}.get(checkpoint.get("format"), "another runner")
        raise ForeignStateError(f"{writer} has saved the state of the thread, which no graph in Python can continue")


def values_of(payload: Any) -> dict[str, Any]:
    return payload if isinstance(payload, dict) else {} if payload is None else {ROOT: payload}


def namespace_member(ns: str) -> list[tuple[str, bytes]]:
    return [("ns", jsontext.name_of(ns, jsontext.NAMESPACE_BYTES_MAX))] if ns else []


def configurable_of(config: Any) -> dict[str, Any]:
    return (config or {}).get("configurable") or {}


def checkpoint_of(config: Any) -> dict[str, Any] | None:
    """The ids of a config, as the API names a checkpoint; None: it names none."""
    configurable = configurable_of(config)
    if not configurable.get("checkpoint_id"):
        return None
    return {name: configurable.get(name) for name in ("thread_id", "checkpoint_id", "checkpoint_ns")}


SAME = b'{"$same":true}'


def difference(value: Any, before: Snapshot | None, change: Change | None = None) -> tuple[bytes, Snapshot]:
    """The JSON of a channel's value, by difference from `before`; `change` is that of a list, if it is known."""
    if type(value) is list:
        if change is None or change.before is not before:
            change = change_of(value, before)
        if before is not None and change.is_none():
            return SAME, before
        items = jsontext.dumps(value[change.keep:])
        text = b'{"$list":{"keep":%d,"items":%s}}' % (change.keep, items) if change.keep else items
        return text, change.snapshot
    if before is not None and before.is_unchanged(value):
        return SAME, before
    text = jsontext.dumps(value)
    # It could be taken for a difference (PROTOCOL.md, "Values by difference"); wrapped it is a plain value.
    if text.startswith((b'{"$list":', b'{"$same":', b'{"$value":')):
        text = b'{"$value":' + text + b"}"
    return text, Snapshot(value)


class Member(NamedTuple):
    """A channel of a checkpoint, rendered by difference from `before`."""

    value: Any
    before: Snapshot | None
    text: bytes
    snapshot: Snapshot


class Captured(NamedTuple):
    members: dict[str, Member]
    length: int


def capture_members(values: Mapping[str, Any], changes: Mapping[str, Change | None], known: Mapping[str, Snapshot]) -> Captured:
    """A channel without a new version is `$same`, even if a node has mutated its value: the stored one is the old one."""
    members: dict[str, Member] = {}
    for name, value in values.items():
        if not name.startswith(HIDDEN):
            before = known.get(name)
            try:
                rendered = (SAME, before) if before is not None and name not in changes else \
                    difference(value, before, changes.get(name))
                members[name] = Member(value, before, *rendered)
            except Exception:  # pylint: disable=broad-except
                # If the state shows it, send() raises.
                pass
    return Captured(members, sum(len(member.text) for member in members.values()))


class Checkpoints:
    """The checkpoints of a run; the last one of each namespace."""

    def __init__(self, output: Output, head: str | None, head_values: dict[str, Snapshot]) -> None:
        self._output = output
        self._head = head
        self._head_values = head_values
        # Of each namespace the checkpoint that was sent last, and the one that was put last.
        self._last: dict[str, tuple[str, dict[str, Snapshot]]] = {}
        self._newest: dict[str, tuple[str, dict[str, Snapshot]]] = {}
        # The parent of that one: with durability `exit` not the one that the library streams, which it has not put.
        self._parents: dict[str, tuple[str, str | None]] = {}
        # Checkpoints that were put and not sent, by namespace and id.
        self._captured: OrderedDict[tuple[str, str], Captured] = OrderedDict()
        self._captured_bytes = 0
        # Of each namespace the id of the last checkpoint.
        self._ids: dict[str, str] = {}
        # The tasks whose questions or errors were sent.
        self._ended: set[str] = set()
        self.head = head
        # The number of tasks of that checkpoint.
        self.task_count = 0

    def capture(self, ns: str, checkpoint_id: str, parent: str | None, values: Mapping[str, Any],
               changes: Mapping[str, Change | None]) -> None:
        """Renders the changes of a checkpoint at its put.

        The next nodes of a subgraph start before the stream delivers the checkpoint, and may mutate its values.
        """
        newest = self._newest.get(ns)
        found = capture_members(values, changes, newest[1] if newest is not None and newest[0] == parent else self._known(ns, parent))
        keep_newest(self._newest, ns, (checkpoint_id, {name: member.snapshot for name, member in found.members.items()}))
        keep_newest(self._parents, ns, (checkpoint_id, parent))
        self._captured[ns, checkpoint_id] = found
        self._captured_bytes += found.length
        while len(self._captured) > CAPTURED_MAX or self._captured_bytes > CAPTURED_BYTES_MAX:
            self._captured_bytes -= self._captured.popitem(last=False)[1].length

    def _take_captured(self, ns: str, checkpoint_id: str) -> dict[str, Member]:
        found = self._captured.pop((ns, checkpoint_id), None)
        if found is None:
            return {}
        self._captured_bytes -= found.length
        return found.members

    def send(self, payload: Mapping[str, Any], ns: str) -> None:
        """`payload` is that of the library's mode `checkpoints`. Raises NotRenderedError, ValueTooLargeError."""
        checkpoint_id = configurable_of(payload["config"])["checkpoint_id"]
        put_id, parent = self._parents.get(ns, (None, None))
        if put_id != checkpoint_id:
            parent = configurable_of(payload.get("parent_config")).get("checkpoint_id")
        known, captured = self._known(ns, parent), self._take_captured(ns, checkpoint_id)
        texts, snapshot = [], {}
        for name, value in values_of(payload["values"]).items():
            member = captured.get(name)
            if member is not None and member.value is value and member.before in (None, known.get(name)):
                text, snapshot[name] = member.text, member.snapshot
            else:
                text, snapshot[name] = difference(value, known.get(name))
            texts.append((name, text))
        metadata = dict(payload.get("metadata") or {})
        metadata.setdefault("writes", None)
        self._output.send("checkpoint", [
            *namespace_member(ns), ("checkpoint_id", jsontext.dumps(checkpoint_id)), ("parent", jsontext.dumps(parent)),
            ("values", jsontext.members(texts)), ("next", jsontext.dumps(list(payload["next"]))),
            ("tasks", jsontext.dumps([task_line(task) for task in payload["tasks"]], lenient=True)),
            ("metadata", jsontext.dumps(metadata, lenient=True)), ("format", FORMAT_TEXT)])
        self._ids[ns] = checkpoint_id
        keep_newest(self._last, ns, (checkpoint_id, snapshot))
        if not ns:
            self.head, self.task_count = checkpoint_id, len(payload["tasks"])
            # The next checkpoint is compared with this one, not with the head.
            self._head_values.clear()

    def remember(self, payload: Mapping[str, Any], ns: str) -> None:
        """The run goes on from this checkpoint, which an earlier run has sent."""
        self._ids[ns] = configurable_of(payload["config"])["checkpoint_id"]
        keep_newest(self._last, ns, (self._ids[ns], {} if ns else self._head_values))
        if not ns:
            self.head, self.task_count = self._ids[ns], len(payload["tasks"])

    def update_line(self, payload: Mapping[str, Any]) -> list[tuple[str, bytes]] | None:
        """The line `task` that shows what the update of a command has changed in the root checkpoint from which the run goes on.

        The library keeps it as writes to that checkpoint. None: nothing. After remember().
        """
        checkpoint_id = configurable_of(payload["config"])["checkpoint_id"]
        known = self._known("", checkpoint_id)
        texts = [(name, jsontext.dumps(value)) for name, value in values_of(payload["values"]).items()
                 if difference(value, known.get(name))[0] is not SAME]
        return [("checkpoint_id", jsontext.dumps(checkpoint_id)), ("task", jsontext.members(
            [("id", jsontext.dumps(UPDATE_ID)), ("values", jsontext.members(texts))]))] if texts else None

    def send_pending(self, before: Mapping[str, Snapshot], payload: Mapping[str, Any]) -> None:
        """Sends the root checkpoint with the pending writes of its tasks, by difference from its own values `before`."""
        if len(payload["next"]) < self.task_count:
            texts = [(name, difference(value, before.get(name))[0]) for name, value in values_of(payload["values"]).items()]
            self._output.send("task", [("checkpoint_id", jsontext.dumps(self.head)), ("task", jsontext.members(
                [("id", jsontext.dumps(PENDING_ID)), ("values", jsontext.members(texts)), ("next", jsontext.dumps(payload["next"]))]))])

    def send_ends(self, payload: Mapping[str, Any], lost: set[str]) -> None:
        """Sends those tasks of the root's last checkpoint, with pending writes, whose end the library has not streamed: those
        that have asked, in this run or before it, and of those that have ended `lost`, which have ended in a lost attempt. A
        task that has ended with its answer has its question too in old versions."""
        waiting = set(payload["next"])
        for task in payload["tasks"]:
            is_waiting = task["name"] in waiting and task["result"] is None
            if self.head is None or task["error"] is not None or task["id"] in self._ended:
                continue
            if is_waiting and task["interrupts"]:
                self.send_task("", self.head, task)
            elif not is_waiting and task["id"] in lost:
                self.send_task("", self.head, {**task, "interrupts": ()})

    def _known(self, ns: str, parent: str | None) -> dict[str, Snapshot]:
        last = self._last.get(ns)
        if last is not None:
            return last[1] if last[0] == parent else {}
        return self._head_values if not ns and parent is not None and parent == self._head else {}

    def last_id(self, ns: str) -> str | None:
        return self._ids.get(ns, None if ns else self._head)

    def send_task(self, ns: str, checkpoint_id: str, result: Mapping[str, Any]) -> None:
        """`result` is that of the library's mode `tasks`, at the end of a task."""
        form = task_form(result)
        if form["interrupts"] or form["error"] is not None:
            self._ended.add(form["id"])
        # Not known here; the server keeps those of the checkpoint.
        del form["checkpoint"], form["state"]
        self._output.send("task", [
            *namespace_member(ns), ("checkpoint_id", jsontext.dumps(checkpoint_id)), ("task", jsontext.dumps(form, lenient=True))])


def task_line(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task of a checkpoint."""
    return task_form(task) | {"name": task["name"], "path": list(task.get("path") or ["__pregel_pull", task["name"]])}


def error_text(error: Any) -> str:
    message = text_of(error)
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
