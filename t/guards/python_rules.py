# SPDX-License-Identifier: Apache-2.0
"""Prints what breaks the rules in modules of the Python runner, one line each."""

import ast
import sys
from typing import Iterator

MODULE_LINES = 350
FUNCTION_LINES = 45
# Besides the standard library: what every LangGraph brings with it.
PACKAGES = {"langgraph", "langgraph_sdk", "langchain_core", "orjson"}
ENTRY = {"__main__.py", "__init__.py"}


def imports_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(level, name) of each import; of the own package level 1 and the module's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level and node.module is None:
                yield from ((1, alias.name) for alias in node.names)
            else:
                yield node.level, node.module or ""


def check_module(path: str, tree: ast.Module, lines: int) -> Iterator[str]:
    if ast.get_docstring(tree) is None and not path.endswith("__init__.py"):
        yield "no docstring"
    if lines > MODULE_LINES:
        yield f"{lines} lines"
    for level, name in imports_of(tree):
        top = name.split(".")[0]
        if not level and top not in sys.stdlib_module_names and top not in PACKAGES and top != "agent_runner":
            yield f"imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from check_function(node)


def check_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    length = (node.end_lineno or 0) - node.lineno + 1
    if length > FUNCTION_LINES:
        yield f"{node.name} has {length} lines"
    given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    missing = [one.arg for one in given if one.annotation is None and one.arg not in ("self", "cls")]
    if missing or node.returns is None and node.name != "__init__":
        yield f"{node.name} has no type for {', '.join(missing) or 'its value'}"


def cycle_of(uses: dict[str, set[str]]) -> list[str]:
    """The modules that are left when those without users or uses are taken away."""
    left = dict(uses)
    while True:
        ends = [name for name, used in left.items() if not used & left.keys()]
        if not ends:
            return sorted(left)
        for name in ends:
            del left[name]


def main(paths: list[str]) -> None:
    uses: dict[str, set[str]] = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        tree = ast.parse(text, path)
        for finding in check_module(path, tree, text.count("\n")):
            print(f"{path}: {finding}")
        name = path.rsplit("/", 1)[-1]
        if name not in ENTRY:
            uses[name.removesuffix(".py")] = {used for level, used in imports_of(tree) if level}
    if cycle := cycle_of(uses):
        print(f"modules that import each other: {', '.join(cycle)}")


main(sys.argv[1:])
