// What scripts find on the server: the context, the collection and its operations, the query functions, the language.
import assert from "node:assert/strict";
import test from "node:test";

import { times } from "./lib/definition.mjs";
import { contentOf, fill, listAll, newContainer } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { execute, flow, procedure } from "./lib/scripts.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

/* global getContext, __ */

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "api" });
const container = await newContainer(database);

/** What an expression is inside a procedure. */
const valueOf = (expression) => execute(container, "any", `function () { getContext().getResponse().setBody(${expression}); }`);

// --- Context, request, response

test("the objects of the context are the same each time, and __ is the collection with them", async () => {
    const body = function () {
        const context = getContext();
        getContext().getResponse().setBody([
            context.getCollection() === getContext().getCollection(),
            Object.getPrototypeOf(__) === context.getCollection(),
            __.request === context.getRequest(),
            __.response === context.getResponse(),
            __.getSelfLink() === context.getCollection().getSelfLink(),
            typeof context.abort,
        ]);
    };
    assert.deepEqual(await execute(container, "any", body), [true, true, true, true, true, "function"]);
    const short = function () {
        __.response.setBody("short");
    };
    assert.equal(await execute(container, "any", short), "short");
});

test("links of the collection lead to its items", async () => {
    const { resource } = await container.read();
    const self = await valueOf("__.getSelfLink()");
    assert.match(self, /^dbs\/[^/]+\/colls\/[^/]+\/?$/);
    assert.ok(resource._self.startsWith(self) || self.startsWith(resource._self), `${self} and ${resource._self}`);
    const { resource: item } = await container.items.create({ pk: "links" });
    assert.ok(item._self.startsWith(self), `${item._self} begins with ${self}`);
    assert.equal(await valueOf("getContext().getCollection().getAltLink()"), `dbs/api/colls/${container.id}`);
});

test("values of the response are read, set and appended to by name", async () => {
    const body = function () {
        const r = getContext().getResponse();
        const seen = [r.getBody(), r.getValue("Body"), r.getValue(undefined) === undefined];
        const append = (value, more) => {
            r.setBody(value);
            r.appendBody(more);
            return r.getBody();
        };
        seen.push(append("a", "b"), append("a", 1), append(null, "x"), append(undefined, 5), append(1, 2), append({}, "!"));
        r.setValue("Body", "v");
        r.appendValue("Body", "w");
        seen.push(r.getValue("Body"));
        const object = {};
        r.setBody(object);
        seen.push(r.getBody() === object);
        r.setBody(seen);
    };
    const expected = ["", "", true, "ab", "a1", "x", 5, 3, "[object Object]!", "vw", true];
    assert.deepEqual(await execute(container, "any", body), expected);
});

test("what is not writable is not written, and new headers cannot be made", async () => {
    const body = flow(async ({ context, response, thrown }) => {
        const request = context.getRequest();
        return {
            unknown: thrown(() => response.setValue("Test", "x")),
            appended: thrown(() => response.appendValue("Test", "x")),
            lower: thrown(() => response.setValue("body", "x")),
            read: thrown(() => response.getValue("Test")).name,
            requestBody: thrown(() => request.setBody("x")).name,
            requestValue: thrown(() => request.setValue("Body", "x")).name,
            types: [typeof response.getOperationType, typeof response.getMaxResourceQuota, typeof request.getBody],
        };
    });
    const seen = await execute(container, "any", body);
    for (const error of [seen.unknown, seen.appended, seen.lower]) {
        assert.equal(error.number, 400);
        assert.match(error.message, /^Cannot set new values: /);
    }
    assert.deepEqual([seen.read, seen.requestBody, seen.requestValue], ["TypeError", "TypeError", "TypeError"]);
    assert.deepEqual(seen.types, ["undefined", "undefined", "function"]);
});

// --- Operations

