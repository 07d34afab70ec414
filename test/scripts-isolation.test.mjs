// Scripts beside other clients: none of their changes is lost, they share nothing, and hostile ones harm only themselves.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";

import { CHAOS, cause, moved } from "./lib/chaos.mjs";
import { times } from "./lib/definition.mjs";
import { callItems, contentOf, eachSize, fill, listAll, newContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { execute, executeRaw, flow, procedure, trigger } from "./lib/scripts.mjs";
import { sharedServer } from "./lib/server.mjs";
import { checkRanges, rangesOf } from "./lib/splits.mjs";
import { unique } from "./lib/wire.mjs";

/* global getContext, __ */

const server = await sharedServer({ args: CHAOS });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "isolation" });
const containers = await eachSize(database);
const [[, container]] = containers;

function onEach(name, work) {
    for (const [size, one] of containers) test(`${name} (${size})`, (t) => work(one, unique("key"), t));
}

// It reads and replaces without an ETag: only the transaction keeps others away.
const INCREMENT = function (id) {
    const c = getContext().getCollection();
    c.readDocument(c.getAltLink() + "/docs/" + id, function (error, counter) {
        if (error) throw error;
        counter.n++;
        c.replaceDocument(counter._self, counter, function (failed, replaced) {
            if (failed) throw failed;
            getContext().getResponse().setBody(replaced.n);
        });
    });
};

/** Runs `work(agent, i)` on each of so many connections; all results. */
async function onConnections(count, work) {
    const runs = times(count, async (i) => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        try {
            return await work(agent, i);
        } finally {
            agent.destroy();
        }
    });
    return Promise.all(runs);
}

/** As a client does it: what is asked to come later, or to try again, does so. */
async function insist(ask) {
    for (let turn = 0; ; turn++) {
        const answer = await ask();
        if (answer.status !== 429 && answer.status !== 449) return answer;
        assert.ok(turn < 1000, answer.text);
        const wait_ms = Number(answer.headers["x-ms-retry-after-ms"] ?? 1);
        await new Promise((resolve) => setTimeout(resolve, wait_ms));
    }
}

// --- Nothing is lost

onEach("32 connections increment one counter, and none of it is lost", async (container, pk) => {
    await container.items.create({ id: "counter", pk, n: 0 });
    const { id } = await procedure(container, INCREMENT);
    const seen = await onConnections(32, async (agent) => {
        const results = [];
        for (let i = 0; i < 10; i++) {
            const answer = await insist(() => executeRaw(server, container, id, { key: pk, body: ["counter"], agent }));
            assert.equal(answer.status, 200, answer.text);
            results.push(answer.json);
        }
        return results;
    });
    assert.equal((await container.item("counter", pk).read()).resource.n, 320);
    assert.deepEqual(seen.flat().sort((a, b) => a - b), times(320, (i) => i + 1), "each has seen a value of its own");
});

onEach("procedures, triggers and replaces with an ETag change one counter, and none of it is lost", async (container, pk) => {
    await container.items.create({ id: "counter", pk, n: 0 });
    const { id } = await procedure(container, INCREMENT);
    const counting = await trigger(container, "Post", "Create", function () {
        __.readDocument(__.getAltLink() + "/docs/counter", function (error, counter) {
            if (error) throw error;
            counter.n++;
            __.replaceDocument(counter._self, counter, function (failed) {
                if (failed) throw failed;
            });
        });
    });
    const expect = (answer, ...statuses) => assert.ok(statuses.includes(answer.status), `${answer.status} ${answer.text}`);
    const byProcedure = async (agent) => {
        for (let i = 0; i < 10; i++)
            expect(await insist(() => executeRaw(server, container, id, { key: pk, body: ["counter"], agent })), 200);
    };
    const byReplace = async (agent) => {
        for (let done = 0; done < 5; ) {
            const { json } = await callItems(server, container, { id: "counter", key: pk, agent });
            const headers = { "if-match": json._etag };
            const body = { ...contentOf(json), n: json.n + 1 };
            const answer = await insist(() => callItems(server, container, { method: "PUT", id: "counter", key: pk, headers, body, agent }));
            expect(answer, 200, 412);
            if (answer.status === 200) done++;
        }
    };
    const byTrigger = async (agent, connection) => {
        const headers = { "x-ms-documentdb-post-trigger-include": counting };
        for (let i = 0; i < 5; i++) {
            const body = { id: `${connection}-${i}`, pk };
            expect(await insist(() => callItems(server, container, { method: "POST", key: pk, headers, body, agent })), 201);
        }
    };
    const byPatch = async (agent) => {
        const body = { operations: [{ op: "incr", path: "/n", value: 1 }] };
        for (let i = 0; i < 5; i++)
            expect(await insist(() => callItems(server, container, { method: "PATCH", id: "counter", key: pk, body, agent })), 200);
    };
    const kinds = [byProcedure, byReplace, byTrigger, byPatch];
    await onConnections(32, (agent, i) => kinds[i % 4](agent, i));
    assert.equal((await container.item("counter", pk).read()).resource.n, 8 * (10 + 5 + 5 + 5));
    assert.equal((await listAll(server, container, { key: pk })).length, 1 + 8 * 5);
});

