// Many operations in one request: transactional batch and bulk, as JSON and as binary rows.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { callItems, contentOf, eachSize, listAll, sameItems } from "./lib/items.mjs";
import { decodeRows, encodeRows } from "./lib/rows.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "batch" });
const containers = await eachSize(database);

function onEach(name, work) {
    for (const [size, container] of containers)
        test(`${name} (${size})`, (t) => work(container, unique("key"), t));
}

const create = (resourceBody) => ({ operationType: "Create", resourceBody });
const upsert = (resourceBody, more) => ({ operationType: "Upsert", resourceBody, ...more });
const replace = (resourceBody, more) => ({
    operationType: "Replace",
    id: resourceBody.id,
    resourceBody,
    ...more,
});
const read = (id, more) => ({ operationType: "Read", id, ...more });
const remove = (id, more) => ({ operationType: "Delete", id, ...more });
const patch = (id, operations, more) => ({
    operationType: "Patch",
    id,
    resourceBody: { operations },
    ...more,
});
const codes = (results) => results.map(({ statusCode }) => statusCode);

const BATCH = { "x-ms-cosmos-is-batch-request": "True" };
const ATOMIC = { ...BATCH, "x-ms-cosmos-batch-atomic": "True", "x-ms-cosmos-batch-ordered": "True" };
const send = (container, { key, headers, body }) =>
    callItems(server, container, {
        method: "POST",
        key,
        headers,
        body: Array.isArray(body) ? JSON.stringify(body) : body,
    });

// --- Transactional batch

