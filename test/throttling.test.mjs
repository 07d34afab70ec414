// Reserved throughput is what clients get: no more, no less, and each partition its share.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { acceptedRate, impatientClient, keysByPartition, patientClient, readsCost } from "./lib/load.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { run, startServer } from "./lib/server.mjs";
import { call, unique } from "./lib/wire.mjs";

const PARTITION_KEY = { paths: ["/pk"], kind: "Hash", version: 2 };

const throttled = (t, ...args) =>
    startServer(t, { isThrottled: true, args: ["--durability", "relaxed", ...args] });

async function makeContainer(server, more = {}, database = undefined) {
    const client = patientClient(server);
    const owner = database ?? (await client.databases.create({ id: unique("d") })).database;
    const id = unique("c");
    const { container } = await owner.containers.create({ id, partitionKey: PARTITION_KEY, ...more });
    return container;
}

const itemPath = (container) => `/dbs/${container.database.id}/colls/${container.id}/docs/x`;

const through = (client, container) => client.database(container.database.id).container(container.id);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const offerOf = async (owner) => (await owner.readOffer()).resource;

/** Sends without a pause until `until`; what came of it. */
async function hammer(ask, until) {
    const seen = { accepted: 0, units: 0, throttled: 0 };
    while (performance.now() < until) {
        try {
            const { requestCharge } = await ask();
            seen.accepted++;
            seen.units += requestCharge;
        } catch (error) {
            assert.equal(error.code, 429, error.message);
            assert.equal(error.substatus, 3200);
            assert.ok(error.retryAfterInMs >= 1);
            assert.match(error.message, /Request rate is large/);
            seen.throttled++;
            await sleep(1); // less than it is told
        }
    }
    return seen;
}

// Reads are made so dear that a few of them a second are more than is provisioned: then the rates do
// not depend on how fast this process is. What takes its time takes it side by side.
describe("rates", { concurrency: true }, () => {
    for (const [ru, cost, partitions] of [
        [400, 20, 1],
        [4000, 200, 1],
        [24_000, 600, 4],
    ]) {
        test(`${ru} request units a second are what 1, 4 and 8 clients get`, async (t) => {
            const server = await throttled(t, "--no-burst", ...readsCost(cost));
            const measure = async (count) => {
                const container = await makeContainer(server, { throughput: ru });
                const keys = await keysByPartition(container, partitions);
                const clients = Array.from({ length: count }, () => through(patientClient(server), container));
                const next = (client, i) => client.item("x", keys[i % partitions]).read();
                return acceptedRate(clients, next, 10);
            };
            for (const [i, seen] of (await Promise.all([1, 4, 8].map(measure))).entries()) {
                const [rate, seconds] = [seen.rate.toFixed(1), seen.seconds.toFixed(1)];
                const what = `${[1, 4, 8][i]} clients got ${rate} a second for ${seconds} s`;
                t.diagnostic(what);
                assert.ok(seen.isSteady && seen.seconds >= 10, what);
                assert.ok(Math.abs(seen.rate - ru) <= 0.03 * ru, what);
            }
        });
    }

    test("containers of a database share its throughput, and one with its own does not", async (t) => {
        const server = await throttled(t, "--no-burst", ...readsCost(20));
        const client = patientClient(server);
        const { database } = await client.databases.create({ id: "shared", throughput: 400 });
        const sharing = [await makeContainer(server, {}, database), await makeContainer(server, {}, database)];
        const own = await makeContainer(server, { throughput: 400 }, database);
        for (const container of [...sharing, own]) await container.items.create({ id: "x", pk: "p" });
        const next = (container) => container.item("x", "p").read();
        const [together, alone] = await Promise.all([
            acceptedRate(sharing, next, 10),
            acceptedRate([own], next, 10),
        ]);
        t.diagnostic(`together ${together.rate.toFixed(1)}, alone ${alone.rate.toFixed(1)}`);
        assert.ok(Math.abs(together.rate - 400) <= 12, `${together.rate} together`);
        assert.ok(Math.abs(alone.rate - 400) <= 12, `${alone.rate} alone`);
    });
});

