// Items one by one: create, read, upsert, replace, delete; their ids, ETags, limits and answers.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { callItems, contentOf, eachSize, listAll, newContainer } from "./lib/items.mjs";
import { decodeRid } from "./lib/rid.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { call, unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "items" });
const containers = await eachSize(database);
const [[, one], [, five]] = containers;

/** The same test on a container of each size. */
function onEach(name, work) {
    for (const [size, container] of containers) test(`${name} (${size})`, (t) => work(container, t));
}

const missing = async (container, id, key) => {
    const { statusCode, resource } = await container.item(id, key).read();
    assert.equal(statusCode, 404);
    assert.equal(resource, undefined);
};

// --- The life of an item

onEach("an item is created, read, replaced, upserted and deleted", async (container) => {
    const id = unique("life");
    const key = unique("key");
    const item = container.item(id, key);

    const created = await container.items.create({ id, pk: key, n: 1 });
    assert.equal(created.statusCode, 201);
    assert.deepEqual(contentOf(created.resource), { id, pk: key, n: 1 });
    assert.deepEqual((await item.read()).resource, created.resource);
    await refused(container.items.create({ id, pk: key }), 409, { message: /already exists/ });

    const replaced = await item.replace({ id, pk: key, n: 2 });
    assert.equal(replaced.statusCode, 200);
    assert.deepEqual(contentOf(replaced.resource), { id, pk: key, n: 2 });
    assert.equal(replaced.resource._rid, created.resource._rid);
    assert.notEqual(replaced.resource._etag, created.resource._etag);
    assert.deepEqual((await item.read()).resource, replaced.resource);

    const upserted = await container.items.upsert({ id, pk: key, n: 3 });
    assert.equal(upserted.statusCode, 200);
    assert.equal(upserted.resource._rid, created.resource._rid);
    assert.deepEqual((await item.read()).resource, upserted.resource);

    const deleted = await item.delete();
    assert.equal(deleted.statusCode, 204);
    await missing(container, id, key);
    await refused(item.delete(), 404);
    await refused(item.replace({ id, pk: key }), 404);
    await missing(container, id, key);

    const again = await container.items.upsert({ id, pk: key, n: 4 });
    assert.equal(again.statusCode, 201);
    assert.notEqual(again.resource._rid, created.resource._rid, "a new item has a new resource id");
    assert.deepEqual((await item.read()).resource, again.resource);
});

onEach("the same id lives once under each partition key", async (container) => {
    const id = unique("same");
    const keys = Array.from({ length: 12 }, (_, i) => unique(`k${i}`));
    for (const pk of keys) await container.items.create({ id, pk, of: pk });
    for (const pk of keys) assert.equal((await container.item(id, pk).read()).resource.of, pk);
    await container.item(id, keys[0]).delete();
    await missing(container, id, keys[0]);
    for (const pk of keys.slice(1)) assert.equal((await container.item(id, pk).read()).resource.of, pk);
});

onEach("replacing may change the id, if the new one is free", async (container) => {
    const pk = unique("rename");
    const { resource: a } = await container.items.create({ id: "a", pk, n: 1 });
    await container.items.create({ id: "b", pk, n: 2 });
    await refused(container.item("a", pk).replace({ id: "b", pk }), 409, { message: /already exists/ });
    assert.deepEqual((await container.item("a", pk).read()).resource, a);
    assert.equal((await container.item("b", pk).read()).resource.n, 2);

    const { resource: c, statusCode } = await container.item("a", pk).replace({ id: "c", pk, n: 3 });
    assert.equal(statusCode, 200);
    assert.equal(c._rid, a._rid, "it stays the same item");
    await missing(container, "a", pk);
    assert.deepEqual((await container.item("c", pk).read()).resource, c);
    const all = await listAll(server, container, { key: pk });
    assert.deepEqual(all.map(({ id }) => id).sort(), ["b", "c"]);
    assert.equal((await container.items.create({ id: "a", pk })).statusCode, 201);
});

