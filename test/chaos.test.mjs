// Trouble on request: clients of the SDK bear splits, merges, throttling and failures, each as often as
// it was asked for; what is seen of it; and that docs/splits.md tells the truth.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";

import { CHAOS, askChaos, cause, clearChaos, eventsOf, moved } from "./lib/chaos.mjs";
import { errorAnswer, refused } from "./lib/check.mjs";
import { times } from "./lib/definition.mjs";
import { callItems, fill, listAll, newContainer, pathOf, until } from "./lib/items.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { BINARY, ROOT, run, sharedServer, startServer } from "./lib/server.mjs";
import { byId, checkRanges, layoutOf, rangesOf, sameIds } from "./lib/splits.mjs";
import { call, metric } from "./lib/wire.mjs";

const DOCUMENT = readFileSync(join(ROOT, "docs/splits.md"), "utf8");
const server = await sharedServer({ args: CHAOS });
const client = clientOf(server);
const { database } = await client.databases.create({ id: "chaos" });

const itemOf = (i) => ({ id: `i${i}`, pk: `k${i % 40}`, n: i, text: "x".repeat(200) });
const ITEMS = times(400, itemOf);

async function filled(on = database, size = undefined) {
    const container = await newContainer(on, size);
    await fill(container, ITEMS);
    return container;
}

// --- Splits and merges

/** Clients that do one thing after the other until they are stopped; what any of them saw must be right. */
class Load {
    #stop = false;
    #clients;
    rounds = 0;

    constructor(...works) {
        this.#clients = works.map(async (work) => {
            for (let i = 0; !this.#stop; i++, this.rounds++) await work(i);
        });
    }

    async stop() {
        this.#stop = true;
        await Promise.all(this.#clients);
    }
}

function everyWay(container, written) {
    return [
        async (i) => {
            const { id, pk, n } = ITEMS[i % ITEMS.length];
            const { resource } = await container.item(id, pk).read();
            assert.equal(resource.n, n);
        },
        async (i) => {
            const item = { id: `w${i}`, pk: `k${i % 40}`, n: i };
            await container.items.create(item);
            await container.item(item.id, item.pk).patch([{ op: "set", path: "/n", value: i + 0.5 }]);
            written.push({ ...item, n: i + 0.5 });
        },
        async (i) => {
            const query = { query: "SELECT * FROM c WHERE c.pk = @pk AND c.n >= 0", parameters: [{ name: "@pk", value: `k${i % 40}` }] };
            const { resources } = await container.items.query(query).fetchAll();
            sameIds(resources.filter(({ id }) => id.startsWith("i")), ITEMS.filter(({ pk }) => pk === `k${i % 40}`), "of a key");
        },
        async () => {
            const pages = container.items.query("SELECT * FROM c WHERE STARTSWITH(c.id, 'i')", { maxItemCount: 60 });
            sameIds((await pages.fetchAll()).resources, ITEMS, "of all");
        },
        async (i) => {
            const operations = [
                { operationType: "Upsert", resourceBody: { id: "b1", pk: `k${i % 40}`, i } },
                { operationType: "Upsert", resourceBody: { id: "b2", pk: `k${i % 40}`, i } },
            ];
            const { result } = await container.items.batch(operations, `k${i % 40}`);
            assert.deepEqual(result.map(({ statusCode }) => statusCode < 300), [true, true]);
        },
    ];
}

test("a split and a merge that are forced under load are hidden from clients", async () => {
    const container = await filled();
    const written = [];
    const load = new Load(...everyWay(container, written));
    const split = await cause(server, container, "split", { range: "0", parts: 3 });
    const { sources, targets, reason } = await moved(server, split.event);
    assert.deepEqual([sources, reason], [["0"], "asked"]);
    assert.equal(targets.length, 3);
    const seen = load.rounds;
    await until(() => load.rounds > seen + 30);
    await moved(server, (await cause(server, container, "merge", { ranges: targets.slice(0, 2) })).event);
    await until(() => load.rounds > seen + 60);
    await load.stop();
    const ranges = await rangesOf(container);
    checkRanges(ranges);
    assert.equal(ranges.length, 2);
    const found = (await listAll(server, container)).filter(({ id }) => !id.startsWith("b"));
    assert.deepEqual(byId(found), byId([...ITEMS, ...written]));
});

