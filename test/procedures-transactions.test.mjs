// Transactions of stored procedures: all or nothing, their own writes, ETags, and the partition key they are bound to.
import assert from "node:assert/strict";
import test from "node:test";

import { PartitionKeyBuilder } from "@azure/cosmos";

import { errorAnswer, refused } from "./lib/check.mjs";
import { uniqueKeys } from "./lib/definition.mjs";
import { contentOf, eachSize, listAll, newContainer, pathOf, sameItems } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { execute, executeRaw, flow, procedure } from "./lib/scripts.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, unique } from "./lib/wire.mjs";

/* global getContext */

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "transactions" });
const containers = await eachSize(database);
const [[, container]] = containers;

function onEach(name, work) {
    for (const [size, one] of containers) test(`${name} (${size})`, (t) => work(one, unique("key"), t));
}

// --- Transactions

onEach("what a procedure writes is there when it has answered", async (container, pk) => {
    await container.items.create({ id: "old", pk, n: 1 });
    await container.items.create({ id: "doomed", pk });
    const body = flow(async ({ call, self, link }, key) => {
        const [created, o1] = await call("createDocument", self, { id: "new", pk: key, n: 1 });
        const [upserted, o2] = await call("upsertDocument", self, { id: "up", pk: key, n: 2 });
        const [replaced, o3] = await call("replaceDocument", link("old"), { id: "old", pk: key, n: 3 });
        const [o4] = await call("deleteDocument", link("doomed"));
        const [again, o5] = await call("upsertDocument", self, { id: "up", pk: key, n: 4 });
        return { items: [created, again, replaced], first: upserted, codes: [o1, o2, o3, o4, o5].map((o) => o.statusCode) };
    });
    const { items, first, codes } = await execute(container, pk, body, pk);
    assert.deepEqual(codes, [201, 201, 200, 204, 200]);
    assert.notEqual(first._etag, items[1]._etag);
    assert.equal(first._rid, items[1]._rid);
    sameItems(await listAll(server, container, { key: pk }), items);
    for (const item of items) assert.deepEqual((await container.item(item.id, pk).read()).resource, item, "with its ETag and _ts");
    const { resources } = await container.items.query("SELECT * FROM c WHERE c.n >= 3 ORDER BY c.n", { partitionKey: pk }).fetchAll();
    assert.deepEqual(resources.map(({ id }) => id), ["old", "up"]);
});

onEach("a procedure sees its own writes, in reads, lists and queries", async (container, pk) => {
    for (let i = 0; i < 5; i++) await container.items.create({ id: `i${i}`, pk, n: i });
    const body = flow(async ({ call, self, link, failure }, key) => {
        const seen = {};
        const ids = async (query) => (await call("queryDocuments", self, query))[0];
        await call("createDocument", self, { id: "new", pk: key, n: 10 });
        seen.byId = await ids("SELECT VALUE c.id FROM c WHERE c.id = 'new'");
        await call("replaceDocument", link("i1"), { id: "i1", pk: key, n: 11 });
        seen.byNumber = await ids("SELECT VALUE c.id FROM c WHERE c.n > 4 ORDER BY c.n DESC");
        seen.old = await ids("SELECT VALUE c.id FROM c WHERE c.n = 1");
        await call("deleteDocument", link("i2"));
        seen.count = await ids("SELECT VALUE COUNT(1) FROM c");
        seen.max = await ids({ query: "SELECT VALUE MAX(c.n) FROM c WHERE c.n < @n", parameters: [{ name: "@n", value: 11 }] });
        seen.gone = (await failure(call("readDocument", link("i2")))).number;
        await call("replaceDocument", link("i3"), { id: "renamed", pk: key, n: 3 });
        seen.renamed = (await call("readDocument", link("renamed")))[0].n;
        seen.before = (await failure(call("readDocument", link("i3")))).number;
        const [first] = await call("readDocument", link("i4"));
        await call("deleteDocument", link("i4"));
        const [second] = await call("createDocument", self, { id: "i4", pk: key, n: 44 });
        seen.isNew = first._rid !== second._rid;
        seen.list = (await call("readDocuments", self))[0].map(({ id }) => id).sort();
        seen.group = await ids("SELECT c.n > 5 AS large, COUNT(1) AS count FROM c GROUP BY c.n > 5");
        return seen;
    });
    const { group, ...seen } = await execute(container, pk, body, pk);
    assert.deepEqual(seen, {
        byId: ["new"],
        byNumber: ["i1", "new"],
        old: [],
        count: [5],
        max: [10],
        gone: 404,
        renamed: 3,
        before: 404,
        isNew: true,
        list: ["i0", "i1", "i4", "new", "renamed"],
    });
    group.sort((a, b) => a.count - b.count);
    assert.deepEqual(group, [
        { large: false, count: 2 },
        { large: true, count: 3 },
    ]);
    const stored = await listAll(server, container, { key: pk });
    assert.deepEqual(stored.map(({ id, n }) => [id, n]).sort(), [["i0", 0], ["i1", 11], ["i4", 44], ["new", 10], ["renamed", 3]]);
});