test("an operation's callback gets what it made, and how", async () => {
    const pk = unique("key");
    const body = flow(async ({ call, self, link }, key) => {
        const seen = {};
        const [made, o] = await call("createDocument", self, { id: "a", pk: key, n: 1 });
        seen.create = [made.id, o.statusCode, typeof o.currentCollectionSizeInMB, typeof o.maxCollectionSizeInMB];
        seen.quota = [o.currentCollectionSizeInMB, o.maxCollectionSizeInMB];
        const byAlt = await call("readDocument", link("a"));
        const bySelf = await call("readDocument", made._self);
        seen.read = [byAlt[0]._rid === made._rid, bySelf[0]._rid === made._rid, byAlt[1].statusCode, byAlt[1].notModified === true];
        const [replaced] = await call("replaceDocument", made._self, { ...made, n: 2 });
        seen.replace = [replaced.n, replaced._rid === made._rid, replaced._etag !== made._etag];
        const list = await call("readDocuments", self);
        seen.list = [list[0].length, list[1].statusCode, list[1].continuation || ""];
        const byName = await call("readDocuments", link("x").slice(0, -"/docs/x".length));
        seen.byName = byName[0].length;
        const removed = await call("deleteDocument", made._self);
        seen.remove = [removed.length, removed[0].statusCode];
        return seen;
    });
    const { quota, ...seen } = await execute(container, pk, body, pk);
    assert.deepEqual(seen, {
        create: ["a", 201, "string", "string"],
        read: [true, true, 200, false],
        replace: [2, true, true],
        list: [1, 200, ""],
        byName: 1,
        remove: [1, 204],
    });
    for (const text of quota) assert.match(text, /^documentSize=\d+;/);
    assert.deepEqual(await listAll(server, container, { key: pk }), []);
});

test("the error of a callback is undefined when there is none", async () => {
    const body = function () {
        const c = getContext().getCollection();
        c.readDocuments(c.getSelfLink(), {}, function (...given) {
            getContext().getResponse().setBody([given[0] === undefined, given.length, Array.isArray(given[1]), typeof given[2]]);
        });
    };
    assert.deepEqual(await execute(container, unique("key"), body), [true, 3, true, "object"]);
});

test("options may be left out, and a callback takes their place", async () => {
    const pk = unique("key");
    const body = function (key) {
        const c = getContext().getCollection();
        const self = c.getSelfLink();
        const seen = [];
        const note = (what) => (error) => {
            if (error) throw error;
            seen.push(what);
            getContext().getResponse().setBody(seen);
        };
        c.createDocument(self, { id: "1", pk: key });
        c.createDocument(self, { id: "2", pk: key }, note("callback"));
        c.createDocument(self, { id: "3", pk: key }, {}, note("options and callback"));
        c.createDocument(self, { id: "4", pk: key }, undefined, note("undefined and callback"));
        c.createDocument(self, { id: "5", pk: key }, { unknown: 1, indexAction: "", etag: null });
        c.createDocument(self, { id: "6", pk: key }, {}, undefined);
        c.queryDocuments(self, "SELECT * FROM c", note("query"));
    };
    const seen = await execute(container, pk, body, pk);
    assert.deepEqual(seen, ["callback", "options and callback", "undefined and callback", "query"]);
    assert.equal((await listAll(server, container, { key: pk })).length, 6);
});