onEach("an item is found by its resource id as well", async (container) => {
    const { resource } = await container.items.create({ id: unique("rid"), pk: "rid" });
    const owner = (await container.read()).resource;
    assert.equal(resource._self, `${owner._self}docs/${resource._rid}/`);
    assert.deepEqual(decodeRid(resource._rid), {
        kind: "document",
        database: decodeRid(owner._rid).database,
        parent: owner._rid,
    });
    const answer = await call(server, {
        path: `/${resource._self}`,
        type: "docs",
        link: resource._rid.toLowerCase(),
        headers: { "x-ms-documentdb-partitionkey": '["rid"]' },
    });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json, resource);
    const written = (method, body) =>
        call(server, {
            method,
            path: `/${resource._self}`,
            type: "docs",
            link: resource._rid.toLowerCase(),
            headers: { "x-ms-documentdb-partitionkey": '["rid"]' },
            body,
        });
    assert.equal((await written("PUT", { ...resource, n: 1 })).json.n, 1);
    assert.equal((await written("PATCH", [{ op: "incr", path: "/n", value: 1 }])).json.n, 2);
    assert.equal((await container.item(resource.id, "rid").read()).resource.n, 2);
    assert.equal((await written("DELETE")).status, 204);
    await missing(container, resource.id, "rid");
});

onEach("an id that looks like the resource id of another item is an id", async (container) => {
    const pk = unique("lookalike");
    const { resource: a } = await container.items.create({ id: "a", pk });
    const { resource: b } = await container.items.create({ id: a._rid, pk, b: 1 });
    const item = container.item(a._rid, pk);
    assert.deepEqual((await item.read()).resource, b);
    const { resource: c } = await item.replace({ id: a._rid, pk, b: 2 });
    assert.equal(c._rid, b._rid);
    await item.patch([{ op: "incr", path: "/b", value: 1 }]);
    await item.delete();
    assert.deepEqual((await container.item("a", pk).read()).resource, a);
    assert.deepEqual(await listAll(server, container, { key: pk }), [a]);
});

// --- Answers

