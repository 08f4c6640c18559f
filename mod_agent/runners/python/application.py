# SPDX-License-Identifier: Apache-2.0
"""The folder of an application: langgraph.json, its environment and its path."""

import json
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any

from . import directory
from .errors import ApplicationError


# The same expression is in ../node/application.mjs.
_ENV_LINE = re.compile(
    r"""(?<![^\n])[ \t]*(?:export[ \t]+)?([A-Za-z0-9_.-]+)[ \t]*=[ \t]*"""
    r"""(?:(?:"((?:\\[\s\S]|[^"\\])*)"|'([^']*)'|`([^`]*)`)[ \t]*(?:#[^\n]*)?|#[^\n]*|([^\n]*?)(?:[ \t]+#[^\n]*|[ \t]*))"""
    r"""(?![^\n])""")
_ESCAPE = re.compile(r'\\([nr"\\])')
_BAD_TEXT = re.compile("[\0\ud800-\udfff]")
# Of numbers that both languages write in the same way, without an exponent.
_NUMBER_MIN, _NUMBER_MAX = 0.0001, 999_999_999_999_999
_ESCAPES = {"n": "\n", "r": "\r", '"': '"', "\\": "\\"}


def reason_of(error: Exception) -> str:
    """Why an application cannot be used, as one line of the log."""
    text = str(error) if isinstance(error, ApplicationError) else f"langgraph.json: {type(error).__name__}: {error}"
    return " ".join(text.splitlines())


@dataclass
class Application:
    directory: str
    # name -> path, "./agent.py:graph" or "package.module:graph"
    graphs: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str | None] = field(default_factory=dict)
    env: Any = None
    dependencies: list[str] = field(default_factory=list)
    # `checkpointer.serde`: how values of the library are read
    serde: dict[str, Any] = field(default_factory=dict)

    def enter(self) -> None:
        """Prepares the process: working directory, environment, sys.path."""
        directory.enter(self.directory)
        try:
            variables = {name: variable_of(name, value) for name, value in read_env(self.env, self.directory).items()}
        except ApplicationError as error:
            # The log has lines of several applications.
            raise ApplicationError(f"{self.directory}/langgraph.json: env: {error}") from error
        for name, text in variables.items():
            os.environ.setdefault(name, text)
        for folder in reversed(self.folders()):
            if folder not in sys.path:
                sys.path.insert(0, folder)

    def folders(self) -> list[str]:
        """Those of `dependencies` that are folders, and the application's own; `src` of each if there is one."""
        folders = []
        for name in self.dependencies or ["."]:
            if name.startswith((".", "/")):
                folder = os.path.normpath(os.path.join(self.directory, name))
                folders += [path for path in (folder, os.path.join(folder, "src")) if os.path.isdir(path)]
        return folders if self.directory in folders else [*folders, self.directory]


def read_config(directory: str) -> Application:
    """Raises ApplicationError."""
    path = os.path.join(directory, "langgraph.json")
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise ApplicationError(f"{path}: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("graphs"), dict):
        raise ApplicationError(f"{path}: no object `graphs`")
    application = Application(os.path.abspath(directory))
    for name, value in config["graphs"].items():
        if isinstance(value, str):
            value = {"path": value}
        if not isinstance(value, dict) or not isinstance(value.get("path"), str):
            raise ApplicationError(f"{path}: graph {name}: neither a path nor an object with one")
        application.graphs[name] = value["path"]
        application.descriptions[name] = value.get("description")
    application.env = config.get("env")
    application.dependencies = [name for name in config.get("dependencies") or [] if isinstance(name, str)]
    application.serde = (config.get("checkpointer") or {}).get("serde") or {}
    return application


def variable_of(name: str, value: Any) -> str:
    """The value of a variable; raises ApplicationError, with the texts of ../node/application.mjs."""
    reason = None
    if name == "" or "=" in name or _BAD_TEXT.search(name):
        reason = "a name is not empty, and has no =, U+0000 and unpaired surrogates"
    elif isinstance(value, str):
        if _BAD_TEXT.search(value):
            reason = "a value has no U+0000 and no unpaired surrogates"
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        reason = "expected a string or a number"
    elif value != 0 and not _NUMBER_MIN <= abs(value) <= _NUMBER_MAX:
        reason = "expected a number from 0.0001 to 999999999999999, or a string"
    if reason is not None:
        raise ApplicationError(f"{json.dumps(name, ensure_ascii=False)}: {reason}")
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def read_env(env: Any, directory: str) -> dict[str, Any]:
    """`env` of langgraph.json: a file's name, a list of names (which are in the environment), or a map."""
    if isinstance(env, dict):
        return env
    if not isinstance(env, str):
        return {}
    try:
        with open(os.path.join(directory, env), encoding="utf-8") as file:
            return parse_env(file.read())
    except OSError as error:
        raise ApplicationError(f"{env}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ApplicationError(f"{env}: it is not UTF-8") from error


def parse_env(text: str) -> dict[str, str]:
    """The variables of a file of lines NAME=VALUE, as ../README.md has them."""
    values = {}
    for found in _ENV_LINE.finditer(text.replace("\r\n", "\n").replace("\r", "\n")):
        name, double, single, back, plain = found.groups()
        if double is not None:
            values[name] = _ESCAPE.sub(lambda escape: _ESCAPES[escape[1]], double)
        else:
            values[name] = next((value for value in (single, back, plain) if value is not None), "")
    return values