test("arguments that make no sense throw at once, with number 400", async () => {
    const body = flow(async ({ collection: c, self, alt, link, thrown }) => {
        const none = () => {};
        const item = { id: "x", pk: "y" };
        return {
            noLink: thrown(() => c.readDocument()),
            noBody: thrown(() => c.createDocument(self)),
            noQuery: thrown(() => c.queryDocuments(self)),
            noReplacement: thrown(() => c.replaceDocument(link("a"))),
            noCollection: thrown(() => c.readDocuments()),
            noRemoval: thrown(() => c.deleteDocument()),
            noUpsert: thrown(() => c.upsertDocument(self)),
            options: thrown(() => c.createDocument(self, item, "text", none)),
            optionsNumber: thrown(() => c.readDocuments(self, 5, none)),
            callback: thrown(() => c.createDocument(self, item, {}, "text")),
            callbackNull: thrown(() => c.createDocument(self, item, {}, null)),
            query: thrown(() => c.queryDocuments(self, 5, none)),
            nothing: thrown(() => c.createDocument(self, null, none)),
            number: thrown(() => c.createDocument(self, 5, none)),
            upsertNull: thrown(() => c.upsertDocument(self, null, none)),
            badCollection: thrown(() => c.readDocuments("dbs/x", none)),
            emptyCollection: thrown(() => c.readDocuments("", none)),
            longCollection: thrown(() => c.readDocuments(alt + "/docs", none)),
            foreignCollection: thrown(() => c.readDocuments("dbs/x/colls/y", none)),
            badDocument: thrown(() => c.readDocument("nonsense", none)),
            collectionAsDocument: thrown(() => c.readDocument(alt, none)),
            foreignDocument: thrown(() => c.readDocument("dbs/x/colls/y/docs/z", none)),
            otherSegment: thrown(() => c.deleteDocument(alt + "/sprocs/z", none)),
        };
    });
    const seen = await execute(container, "any", body);
    for (const [name, { number, message }] of Object.entries(seen)) assert.equal(number, 400, `${name}: ${message}`);
    assert.match(seen.noBody.message, /createDocument/);
    assert.match(seen.options.message, /"options" parameter must be of type "object"/);
    assert.match(seen.badCollection.message, /Invalid collection link: "dbs\/x"/);
    assert.match(seen.badDocument.message, /Invalid document link: "nonsense"/);
    const nulled = flow(async ({ collection, self, thrown }) => thrown(() => collection.readDocuments(self, null, () => {})));
    assert.equal((await execute(container, "any", nulled)).name, "TypeError");
});

test("an item is an object or its JSON text, as it was at the call", async () => {
    const pk = unique("key");
    const body = flow(async ({ call, self, failure, collection }, key) => {
        const item = { id: "early", pk: key, n: 1 };
        const early = new Promise((resolve) => collection.createDocument(self, item, (error, doc) => resolve(doc.n)));
        item.n = 2;
        const [text] = await call("createDocument", self, JSON.stringify({ id: "text", pk: key, n: 3 }));
        const [upserted] = await call("upsertDocument", self, JSON.stringify({ id: "text", pk: key, n: 4 }));
        const broken = await new Promise((resolve) => {
            try {
                collection.createDocument(self, "{ not JSON", (error) => resolve(error && error.number));
            } catch (error) {
                resolve(error.number);
            }
        });
        const nested = (await call("createDocument", self, { id: "n", pk: key, a: { b: [1, { c: null }] }, d: undefined, e: new Date(0) }))[0];
        return { early: await early, text: text.n, upserted: upserted.n, broken, nested };
    });
    const { nested, ...seen } = await execute(container, pk, body, pk);
    assert.deepEqual(seen, { early: 1, text: 3, upserted: 4, broken: 400 });
    assert.deepEqual(contentOf(nested), { id: "n", pk, a: { b: [1, { c: null }] }, e: "1970-01-01T00:00:00.000Z" });
});

test("an item without an id is given one, unless that is switched off", async () => {
    const pk = unique("key");
    const body = flow(async ({ call, self, failure }, key) => {
        const item = { pk: key };
        const [made] = await call("createDocument", self, item);
        const [other] = await call("upsertDocument", self, { pk: key, id: "" });
        const off = { disableAutomaticIdGeneration: true };
        return {
            ids: [made.id, other.id],
            untouched: Object.keys(item),
            off: (await failure(call("createDocument", self, { pk: key }, off))).number,
            upsertOff: (await failure(call("upsertDocument", self, { pk: key }, off))).number,
            given: (await call("createDocument", self, { pk: key, id: "given" }, off))[0].id,
        };
    });
    const { ids, ...seen } = await execute(container, pk, body, pk);
    for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i);
    assert.notEqual(ids[0], ids[1]);
    assert.deepEqual(seen, { untouched: ["pk"], off: 400, upsertOff: 400, given: "given" });
});

