# SPDX-License-Identifier: Apache-2.0
"""The events of a run: what the library streams, in the forms of the protocol's stream modes.

The library is always asked for `checkpoints` and `tasks`, of all subgraphs: they make the
state that the API shows. Only what clients requested becomes an event.
"""

from typing import Any, Iterable, Mapping

from . import jsontext
from .checkpoints import checkpoint_of, configurable_of, task_form, values_of
from .errors import message_of
from .messages import Messages, messages_of
from .metadata import Metadata
from .output import Output
from .tools import ToolEvents

# Modes of the protocol that are modes of the library.
LIBRARY_MODES = {"values", "updates", "checkpoints", "tasks", "debug", "messages", "messages-tuple", "custom", "tools"}


def library_modes(wanted: set[str], has_tools: bool) -> list[str]:
    """The modes to request of the library."""
    modes = {"messages" if mode == "messages-tuple" else mode for mode in wanted & LIBRARY_MODES}
    if not has_tools:
        modes.discard("tools")
    return sorted(modes | {"checkpoints", "tasks"})


INTERRUPT = "__interrupt__"


def send_form(target: Any) -> dict[str, Any]:
    timeout = getattr(target, "timeout", None)
    return {"node": target.node, "arg": target.arg} | ({} if timeout is None else {"timeout": timeout})