onEach("every answer has charge, session token, LSN, activity id and ETag", async (container) => {
    const pk = unique("answers");
    const item = container.item("x", pk);
    const owner = (await container.read()).resource;
    const check = (response, { etag }) => {
        const { headers } = response;
        assert.ok(response.requestCharge > 0, `charge ${response.requestCharge}`);
        assert.match(headers["x-ms-session-token"], /^\d+:-1#\d+$/);
        assert.equal(headers.lsn, Number(headers["x-ms-session-token"].split("#")[1]));
        assert.equal(
            headers["x-ms-documentdb-partitionkeyrangeid"],
            Number(headers["x-ms-session-token"].split(":")[0]),
        );
        assert.match(response.activityId ?? headers["x-ms-activity-id"], /^[0-9a-f-]{36}$/);
        assert.equal(headers["x-ms-content-path"], owner._rid);
        assert.equal(headers["x-ms-alt-content-path"], `dbs/${database.id}/colls/${container.id}`);
        assert.equal(response.etag, etag);
        return response;
    };
    const own = (response) => check(response, { etag: response.resource._etag });
    const numeric = (response) => {
        // The SDK leaves headers as text; numbers compare as numbers.
        for (const name of ["lsn", "x-ms-documentdb-partitionkeyrangeid"])
            response.headers[name] = Number(response.headers[name]);
        return response;
    };
    const lsns = [];
    for (const step of [
        async () => own(numeric(await container.items.create({ id: "x", pk }))),
        async () => own(numeric(await container.items.upsert({ id: "x", pk, n: 1 }))),
        async () => own(numeric(await item.replace({ id: "x", pk, n: 2 }))),
        async () => own(numeric(await item.patch([{ op: "incr", path: "/n", value: 1 }]))),
        async () => check(numeric(await item.delete()), { etag: undefined }),
        async () => check(numeric(await item.read()), { etag: undefined }),
    ])
        lsns.push((await step()).headers.lsn);
    for (let i = 1; i < 5; i++) assert.ok(lsns[i] > lsns[i - 1], `${lsns}`);
    assert.ok(lsns[5] >= lsns[4], "a read is at least as new as the last write");
    const stale = { accessCondition: { type: "IfMatch", condition: '"no"' } };
    for (const [call, code] of [
        [() => item.delete(), 404],
        [() => container.items.create({ id: "y", pk }), 201],
        [() => container.items.create({ id: "y", pk }), 409],
        [() => container.item("y", pk).delete(stale), 412],
    ]) {
        const response = await call().catch((error) => error);
        assert.equal(response.code ?? response.statusCode, code);
        assert.match(response.headers["x-ms-session-token"], /^\d+:-1#\d+$/);
        assert.ok(Number(response.headers["x-ms-request-charge"]) > 0);
    }
});

onEach("the same work on the same data costs the same", async (container) => {
    const run = async () => {
        const pk = unique("k").slice(0, 6);
        const item = container.item("i", pk);
        const text = "x".repeat(3000);
        const responses = [
            await container.items.create({ id: "i", pk, text }),
            await item.read(),
            await item.replace({ id: "i", pk, text: text.slice(1) }),
            await container.items.upsert({ id: "i", pk, text }),
            await item.patch([{ op: "set", path: "/a", value: 1 }]),
            await container.items.query("SELECT * FROM c", { partitionKey: pk }).fetchNext(),
            await item.delete(),
            await item.read(),
        ];
        return responses.map(({ requestCharge }) => requestCharge);
    };
    const first = await run();
    assert.deepEqual(await run(), first);
    assert.ok(first[0] > first[1], "a write costs more than a read");
    assert.equal(first.at(-1), 1, "finding nothing costs one unit");
});

test("a larger item costs more", async () => {
    const pk = unique("size");
    let last = 0;
    for (const kilobytes of [1, 8, 64, 512]) {
        const body = { id: `i${kilobytes}`, pk, text: "x".repeat(kilobytes * 1024) };
        const { requestCharge } = await one.items.create(body);
        const read = await one.item(body.id, pk).read();
        assert.ok(requestCharge > last, `${kilobytes} KB: ${requestCharge}`);
        assert.ok(read.requestCharge < requestCharge);
        last = requestCharge;
    }
});

onEach("Prefer: return=minimal leaves the item out of the answer", async (container) => {
    const key = unique("minimal");
    const headers = { prefer: "return=minimal" };
    const rows = [
        ["POST", undefined, { id: "m", pk: key }, {}, 201],
        ["POST", undefined, { id: "m", pk: key, n: 1 }, { "x-ms-documentdb-is-upsert": "true" }, 200],
        ["PUT", "m", { id: "m", pk: key, n: 2 }, {}, 200],
        ["PATCH", "m", { operations: [{ op: "set", path: "/n", value: 3 }] }, {}, 200],
    ];
    for (const [method, id, body, more, status] of rows) {
        const answer = await callItems(server, container, {
            method,
            id,
            key,
            body,
            headers: { ...headers, ...more },
        });
        assert.equal(answer.status, status, answer.text);
        assert.equal(answer.bytes.length, 0);
        const { resource } = await container.item("m", key).read();
        assert.equal(answer.headers.etag, resource._etag);
    }
    assert.equal((await container.item("m", key).read()).resource.n, 3);
});

// --- ETags

onEach("If-Match lets a write through only if the item is as expected", async (container) => {
    const pk = unique("etag");
    const item = container.item("e", pk);
    const { resource: old } = await container.items.create({ id: "e", pk, n: 0 });
    const { resource: now } = await item.replace({ id: "e", pk, n: 1 });
    const match = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
    const stale = { message: /pre-condition is not met/ };
    for (const wrong of [old._etag, '"0"', "x"]) {
        await refused(item.replace({ id: "e", pk, n: 9 }, match(wrong)), 412, stale);
        await refused(item.delete(match(wrong)), 412, stale);
        await refused(
            item.patch([{ op: "set", path: "/n", value: 9 }], match(wrong)),
            412,
            stale,
        );
        await refused(container.items.upsert({ id: "e", pk, n: 9 }, match(wrong)), 412, stale);
    }
    assert.deepEqual((await item.read()).resource, now);

    const { resource: two } = await item.replace({ id: "e", pk, n: 2 }, match(now._etag));
    const { resource: three } = await item.patch([{ op: "set", path: "/n", value: 3 }], match(two._etag));
    const { resource: four } = await container.items.upsert({ id: "e", pk, n: 4 }, match(three._etag));
    assert.deepEqual((await item.read()).resource, four);
    await item.replace({ id: "e", pk, n: 5 }, match("*"));
    await refused(item.delete(match(four._etag)), 412, stale);
    await item.delete(match("*"));
    await refused(item.replace({ id: "e", pk }, match("*")), 404);
});

onEach("If-None-Match answers 304 as long as nothing has changed", async (container) => {
    const pk = unique("unchanged");
    const item = container.item("u", pk);
    const { resource } = await container.items.create({ id: "u", pk });
    const unless = (condition) => ({ accessCondition: { type: "IfNoneMatch", condition } });
    const same = await item.read(unless(resource._etag));
    assert.equal(same.statusCode, 304);
    assert.ok(!same.resource);
    assert.equal(same.etag, resource._etag);
    assert.equal((await item.read(unless('"other"'))).statusCode, 200);
    const { resource: newer } = await item.replace({ id: "u", pk, n: 1 });
    const changed = await item.read(unless(resource._etag));
    assert.equal(changed.statusCode, 200);
    assert.deepEqual(changed.resource, newer);
    const raw = await callItems(server, container, {
        id: "u",
        key: pk,
        headers: { "if-none-match": newer._etag },
    });
    assert.equal(raw.status, 304);
    assert.equal(raw.bytes.length, 0);
});

// --- Ids

const IDS = [
    "with space", " leading", "trailing ", "ünïcødé", "日本語", "😀🚀", "%", "%20", "100%25", "a+b", "a&b=c",
    "'quoted'", '"double"', "semi;colon", "comma,", "a:b", "@", "~", "{}", "[1]", "<x>", "|", "^", "`", "$",
    ".", "..", "...", "*", "(x)", "!", "\u0001", "tab\there", "line\nbreak", "e\u0301", "A", "a",
    "x".repeat(1023), "ü".repeat(511), "0", "null", "docs", "dbs",
];
const SDK_CANNOT = new Set([".", "..", " leading", "trailing "]); // a URL cannot say these unescaped
onEach("ids may hold any character but slashes", async (container) => {
    for (const id of IDS) {
        const pk = "ids";
        const { resource } = await container.items.create({ id, pk, is: id });
        assert.equal(resource.id, id);
        const raw = await callItems(server, container, { id, key: pk });
        assert.equal(raw.status, 200, `${JSON.stringify(id)}: ${raw.text}`);
        assert.deepEqual(raw.json, resource);
        if (!SDK_CANNOT.has(id)) {
            const read = await container.item(id, pk).read();
            assert.deepEqual(read.resource, resource, `the SDK finds ${JSON.stringify(id)}`);
            const { resource: patched } = await container
                .item(id, pk)
                .patch([{ op: "set", path: "/n", value: 1 }]);
            assert.equal(patched.is, id);
        }
    }
    const listed = (await listAll(server, container, { key: "ids" })).map(({ id }) => id);
    assert.deepEqual(listed.sort(), [...IDS].sort());
    for (const id of IDS) {
        const answer = await callItems(server, container, { method: "DELETE", id, key: "ids" });
        assert.equal(answer.status, 204, JSON.stringify(id));
    }
    assert.deepEqual(await listAll(server, container, { key: "ids" }), []);
});

onEach("ids with ? and # work for clients that escape them", async (container) => {
    for (const id of ["what?", "#1", "a?b#c", "?"]) {
        const body = { id, pk: "marks" };
        const made = await callItems(server, container, { method: "POST", key: "marks", body });
        assert.equal(made.status, 201, made.text);
        assert.deepEqual((await callItems(server, container, { id, key: "marks" })).json, made.json);
        const gone = await callItems(server, container, { method: "DELETE", id, key: "marks" });
        assert.equal(gone.status, 204);
    }
});

const BAD_BODIES = [
    ["no id", { pk: "p" }],
    ["an empty id", { id: "", pk: "p" }],
    ["an id that is a number", { id: 1, pk: "p" }],
    ["an id that is null", { id: null, pk: "p" }],
    ["an id with a slash", { id: "a/b", pk: "p" }],
    ["an id with a backslash", { id: "a\\b", pk: "p" }],
    ["an id of 1024 bytes", { id: "x".repeat(1024), pk: "p" }],
    ["an id of 512 characters in 1024 bytes", { id: "ü".repeat(512), pk: "p" }],
    ["a ttl of zero", { id: "t", pk: "p", ttl: 0 }],
    ["a ttl of -2", { id: "t", pk: "p", ttl: -2 }],
    ["a ttl that is not whole", { id: "t", pk: "p", ttl: 1.5 }],
    ["a ttl that is a string", { id: "t", pk: "p", ttl: "1" }],
    ["a ttl beyond its range", { id: "t", pk: "p", ttl: 2_147_483_648 }],
    ["an array", []],
    ["a string", '"text"'],
    ["a number", "1"],
    ["half an object", '{"id":"x","pk":'],
    ["two objects", '{"id":"x","pk":"p"}{}'],
    ["a control character in a string", '{"id":"x","pk":"p","a":"\u0001"}'],
    [
        "bytes that are not UTF-8",
        Buffer.from([...Buffer.from('{"id":"x","pk":"'), 0xff, ...Buffer.from('"}')]),
    ],
    ["a number with a leading zero", '{"id":"x","pk":"p","n":01}'],
    ["NaN", '{"id":"x","pk":"p","n":NaN}'],
    ["a number beyond a double", '{"id":"x","pk":"p","n":1e999}'],
    ["nothing", ""],
];
test("a body that is no item is refused, and nothing is stored", async () => {
    const container = await newContainer(database);
    await container.items.create({ id: "there", pk: "p", n: 1 });
    for (const [what, body] of BAD_BODIES) {
        const text = Array.isArray(body) ? "[]" : body;
        for (const request of [
            { method: "POST", headers: {} },
            { method: "POST", headers: { "x-ms-documentdb-is-upsert": "true" } },
            { method: "PUT", id: "there", headers: {} },
        ]) {
            const answer = await callItems(server, container, { ...request, key: "p", body: text });
            assert.equal(answer.status, 400, `${what}: ${request.method} ${answer.text}`);
            errorAnswer(answer, 400, "BadRequest");
        }
    }
    const all = await listAll(server, container);
    assert.deepEqual(all.map(contentOf), [{ id: "there", pk: "p", n: 1 }]);
});

// --- Content

const ADDED =
    /,"_rid":"[^"]*","_self":"[^"]*","_etag":"\\"[^"]*\\"","_attachments":"attachments\/","_ts":\d+}$/;
onEach("what is read is what was written, to the last digit and in its order", async (container) => {
    const pk = "content";
    const rows = [
        '{"z":1,"a":2,"m":{"y":1,"b":2},"id":"order","pk":"content","0":1,"10":2,"9":3}',
        '{"id":"numbers","pk":"content","n":[0,1,-1,0.1,-0.1,1.5,1e300,5e-324,9007199254740991,1e21]}',
        '{"id":"more numbers","pk":"content","n":[-9007199254740991,123456789.125,2.5e-7]}',
        '{"id":"texts","pk":"content","t":["","\\"","\\\\","/","\\n","\\t","\\u0000","é","😀","\\u2028"]}',
        '{"id":"kinds","pk":"content","v":[null,true,false,[],{},[[[]]],{"a":{"b":{}}}]}',
        `{"id":"long","pk":"content","${"k".repeat(2000)}":"${"v".repeat(100000)}"}`,
        '{"id":"names","pk":"content","":"empty","a b":1,"a.b":2,"a/b":3,"ü":4,"__proto__":5,"_own":6}',
    ];
    for (const text of rows) {
        const sent = JSON.parse(text);
        const made = await callItems(server, container, { method: "POST", key: pk, body: text });
        assert.equal(made.status, 201, made.text);
        const read = await callItems(server, container, { id: sent.id, key: pk });
        assert.equal(read.text, made.text);
        const kept = read.text.replace(ADDED, "}");
        assert.notEqual(kept, read.text, "the system properties come last, in their order");
        assert.deepEqual(JSON.parse(kept), sent);
        const names = (value) => [...JSON.stringify(value).matchAll(/"[^"]*":/g)].map(String);
        assert.deepEqual(names(JSON.parse(kept)), names(sent));
    }
    // To clients that have integers of 64 bits, too.
    const integers = [-9223372036854775808n, 4611686018427387904n, -9007199254740992n, 1n << 60n];
    const body = `{"id":"integers","pk":"content","n":[${integers.join(",")}]}`;
    const answer = await callItems(server, container, { method: "POST", key: pk, body });
    assert.match(answer.text, new RegExp(`"n":\\[${integers.join(",")}\\]`));
    const text = (await callItems(server, container, { id: "order", key: pk })).text;
    assert.ok(text.startsWith(rows[0].slice(0, -1)), text);
});

test("what a client sends as system properties is overwritten, other underscores are kept", async () => {
    const pk = unique("system");
    const body = {
        id: "s",
        pk,
        _rid: "x",
        _self: 1,
        _etag: { a: 1 },
        _ts: -5,
        _attachments: null,
        _mine: 1,
        _lsn: 2,
    };
    const begun = Math.floor(Date.now() / 1000);
    const { resource } = await one.items.create(body);
    assert.deepEqual(contentOf(resource), { id: "s", pk, _mine: 1, _lsn: 2 });
    assert.match(resource._etag, /^"[0-9a-f-]{36}"$/);
    assert.equal(resource._attachments, "attachments/");
    assert.ok(resource._ts >= begun && resource._ts <= begun + 60, `${resource._ts}`);
    const { resource: again } = await one.item("s", pk).replace({ ...resource, n: 1 });
    assert.deepEqual(contentOf(again), { id: "s", pk, _mine: 1, _lsn: 2, n: 1 });
});

test("of two members with the same name there is one afterwards, the last", async () => {
    const answer = await callItems(server, one, {
        method: "POST",
        key: "twice",
        body: '{"id":"first","a":1,"pk":"twice","a":2,"id":"last","b":{"c":1,"c":2}}',
    });
    assert.equal(answer.status, 201, answer.text);
    assert.deepEqual(contentOf(answer.json), { id: "last", a: 2, pk: "twice", b: { c: 2 } });
    assert.equal(answer.text.match(/"a":/g).length, 1);
    assert.equal((await one.item("last", "twice").read()).statusCode, 200);
    await missing(one, "first", "twice");
});

onEach("an item may be just under 2 MB, and not more", async (container) => {
    const pk = unique("large");
    const envelope = JSON.stringify({ id: "l", pk, text: "" }).length;
    const bodyOf = (bytes) => JSON.stringify({ id: "l", pk, text: "x".repeat(bytes - envelope) });
    const limit = 2 << 20;
    const post = (body) => callItems(server, container, { method: "POST", key: pk, body });
    for (const bytes of [limit + 1, limit + 1000, 3 << 20])
        errorAnswer(await post(bodyOf(bytes)), 413, "RequestEntityTooLarge", { message: /too large/ });
    await missing(container, "l", pk);
    const made = await post(bodyOf(limit));
    assert.equal(made.status, 201, made.text.slice(0, 300));
    const { resource } = await container.item("l", pk).read();
    assert.equal(resource.text.length, limit - envelope);
    assert.deepEqual(await listAll(server, container, { key: pk }), [resource]);
    // A patch must not make it larger than that either.
    await refused(
        container.item("l", pk).patch([{ op: "add", path: "/more", value: "x".repeat(10_000) }]),
        413,
    );
    assert.deepEqual((await container.item("l", pk).read()).resource, resource);
});

test("an item is nested 128 deep at most", async () => {
    const nested = (depth) => `{"id":"n","pk":"deep","a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    const post = (body) => callItems(server, one, { method: "POST", key: "deep", body });
    errorAnswer(await post(nested(129)), 400, "BadRequest");
    await missing(one, "n", "deep");
    const made = await post(nested(128));
    assert.equal(made.status, 201, made.text);
    assert.deepEqual((await one.item("n", "deep").read()).resource.a, made.json.a);
});

// --- Refusals

test("what is not there is 404, below a missing container with its own sub-status", async () => {
    const absent = database.container("absent");
    const elsewhere = client.database("absent").container("c");
    for (const container of [absent, elsewhere]) {
        // The SDK reads the container first, to learn its partition key.
        const { code } = await container.items.create({ id: "x", pk: "p" }).catch((error) => error);
        assert.equal(code, 404);
        for (const request of [
            { method: "POST", body: { id: "x", pk: "p" } },
            { method: "GET" },
            { method: "GET", id: "x" },
            { method: "PUT", id: "x", body: { id: "x", pk: "p" } },
            { method: "PATCH", id: "x", body: { operations: [] } },
            { method: "DELETE", id: "x" },
        ]) {
            const answer = await callItems(server, container, { ...request, key: "p" });
            errorAnswer(
                answer,
                404,
                "NotFound",
                { substatus: 1003, message: /Owner resource does not exist/ },
            );
        }
    }
    await refused(five.item("x", "nothing here").delete(), 404);
});

test("a container that is dropped takes its items along", async () => {
    const doomed = await newContainer(database);
    await doomed.items.create({ id: "x", pk: "p" });
    await doomed.delete();
    const { container } = await database.containers.create({ id: doomed.id, partitionKey: "/pk" });
    assert.deepEqual(await listAll(server, container), []);
    await missing(container, "x", "p");
});
