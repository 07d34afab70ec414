// How long and how large a procedure may be: bounded execution, time, memory, its process, and scripts that are blocked.
//
// Scripts that wait for a limit take seconds, so the tests run beside each other. None depends on how fast the machine is:
// what ends too late for one expectation is tried again, or is an answer that is allowed as well.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { errorAnswer, refused } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { eachSize, listAll, newContainer, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { errorsOf, execute, executeRaw, flow, procedure, workersOf } from "./lib/scripts.mjs";
import { ofOneNode, sharedServer, startServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

/* global getContext, __ */

const server = await sharedServer({ args: ["--durability", "relaxed"] });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "limits" });
const containers = await eachSize(database);
const [[, container]] = containers;

const MANY = 10_000;
const TIMEOUT = /^The requested operation exceeded maximum alloted time\. Learn more: https:\/\/aka\.ms\/cosmosdb-tsg-service-request-timeout$/;

// The pattern of every sample: as many as are accepted, and the client calls again with the rest.
const IMPORT = function (docs) {
    const collection = getContext().getCollection();
    let count = 0;
    if (docs.length === 0) return getContext().getResponse().setBody(0);
    create(docs[0]);
    function create(doc) {
        const options = { disableAutomaticIdGeneration: true };
        const isAccepted = collection.createDocument(collection.getSelfLink(), doc, options, created);
        if (!isAccepted) getContext().getResponse().setBody(count);
    }
    function created(error) {
        if (error) throw error;
        count++;
        if (count >= docs.length) getContext().getResponse().setBody(count);
        else create(docs[count]);
    }
};

const DELETE = function (query) {
    const collection = getContext().getCollection();
    const response = getContext().getResponse();
    const body = { deleted: 0, continuation: true };
    next();
    function next(continuation) {
        const isAccepted = collection.queryDocuments(collection.getSelfLink(), query, { continuation }, function (error, docs, o) {
            if (error) throw error;
            if (docs.length > 0) return remove(docs);
            if (o.continuation) return next(o.continuation);
            body.continuation = false;
            response.setBody(body);
        });
        if (!isAccepted) response.setBody(body);
    }
    function remove(docs) {
        if (docs.length === 0) return next();
        const isAccepted = collection.deleteDocument(docs[0]._self, {}, function (error) {
            if (error) throw error;
            body.deleted++;
            docs.shift();
            remove(docs);
        });
        if (!isAccepted) response.setBody(body);
    }
};

/** Imports items with as many executions as it takes; how many that were. */
async function importAll(into, pk, items) {
    const made = await procedure(into, IMPORT);
    let calls = 0;
    for (let at = 0; at < items.length; calls++) {
        const { resource } = await made.execute(pk, [items.slice(at, at + 4000)]);
        assert.ok(Number.isInteger(resource) && resource > 0, `${resource} were imported`);
        at += resource;
    }
    return calls;
}

describe("bounded execution", { concurrency: true }, () => {
    for (const [size, into] of containers)
        it(`imports and deletes ${MANY} items in as many calls as it takes (${size})`, async (t) => {
            const pk = unique("many");
            const items = times(MANY, (i) => ({ id: `${i}`, pk, n: i, text: "t".repeat(20) }));
            const calls = await importAll(into, pk, items);
            const found = await listAll(server, into, { key: pk });
            assert.equal(found.length, MANY);
            assert.deepEqual(new Set(found.map(({ id }) => id)).size, MANY);
            const { resource } = await into.item("4711", pk).read();
            assert.deepEqual([resource.n, resource.text], [4711, "t".repeat(20)]);

            const made = await procedure(into, DELETE);
            let deleted = 0;
            let rounds = 0;
            for (let left = true; left; rounds++) {
                const { resource: told } = await made.execute(pk, ["SELECT * FROM c"]);
                deleted += told.deleted;
                left = told.continuation;
                assert.ok(rounds < MANY, "it does not end");
            }
            t.diagnostic(`${calls} calls to import, ${rounds} to delete`);
            assert.equal(deleted, MANY);
            assert.deepEqual(await listAll(server, into, { key: pk }), []);
        });

    it("creates 50 items by a chain of callbacks", async () => {
        const pk = unique("fifty");
        const body = flow(async ({ call, self }, key) => {
            for (let i = 0; i < 50; i++) await call("createDocument", self, { pk: key, i });
            return (await call("queryDocuments", self, "SELECT VALUE COUNT(1) FROM c"))[0][0];
        });
        assert.equal(await execute(container, pk, body, pk), 50);
    });

    it("ends a chain that never looks whether its operations are accepted, as a success", async () => {
        const pk = unique("endless");
        await container.items.create({ id: "a", pk });
        const body = function () {
            const c = getContext().getCollection();
            let count = 0;
            const next = () => {
                count++;
                getContext().getResponse().setBody(count);
                c.readDocuments(c.getSelfLink(), {}, next);
            };
            next();
        };
        const made = await procedure(container, body);
        const { resource, statusCode } = await made.execute(pk);
        assert.equal(statusCode ?? 200, 200);
        assert.ok(resource > 1, `${resource} reads`);
    });

    it("refuses operations from the first refusal on, and completes those before it", async () => {
        const pk = unique("refused");
        const body = function (key) {
            const c = getContext().getCollection();
            const counts = { accepted: 0, created: 0, refused: 0, after: 0 };
            getContext().getResponse().setBody(counts);
            const next = () => {
                for (let i = 0; i < 10; i++) {
                    const isAccepted = c.upsertDocument(c.getSelfLink(), { id: `${counts.accepted % 100}`, pk: key }, (error) => {
                        if (error) throw error;
                        counts.created++;
                        if (counts.created % 10 === 0 && counts.refused === 0) next();
                    });
                    if (isAccepted === false) counts.refused++;
                    else counts.accepted++;
                    if (isAccepted !== false && counts.refused > 0) counts.after++;
                }
            };
            next();
        };
        const counts = await execute(container, pk, body, pk);
        assert.equal(counts.created, counts.accepted, "all that were accepted were done");
        assert.ok(counts.refused > 0);
        assert.equal(counts.after, 0, "nothing is accepted after a refusal");
        assert.equal((await listAll(server, container, { key: pk })).length, Math.min(counts.accepted, 100));
    });

    it("tells the query functions' callers that they are refused", async () => {
        const body = function () {
            const count = () => {
                const { isAccepted } = __.filter(() => true, { pageSize: 1 }, count);
                if (isAccepted === false) getContext().getResponse().setBody("refused");
            };
            count();
        };
        assert.equal(await execute(container, unique("key"), body), "refused");
    });
});