// Each makes, changes and removes an item and then fails in another way.
const WRITES = `
    const c = getContext().getCollection(), self = c.getSelfLink(), alt = c.getAltLink();
    const check = (error) => { if (error) throw error; };
    c.createDocument(self, { id: "new", pk: key }, check);
    c.upsertDocument(self, { id: "newer", pk: key }, check);
    c.replaceDocument(alt + "/docs/kept", { id: "kept", pk: key, n: 2 }, check);
    c.deleteDocument(alt + "/docs/doomed", check);`;
const last = (statement) => `function (key) { ${WRITES} c.readDocuments(self, function () { ${statement} }); }`;
const FAILURES = [
    ["throws after its writes were queued", `function (key) { ${WRITES} throw new Error("at once"); }`, 0],
    ["throws in a callback", last("throw new Error('late');"), 0],
    ["throws a number", last("throw new Error(4321, 'late');"), 4321],
    ["throws a string", last("throw 'text';"), 0],
    ["aborts", last("getContext().abort(new Error(9, 'no'));"), 9],
    ["aborts and goes on", last("try { getContext().abort('no'); } catch (e) {} c.createDocument(self, { id: 'x', pk: key });"), 0],
    ["has an operation that fails without a callback", last("c.createDocument(self, { id: 'new', pk: key });"), 409],
    ["reads without a callback what is not there", last("c.readDocument(alt + '/docs/none');"), 404],
    ["sets a response that is too large", last("getContext().getResponse().setBody('x'.repeat(6 << 20));"), 413],
    ["calls with too few arguments", last("c.createDocument(self);"), 400],
    ["writes to another key", last("c.createDocument(self, { id: 'y', pk: 'another' });"), 400],
    ["has a predicate that throws", last("c.filter(function () { throw new Error(8, 'p'); });"), 8],
    ["overflows its stack", last("(function f() { f(); })();"), 0],
];

for (const [name, body, substatus] of FAILURES)
    onEach(`nothing is left of a procedure that ${name}`, async (container, pk) => {
        const before = [];
        for (const id of ["kept", "doomed"]) before.push((await container.items.create({ id, pk, n: 1 })).resource);
        await refused(execute(container, pk, body, pk), 400, { substatus });
        const after = await listAll(server, container, { key: pk });
        assert.deepEqual(after.sort((a, b) => (a.id < b.id ? 1 : -1)), before, "also ETags and times");
        const { resources } = await container.items.query("SELECT VALUE COUNT(1) FROM c", { partitionKey: pk }).fetchAll();
        assert.deepEqual(resources, [2]);
    });

onEach("an error that a callback handles leaves the rest of the transaction", async (container, pk) => {
    await container.items.create({ id: "there", pk });
    const body = function (key) {
        const c = getContext().getCollection();
        const seen = [];
        c.createDocument(c.getSelfLink(), { id: "before", pk: key });
        c.createDocument(c.getSelfLink(), { id: "there", pk: key }, function (error, doc) {
            seen.push(error.number, error instanceof Error, typeof error.message, JSON.parse(JSON.stringify(error)).number, doc === undefined);
            getContext().getResponse().setBody(seen);
        });
        c.createDocument(c.getSelfLink(), { id: "after", pk: key });
    };
    assert.deepEqual(await execute(container, pk, body, pk), [409, true, "string", 409, true]);
    const stored = await listAll(server, container, { key: pk });
    assert.deepEqual(stored.map(({ id }) => id).sort(), ["after", "before", "there"]);
});

