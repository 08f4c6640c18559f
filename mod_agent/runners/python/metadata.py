# SPDX-License-Identifier: Apache-2.0
"""The metadata that events and checkpoints repeat: of the members of `configurable`, which LangGraph copies into them, at most 16 KB.

The server limits what the client sends as `metadata` to as much, `configurable` to 64 KB; a `context` of more than 256 members is not copied into
`configurable`. All versions copy `model` and the ids into events; 1.0 copies each string, number and boolean. All copy these into checkpoints.
"""

import functools
import json
from typing import Any, Callable, Mapping

from .checkpoints import configurable_of

# As JSON, of the names and values together.
COPIED_BYTES_MAX = 16_384
# These come first.
NEEDED = ("model", "user_id")


def length_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def characters_of(value: Any) -> int:
    """Of a text or a number; one that is a member of an Enum is its value in JSON, and another text for str()."""
    return len(value) if isinstance(value, str) else length_of(value)


class Metadata:
    """The metadata of the events and checkpoints of a run."""

    def __init__(self, get_config: Callable[[], Mapping[str, Any]]) -> None:
        """get_config: the library's, as the run gives it."""
        self._get_config = get_config

    def bounded(self, metadata: Any) -> Any:
        """The metadata, or the `configurable` that is copied into them, without what is beyond the limit."""
        if not self._omitted or not isinstance(metadata, Mapping):
            return metadata
        # A member of that name that is not a copy is the library's or the graph's own.
        return {name: value for name, value in metadata.items() if name not in self._omitted or self._omitted[name] is not value}

    @functools.cached_property
    def _omitted(self) -> dict[str, Any]:
        """The longest of the members that may be copied, with which they are too many."""
        config = self._get_config()
        given = config["metadata"]
        copied = {name: value for name, value in configurable_of(config).items()
                  if isinstance(value, (str, int, float)) and not (name in given and given[name] == value)}
        # No character has more than 6 bytes in JSON.
        if 6 * sum(len(name) + characters_of(value) + 1 for name, value in copied.items()) <= COPIED_BYTES_MAX:
            return {}
        lengths = {name: length_of(name) + length_of(value) for name, value in copied.items()}
        total, omitted = 0, {}
        for name, length in sorted(lengths.items(), key=lambda member: (member[0] not in NEEDED, member[1])):
            if total + length > COPIED_BYTES_MAX:
                omitted[name] = configurable_of(config)[name]
            else:
                total += length
        return omitted