test("a partition is split where it was asked to be", async () => {
    const container = await filled();
    await moved(server, (await cause(server, container, "split", { at: "10" })).event);
    assert.deepEqual((await rangesOf(container)).map(({ minInclusive }) => minInclusive), ["", "10"]);
    const [low] = await rangesOf(container);
    await moved(server, (await cause(server, container, "split", { range: low.id, by: "hash", parts: 4 })).event);
    const ranges = await rangesOf(container);
    checkRanges(ranges);
    assert.equal(ranges.length, 5);
    assert.deepEqual(byId(await listAll(server, container)), byId(ITEMS));
    errorAnswer(await askChaos(server, container, "split", { range: low.id }), 410, "Gone", { substatus: 1002 });
});

async function topOf(container) {
    const link = pathOf(container).slice(1);
    const answer = await call(server, { path: `/_orrery/${link}/top?by=ru&count=100`, type: "colls", link });
    assert.equal(answer.status, 200, answer.text);
    return answer.json.rows;
}

test("a partition is split where its load has its middle, which is not that of its size", async () => {
    const container = await newContainer(database);
    const keys = times(40, (i) => ({ id: "a", pk: `key ${i}` }));
    for (const item of keys) await container.items.create(item);
    // All of it on the keys with the lowest hashes, the more the lower.
    const order = [...(await topOf(container))].sort((a, b) => (a.epk < b.epk ? -1 : 1)).map((row) => JSON.parse(row.key)[0]);
    assert.equal(order.length, 40);
    for (const [rank, pk] of order.slice(0, 8).entries())
        for (let i = 0; i < 160 - 15 * rank; i++) await container.item("a", pk).read();
    const rows = await topOf(container);
    await moved(server, (await cause(server, container, "split", { by: "load" })).event);
    const [first] = await rangesOf(container);
    const sum = (list) => list.reduce((all, row) => all + row.amount, 0);
    const share = sum(rows.filter((row) => row.epk < first.maxExclusive)) / sum(rows);
    assert.ok(share > 0.35 && share < 0.65, `${share} of the load is in the first part`);
    assert.ok(rows.filter((row) => row.epk < first.maxExclusive).length < 10);
});

test("a key that has nearly all of the load is reported, and not split off in vain", async () => {
    const container = await newContainer(database);
    await fill(container, times(3, (i) => ({ id: `${i}`, pk: `key ${i}` })));
    for (let i = 0; i < 300; i++) await container.item("1", "key 1").read();
    const ask = (of, more) => askChaos(server, of, "split", { by: "load", ...more });
    errorAnswer(await ask(container), 409, "Conflict", { message: /"key 1".*% of the load/ });
    errorAnswer(await ask(await newContainer(database)), 409, "Conflict", { message: /no requests/ });
    errorAnswer(await ask(container, { parts: 3 }), 400, "BadRequest", { message: /2 parts/ });
});

test("bulk that names a range that is gone is told so, and the SDK asks the new ones", async () => {
    const container = await filled();
    const create = (id) => ({ operationType: "Create", resourceBody: { id, pk: `k${id.length}` } });
    await container.items.bulk([create("before")]); // the client knows the map now
    await moved(server, (await cause(server, container, "split", { range: "0" })).event);
    const answer = await callItems(server, container, {
        method: "POST",
        headers: {
            "x-ms-cosmos-is-batch-request": "true",
            "x-ms-documentdb-partitionkeyrangeid": "0",
        },
        body: JSON.stringify([{ operationType: "Read", id: "i1", partitionKey: '["k1"]' }]),
    });
    errorAnswer(answer, 410, "Gone", { substatus: 1002 });
    const ids = times(50, (i) => `bulk${i}${"x".repeat(i % 7)}`);
    const results = await container.items.bulk(ids.map(create));
    assert.deepEqual(new Set(results.map(({ statusCode }) => statusCode)), new Set([201]));
    const stored = new Set((await listAll(server, container)).map(({ id }) => id));
    assert.ok(ids.every((id) => stored.has(id)));
});