test("unique keys, sizes and ids are checked by each operation", async () => {
    const keyed = await newContainer(database, undefined, uniqueKeys(["/u"]));
    await keyed.items.create({ id: "a", pk: "k", u: 1 });
    const body = flow(async ({ call, self, failure, link }, key) => {
        const make = (item, ...rest) => failure(call("createDocument", self, { pk: key, ...item }, ...rest));
        const numbers = [];
        numbers.push((await make({ id: "b", u: 1 })).number);
        await call("createDocument", self, { id: "c", pk: key, u: 2 });
        numbers.push((await make({ id: "d", u: 2 })).number);
        await call("deleteDocument", link("a"));
        await call("createDocument", self, { id: "e", pk: key, u: 1 });
        numbers.push((await make({ id: "large", u: 5, text: "x".repeat(3 << 20) })).number);
        numbers.push((await make({ id: "a/b", u: 6 })).number);
        numbers.push((await make({ id: 7, u: 7 })).number);
        numbers.push((await make({ id: "x".repeat(1100), u: 8 })).number);
        return numbers;
    });
    assert.deepEqual(await execute(keyed, "k", body, "k"), [409, 409, 413, 400, 400, 400]);
    assert.deepEqual((await listAll(server, keyed)).map(({ id }) => id).sort(), ["c", "e"]);
    await refused(keyed.items.create({ id: "f", pk: "k", u: 1 }), 409);
});

onEach("ETags guard replaces, upserts and deletes; a read may find nothing new", async (container, pk) => {
    const { resource: item } = await container.items.create({ id: "a", pk, n: 1 });
    const body = flow(async ({ call, self, link, failure }, key, etag) => {
        const numbers = [];
        const stale = { etag: '"stale"' };
        numbers.push((await failure(call("replaceDocument", link("a"), { id: "a", pk: key, n: 2 }, stale))).number);
        numbers.push((await failure(call("upsertDocument", self, { id: "a", pk: key, n: 2 }, stale))).number);
        numbers.push((await failure(call("deleteDocument", link("a"), stale))).number);
        const [same, o] = await call("readDocument", link("a"), { ifNoneMatch: etag });
        const [changed] = await call("replaceDocument", link("a"), { id: "a", pk: key, n: 2 }, { etag });
        numbers.push((await failure(call("replaceDocument", link("a"), { id: "a", pk: key, n: 3 }, { etag }))).number);
        const [again, o2] = await call("readDocument", link("a"), { ifNoneMatch: etag });
        const [third] = await call("upsertDocument", self, { id: "a", pk: key, n: 4 }, { etag: changed._etag });
        return { numbers, same: same === undefined, notModified: o.notModified, n: again.n, later: !!o2.notModified, etag: third._etag };
    });
    const { etag, ...seen } = await execute(container, pk, body, pk, item._etag);
    assert.deepEqual(seen, { numbers: [412, 412, 412, 412], same: true, notModified: true, n: 2, later: false });
    const { resource } = await container.item("a", pk).read();
    assert.equal(resource._etag, etag, "the version that the script saw is the stored one");
    assert.equal(resource.n, 4);
    const accessCondition = { type: "IfMatch", condition: etag };
    await container.item("a", pk).replace({ id: "a", pk, n: 5 }, { accessCondition });
});

onEach("one execution is one write of the partition, whatever it writes, and none if it only reads", async (container, pk) => {
    const body = flow(async ({ call, self }, key, count) => {
        for (let i = 0; i < count; i++) await call("createDocument", self, { id: `i${i}`, pk: key });
        return (await call("readDocuments", self))[0].length;
    });
    const made = await procedure(container, body);
    const lsnOf = ({ headers }) => Number(headers.lsn);
    const before = lsnOf(await made.execute(pk, [pk, 0]));
    const write = await made.execute(pk, [pk, 10]);
    assert.equal(lsnOf(write), before + 1);
    const after = await made.execute(pk, [pk, 0]);
    assert.equal(lsnOf(after), before + 1);
    assert.equal(after.resource, 10);
    assert.ok(write.requestCharge > after.requestCharge, `${write.requestCharge} and ${after.requestCharge} RU`);
    const session = { sessionToken: write.headers["x-ms-session-token"] };
    assert.equal((await container.item("i9", pk).read(session)).resource.id, "i9");
});

test("two large items are written in one execution", async () => {
    const pk = unique("key");
    const body = flow(async ({ call, self }, key) => {
        for (const id of ["a", "b"]) await call("createDocument", self, { id, pk: key, text: id.repeat(1.5 * (1 << 20)) });
        return "done";
    });
    assert.equal(await execute(container, pk, body, pk), "done");
    const found = await listAll(server, container, { key: pk });
    assert.deepEqual(found.map(({ id, text }) => [id, text.length]).sort(), [["a", 1.5 * (1 << 20)], ["b", 1.5 * (1 << 20)]]);
});