class Stream:
    def __init__(self, output: Output, modes: set[str], with_subgraphs: bool, metadata: Metadata) -> None:
        self._output = output
        self._modes = modes
        self._metadata = metadata
        self._with_subgraphs = with_subgraphs
        self._messages = Messages()
        self._tools = ToolEvents()
        # For clients without subgraphs: of each task of the root the messages of its subgraphs, id -> metadata.
        self._below: dict[str, dict[str, Any]] = {}
        # Of the last checkpoint of the root.
        self._step = -1
        # Whether the last checkpoint of the root was sent; `debug` shows it once more.
        self._is_saved = False
        # `values` of the root that wait for their checkpoint, which follows.
        self._values: Any = None
        self._has_values = False
        # The values of the last checkpoint of the root that was sent, and its id.
        self._shown: tuple[str, Mapping[str, Any]] | None = None
        # Namespaces of the subgraphs that have started and not ended, in that order.
        self._subgraphs: dict[str, None] = {}

    def emit(self, name: str, text: bytes | None, members: list[tuple[str, bytes]] | None = None) -> None:
        data = [("data", text)] if text is not None else []
        self._output.send("event", [("event", jsontext.name_of(name, jsontext.EVENT_BYTES_MAX)), *data, *(members or [])])

    def send_error(self, described: Mapping[str, str]) -> None:
        self.emit("error", jsontext.dumps(described))

    def send_command(self, command: Any) -> None:
        """The event `command`, which clients get in any mode: a node's command to the parent of the root graph."""
        goto = command.goto if isinstance(command.goto, (list, tuple)) else [command.goto]
        targets = [send_form(target) if hasattr(target, "node") else target for target in goto]
        self.emit("command", jsontext.dumps({
            "graph": "__parent__", "update": command.update, "resume": command.resume,
            "goto": targets if isinstance(command.goto, (list, tuple)) else targets[0]}))

    def take(self, ns: tuple[str, ...], mode: str, data: Any) -> None:
        """One item of the library. Checkpoints are taken by take_checkpoint()."""
        if mode == "tasks":
            self._end_subgraphs(ns, data)
            if "result" in data:
                name = "|".join((*ns, f"{data['name']}:{data['id']}"))
                self._send_messages(self._messages.end_task(name, data.get("error") is not None))
                if not ns:
                    self._take_returned(name, data)
        if mode == "values" and not ns:
            self._take_values(data)
            return
        self.send_values()
        self._begin_subgraph(ns)
        if ns and not self._with_subgraphs:
            if mode == "messages":
                self._below.setdefault(ns[0], {})[data[0].id] = data[1]
            return
        suffix = "|" + "|".join(ns) if ns else ""
        if mode == "messages":
            self._take_message(data, suffix)
        elif mode in self._modes:
            self.emit(mode + suffix, jsontext.dumps(self._form(mode, data), lenient=mode != "custom"))

    def _form(self, mode: str, data: Any) -> Any:
        if mode == "tasks":
            return task_event(data)
        if mode == "tools":
            return self._tools.form(data)
        if mode == "debug":
            return {**data, "payload": task_event(data["payload"])}
        return data

    # --- Values and checkpoints ----------------------------------------------

    def _take_values(self, data: Any) -> None:
        self.send_values()
        if "values" in self._modes:
            self._values, self._has_values = data, True

    def send_values(self) -> None:
        """Sends held values that no checkpoint followed; at an interrupt they repeat those of the last checkpoint."""
        if not self._has_values:
            return
        data, self._values, self._has_values = self._values, None, False
        if isinstance(data, dict) and INTERRUPT in data and self._shown is not None:
            rest = {name: value for name, value in data.items() if name != INTERRUPT}
            if are_same(rest, self._shown[1]):
                self.emit("values", jsontext.dumps({INTERRUPT: data[INTERRUPT]}),
                           [("checkpoint_id", jsontext.dumps(self._shown[0])), ("path", b"[]")])
                return
        self.emit("values", jsontext.dumps(data))

    def take_checkpoint(self, ns: tuple[str, ...], payload: Mapping[str, Any], is_saved: bool) -> None:
        """Called after the line `checkpoint`. is_saved: a root checkpoint that the server has; events may refer to its values."""
        checkpoint_id = configurable_of(payload["config"])["checkpoint_id"]
        self._is_saved = is_saved
        if self._has_values and not ns:
            self._values_of_checkpoint(checkpoint_id, payload, is_saved)
        self.send_values()
        if not ns:
            self._step = (payload.get("metadata") or {}).get("step", self._step)
            is_object = isinstance(payload["values"], dict)
            self._shown = (checkpoint_id, payload["values"]) if is_saved and is_object else None
        self._begin_subgraph(ns)
        if ns and not self._with_subgraphs:
            return
        suffix = "|" + "|".join(ns) if ns else ""
        if "checkpoints" in self._modes:
            self._with_values("checkpoints" + suffix, checkpoint_event(payload), ["values"], payload, is_saved)

    def take_debug(self, ns: tuple[str, ...], data: Mapping[str, Any]) -> None:
        """A checkpoint in the mode `debug`, which comes right after it."""
        if not ns or self._with_subgraphs:
            suffix = "|" + "|".join(ns) if ns else ""
            form = {**data, "payload": checkpoint_event(data["payload"])}
            self._with_values("debug" + suffix, form, ["payload", "values"], data["payload"],
                              not ns and self._is_saved)

    def _values_of_checkpoint(self, checkpoint_id: str, payload: Mapping[str, Any], is_saved: bool) -> None:
        if is_saved and are_same(self._values, payload["values"]):
            self._values, self._has_values = None, False
            self.emit("values", None, [("checkpoint_id", jsontext.dumps(checkpoint_id))])

    def _with_values(self, name: str, form: dict[str, Any], path: list[str], payload: Mapping[str, Any],
                     is_saved: bool) -> None:
        """The server inserts the values when clients read the event, so that a step need not send the whole state."""
        place = form
        for member in path[:-1]:
            place = place[member]
        if is_saved:
            place[path[-1]] = None
            extra = [("checkpoint_id", jsontext.dumps(configurable_of(payload["config"])["checkpoint_id"])),
                     ("path", jsontext.dumps(path))]
        else:
            place[path[-1]] = values_of(payload["values"])
            extra = []
        self.emit(name, jsontext.dumps(form, lenient=True), extra)

    # --- Messages ------------------------------------------------------------

    def _take_message(self, data: Any, suffix: str) -> None:
        message, metadata = data[0], self._metadata.bounded(data[1])
        if "messages-tuple" in self._modes:
            self.emit("messages" + suffix, jsontext.dumps([message, metadata], lenient=True))
        if "messages" in self._modes:
            self._send_messages(self._messages.take(message, metadata))

    def _take_returned(self, name: str, task: Mapping[str, Any]) -> None:
        """Without subgraphs, the library gives the messages of a subgraph as those that its node returns."""
        from langchain_core.messages import message_chunk_to_message

        below = self._below.pop(name, {})
        for message in messages_of(task["result"]) if below and task.get("error") is None else ():
            if (metadata := below.pop(message.id, None)) is not None:
                self._take_message((message_chunk_to_message(message), metadata_of_node(metadata, task, self._step + 1)), "")

    def flush_messages(self) -> None:
        self._send_messages(self._messages.end())

    def _send_messages(self, events: Iterable[tuple[str, Any]]) -> None:
        for name, form in events:
            self.emit(name, jsontext.dumps(form, lenient=True))

    # --- Subgraphs -----------------------------------------------------------

    def _begin_subgraph(self, ns: tuple[str, ...]) -> None:
        if not ns or "lifecycle" not in self._modes:
            return
        for depth in range(1, len(ns) + 1):
            name = "|".join(ns[:depth])
            if name not in self._subgraphs:
                self._subgraphs[name] = None
                self._lifecycle(name, {"event": "started", "namespace": list(ns[:depth])})

    def _end_subgraphs(self, ns: tuple[str, ...], data: Mapping[str, Any]) -> None:
        """Those of a task that has ended; of several graphs that it calls the namespaces are numbered below its own."""
        if "result" not in data or not self._subgraphs:
            return
        task = "|".join((*ns, f"{data['name']}:{data['id']}"))
        error = data.get("error")
        word = "failed" if error is not None else "interrupted" if data.get("interrupts") else "completed"
        for name in [name for name in self._subgraphs if name == task or name.startswith(f"{task}|")]:
            del self._subgraphs[name]
            self._lifecycle(name, {"event": word, "namespace": name.split("|")} | (
                {"error": message_of(error)} if error is not None else {}))

    def _lifecycle(self, name: str, form: dict[str, Any]) -> None:
        self.emit("lifecycle|" + name, jsontext.dumps(form))

    # --- The mode `events` ---------------------------------------------------

    def take_event(self, event: Mapping[str, Any]) -> None:
        if "events" in self._modes and "langsmith:hidden" not in (event.get("tags") or []):
            self.send_values()
            form = {**event, "metadata": self._metadata.bounded(event.get("metadata"))}
            self.emit("events", jsontext.dumps(form, lenient=True))