// --- What is seen of them

test("a move is seen while it is under way, and meanwhile its offer is pending", async (t) => {
    const args = [...CHAOS, "--partition-ru", "1000", "--split-rate", "1M"];
    const own = await startServer(t, { args });
    const made = await clientOf(own).databases.create({ id: "slow" });
    const container = await newContainer(made.database, { throughput: 1000 });
    await fill(container, times(2500, (i) => ({ id: `${i}`, pk: `${i}`, text: "s".repeat(1000) })));
    const { resource: offer } = await container.readOffer();
    const pendingOf = (answer) => answer.headers["x-ms-offer-replace-pending"];
    const readOffer = () => call(own, { path: `/offers/${offer._rid}`, link: offer._rid.toLowerCase() });
    const replace = (ru) =>
        call(own, {
            method: "PUT",
            path: `/offers/${offer._rid}`,
            link: offer._rid.toLowerCase(),
            body: { ...offer, content: { offerThroughput: ru } },
        });
    assert.equal(pendingOf(await readOffer()), "false");
    const answer = await replace(2000);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(pendingOf(answer), "true");
    const layout = await until(async () => {
        const { move, ranges } = await layoutOf(own, container);
        return move?.stage === "copying" && move.percent > 0 && { move, ranges };
    });
    assert.equal(pendingOf(await readOffer()), "true");
    errorAnswer(await replace(3000), 429, "TooManyRequests", { substatus: 3205, message: /split or merged/ });
    const { move, ranges } = layout;
    assert.deepEqual([move.what, move.reason, move.sources, move.targets], ["split", "throughput", ["0"], ["1", "2"]]);
    assert.ok(move.bytes <= move.bytesTotal && move.percent < 100, JSON.stringify(move));
    assert.deepEqual(ranges.map(({ id, parents }) => [id, parents]), [["0", []]]);
    const top = run(["top", "--endpoint", own.endpoint, "--key", own.key, "--container", container.id, "--once"]);
    assert.match(top.stdout, /\nsplit 0 into 1, 2 \(throughput\): copying, \d+% of /);
    const merge = (body) =>
        call(own, {
            method: "POST",
            path: `${pathOf(container)}/operations/partitionmerge`,
            type: "colls",
            link: pathOf(container).slice(1),
            body,
        });
    errorAnswer(await merge(), 409, "Conflict", { message: /being split/ });
    await moved(own, move.event);
    assert.equal(pendingOf(await readOffer()), "false");
    const after = await layoutOf(own, container);
    assert.equal(after.move, null);
    assert.deepEqual(after.ranges.map(({ parents }) => parents), [["0"], ["0"]]);
    assert.equal(await metric(own, 'orrery_moves_total{kind="split",result="done"}'), 1);
    assert.ok((await metric(own, "orrery_move_fence_microseconds_total")) > 0);

    // And back, on request.
    assert.equal((await replace(1000)).status, 200);
    const dry = await merge({ isDryRun: true });
    assert.equal(dry.status, 202, dry.text);
    assert.deepEqual(dry.json.merges, [{ ranges: ["1", "2"] }]);
    assert.deepEqual(dry.json.physicalPartitionStorageInfoCollection.map(({ id }) => id), ["1", "2"]);
    assert.equal((await rangesOf(container)).length, 2);
    const ordered = await merge({});
    assert.equal(ordered.status, 202, ordered.text);
    const { what, sources, targets } = await moved(own, ordered.json.merges[0].event);
    assert.deepEqual([what, sources, targets], ["merge", ["1", "2"], ["3"]]);
    const [child] = await rangesOf(container);
    assert.deepEqual(child.parents, ["0", "1", "2"]);
    assert.equal((await listAll(own, container)).length, 2500);
    const told = run(["top", "--endpoint", own.endpoint, "--key", own.key, "--container", container.id, "--once"]);
    assert.match(told.stdout, /splits and merges\n +\d+s  merge 1, 2 into 3 \(asked\): done/);
});