onEach("two items that a procedure keeps equal are never seen unequal", async (container, pk) => {
    for (const id of ["a", "b"]) await container.items.create({ id, pk, n: 0 });
    const both = flow(async ({ call, link }, step) => {
        const read = async (id) => (await call("readDocument", link(id)))[0];
        const [a, b] = [await read("a"), await read("b")];
        if (a.n !== b.n) throw new Error(`a procedure saw ${a.n} and ${b.n}`);
        for (const item of [a, b]) await call("replaceDocument", item._self, { ...item, n: item.n + step });
        return a.n;
    });
    const { id } = await procedure(container, both);
    let isOver = false;
    const watching = onConnections(2, async (agent) => {
        let looks = 0;
        for (; !isOver || looks === 0; looks++) {
            const items = await listAll(server, container, { key: pk, agent });
            assert.equal(items[0].n, items[1].n, "a list saw one half of a procedure");
        }
        return looks;
    });
    await onConnections(4, async (agent) => {
        for (let i = 0; i < 25; i++) {
            const answer = await insist(() => executeRaw(server, container, id, { key: pk, body: [1], agent }));
            assert.equal(answer.status, 200, answer.text);
        }
    });
    isOver = true;
    assert.ok((await watching).every((looks) => looks > 0));
    assert.equal((await container.item("a", pk).read()).resource.n, 100);
});

test("procedures of different keys run beside each other", async () => {
    const body = function (id) {
        const c = getContext().getCollection();
        c.upsertDocument(c.getSelfLink(), { id: "x", pk: id }, function (error) {
            if (error) throw error;
            const begun = Date.now();
            while (Date.now() < begun + 300);
            getContext().getResponse().setBody([begun, Date.now()]);
        });
    };
    const { id } = await procedure(container, body);
    // Two that wait for each other would never overlap; on a busy machine it may take more than one try.
    await until(async () => {
        const spans = await onConnections(2, async (agent, i) => {
            const key = unique(`beside${i}`);
            return (await executeRaw(server, container, id, { key, body: [key], agent })).json;
        });
        const [[begun1, ended1], [begun2, ended2]] = spans;
        return begun1 < ended2 && begun2 < ended1;
    });
});

// --- Nothing is shared

test("an execution sees nothing of those before it", async () => {
    const poison = `function () {
        left = "behind";
        globalThis.other = 1;
        Array.prototype.push = function () { throw new Error("poisoned"); };
        Object.prototype.inherited = 1;
        Object.defineProperty(Object.prototype, "then", { get() { throw new Error("poisoned"); }, configurable: true });
        Promise.prototype.then = null;
        JSON.stringify = () => "poisoned";
        JSON.parse = () => "poisoned";
        String = Math = Date = Error = null;
        getContext = null;
        __.constructor.prototype.x = 1;
        console.log = null;
        Object.setPrototypeOf(__, null);
    }`;
    const dirty = await procedure(container, poison);
    const looking = function () {
        const names = ["left", "other"].filter((name) => name in globalThis);
        const list = [];
        list.push(1);
        getContext().getResponse().setBody([names, ({}).inherited === undefined, ({}).x === undefined, JSON.stringify({ a: 1 }), typeof Math.max, typeof Date.now(), list, typeof console.log]);
    };
    const clean = await procedure(container, looking);
    for (let round = 0; round < 10; round++) {
        const answer = await executeRaw(server, container, dirty.id, { key: "any" });
        assert.ok(answer.status === 200 || answer.status === 400, answer.text);
        const seen = (await clean.execute("any")).resource;
        assert.deepEqual(seen, [[], true, true, '{"a":1}', "function", "number", [1], "function"]);
    }
    const all = await Promise.all(times(16, (i) => (i % 2 ? clean.execute(`k${i}`) : executeRaw(server, container, dirty.id, { key: `k${i}` }))));
    for (const { resource } of all.filter((_, i) => i % 2)) assert.deepEqual(resource[0], []);
});

