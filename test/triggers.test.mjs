// Triggers: before and after writes of one item, in one transaction with them.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { callItems, contentOf, eachSize, listAll, newContainer, pathOf } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { errorsOf, execute, flow, storeRaw, trigger } from "./lib/scripts.mjs";
import { sharedServer, startServer } from "./lib/server.mjs";
import { query, unique } from "./lib/wire.mjs";

/* global getContext, __ */

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "triggers" });
const containers = await eachSize(database);
const [[, container]] = containers;

function onEach(name, work) {
    for (const [size, one] of containers) test(`${name} (${size})`, (t) => work(one, unique("key"), t));
}

const pre = (id) => ({ preTriggerInclude: id });
const post = (id) => ({ postTriggerInclude: id });
const PRE = "x-ms-documentdb-pre-trigger-include";
const POST = "x-ms-documentdb-post-trigger-include";

// Bodies that several tests use.
const UPPER = function () {
    const item = getContext().getRequest().getBody();
    item.id = item.id.toUpperCase() + "t1";
    getContext().getRequest().setBody(item);
};
const NOTHING = "function () {}";

// --- Before

onEach("a pre-trigger changes what is written, its id included", async (container, pk) => {
    const upper = await trigger(container, "pre", "all", UPPER);
    const { resource, statusCode } = await container.items.create({ id: "doc1", pk, key: "value" }, pre(upper));
    assert.equal(statusCode, 201);
    assert.equal(resource.id, "DOC1t1");
    assert.deepEqual((await container.item("DOC1t1", pk).read()).resource, resource);
    assert.equal((await container.item("doc1", pk).read()).statusCode, 404);
    const nothing = await trigger(container, "Pre", "Create", NOTHING);
    const same = await container.items.create({ id: "doc2", pk }, { preTriggerInclude: [nothing] });
    assert.deepEqual(contentOf(same.resource), { id: "doc2", pk });
    const lower = await trigger(container, "pre", "create", function () {
        const request = getContext().getRequest();
        const item = request.getBody();
        item.id = item.id.toLowerCase();
        request.setValue("Body", item);
    });
    assert.equal((await container.items.create({ id: "DOC3", pk }, pre(lower))).resource.id, "doc3");
});

test("a pre-trigger sets its body many times, and what counts is the last at the end", async () => {
    const pk = unique("key");
    const often = await trigger(container, "pre", "create", function () {
        for (let i = 0; i < 200; i++) {
            const item = getContext().getRequest().getBody();
            item.count = i;
            getContext().getRequest().setBody(item);
        }
    });
    assert.equal((await container.items.create({ id: "a", pk }, pre(often))).resource.count, 199);
    const late = await trigger(container, "pre", "create", function () {
        const item = getContext().getRequest().getBody();
        getContext().getRequest().setBody(item);
        __.readDocuments(__.getSelfLink(), function () {
            item.late = true;
        });
    });
    assert.equal((await container.items.create({ id: "b", pk }, pre(late))).resource.late, true);
    const computed = await trigger(container, "pre", "create", function () {
        const item = getContext().getRequest().getBody();
        item.total = item.price * 1.2;
        item.at = new Date(86400000);
        getContext().getRequest().setBody(item);
    });
    const { resource } = await container.items.create({ id: "c", pk, price: 10 }, pre(computed));
    assert.deepEqual([resource.total, resource.at], [12, "1970-01-02T00:00:00.000Z"]);
});