const ENDLESS = [
    ["an endless loop", "for (;;);"],
    ["an endless chain of microtasks", "(function again() { Promise.resolve().then(again); })();"],
    ["an endless loop that catches everything", "for (;;) try { for (;;); } catch (e) {} finally { continue; }"],
    ["regular expressions without end", "while (!/^(a+)+$/.test('a'.repeat(40) + '!'));"],
];

describe("time", { concurrency: true }, () => {
    for (const [name, statement] of ENDLESS)
        it(`ends ${name} with 408, and nothing of it is left`, async () => {
            const pk = unique("slow");
            const { resource: kept } = await container.items.create({ id: "kept", pk });
            const body = `function (key) {
                const c = getContext().getCollection(), self = c.getSelfLink();
                c.createDocument(self, { id: "new", pk: key }, function (error) { if (error) throw error; ${statement} });
                c.deleteDocument(c.getAltLink() + "/docs/kept");
            }`;
            const made = await procedure(container, body);
            const answer = await executeRaw(server, container, made.id, { key: pk, body: [pk] });
            errorAnswer(answer, 408, "RequestTimeout");
            assert.match(errorsOf(answer.json)[0], TIMEOUT);
            assert.deepEqual(await listAll(server, container, { key: pk }), [kept]);
        });

    it("lets a script that is busy for a while succeed, with what it wrote", async () => {
        const pk = unique("busy");
        const body = function (key, ms) {
            const begun = Date.now();
            while (Date.now() < begun + ms);
            __.createDocument(__.getSelfLink(), { id: "a", pk: key });
            __.response.setBody("done");
        };
        assert.equal(await execute(container, pk, body, pk, 2500), "done");
        assert.equal((await listAll(server, container, { key: pk })).length, 1);
    });
});

const BOMBS = [
    ["fills an array", "const list = []; for (;;) list.push(new Array(10000).fill(list.length));"],
    ["doubles a string", "let s = 'x'; for (;;) { s += s + s.charCodeAt(5); s.indexOf('y'); }"],
    ["allocates buffers", "const list = []; for (;;) { const b = new Uint8Array(16 << 20); b.fill(1); list.push(b); }"],
    ["fills a map", "const map = new Map(); for (let i = 0; ; i++) map.set('key ' + i, { i: [i, i] });"],
];

describe("memory", { concurrency: 2 }, () => {
    for (const [name, statement] of BOMBS)
        it(`ends a script that ${name}, and nothing of it is left`, async () => {
            const pk = unique("large");
            const body = `function (key) {
                const c = getContext().getCollection(), self = c.getSelfLink();
                c.createDocument(self, { id: "new", pk: key }, function (error) { if (error) throw error; ${statement} });
            }`;
            const made = await procedure(container, body);
            const answer = await executeRaw(server, container, made.id, { key: pk, body: [pk] });
            assert.ok(answer.status === 400 || answer.status === 408, `${answer.status} ${answer.text}`);
            assert.ok(answer.json.message.length > 0);
            assert.deepEqual(await listAll(server, container, { key: pk }), []);
            assert.equal(await execute(container, pk, "function () { getContext().getResponse().setBody('fine'); }"), "fine");
        });

    it("lets a script use tens of megabytes, again and again", async () => {
        const body = function () {
            const list = [];
            for (let i = 0; i < 300000; i++) list.push({ i, text: "t" + i });
            getContext().getResponse().setBody(list.length);
        };
        const made = await procedure(container, body);
        for (let i = 0; i < 5; i++) assert.equal((await made.execute("any")).resource, 300000);
    });
});

