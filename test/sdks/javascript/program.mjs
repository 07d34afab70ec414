// What a user of the JavaScript SDK does in a day: the scenario of ../README.md, with its newest version.
import { BulkOperationType, CosmosClient } from "@azure/cosmos";
import assert from "node:assert/strict";

const TENANTS = 40;
const USERS = 5;
const TOTAL = TENANTS * USERS;
const ALL = Array.from({ length: TOTAL }, (_, n) => n);

const client = new CosmosClient({
    endpoint: process.env.COSMOS_ENDPOINT,
    key: process.env.COSMOS_KEY,
    connectionPolicy: { enableBackgroundEndpointRefreshing: false },
});
const keyOf = (tenant, user) => [tenant, user, "s"];
const item = (id, tenant, user, more) => ({ id, tenant, user, session: "s", ...more });
const refused = (call, code) => assert.rejects(call, (error) => error.code === code);

async function create(database) {
    const { container } = await database.containers.create(
        { id: "orders", partitionKey: { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 } },
        { offerThroughput: 30000 },
    );
    const { resources } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(resources.length, 5);
    assert.equal((await container.readOffer()).resource.content.offerThroughput, 30000);
    return container;
}

async function crud(container) {
    const one = container.item("one", keyOf("crud", "u"));
    const created = await container.items.create(item("one", "crud", "u", { n: 1 }));
    assert.equal((await one.read()).resource.n, 1);
    await refused(() => container.items.create(item("one", "crud", "u")), 409);
    const accessCondition = { type: "IfMatch", condition: created.etag };
    await one.replace(item("one", "crud", "u", { n: 2 }), { accessCondition });
    await refused(() => one.replace(item("one", "crud", "u", { n: 9 }), { accessCondition }), 412);
    assert.equal((await container.items.upsert(item("one", "crud", "u", { n: 3 }))).resource.n, 3);
    await one.delete();
    assert.equal((await one.read()).statusCode, 404);
}

async function patch(container) {
    await container.items.create(item("p", "patch", "u", { n: 1, old: true }));
    const one = container.item("p", keyOf("patch", "u"));
    const { resource } = await one.patch([
        { op: "incr", path: "/n", value: 4 },
        { op: "set", path: "/state", value: "paid" },
        { op: "remove", path: "/old" },
    ]);
    assert.deepEqual([resource.n, resource.state, resource.old], [5, "paid", undefined]);
    const operations = [{ op: "set", path: "/state", value: "x" }];
    await refused(() => one.patch({ operations, condition: "FROM c WHERE c.n = 1" }), 412);
}

async function batch(container) {
    const key = keyOf("batch", "u");
    const whole = await container.items.batch(
        [
            { operationType: "Create", resourceBody: item("a", "batch", "u") },
            { operationType: "Upsert", resourceBody: item("b", "batch", "u") },
            { operationType: "Read", id: "a" },
            { operationType: "Delete", id: "b" },
        ],
        key,
    );
    assert.deepEqual(whole.result.map((one) => one.statusCode), [201, 201, 200, 204]);
    const failing = await container.items.batch(
        [
            { operationType: "Create", resourceBody: item("c", "batch", "u") },
            { operationType: "Create", resourceBody: item("a", "batch", "u") },
        ],
        key,
    );
    assert.deepEqual(failing.result.map((one) => one.statusCode), [424, 409]);
    assert.equal((await container.item("c", key).read()).statusCode, 404);
}

async function bulk(container) {
    const operations = ALL.map((n) => {
        const [tenant, user] = [`t${Math.floor(n / USERS)}`, `u${n % USERS}`];
        const resourceBody = item(`order-${n}`, tenant, user, { n, kind: n % 4 });
        return { operationType: BulkOperationType.Create, partitionKey: keyOf(tenant, user), resourceBody };
    });
    const results = await container.items.executeBulkOperations(operations);
    assert.deepEqual(new Set(results.map((one) => one.response?.statusCode)), new Set([201]));
}