test("pages are as large as asked for, and go on in another execution", async () => {
    const pk = unique("key");
    await fill(container, times(250, (i) => ({ id: `${i}`, pk, n: i })));
    const body = flow(async ({ call, self }, kind, options) => {
        const query = "SELECT VALUE c.n FROM c WHERE c.n >= 0 ORDER BY c.n";
        const [rows, o] = kind === "list" ? await call("readDocuments", self, options) : await call("queryDocuments", self, query, options);
        return { rows: rows.map((row) => (kind === "list" ? row.n : row)), continuation: o.continuation };
    });
    const made = await procedure(container, body);
    for (const kind of ["list", "query"]) {
        for (const [pageSize, first] of [[undefined, 100], [20, 20], [7, 7]]) {
            const found = [];
            let continuation;
            let pages = 0;
            do {
                const { resource } = await made.execute(pk, [kind, { pageSize, continuation }]);
                assert.ok(resource.rows.length <= first, `${kind}: ${resource.rows.length} in a page of ${first}`);
                if (pages++ === 0) assert.equal(resource.rows.length, first);
                found.push(...resource.rows);
                continuation = resource.continuation;
                assert.ok(pages < 1000);
            } while (continuation);
            assert.deepEqual(found.sort((a, b) => a - b), times(250, (i) => i), kind);
        }
        const { resource } = await made.execute(pk, [kind, { pageSize: -1 }]);
        assert.ok(resource.rows.length > 0);
        const all = (await made.execute(pk, [kind, { pageSize: 1000 }])).resource;
        assert.equal(all.rows.length, 250);
        assert.ok(!all.continuation);
    }
});

test("options that have no meaning are errors of the operation", async () => {
    const pk = unique("key");
    const body = flow(async ({ call, self, failure, link }, key) => {
        const numberOf = async (...given) => (await failure(call(...given))).number ?? "fine";
        const item = { id: "x", pk: key };
        return {
            sizes: [
                await numberOf("readDocuments", self, { pageSize: -2 }),
                await numberOf("readDocuments", self, { pageSize: 1e12 }),
                await numberOf("readDocuments", self, { pageSize: "many" }),
                await numberOf("queryDocuments", self, "SELECT * FROM c", { pageSize: -5 }),
            ],
            sane: [
                await numberOf("readDocuments", self, { pageSize: -1 }),
                await numberOf("readDocuments", self, { pageSize: 20 }),
                await numberOf("queryDocuments", self, "SELECT * FROM c WHERE c.n = 1", { enableScan: true }),
            ],
            index: [
                await numberOf("createDocument", self, item, { indexAction: "sometimes" }),
                await numberOf("createDocument", self, item, { indexAction: "exclude" }),
                await numberOf("replaceDocument", link("x"), item, { indexAction: "include" }),
                await numberOf("upsertDocument", self, item, { indexAction: "default" }),
            ],
            continuation: await numberOf("readDocuments", self, { continuation: "nonsense" }),
            query: await numberOf("queryDocuments", self, "SELECT FROM"),
        };
    });
    const seen = await execute(container, pk, body, pk);
    assert.deepEqual(seen, {
        sizes: [400, 400, 400, 400],
        sane: ["fine", "fine", "fine"],
        index: [400, "fine", "fine", "fine"],
        continuation: 400,
        query: 400,
    });
});

test("queries have final values, parameters and the whole language", async () => {
    const pk = unique("key");
    await fill(container, times(30, (i) => ({ id: `${i}`, pk, n: i, g: i % 3, tags: [`t${i % 5}`, "all"] })));
    const body = flow(async ({ call, self }, queries) => {
        const found = [];
        for (const query of queries) found.push((await call("queryDocuments", self, query))[0]);
        return found;
    });
    const rows = [
        ["SELECT VALUE MAX(c.n) FROM c", [29]],
        ["SELECT VALUE MAX(c.n) FROM c WHERE c.n > 100", []],
        ["SELECT VALUE COUNT(1) FROM c WHERE c.n > 100", [0]],
        ["SELECT VALUE SUM(c.n) FROM c WHERE c.g = 1", [145]],
        [{ query: "SELECT c.id FROM c WHERE c.n = @n", parameters: [{ name: "@n", value: 7 }] }, [{ id: "7" }]],
        ["SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", [29, 28, 27]],
        ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 2", [5, 6]],
        ["SELECT DISTINCT VALUE c.g FROM c WHERE c.g < 2 ORDER BY c.g", [0, 1]],
        ["SELECT c.g, COUNT(1) AS n FROM c WHERE c.g = 2 GROUP BY c.g", [{ g: 2, n: 10 }]],
        ["SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 4", ["t4", "all"]],
        ["SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(c.tags, 't1') AND c.n < 10", [1, 6]],
    ];
    const found = await execute(container, pk, body, rows.map(([query]) => query));
    for (const [i, [query, expected]] of rows.entries()) assert.deepEqual(found[i], expected, JSON.stringify(query));
});

