# SPDX-License-Identifier: Apache-2.0
"""Parts of the Python runner alone, which no application can look at: prints TAP for parts.t."""

import asyncio
import importlib
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "mod_agent/runners"))

# pylint: disable=wrong-import-position
from langchain_core.messages import AIMessageChunk  # noqa: E402
from langgraph.store.base import ListNamespacesOp, MatchCondition  # noqa: E402
from python import (blobs, cache, checkpoints, errors, graphs, held, job, messages, output, recent, records,  # noqa: E402
                    repeat, saver, store_ops)  # noqa: E402
from tap import equal, print_plan  # noqa: E402


def test_cache():
    values = cache.Cache(limit=4000)
    for name in "abcd":
        values.add(name, ("msgpack", b"x" * 800))
    equal([name for name in "abcd" if values.get(name)], list("abcd"), "cache: values are kept up to the limit")
    values.get("a")
    values.add("e", ("msgpack", b"x" * 800))
    equal([name for name in "abcde" if values.get(name)], list("acde"), "cache: beyond it the one that was used longest ago is dropped")
    values.add("f", ("msgpack", b"x" * 1001))
    equal(values.get("f"), None, "cache: a value of more than a quarter of it is not kept")
    values.add("e", ("msgpack", b"y" * 800))
    equal(values.get("e"), ("msgpack", b"x" * 800), "cache: a value that is there stays")
    for number in range(100):
        values.add(f"empty {number}", ("msgpack", b""))
    equal(sum(values.get(f"empty {number}") is not None for number in range(100)), 20, "cache: small values count too")


def payload(checkpoint_id, **values):
    return {"config": {"configurable": {"checkpoint_id": checkpoint_id}}, "values": values, "next": [], "tasks": []}


def test_held():
    kept = held.Held()
    for ns in ("", "a", "b"):
        kept.show(ns, payload(f"of {ns}"))
    kept.show("a", payload("newer"))
    kept.drop("b")
    kept.drop("unknown")
    equal((kept.last_id("a"), kept.last_id("b")), ("newer", None), "held: a graph that goes on from a saved checkpoint has none")
    equal((kept.end("a", "one"), kept.end("b", "two")), (True, False), "held: nor ends of tasks")
    equal([(ns, shown["config"]["configurable"]["checkpoint_id"], ends) for ns, shown, ends in kept.take()],
          [("", "of ", []), ("a", "newer", ["one"])], "held: of the others the last one of each is taken")
    equal(kept.take(), [], "held: once")


def chunk(number, text):
    return AIMessageChunk(content=text, id=f"m{number}")


def names(events):
    return [name for name, _ in events]


def test_messages():
    open_ones = messages.Messages()
    list(open_ones.take(chunk(0, "x" * 40_000), {}))
    equal(names(open_ones.take(chunk(0, "y"), {})), [], "messages: a chunk by which a message hardly grows is not shown yet")
    for number in range(1, messages.OPEN_MAX):
        list(open_ones.take(chunk(number, "x"), {}))
    equal(names(open_ones.take(chunk(0, "z"), {})), [], "messages: as many as there may be are open")
    last = list(open_ones.take(chunk(messages.OPEN_MAX, "x"), {}))
    equal(names(last), ["messages/metadata", "messages/partial", "messages/partial"], "messages: beyond that the rest of the oldest is shown")
    equal(last[-1][1][0].content[-3:], "xyz", "messages: it is the whole message")
    equal(names(open_ones.take(chunk(1, "x"), {})), ["messages/partial"], "messages: the next one is still open")
    equal(names(open_ones.take(chunk(0, "x"), {}))[:1], ["messages/metadata"], "messages: the oldest is forgotten")


def test_ends_of_messages():
    open_ones = messages.Messages()

    def begin(number):
        meta = {"langgraph_checkpoint_ns": f"inner:1|m{number}:2"}
        for text in ("x" * 40_000, "y"):
            list(open_ones.take(chunk(number, text), meta))

    begin(0)
    (name, [whole]), = open_ones.end_task("inner:1|m0:2", False)
    equal([name, whole.content[-2:]], ["messages/complete", "xy"], "messages: one is complete at the end of its task")
    begin(1)
    (name, [whole]), = open_ones.end_task("inner:1|m1:2", True)
    equal([name, whole.content[-2:]], ["messages/partial", "xy"], "messages: of a task that fails the rest is a part")
    begin(2)
    equal(names(open_ones.end()), ["messages/partial"], "messages: of a task that has not ended too")
    equal(names(open_ones.end()), [], "messages: none is open then")


