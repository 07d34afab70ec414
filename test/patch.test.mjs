// Partial update: six operations, paths into objects and arrays, conditions, refusals.
import assert from "node:assert/strict";
import test from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { callItems, contentOf, eachSize, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "patch" });
const containers = await eachSize(database);

// Before, operations, after; ids and keys are filled in.
const GOOD = [
    ["add makes a member", {}, [{ op: "add", path: "/a", value: 1 }], { a: 1 }],
    ["add replaces a member", { a: 1 }, [{ op: "add", path: "/a", value: [2] }], { a: [2] }],
    [
        "add goes into nested objects",
        { a: { b: {} } },
        [{ op: "add", path: "/a/b/c", value: null }],
        { a: { b: { c: null } } },
    ],
    ["add inserts into an array", { a: [1, 3] }, [{ op: "add", path: "/a/1", value: 2 }], { a: [1, 2, 3] }],
    ["add appends at the end", { a: [1] }, [{ op: "add", path: "/a/1", value: 2 }], { a: [1, 2] }],
    ["add appends at -", { a: [1] }, [{ op: "add", path: "/a/-", value: { x: 2 } }], { a: [1, { x: 2 }] }],
    ["set makes a member", {}, [{ op: "set", path: "/a", value: "x" }], { a: "x" }],
    ["set replaces a member", { a: { b: 1 } }, [{ op: "set", path: "/a", value: 2 }], { a: 2 }],
    ["set replaces an element", { a: [1, 2, 3] }, [{ op: "set", path: "/a/1", value: 9 }], { a: [1, 9, 3] }],
    [
        "set goes through arrays",
        { a: [{ b: 1 }] },
        [{ op: "set", path: "/a/0/b", value: 2 }],
        { a: [{ b: 2 }] },
    ],
    ["replace replaces a member", { a: 1 }, [{ op: "replace", path: "/a", value: 2 }], { a: 2 }],
    [
        "replace replaces an element",
        { a: [1, 2] },
        [{ op: "replace", path: "/a/0", value: 9 }],
        { a: [9, 2] },
    ],
    ["remove removes a member", { a: 1, b: 2 }, [{ op: "remove", path: "/a" }], { b: 2 }],
    ["remove closes an array up", { a: [1, 2, 3] }, [{ op: "remove", path: "/a/1" }], { a: [1, 3] }],
    [
        "remove reaches into nests",
        { a: [{ b: [1, 2] }] },
        [{ op: "remove", path: "/a/0/b/0" }],
        { a: [{ b: [2] }] },
    ],
    ["incr adds", { a: 1 }, [{ op: "incr", path: "/a", value: 2 }], { a: 3 }],
    ["incr subtracts", { a: 1 }, [{ op: "incr", path: "/a", value: -2.5 }], { a: -1.5 }],
    ["incr makes what is missing", {}, [{ op: "incr", path: "/a", value: 7 }], { a: 7 }],
    ["incr works on an element", { a: [1, 2] }, [{ op: "incr", path: "/a/1", value: 1 }], { a: [1, 3] }],
    ["move renames", { a: 1 }, [{ op: "move", from: "/a", path: "/b" }], { b: 1 }],
    ["move overwrites its target", { a: 1, b: 2 }, [{ op: "move", from: "/a", path: "/b" }], { b: 1 }],
    ["move goes out of a nest", { a: { b: 1 } }, [{ op: "move", from: "/a/b", path: "/c" }], { a: {}, c: 1 }],
    ["move takes from an array", { a: [1, 2] }, [{ op: "move", from: "/a/0", path: "/b" }], { a: [2], b: 1 }],
    [
        "names may hold slashes and tildes",
        { "a/b": 1, "c~d": 2 },
        [{ op: "set", path: "/a~1b", value: 3 }, { op: "remove", path: "/c~0d" }],
        { "a/b": 3 },
    ],
    ["names may be of any language", { ключ: 1 }, [{ op: "incr", path: "/ключ", value: 1 }], { ключ: 2 }],
    [
        "later operations see earlier ones",
        {},
        [
            { op: "add", path: "/a", value: {} },
            { op: "set", path: "/a/b", value: 1 },
            { op: "incr", path: "/a/b", value: 1 },
            { op: "move", from: "/a/b", path: "/c" },
        ],
        { a: {}, c: 2 },
    ],
    ["the ttl may be set", {}, [{ op: "set", path: "/ttl", value: 1000 }], { ttl: 1000 }],
    [
        "ten operations are allowed",
        {},
        Array.from({ length: 10 }, (_, i) => ({ op: "set", path: `/m${i}`, value: i })),
        Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`m${i}`, i])),
    ],
];
for (const [size, container] of containers) {
    for (const [what, before, operations, after] of GOOD)
        test(`${what} (${size})`, async () => {
            const pk = unique("good");
            const { resource: made } = await container.items.create({ id: "x", pk, ...before });
            for (const form of [operations, { operations }]) {
                await container.items.upsert({ id: "x", pk, ...before });
                const { resource, statusCode } = await container.item("x", pk).patch(form);
                assert.equal(statusCode, 200);
                assert.deepEqual(contentOf(resource), { id: "x", pk, ...after });
                assert.equal(resource._rid, made._rid);
                assert.notEqual(resource._etag, made._etag);
                assert.deepEqual((await container.item("x", pk).read()).resource, resource);
            }
        });
}