test("items whose ids need care are found by name", async () => {
    const pk = unique("key");
    const ids = ["with space", "ünïcødé", "per%20cent", "a&b=c", "quote's", '"q"', "😀"];
    for (const id of ids) await container.items.create({ id, pk });
    const body = flow(async ({ call, link }, names) => {
        const found = [];
        for (const name of names) found.push((await call("readDocument", link(name)))[0].id);
        return found;
    });
    assert.deepEqual(await execute(container, pk, body, ids), ids);
});

// --- The queue

test("a callback runs after the call has returned, and callbacks run in the order of the calls", async () => {
    const pk = unique("key");
    const body = function (key) {
        const c = getContext().getCollection();
        const seen = [];
        const note = (name) => (error) => {
            if (error) throw error;
            seen.push(name);
        };
        const accepted = [
            c.createDocument(c.getSelfLink(), { id: "1", pk: key }, note("first")),
            c.readDocument(c.getAltLink() + "/docs/1", note("second")),
            c.deleteDocument(c.getAltLink() + "/docs/1", note("third")),
            c.readDocuments(c.getSelfLink(), (error, docs) => {
                note("fourth")(error);
                c.readDocuments(c.getSelfLink(), note("sixth"));
                seen.push("in the fourth");
            }),
            c.queryDocuments(c.getSelfLink(), "SELECT * FROM c", note("fifth")),
        ];
        Promise.resolve().then(() => seen.push("microtask"));
        seen.push("the end", accepted);
        getContext().getResponse().setBody(seen);
    };
    assert.deepEqual(await execute(container, pk, body, pk), [
        "the end",
        [true, true, true, true, true],
        "microtask",
        "first",
        "second",
        "third",
        "fourth",
        "in the fourth",
        "fifth",
        "sixth",
    ]);
});

test("a loader that advances its index after the call comes to its end", async () => {
    const pk = unique("key");
    const body = function (docs) {
        const c = getContext().getCollection();
        const links = [];
        let index = 0;
        function next() {
            if (index >= docs.length) return getContext().getResponse().setBody(links);
            const isAccepted = c.createDocument(c.getSelfLink(), docs[index], function (error, doc) {
                if (error && error.number !== 409) throw error;
                links.push(error ? "exists" : doc._self);
                next();
            });
            if (!isAccepted) throw new Error("not accepted");
            index++;
        }
        next();
    };
    const docs = times(20, (i) => JSON.stringify({ id: `${i % 15}`, pk }));
    const links = await execute(container, pk, body, docs);
    assert.equal(links.length, 20);
    assert.equal(links.filter((link) => link === "exists").length, 5);
    assert.equal((await listAll(server, container, { key: pk })).length, 15);
});

test("an item is created and then found by its id in the same script", async () => {
    const pk = unique("key");
    const body = function (key) {
        const context = getContext();
        const c = context.getCollection();
        c.createDocument(c.getSelfLink(), { id: "made", pk: key }, function (error, made) {
            if (error) throw error;
            c.queryDocuments(c.getSelfLink(), "SELECT * FROM root r WHERE r.id = 'made'", function (failed, found) {
                if (failed) throw failed;
                context.getResponse().setBody({ made, found });
            });
        });
    };
    const { made, found } = await execute(container, pk, body, pk);
    assert.deepEqual(found, [made]);
});

test("readDocuments with an empty object of options, and with a continuation, finds every item", async () => {
    const pk = unique("key");
    await fill(container, times(120, (i) => ({ id: `item ${i}.`, pk })));
    const body = function () {
        const c = getContext().getCollection();
        const read = (options) =>
            c.readDocuments(c.getSelfLink(), options, function (error, docs, o) {
                if (error) throw error;
                getContext().getResponse().appendBody(JSON.stringify(docs));
                if (o.continuation) read({ continuation: o.continuation });
            });
        read({});
    };
    const text = await execute(container, pk, body);
    for (let i = 0; i < 120; i++) assert.ok(text.includes(`"item ${i}."`), `item ${i}`);
});

