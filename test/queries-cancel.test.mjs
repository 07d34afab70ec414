// Clients that leave: their queries stop, whatever they do at the time, and those that still wait for a
// worker are not begun.
//
// No test here waits for a time: that a query has stopped is known because it was over before another one
// that does the same for a client that stays, or has taken less time than that.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import test from "node:test";

import { fill, newContainer, pathOf, SIZES, until } from "./lib/items.mjs";
import { askPage, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { startServer } from "./lib/server.mjs";
import { answers, Line, metric, requestText, signed } from "./lib/wire.mjs";

const list = Array.from({ length: 1000 }, (_, i) => i);
const ITEMS = Array.from({ length: 500 }, (_, i) => ({ id: `${i}`, pk: `k${i % 50}`, n: i, list }));
const FOUR = "FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list JOIN e IN c.list";

/** Queries of all kinds that take as long as a page may, or more steps than it may. */
const RUNAWAYS = [
    `SELECT VALUE COUNT(1) ${FOUR}`,
    `SELECT VALUE a ${FOUR} WHERE a + b + d + e < 0`,
    `SELECT a, COUNT(1) AS k ${FOUR} GROUP BY a`,
    "SELECT VALUE c.n FROM c WHERE EXISTS (SELECT VALUE 1 FROM a IN c.list JOIN b IN c.list WHERE a + b < 0)",
    `SELECT VALUE c.n FROM c WHERE EXISTS (SELECT VALUE 1 ${FOUR.replace("c JOIN a", "a")} WHERE a + b + d + e < 0)`,
    `SELECT VALUE c.n ${FOUR} WHERE a + b + d + e < 0 ORDER BY c.n DESC`,
    `SELECT DISTINCT VALUE a ${FOUR}`,
];

async function setUp(t) {
    // Half of the workers are for queries that take long: two at a time.
    const server = await startServer(t, { args: ["--durability", "relaxed", "--threads", "4"] });
    const { database } = await clientOf(server).databases.create({ id: "cancel" });
    const container = await newContainer(database, SIZES[1]);
    await fill(container, ITEMS);
    return { server, container };
}

const cancelled = (server) => metric(server, "orrery_queries_cancelled_total");

/** Waits until `count` requests are under way, besides the one for the metrics. */
const underWay = (server, count) =>
    until(async () => (await metric(server, "orrery_requests_open")) === count + 1, { every_ms: 5 });

/** The time that each worker for queries has used, in hundredths of a second. */
function workerTimes(server) {
    const folder = `/proc/${server.pid}/task`;
    const stats = readdirSync(folder).map((id) => [id, readFileSync(`${folder}/${id}/stat`, "utf8")]);
    const workers = stats.filter(([, text]) => text.includes("(orrery-worker"));
    return new Map(workers.map(([id, text]) => [id, Number(text.slice(text.lastIndexOf(")")).split(" ")[12])]));
}

/** Waits until `count` workers are busy. */
async function working(server, count) {
    const begun = workerTimes(server);
    const isBusy = ([id, time]) => time >= (begun.get(id) ?? 0) + 3;
    await until(() => [...workerTimes(server)].filter(isBusy).length >= count, { every_ms: 5 });
}

/** The bytes of a query. */
function queryText(server, container, query) {
    const path = `${pathOf(container)}/docs`;
    const body = JSON.stringify({ query });
    const headers = {
        ...signed({ key: server.key, method: "POST", path, type: "docs", link: pathOf(container).slice(1) }),
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "true",
        "x-ms-documentdb-query-enablecrosspartition": "true",
        "content-length": Buffer.byteLength(body),
    };
    return requestText(path, { method: "POST", headers }) + body;
}

/** A query on a connection of its own. */
async function begin(server, container, query) {
    const line = await Line.open(server.port);
    line.send(queryText(server, container, query));
    return line;
}

/** A query whose client stays; `isOver` when it is answered. */
function stay(server, container, query) {
    const state = { isOver: false, begun: performance.now() };
    const agent = new Agent();
    state.answer = askPage(server, container, query, { agent }).then((answer) => {
        agent.destroy();
        state.isOver = true;
        state.took_ms = performance.now() - state.begun;
        return answer;
    });
    state.answer.catch(() => {}); // if the test fails before it is awaited, that is what to tell
    return state;
}

const CLOSES = {
    "closes its connection": (line) => line.close(),
    "resets its connection": (line) => line.socket.resetAndDestroy(),
};

for (const [how, close] of Object.entries(CLOSES))
    test(`a query stops when its client ${how}`, async (t) => {
        const { server, container } = await setUp(t);
        const other = stay(server, container, RUNAWAYS[0]);
        await working(server, 1);
        for (const [i, query] of RUNAWAYS.entries()) {
            const line = await begin(server, container, query);
            await working(server, 2);
            assert.equal(line.received, "");
            close(line);
            await until(async () => (await cancelled(server)) === i + 1, { every_ms: 5 });
            assert.equal(await metric(server, "orrery_requests_open"), other.isOver ? 1 : 2);
            assert.ok(!other.isOver, `${query} was not over before one that stayed`);
        }
        assert.equal((await other.answer).status, 400);
        assert.equal(await cancelled(server), RUNAWAYS.length);
    });

test("queries of clients that have left are not begun", async (t) => {
    const { server, container } = await setUp(t);
    const others = [stay(server, container, RUNAWAYS[0]), stay(server, container, RUNAWAYS[0])];
    await working(server, 2);
    const lines = [];
    for (let i = 0; i < 8; i++) lines.push(await begin(server, container, RUNAWAYS[i % RUNAWAYS.length]));
    await underWay(server, 10);
    for (const line of lines) line.close();
    const last = stay(server, container, "SELECT VALUE COUNT(1) FROM c WHERE RTRIM(c.pk) != 'k1'");
    for (const { answer } of others) assert.equal((await answer).status, 400);
    const begun = performance.now();
    assert.deepEqual(resultsOf(await last.answer), [490]);
    // It came after eight that would have taken that long each.
    assert.ok(performance.now() - begun < others[0].took_ms);
    // A short query may be answered before the last of them has had its turn.
    await until(async () => (await cancelled(server)) >= lines.length);
    assert.equal(await cancelled(server), lines.length);
});

test("a client that has closed only its half is told", async (t) => {
    const { server, container } = await setUp(t);
    const line = await begin(server, container, RUNAWAYS[0]);
    await working(server, 1);
    line.socket.end();
    const [answer] = answers(await line.end());
    assert.equal(answer.status, 408);
    assert.match(JSON.parse(answer.body).message, /was cancelled: its connection was closed/);
    assert.equal(await cancelled(server), 1);
});

test("clients that stay are answered, and nothing is counted", async (t) => {
    const { server, container } = await setUp(t);
    for (const query of ["SELECT VALUE COUNT(1) FROM c", "SELECT * FROM c ORDER BY c.n"])
        assert.equal((await askPage(server, container, query)).status, 200);
    assert.equal(await cancelled(server), 0);
});
