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
# The ids in the namespace of a subgraph: of the tasks that it is a part of.
_CALLERS = re.compile(":([^:|]+)")


class Repeat:
    """run_id: of the run; is_answered: whether one of its tasks has stored answers, in any namespace."""

    def __init__(self, run_id: str, is_answered: bool) -> None:
        self._run_id = run_id
        self._is_answered = is_answered
        # The values for ids, as the library has them; it looks into them whenever it makes tasks.
        self._answers: dict[str, Any] = {}
        # Of each task of the root graph the ids of its questions that the run has not asked itself.
        self._asked: Mapping[str, set[str]] = {}
        # The tasks of the root graph, that of the command too, whose writes a lost attempt has stored.
        self.lost: set[str] = set()

    def _is_own(self, write: Write) -> bool:
        return len(write) > 5 and write[5] == self._run_id

    def is_stored(self, writes: Sequence[Write]) -> bool:
        """Whether the writes of the command are among those of the checkpoint."""
        return any(write[0] == UPDATE_ID and self._is_own(write) for write in writes)

    def has_written(self, writes: Sequence[Write]) -> bool:
        """Whether the run has written to the root checkpoint from which it starts; its tasks that have are `lost` then."""
        self.lost = {write[0] for write in writes if self._is_own(write)}
        return bool(self.lost)

    def asked_before(self, writes: Sequence[Write]) -> Iterator[Write]:
        """The questions that the run has not asked itself."""
        return (write for write in writes if write[2] == INTERRUPT and not self._is_own(write))

    def rest(self, command: Mapping[str, Any], is_stored: bool, is_last: bool, asked: Mapping[str, set[str]]) -> dict[str, Any] | None:
        """The members of the command that are to be given; is_last: whether the checkpoint is the thread's last one; asked: of
        each task the ids of its questions of asked_before().

        None: nothing. The run goes on from the checkpoint. From an earlier one the library would make a fork then, without
        the answers that are stored; with a `resume`, even of no value, it does not.
        """
        self._asked, waiting = asked, set().union(*asked.values())
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
        if resume is not None and not is_last:
            rest.setdefault("resume", {})
        return rest if any(rest.get(name) is not None for name in ("update", "goto", "resume")) else None

    def cut(self, writes: list[list[Any]]) -> list[list[Any]]:
        """The writes to a checkpoint that the library is to read.

        When the library stores a command it drops the value that an earlier run has left there: for the rest of that
        attempt, not from what is stored.
        """
        is_stored = self.is_stored(writes)
        return [write for write in writes if not (write[0] == UPDATE_ID and write[2] == RESUME
                                                  and (self._is_answered or is_stored and not self._is_own(write)))]

    def note(self, ns: str, writes: Sequence[Write], values: Sequence[Any]) -> None:
        """Called with the writes to a checkpoint and their values, before the library makes its tasks.

        A task of a subgraph that has used its value and asked once more is not to get the value again.
        """
        if not ns or not self._answers:
            return
        own = {channel: {write[0] for write in writes if write[2] == channel and self._is_own(write)} for channel in (INTERRUPT, RESUME)}
        if own[INTERRUPT] & own[RESUME]:
            asked = [self._asked[task_id] for task_id in _CALLERS.findall(ns) if task_id in self._asked]
            left = [ids_of(value) for write, value in zip(writes, values) if write[2] == INTERRUPT and not self._is_own(write)]
            # Which one of the task's graphs it was is not known: those that do not wait in this one are asked again.
            for name in set().union(*asked or [self._answers]).difference(*left):
                self._answers.pop(name, None)


def ids_of(questions: Any) -> set[str]:
    return {question.id for question in questions or () if getattr(question, "id", None) is not None}
