// Clients that try to fill the server's memory, with and without a key, while others go on using it.
//
// With --memory 640M connections may hold 64 MB together; the server has 400 MB of address space beyond what
// it needs for itself. Each attack would take several times as much. The last test attacks everything at once, and
// measures the whole tree of processes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { workersOf } from "./lib/scripts.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startServer } from "./lib/server.mjs";
import { call, metric, requestText, send, signed, unique } from "./lib/wire.mjs";

const CONNECTIONS = 300;
const TOTAL_MB = 640; // --memory
const MEMORY_MB = 64; // of that, for connections
const SPARE_MB = 400;
const OPERATIONS = 60; // of the normal client, during each attack

/** A figure of the process in MB: VmRSS, VmHWM, VmSize. */
function memoryOf(server, name) {
    const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)[1]) / 1024;
}

// A sanitizer reserves terabytes and keeps what was freed: its memory can be neither limited nor measured.
const isMeasurable = (server) => memoryOf(server, "VmSize") < 1 << 20;

/** Starts a server whose address space ends soon after what it needs. */
async function startLimited(t) {
    const args = ["--memory", `${TOTAL_MB}M`, "--cache", "32M", "--threads", "2"];
    const free = await startServer(t, { args });
    if (!isMeasurable(free)) return free;
    const needed_MB = memoryOf(free, "VmSize");
    await free.stopWell();
    const limit = Math.round((needed_MB + SPARE_MB) * 1024);
    return startServer(t, { args, within: ["sh", "-c", `ulimit -v ${limit} && exec "$@"`, "sh"] });
}

/** Connections that all send the same and never read. */
class Attack {
    sockets = [];

    constructor(server, pieces, count = CONNECTIONS) {
        for (let i = 0; i < count; i++) {
            const socket = connect({ port: server.port, host: "127.0.0.1" });
            socket.on("error", () => {}); // being thrown out is what they are here for
            socket.pause();
            for (const piece of pieces) socket.write(piece);
            this.sockets.push(socket);
        }
    }

    end() {
        for (const socket of this.sockets) socket.destroy();
    }
}

async function setUp(server) {
    const id = unique("memory");
    const client = clientOf(server);
    const { database } = await client.databases.create({ id });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    return { id, client, container, docs: `/dbs/${id}/colls/c/docs` };
}

async function useNormally(container) {
    for (let i = 0; i < OPERATIONS; i++) {
        const id = unique("item");
        const { statusCode } = await container.items.create({ id, pk: id, text: "x".repeat(2000) });
        assert.equal(statusCode, 201);
        assert.equal((await container.item(id, id).read()).resource.text.length, 2000);
        await sleep(10);
    }
}

/** Attacks while a normal client works, and expects that nothing is left of it. */
async function survive(server, container, pieces) {
    const before_MB = memoryOf(server, "VmRSS");
    const attack = new Attack(server, pieces);
    await useNormally(container);
    const during_MB = memoryOf(server, "VmHWM");
    attack.end();
    assert.ok(server.isRunning);
    assert.ok(
        !isMeasurable(server) || during_MB < before_MB + 3 * MEMORY_MB,
        `${before_MB} MB before the attack, ${during_MB} MB at its height`,
    );
    // What is left is this connection and the few of the SDK.
    for (const [name, most] of [
        ["orrery_connections_open", 20],
        ["orrery_connection_memory_bytes", 200_000],
    ]) {
        for (let i = 0; (await metric(server, name)) > most; i++) {
            assert.ok(i < 300, `${name} stays above ${most}`);
            await sleep(100);
        }
    }
}

const post = (path, headers) =>
    requestText(path, { method: "POST", headers: { ...headers, "content-length": 2_000_000 } });

test("a client without a key takes no memory, however much it sends", async (t) => {
    const server = await startLimited(t);
    const { container, docs } = await setUp(server);
    await survive(server, container, [post(docs, {}), Buffer.alloc(1_900_000, "x")]);
    assert.equal(await metric(server, "orrery_requests_shed_total"), 0);
});

test("bodies of clients with a key are refused beyond --memory, and small requests are served", async (t) => {
    const server = await startLimited(t);
    const { container, docs } = await setUp(server);
    const headers = signed({ key: server.key, method: "POST", path: docs });
    await survive(server, container, [post(docs, headers), Buffer.alloc(1_900_000, "x")]);
    assert.ok((await metric(server, "orrery_requests_shed_total")) > CONNECTIONS / 2);
    // There is room again.
    const id = unique("large");
    const answer = await call(server, {
        method: "POST",
        path: docs,
        headers: { "x-ms-documentdb-partitionkey": JSON.stringify([id]) },
        body: { id, pk: id, text: "x".repeat(1_900_000) },
    });
    assert.equal(answer.status, 201);
});

test("answers that are not read are dropped beyond --memory, and others get theirs", async (t) => {
    const server = await startLimited(t);
    const { container, docs } = await setUp(server);
    const large = { id: "large", pk: "large", text: "x".repeat(1_900_000) };
    await container.items.create(large);
    const path = `${docs}/large`;
    const headers = {
        ...signed({ key: server.key, path }),
        "x-ms-documentdb-partitionkey": '["large"]',
    };
    // More than the system's buffers of a connection take.
    await survive(server, container, [requestText(path, { headers }).repeat(8)]);
    assert.ok((await metric(server, "orrery_answers_shed_total")) > 0);
    const answer = await send(server.endpoint, { path, headers });
    assert.equal(answer.json.text.length, 1_900_000);
});