describe("use of the processor", () => {
    it("blocks a script that has used too much too often, and not before the seventh time", { skip: ofOneNode("a node counts what ran there") }, async () => {
        const busy = function (ms) {
            const begun = Date.now();
            while (Date.now() < begun + ms);
            getContext().getResponse().setBody("done");
        };
        const made = await procedure(container, busy);
        let answer;
        let done = 0;
        // On a machine with other things to do, this may be less than the two seconds of the processor that count; then it
        // is busy for as long as a script may.
        const busy_ms = () => (done < 12 ? 2300 : 4500);
        do answer = await executeRaw(server, container, made.id, { key: "any", body: [busy_ms()] });
        while (answer.status === 200 && done++ < 40);
        const message = new RegExp(`The script with id '${made.id}' is blocked for execution because it has violated its allowed resource limit several times\\.`);
        errorAnswer(answer, 403, "Forbidden", { message });
        assert.ok(done >= 6, `blocked after ${done} times`);
        await refused(made.execute("other", [0]), 403, { message: /is blocked for execution/ });
        const innocent = await procedure(container, busy);
        assert.equal((await innocent.execute("any", [0])).resource, "done", "another with the same text is not");
        await made.replace({ id: made.id, body: "function () { getContext().getResponse().setBody('new'); }" });
        assert.equal((await made.execute("any")).resource, "new");
    });
});

const SECOND_TICKS = 100;

describe("the process that runs a script", () => {
    it("is killed, and the script fails as a whole, and the next one runs", async (t) => {
        const own = await startServer(t, { args: ["--durability", "sync"] });
        const made = await clientOf(own).databases.create({ id: "own" });
        const into = await newContainer(made.database);
        const body = `function (key) {
            const c = getContext().getCollection();
            for (let i = 0; i < 10; i++)
                c.createDocument(c.getSelfLink(), { id: "i" + i, pk: key }, function (error) {
                    if (error) throw error;
                    if (i === 9) for (;;);
                });
        }`;
        let answer;
        for (let turn = 0; answer?.status !== 400; turn++) {
            assert.ok(turn < 10, `${answer?.status} ${answer?.text}`);
            const script = await procedure(into, body);
            const before = new Map(workersOf(own).map(({ pid, ticks }) => [pid, ticks]));
            let isOver = false;
            const running = executeRaw(own, into, script.id, { key: "k", body: ["k"] }).finally(() => (isOver = true));
            // It has worked so long that it is in its loop; if the machine did not let it, it was ended for its time.
            const victim = await until(() => {
                const busy = workersOf(own).find(({ pid, ticks }) => ticks - (before.get(pid) ?? 0) > 1.5 * SECOND_TICKS);
                return busy ?? isOver;
            });
            if (victim !== true) process.kill(victim.pid, "SIGKILL");
            answer = await running;
            assert.deepEqual(await listAll(own, into), [], "nothing was written");
        }
        assert.ok(answer.json.message.length > 0);
        const fine = flow(async ({ call, self }, key) => (await call("createDocument", self, { id: "fine", pk: key }))[0].id);
        assert.equal(await execute(into, "k", fine, "k"), "fine");
        assert.deepEqual((await listAll(own, into)).map(({ id }) => id), ["fine"]);

        // All of them at once, while none has anything to do.
        for (const { pid } of workersOf(own)) process.kill(pid, "SIGKILL");
        const answers = await Promise.all(times(8, (i) => executeRaw(own, into, "__.sys.echo", { key: `k${i}`, body: [i] })));
        for (const { status, text } of answers) assert.ok(status === 200 || status === 400, text);
        for (let i = 0; i < 8; i++) assert.equal((await executeRaw(own, into, "__.sys.echo", { key: "k", body: [i] })).text, `${i}`);
    });

    it("ends with the server", async (t) => {
        const own = await startServer(t, { args: ["--durability", "relaxed"] });
        const made = await clientOf(own).databases.create({ id: "own" });
        const into = await newContainer(made.database);
        await execute(into, "k", "function () {}");
        const workers = workersOf(own);
        assert.ok(workers.length > 0, "there is a process for scripts");
        await own.kill();
        await until(() => workers.every(({ pid }) => !isAlive(pid)));
        await own.start();
        assert.equal(workersOf(own).length, 0, "none is started before it is needed");
    });
});

/** A process that has ended and that nobody has asked about is not alive. */
function isAlive(pid) {
    try {
        return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
    } catch {
        return false;
    }
}