def test_graphs():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "counted.py")
        file.write_text("import sys\nsys.parts_count = getattr(sys, 'parts_count', 0) + 1\none = object()\ntwo = one\n", "utf-8")
        one, two = (graphs.import_attribute(f"./counted.py:{name}", folder) for name in ("one", "two"))
        equal((one is two, sys.parts_count), (True, 1), "graphs: two graphs of a file have one module")


class Sent:
    """In place of the wire, and of the output of a run."""

    def __init__(self):
        self.lines = []
        self.is_stuck = False

    def write(self, line):
        self.lines.append(json.loads(line))

    def is_full(self):
        return self.is_stuck

    def send(self, kind, members):
        self.lines.append({"type": kind, **{name: json.loads(text) for name, text in members}})

    def take(self):
        """The kind of each line, which it forgets."""
        taken, self.lines = [line.get("event", line["type"]) for line in self.lines], []
        return taken


def event(to, name, size=1, **more):
    to.send("event", [("event", json.dumps(name).encode()), *((key, json.dumps(value).encode()) for key, value in more.items()),
                      ("data", json.dumps("x" * size).encode())])


def run_to_end(wire, one):
    found = []
    while "want" in (taken := wire.take()):
        found += taken
        one.take_go()
    return [name for name in found + taken if name != "want"]


async def test_output():
    wire = Sent()
    one = output.Output(wire, "r", 1, 8 << 20)
    event(one, "long", 300_000)
    for name, more in [("custom", {}), ("error", {}), ("values", {"checkpoint_id": "c"}), ("values", {}), ("updates", {})]:
        event(one, name, **more)
    one.send("checkpoint", [])
    acknowledged = asyncio.ensure_future(one.send_acknowledged("put", [], lambda: None))
    await asyncio.sleep(0)
    equal(wire.take(), ["want"], "output: a long line waits for credit, and all after it")
    wire.lines.append({"type": "want"})
    one.cancel()
    await asyncio.wait_for(acknowledged, 10)
    equal(run_to_end(wire, one), ["long", "error", "values", "checkpoint", "put"],
          "output: a cancel drops events, except the one with requested credit, error, and values of a checkpoint")

    wire, one = Sent(), None
    one = output.Output(wire, "r", 1, 8 << 20)
    for number in range(7):
        event(one, f"e{number}", 60_000)
    equal(wire.take(), ["e0", "e1", "e2", "e3", "want"], "output: lines have free credit at first")
    one.cancel()
    wire.is_stuck = True
    one.send("checkpoint", [])
    one.take_go()
    equal(wire.take(), ["e4"], "output: a line whose credit was requested is kept by a cancel, and written when it comes")
    equal(one.has_room(), False, "output: a full pipe takes no other line")
    wire.is_stuck = False
    one.pump()
    equal((wire.take(), one.has_room()), (["checkpoint"], True), "output: it takes the next ones when it has room")


async def test_acknowledgements():
    """Callers that give up, as in asyncio.wait_for: their records are open until their replies come."""
    wire = Sent()
    one = output.Output(wire, "r", 1, 8 << 20)
    callers = [asyncio.ensure_future(one.send_acknowledged("put", [], lambda: None)) for _ in range(40)]
    await turns_of_loop()
    for caller in callers[:20]:
        caller.cancel()
    await turns_of_loop()
    equal(len(wire.lines), 16, "output: 16 records are open at most, also if their callers do not wait for the replies")
    one.take_reply({"id": wire.lines[0]["ack"], "ok": False, "error": {}})
    await turns_of_loop()
    equal(len(wire.lines), 17, "output: the reply to a record makes room for the next one, also if its caller does not wait")
    one.cancel()
    await asyncio.wait(callers)
    equal([line.get("ack") for line in wire.lines[17:]], [None] * 19,
          "output: a cancelled run sends the records of the callers that wait, without acknowledgement")

    wire = Sent()
    one = output.Output(wire, "r", 1, 100)
    errors_of = [(await asyncio.gather(one.send_acknowledged("put", [("values", b"1" * 100)], lambda: None), return_exceptions=True))[0]
                 for _ in range(17)]
    equal(type(errors_of[-1]).__name__, "ValueTooLargeError", "output: a record that is too long is not one of the 16")


