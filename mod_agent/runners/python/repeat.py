# SPDX-License-Identifier: Apache-2.0
"""A command in a repeated attempt of its run: what the lost attempt has stored is not given once more.

The library keeps `update`, `goto` and one value of `resume` as writes of a task of its own, and reads them back. It
would give a stored value to the next question too, which nobody has seen, even one that an earlier run has left there.
Values for ids it does not keep.
"""

import re
from typing import Any, Iterator, Mapping, Sequence

from .checkpoints import UPDATE_ID

INTERRUPT, RESUME = "__interrupt__", "__resume__"
# A write of checkpoint.get.
Write = Sequence[Any]

_ID = re.compile("[0-9a-f]{32}")


class Repeat:
    """run_id: of the run; is_answered: whether one of its tasks has stored answers, in any namespace."""

    def __init__(self, run_id: str, is_answered: bool) -> None:
        self._run_id = run_id
        self._is_answered = is_answered
        # The values for ids, as the library has them; it looks into them whenever it makes tasks.
        self._answers: dict[str, Any] = {}

    def _is_own(self, write: Write) -> bool:
        return len(write) > 5 and write[5] == self._run_id

    def is_stored(self, writes: Sequence[Write]) -> bool:
        """Whether the writes of the command are among those of the checkpoint."""
        return any(write[0] == UPDATE_ID and self._is_own(write) for write in writes)

    def asked_before(self, writes: Sequence[Write]) -> Iterator[Write]:
        """The questions that the run has not asked itself."""
        return (write for write in writes if write[2] == INTERRUPT and not self._is_own(write))

    def rest(self, command: Mapping[str, Any], is_stored: bool, waiting: set[str]) -> dict[str, Any] | None:
        """The members of the command that are to be given; waiting: the ids of the questions of asked_before().

        None: nothing. The run goes on from the checkpoint.
        """
        rest = dict(command)
        if is_stored:
            rest.pop("update", None)
            rest.pop("goto", None)
        resume = rest.get("resume")
        if isinstance(resume, dict) and all(_ID.fullmatch(name) for name in resume):
            self._answers = rest["resume"] = {name: value for name, value in resume.items() if name in waiting}
            if resume and not self._answers:
                del rest["resume"]
        elif is_stored or self._is_answered:
            # With durability `exit` a subgraph's answer is stored before the command is.
            rest.pop("resume", None)
        return rest if any(rest.get(name) is not None for name in ("update", "goto", "resume")) else None

    def cut(self, ns: str, writes: list[list[Any]]) -> list[list[Any]]:
        """The writes to a checkpoint that the library is to read."""
        if ns and self._answers:
            own = {channel: {write[0] for write in writes if write[2] == channel and self._is_own(write)} for channel in (INTERRUPT, RESUME)}
            # A task has used its value and asked once more. Which one it was is not known: the others are asked again.
            if own[INTERRUPT] & own[RESUME]:
                self._answers.clear()
        if not self._is_answered:
            return writes
        return [write for write in writes if not (write[0] == UPDATE_ID and write[2] == RESUME)]
