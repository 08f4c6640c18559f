# SPDX-License-Identifier: Apache-2.0
"""The store: items, searches, namespaces."""

from langgraph_sdk.errors import UnprocessableEntityError

from tap import connect, scenario


def keys_of(found):
    return [item["key"] for item in found["items"]]


@scenario("store items")
async def items(t):
    store = connect().store
    namespace = ["sdk", "py", "Ännchen"]
    t.equal(await store.get_item(namespace, "k"), None, "get_item returns None when there is no item")
    t.equal(await store.put_item(namespace, "k", {"text": "Hällo", "n": 1}), None, "put_item returns nothing")
    item = await store.get_item(namespace, "k")
    t.equal([item["namespace"], item["key"], item["value"]], [namespace, "k", {"text": "Hällo", "n": 1}],
            "get_item returns the item")
    await store.put_item(namespace, "k", {"text": "two"}, index=["text"], ttl=10)
    second = await store.get_item(namespace, "k", refresh_ttl=False)
    t.equal([second["value"], second["created_at"]], [{"text": "two"}, item["created_at"]],
            "put_item replaces the value and keeps created_at")
    t.ok(second["updated_at"] > item["updated_at"], "updated_at grows")
    await store.delete_item(namespace, "k")
    t.equal(await store.get_item(namespace, "k"), None, "delete_item deletes the item")
    t.equal(await store.delete_item(namespace, "k"), None, "delete_item of nothing succeeds")
    await t.raises(UnprocessableEntityError, store.put_item([], "k", {}), "an empty namespace is an UnprocessableEntityError")


@scenario("store searches")
async def searches(t):
    store = connect().store
    for n in range(1, 13):
        await store.put_item(["search-py", "odd" if n % 2 else "even"], f"k{n}", {"n": n})
    t.equal(keys_of(await store.search_items(["search-py"])), [f"k{n}" for n in range(12, 2, -1)],
            "search_items returns ten items, the last updated first")
    t.equal(keys_of(await store.search_items(["search-py"], limit=1, offset=10, query="n")), ["k2"],
            "limit and offset select a part")
    t.equal(keys_of(await store.search_items(["search-py", "odd"], filter={"n": {"$gt": 3, "$lte": 9}})),
            ["k9", "k7", "k5"], "a filter has operators")
    t.equal(keys_of(await store.search_items(["search"])), [], "a prefix is matched label by label")


@scenario("store namespaces")
async def namespaces(t):
    store = connect().store
    for namespace in (["tree-py", "a"], ["tree-py", "a", "b"], ["tree-py", "c", "b"]):
        await store.put_item(namespace, "k", {})
    t.equal(await store.list_namespaces(prefix=["tree-py"]),
            {"namespaces": [["tree-py", "a"], ["tree-py", "a", "b"], ["tree-py", "c", "b"]]},
            "list_namespaces returns them in order")
    t.equal(await store.list_namespaces(prefix=["tree-py"], suffix=["b"], max_depth=2, limit=1, offset=1),
            {"namespaces": [["tree-py", "c"]]}, "list_namespaces has conditions")