async function queries(container) {
    const rows = async (query, options) => (await container.items.query(query, options).fetchAll()).resources;
    const sorted = (numbers) => numbers.sort((a, b) => a - b);
    assert.deepEqual(await rows("SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.kind)"), [TOTAL]);
    assert.deepEqual(await rows("SELECT VALUE SUM(c.n) FROM c WHERE IS_DEFINED(c.kind)"), [(TOTAL * (TOTAL - 1)) / 2]);
    assert.deepEqual(sorted(await rows("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.kind)", { maxItemCount: 7 })), ALL);
    const ordered = "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.kind) ORDER BY c.n";
    assert.deepEqual(await rows(ordered, { maxItemCount: 7 }), ALL);
    assert.deepEqual(await rows(`${ordered} OFFSET 10 LIMIT 5`), [10, 11, 12, 13, 14]);
    // Without 0: this SDK, which merges by itself, drops what is false in a condition, as it does with the service.
    const kinds = "SELECT DISTINCT VALUE c.kind FROM c WHERE c.kind > 0";
    assert.deepEqual(sorted(await rows(kinds)), [1, 2, 3]);
    const groups = await rows("SELECT c.kind, COUNT(1) AS count FROM c WHERE IS_DEFINED(c.kind) GROUP BY c.kind");
    assert.deepEqual(
        groups.sort((a, b) => a.kind - b.kind),
        [0, 1, 2, 3].map((kind) => ({ kind, count: TOTAL / 4 })),
    );
    const parameters = [{ name: "@n", value: 42 }];
    const found = { query: "SELECT VALUE c.id FROM c WHERE c.n = @n AND IS_DEFINED(c.kind)", parameters };
    assert.deepEqual(await rows(found), ["order-42"]);
    assert.deepEqual(await rows("SELECT VALUE c.id FROM c", { partitionKey: keyOf("t7", "u3") }), ["order-38"]);
    const prefix = await rows("SELECT VALUE c.n FROM c ORDER BY c.n", { partitionKey: ["t7"] });
    assert.deepEqual(prefix, [35, 36, 37, 38, 39]);
}

async function resumed(container) {
    const pages = async (query, options) => {
        const found = [];
        let continuationToken;
        do {
            const page = await container.items.query(query, { ...options, continuationToken }).fetchNext();
            found.push(...page.resources);
            continuationToken = page.continuationToken;
        } while (continuationToken);
        return found;
    };
    const filter = "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.kind)";
    const options = { maxItemCount: 30, enableQueryControl: true };
    assert.deepEqual((await pages(filter, options)).sort((a, b) => a - b), ALL);
    assert.deepEqual(await pages(`${filter} ORDER BY c.n`, options), ALL);
}

async function scripts({ scripts }) {
    const kinds = [
        [scripts.storedProcedures, (id) => scripts.storedProcedure(id), {}],
        [scripts.triggers, (id) => scripts.trigger(id), { triggerType: "pre", triggerOperation: "all" }],
        [scripts.userDefinedFunctions, (id) => scripts.userDefinedFunction(id), {}],
    ];
    for (const [all, one, more] of kinds) {
        const definition = { id: "a script", body: "function () {\r\n}", ...more };
        const { resource: made } = await all.create(definition);
        assert.deepEqual({ ...made, ...definition }, made);
        await refused(() => all.create(definition), 409);
        assert.deepEqual((await one("a script").read()).resource, made);
        assert.deepEqual((await all.readAll().fetchAll()).resources, [made]);
        assert.deepEqual((await all.query('SELECT * FROM T WHERE STARTSWITH(T.id,"a ")').fetchAll()).resources, [made]);
        assert.equal((await one("a script").replace({ ...made, body: "x => x" })).resource.body, "x => x");
        await one("a script").delete();
        await refused(() => one("a script").read(), 404);
    }
}

const { database } = await client.databases.create({ id: "javascript" });
const container = await create(database);
for (const step of [crud, patch, batch, bulk, queries, resumed, scripts]) {
    await step(container);
    console.log(`ok ${step.name}`);
}
await database.delete();
client.dispose();
console.log("ok whole");
