// Clients that try to fill the server's memory, with and without a key, while others go on using it.
//
// The server may hold 64 MB for all connections (--memory) and has 400 MB of address space beyond what
// it needs for itself. Each attack would take several times as much.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { clientOf } from "./lib/sdk.mjs";
import { startServer } from "./lib/server.mjs";
import { call, metric, requestText, send, signed, unique } from "./lib/wire.mjs";

const CONNECTIONS = 300;
const MEMORY_MB = 64;
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
    const args = ["--memory", `${MEMORY_MB}M`, "--cache", "32M", "--threads", "2"];
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

    constructor(server, pieces) {
        for (let i = 0; i < CONNECTIONS; i++) {
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
    const server = await startServer(t, { args: ["--memory", "32M", "--threads", "1"] });
    const { docs } = await setUp(server);
    const headers = signed({ key: server.key, method: "POST", path: docs });
    const attack = new Attack(server, [post(docs, headers), Buffer.alloc(1_900_000, "x")]);
    t.after(() => attack.end());
    while ((await metric(server, "orrery_requests_shed_total")) < CONNECTIONS / 2) await sleep(20);
    const body = JSON.stringify({ id: "a", pk: "a", text: "x".repeat(1_900_000) });
    const answer = await call(server, { method: "POST", path: docs, body });
    assert.equal(answer.status, 503);
    assert.equal(answer.json.code, "ServiceUnavailable");
    assert.match(answer.json.message, /32 MB \(--memory\)/);
});