test("a container that cannot be split does not prevent changes of its throughput", async (t) => {
    const own = await startServer(t, { args: [...CHAOS, "--partition-max", "100K"] });
    const made = await clientOf(own).databases.create({ id: "hot" });
    const container = await newContainer(made.database, { throughput: 1000 });
    await fill(container, times(20, (i) => ({ id: `${i}`, pk: "hot", text: "h".repeat(10_000) })));
    await until(async () => (await eventsOf(own)).moves[0]?.stage === "failed");
    const [failed] = (await eventsOf(own)).moves;
    for (const ru of [3000, 1000]) {
        const { resource: offer } = await container.readOffer();
        offer.content = { offerThroughput: ru };
        await container.database.client.offer(offer.id).replace(offer);
    }
    assert.match(failed.message, /single logical partition/);
    assert.equal((await rangesOf(container)).length, 1);
});

// --- Throttling, failures, sessions

const readOf = (container, i = 0) => callItems(server, container, { id: ITEMS[i].id, key: ITEMS[i].pk });

test("a partition that is throttled answers 429, and the SDK waits", async () => {
    const container = await filled();
    await cause(server, container, "throttle", { range: "0", requests: 4, retryAfterMs: 5 });
    errorAnswer(await readOf(container), 429, "TooManyRequests", { substatus: 3200 });
    const { resource, diagnostics } = await container.item("i0", "k0").read();
    assert.equal(resource.id, "i0");
    assert.equal(diagnostics.clientSideRequestStatistics.retryDiagnostics.failedAttempts.length, 3);
    const begun = performance.now();
    await cause(server, container, "throttle", { seconds: 1 });
    await container.items.upsert({ id: "late", pk: "k0" });
    assert.ok(performance.now() - begun >= 990);
    const { ranges } = await layoutOf(server, container);
    assert.ok(ranges[0].throttled.total >= 5, JSON.stringify(ranges[0]));
    const { throttles } = await eventsOf(server);
    const mine = throttles.filter((row) => row.container === container.id);
    assert.equal(mine.reduce((sum, { throttled }) => sum + throttled, 0), ranges[0].throttled.total);
});

test("as many requests fail as was said, of the kind that was said", async () => {
    const container = await filled();
    await cause(server, container, "faults", { kind: "read", status: 503, substatus: 20001, count: 2 });
    const write = await container.items.upsert({ id: "w", pk: "k0" });
    assert.equal(write.statusCode, 201);
    for (let i = 0; i < 2; i++)
        errorAnswer(await readOf(container), 503, "ServiceUnavailable", { substatus: 20001, message: /\/_orrery\/chaos/ });
    assert.equal((await readOf(container)).status, 200);

    await cause(server, container, "faults", { kind: "query", status: 410, substatus: 1007 });
    await cause(server, container, "faults", { kind: "write", status: 449 });
    assert.equal((await readOf(container)).status, 200);
    await refused(container.items.create({ id: "x", pk: "k0" }), 449, { message: /rule/ });
    const { resources } = await container.items.query("SELECT VALUE 1 FROM c WHERE c.id = 'x'").fetchAll().catch(() => ({ resources: [] }));
    assert.deepEqual(resources, [], "what failed was not done");
    await clearChaos(server);
});

test("a request that is late is answered late, and others are not", async () => {
    const container = await filled();
    await cause(server, container, "faults", { kind: "write", delayMs: 400 });
    const begun = performance.now();
    const late = container.items.create({ id: "late", pk: "k1" }).then(() => performance.now() - begun);
    await until(async () => (await askChaos(server, undefined, "", undefined, { method: "GET" })).json.rules.length === 0);
    for (let i = 0; i < 20; i++) assert.equal((await readOf(container, i)).status, 200);
    assert.ok((await late) >= 400);
    assert.equal((await container.item("late", "k1").read()).resource.id, "late");
});