test("a script that changes what the API is made of does not deceive the server", async () => {
    const pk = unique("key");
    const other = unique("other");
    await container.items.create({ id: "secret", pk: other });
    const body = `function (key, foreign) {
        const c = getContext().getCollection();
        c.getSelfLink = () => "dbs/x/colls/y";
        String.prototype.split = () => ["dbs", "x", "colls", "y", "docs", "secret"];
        String.prototype.startsWith = () => true;
        Array.prototype.join = () => '["' + foreign + '"]';
        JSON.stringify = () => '{"id":"planted","pk":"' + foreign + '"}';
        Object.defineProperty(Object.prototype, "partitionKey", { value: [foreign], configurable: true });
        Object.defineProperty(Object.prototype, "etag", { get() { return '"x"'; }, configurable: true });
        try { c.createDocument(c.getAltLink(), { id: "planted", pk: foreign }, () => {}); } catch (e) {}
        try { c.readDocument(c.getAltLink() + "/docs/secret", (e, doc) => getContext().getResponse().setBody(doc ? "read" : "not read")); } catch (e) {}
    }`;
    const made = await procedure(container, body);
    const answer = await executeRaw(server, container, made.id, { key: pk, body: [pk, other] });
    assert.ok(answer.status === 200 || answer.status === 400, answer.text);
    assert.doesNotMatch(answer.text, /^"read"/);
    assert.deepEqual((await listAll(server, container, { key: other })).map(({ id }) => id), ["secret"]);
});

// --- Hostile scripts

const HOSTILE = [
    ["an endless loop", "for (;;);"],
    ["an endless loop that catches", "for (;;) try { for (;;); } catch (e) {}"],
    ["an allocation bomb", "const list = []; for (;;) list.push(new Array(100000).fill(list.length + 0.5));"],
    ["a gigantic array", "const a = new Array(4294967295); a.fill(0); __.response.setBody(a);"],
    ["a sparse array as the response", "const a = []; a[4000000000] = 1; __.response.setBody(a);"],
    ["a poisoned prototype", "Object.defineProperty(Object.prototype, 'toJSON', { get() { for (;;); } }); __.response.setBody({});"],
    // The engine gives up after a while and says that there is no match.
    ["a regular expression that backtracks", "if (!/^(a+)+$/.test('a'.repeat(50) + '!')) throw new Error('no match');"],
    ["a stack that overflows", "(function f() { return [f()].concat(f()); })();"],
    ["a string of 100 MB", "const s = 'x'.repeat(100 << 20) + Math.random(); __.response.setBody(s);"],
    ["a string that doubles", "let s = 'ab'; for (;;) { s = s + s; s.charCodeAt(s.length - 1); }"],
    ["a response that is nested too deep", "let v = 1; for (let i = 0; i < 1e6; i++) v = [v]; __.response.setBody(v);"],
    ["a response that changes for ever", "__.response.setBody({ toJSON() { for (;;); } });"],
    ["an item that is nested too deep", "let v = 1; for (let i = 0; i < 1e6; i++) v = [v]; __.createDocument(__.getSelfLink(), { id: 'x', v });"],
    ["an item of 100 MB", "__.createDocument(__.getSelfLink(), { id: 'x', text: 'x'.repeat(100 << 20) });"],
    ["operations that never end", "(function again() { for (let i = 0; i < 1000; i++) __.readDocuments(__.getSelfLink()); again(); })();"],
    ["a log that never ends", "for (;;) console.log('x');"],
    ["a thread that waits", "const a = new Int32Array(new SharedArrayBuffer(4)); for (;;) Atomics.wait(a, 0, 0);"],
    ["a generator that never ends", "Array.from((function* () { for (let i = 0; ; i++) yield 'text ' + i; })());"],
    ["microtasks that never end", "(function again() { Promise.resolve().then(again); })();"],
    ["a number that is too large", "let n = 3n; for (;;) n = n ** 2n;"],
];

