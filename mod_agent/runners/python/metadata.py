# SPDX-License-Identifier: Apache-2.0
"""The metadata that events repeat: of the members of `configurable`, which LangGraph copies into them, at most 16 KB.

The server limits what the client sends as `metadata`, not `configurable`. All versions copy `model` and the ids;
1.0 copies each string, number and boolean.
"""

import functools
import json
from typing import Any, Mapping

from .checkpoints import configurable_of

# As JSON, of the names and values together.
COPIED_BYTES_MAX = 16_384


def length_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


class Metadata:
    """The metadata of the events of a run."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """config: the library's, as the run gives it."""
        self._config = config

    def bounded(self, metadata: Any) -> Any:
        """The metadata without what is beyond the limit: the longest of the copied members are left out."""
        if not self._lengths or not isinstance(metadata, Mapping):
            return metadata
        total, omitted = 0, set()
        for name, (value, length) in self._lengths.items():
            # A member of that name that is not a copy is the library's or the graph's own.
            if metadata.get(name) is value:
                total += length
                if total > COPIED_BYTES_MAX:
                    omitted.add(name)
        return {name: value for name, value in metadata.items() if name not in omitted} if omitted else metadata

    @functools.cached_property
    def _lengths(self) -> dict[str, tuple[Any, int]]:
        """The members that may be copied with their lengths, the shortest first; none if all of them fit."""
        given = self._config["metadata"]
        members = {name: value for name, value in configurable_of(self._config).items()
                   if value is not None and not (name in given and given[name] == value)}
        if length_of(members) <= COPIED_BYTES_MAX:
            return {}
        lengths = {name: (value, length_of(name) + length_of(value)) for name, value in members.items()}
        return dict(sorted(lengths.items(), key=lambda member: member[1][1]))
