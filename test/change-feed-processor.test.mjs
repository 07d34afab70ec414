// Change feed processors: several hosts share the ranges of a container through leases, and miss nothing when one of
// them dies or a range is split. Estimators tell how far they are behind.
import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Worker } from "node:worker_threads";

import { CHAOS, cause, moved } from "./lib/chaos.mjs";
import { errorAnswer, ids, refused } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { askFeed, drainFeed, feedPage, sessionOf } from "./lib/feed.mjs";
import { newContainer, until } from "./lib/items.mjs";
import { Host, estimate, prefixOf } from "./lib/processor.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { rangesOf } from "./lib/splits.mjs";
import { unique } from "./lib/wire.mjs";

const server = await sharedServer({ args: CHAOS });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "processor" });
const FOUR = { throughput: 21_000 };

async function leaseContainer() {
    const { container } = await database.containers.create({ id: unique("leases"), partitionKey: { paths: ["/id"] }, defaultTtl: -1 });
    return container;
}

/** Writers, each with its own keys: item n of a key is written after item n - 1 was acknowledged. */
class Writers {
    acknowledged = new Map(); // key: how many
    #isOver = false;
    #lanes;

    constructor(container, { lanes = 4, keys = 24 } = {}) {
        this.#lanes = times(lanes, async (lane) => {
            for (let i = 0; !this.#isOver; i++) {
                const pk = `key ${lane + lanes * (i % (keys / lanes))}`;
                const n = this.acknowledged.get(pk) ?? 0;
                await container.items.create({ id: `${pk} ${n}`, pk, n });
                this.acknowledged.set(pk, n + 1);
                await wait(3);
            }
        });
    }

    get count() {
        return [...this.acknowledged.values()].reduce((a, b) => a + b, 0);
    }

    async more(count) {
        const before = this.count;
        await Promise.race([until(() => this.count >= before + count), ...this.#lanes]);
    }

    async stop() {
        this.#isOver = true;
        await Promise.all(this.#lanes);
    }
}

/** What all hosts have handled together. */
class Seen {
    counts = new Map(); // key: how many of its items were handled, without a gap
    hosts = new Map(); // name: how many items
    repeated = 0;

    take(items, host) {
        for (const { id, pk, n } of items) {
            const next = this.counts.get(pk) ?? 0;
            assert.ok(n <= next, `${host} got '${id}', but item ${next} of this key was not handled yet`);
            if (n < next) this.repeated++;
            else this.counts.set(pk, n + 1);
        }
        this.hosts.set(host, (this.hosts.get(host) ?? 0) + items.length);
    }

    hasAll(writers) {
        return [...writers.acknowledged].every(([pk, count]) => (this.counts.get(pk) ?? 0) >= count);
    }
}

/** A host in a thread; `kill` ends it without a word. */
function threadHost(options, seen) {
    const data = { ...options, server: { endpoint: server.endpoint, key: server.key }, database: database.id };
    const worker = new Worker(new URL("./lib/processor-host.mjs", import.meta.url), {
        workerData: { ...data, monitored: options.monitored.id, leases: options.leases.id },
    });
    const host = { failure: undefined, isDead: false, kill: () => ((host.isDead = true), worker.terminate()) };
    worker.on("error", (error) => (host.failure = error));
    worker.on("message", ({ number, items }) => {
        if (host.isDead) return;
        try {
            seen.take(items, options.name);
        } catch (error) {
            host.failure ??= error;
        }
        worker.postMessage(number);
    });
    return host;
}

// Hosts wait for one another most of the time, so these tests run together.
describe("processors", { concurrency: true }, () => {
    test("hosts share four ranges; one is killed, one joins, ranges are split and merged: nothing is lost", async (t) => {
        const monitored = await newContainer(database, FOUR);
        const leases = await leaseContainer();
        const prefix = await prefixOf(monitored, "work");
        const seen = new Seen();
        const base = { server, monitored, leases, prefix };
        const mine = (name, more = {}) =>
            new Host({ ...base, name, handle: (items) => seen.take(items, name), ...more });
        const own = mine("first");
        const all = () => own.allLeases();
        const writers = new Writers(monitored);
        const hosts = [own, mine("second", { forgetsEtags: true })];
        const doomed = threadHost({ ...base, server: undefined, name: "doomed" }, seen);
        t.after(async () => {
            await doomed.kill();
            await Promise.allSettled([writers.stop(), ...hosts.map((host) => host.stop())]);
        });
        const check = () => {
            for (const { failure } of [...hosts, doomed]) if (failure) throw failure;
            return true;
        };
        const owners = async () => new Set((await all()).map(({ Owner }) => Owner));

        // All begin at the same time, and the leases are created once.
        await Promise.all(hosts.map((host) => host.start()));
        assert.deepEqual((await all()).map(({ LeaseToken }) => LeaseToken).sort(), ["0", "1", "2", "3"]);
        await until(async () => check() && (await owners()).size === 3);
        await writers.more(100);
        await until(() => check() && seen.hosts.has("doomed"));

        // One is killed with its leases, which expire and are taken.
        await doomed.kill();
        await writers.more(100);
        await until(async () => check() && !(await owners()).has("doomed"));

        // One more joins and takes its share.
        hosts.push(await mine("third").start());
        await until(async () => check() && (await owners()).has("third"));

        // A split: the children go on where the parent was.
        const [parent, neighbour, ...others] = (await rangesOf(monitored)).map(({ id }) => id);
        await moved(server, (await cause(server, monitored, "split", { range: parent, by: "hash" })).event);
        await writers.more(100);
        await until(async () => check() && (await all()).length === 5);
        const tokens = (await all()).map(({ LeaseToken }) => LeaseToken);
        assert.ok(!tokens.includes(parent), "the lease of the parent was deleted");

        // A merge: intervals go on in a larger range.
        await moved(server, (await cause(server, monitored, "merge", { ranges: others })).event);
        await writers.more(100);
        await until(async () => check() && (await all()).filter(({ version }) => version === 1).length === 2);
        assert.ok((await all()).some(({ LeaseToken }) => LeaseToken === neighbour), "the others were left alone");

        await writers.stop();
        await until(() => check() && seen.hasAll(writers));
        const final = await all();
        assert.deepEqual(new Set(final.map(({ Owner }) => Owner)), new Set(["first", "second", "third"]));
        assert.ok(hosts[1].conflicts > 0, "a host that sends old ETags is told so, and goes on");
        await Promise.all(hosts.map((host) => host.stop()));
        assert.deepEqual((await all()).map(({ Owner }) => Owner), final.map(() => null), "leases are given back");
        t.diagnostic(`${writers.count} items, ${seen.repeated} repeated, by host: ${JSON.stringify([...seen.hosts])}`);

        // A host that comes later goes on where the others have ended.
        const before = seen.repeated;
        const late = await mine("late").start();
        await monitored.items.create({ id: "late", pk: "late", n: 0 });
        await until(() => (late.check(), seen.counts.get("late") === 1));
        await late.stop();
        assert.equal(seen.repeated, before, "nothing was delivered again");
    });

    test("a handler that fails gets the same page again", async () => {
        const monitored = await newContainer(database);
        const leases = await leaseContainer();
        const pages = [];
        let failures = 2;
        const handle = (items) => {
            pages.push(ids(items));
            if (failures-- > 0) throw new Error("the handler fails");
        };
        const options = { server, monitored, leases, prefix: await prefixOf(monitored, "again"), handle, size: 4 };
        for (let i = 0; i < 10; i++) await monitored.items.create({ id: `${i}`, pk: "p" });
        for (let i = 0; i < 3; i++) {
            const host = await new Host({ ...options, name: `host ${i}` }).start();
            if (i < 2) {
                await until(() => host.failure);
                assert.equal(host.failure.message, "the handler fails");
                await assert.rejects(host.stop(), /the handler fails/);
            } else {
                await until(() => (host.check(), pages.flat().includes("9")));
                await host.stop();
            }
        }
        const expected = [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]];
        assert.deepEqual(pages, [expected[0], expected[0], ...expected]);
    });

    test("a lock that its host has left expires, and the next host creates the leases", async () => {
        const monitored = await newContainer(database, FOUR);
        const leases = await leaseContainer();
        const prefix = await prefixOf(monitored, "lock");
        const { resource: left } = await leases.items.create({ id: `${prefix}.lock`, ttl: 1 });
        const hosts = times(4, (i) => new Host({ server, monitored, leases, prefix, name: `host ${i}`, handle: () => {} }));
        await Promise.all(hosts.map((host) => host.start()));
        assert.ok(Date.now() >= (left._ts + 1) * 1000, "not before the lock has expired");
        const made = await hosts[0].allLeases();
        assert.equal(made.length, 4);
        assert.equal((await leases.item(`${prefix}.lock`, `${prefix}.lock`).read()).statusCode, 404, "it is unlocked");
        await until(async () => {
            for (const host of hosts) host.check();
            return new Set((await hosts[0].allLeases()).map(({ Owner }) => Owner)).size === 4;
        });
        await Promise.all(hosts.map((host) => host.stop()));
    });
});

// --- The lease container

test("of hosts that create the same document or change the same version, one succeeds", async () => {
    const leases = await leaseContainer();
    const outcome = (promise) => promise.then(({ statusCode }) => statusCode, ({ code }) => code);
    for (let round = 0; round < 5; round++) {
        const id = `p=-_${round}..0`;
        const created = await Promise.all(times(8, (i) => outcome(leases.items.create({ id, Owner: `host ${i}` }))));
        assert.deepEqual(created.sort(), [201, ...times(7, () => 409)]);
        const { resource } = await leases.item(id, id).read();
        const condition = { accessCondition: { type: "IfMatch", condition: resource._etag } };
        const replaced = await Promise.all(times(8, (i) => outcome(leases.item(id, id).replace({ ...resource, Owner: `host ${i}` }, condition))));
        assert.deepEqual(replaced.sort(), [200, ...times(7, () => 412)]);
        const after = (await leases.item(id, id).read()).resource;
        assert.notEqual(after._etag, resource._etag, "an _etag that a client sends is not kept");
        await refused(leases.item(id, id).delete(condition), 412);
        const deleted = await Promise.all(
            times(4, () => outcome(leases.item(id, id).delete({ accessCondition: { type: "IfMatch", condition: after._etag } }))),
        );
        assert.deepEqual(deleted.sort(), [204, 404, 404, 404]);
        await refused(leases.item(id, id).replace({ ...after }, { accessCondition: { type: "IfMatch", condition: after._etag } }), 404);
    }
});

test("a lease is written with a minimal answer, whose ETag is in the header", async () => {
    const leases = await leaseContainer();
    const { resource } = await leases.items.create({ id: "p..0", Owner: null, properties: {}, ContinuationToken: null });
    const condition = (etag) => ({ initialHeaders: { prefer: "return=minimal" }, accessCondition: { type: "IfMatch", condition: etag } });
    const first = await leases.item("p..0", "p..0").replace({ ...resource, Owner: "a" }, condition(resource._etag));
    assert.ok(!first.resource || Object.keys(first.resource).length === 0, "no body");
    assert.ok(first.headers.etag);
    await refused(leases.item("p..0", "p..0").replace({ ...resource, Owner: "b" }, condition(resource._etag)), 412);
    const second = await leases.item("p..0", "p..0").replace({ ...resource, Owner: "c" }, condition(first.headers.etag));
    const read = await leases.item("p..0", "p..0").read();
    assert.equal(read.resource.Owner, "c");
    assert.equal(read.resource._etag, second.headers.etag);
});

test("queries of the processors find their leases", async () => {
    const leases = await leaseContainer();
    const prefix = "namelocalhost_AbCd==_AbCdEf-g=";
    const documents = [
        { id: `${prefix}.info` },
        { id: `${prefix}.lock`, ttl: 30 },
        { id: `${prefix}..0`, ContinuationToken: '"17"', Owner: "a" },
        { id: `${prefix}..1`, ContinuationToken: null, Owner: null },
        { id: `${prefix}..2` },
        { id: `${prefix}..05C1-FF`, ContinuationToken: "eyJ9" },
        { id: `other${prefix}..0`, ContinuationToken: '"1"' },
    ];
    for (const document of documents) await leases.items.create(document);
    const find = async (query, ...parameters) => ids((await leases.items.query({ query, parameters }).fetchAll()).resources).sort();
    const own = ids(documents.slice(2, 6)).sort();
    assert.deepEqual(await find(`SELECT * FROM c WHERE STARTSWITH(c.id, '${prefix}..')`), own);
    const parameter = { name: "@PartitionLeasePrefix", value: `${prefix}..` };
    assert.deepEqual(await find("SELECT * FROM c WHERE STARTSWITH(c.id, @PartitionLeasePrefix)", parameter), own);
    const text = "SELECT TOP @Top * FROM c WHERE STARTSWITH(c.id, @PartitionLeasePrefix) AND c.ContinuationToken <> null";
    const withToken = [`${prefix}..0`, `${prefix}..05C1-FF`];
    assert.deepEqual(await find(text, parameter, { name: "@Top", value: 10 }), withToken);
    assert.equal((await find(text, parameter, { name: "@Top", value: 1 })).length, 1);
});

// --- Estimators

test("estimators count pending transactions exactly", async () => {
    const monitored = await newContainer(database);
    const ask = (token) => estimate(server, monitored, { range: "0", token });
    assert.deepEqual(await ask(undefined), { oneItem: 1, fromNow: 0 }, "an empty container, no position yet");
    const { etag: empty } = await drainFeed(server, monitored, { range: "0" });
    assert.deepEqual(await ask(empty), { oneItem: 0, fromNow: 0 });
    for (let i = 1; i <= 10; i++) {
        await monitored.items.create({ id: `${i}`, pk: `k${i % 3}` });
        assert.deepEqual(await ask(empty), { oneItem: i, fromNow: i }, `${i} items`);
        assert.equal((await ask(undefined)).fromNow, i, "without a position, as many as there are items");
    }
    let etag = empty;
    for (let left = 9; left >= 0; left--) {
        ({ etag } = await feedPage(server, monitored, { range: "0", etag, size: 1 }));
        assert.deepEqual(await ask(etag), { oneItem: left, fromNow: left }, `${left} items left`);
    }
    const batch = times(4, (i) => ({ operationType: "Create", resourceBody: { id: `batch ${i}`, pk: "p" } }));
    assert.equal((await monitored.items.batch(batch, "p")).code, 200);
    assert.deepEqual(await ask(etag), { oneItem: 1, fromNow: 1 }, "a batch is one transaction");
    await monitored.item("3", "k0").delete();
    assert.deepEqual(await ask(etag), { oneItem: 2, fromNow: 2 }, "a delete counts until it is passed");
    ({ etag } = await drainFeed(server, monitored, { range: "0", etag }));
    assert.deepEqual(await ask(etag), { oneItem: 0, fromNow: 0 });
    await monitored.item("4", "k1").delete();
    assert.equal((await ask(etag)).oneItem, 0, "a delete alone is nothing to process");
});

test("estimators of four ranges add up, and a lease of a range that was split has at least one left", async () => {
    const monitored = await newContainer(database, FOUR);
    const ranges = await rangesOf(monitored);
    const positions = new Map();
    for (const { id } of ranges) positions.set(id, (await drainFeed(server, monitored, { range: id })).etag);
    const expected = new Map(ranges.map(({ id }) => [id, 0]));
    for (let i = 0; i < 40; i++) {
        const { headers } = await monitored.items.create({ id: `${i}`, pk: `k${i}` });
        const { range } = sessionOf(headers["x-ms-session-token"]);
        expected.set(range, expected.get(range) + 1);
    }
    let sum = 0;
    for (const { id } of ranges) {
        const { oneItem, fromNow } = await estimate(server, monitored, { range: id, token: positions.get(id) });
        assert.deepEqual([oneItem, fromNow], [expected.get(id), expected.get(id)], `range ${id}`);
        sum += oneItem;
    }
    assert.equal(sum, 40);
    const [{ id: parent }] = ranges;
    await moved(server, (await cause(server, monitored, "split", { range: parent, by: "hash" })).event);
    const gone = await askFeed(server, monitored, { range: parent, etag: positions.get(parent), size: 1 });
    errorAnswer(gone, 410, "Gone", { substatus: 1002 });
    const children = (await rangesOf(monitored)).filter((range) => range.parents?.includes(parent));
    assert.equal(children.length, 2);
    let pending = 0;
    for (const { id } of children) pending += (await drainFeed(server, monitored, { range: id, etag: positions.get(parent) })).items.length;
    assert.equal(pending, expected.get(parent), "the children have together what the parent had left");
    for (const { id } of children) {
        const { etag } = await drainFeed(server, monitored, { range: id, etag: positions.get(parent) });
        assert.deepEqual(await estimate(server, monitored, { range: id, token: etag }), { oneItem: 0, fromNow: 0 });
    }
});

test("a monitored container that is gone is not found", async () => {
    const monitored = await newContainer(database);
    const { etag } = await drainFeed(server, monitored, { range: "0" });
    await monitored.delete();
    for (const position of [undefined, etag, "*"]) {
        const answer = await askFeed(server, monitored, { range: "0", etag: position });
        assert.equal(answer.status, 404, answer.text);
        assert.notEqual(answer.headers["x-ms-substatus"], "1002", "that would mean: try again");
    }
});
