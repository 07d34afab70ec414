// Clients that take without giving: connections that say nothing, speak too slowly, stop in the middle of a
// handshake or never read; and clients that try one wrong key after the other. Others go on working, and
// what the server holds stays bounded.
//
// All of Linux's loopback network (127.0.0.0/8) is this machine, so that clients can have addresses of their own.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { errorAnswer } from "./lib/check.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startServer } from "./lib/server.mjs";
import { call, metric, requestText, send, signed, unique } from "./lib/wire.mjs";

const ATTACKER = "127.0.0.2";

/** Connections of an attacker, each of which begins in the same way. */
class Flood {
    sockets = [];
    closed = 0;
    received = 0;

    constructor(server, count, { start, tick, every_ms = 1000, reads = true, from = ATTACKER } = {}) {
        for (let i = 0; i < count; i++) {
            const socket = connect({ port: server.port, host: "127.0.0.1", localAddress: from });
            socket.on("error", () => {}); // being thrown out is what they are here for
            socket.on("close", () => this.closed++);
            if (reads) socket.on("data", (bytes) => (this.received += bytes.length));
            else socket.pause();
            if (start) socket.write(start);
            this.sockets.push(socket);
        }
        if (tick)
            this.timer = setInterval(() => {
                for (const socket of this.sockets) if (!socket.destroyed) socket.write(tick);
            }, every_ms);
    }

    end() {
        clearInterval(this.timer);
        for (const socket of this.sockets) socket.destroy();
    }
}

async function setUp(t, args) {
    const server = await startServer(t, { args: ["--durability", "relaxed", ...args] });
    const client = clientOf(server);
    const { database } = await client.databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
    return { server, container };
}

/** What an ordinary client does, on connections of its own and on new ones. */
async function useNormally(server, container, rounds = 20) {
    for (let i = 0; i < rounds; i++) {
        const id = unique("i");
        assert.equal((await container.items.create({ id, pk: id })).statusCode, 201);
        assert.equal((await container.item(id, id).read()).resource.id, id);
        assert.equal((await send(server.endpoint, { path: "/healthz" })).status, 200);
    }
}

const until = async (condition, what, timeout_ms = 60_000) => {
    const end = Date.now() + timeout_ms;
    while (!(await condition())) {
        assert.ok(Date.now() < end, what);
        await sleep(50);
    }
};

const HALF_HELLO = Buffer.from("16030102000100", "hex"); // a TLS record that says it is longer

// The server has room for fewer connections than there are attackers.
for (const [what, flood] of [
    ["say nothing", {}],
    ["send one byte a second", { start: "GET /healthz HTTP/1.1\r\nx: ", tick: "x" }],
    ["stop in the middle of a handshake", { start: HALF_HELLO }],
    ["go on with a handshake byte by byte", { start: HALF_HELLO, tick: "\0" }],
    ["keep connections idle after a request", { start: requestText("/healthz") }],
])
    test(`connections that ${what} do not keep others out`, async (t) => {
        const MAX = 400;
        const { server, container } = await setUp(t, ["--connections-max", String(MAX), "--request-timeout", "60"]);
        const attack = new Flood(server, 2 * MAX, flood);
        t.after(() => attack.end());
        // Those that have come first have been there for long enough to give way.
        await until(
            async () => {
                try {
                    return (await send(server.endpoint, { path: "/healthz" })).status === 200;
                } catch {
                    return false;
                }
            },
            "nobody else gets in",
        );
        await until(async () => (await metric(server, "orrery_connections_evicted_total").catch(() => 0)) > 0, what);
        let done = 0;
        await until(async () => {
            await useNormally(server, container, 1).then(
                () => done++,
                (error) => assert.match(String(error.code ?? error), /ECONN|socket|EPIPE/),
            );
            return done === 10;
        }, "the ordinary client does not get on");
        assert.ok((await metric(server, "orrery_connections_open")) <= MAX);
        assert.ok(server.isRunning);
        attack.end();
    });

test("one address has at most its share, and others do not notice", async (t) => {
    const { server, container } = await setUp(t, ["--address-connections-max", "100"]);
    const attack = new Flood(server, 2000);
    t.after(() => attack.end());
    await until(() => attack.closed >= 1900, "connections beyond the limit stay open");
    await useNormally(server, container);
    assert.equal(await metric(server, "orrery_connections_address_refused_total"), 1900);
    assert.equal(attack.closed, 1900);
    // When they have gone there is room again.
    attack.end();
    await until(async () => (await metric(server, "orrery_connections_open")) < 20, "connections are left");
    const again = new Flood(server, 50, { start: requestText("/healthz") });
    t.after(() => again.end());
    await until(() => again.received > 50 * 100, "there is no room after the flood");
    again.end();
});

