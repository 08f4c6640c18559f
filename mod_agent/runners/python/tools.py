# SPDX-License-Identifier: Apache-2.0
"""The events of the stream mode `tools`, in the protocol's form."""

from typing import Any, Mapping

# The library's event: that of the protocol, the member with its data, and the name of that member in the protocol.
_FORMS = {
    "tool-started": ("on_tool_start", "input", "input"),
    "tool-output-delta": ("on_tool_event", "delta", "data"),
    "tool-finished": ("on_tool_end", "output", "output"),
    "tool-error": ("on_tool_error", "message", "error"),
}

# Calls that have not ended; the oldest is forgotten.
OPEN_MAX = 1024


class ToolEvents:
    """Knows the names of the tools of open calls: only their first event has it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def form(self, data: Mapping[str, Any]) -> dict[str, Any]:
        if data["event"] not in _FORMS:
            return dict(data)
        word, member, name = _FORMS[data["event"]]
        call = data["tool_call_id"]
        if word == "on_tool_start":
            self._names[call] = data["tool_name"]
            if len(self._names) > OPEN_MAX:
                del self._names[next(iter(self._names))]
        event = {"event": word, "toolCallId": call, "name": self._names.get(call)}
        if word in ("on_tool_end", "on_tool_error"):
            self._names.pop(call, None)
        return event | ({name: data[member]} if member in data else {})
