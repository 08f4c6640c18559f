# SPDX-License-Identifier: Apache-2.0
"""Scenarios that are executed concurrently, each of which prints its TAP at once;
and the steps that most of them begin with."""

import asyncio
import itertools
import os
import traceback

from langgraph_sdk import get_client, get_sync_client

SERVER_URL = os.environ["AGENT_TEST_URL"]
PROXY_URL = os.environ["AGENT_TEST_PROXY"]
UNKNOWN = "01890000-0000-7000-8000-000000000000"

_scenarios = []
_proxied = itertools.count(1)


class Scenario:
    def __init__(self, name):
        self.name = name
        self.results = []

    def ok(self, is_good, title, found=None):
        details = [] if is_good or found is None else [f"# got: {found!r}"]
        self.results.append((bool(is_good), f"{self.name}: {title}", details))

    def equal(self, found, wanted, title):
        details = [] if found == wanted else [f"# got: {found!r}", f"# wanted: {wanted!r}"]
        self.results.append((found == wanted, f"{self.name}: {title}", details))

    async def raises(self, kind, awaitable, title):
        """Returns the error, which must be of that kind."""
        try:
            await awaitable
        except Exception as error:
            self.ok(isinstance(error, kind), title, error)
            return error
        self.ok(False, title, "no error")
        return None


def scenario(name):
    def register(body):
        _scenarios.append((name, body))
        return body

    return register


async def _play(name, body):
    t = Scenario(name)
    try:
        await body(t)
    except Exception:
        t.ok(False, "the scenario completes", traceback.format_exc()[-800:])
    return t.results


async def play_all():
    """AGENT_TEST_ONLY: the beginning of the names of the scenarios to play."""
    only = os.environ.get("AGENT_TEST_ONLY", "")
    playing = [_play(name, body) for name, body in _scenarios if name.startswith(only)]
    count = 0
    for played in asyncio.as_completed(playing):
        for is_good, title, details in await played:
            count += 1
            print("ok" if is_good else "not ok", count, "-", title)
            for line in details:
                print(line, flush=True)
    print(f"1..{count}", flush=True)


def connect(prefix=""):
    """A client of the server; prefix: the AgentPrefix of the API."""
    return get_client(url=SERVER_URL + prefix)


def _cut_header(places):
    return {"x-cut": " ".join([f"py{next(_proxied)}", *map(str, places)])}


def connect_cut(places, prefix=""):
    """A client behind the proxy, which cuts its first responses after that many bytes."""
    return get_client(url=PROXY_URL + prefix, headers=_cut_header(places))


def connect_sync(places=None):
    """The synchronous client."""
    if places is None:
        return get_sync_client(url=SERVER_URL)
    return get_sync_client(url=PROXY_URL, headers=_cut_header(places))


def say(content):
    return {"messages": [{"role": "user", "content": content}]}


async def new_thread(client):
    return (await client.threads.create())["thread_id"]


async def collect(stream):
    return [part async for part in stream]


def kinds(parts):
    return sorted({part.event for part in parts})


def ids(parts):
    return [int(part.id) for part in parts]


def of_kind(parts, kind):
    return [part.data for part in parts if part.event == kind]


async def until(condition):
    """Polls until the condition holds; the server sends no event for it."""
    while not (value := await condition()):
        await asyncio.sleep(0.02)
    return value


async def begun(client, thread_id, run_id):
    """Waits until the run has saved its input: cancelled earlier, it leaves no state."""
    async def is_begun():
        state = await client.threads.get_state(thread_id)
        return state["metadata"].get("run_id") == run_id

    await until(is_begun)