def are_same(left: Any, right: Any) -> bool:
    """Whether both are objects with the same members, and the same values in them."""
    return isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys() and \
        all(left[name] is right[name] for name in left)


def metadata_of_node(metadata: Mapping[str, Any], task: Mapping[str, Any], step: int) -> dict[str, Any]:
    """The metadata of a message of a subgraph as one of its node in the root graph: without those of the model's call."""
    own = {name: value for name, value in metadata.items() if not name.startswith(("langgraph_", "ls_"))}
    ns = f"{task['name']}:{task['id']}"
    return own | {"langgraph_step": step, "langgraph_node": task["name"], "langgraph_checkpoint_ns": ns, "checkpoint_ns": ns}


def task_event(data: Mapping[str, Any]) -> dict[str, Any]:
    error = data.get("error")
    if error is None or isinstance(error, dict):
        return dict(data)
    name = type(error).__name__ if isinstance(error, BaseException) else "Error"
    return {**data, "error": {"error": name, "message": message_of(error)}}


def checkpoint_event(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint as the API shows it: `checkpoint` and `parent_checkpoint`, with ids, beside the configs."""
    config, parent = payload.get("config"), payload.get("parent_config")
    return {
        **{name: value for name, value in payload.items() if name != "values"},
        "values": None,
        "tasks": [{**task, **task_form(task), "name": task["name"]} for task in payload["tasks"]],
        "checkpoint": checkpoint_of(config),
        "parent_checkpoint": checkpoint_of(parent),
    }
