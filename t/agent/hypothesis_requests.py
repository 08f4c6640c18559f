# SPDX-License-Identifier: Apache-2.0
"""Sends generated requests to each route of a table: hypothesis_requests.py INPUT

INPUT is JSON: url, prefix, key, routes ([[method, path]]), ids (known ones by name), examples (the number of requests of a
route) and is_random (other requests each time). Prints `ok ROUTE` or `not ok ROUTE text` for each.
"""

import http.client
import json
import re
import sys
import urllib.parse
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

with open(sys.argv[1], encoding="utf-8") as file:
    INPUT = json.load(file)
ADDRESS = urllib.parse.urlsplit(INPUT["url"]).netloc

# Names that the APIs know, so that not only the first check of a body is reached.
NAMES = ["thread_id", "run_id", "run_ids", "assistant_id", "graph_id", "thread_ids", "ids", "checkpoint", "checkpoint_id", "checkpoint_ns", "metadata",
         "config", "configurable", "tags", "context", "input", "command", "resume", "goto", "update", "values", "as_node", "supersteps", "updates", "messages",
         "stream_mode", "stream_subgraphs", "stream_resumable", "on_disconnect", "on_completion", "if_exists", "if_not_exists", "multitask_strategy",
         "interrupt_before", "interrupt_after", "webhook", "feedback_keys", "after_seconds", "durability", "recursion_limit", "ttl", "strategy", "status",
         "limit", "offset", "before", "after", "sort_by", "sort_order", "select", "extract", "filter", "query", "namespace", "namespace_prefix", "prefix",
         "suffix", "key", "value", "max_depth", "index", "refresh_ttl", "name", "description", "version", "action", "wait", "xray", "recurse", "include",
         "unit", "start", "end", "subgraphs"]
# Of the bodies of platform hosts, which refuse all others.
ACCOUNT_NAMES = ["name", "invitation", "kind", "user_id", "deployment", "scopes", "expires_in_sec", "overlap_sec", "closed", "confirm"]
NAMES += ACCOUNT_NAMES
WORDS = ["", "agent", "all", "interrupt", "rollback", "enqueue", "reject", "values", "updates", "messages-tuple", "debug", "custom", "delete", "keep",
         "keep_latest", "do_nothing", "raise", "create", "pending", "busy", "idle", "asc", "desc", "created_at", "true", "false", "null", "day", "hour",
         "admin", "read", "service", "personal", "deployment", "__start__", "__end__", "__input__", "__copy__", "1", "-1", "0", "1e400", "NaN",
         "2026-01-01", "infinity", "0001-01-01", "99999-01-01", "\\u0000", "'", "\"", "%", "../", "|", "a.b"]

known = st.sampled_from([value for values in INPUT["ids"].values() for value in values] + ["01900000-0000-7000-8000-000000000000", "0" * 22])
texts = known | st.sampled_from(WORDS) | st.text(max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0, 1, -1, 2**31, 2**63, 1e308])
plain = st.none() | st.booleans() | numbers | texts
documents = st.recursive(plain, lambda inner: st.lists(inner, max_size=4)
                         | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), inner, max_size=6), max_leaves=12)
# Valid enough to get beyond the required members.
members = st.dictionaries(st.sampled_from(NAMES), documents, max_size=6)
seeds = st.sampled_from([{}, {"assistant_id": "agent"}, {"assistant_id": "agent", "input": {"messages": []}}, {"graph_id": "agent"}, {"values": {}},
                         {"namespace": ["a"], "key": "k", "value": {}}, {"name": "x"}, {"thread_ids": []}, {"checkpoint": {}}])
objects = st.builds(lambda seed, more: {**more, **seed}, seeds, members)
account_objects = st.builds(lambda seed, more: {**more, **seed}, st.sampled_from([{}, {"name": "x"}, {"confirm": "x"}]),
                            st.dictionaries(st.sampled_from(ACCOUNT_NAMES), documents, max_size=4))
bodies = (objects | account_objects | st.lists(objects, max_size=2) | documents).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40)
queries = st.lists(st.tuples(st.sampled_from(NAMES) | st.text(max_size=8), texts | numbers.map(str)), max_size=3).map(urllib.parse.urlencode) \
    | st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=20)
header_texts = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=20)
# Tokens have 32 to 128 characters.
tokens = header_texts | st.text("abcXYZ019_-", min_size=30, max_size=130) | st.just("t" * 32)
headers = st.builds(lambda more, token: {**more, **token},
                    st.dictionaries(st.sampled_from(["x-user-id", "Idempotency-Key", "Last-Event-ID", "Accept", "Content-Type", "Prefer", "Origin", "Cookie"]),
                                    header_texts, max_size=2),
                    st.dictionaries(st.just("x-deletion-token"), tokens, max_size=1))
segments = st.text(max_size=20).map(lambda text: urllib.parse.quote(text, safe=""))


def paths(path: str) -> Any:
    """The path with known ids, mostly, or with any text."""
    parts = [st.sampled_from(INPUT["ids"].get(part[1:-1], ["x", "0" * 22])) | known | segments if part.startswith("{") else st.just(part)
             for part in re.split(r"(\{\w+\})", path)]
    return st.tuples(*parts).map("".join)


def send(method: str, path: str, body: bytes | None, more: dict[str, str]) -> tuple[int, str, bytes]:
    """The status, the type and the beginning of the body. A stream that stays open is left."""
    connection = http.client.HTTPConnection(ADDRESS, timeout=60)
    try:
        connection.putrequest(method, INPUT["prefix"] + path, skip_accept_encoding=True)
        if INPUT["key"]:
            connection.putheader("x-api-key", INPUT["key"])
        for name, value in more.items():
            connection.putheader(name, value.encode("latin-1"))
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.headers.get("Content-Type") or "", response.read() if response.status >= 300 else b""
    finally:
        connection.close()


def check(status: int, kind: str, body: bytes) -> None:
    """An error has a detail and a code; a server that is busy with waiting runs may say so."""
    assert status < 500 or (status == 503 and b"too_many_waiters" in body), f"status {status}: {body[:300]!r}"
    if status >= 400:
        assert kind.startswith("application/json"), f"status {status} has the type {kind!r}: {body[:300]!r}"
        error = json.loads(body)
        assert error.get("detail") and error.get("code"), f"status {status}: {body[:300]!r}"


def try_route(method: str, path: str) -> None:
    """Raises at the smallest request that breaks a rule."""
    # A run must not execute for long, and a GET that waits for events is left.
    @settings(max_examples=INPUT["examples"], deadline=None, database=None, derandomize=not INPUT["is_random"], suppress_health_check=list(HealthCheck),
              phases=[Phase.generate, Phase.shrink])
    @given(paths(path), queries, st.none() if method == "GET" else bodies, headers)
    def request(path: str, query: str, body: bytes | None, more: dict[str, str]) -> None:
        check(*send(method, path + ("?" + query if query else ""), body, more))

    request()


def main() -> None:
    """All routes, each also after one has failed."""
    for method, path in INPUT["routes"]:
        try:
            try_route(method, path)
        except Exception as error:
            text = str(error) + "".join("\n" + note for note in getattr(error, "__notes__", []))
            print("not ok", method, path, text.replace("\n", "\\n"), flush=True)
        else:
            print("ok", method, path, flush=True)


main()