// --- Partition keys

const ONE_OF_KEY = flow(async ({ call, self }) => (await call("queryDocuments", self, "SELECT c.id, c.n FROM c"))[0]);

test("a procedure sees only the items of its partition key, of any kind", async () => {
    for (const [, mixed] of containers) {
        const made = await procedure(mixed, ONE_OF_KEY);
        const keys = [unique("text"), 4711, true, null, ""];
        for (const [n, pk] of keys.entries()) await mixed.items.upsert({ id: "same", pk, n });
        await mixed.items.upsert({ id: "same", n: 99 });
        for (const [n, pk] of keys.entries()) {
            const { resource } = await made.execute(pk);
            assert.equal(JSON.stringify(resource), JSON.stringify([{ id: "same", n }]), JSON.stringify(pk));
        }
        const none = await executeRaw(server, mixed, made.id, { key: [{}] });
        assert.deepEqual(none.json, [{ id: "same", n: 99 }]);
        assert.deepEqual((await made.execute(undefined)).resource, [{ id: "same", n: 99 }], "as the SDK sends it");
        assert.deepEqual((await made.execute(unique("empty"))).resource, []);
    }
});

test("a hierarchical key has to be given whole", async () => {
    const partitionKey = { paths: ["/a", "/b"], kind: "MultiHash", version: 2 };
    const tree = await newContainer(database, undefined, { partitionKey });
    const made = await procedure(tree, ONE_OF_KEY);
    const keys = [[null, "a"], [1, "a"], ["x", "y"], ["x", "z"], ["x", true]];
    for (const [n, [a, b]] of keys.entries()) await tree.items.create({ id: "same", a, b, n });
    for (const [n, key] of keys.entries()) assert.deepEqual((await made.execute(key)).resource, [{ id: "same", n }]);
    const built = new PartitionKeyBuilder().addValue("x").addValue("z").build();
    assert.deepEqual((await made.execute(built)).resource, [{ id: "same", n: 3 }]);
    await tree.items.create({ id: "same", b: "only", n: 7 });
    assert.deepEqual((await executeRaw(server, tree, made.id, { key: [{}, "only"] })).json, [{ id: "same", n: 7 }]);
    for (const key of [["x"], ["x", "y", "z"], []])
        assert.equal((await executeRaw(server, tree, made.id, { key })).status, 400);
});

test("a container without a partition key has the key None", async () => {
    const path = `/dbs/${database.id}/colls`;
    const id = unique("c");
    const answer = await call(server, { method: "POST", path, body: { id }, headers: { "x-ms-version": "2018-09-17" } });
    if (answer.status !== 201) return; // a version of the protocol that wants a key
    const old = database.container(id);
    await old.items.create({ id: "same", n: 1 });
    const made = await procedure(old, ONE_OF_KEY);
    assert.deepEqual((await made.execute(undefined)).resource, [{ id: "same", n: 1 }]);
    for (const key of [[], [{}]]) {
        const found = await executeRaw(server, old, made.id, { key });
        assert.deepEqual(found.json, [{ id: "same", n: 1 }], JSON.stringify(key));
    }
});

test("an execution without a partition key, or with one that is none, is refused", async () => {
    const message = /PartitionKey value must be supplied for this operation\./;
    await procedure(container, "function () {}", "show");
    errorAnswer(await executeRaw(server, container, "show"), 400, "BadRequest", { message });
    for (const text of ["x", '"x"', "[[1]]", '["a","b"]', "["]) {
        const headers = { "x-ms-documentdb-partitionkey": text };
        assert.equal((await executeRaw(server, container, "show", { headers })).status, 400);
    }
});