test("by default this machine may have any number of connections, and a request must come soon", async (t) => {
    const { server, container } = await setUp(t, ["--request-timeout", "3"]);
    const attack = new Flood(server, 2000);
    t.after(() => attack.end());
    await useNormally(server, container);
    assert.equal(await metric(server, "orrery_connections_address_refused_total"), 0);
    // Silent connections go although --idle-timeout is five minutes.
    await until(() => attack.closed === 2000, "silent connections stay");
    await until(async () => (await metric(server, "orrery_connections_open")) < 20, "connections are left");
});

test("handshakes that stop half-way and heads that trickle in are cut off in time", async (t) => {
    const { server, container } = await setUp(t, ["--request-timeout", "3"]);
    const attacks = [
        new Flood(server, 300, { start: HALF_HELLO }),
        new Flood(server, 300, { start: "GET /", tick: "x", every_ms: 200 }),
        new Flood(server, 300, { start: requestText("/dbs", { method: "POST", headers: { "content-length": 1000 } }) }),
    ];
    t.after(() => attacks.forEach((attack) => attack.end()));
    await useNormally(server, container);
    for (const attack of attacks) await until(() => attack.closed === 300, "connections stay");
    await until(async () => (await metric(server, "orrery_connection_memory_bytes")) < 200_000, "memory is left");
});

test("answers that are never read end with a reset", async (t) => {
    const { server, container } = await setUp(t, ["--request-timeout", "3", "--memory", "1G"]);
    await container.items.create({ id: "large", pk: "large", text: "x".repeat(1_500_000) });
    const path = "/dbs/d/colls/c/docs/large";
    const headers = { ...signed({ key: server.key, path }), "x-ms-documentdb-partitionkey": '["large"]' };
    const attack = new Flood(server, 100, { start: requestText(path, { headers }).repeat(8), reads: false });
    t.after(() => attack.end());
    await useNormally(server, container);
    const gone = async () =>
        (await metric(server, "orrery_connections_slow_total")) + (await metric(server, "orrery_answers_shed_total"));
    await until(async () => (await gone()) >= 100, "connections stay");
    await useNormally(server, container);
    await until(async () => (await metric(server, "orrery_connections_open")) < 20, "connections are left");
});

// --- Wrong keys

const newKey = () => randomBytes(64).toString("base64");

/** Requests with wrong keys, one after the other on each connection. */
async function guess(server, count, from = ATTACKER) {
    const statuses = new Map();
    let last;
    for (let i = 0; i < count; i++) {
        last = await send(server.endpoint, {
            path: "/dbs",
            headers: signed({ key: newKey(), path: "/dbs" }),
            localAddress: from,
        });
        statuses.set(last.status, (statuses.get(last.status) ?? 0) + 1);
    }
    return { statuses, last };
}

test("an address that tries wrong keys is refused before they are looked at, and others are not", async (t) => {
    const MAX = 200;
    const { server, container } = await setUp(t, ["--address-failures-max", String(MAX)]);
    const attack = Promise.all([1, 2, 3, 4].map(() => guess(server, 500)));
    await useNormally(server, container, 50);
    const results = await attack;
    const sum = (status) => results.reduce((total, { statuses }) => total + (statuses.get(status) ?? 0), 0);
    assert.equal(sum(401) + sum(429), 2000);
    assert.ok(sum(401) >= MAX && sum(401) <= 2 * MAX, `${sum(401)} were looked at`);
    assert.equal(await metric(server, "orrery_requests_unauthorized_total"), sum(401));
    assert.equal(await metric(server, "orrery_requests_address_refused_total"), sum(429));
    const { last } = results[0];
    errorAnswer(last, 429, "TooManyRequests", { message: /--address-failures-max/ });
    assert.ok(Number(last.headers["x-ms-retry-after-ms"]) > 0);
    const told = server.lines.filter((line) => / auth\.address_refused address=127\.0\.0\.2 /.test(line)).length;
    assert.ok(told >= 1 && told <= 2, `${told} lines`); // one a minute
    // A right key is refused too while the address is, and what needs none is not.
    const right = await send(server.endpoint, {
        path: "/dbs",
        headers: signed({ key: server.key, path: "/dbs" }),
        localAddress: ATTACKER,
    });
    assert.equal(right.status, 429);
    assert.equal((await send(server.endpoint, { path: "/healthz", localAddress: ATTACKER })).status, 200);
    assert.equal((await call(server, { path: "/dbs" })).status, 200);
});

test("by default this machine may fail as often as it likes", async (t) => {
    const { server } = await setUp(t, []);
    const { statuses } = await guess(server, 1500);
    assert.deepEqual([...statuses], [[401, 1500]]);
});