// --- The query functions

const PEOPLE = times(25, (i) => ({ id: `p${String(i).padStart(2, "0")}`, n: i, team: i % 2 ? "odd" : "even", langs: [`l${i % 3}`, "js"] }));

async function people() {
    const pk = unique("people");
    await fill(container, PEOPLE.map((one) => ({ ...one, pk })));
    return pk;
}

test("filter, map, pluck, sortBy, flatten and unwind hand their results to a callback", async () => {
    const pk = await people();
    for (const [name, text, expected] of [
        ["filter", "__.filter((d) => d.n < 3, done)", ["p00", "p01", "p02"]],
        ["filter by what is absent", "__.filter((d) => d.absent === undefined && d.n > 22, done)", ["p23", "p24"]],
        ["filter by truthiness", "__.filter((d) => d.n === 0 ? 'yes' : 0, done)", ["p00"]],
        ["filter with options", "__.filter((d) => d.n < 2, { pageSize: 30 }, done)", ["p00", "p01"]],
        ["filter with a collection", "__.filter(__, (d) => d.n < 1, done)", ["p00"]],
        ["map", "__.map((d) => d.n * 2, { pageSize: 3 }, done)", [0, 2, 4]],
        ["map to objects", "__.map((d) => ({ x: [d.n] }), { pageSize: 2 }, done)", [{ x: [0] }, { x: [1] }]],
        ["pluck", "__.pluck('team', { pageSize: 2 }, done)", ["even", "odd"]],
        ["sortByDescending", "__.sortByDescending((d) => d.n, done)", [...PEOPLE].reverse().map(({ id }) => id)],
        ["sortBy", "__.sortBy((d) => d.id, done)", PEOPLE.map(({ id }) => id)],
        ["unwind", "__.chain().filter((d) => d.n < 2).unwind((d) => d.langs).value(done)", ["l0", "js", "l1", "js"]],
        ["unwind with a result", "__.chain().filter((d) => d.n === 1).unwind((d) => d.langs, (d, l) => d.id + l).value(done)", ["p01l1", "p01js"]],
        ["flatten", "__.chain().filter((d) => d.n < 2).map((d) => [d.n, [d.n, [7]]]).flatten().value(done)", [0, 0, 7, 1, 1, 7]],
        ["flatten one level", "__.chain().filter((d) => d.n < 1).map((d) => [d.n, [5]]).flatten(true).value(done)", [0, [5]]],
        ["a chain", "__.chain().filter((d) => d.team === 'odd').sortByDescending((d) => d.n).pluck('n').value(done)", [23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1]],
        ["a chain with options", "__.chain().pluck('n').value({ pageSize: 4 }, done)", [0, 1, 2, 3]],
        ["of the collection", "getContext().getCollection().filter((d) => d.n < 1, done)", ["p00"]],
    ]) {
        const body = `function () {
            const done = (error, list) => {
                if (error) throw error;
                getContext().getResponse().setBody(list.map((one) => (one && one.team ? one.id : one)));
            };
            const result = ${text};
            if (result.isAccepted !== true) throw new Error("not accepted");
        }`;
        assert.deepEqual(await execute(container, pk, body), expected, name);
    }
});

test("predicates are closures, and pages of the query functions go on", async () => {
    const pk = await people();
    const body = function (limit) {
        let found = [];
        const run = (continuation) =>
            __.chain()
                .filter((d) => d.n < limit)
                .pluck("n")
                .value({ pageSize: 10, continuation }, function (error, list, o) {
                    if (error) throw error;
                    found = found.concat(list);
                    if (o.continuation) run(o.continuation);
                    else getContext().getResponse().setBody(found);
                });
        run();
    };
    assert.deepEqual(await execute(container, pk, body, 21), times(21, (i) => i));
});

test("without a callback the result is appended to the response as text", async () => {
    const pk = await people();
    const body = function () {
        __.chain().filter((d) => d.n < 3).pluck("n").value();
        __.pluck("n", { pageSize: 1 });
    };
    assert.equal(await execute(container, pk, body), "[0,1,2][0]");
});

