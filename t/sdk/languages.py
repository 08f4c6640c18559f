# SPDX-License-Identifier: Apache-2.0
"""Scenarios for graphs that applications in Python and in JavaScript have both: `python-NAME`, `javascript-NAME`."""

from tap import collect, connect, new_thread, scenario

client = connect()


def each(name, languages=("python", "javascript")):
    """A scenario for each language: body(t, graph), graph(NAME) is the name of the language's."""
    def register(body):
        for language in languages:
            async def play(t, language=language):
                await body(t, lambda graph: f"{language}-{graph}")

            scenario(f"{language}: {name}")(play)
        return body

    return register


async def stream(graph, thread_id=None, **options):
    return await collect(client.runs.stream(thread_id or await new_thread(client), graph, **options))


async def notes(graph, thread_id=None, **options):
    values = await client.runs.wait(thread_id or await new_thread(client), graph, **options)
    return values.get("notes", values)


def goto_of(graph, node):
    """The `goto` of a command to a node, as the language's library keeps it."""
    return [node] if graph.startswith("javascript-") else node


def modes(parts):
    """The modes of the events of the graph, and those of its subgraphs."""
    names = [part.event.partition("|") for part in parts]
    return sorted({mode for mode, bar, _ in names if not bar}), sorted({mode for mode, bar, _ in names if bar})