test("a pre-trigger has a request and no response", async () => {
    const pk = unique("key");
    const curious = await trigger(container, "pre", "all", function () {
        const context = getContext();
        const request = context.getRequest();
        const nameOf = (work) => {
            try {
                work();
            } catch (error) {
                return error.number === undefined ? error.name : error.number;
            }
            return "fine";
        };
        const item = request.getBody();
        item.seen = [
            nameOf(() => context.getResponse()),
            nameOf(() => request.setValue("Test", "x")),
            nameOf(() => request.setValue("OperationType", "Delete")),
            nameOf(() => __.filter(() => true)),
            nameOf(() => console.log()),
            typeof __.response,
            __.request === request,
            request.getOperationType(),
            arguments.length,
        ];
        request.setBody(item);
    });
    const answer = await callItems(server, container, { method: "POST", key: pk, headers: { [PRE]: curious }, body: { id: "a", pk } });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.test, undefined);
    assert.deepEqual(answer.json.seen, ["TypeError", 400, 403, 400, "fine", "undefined", true, "Create", 0]);
    const { resource } = await container.item("a", pk).replace({ id: "a", pk }, pre(curious));
    assert.equal(resource.seen[7], "Replace");
    assert.equal((await container.items.upsert({ id: "a", pk }, pre(curious))).resource.seen[7], "Upsert");
});

onEach("what a pre-trigger leaves is checked as what a client sends", async (container, pk) => {
    for (const [change, status, substatus] of [
        ["item.id = 'a/b'", 400, 0],
        ["item.id = 5", 400, 0],
        ["delete item.id", 400, 0],
        ["item.pk = 'another'", 400, 1001],
        ["item.text = 'x'.repeat(3 << 20)", 413, 0],
        ["item.id = 'there'", 409, 0],
    ]) {
        await container.items.upsert({ id: "there", pk });
        const body = `function () { const item = getContext().getRequest().getBody(); ${change}; getContext().getRequest().setBody(item); }`;
        const id = await trigger(container, "Pre", "Create", body);
        const answer = await callItems(server, container, { method: "POST", key: pk, headers: { [PRE]: id }, body: { id: "new", pk } });
        assert.equal(answer.status, status, `${change}: ${answer.text}`);
        assert.equal(Number(answer.headers["x-ms-substatus"] ?? 0), substatus, change);
        assert.deepEqual((await listAll(server, container, { key: pk })).map((one) => one.id), ["there"], change);
    }
});

onEach("a pre-trigger numbers items from what is there, for creates and upserts", async (container, pk) => {
    const number = function () {
        const request = getContext().getRequest();
        const item = request.getBody();
        const text = "SELECT VALUE MAX(r.number) FROM r";
        const isAccepted = __.queryDocuments(__.getSelfLink(), text, function (error, found) {
            if (error) throw error;
            item.number = (found.length > 0 ? found[0] : 0) + 1;
        });
        if (!isAccepted) throw new Error("not accepted");
        request.setBody(item);
    };
    const onCreate = await trigger(container, "Pre", "Create", number);
    assert.equal((await container.items.create({ id: "a", pk }, pre(onCreate))).resource.number, 1);
    assert.equal((await container.items.create({ id: "b", pk }, pre(onCreate))).resource.number, 2);
    const onUpsert = await trigger(container, "Pre", "Upsert", number);
    assert.equal((await container.items.upsert({ id: "c", pk }, pre(onUpsert))).resource.number, 3);
    assert.equal((await container.items.upsert({ id: "c", pk }, pre(onUpsert))).resource.number, 4);
});

onEach("a pre-trigger of a delete sees the item, and one of a replace its link", async (container, pk) => {
    const journal = function () {
        const request = getContext().getRequest();
        const item = request.getBody();
        const entry = { id: "entry of " + request.getOperationType(), pk: item.pk, n: item.n, hasLink: typeof item._self === "string" };
        __.createDocument(__.getSelfLink(), entry, function (error) {
            if (error) throw error;
        });
    };
    const id = await trigger(container, "Pre", "All", journal);
    await container.items.create({ id: "a", pk, n: 1 });
    await container.item("a", pk).replace({ id: "a", pk, n: 2 }, pre(id));
    const { statusCode } = await container.item("a", pk).delete(pre(id));
    assert.equal(statusCode, 204);
    const entry = async (of) => contentOf((await container.item(`entry of ${of}`, pk).read()).resource);
    assert.deepEqual(await entry("Replace"), { id: "entry of Replace", pk, n: 2, hasLink: true });
    assert.deepEqual(await entry("Delete"), { id: "entry of Delete", pk, n: 2, hasLink: true });
    assert.equal((await container.item("a", pk).read()).statusCode, 404);
    await refused(container.item("a", pk).delete(pre(id)), 404);
    await refused(container.item("a", pk).replace({ id: "a", pk }, pre(id)), 404);
    assert.equal((await listAll(server, container, { key: pk })).length, 2);
});