test("hostile scripts end with an error of the protocol, while others read and write as ever", { timeout: 600_000 }, async (t) => {
    const quiet = await newContainer(database);
    await fill(quiet, times(100, (i) => ({ id: `${i}`, pk: `k${i % 10}`, n: i })));
    const { id: harmless } = await procedure(quiet, INCREMENT);
    await quiet.items.create({ id: "counter", pk: "counting", n: 0 });
    let isOver = false;
    const done = { reads: 0, writes: 0, queries: 0, procedures: 0 };
    const others = [
        async (agent, i) => {
            const n = i % 100;
            const { status, json } = await callItems(server, quiet, { id: `${n}`, key: `k${n % 10}`, agent });
            assert.deepEqual([status, json.n], [200, n]);
            done.reads++;
        },
        async (agent, i) => {
            const body = { id: "mine", pk: "writes", i };
            const headers = { "x-ms-documentdb-is-upsert": "true" };
            const { status, text } = await callItems(server, quiet, { method: "POST", key: "writes", headers, body, agent });
            assert.ok(status === 200 || status === 201, text);
            done.writes++;
        },
        async (agent) => {
            const items = await listAll(server, quiet, { key: "k3", agent });
            assert.equal(items.length, 10);
            done.queries++;
        },
        async (agent) => {
            const answer = await insist(() => executeRaw(server, quiet, harmless, { key: "counting", body: ["counter"], agent }));
            assert.equal(answer.status, 200, answer.text);
            done.procedures++;
        },
    ];
    const going = onConnections(others.length, async (agent, which) => {
        for (let i = 0; !isOver; i++) await others[which](agent, i);
    });
    let failed;
    going.catch((error) => (failed = error));

    const pk = unique("hostile");
    const outcomes = {};
    const left = [...HOSTILE];
    const attackers = times(4, async () => {
        for (let next; (next = left.shift()); ) {
            const [name, statement] = next;
            const key = `${pk} ${name}`;
            // What it writes before must not stay.
            const body = `function (key) {
                __.createDocument(__.getSelfLink(), { id: "before", pk: key }, function (error) { if (error) throw error; ${statement} });
            }`;
            const { id } = await procedure(container, body);
            const headers = { "x-ms-documentdb-script-enable-logging": "true" };
            const answer = await insist(() => executeRaw(server, container, id, { key, body: [key], headers }));
            outcomes[name] = answer.status;
            assert.ok([400, 403, 408].includes(answer.status), `${name}: ${answer.status} ${answer.text.slice(0, 300)}`);
            assert.equal(typeof answer.json.code, "string", name);
            assert.ok(answer.json.message.length > 0, name);
            assert.deepEqual(await listAll(server, container, { key }), [], `${name}: nothing is left`);
            assert.equal(failed, undefined, failed?.stack);
        }
    });
    try {
        await Promise.all(attackers);
    } finally {
        isOver = true;
    }
    await going;
    t.diagnostic(JSON.stringify({ outcomes, done }));
    for (const [what, count] of Object.entries(done)) assert.ok(count > 0, `no ${what} meanwhile`);
    assert.equal((await quiet.item("counter", "counting").read()).resource.n, done.procedures);
    assert.equal(await execute(container, pk, "function () { __.response.setBody('fine'); }"), "fine");
});

test("reads of a key go on while a script holds it, and writes wait and then succeed", async () => {
    const pk = unique("held");
    await container.items.create({ id: "a", pk, n: 0 });
    const body = `function (key) {
        __.upsertDocument(__.getSelfLink(), { id: "a", pk: key, n: 99 }, function () { for (;;); });
    }`;
    const { id } = await procedure(container, body);
    let isOver = false;
    const holding = executeRaw(server, container, id, { key: pk, body: [pk] }).finally(() => (isOver = true));
    let reads = 0;
    let writing;
    for (; !isOver; reads++) {
        const { json } = await callItems(server, container, { id: "a", key: pk });
        if (!isOver && writing === undefined) assert.equal(json.n, 0, "what is not committed is not seen");
        if (reads === 10) writing = callItems(server, container, { method: "PUT", id: "a", key: pk, body: { id: "a", pk, n: 5 } });
        const other = await callItems(server, container, { method: "POST", key: `${pk} other`, body: { id: `${reads}`, pk: `${pk} other` } });
        assert.equal(other.status, 201, "another key is not held");
    }
    assert.equal((await holding).status, 408);
    assert.ok(reads > 10, "reads went on");
    assert.equal((await writing).status, 200);
    assert.equal((await container.item("a", pk).read()).resource.n, 5);
});