onEach("a procedure cannot reach another key", async (container, pk) => {
    const other = unique("other");
    await container.items.create({ id: "a", pk: other, n: 1 });
    await container.items.create({ id: "mine", pk, n: 1 });
    const body = flow(async ({ call, self, link, failure }, key, foreign) => [
        await failure(call("createDocument", self, { id: "x", pk: foreign })),
        await failure(call("upsertDocument", self, { id: "a", pk: foreign, n: 2 })),
        await failure(call("createDocument", self, { id: "x" })),
        await failure(call("replaceDocument", link("mine"), { id: "mine", pk: foreign })),
        await failure(call("readDocument", link("a"))),
        await failure(call("deleteDocument", link("a"))),
        (await call("queryDocuments", self, { query: "SELECT * FROM c WHERE c.pk = @k", parameters: [{ name: "@k", value: foreign }] }))[0],
    ]);
    const [created, upserted, without, replaced, read, removed, found] = await execute(container, pk, body, pk, other);
    for (const error of [created, upserted, without]) {
        assert.equal(error.number, 400);
        assert.match(error.message, /cannot reference partition keys other than the one for which client request was submitted/);
    }
    assert.equal(replaced.number, 400);
    assert.deepEqual([read.number, removed.number], [404, 404]);
    assert.deepEqual(found, []);
    const create = function (key) {
        const c = getContext().getCollection();
        c.createDocument(c.getSelfLink(), { id: "one", pk: key }, function (error) {
            if (error) throw error;
            getContext().getResponse().setBody(1);
        });
    };
    const made = await procedure(container, create);
    assert.equal((await made.execute(pk, [pk])).resource, 1);
    assert.equal((await container.item("one", pk).read()).resource.id, "one");
    await refused(made.execute(unique("third"), [pk]), 400, { substatus: 400 });
    assert.deepEqual(contentOf((await container.item("a", other).read()).resource), { id: "a", pk: other, n: 1 });
});

// --- Writes for which a procedure does not wait

// Each of the ids is created, one callback after the other, 'tail' being what the callbacks have after the error. The answer
// has the numbers of the errors, and how many items the procedure sees at the end.
function creator(tail, rest = "") {
    return `function (key, ids) {
        const c = getContext().getCollection(), errors = [];
        let at = 0;
        next();
        function next() {
            if (at === ids.length)
                return c.queryDocuments(c.getSelfLink(), "SELECT VALUE COUNT(1) FROM c", function (error, found) {
                    if (error) throw error;
                    getContext().getResponse().setBody({ errors: errors, found: found[0] });
                });
            c.createDocument(c.getSelfLink(), { id: ids[at], pk: key, at: at }, function (error${tail}) {
                if (error) errors.push([at, error.number]);
                ${rest}
                at++;
                next();
            });
        }
    }`;
}

onEach("a callback that takes only the error is told of each failure, like one that takes the item", async (container, pk) => {
    const ids = Array.from({ length: 300 }, (_, i) => (i === 120 || i === 250 ? "i7" : i === 200 ? "old" : `i${i}`));
    const expected = { errors: [[120, 409], [200, 409], [250, 409]], found: 298 };
    const runs = [];
    for (const tail of ["", ", item"]) {
        const key = `${pk}-${runs.length}`;
        await container.items.create({ id: "old", pk: key });
        const made = await procedure(container, creator(tail));
        const answer = await made.execute(key, [key, ids]);
        assert.deepEqual(answer.resource, expected);
        const items = await listAll(server, container, { key });
        assert.deepEqual(items.map(({ id, at }) => [id, at]).sort(), ids.map((id, at) => [id, at])
            .filter(([, at]) => ![120, 200, 250].includes(at)).concat([["old", undefined]]).sort());
        runs.push(answer.headers["x-ms-request-charge"]);
    }
    assert.equal(runs[0], runs[1], "what was done twice is charged once");
});

onEach("a procedure that goes on after its writes, and fails, leaves nothing", async (container, pk) => {
    const ids = Array.from({ length: 150 }, (_, i) => `i${i}`);
    for (const [rest, substatus] of [["if (at === 140) throw new Error(77, 'late');", 77], ["if (error) throw error;", 409]]) {
        const made = await procedure(container, creator("", rest));
        await refused(made.execute(pk, [pk, substatus === 409 ? [...ids, "i3"] : ids]), 400, { substatus });
        assert.deepEqual(await listAll(server, container, { key: pk }), []);
    }
});

test("scripts of one container know nothing of another", async () => {
    const [, [, second]] = containers;
    const link = pathOf(second).slice(1);
    const body = flow(async ({ collection, thrown }, foreign) => [
        thrown(() => collection.readDocuments(foreign)),
        thrown(() => collection.createDocument(foreign, { id: "x" })),
        thrown(() => collection.readDocument(`${foreign}/docs/x`)),
    ]);
    for (const { number } of await execute(container, "any", body, link)) assert.equal(number, 400);
    await refused(second.scripts.storedProcedure("show").execute("any"), 404);
});