// --- After

onEach("a post-trigger sees what was written, and alters what the client gets", async (container, pk) => {
    const altered = await trigger(container, "post", "all", function () {
        const response = getContext().getResponse();
        const item = response.getBody();
        item.id += "9999";
        item.requested = getContext().getRequest().getBody().id;
        response.setBody(item);
    });
    const { resource, etag } = await container.items.create({ id: "a", pk, n: 1 }, post(altered));
    assert.deepEqual([resource.id, resource.requested], ["a9999", "a"]);
    const { resource: stored } = await container.item("a", pk).read();
    assert.deepEqual(contentOf(stored), { id: "a", pk, n: 1 });
    assert.equal(etag, stored._etag);
    assert.equal((await container.item("a9999", pk).read()).statusCode, 404);
});

onEach("both triggers of a request see the same write", async (container, pk) => {
    const upper = await trigger(container, "pre", "create", function () {
        leftBehind = 1; // a global, since nothing declares it
        const item = getContext().getRequest().getBody();
        item.id = item.id.toUpperCase() + "t1";
        getContext().getRequest().setBody(item);
    });
    const checking = await trigger(container, "post", "create", function () {
        const written = getContext().getRequest().getBody().id;
        const answered = getContext().getResponse().getBody();
        if (written !== "DOC1t1") throw "the request has " + written;
        if (answered.id !== "DOC1t1") throw "the response has " + answered.id;
        if (!answered._etag || !answered._rid || !answered._self || !answered._ts) throw "the response has no system properties";
        if (typeof leftBehind !== "undefined") throw "globals outlive a trigger";
    });
    const { resource } = await container.items.create({ id: "doc1", pk }, { ...pre(upper), ...post(checking) });
    assert.equal(resource.id, "DOC1t1");
    const error = await refused(container.items.create({ id: "other", pk }, { ...pre(upper), ...post(checking) }), 400);
    assert.equal(errorsOf(error)[0], "the request has OTHERt1");
    assert.equal((await container.item("OTHERt1", pk).read()).statusCode, 404);
});

test("a post-trigger cannot change the request or make headers", async () => {
    const pk = unique("key");
    const curious = await trigger(container, "post", "all", function () {
        const request = getContext().getRequest();
        const response = getContext().getResponse();
        const nameOf = (work) => {
            try {
                work();
            } catch (error) {
                return error.number === undefined ? error.name : error.number;
            }
            return "fine";
        };
        const item = response.getBody();
        item.seen = [
            nameOf(() => request.setBody({})),
            nameOf(() => request.setValue("Body", {})),
            nameOf(() => response.setValue("Test", "x")),
            request.getOperationType(),
            arguments.length,
        ];
        item.quotas = [response.getResourceQuotaCurrentUsage(), response.getMaxResourceQuota()];
        response.setBody(item);
    });
    const answer = await callItems(server, container, { method: "POST", key: pk, headers: { [POST]: curious }, body: { id: "a", pk } });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.test, undefined);
    assert.deepEqual(answer.json.seen, ["TypeError", "TypeError", 400, "Create", 0]);
    for (const text of answer.json.quotas) assert.match(text, /collectionSize=/);
    assert.match(answer.headers["x-ms-resource-quota"], /collectionSize=/);
    assert.match(answer.headers["x-ms-resource-usage"], /collectionSize=/);
});