test("with the same seed the same requests fail, also after a restart", async (t) => {
    const own = await startServer(t, { args: CHAOS });
    const made = await clientOf(own).databases.create({ id: "seeds" });
    const container = await filled(made.database);
    const pattern = async (seed) => {
        await cause(own, container, "faults", { status: 503, percent: 30, seed, count: 1000 });
        let text = "";
        for (let i = 0; i < 60; i++) {
            const { status } = await callItems(own, container, { id: ITEMS[i].id, key: ITEMS[i].pk });
            text += status === 503 ? "x" : ".";
        }
        await clearChaos(own);
        return text;
    };
    const first = await pattern(5);
    assert.match(first, /x/);
    assert.match(first, /\./);
    assert.equal(await pattern(5), first);
    assert.notEqual(await pattern(6), first);
    await own.restart();
    assert.equal(await pattern(5), first);
});

test("a session token that is held back is answered 404/1002, which the SDK bears", async () => {
    const container = await filled();
    const { headers } = await readOf(container);
    const session = { "x-ms-session-token": headers["x-ms-session-token"] };
    await cause(server, container, "session", { range: "0", requests: 1 });
    const answer = await callItems(server, container, { id: "i0", key: "k0", headers: session });
    errorAnswer(answer, 404, "NotFound", { substatus: 1002 });
    assert.equal((await callItems(server, container, { id: "i0", key: "k0", headers: session })).status, 200);

    const careful = clientOf(server, { consistencyLevel: "Session" });
    const same = careful.database(database.id).container(container.id);
    await same.items.upsert({ id: "mine", pk: "k0" });
    await cause(server, container, "session", { range: "0", requests: 1 });
    assert.equal((await same.item("mine", "k0").read()).resource.id, "mine");
    const { rules } = (await askChaos(server, undefined, "", undefined, { method: "GET" })).json;
    assert.deepEqual(rules, [], "the client has met it");
});

test("without --enable-chaos, or with a read-only key, faults are refused", async (t) => {
    const READ_ONLY = Buffer.from("only to look at").toString("base64");
    const plain = await startServer(t, { args: ["--durability", "relaxed"] });
    const made = await clientOf(plain).databases.create({ id: "safe" });
    const container = await newContainer(made.database);
    const careful = await startServer(t, { args: [...CHAOS, "--read-only-key", READ_ONLY] });
    const other = await newContainer((await clientOf(careful).databases.create({ id: "safe" })).database);
    for (const what of ["split", "merge", "throttle", "faults", "session"]) {
        errorAnswer(await askChaos(plain, container, what, {}), 403, "Forbidden", { message: /--enable-chaos/ });
        const reader = { endpoint: careful.endpoint, key: READ_ONLY };
        errorAnswer(await askChaos(reader, other, what, {}), 401, "Unauthorized", { message: /read-only/ });
    }
    for (const method of ["GET", "DELETE"])
        errorAnswer(await askChaos(plain, undefined, "", undefined, { method }), 403, "Forbidden");
    assert.equal((await eventsOf(plain)).moves.length, 0, "to look is always allowed");
});

// --- The document

test("the examples of the document run as they stand", async (t) => {
    const own = await startServer(t, { args: CHAOS });
    const env = { ...process.env, PATH: `${dirname(BINARY)}:${process.env.PATH}`, COSMOS_KEY: own.key };
    const blocks = [...DOCUMENT.matchAll(/^```js\n(.*?)^```$/gms)];
    assert.equal(blocks.length, 1);
    const path = join(ROOT, `test/.splits-${process.pid}.mjs`); // beside this file, where the SDK is found
    t.after(() => rmSync(path, { force: true }));
    writeFileSync(path, blocks[0][1].replaceAll("http://localhost:8081", own.endpoint));
    const { status, stdout, stderr } = spawnSync(process.execPath, [path], { env, encoding: "utf8", timeout: 60_000 });
    assert.equal(status, 0, stderr);
    const expected = /^```text\n(.*?)^```$/ms.exec(DOCUMENT)[1];
    assert.equal(stdout, expected);
    for (const name of ["split", "merge", "throttle", "faults", "session"])
        assert.ok(DOCUMENT.includes(`\`${name}\``), `docs/splits.md has not ${name}`);
});