test("calls of the query functions that make no sense throw 400", async () => {
    const body = flow(async ({ thrown }) => {
        const none = () => {};
        const one = (d) => d;
        return {
            filter: thrown(() => __.filter()),
            filterText: thrown(() => __.filter("d.n", none)),
            map: thrown(() => __.map({}, none)),
            pluck: thrown(() => __.pluck("", none)),
            pluckNumber: thrown(() => __.pluck(5, none)),
            sortBy: thrown(() => __.sortBy("n", none)),
            sortByDescending: thrown(() => __.sortByDescending(none, "x")),
            unwind: thrown(() => __.unwind("x", none)),
            unwindTwo: thrown(() => __.chain().unwind((a, b) => [a, b])),
            unwindResult: thrown(() => __.chain().unwind((a) => [a], (a) => a)),
            chainCallback: thrown(() => __.chain().filter(one, none)),
            chainOptions: thrown(() => __.chain().pluck("n", { pageSize: 1 })),
        };
    });
    const seen = await execute(container, "any", body);
    for (const [name, { number, message }] of Object.entries(seen)) assert.equal(number, 400, `${name}: ${message}`);
});

test("the error of a predicate goes to the callback", async () => {
    const pk = await people();
    const body = function () {
        __.filter(
            () => {
                throw new Error(321, "predicate");
            },
            (error) => __.response.setBody([error.number, error.message]),
        );
    };
    assert.deepEqual(await execute(container, pk, body), [321, "predicate"]);
});

// --- The language

test("modern ECMAScript works", async () => {
    for (const [expression, expected] of [
        ["(() => { let a = 1; { let a = 2; } const b = a; return b; })()", 1],
        ["((a, b = 2, ...rest) => [a, b, rest])(1, undefined, 3, 4)", [1, 2, [3, 4]]],
        ["`a${1 + 1}b`", "a2b"],
        ["String.raw`\\n${1}`", "\\n1"],
        ["(() => { const { a, ...rest } = { a: 1, b: 2, c: 3 }; return [a, rest]; })()", [1, { b: 2, c: 3 }]],
        ["({ ...{ a: 1 }, b: [...'xy'] })", { a: 1, b: ["x", "y"] }],
        ["new (class A { #p = 5; static s = 1; get p() { return this.#p + A.s; } })().p", 6],
        ["new (class B extends (class A { f() { return 1; } }) { f() { return super.f() + 1; } })().f()", 2],
        ["[...new Map([[1, 2]]).entries()]", [[1, 2]]],
        ["[...new Set([1, 1, 2])]", [1, 2]],
        ["[...(function* () { yield 1; yield* [2, 3]; })()]", [1, 2, 3]],
        ["(2n ** 64n).toString()", "18446744073709551616"],
        ["'price: $42'.match(/(?<=\\$)\\d+/)[0]", "42"],
        ["'2024-05'.match(/(?<year>\\d+)-(?<month>\\d+)/).groups.month", "05"],
        ["/\\p{L}+/u.exec('1äö2')[0]", "äö"],
        ["({ a: null }).a?.b ?? 'nothing'", "nothing"],
        ["Object.entries({ a: 1 })", [["a", 1]]],
        ["[1, [2, [3]]].flat(Infinity)", [1, 2, 3]],
        ["'ab'.repeat(3).padStart(8, '-')", "--ababab"],
        ["'a-b-c'.replaceAll('-', '+')", "a+b+c"],
        ["[1, 2, 3].at(-1)", 3],
        ["Object.fromEntries([['a', 1]])", { a: 1 }],
        ["[3, 1, 2].includes(2)", true],
        ["1_000_000", 1000000],
        ["Array.from(new Uint8Array([1, 2, 255]))", [1, 2, 255]],
        ["new Proxy({}, { get: () => 5 }).x", 5],
        ["Symbol('s').toString()", "Symbol(s)"],
        ["JSON.stringify({ a: [1, null] })", '{"a":[1,null]}'],
        ["Reflect.ownKeys({ a: 1 })", ["a"]],
        ["({ a: 1, a: 2 }).a", 2],
        ["typeof globalThis", "object"],
        ["(function () { undeclared = 5; return undeclared; })()", 5],
        ["(function () { return this === undefined; })()", false],
        ["Math.max(...[1, 5, 3])", 5],
        ["new Date(0).toISOString()", "1970-01-01T00:00:00.000Z"],
        ["Date.now() > 1.6e12 && Math.random() < 1", true],
    ])
        assert.deepEqual(await valueOf(expression), expected, expression);
});