onEach("a post-trigger that finds and deletes the new item leaves nothing, and the answer is 201", async (container, pk) => {
    const removing = await trigger(container, "post", "create", function () {
        const { id } = getContext().getResponse().getBody();
        const query = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] };
        __.queryDocuments(__.getSelfLink(), query, function (error, found) {
            if (error) throw error;
            if (found.length !== 1) throw new Error("found " + found.length);
            __.deleteDocument(found[0]._self, function (failed) {
                if (failed) throw failed;
            });
        });
    });
    const { statusCode, resource } = await container.items.create({ id: "short", pk }, post(removing));
    assert.equal(statusCode, 201);
    assert.equal(resource.id, "short");
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
});

onEach("a post-trigger keeps a sum beside the items, for every kind of write", async (container, pk) => {
    await container.items.create({ id: "sum", pk, count: 0 });
    const counting = await trigger(container, "Post", "All", function () {
        const operation = getContext().getRequest().getOperationType();
        const step = { Create: 1, Delete: -1 }[operation] || 0;
        __.readDocument(__.getAltLink() + "/docs/sum", function (error, sum) {
            if (error) throw error;
            sum.count += step;
            sum[operation] = (sum[operation] || 0) + 1;
            __.replaceDocument(sum._self, sum, { etag: sum._etag }, function (failed) {
                if (failed) throw failed;
            });
        });
    });
    await Promise.all(Array.from({ length: 10 }, (_, i) => container.items.create({ id: `${i}`, pk }, post(counting))));
    await container.item("1", pk).replace({ id: "1", pk, n: 1 }, post(counting));
    await container.items.upsert({ id: "2", pk, n: 1 }, post(counting));
    for (const id of ["3", "4"]) assert.equal((await container.item(id, pk).delete(post(counting))).statusCode, 204);
    const { resource } = await container.item("sum", pk).read();
    assert.deepEqual(contentOf(resource), { id: "sum", pk, count: 8, Create: 10, Replace: 1, Upsert: 1, Delete: 2 });
});

// --- Failures

const FAILURES = [
    ["pre", "throw new Error(409, 'x')", 409],
    ["pre", "throw new Error('x')", 0],
    ["pre", "getContext().abort(new Error(17, 'x'))", 17],
    ["pre", "__.createDocument(__.getSelfLink(), { id: 'beside', pk: 'another key' })", 400],
    ["pre", "this is no JavaScript", 65535],
    ["post", "throw new Error(4444, 'x')", 4444],
    ["post", "throw 'text'", 0],
    ["post", "__.createDocument(__.getSelfLink(), getContext().getResponse().getBody())", 409],
    ["post", "getContext().getRequest().setBody({})", 0],
    ["post", "this is no JavaScript", 65535],
];

for (const [type, statement, substatus] of FAILURES)
    onEach(`a ${type}-trigger that fails undoes all of the request: ${statement}`, async (container, pk) => {
        const { resource: before } = await container.items.create({ id: "old", pk, n: 1 });
        const write = "__.createDocument(__.getSelfLink(), { id: 'beside', pk: getContext().getRequest().getBody().pk });";
        const id = await trigger(container, type, "All", `function () { ${substatus === 65535 ? "" : write} ${statement}; }`);
        const options = type === "pre" ? pre(id) : post(id);
        const code = { substatus };
        await refused(container.items.create({ id: "new", pk }, options), 400, code);
        await refused(container.items.upsert({ id: "old", pk, n: 2 }, options), 400, code);
        await refused(container.item("old", pk).replace({ id: "old", pk, n: 2 }, options), 400, code);
        // After a delete the response is empty, so this statement fails in another way.
        if (substatus === 409) assert.equal((await container.item("old", pk).delete(options).catch((error) => error)).code, 400);
        else await refused(container.item("old", pk).delete(options), 400, code);
        assert.deepEqual(await listAll(server, container, { key: pk }), [before]);
    });

test("a trigger that does not end is 408, and nothing is written", async () => {
    const pk = unique("key");
    const endless = await trigger(container, "Post", "Create", "function () { for (;;); }");
    await refused(container.items.create({ id: "a", pk }, post(endless)), 408);
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
});

