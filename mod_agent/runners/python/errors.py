# SPDX-License-Identifier: Apache-2.0
"""Errors as the protocol has them: their names for clients, and their messages."""

from typing import Any

from .text import clean_text, text_of

NAME_MAX = 200
MESSAGE_MAX = 2000


class RunnerError(Exception):
    """An error of this runner, with a name for clients: of a graph that cannot be used, or of a request that was refused."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class ApplicationError(Exception):
    """langgraph.json cannot be used; the message says why."""


class ForeignStateError(ValueError):
    """The thread's state is not one that the application can continue."""


class NotRenderedError(TypeError):
    """A value that JSON cannot hold."""


class RunEndedError(Exception):
    """A thread or task that outlives its run tried to send a line."""


class StrictResumeError(RuntimeError):
    """The application's library is too old for `strict_resume`, which it would ignore."""


class UnknownOperationError(Exception):
    """An operation of a later protocol."""


class ValueTooLargeError(ValueError):
    """A line, or a value, over the limits of the protocol."""


def message_of(error: Any) -> str:
    text = clean_text(text_of(error))
    return text if len(text) <= MESSAGE_MAX else text[:MESSAGE_MAX - 1] + "…"


def describe_error(error: BaseException) -> dict[str, str]:
    """The members `error` and `message` of a line."""
    name = error.name if isinstance(error, RunnerError) else type(error).__name__
    return {"error": clean_text(name)[:NAME_MAX], "message": message_of(error)}


def is_drained(error: BaseException) -> bool:
    """Whether an error says that a run was drained (by the library's RunControl)."""
    return type(error).__name__ == "GraphDrained"