test("promises and async functions wait for operations", async () => {
    const pk = unique("key");
    const body = async function (key) {
        const c = getContext().getCollection();
        const create = (id) =>
            new Promise((resolve, reject) => {
                const isAccepted = c.createDocument(c.getSelfLink(), { id, pk: key }, (error, doc) => (error ? reject(error) : resolve(doc)));
                if (!isAccepted) reject(new Error("not accepted"));
            });
        const all = await Promise.all(["a", "b", "c"].map(create));
        const order = [];
        for await (const id of ["d", "e"]) order.push((await create(id)).id);
        let number;
        try {
            await create("a");
        } catch (error) {
            number = error.number;
        } finally {
            order.push("finally");
        }
        const settled = await Promise.allSettled([create("f"), create("f")]);
        const states = settled.map(({ status }) => status);
        getContext().getResponse().setBody({ all: all.map(({ id }) => id), order, number, states });
    };
    assert.deepEqual(await execute(container, pk, body, pk), {
        all: ["a", "b", "c"],
        order: ["d", "e", "finally"],
        number: 409,
        states: ["fulfilled", "rejected"],
    });
    assert.equal((await listAll(server, container, { key: pk })).length, 6);
});

test("an Error may have a number and a message", async () => {
    const body = function () {
        const show = (e) => [e.number, e.message, String(e), e instanceof Error];
        class Own extends Error {}
        getContext().getResponse().setBody([
            show(new Error(5, "five")),
            show(Error(6, "six")),
            show(new Error("one")),
            show(new TypeError("type")),
            show(new Own("own")),
            new Error("x", { cause: 7 }).cause,
        ].map((one) => (one === undefined ? null : one)));
    };
    const seen = await execute(container, "any", body);
    assert.deepEqual(seen.slice(0, 5), [
        [5, "five", "Error: five", true],
        [6, "six", "Error: six", true],
        [null, "one", "Error: one", true],
        [null, "type", "TypeError: type", true],
        [null, "own", "Error: own", true],
    ]);
    assert.equal(seen[5], 7);
});

test("a body is a function in any form, with what may stand around it", async () => {
    const set = "getContext().getResponse().setBody";
    for (const body of [
        `function () { ${set}(1); }`,
        `function named() { ${set}(1); }`,
        `() => { ${set}(1); }`,
        `() => ${set}(1)`,
        `async () => { ${set}(1); }`,
        `async function () { await null; ${set}(1); }`,
        `function () { ${set}(1); };`,
        `// a comment\nfunction () { ${set}(1); }`,
        `/* a comment */ function () { ${set}(1); } // and one more`,
        `\uFEFF// begins with a mark\r\nfunction () {\r\n ${set}(1);\r\n}\r\n`,
        `function main() { helper(); }\nfunction helper() { ${set}(1); }`,
        `function () { "use strict"; ${set}(1); }`,
        `(function () { ${set}(1); })`,
    ])
        assert.equal(await execute(container, "any", body), 1, body);
});

test("there are no timers, modules, files or networks", async () => {
    const names = ["setTimeout", "setInterval", "setImmediate", "require", "process", "fetch", "XMLHttpRequest", "WebSocket", "window", "module"];
    for (const name of names) assert.equal(await valueOf(`typeof ${name}`), "undefined", name);
    const imported = "async function () { try { await import('fs'); __.response.setBody('imported'); } catch (e) { __.response.setBody('no'); } }";
    const made = await procedure(container, imported);
    const outcome = await made.execute("any").then(({ resource }) => resource, ({ code }) => code);
    assert.ok(outcome === "no" || outcome === 400, `${outcome}`);
});

test("time goes on while a script runs", async () => {
    const body = function () {
        const begun = Date.now();
        while (Date.now() < begun + 20);
        getContext().getResponse().setBody(Date.now() - begun);
    };
    assert.ok((await execute(container, "any", body)) >= 20);
});