test("a trigger has to exist, and be of the right kind for the operation", async () => {
    const pk = unique("key");
    await container.items.create({ id: "there", pk });
    const of = {};
    for (const type of ["Pre", "Post"])
        for (const operation of ["All", "Create", "Replace", "Delete", "Upsert", "Update"])
            of[`${type} ${operation}`] = await trigger(container, type, operation, NOTHING);
    const create = (headers) => callItems(server, container, { method: "POST", key: pk, headers, body: { id: unique("a"), pk } });
    const upsert = (headers) => create({ ...headers, "x-ms-documentdb-is-upsert": "true" });
    const replace = (headers) => callItems(server, container, { method: "PUT", id: "there", key: pk, headers, body: { id: "there", pk } });
    const remove = async (headers) => {
        await container.items.upsert({ id: "doomed", pk });
        return callItems(server, container, { method: "DELETE", id: "doomed", key: pk, headers });
    };
    for (const [type, header] of [["Pre", PRE], ["Post", POST]])
        for (const [write, status, covered] of [
            [create, 201, ["All", "Create"]],
            [upsert, 201, ["All", "Upsert"]],
            [replace, 200, ["All", "Replace", "Update"]],
            [remove, 204, ["All", "Delete"]],
        ])
            for (const operation of ["All", "Create", "Replace", "Delete", "Upsert", "Update"]) {
                const answer = await write({ [header]: of[`${type} ${operation}`] });
                const expected = covered.includes(operation) ? status : 400;
                assert.equal(answer.status, expected, `${type} ${operation} on ${write.name}: ${answer.text}`);
            }
    const count = (await listAll(server, container, { key: pk })).length;
    for (const headers of [
        { [PRE]: of["Post All"] },
        { [POST]: of["Pre All"] },
        { [PRE]: "none" },
        { [POST]: "none" },
        { [PRE]: `${of["Pre All"]},${of["Pre Create"]}` },
        { [POST]: `${of["Post All"]},${of["Post Create"]}` },
    ])
        errorAnswer(await create(headers), 400, "BadRequest");
    assert.equal((await listAll(server, container, { key: pk })).length, count, "nothing was written");
    const both = await create({ [PRE]: of["Pre All"], [POST]: of["Post All"] });
    assert.equal(both.status, 201, both.text);
});

test("letter case of type and operation does not matter", async () => {
    const pk = unique("key");
    for (const [i, [type, operation]] of [["pre", "all"], ["PRE", "CREATE"], ["Pre", "create"]].entries()) {
        const id = await trigger(container, type, operation, UPPER);
        assert.equal((await container.items.create({ id: `x${i}`, pk }, pre(id))).resource.id, `X${i}t1`);
    }
});

test("triggers are named with blanks and other letters", async () => {
    const pk = unique("key");
    for (const id of [" with blanks", "naïve", "a+b=c.d:e~f", "per%20cent"]) {
        await storeRaw(server, container, "triggers", { id, body: UPPER.toString(), triggerType: "Pre", triggerOperation: "All" });
        if (!/^[\x21-\x7e]+$/.test(id)) continue; // a header cannot name it
        assert.equal((await container.items.create({ id: `i ${id.length}`, pk }, pre(id))).resource.id, `I ${id.length}t1`);
    }
});

// --- Where none run

