"""What a user of the Python SDK does in a day: the scenario of ../README.md, in Python."""
import asyncio
import os

from azure.cosmos import CosmosClient, PartitionKey, documents, exceptions
from azure.cosmos.aio import CosmosClient as AsyncClient

ENDPOINT = os.environ["COSMOS_ENDPOINT"]
KEY = os.environ["COSMOS_KEY"]
TENANTS = 40
USERS = 5


def expect(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, found {found!r}")


def expect_status(status, call, what):
    try:
        call()
    except exceptions.CosmosHttpResponseError as error:
        expect(error.status_code, status, what)
        return error
    raise AssertionError(f"{what}: expected a refusal with {status}")


def order(tenant, user):
    n = tenant * USERS + user
    return {"id": f"order-{n}", "tenant": f"t{tenant}", "user": f"u{user}", "session": "s", "n": n, "kind": n % 4}


def create(client):
    database = client.create_database("python")
    keys = PartitionKey(path=["/tenant", "/user", "/session"], kind="MultiHash")
    container = database.create_container("orders", keys, offer_throughput=30000)
    expect(len(list(container.read_feed_ranges())), 5, "feed ranges")
    expect(container.get_throughput().offer_throughput, 30000, "throughput")
    return container


def crud(container):
    key = ["crud", "u", "s"]
    item = {"id": "one", "tenant": "crud", "user": "u", "session": "s", "total": 1}
    created = container.create_item(item)
    expect(container.read_item("one", key)["total"], 1, "read")
    expect_status(409, lambda: container.create_item(item), "second create")
    item["total"] = 2
    stale = created["_etag"]
    container.replace_item("one", item, etag=stale, match_condition=IF_NOT_MODIFIED)
    error = expect_status(
        412,
        lambda: container.replace_item("one", item, etag=stale, match_condition=IF_NOT_MODIFIED),
        "replace with an old ETag",
    )
    expect(isinstance(error, exceptions.CosmosAccessConditionFailedError), True, "kind of the refusal")
    item["total"] = 3
    expect(container.upsert_item(item)["total"], 3, "upsert")
    container.delete_item("one", key)
    expect_status(404, lambda: container.read_item("one", key), "read after delete")


def patch(container):
    key = ["patch", "u", "s"]
    container.create_item({"id": "p", "tenant": "patch", "user": "u", "session": "s", "count": 1, "old": True})
    patched = container.patch_item(
        "p",
        key,
        [
            {"op": "incr", "path": "/count", "value": 4},
            {"op": "set", "path": "/state", "value": "paid"},
            {"op": "remove", "path": "/old"},
        ],
    )
    expect((patched["count"], patched["state"], "old" in patched), (5, "paid", False), "patch")
    expect_status(
        412,
        lambda: container.patch_item(
            "p", key, [{"op": "set", "path": "/state", "value": "x"}], filter_predicate="FROM c WHERE c.count = 1"
        ),
        "patch whose condition is not met",
    )


def batch(container):
    key = ["batch", "u", "s"]

    def item(name, **more):
        return {"id": name, "tenant": "batch", "user": "u", "session": "s", **more}

    results = container.execute_item_batch(
        [("create", (item("a"),)), ("upsert", (item("b"),)), ("read", ("a",)), ("delete", ("b",))], key
    )
    expect([result["statusCode"] for result in results], [201, 201, 200, 204], "batch")
    try:
        container.execute_item_batch([("create", (item("c"),)), ("create", (item("a"),))], key)
        raise AssertionError("a batch with a conflict was accepted")
    except exceptions.CosmosBatchOperationError as error:
        expect(error.error_index, 1, "operation that failed")
    expect_status(404, lambda: container.read_item("c", key), "what a failed batch created")


async def bulk():
    async with AsyncClient(ENDPOINT, KEY) as client:
        container = client.get_database_client("python").get_container_client("orders")
        orders = [order(tenant, user) for tenant in range(TENANTS) for user in range(USERS)]
        await asyncio.gather(*(container.upsert_item(one) for one in orders))
        await asyncio.gather(*(container.upsert_item(one) for one in orders))


def queries(container):
    total = TENANTS * USERS

    def everywhere(text, **options):
        return list(container.query_items(text, enable_cross_partition_query=True, **options))

    expect(everywhere("SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.n)"), [total], "count")
    expect(everywhere("SELECT VALUE SUM(c.n) FROM c"), [total * (total - 1) // 2], "sum")
    ordered = everywhere("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n DESC", max_item_count=7)
    expect(ordered, list(range(total - 1, -1, -1)), "order")
    # This SDK merges by itself, as with the service, and has not learnt to join groups.
    by_kind = "SELECT c.kind, COUNT(1) AS count FROM c WHERE IS_DEFINED(c.kind) GROUP BY c.kind"
    expect_status(400, lambda: everywhere(by_kind), "groups over partitions")
    expect(everywhere("SELECT VALUE SUM(c.id) FROM c"), [None], "an aggregate that is undefined")
    kinds = everywhere("SELECT DISTINCT VALUE c.kind FROM c WHERE IS_DEFINED(c.kind)")
    expect(sorted(kinds), [0, 1, 2, 3], "distinct")
    page = everywhere("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n OFFSET 10 LIMIT 5")
    expect(page, [10, 11, 12, 13, 14], "offset and limit")
    found = everywhere("SELECT VALUE c.id FROM c WHERE c.n = @n", parameters=[{"name": "@n", "value": 42}])
    expect(found, ["order-42"], "parameter")
    whole = container.query_items("SELECT VALUE c.id FROM c", partition_key=["t7", "u3", "s"])
    expect(list(whole), ["order-38"], "whole key")
    prefix = container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", partition_key=["t7"])
    expect(list(prefix), [35, 36, 37, 38, 39], "prefix of the key")
    by_range = []
    for feed_range in container.read_feed_ranges():
        by_range += list(container.query_items("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n)", feed_range=feed_range))
    expect(sorted(by_range), list(range(total)), "feed ranges together")


def resumed(container):
    pages = container.query_items("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n)", partition_key=["t3"], max_item_count=2).by_page()
    first = list(next(pages))
    rest = container.query_items("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n)", partition_key=["t3"], max_item_count=2)
    found = first + [n for page in rest.by_page(pages.continuation_token) for n in page]
    expect(sorted(found), [15, 16, 17, 18, 19], "pages resumed by their token")


def scripts(container):
    trigger = {"triggerType": documents.TriggerType.Pre, "triggerOperation": documents.TriggerOperation.All}
    for kind, more in (("stored_procedure", {}), ("trigger", trigger), ("user_defined_function", {})):
        def call(verb, *arguments, noun=kind, **options):
            return getattr(container.scripts, f"{verb}_{noun}")(*arguments, **options)

        def of_all(verb, *arguments, noun=f"{kind}s", **options):
            return list(getattr(container.scripts, f"{verb}_{noun}")(*arguments, **options))

        definition = {"id": "a script", "body": "function () {\r\n}", **more}
        made = call("create", definition)
        expect({name: made[name] for name in definition}, definition, kind)
        expect_status(409, lambda: call("create", definition), "a second one")
        expect(call("get", "a script"), made, "read")
        expect(of_all("list"), [made], "list")
        by_id = [{"name": "@id", "value": "a script"}]
        expect(of_all("query", "SELECT * FROM root r WHERE r.id=@id", by_id), [made], "query")
        expect(call("replace", made, {**made, "body": "x => x"})["body"], "x => x", "replaced")
        call("delete", "a script")
        expect_status(404, lambda: call("get", "a script"), "after its end")


def main():
    client = CosmosClient(ENDPOINT, KEY)
    container = create(client)
    for step in (crud, patch, batch):
        step(container)
        print(f"ok {step.__name__}", flush=True)
    asyncio.run(bulk())
    print("ok bulk", flush=True)
    for step in (queries, resumed, scripts):
        step(container)
        print(f"ok {step.__name__}", flush=True)
    client.delete_database("python")
    print("ok whole", flush=True)


if __name__ == "__main__":
    from azure.core import MatchConditions

    IF_NOT_MODIFIED = MatchConditions.IfNotModified
    main()