const START = { a: 1, text: "x", list: [1, 2], nest: { b: 1 }, none: null };
const BAD = [
    ["add into nothing", [{ op: "add", path: "/no/where", value: 1 }], /For Operation\(1\)/],
    ["add beyond an array", [{ op: "add", path: "/list/3", value: 1 }]],
    ["set beyond an array", [{ op: "set", path: "/list/9", value: 1 }]],
    ["set below a number", [{ op: "set", path: "/a/b", value: 1 }]],
    ["replace of nothing", [{ op: "replace", path: "/no", value: 1 }]],
    ["replace beyond an array", [{ op: "replace", path: "/list/2", value: 1 }]],
    ["remove of nothing", [{ op: "remove", path: "/no" }]],
    ["remove beyond an array", [{ op: "remove", path: "/list/2" }]],
    ["an index with a sign", [{ op: "set", path: "/list/-1", value: 1 }]],
    ["an index in words", [{ op: "set", path: "/list/one", value: 1 }]],
    ["incr of a text", [{ op: "incr", path: "/text", value: 1 }]],
    ["incr of null", [{ op: "incr", path: "/none", value: 1 }]],
    ["incr by a text", [{ op: "incr", path: "/a", value: "1" }]],
    [
        "incr beyond all numbers",
        [{ op: "set", path: "/a", value: 1.7e308 }, { op: "incr", path: "/a", value: 1.7e308 }],
        /For Operation\(2\)/,
    ],
    ["move of nothing", [{ op: "move", from: "/no", path: "/b" }]],
    ["move into itself", [{ op: "move", from: "/nest", path: "/nest/c" }]],
    ["move without a source", [{ op: "move", path: "/b" }]],
    [
        "a good one before a bad one",
        [{ op: "set", path: "/a", value: 2 }, { op: "remove", path: "/no" }],
        /For Operation\(2\)/,
    ],
    ["an unknown operation", [{ op: "multiply", path: "/a", value: 2 }]],
    ["no operation at all", [{ path: "/a", value: 2 }]],
    ["no path", [{ op: "set", value: 2 }]],
    ["a path without a slash", [{ op: "set", path: "a", value: 2 }]],
    ["an empty path", [{ op: "set", path: "", value: 2 }]],
    ["no value", [{ op: "set", path: "/a" }]],
    ["a broken escape", [{ op: "set", path: "/a~2", value: 2 }]],
    ["the id", [{ op: "set", path: "/id", value: "y" }]],
    ["removing the id", [{ op: "remove", path: "/id" }]],
    ["moving the id away", [{ op: "move", from: "/id", path: "/b" }]],
    ["moving onto the id", [{ op: "move", from: "/text", path: "/id" }]],
    ["the partition key", [{ op: "set", path: "/pk", value: "y" }]],
    ["removing the partition key", [{ op: "remove", path: "/pk" }]],
    ["below the partition key", [{ op: "add", path: "/pk/x", value: 1 }]],
    ["a timestamp", [{ op: "set", path: "/_ts", value: 1 }]],
    ["an ETag", [{ op: "set", path: "/_etag", value: "x" }]],
    ["a resource id", [{ op: "remove", path: "/_rid" }]],
    ["a link", [{ op: "set", path: "/_self", value: "x" }]],
    ["a bad ttl", [{ op: "set", path: "/ttl", value: 0 }]],
    [
        "eleven operations",
        Array.from({ length: 11 }, (_, i) => ({ op: "set", path: `/m${i}`, value: i })),
        /10/,
    ],
    ["no operations", []],
];
for (const [size, container] of containers)
    test(`what cannot be patched is refused and changes nothing (${size})`, async (t) => {
        for (const [what, operations, message] of BAD)
            await t.test(what, async () => {
                const pk = unique("bad");
                const { resource } = await container.items.create({ id: "x", pk, ...START });
                for (const body of [JSON.stringify(operations), JSON.stringify({ operations })]) {
                    const answer = await callItems(
                        server,
                        container,
                        { method: "PATCH", id: "x", key: pk, body },
                    );
                    assert.equal(answer.status, 400, answer.text);
                    errorAnswer(answer, 400, "BadRequest", { message });
                }
                assert.deepEqual((await container.item("x", pk).read()).resource, resource);
            });
    });