onEach("a batch does all of its operations, and later ones see earlier ones", async (container, pk) => {
    await container.items.create({ id: "old", pk, n: 1 });
    await container.items.create({ id: "doomed", pk });
    const { code, result, headers } = await container.items.batch(
        [
            create({ id: "a", pk, n: 1 }),
            read("a"),
            upsert({ id: "a", pk, n: 2 }),
            upsert({ id: "b", pk }),
            replace({ id: "old", pk, n: 2 }),
            patch("old", [{ op: "incr", path: "/n", value: 5 }]),
            read("old"),
            remove("doomed"),
            create({ id: "doomed", pk, again: true }),
            remove("b"),
        ],
        pk,
    );
    assert.equal(code, 200);
    assert.deepEqual(codes(result), [201, 200, 200, 201, 200, 200, 200, 204, 201, 204]);
    assert.deepEqual(contentOf(result[1].resourceBody), { id: "a", pk, n: 1 });
    assert.equal(result[6].resourceBody.n, 7);
    assert.equal(result[7].resourceBody, undefined);
    for (const [i, { requestCharge, eTag, resourceBody }] of result.entries()) {
        assert.ok(requestCharge > 0, `operation ${i}`);
        assert.equal(eTag, resourceBody?._etag);
    }
    const total = result.reduce((sum, { requestCharge }) => sum + requestCharge, 0);
    assert.equal(Number(headers["x-ms-request-charge"]).toFixed(2), total.toFixed(2));
    assert.match(headers["x-ms-session-token"], /^\d+:-1#\d+$/);
    sameItems(await listAll(server, container, { key: pk }), [
        { id: "a", pk, n: 2 },
        { id: "old", pk, n: 7 },
        { id: "doomed", pk, again: true },
    ]);
    const stored = (await container.item("old", pk).read()).resource;
    assert.equal(stored._etag, result[5].eTag);
});

const FAILURES = [
    ["a create of what exists", () => create({ id: "old", pk: 1 }), 409],
    ["a create of what the batch made", () => create({ id: "new", pk: 1 }), 409],
    ["a read of nothing", () => read("nothing"), 404],
    ["a replace of nothing", () => replace({ id: "nothing", pk: 1 }), 404],
    ["a delete of nothing", () => remove("nothing"), 404],
    ["a patch of nothing", () => patch("nothing", [{ op: "set", path: "/x", value: 1 }]), 404],
    ["a patch that cannot be applied", () => patch("old", [{ op: "replace", path: "/x/y", value: 1 }]), 400],
    ["a patch of the id", () => patch("old", [{ op: "set", path: "/id", value: "x" }]), 400],
    ["a document with another key", () => create({ id: "x", pk: "other" }), 400],
    ["a document with a bad id", () => create({ id: "a/b", pk: 1 }), 400],
    ["a document without an id", () => create({ pk: 1 }), 400],
    ["a stale ETag of a replace", () => replace({ id: "old", pk: 1 }, { ifMatch: '"x"' }), 412],
    ["a stale ETag of a delete", () => remove("old", { ifMatch: '"x"' }), 412],
    ["a stale ETag of an upsert", () => upsert({ id: "old", pk: 1 }, { ifMatch: '"x"' }), 412],
    [
        "a stale ETag of a patch",
        () => patch("old", [{ op: "set", path: "/n", value: 9 }], { ifMatch: '"x"' }),
        412,
    ],
    [
        "a condition that does not hold",
        () => ({
            operationType: "Patch",
            id: "old",
            resourceBody: {
                condition: "from c where c.n = 2",
                operations: [{ op: "set", path: "/n", value: 9 }],
            },
        }),
        412,
    ],
];
for (const [what, make, status] of FAILURES)
    onEach(`${what} undoes the whole batch`, async (container, pk) => {
        const { resource: old } = await container.items.create({ id: "old", pk, n: 1 });
        const failing = make();
        if (failing.resourceBody?.pk === 1) failing.resourceBody.pk = pk;
        const operations = [
            create({ id: "new", pk }),
            patch("old", [{ op: "set", path: "/n", value: 7 }]),
            failing,
            upsert({ id: "later", pk }),
            remove("old"),
        ];
        // The SDK would fill in a missing id.
        const answer = await send(container, { key: pk, headers: ATOMIC, body: operations });
        assert.equal(answer.status, 207, answer.text);
        assert.deepEqual(codes(answer.json), [424, 424, status, 424, 424]);
        assert.ok(answer.json.every(({ resourceBody }) => resourceBody === undefined));
        assert.match(answer.json[2].message, /\w/);
        assert.deepEqual(await listAll(server, container, { key: pk }), [old]);
    });

onEach("ETags guard the operations of a batch", async (container, pk) => {
    const { resource: a } = await container.items.create({ id: "a", pk, n: 1 });
    const { resource: b } = await container.items.create({ id: "b", pk, n: 1 });
    const { code, result } = await container.items.batch(
        [
            read("a", { ifNoneMatch: '"x"' }),
            replace({ id: "a", pk, n: 2 }, { ifMatch: a._etag }),
            patch("b", [{ op: "set", path: "/n", value: 2 }], { ifMatch: b._etag }),
            upsert({ id: "c", pk }),
        ],
        pk,
    );
    assert.equal(code, 200, JSON.stringify(result));
    const unchanged = await container.items.batch(
        [read("a", { ifNoneMatch: result[1].eTag }), upsert({ id: "d", pk })],
        pk,
    );
    assert.deepEqual(codes(unchanged.result), [304, 201]);
    assert.equal(unchanged.result[0].resourceBody, undefined);
    assert.equal((await container.item("d", pk).read()).statusCode, 200);
});

onEach("100 operations are a batch, 101 are too many, and so are none", async (container, pk) => {
    const operations = Array.from({ length: 101 }, (_, i) => create({ id: `i${i}`, pk }));
    const refuse = { key: pk, headers: ATOMIC };
    errorAnswer(await send(container, { ...refuse, body: operations }), 400, "BadRequest");
    errorAnswer(await send(container, { ...refuse, body: [] }), 400, "BadRequest");
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
    const { code, result } = await container.items.batch(operations.slice(0, 100), pk);
    assert.equal(code, 200);
    assert.equal(result.length, 100);
    assert.equal((await listAll(server, container, { key: pk })).length, 100);
});

onEach("a batch is at most 2 MB", async (container, pk) => {
    const text = "x".repeat(500_000);
    const operations = Array.from({ length: 5 }, (_, i) => create({ id: `i${i}`, pk, text }));
    errorAnswer(
        await send(container, { key: pk, headers: ATOMIC, body: operations }),
        413,
        "RequestEntityTooLarge",
    );
    await assert.rejects(container.items.batch(structuredClone(operations), pk), /too large/);
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
    const { code } = await container.items.batch(operations.slice(0, 4), pk);
    assert.equal(code, 200);
    assert.equal((await listAll(server, container, { key: pk })).length, 4);
});

onEach("a batch reads at most 4 MB", async (container, pk) => {
    await container.items.create({ id: "large", pk, text: "x".repeat(1_900_000) });
    await container.items.create({ id: "small", pk, n: 0 });
    const increment = patch("small", [{ op: "incr", path: "/n", value: 1 }]);
    // What there is no room for fails, and a transaction with it: nothing of it is done.
    const reads = Array.from({ length: 99 }, () => read("large"));
    const atomic = await send(container, { key: pk, headers: ATOMIC, body: [increment, ...reads] });
    assert.equal(atomic.status, 207);
    assert.deepEqual(
        atomic.json.map(({ statusCode, subStatusCode }) => [statusCode, subStatusCode]),
        [[424, 0], [424, 0], [424, 0], [413, 3402], ...Array.from({ length: 96 }, () => [424, 0])],
    );
    assert.equal((await container.item("small", pk).read()).resource.n, 0);
    // Otherwise it fails alone.
    const bulk = await send(container, {
        key: pk,
        headers: { ...BATCH, "x-ms-cosmos-batch-continue-on-error": "True" },
        body: [increment, ...reads.slice(0, 3), read("small")],
    });
    assert.equal(bulk.status, 207);
    assert.ok(bulk.bytes.length <= 4 << 20);
    assert.deepEqual(codes(bulk.json), [200, 200, 200, 413, 200]);
    assert.equal(bulk.json[4].resourceBody.n, 1);
    // The SDK asks again for what did not fit.
    const results = await container.items.executeBulkOperations(
        Array.from({ length: 5 }, () => ({ operationType: "Read", id: "large", partitionKey: pk })),
    );
    for (const { response } of results) assert.equal(response?.statusCode, 200);
    for (const { response } of results) assert.equal(response.resourceBody.text.length, 1_900_000);
});

onEach("an item that was not asked back is not sent back", async (container, pk) => {
    const headers = { ...ATOMIC, prefer: "return=minimal" };
    const operations = [create({ id: "a", pk }), upsert({ id: "a", pk, n: 1 }), read("a")];
    const answer = await send(container, { key: pk, headers, body: operations });
    assert.deepEqual(codes(answer.json), [201, 200, 200]);
    assert.deepEqual(
        answer.json.map(({ resourceBody }) => resourceBody?.n),
        [undefined, undefined, 1],
    );
    assert.match(answer.json[0].eTag, /^"/);
    const one = [{ ...create({ id: "b", pk }), minimalReturnPreference: true }, create({ id: "c", pk })];
    const mixed = await send(container, { key: pk, headers: ATOMIC, body: one });
    assert.deepEqual(
        mixed.json.map(({ resourceBody }) => resourceBody?.id),
        [undefined, "c"],
    );
});

const NOT_BATCHES = [
    ["not JSON", "[{"],
    ["no array", '{"operationType":"Create"}'],
    ["no operations", "[1]"],
    ["an unknown operation", '[{"operationType":"Explode","id":"x"}]'],
    ["a create without a document", '[{"operationType":"Create"}]'],
    ["a create of a number", '[{"operationType":"Create","resourceBody":1}]'],
    ["a read without an id", '[{"operationType":"Read"}]'],
    ["nothing", ""],
    ["half a binary batch", Buffer.from("81f0d8ff7f01", "hex")],
    ["a binary batch without operations", Buffer.from("81f0d8ff7f010a000000", "hex")],
];
onEach("what is no batch is refused as a whole", async (container, pk) => {
    for (const [what, body] of NOT_BATCHES) {
        const answer = await send(container, { key: pk, headers: ATOMIC, body });
        assert.equal(answer.status, 400, `${what}: ${answer.text}`);
        errorAnswer(answer, 400, "BadRequest");
    }
    const noKey = await send(container, { headers: ATOMIC, body: [create({ id: "x", pk })] });
    errorAnswer(noKey, 400, "BadRequest", { message: /PartitionKey/ });
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
});

onEach("readers never see half of a batch", async (container, pk) => {
    let writing = true;
    let reads = 0;
    const reader = async () => {
        while (writing) {
            const found = (await listAll(server, container, { key: pk })).map(({ round }) => round);
            assert.ok(found.length === 0 || found.length === 10, `${found.length} of 10`);
            assert.equal(new Set(found).size, found.length ? 1 : 0, `of rounds ${found}`);
            reads++;
        }
    };
    const readers = [reader(), reader()];
    try {
        for (let round = 0; round < 40; round++) {
            const operations = Array.from({ length: 10 }, (_, i) => upsert({ id: `i${i}`, pk, round }));
            const { code } = await container.items.batch(operations, pk);
            assert.equal(code, 200);
            const broken = [
                ...operations.map(({ resourceBody }) => remove(resourceBody.id)),
                remove("nothing"),
            ];
            assert.equal((await container.items.batch(broken, pk)).code, 207);
        }
    } finally {
        writing = false;
    }
    await Promise.all(readers);
    assert.ok(reads > 10, `only ${reads} reads`);
});

// --- Bulk

onEach("bulk does each operation by itself", async (container, pk) => {
    const keys = Array.from({ length: 8 }, (_, i) => `${pk}-${i}`);
    for (const key of keys) await container.items.create({ id: "old", pk: key, n: 1 });
    const operations = keys.flatMap((key) => [
        { ...create({ id: "new", pk: key }), partitionKey: key },
        { ...create({ id: "old", pk: key }), partitionKey: key },
        { ...read("old"), partitionKey: key },
        { ...patch("old", [{ op: "incr", path: "/n", value: 1 }]), partitionKey: key },
        { ...upsert({ id: "up", pk: key }), partitionKey: key },
        { ...remove("nothing"), partitionKey: key },
        { ...replace({ id: "up", pk: key, n: 3 }), partitionKey: key },
        { ...read("old", { ifMatch: "x" }), partitionKey: key },
    ]);
    const results = await container.items.bulk(operations);
    const expected = keys.flatMap(() => [201, 409, 200, 200, 201, 404, 200, 200]);
    assert.deepEqual(codes(results), expected);
    for (const [i, key] of keys.entries()) {
        assert.equal(results[8 * i + 2].resourceBody.pk, key);
        sameItems(await listAll(server, container, { key }), [
            { id: "old", pk: key, n: 2 },
            { id: "new", pk: key },
            { id: "up", pk: key, n: 3 },
        ]);
    }
});

onEach("bulk that stops at the first failure leaves the rest undone", async (container, pk) => {
    await container.items.create({ id: "old", pk });
    const operations = [
        { ...create({ id: "a", pk }), partitionKey: pk },
        { ...create({ id: "old", pk }), partitionKey: pk },
        { ...create({ id: "b", pk }), partitionKey: pk },
    ];
    const stopped = await container.items.bulk(structuredClone(operations), { continueOnError: false });
    assert.deepEqual(codes(stopped), [201, 409, 424]);
    sameItems(await listAll(server, container, { key: pk }), [{ id: "old", pk }, { id: "a", pk }]);
    const went = await container.items.bulk(structuredClone(operations), { continueOnError: true });
    assert.deepEqual(codes(went), [409, 409, 201]);
    // One that cannot even be tried stops it as well.
    const { headers: at } = await container.item("a", pk).read();
    const range = at["x-ms-documentdb-partitionkeyrangeid"];
    const headers = {
        ...BATCH,
        "x-ms-cosmos-batch-atomic": "False",
        "x-ms-cosmos-batch-continue-on-error": "False",
        "x-ms-documentdb-partitionkeyrangeid": String(range),
    };
    const key = JSON.stringify([pk]);
    const body = [
        { ...create({ id: "c", pk }), partitionKey: key },
        { ...create({ id: "x/y", pk }), partitionKey: key },
        { ...create({ id: "d", pk }), partitionKey: key },
    ];
    const answer = await send(container, { headers, body });
    assert.deepEqual(codes(answer.json), [201, 400, 424]);
    const go = { ...headers, "x-ms-cosmos-batch-continue-on-error": "True" };
    assert.deepEqual(codes((await send(container, { headers: go, body })).json), [409, 400, 201]);
});

test("bulk for a range that does not serve the key is told so", async () => {
    const [, [, five]] = containers;
    const pk = unique("place");
    const { headers: at } = await five.items.create({ id: "x", pk });
    const wrong = (Number(at["x-ms-documentdb-partitionkeyrangeid"]) + 1) % 5;
    const headers = { ...BATCH, "x-ms-documentdb-partitionkeyrangeid": String(wrong) };
    const body = [{ ...create({ id: "y", pk }), partitionKey: JSON.stringify([pk]) }];
    const answer = await send(five, { headers, body });
    assert.deepEqual(
        answer.json.map(({ statusCode, subStatusCode }) => [statusCode, subStatusCode]),
        [[410, 1002]],
    );
    const gone = await send(
        five,
        { headers: { ...BATCH, "x-ms-documentdb-partitionkeyrangeid": "99" }, body },
    );
    errorAnswer(gone, 410, "Gone", { substatus: 1002 });
    assert.equal((await listAll(server, five, { key: pk })).length, 1);
});

// --- The binary form

test("the protocol's own example is encoded to the byte", () => {
    const bytes = encodeRows([create({ id: "a", pk: "p" }), remove("b")]).toString("hex");
    assert.equal(
        bytes,
        "81f0d8ff7f010a00000081f1d8ff7f220000001b7cd88b" +
            "817054e17f430000000002000000137b226964223a2261222c22706b223a2270227d" +
            "81f1d8ff7f10000000dd0394ca817054e17f1304000000020000000162",
    );
    const results = decodeRows(
        Buffer.from(
            "81f0d8ff7f010a00000081f1d8ff7f1d00000004a3bf68" +
                "817154e17f07c900000000000000042265312210060000000000001640" +
                "81f1d8ff7f18000000419088e9817154e17f0394010000000000001006000000000000f03f",
            "hex",
        ),
    );
    assert.deepEqual(results, [
        { statusCode: 201, subStatusCode: 0, eTag: '"e1"', requestCharge: 5.5 },
        { statusCode: 404, subStatusCode: 0, requestCharge: 1 },
    ]);
});

onEach("a binary batch is done and answered in its own form", async (container) => {
    const pk = `p${unique("")}`;
    const body = encodeRows([
        create({ id: "a", pk, text: "é😀".repeat(100) }),
        upsert({ id: "b", pk }),
        patch("a", [{ op: "set", path: "/n", value: 1 }]),
        read("a"),
        replace({ id: "b", pk, n: 2 }, { minimal: true }),
        remove("b", { ifMatch: "*" }),
    ]);
    const answer = await send(container, { key: pk, headers: ATOMIC, body });
    assert.equal(answer.status, 200, answer.text);
    const results = decodeRows(answer.bytes);
    assert.deepEqual(codes(results), [201, 201, 200, 200, 200, 204]);
    assert.equal(results[3].resourceBody.n, 1);
    assert.equal(results[4].resourceBody, undefined);
    assert.ok(results.every(({ requestCharge }) => requestCharge > 0));
    const { resource } = await container.item("a", pk).read();
    assert.equal(resource._etag, results[3].eTag);
    assert.deepEqual(resource, results[3].resourceBody);
    assert.equal((await listAll(server, container, { key: pk })).length, 1);

    const failing = encodeRows([create({ id: "c", pk }), remove("nothing"), create({ id: "d", pk })]);
    const failed = await send(container, { key: pk, headers: ATOMIC, body: failing });
    assert.equal(failed.status, 207);
    assert.deepEqual(codes(decodeRows(failed.bytes)), [424, 404, 424]);
    assert.equal((await listAll(server, container, { key: pk })).length, 1);
});

onEach("bulk without operations does nothing, as the SDK sends it to some children of a split", async (container) => {
    const [{ id }] = (await container.readPartitionKeyRanges().fetchAll()).resources;
    const headers = {
        "x-ms-cosmos-is-batch-request": "True",
        "x-ms-cosmos-batch-atomic": "False",
        "x-ms-documentdb-partitionkeyrangeid": id,
    };
    const answer = await send(container, { headers, body: [] });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json, []);
    assert.deepEqual(decodeRows((await send(container, { headers, body: encodeRows([]) })).bytes), []);
    errorAnswer(await send(container, { headers: ATOMIC, key: "x", body: [] }), 400, "BadRequest");
});

onEach("binary bulk goes to a range, each operation with its key", async (container, pk) => {
    const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources;
    const rangeOf = {};
    for (let i = 0; i < 20; i++) {
        const key = `${pk}-${i}`;
        const { headers } = await container.items.create({ id: "x", pk: key });
        (rangeOf[headers["x-ms-documentdb-partitionkeyrangeid"]] ??= []).push(key);
    }
    for (const { id } of ranges) {
        const keys = rangeOf[id] ?? [];
        if (keys.length === 0) continue;
        const operations = keys.flatMap((key) => [
            { ...create({ id: "x", pk: key }), partitionKey: JSON.stringify([key]) },
            { ...create({ id: "y", pk: key }), partitionKey: JSON.stringify([key]) },
        ]);
        const headers = {
            ...BATCH,
            "x-ms-cosmos-batch-atomic": "False",
            "x-ms-documentdb-partitionkeyrangeid": id,
        };
        const answer = await send(container, {
            headers: { ...headers, "x-ms-cosmos-batch-continue-on-error": "True" },
            body: encodeRows(operations),
        });
        assert.equal(answer.status, 207);
        assert.deepEqual(
            codes(decodeRows(answer.bytes)),
            keys.flatMap(() => [409, 201]),
        );
    }
});

onEach("a damaged binary batch changes nothing", async (container, pk) => {
    const good = encodeRows([create({ id: "a", pk }), create({ id: "b", pk })]);
    for (let cut = 1; cut < good.length; cut += 7) {
        const answer = await send(container, { key: pk, headers: ATOMIC, body: good.subarray(0, cut) });
        // What ends between two records is a whole, shorter batch.
        if (answer.status !== 200) errorAnswer(answer, 400, "BadRequest");
    }
    for (let at = 0; at < good.length; at++) {
        const damaged = Buffer.from(good);
        damaged[at] ^= 0x55;
        const answer = await send(container, { key: pk, headers: ATOMIC, body: damaged });
        assert.ok([400, 207].includes(answer.status), `byte ${at}: ${answer.status}`);
    }
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
});