async def turns_of_loop():
    for _ in range(5):
        await asyncio.sleep(0)


def test_checkpoints():
    for most in (checkpoints.CAPTURED_MAX, checkpoints.CAPTURED_MAX + 1):
        sent = Sent()
        shown = checkpoints.Checkpoints(sent, None, {})
        value = {"count": 1}
        for number in range(most):
            shown.capture(f"n{number}", f"c{number}", None, {"value": value}, {"value": None})
            value["count"] = 2 if number == 0 else value["count"]
        shown.send(payload("c0", value=value), "n0")
        equal(sent.lines[0]["values"], {"value": {"count": 1 if most == checkpoints.CAPTURED_MAX else 2}},
              f"checkpoints: of {most} that are put the first is sent as {'it was' if most == checkpoints.CAPTURED_MAX else 'it is'}")
    big = {"text": "x" * (checkpoints.CAPTURED_BYTES_MAX // 2)}
    sent, value = Sent(), {"count": 1}
    shown = checkpoints.Checkpoints(sent, None, {})
    shown.capture("n", "c", None, {"value": value}, {"value": None})
    value["count"] = 2
    for number in range(2):
        shown.capture(f"b{number}", "c", None, {"value": big}, {"value": None})
    shown.send(payload("c", value=value), "n")
    equal(sent.lines[0]["values"], {"value": {"count": 2}}, "checkpoints: they have a limit in bytes too")


def test_recent():
    last = {}
    recent.keep_newest(last, "", 0)
    for number in range(recent.NAMESPACES_MAX - 1):
        recent.keep_newest(last, f"n{number}", number)
    recent.keep_newest(last, "n0", 0)
    equal(len(last), recent.NAMESPACES_MAX, "recent: as many namespaces as there may be are kept")
    recent.keep_newest(last, "one more", 0)
    equal((len(last), "" in last, "n0" in last, "n1" in last), (recent.NAMESPACES_MAX, True, True, False),
          "recent: then the one that was stored longest ago is dropped, never the root's")
    recent.keep_newest(last, "task:1", 1)
    recent.keep_newest(last, "", 1)
    equal(("task:1" in last, "n2" in last or "n3" in last), (False, True), "recent: a checkpoint of the root ends those of its tasks")
    found = recent.Recent(2)
    found.update("abcd")
    equal(["a" in found, "c" in found, "d" in found], [False, True, True], "recent: of many items the last ones are known")
    found = recent.Recent(2)
    found.update("ab")
    renewed = "a" in found
    found.update("cd")
    equal([renewed, "a" in found, "b" in found], [True, True, False], "recent: an item that is found is one of the last ones again")


def test_store_ops():
    def suffixes(*paths):
        text = store_ops.to_op(ListNamespacesOp(match_conditions=tuple(MatchCondition("suffix", path) for path in paths)))
        form = json.loads(text)
        return form["limit"] and form["suffix"]

    equal([suffixes(("c",), ("b", "c")), suffixes(("b", "c"), ("*", "b", "*")), suffixes(("c",), ("c", "b"))],
          [["b", "c"], ["*", "b", "c"], 0], "store: two suffixes of namespaces are compared from their ends")


def blob(digest, value, start=0, end=None):
    return {"digest": digest, "value_type": "json", "text": json.dumps(value)[start:end]}


async def test_history():
    """A reply in parts: the newest writes first, the list of the seed and a value of it in two parts each."""
    old, fresh, items = {"n": "old"}, {"n": "fresh"}, [{"n": name} for name in "abc"]
    replies = {
        "checkpoint.delta": [
            {"items": {"writes": [["t2", "fresh", "", 0]]}, "other": {"writes": []}},
            {"items": {"writes": [["t1", "old", "", 0]], "seed": {"list": {"keep": 0, "items": ["a", "b"]}}}, "other": {}},
            {"items": {"seed": {"list": {"keep": 2, "items": ["c"]}}}, "other": {"seed": "a"}}],
        "blob.get": [{"blobs": [blob("fresh", fresh), blob("old", old), blob("a", items[0]), blob("b", items[1], 0, 4)]},
                     {"blobs": [blob("b", items[1], 4), blob("c", items[2])]}]}

    class Replies:
        async def request(self, name, _, cursor=None):
            part = int(cursor or 0)
            return replies[name][part], str(part + 1) if part + 1 < len(replies[name]) else None

    class Serde:
        def loads_typed(self, value):
            return json.loads(value[1])

    found = await records.Records(Replies(), blobs.Blobs(Replies(), 1, cache.Cache()), None, False, repeat.Repeat("r", False)).delta(
        "", "01890000-0000-7000-8000-000000000001", ["items", "other", "none"], Serde())
    equal(found["items"]["writes"], [("t1", "items", old), ("t2", "items", fresh)],
          "history: the writes of a later part precede those of an earlier one")
    equal(found["items"]["seed"], items, "history: the list of a seed continues in the next part")
    equal(found["other"], {"writes": [], "seed": items[0]}, "history: a seed may come in the last part")
    equal(found["none"], {"writes": []}, "history: a channel without writes and without a seed")


def configurable(context=None, **given):
    message = {"run_id": "r", "epoch": 1, "thread_id": "t", "graph_id": "g", "assistant_id": "a", "config": {"configurable": given},
               "context": context}
    return job.Job(message, None, 1, cache.Cache()).config()["configurable"]


def test_config():
    ids = {"run_id": "r", "thread_id": "t", "graph_id": "g", "assistant_id": "a", "checkpoint_ns": ""}
    others = {name: "other" for name in [*ids, "checkpoint_id", "checkpoint_map"]}
    equal(configurable(**others), ids, "config: neither a client nor a context names another run, thread or checkpoint")
    equal(configurable(context=others), ids, "config: a context of the same names changes nothing")
    equal(configurable({"__x": 1}, __y=1), ids, "config: names of the library are the library's")
    equal(configurable({"langgraph_auth_user_id": "c", "x": 1}, langgraph_auth_permissions=["s"]),
          ids | {"x": 1, "langgraph_auth_permissions": ["s"]}, "config: the server names the user, no context does")
    equal([configurable(user_id=name).get("user_id") for name in ("", "u")], [None, "u"], "config: without a user there is no member")
    equal(configurable({"x": "context", "y": 1}, x="own"), ids | {"x": "own", "y": 1}, "config: its members precede those of the context")
    equal([len(configurable({f"n{i}": i for i in range(count)})) for count in (256, 257)], [261, 5],
          "config: a context of 257 members is not copied")


def test_versions():
    first, found = saver.Saver.get_next_version(None, None), {saver.Saver.get_next_version(None, 9) for _ in range(20)}
    after = saver.Saver.get_next_version(None, max(found))
    equal([first[:34], {one[:34] for one in found}, after[:34]], [f"{1:032}.0", {f"{10:032}.0"}, f"{11:032}.0"], "versions: each is one more")
    equal([len(found), sorted([after, *found])[-1] == after], [20, True], "versions: those of two branches differ, a later one is greater")


def test_errors():
    found = errors.describe_error(ValueError("x" * 2001))["message"]
    equal((len(found), found[-2:]), (2000, "x…"), "errors: a message that is cut ends in …")
    equal(len(errors.describe_error(ValueError("x" * 2000))["message"].strip("x")), 0, "errors: one of 2,000 characters is whole")


importlib.invalidate_caches()
test_errors()
test_cache()
test_held()
test_messages()
test_ends_of_messages()
test_graphs()
asyncio.run(test_output())
asyncio.run(test_acknowledgements())
asyncio.run(test_history())
test_checkpoints()
test_config()
test_versions()
test_recent()
test_store_ops()
print_plan()
