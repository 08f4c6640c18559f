# SPDX-License-Identifier: Apache-2.0
"""Starts the runner: `python FOLDER [--slots N]`, or `python FOLDER --check`.

This folder is loaded as the package `agent_runner`, and is not on the path: an
application may have modules with the names of files here.
"""

import importlib.metadata
import importlib.util
import os
import sys

# The least version of Python, which `agentctl build` has too (ctl/build/python.c): asyncio.Task with a context.
LEAST_PYTHON = (3, 11)
# The least major version of LangGraph.
LEAST_LANGGRAPH = 1


def load_package() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != folder]
    spec = importlib.util.spec_from_file_location(
        "agent_runner", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["agent_runner"] = package
    spec.loader.exec_module(package)


def check_python() -> None:
    if sys.version_info[:2] < LEAST_PYTHON:
        print(f"agent runner: {sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}, and 3.11 or newer is needed "
              f"(remove {os.getcwd()}/.agent/venv; then `agentctl build`)", file=sys.stderr)
        sys.exit(2)


def check_library() -> None:
    """Before anything of it is imported: with an older one an import, or each run, would fail without naming the reason."""
    try:
        version = importlib.metadata.version("langgraph")
    except importlib.metadata.PackageNotFoundError:
        return
    major = version.split(".")[0]
    if major.isdecimal() and int(major) < LEAST_LANGGRAPH:
        print(f"agent runner: langgraph {version} is too old: {LEAST_LANGGRAPH}.0 or newer is needed (dependencies of "
              f"{os.getcwd()}/langgraph.json; then `agentctl build`)", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    check_python()
    load_package()
    check_library()
    try:
        from agent_runner import command_line
    except ModuleNotFoundError as error:
        print(f"agent runner: no LangGraph can be imported by {sys.executable}: {error.name or error} is missing; run "
              f"`agentctl build {os.getcwd()}`, with langgraph among the dependencies", file=sys.stderr)
        sys.exit(2)
    command_line.main(sys.argv[1:])