test("many executions at once are all answered", async () => {
    const { id } = await procedure(container, "function (n) { __.response.setBody(n); }");
    const found = await onConnections(200, async (agent, i) => {
        const answer = await insist(() => executeRaw(server, container, id, { key: `k${i % 50}`, body: [i], agent }));
        assert.equal(answer.status, 200, answer.text);
        return answer.json;
    });
    assert.deepEqual(found, times(200, (i) => i));
});

test("a client that goes away leaves a whole transaction or none", async () => {
    const pk = unique("gone");
    const body = flow(async ({ call, self }, key, turn) => {
        for (let i = 0; i < 20; i++) await call("createDocument", self, { id: `${turn}-${i}`, pk: key });
        return "done";
    });
    const { id } = await procedure(container, body);
    for (let turn = 0; turn < 20; turn++) {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        const running = executeRaw(server, container, id, { key: pk, body: [pk, turn], agent }).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, turn % 5));
        agent.destroy();
        await running;
    }
    // One more, after which all before it are over: they had the same key.
    assert.equal((await executeRaw(server, container, id, { key: pk, body: [pk, "last"] })).status, 200);
    const counts = {};
    for (const item of await listAll(server, container, { key: pk })) {
        const [turn] = item.id.split("-");
        counts[turn] = (counts[turn] ?? 0) + 1;
    }
    for (const [turn, count] of Object.entries(counts)) assert.equal(count, 20, `turn ${turn}`);
});

// --- Across splits

test("procedures go on while their partitions are split and merged", { timeout: 300_000 }, async (t) => {
    const moving = await newContainer(database);
    const keys = times(24, (i) => `key ${i}`);
    await fill(moving, keys.map((pk) => ({ id: "counter", pk, n: 0 })));
    await fill(moving, times(600, (i) => ({ id: `${i}`, pk: keys[i % 24], text: "x".repeat(500) })));
    const { id } = await procedure(moving, INCREMENT);
    const expected = new Map(keys.map((pk) => [pk, 0]));
    let isOver = false;
    let count = 0;
    const load = onConnections(8, async (agent, connection) => {
        for (let i = connection; !isOver; i += 5) {
            const pk = keys[i % 24];
            const answer = await insist(() => executeRaw(server, moving, id, { key: pk, body: ["counter"], agent }));
            assert.equal(answer.status, 200, answer.text);
            expected.set(pk, expected.get(pk) + 1);
            count++;
        }
    });
    let failed;
    load.catch((error) => (failed = error));
    const more = async (by) => {
        const enough = count + by;
        await until(() => failed !== undefined || count >= enough, { timeout_ms: 60_000 });
        assert.equal(failed, undefined, failed?.stack);
    };
    try {
        await more(50);
        const { targets } = await moved(server, (await cause(server, moving, "split", { range: "0", parts: 3 })).event);
        await more(50);
        await moved(server, (await cause(server, moving, "merge", { ranges: targets.slice(0, 2) })).event);
        await more(50);
    } finally {
        isOver = true;
    }
    await load;
    t.diagnostic(`${count} executions`);
    const ranges = await rangesOf(moving);
    checkRanges(ranges);
    assert.equal(ranges.length, 2);
    for (const pk of keys) assert.equal((await moving.item("counter", pk).read()).resource.n, expected.get(pk), pk);
});

test("a continuation of a procedure outlives a split", async () => {
    const moving = await newContainer(database);
    const pk = "paged";
    await fill(moving, times(100, (i) => ({ id: `${i}`, pk, n: i })));
    await fill(moving, times(40, (i) => ({ id: "x", pk: `other ${i}` })));
    const body = flow(async ({ call, self }, continuation) => {
        const [docs, o] = await call("readDocuments", self, { pageSize: 30, continuation });
        return { ids: docs.map(({ id }) => id), continuation: o.continuation };
    });
    const made = await procedure(moving, body);
    const first = (await made.execute(pk, [])).resource;
    await moved(server, (await cause(server, moving, "split", { range: "0" })).event);
    const found = [...first.ids];
    for (let { continuation } = first; continuation; ) {
        const { resource } = await made.execute(pk, [continuation]);
        found.push(...resource.ids);
        continuation = resource.continuation;
    }
    assert.deepEqual(found.map(Number).sort((a, b) => a - b), times(100, (i) => i));
});
