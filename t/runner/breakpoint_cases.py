# SPDX-License-Identifier: Apache-2.0
"""The cases of breakpoint_cases.json for the Python runner: prints TAP for parts.t."""

import asyncio
import copy
import json
import pathlib
import sys
from types import SimpleNamespace

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "mod_agent/runners"))

# pylint: disable=wrong-import-position
from langgraph.errors import GraphInterrupt  # noqa: E402
from python.breakpoints import HIDDEN, TASKS, UNSEEN, Breakpoints, plain_form  # noqa: E402
from python.known import Known  # noqa: E402


def version(number):
    """A version as the checkpointer makes them; the fraction is the random part."""
    return f"{int(number):032}.0.{round(number % 1 * 10):016}"


def versions(numbers):
    return {name: version(number) for name, number in numbers.items()}


def node_of(form):
    graph = graph_of(form["subgraph"]) if "subgraph" in form else None
    return SimpleNamespace(tags=[HIDDEN] if form.get("hidden") else None, subgraphs=[graph] if graph else [],
                           bound=None if form.get("isCalled") else graph)


def graph_of(form):
    nodes = {name: node_of(node) for name, node in form.get("nodes", {}).items()}
    return SimpleNamespace(nodes=nodes, interrupt_before_nodes=form.get("before", []), interrupt_after_nodes=form.get("after", []),
                           checkpointer=SimpleNamespace(serde="serde"))


def stored_of(checkpoint_id, form):
    checkpoint = {"id": checkpoint_id, "channel_versions": versions(form["versions"])}
    seen = form.get("seen", {})
    if seen is not None:
        checkpoint["versions_seen"] = {name: versions(of) for name, of in seen.items()}
    writes = [[task_id, 0, channel, None] for task_id, channel in form.get("writes", [])]
    metadata = {"source": form.get("source", "loop"), "step": form.get("step", 0), "parents": form.get("parents", {})}
    return SimpleNamespace(next=form.get("next", ["next"]), sends=form.get("sends", []), writes=writes, tuple={
        "ns": form.get("ns", ""), "checkpoint_id": checkpoint_id, "parent": form.get("parent"), "run_id": "run",
        "checkpoint": checkpoint, "metadata": metadata})


class Names(list):
    """Breakpoints of a run, which may be many."""

    def __contains__(self, name):
        raise AssertionError("names are looked through")


class Case:
    def __init__(self, form, graph, checkpoints):
        self.form = form
        self.reads = 0
        self.stored = {name: stored_of(name, one) for name, one in {**checkpoints, **form.get("checkpoints", {})}.items()}
        self.graph = graph_of({**graph, **form.get("graph", {})})
        known = Known()
        for name in form.get("read", []):
            known.add_read(self.stored[name].tuple["ns"], name)
        for name in form.get("put", []):
            known.add_put(self.stored[name].tuple["ns"], name)
        self.breakpoints = Breakpoints(form.get("run", "run"), known, self.read, self.decode, self.list)

    async def read(self, ns, checkpoint_id):
        self.reads += 1
        found = self.stored.get(checkpoint_id or self.form["start"])
        return found if found is not None and found.tuple["ns"] == ns else None

    async def list(self, ns, before, filter_, limit):
        assert (ns, before, limit) == (None, None, 1)
        for stored in self.stored.values():
            if stored.tuple["metadata"]["parents"] == filter_["parents"]:
                yield stored

    async def decode(self, stored, serde):
        assert serde == "serde"
        return {TASKS: [SimpleNamespace(node=name) for name in stored.sends]}, []

    async def begin(self):
        if "start" in self.form:
            start = self.stored.get(self.form["start"])
            checkpoint = None if start is None else {"next": start.next}
            given = {name: Names(value) if isinstance(value, list) else value for name, value in self.form.get("message", {}).items()}
            await self.breakpoints.begin(self.graph, {"checkpoint": checkpoint, **given}, start)

    def before(self, expected):
        return sorted(self.breakpoints.before or ()) == (expected or [])

    def form_of(self, checkpoint_id, unseen):
        stored = self.stored[checkpoint_id]
        kept = copy.deepcopy(stored.tuple)
        form = self.breakpoints.form(stored)
        expected = copy.deepcopy(kept["checkpoint"])
        if unseen is not None:
            expected["channel_versions"][UNSEEN] = version(unseen)
        # None of them changes what it is given.
        return [plain_form(form), form, stored.tuple] == [kept["checkpoint"], expected, kept]

    def stops(self, checkpoint_id, names, expected):
        return self.breakpoints.stops_at(checkpoint_id, names) is expected

    async def check(self, checkpoint_id, expected, kind="goes on"):
        try:
            found = await self.breakpoints.check(self.stored[checkpoint_id], {"__pregel_resuming": kind == "goes on"}, "serde")
            return expected is not True and found is self.stored[expected or checkpoint_id]
        except GraphInterrupt:
            return expected is True


async def play(number, form, common):
    case = Case(form, common["graph"], common["checkpoints"])
    await case.begin()
    failed = []
    for what, *arguments in form["checks"]:
        found = {"before": case.before, "reads": case.reads.__eq__, "form": case.form_of, "stops": case.stops, "check": case.check}[what](*arguments)
        if not (await found if asyncio.iscoroutine(found) else found):
            failed.append([what, *arguments])
    print(f"{'not ok' if failed else 'ok'} {number} - python: breakpoints: {form['title']}")
    for one in failed:
        print(f"# not {json.dumps(one)}; before: {case.breakpoints.before}")


def main():
    forms = json.loads((HERE / "breakpoint_cases.json").read_text("utf-8"))
    for number, form in enumerate(forms["cases"], 1):
        asyncio.run(play(number, form, forms))
    print(f"1..{len(forms['cases'])}")


main()
