# SPDX-License-Identifier: Apache-2.0
"""Starts the runner: `python FOLDER [--slots N]`, or `python FOLDER --check`.

This folder is loaded as the package `agent_runner`, and is not on the path: an
application may have modules with the names of files here.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import types
from typing import Sequence

PACKAGE = "agent_runner"
# In the folder that `agentctl build` makes, whose check of the graphs fills it: the runner may not write to its own one.
CACHE = os.path.abspath(os.path.join(".agent", "runner"))


class Loader(importlib.machinery.SourceFileLoader):
    """Reads and writes compiled code in CACHE, that of the runner's own modules only."""

    def get_code(self, fullname: str) -> types.CodeType | None:
        before, sys.pycache_prefix = sys.pycache_prefix, CACHE
        try:
            return super().get_code(fullname)
        finally:
            sys.pycache_prefix = before


class Finder:
    """Finds the modules of this package."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if package != PACKAGE or not path:
            return None
        file = os.path.join(path[0], f"{module}.py")
        return importlib.util.spec_from_file_location(name, file, loader=Loader(name, file)) if os.path.isfile(file) else None


def load_package() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != folder]
    if os.path.isdir(os.path.dirname(CACHE)):
        sys.meta_path.insert(0, Finder)
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    load_package()
    try:
        from agent_runner import command_line
    except ModuleNotFoundError as error:
        print(f"agent runner: no LangGraph can be imported by {sys.executable}: {error.name or error} is missing; run "
              f"`agentctl build {os.getcwd()}`, with langgraph among the dependencies", file=sys.stderr)
        sys.exit(2)
    command_line.main(sys.argv[1:])