test("a key of several paths is out of reach, at all of them and on the way", async () => {
    const partitionKey = { paths: ["/a/b", "/c"], kind: "MultiHash", version: 2 };
    const container = await newContainer(database, undefined, { partitionKey });
    await container.items.create({ id: "x", a: { b: "1", free: 1 }, c: "2" });
    const item = container.item("x", ["1", "2"]);
    for (const path of ["/a", "/a/b", "/c"]) {
        await refused(item.patch([{ op: "set", path, value: "9" }]), 400);
        await refused(item.patch([{ op: "remove", path }]), 400);
    }
    const { resource } = await item.patch([{ op: "set", path: "/a/free", value: 2 }]);
    assert.deepEqual(contentOf(resource), { id: "x", a: { b: "1", free: 2 }, c: "2" });
});

const CONDITIONS = [
    ["from c where c.n = 1", true],
    ["FROM c WHERE c.n = 2", false],
    ["from c where c.text = 'x' and c.n < 5", true],
    ["from c where is_defined(c.missing)", false],
    ["from c where c.missing = 1", false],
    ["from c where c.nest.b = 1", true],
    ["from root where root.id = 'x'", true],
    ["from c where c._ts > 0", true],
    ["from c where ARRAY_CONTAINS(c.list, 2)", true],
    ["from c", true],
];
for (const [size, container] of containers)
    test(`a patch is applied only if its condition holds (${size})`, async () => {
        const pk = unique("condition");
        const item = container.item("x", pk);
        for (const [condition, holds] of CONDITIONS) {
            const { resource } = await container.items.upsert({ id: "x", pk, ...START, n: 1 });
            const call = item.patch({ condition, operations: [{ op: "incr", path: "/n", value: 1 }] });
            if (holds) assert.equal((await call).resource.n, 2, condition);
            else await refused(call, 412, { message: /pre-condition is not met/ });
            if (!holds) assert.deepEqual((await item.read()).resource, resource);
        }
        const broken = ["x", "true", "1", "where", "from c where", "select * from c", "from c where c.n ==", "; drop"];
        for (const condition of broken) {
            const call = item.patch({ condition, operations: [{ op: "incr", path: "/n", value: 1 }] });
            await refused(call, 400);
        }
    });

test("what is no patch is refused", async () => {
    const [[, container]] = containers;
    const pk = unique("none");
    const { resource } = await container.items.create({ id: "x", pk });
    const bodies = ["", "1", "{}", '{"operations":1}', "[1]", "[[]]", '{"operations":[]', '"x"', "null"];
    for (const body of bodies) {
        const answer = await callItems(server, container, { method: "PATCH", id: "x", key: pk, body });
        assert.equal(answer.status, 400, `${body}: ${answer.text}`);
    }
    assert.deepEqual((await container.item("x", pk).read()).resource, resource);
    await refused(container.item("y", pk).patch([{ op: "set", path: "/a", value: 1 }]), 404);
});

for (const [size, container] of containers)
    test(`increments by many clients at once all count (${size})`, async () => {
        const pk = unique("counter");
        await container.items.create({ id: "x", pk, n: 0 });
        const lane = async () => {
            for (let i = 0; i < 25; i++)
                await container.item("x", pk).patch([{ op: "incr", path: "/n", value: 1 }]);
        };
        await Promise.all(Array.from({ length: 16 }, lane));
        assert.equal((await container.item("x", pk).read()).resource.n, 400);
    });