test("triggers run only if they are named, and not for reads, queries, batches or scripts", async () => {
    const pk = unique("key");
    const failing = await trigger(container, "Pre", "All", "function () { throw new Error(7, 'it ran'); }");
    const failed = await trigger(container, "Post", "All", "function () { throw new Error(8, 'it ran'); }");
    const named = { [PRE]: failing, [POST]: failed };
    await container.items.create({ id: "a", pk });
    assert.equal((await callItems(server, container, { id: "a", key: pk, headers: named })).status, 200);
    assert.equal((await callItems(server, container, { key: pk, headers: named })).status, 200);
    const asked = await query(server, `${pathOf(container)}/docs`, "SELECT * FROM c", { headers: { ...named, "x-ms-documentdb-partitionkey": JSON.stringify([pk]) } });
    assert.equal(asked.status, 200, asked.text);
    const other = { "x-ms-pre-trigger-include": failing, "x-ms-documentdb-pre-trigger-exclude": failing };
    assert.equal((await callItems(server, container, { method: "POST", key: pk, headers: other, body: { id: "b", pk } })).status, 201);
    const { result } = await container.items.batch([{ operationType: "Create", resourceBody: { id: "c", pk } }], pk);
    assert.deepEqual(result.map(({ statusCode }) => statusCode), [201]);
    const body = flow(async ({ call, self }, key) => (await call("createDocument", self, { id: "d", pk: key }))[0].id);
    assert.equal(await execute(container, pk, body, pk), "d");
    const within = await trigger(container, "Pre", "Create", function () {
        __.createDocument(__.getSelfLink(), { id: "inner", pk: getContext().getRequest().getBody().pk });
    });
    assert.equal((await container.items.create({ id: "outer", pk }, pre(within))).statusCode, 201);
    assert.deepEqual((await listAll(server, container, { key: pk })).map(({ id }) => id).sort(), ["a", "b", "c", "d", "inner", "outer"]);
});

test("a patch is a replace to triggers", async () => {
    const pk = unique("key");
    await container.items.create({ id: "a", pk, n: 1 });
    const seen = await trigger(container, "Pre", "Replace", function () {
        const item = getContext().getRequest().getBody();
        item.seen = [getContext().getRequest().getOperationType(), item.n];
        getContext().getRequest().setBody(item);
    });
    const { resource } = await container.item("a", pk).patch([{ op: "incr", path: "/n", value: 1 }], pre(seen));
    assert.deepEqual([resource.n, resource.seen], [2, ["Replace", 2]]);
});

test("triggers work through a key of null, none, and several levels", async () => {
    const upper = (to) => trigger(to, "Pre", "All", UPPER);
    const id = await upper(container);
    const word = unique("n").toUpperCase();
    assert.equal((await container.items.create({ id: word, pk: null }, pre(id))).resource.id, `${word}t1`);
    assert.equal((await container.items.create({ id: word }, pre(id))).resource.id, `${word}t1`);
    const partitionKey = { paths: ["/a", "/b"], kind: "MultiHash", version: 2 };
    const tree = await newContainer(database, undefined, { partitionKey });
    const inTree = await upper(tree);
    assert.equal((await tree.items.create({ id: "x", a: 1, b: "y" }, pre(inTree))).resource.id, "Xt1");
    assert.equal((await tree.item("Xt1", [1, "y"]).read()).resource.b, "y");
});

// --- With ETags, content responses, charges, restarts

onEach("an ETag of the request is checked against what is stored", async (container, pk) => {
    const { resource } = await container.items.create({ id: "a", pk, n: 1 });
    const id = await trigger(container, "Pre", "Replace", "function () {}");
    const condition = (etag) => ({ ...pre(id), accessCondition: { type: "IfMatch", condition: etag } });
    await refused(container.item("a", pk).replace({ id: "a", pk, n: 2 }, condition('"stale"')), 412);
    const replaced = await container.item("a", pk).replace({ id: "a", pk, n: 2 }, condition(resource._etag));
    assert.equal(replaced.resource.n, 2);
});

test("a client that wants no content gets none, and the trigger ran all the same", async () => {
    const pk = unique("key");
    const id = await trigger(container, "Pre", "Create", UPPER);
    const headers = { [PRE]: id, prefer: "return=minimal" };
    const answer = await callItems(server, container, { method: "POST", key: pk, headers, body: { id: "a", pk } });
    assert.equal(answer.status, 201);
    assert.equal(answer.text, "");
    assert.equal((await container.item("At1", pk).read()).resource.id, "At1");
});