test("a request that is refused for want of memory says which limit was reached", async (t) => {
    const server = await startServer(t, { args: ["--memory", `${TOTAL_MB}M`, "--threads", "1"] });
    const { docs } = await setUp(server);
    const headers = signed({ key: server.key, method: "POST", path: docs });
    const attack = new Attack(server, [post(docs, headers), Buffer.alloc(1_900_000, "x")]);
    t.after(() => attack.end());
    while ((await metric(server, "orrery_requests_shed_total")) < CONNECTIONS / 2) await sleep(20);
    const body = JSON.stringify({ id: "a", pk: "a", text: "x".repeat(1_900_000) });
    const answer = await call(server, { method: "POST", path: docs, body });
    assert.equal(answer.status, 503);
    assert.equal(answer.json.code, "ServiceUnavailable");
    assert.match(answer.json.message, /64 MB, a share of --memory/);
});

/** What the server and its workers have of the machine's memory, in MB; what they share counts once. */
function treeOf(server) {
    const pss = (pid) => {
        try {
            return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]) / 1024;
        } catch {
            return 0; // it has ended meanwhile
        }
    };
    return [server.pid, ...workersOf(server).map(({ pid }) => pid)].map(pss).reduce((a, b) => a + b);
}

/** Items that fill the cache, and of which queries make much. */
async function fillUp(container) {
    const text = "x".repeat(20_000);
    const list = Array.from({ length: 50 }, (_, k) => k * 17);
    for (let i = 0; i < 4000; i += 100)
        await Promise.all(
            Array.from({ length: 100 }, (_, k) => container.items.create({ id: `${i + k}`, pk: `${i + k}`, n: i + k, text, list })),
        );
}

test("connections, queries, scripts and caches together stay below --memory", async (t) => {
    const server = await startServer(t, {
        args: ["--memory", `${TOTAL_MB}M`, "--threads", "2", "--durability", "relaxed", "--merge", "always"],
    });
    const { container, docs } = await setUp(server);
    await fillUp(container);
    const bombs = [
        "function () { const all = []; for (;;) all.push(new Array(100000).fill(1.5)); }",
        "function () { let text = 'x'; for (;;) text += text.slice(0, 1000000) + 'y'; }",
    ];
    for (const [i, body] of bombs.entries()) await container.scripts.storedProcedures.create({ id: `p${i}`, body });
    await container.scripts.userDefinedFunctions.create({
        id: "f",
        body: "function (n) { const all = []; for (let i = 0; i < 3000; i++) all.push(new Array(1000).fill(n)); return all.length; }",
    });
    const modest = "function () { const l = []; for (let i = 0; i < 20000; i++) l.push({ i }); getContext().getResponse().setBody(l.length); }";
    await container.scripts.storedProcedures.create({ id: "modest", body: modest });
    const queries = [
        "SELECT VALUE [c.text, a] FROM c JOIN a IN c.list ORDER BY a",
        "SELECT a, b, COUNT(1) AS k FROM c JOIN a IN c.list JOIN b IN c.list GROUP BY a, b",
        "SELECT a, COUNT(1) AS k, MAKELIST(c.text) AS l FROM c JOIN a IN c.list GROUP BY a",
        "SELECT * FROM c ORDER BY c.text",
        "SELECT VALUE udf.f(c.n) FROM c",
    ];
    let isOver = false;
    let peak_MB = 0;
    const counts = { queries: 0, scripts: 0, refused: 0 };
    const repeat = async (what, work) => {
        while (!isOver) {
            await work().catch(() => counts.refused++);
            counts[what]++;
        }
    };
    const ask = (query) =>
        call(server, {
            method: "POST",
            path: docs,
            headers: {
                "content-type": "application/query+json",
                "x-ms-documentdb-query-enablecrosspartition": "true",
                "x-ms-max-item-count": "-1",
            },
            body: JSON.stringify({ query }),
        });
    const run = (i) => container.scripts.storedProcedure(`p${i % 2}`).execute(`${i}`);
    const headers = signed({ key: server.key, method: "POST", path: docs });
    const attack = new Attack(server, [post(docs, headers), Buffer.alloc(1_900_000, "x")], 1000);
    const watch = (async () => {
        for (; !isOver; await sleep(20)) peak_MB = Math.max(peak_MB, treeOf(server));
    })();
    const load = [
        ...Array.from({ length: 20 }, (_, i) => repeat("queries", () => ask(queries[i % queries.length]))),
        ...Array.from({ length: 6 }, (_, i) => repeat("scripts", () => run(i))),
    ];
    await useNormally(container);
    const end = Date.now() + 60_000;
    while ((counts.queries < 60 || counts.scripts < 12) && Date.now() < end) await sleep(100);
    isOver = true;
    await Promise.all([...load, watch]);
    attack.end();
    // A script that needs little has enough, again and again; one with a sanitizer never needs little.
    for (let i = 0; i < 5 && isMeasurable(server); i++) {
        const { resource } = await container.scripts.storedProcedure("modest").execute("k");
        assert.equal(resource, 20000);
    }
    t.diagnostic(`at most ${peak_MB.toFixed()} MB of ${TOTAL_MB}; ${JSON.stringify(counts)}`);
    assert.ok(server.isRunning);
    assert.ok(counts.queries >= 20 && counts.scripts >= 6, JSON.stringify(counts));
    if (isMeasurable(server)) assert.ok(peak_MB <= TOTAL_MB, `${peak_MB.toFixed()} MB of ${TOTAL_MB}`);
});