describe("throttling", { concurrency: true }, () => {
    test("a hot key is throttled, and a cool one in another partition is not", async (t) => {
        const server = await throttled(t, "--no-burst", "--partition-ru", "400", ...readsCost(40));
        const container = await makeContainer(server, { throughput: 800 });
        const [cool, hot] = await keysByPartition(container, 2);
        const client = through(impatientClient(server), container);
        await sleep(1000); // what the items have cost comes back
        const until = performance.now() + 3000;
        const coolReads = async () => {
            for (let i = 0; performance.now() < until; i++) {
                await client.item("x", cool).read(); // a 429 would end the test
                await sleep(200); // 200 of its 400 a second
            }
        };
        const [seen, more] = await Promise.all([
            hammer(() => client.item("x", hot).read(), until),
            hammer(() => client.item("x", hot).read(), until),
            coolReads(),
        ]);
        assert.ok(seen.throttled + more.throttled > 10);
        assert.ok(seen.units + more.units <= 400 * 4 + 80, `${seen.units + more.units} of 3 s and the first`);
        // A query of both needs both; one of the cool key alone does not.
        await container.items.create({ id: "large", pk: hot, text: "x".repeat(1_500_000) });
        await assert.rejects(client.items.query("SELECT c.id FROM c").fetchAll(), /Request rate is large/);
        const { resources } = await client.items.query(`SELECT c.id FROM c WHERE c.pk = "${cool}"`).fetchAll();
        assert.deepEqual(resources, [{ id: "x" }]);
    });

    test("the SDK's own retries succeed, for everything that touches items", async (t) => {
        const server = await throttled(t, "--no-burst");
        const made = await makeContainer(server, { throughput: 400 });
        const container = through(clientOf(server), made); // as its users have it
        let waits = 0;
        const note = ({ headers }) => (waits += Number(headers["x-ms-throttle-retry-count"] ?? 0));
        for (let i = 0; i < 120; i++) {
            const item = { id: `${i}`, pk: `${i % 3}`, text: "x".repeat(2000) };
            note(await container.items.create(item));
            note(await container.item(item.id, item.pk).read());
            note(await container.item(item.id, item.pk).patch([{ op: "set", path: "/n", value: i }]));
        }
        assert.ok(waits > 10, `${waits} waits`);
        const { resources } = await container.items.query("SELECT VALUE c.n FROM c").fetchAll();
        assert.equal(resources.length, 120);
        const batch = Array.from({ length: 60 }, (_, i) => ({
            operationType: "Create",
            resourceBody: { id: `b${i}`, pk: "0" },
        }));
        note(await container.items.batch(batch, "0"));
        const { resources: all } = await container.items.readAll({ maxItemCount: 50 }).fetchAll();
        assert.equal(all.length, 120 + 60);
    });

    // After a 429 this SDK waits for each operation, one after the other; so what is left over should
    // be told of short waits.
    test("bulk gets done, operation by operation", async (t) => {
        const server = await throttled(t, "--no-burst");
        const container = through(clientOf(server), await makeContainer(server, { throughput: 1000 }));
        const bulk = Array.from({ length: 400 }, (_, i) => ({
            operationType: "Create",
            partitionKey: `${i % 3}`,
            resourceBody: { id: `${i}`, pk: `${i % 3}` },
        }));
        let units = 0;
        for (const { response, error } of await container.items.executeBulkOperations(bulk)) {
            assert.equal(error, undefined);
            assert.equal(response.statusCode, 201);
            units += response.requestCharge;
        }
        assert.ok(units > 400 * 4.95);
        const { resources } = await container.items.readAll().fetchAll();
        assert.equal(resources.length, 400);
    });

    test("the wait that is announced is the wait", async (t) => {
        const server = await throttled(t, "--no-burst", ...readsCost(1000)); // 2.5 s of 400
        const container = await makeContainer(server, { throughput: 400 });
        await container.items.create({ id: "x", pk: "p" });
        const path = itemPath(container);
        const headers = { "x-ms-documentdb-partitionkey": '["p"]' };
        const first = await call(server, { path, headers });
        assert.equal(first.status, 200);
        const charge = Number(first.headers["x-ms-request-charge"]);
        const told = await call(server, { path, headers });
        errorAnswer(told, 429, "TooManyRequests", { substatus: 3200 });
        assert.equal(told.headers["x-ms-request-charge"], "0");
        const wait = Number(told.headers["x-ms-retry-after-ms"]);
        assert.ok(wait > 100 && wait <= (charge / 400) * 1000, `${wait} ms`);
        const at = performance.now();
        await sleep(wait / 2);
        if (performance.now() - at < wait - 100) assert.equal((await call(server, { path, headers })).status, 429);
        await sleep(Math.max(0, wait - (performance.now() - at)) + 1);
        assert.equal((await call(server, { path, headers })).status, 200);
    });

    test("autoscale follows its load, up and down", async (t) => {
        const server = await throttled(t, "--no-burst", ...readsCost(500));
        const container = await makeContainer(server, { maxThroughput: 4000 });
        const offered = async () => (await offerOf(container)).content.offerThroughput;
        await container.items.create({ id: "x", pk: "p" });
        assert.equal(await offered(), 400);
        const seen = [];
        for (const until = performance.now() + 2500; performance.now() < until; ) {
            await container.item("x", "p").read();
            await sleep(250); // 2,000 a second, or three reads in one of them
        }
        seen.push(await offered());
        assert.ok(seen[0] > 500 && seen[0] <= 3000, `${seen[0]} at 2,000`);
        await hammer(() => container.item("x", "p").read(), performance.now() + 2500);
        seen.push(await offered());
        assert.ok(seen[1] > 3000 && seen[1] <= 4000, `${seen[1]} at all it can`);
        const listed = (await clientOf(server).offers.readAll().fetchAll()).resources;
        assert.ok(listed[0].content.offerThroughput > 3000);
        let now = seen[1];
        for (const until = performance.now() + 30_000; now > 400 && performance.now() < until; ) {
            await sleep(250);
            now = await offered();
        }
        assert.equal(now, 400);
        // What it is allotted at most can be taken at once.
        const offer = await offerOf(container);
        assert.equal(offer.content.offerAutopilotSettings.maxThroughput, 4000);
    });

    test("a change of throughput counts at once", async (t) => {
        const server = await throttled(t, "--no-burst", ...readsCost(20));
        const container = await makeContainer(server, { throughput: 400 });
        await container.items.create({ id: "x", pk: "p" });
        const next = () => container.item("x", "p").read();
        const scale = async (content, headers = {}) => {
            const offer = await offerOf(container);
            const answer = await call(server, {
                method: "PUT",
                path: `/offers/${offer._rid}`,
                link: offer._rid.toLowerCase(),
                headers,
                body: { ...offer, content },
            });
            assert.equal(answer.status, 200, answer.text);
            assert.equal(answer.headers["x-ms-offer-replace-pending"], "false");
        };
        const expectRate = async (ru) => {
            const { rate } = await acceptedRate([container], next, 3);
            assert.ok(Math.abs(rate - ru) <= 0.05 * ru, `${rate} instead of ${ru}`);
        };
        await scale({ offerThroughput: 1200 });
        await expectRate(1200);
        await scale({}, { "x-ms-cosmos-migrate-offer-to-autopilot": "true" });
        await expectRate(2000);
        await scale({}, { "x-ms-cosmos-migrate-offer-to-manual-throughput": "true" });
        await scale({ offerThroughput: 600 });
        await expectRate(600);
    });

    test("low priority is throttled first", async (t) => {
        const server = await throttled(t, "--no-burst", ...readsCost(80));
        const container = through(impatientClient(server), await makeContainer(server, { throughput: 1000 }));
        await container.items.create({ id: "x", pk: "p" });
        const ask = (priorityLevel) => () => container.item("x", "p").read({ priorityLevel });
        await hammer(ask("High"), performance.now() + 1500); // what was saved is gone
        const both = performance.now() + 3000;
        const [low, ...others] = await Promise.all([
            hammer(ask("Low"), both),
            ...Array.from({ length: 4 }, () => hammer(ask("High"), both)),
        ]);
        const high = others.reduce((sum, { accepted }) => sum + accepted, 0);
        assert.ok(high > 5 * low.accepted, `${high} and ${low.accepted}`);
        const alone = await hammer(ask("Low"), performance.now() + 3000);
        assert.ok(alone.units > 2000, `${alone.units} alone`);
    });

    test("a throughput bucket has its percentage", async (t) => {
        const server = await throttled(t, "--no-burst", ...readsCost(10));
        const container = await makeContainer(server, { throughput: 1000 });
        await container.items.create({ id: "x", pk: "p" });
        const offer = await offerOf(container);
        const content = {
            ...offer.content,
            throughputBuckets: [{ id: 2, maxThroughputPercentage: 20, isDefaultBucket: false }],
        };
        await clientOf(server).offer(offer.id).replace({ ...offer, content });
        assert.deepEqual((await offerOf(container)).content.throughputBuckets, content.throughputBuckets);
        const next = (throughputBucket) => () => container.item("x", "p").read({ throughputBucket });
        const { rate } = await acceptedRate([container], next(2), 4);
        assert.ok(Math.abs(rate - 200) <= 10, `${rate} of bucket 2`);
        const other = await acceptedRate([container], next(undefined), 3);
        assert.ok(other.rate > 900, `${other.rate} without a bucket`);
        const path = itemPath(container);
        const headers = { "x-ms-documentdb-partitionkey": '["p"]', "x-ms-cosmos-throughput-bucket": "6" };
        errorAnswer(await call(server, { path, headers }), 400, "BadRequest");
    });

    test("what was not used is there for a burst, unless it is switched off", async (t) => {
        for (const burst of [true, false]) {
            const server = await throttled(t, ...(burst ? [] : ["--no-burst"]), ...readsCost(50));
            const container = through(impatientClient(server), await makeContainer(server, { throughput: 400 }));
            await container.items.create({ id: "x", pk: "p" });
            await sleep(6000);
            const { units } = await hammer(() => container.item("x", "p").read(), performance.now() + 500);
            // Six and a half seconds' worth, or one and a half.
            if (burst) assert.ok(units > 2000 && units <= 400 * 8.5, `${units} with burst`);
            else assert.ok(units <= 400 * 2 + 50, `${units} without burst`);
        }
    });

    test("--no-rate-limit reports charges and refuses no request", async (t) => {
        const server = await startServer(t, { args: readsCost(1000) });
        const container = through(impatientClient(server), await makeContainer(server, { throughput: 400 }));
        await container.items.create({ id: "x", pk: "p" });
        for (let i = 0; i < 50; i++) {
            const { requestCharge } = await container.item("x", "p").read();
            assert.equal(requestCharge, 1000);
        }
    });

    test("a serverless account has no offers and 5,000 request units a second", async (t) => {
        const server = await throttled(t, "--serverless", ...readsCost(200));
        const container = await makeContainer(server);
        await container.items.create({ id: "x", pk: "p" });
        const { rate } = await acceptedRate([container], () => container.item("x", "p").read(), 4);
        assert.ok(Math.abs(rate - 5000) <= 150, `${rate} a second`);
        await assert.rejects(container.readOffer(), { code: 400, message: /not supported for serverless/ });
        errorAnswer(await call(server, { path: "/offers" }), 400, "BadRequest", {
            message: /Reading or replacing offers is not supported for serverless accounts/,
        });
        await assert.rejects(makeContainer(server, { throughput: 400 }), {
            code: 400,
            message: /Setting offer throughput or autopilot on container/,
        });
        await assert.rejects(clientOf(server).databases.create({ id: "d", maxThroughput: 1000 }), {
            code: 400,
            message: /Shared throughput database creation/,
        });
        await server.stopWell();
        const { status, stderr } = run(["serve", "--data", server.data, "--port", "0"]);
        assert.equal(status, 1);
        assert.match(stderr, /holds a serverless account.*with --serverless/s);
    });
});