test("a write with triggers costs more than one without, and is one write of the partition", async () => {
    const pk = unique("key");
    const writing = await trigger(container, "Post", "Create", function () {
        const { id, pk: key } = getContext().getResponse().getBody();
        for (let i = 0; i < 5; i++) __.createDocument(__.getSelfLink(), { id: id + i, pk: key });
    });
    const plain = await container.items.create({ id: "a", pk });
    const costly = await container.items.create({ id: "b", pk }, post(writing));
    assert.ok(costly.requestCharge > plain.requestCharge, `${costly.requestCharge} and ${plain.requestCharge} RU`);
    assert.equal(Number(costly.headers.lsn), Number(plain.headers.lsn) + 1);
    assert.equal((await listAll(server, container, { key: pk })).length, 7);
});

test("triggers outlive a restart", async (t) => {
    const own = await startServer(t, { args: ["--durability", "sync"] });
    const made = await clientOf(own).databases.create({ id: "own" });
    const kept = await newContainer(made.database);
    const id = await trigger(kept, "Pre", "Create", UPPER);
    await own.restart();
    const again = clientOf(own).database("own").container(kept.id);
    assert.equal((await again.items.create({ id: "a", pk: "k" }, pre(id))).resource.id, "At1");
});

// --- A sample: a unique constraint that a trigger keeps

const UNIQUE = function () {
    const context = getContext();
    const collection = context.getCollection();
    const request = context.getRequest();
    const operation = request.getOperationType();
    const item = request.getBody();
    const self = collection.getSelfLink();
    const check = (error) => {
        if (error) throw error;
    };
    const meta = (value) => ({ id: "unique-" + value, pk: item.pk, isMeta: true, value, owner: item.id });

    // The entry of an item is found by the item's own id before the change.
    const release = (id, then) => {
        const query = { query: "SELECT * FROM c WHERE c.isMeta = true AND c.owner = @id", parameters: [{ name: "@id", value: id }] };
        const isAccepted = collection.queryDocuments(self, query, function (error, found) {
            check(error);
            if (found.length === 0) return then();
            collection.deleteDocument(found[0]._self, function (failed) {
                check(failed);
                then();
            });
        });
        if (!isAccepted) throw new Error("not accepted");
    };
    const take = () => collection.createDocument(self, meta(item.u), check);
    if (operation === "Create") take();
    else if (operation === "Delete") release(item.id, () => {});
    else if (operation === "Upsert") release(item.id, take);
    else
        collection.readDocument(item._self, function (error, old) {
            check(error);
            release(old.id, take);
        });
};

onEach("a unique constraint is kept by a trigger, over every kind of write", async (container, pk) => {
    const id = await trigger(container, "Pre", "All", UNIQUE);
    const entries = async () => {
        const items = await listAll(server, container, { key: pk });
        return items.filter(({ isMeta }) => isMeta).map(({ value, owner }) => [value, owner]).sort();
    };
    await container.items.create({ id: "a", pk, u: "one" }, pre(id));
    assert.deepEqual(await entries(), [["one", "a"]]);
    await refused(container.items.create({ id: "b", pk, u: "one" }, pre(id)), 400, { substatus: 409 });
    await container.items.create({ id: "b", pk, u: "two" }, pre(id));
    await container.item("a", pk).replace({ id: "a", pk, u: "three" }, pre(id));
    assert.deepEqual(await entries(), [["three", "a"], ["two", "b"]]);
    await refused(container.item("a", pk).replace({ id: "a", pk, u: "two" }, pre(id)), 400, { substatus: 409 });
    await container.item("a", pk).replace({ id: "renamed", pk, u: "three" }, pre(id));
    assert.deepEqual(await entries(), [["three", "renamed"], ["two", "b"]]);
    await container.items.upsert({ id: "b", pk, u: "four" }, pre(id));
    await container.items.upsert({ id: "c", pk, u: "five" }, pre(id));
    await refused(container.items.upsert({ id: "c", pk, u: "three" }, pre(id)), 400, { substatus: 409 });
    assert.deepEqual(await entries(), [["five", "c"], ["four", "b"], ["three", "renamed"]]);
    await container.item("b", pk).delete(pre(id));
    await container.items.create({ id: "d", pk, u: "four" }, pre(id));
    assert.deepEqual(await entries(), [["five", "c"], ["four", "d"], ["three", "renamed"]]);
});
