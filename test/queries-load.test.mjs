// Queries that need too much: they end, with a page or with an error that says why, and no others wait.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";

import { errorAnswer } from "./lib/check.mjs";
import { callItems, fill, newContainer, ownContainer, SIZES } from "./lib/items.mjs";
import { askAll, askPage, resultsOf } from "./lib/queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { sharedServer } from "./lib/server.mjs";
import { unique } from "./lib/wire.mjs";

// What is measured is the server, also where it merges partitions: the SDK would ask range by range.
const server = await sharedServer({ args: ["--durability", "relaxed", "--merge", "always"] });
const { database } = await clientOf(server).databases.create({ id: unique("load") });

const list = Array.from({ length: 1000 }, (_, i) => i);
const part = list.slice(0, 300);
const ITEMS = Array.from({ length: 400 }, (_, i) => ({ id: `${i}`, pk: `k${i % 10}`, n: i, list, part }));
const FOUR = "FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list JOIN e IN c.list";

const containers = [];
for (const size of SIZES) {
    const container = await newContainer(database, size);
    await fill(container, ITEMS);
    containers.push(container);
}

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

/** How long point reads take, one after the other on their own connection, until `isOver`. */
async function readTimes(where, container, isOver) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const times = [];
    while (!isOver(times.length)) {
        const { id, pk } = ITEMS[times.length % ITEMS.length];
        const begun = performance.now();
        const answer = await callItems(where, container, { id, key: pk, agent });
        times.push(performance.now() - begun);
        assert.equal(answer.status, 200);
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
    agent.destroy();
    return times.sort((a, b) => a - b);
}

test("a runaway query ends, and point reads do not wait for it", async (t) => {
    const container = containers.at(-1);
    const begun = performance.now();
    let running = 2;
    const run = async (query) => {
        const agent = new Agent();
        const answer = await askPage(server, container, query, { agent });
        agent.destroy();
        running--;
        const took_ms = performance.now() - begun;
        t.diagnostic(`${answer.status} after ${took_ms.toFixed()} ms: ${query}`);
        assert.ok(took_ms < 60_000, `${query} took ${took_ms} ms`);
        return answer;
    };
    const whole = run(`SELECT VALUE COUNT(1) ${FOUR}`);
    const piecewise = run("SELECT VALUE a FROM c JOIN a IN c.list JOIN b IN c.part WHERE a + b = -1");
    const times = await readTimes(server, container, () => running === 0);

    // What must see everything before it can answer says that it could not; what looks at one item
    // after the other says how far it came.
    errorAnswer(await whole, 400, "BadRequest", { message: /longer than|more than \d+ steps/ });
    assert.deepEqual(resultsOf(await piecewise), []);
    assert.ok((await piecewise).headers["x-ms-continuation"], "there is more to look at");

    const [half, most, last] = [0.5, 0.99, 1].map((share) => quantile(times, share).toFixed(1));
    t.diagnostic(`${times.length} reads: half within ${half} ms, 99% within ${most}, all within ${last}`);
    assert.ok(times.length > 50);
    assert.ok(half < 20, `half of the reads took ${half} ms`);
    assert.ok(most < 250, `99% of the reads took ${most} ms`);
});

/** Queries that never end by themselves, one for each connection; resolves when all have. */
function runAway(where, container, count) {
    const state = { running: count };
    state.over = Promise.all(
        Array.from({ length: count }, async () => {
            const agent = new Agent();
            const answer = await askPage(where, container, `SELECT VALUE COUNT(1) ${FOUR}`, { agent });
            agent.destroy();
            state.running--;
            errorAnswer(answer, 400, "BadRequest", { message: /longer than|more than \d+ steps/ });
        }),
    );
    return state;
}

test("reads that need the disk do not wait for a runaway query either", async (t) => {
    const args = ["--durability", "relaxed", "--threads", "2"];
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, args);
    const other = await newContainer(container.database, SIZES[0]);
    await fill(container, ITEMS.slice(0, 5));
    await fill(other, ITEMS);
    await own.restart(); // nothing is in memory now
    const runaways = runAway(own, container, 2);
    await new Promise((resolve) => setTimeout(resolve, 300)); // they are on their way
    const times = await readTimes(own, other, (count) => count === ITEMS.length);
    assert.ok(runaways.running > 0, "the reads were over before the queries");
    const [most, last] = [0.99, 1].map((share) => quantile(times, share));
    t.diagnostic(`${times.length} reads: 99% within ${most.toFixed(1)} ms, all within ${last.toFixed(1)}`);
    assert.ok(last < 1000, `a read took ${last} ms`);
    await runaways.over;
});

test("short queries do not wait for long ones", async (t) => {
    const args = ["--durability", "relaxed", "--threads", "2"];
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, args);
    await fill(container, ITEMS);
    const runaways = runAway(own, container, 3);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const times = [];
    for (let i = 0; i < 20; i++) {
        const begun = performance.now();
        const query = `SELECT VALUE c.n + ${i} FROM c WHERE c.n * 2 >= 0`; // too many items for a loop
        const found = await askAll(own, container, query, { size: -1 });
        times.push(performance.now() - begun);
        assert.equal(found.length, ITEMS.length);
    }
    assert.ok(runaways.running > 0, "the short ones were over before the long ones");
    times.sort((a, b) => a - b);
    t.diagnostic(`short ones: half within ${quantile(times, 0.5).toFixed()} ms, all within ${times.at(-1).toFixed()}`);
    assert.ok(times.at(-1) < 1500, `a short query took ${times.at(-1)} ms`);
    await runaways.over; // each has had its own five seconds
});

test("the text of a query, however long, holds up no reads", async (t) => {
    const args = ["--durability", "relaxed", "--threads", "1"];
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, args);
    await fill(container, ITEMS);
    const many = (count, print, separator) => Array.from({ length: count }, (_, i) => print(i)).join(separator);
    const texts = [
        `SELECT VALUE 1 FROM c WHERE ${many(15_000, (i) => `CONTAINS(c.s,'${i}')`, " OR ")}`,
        `SELECT VALUE 1 FROM c WHERE ${many(30_000, (i) => `c.p=${i}`, " OR ")}`,
        `SELECT VALUE 1 FROM c WHERE c.p IN (${many(80_000, (i) => i, ",")})`,
        `SELECT ${many(20_000, (i) => `${i} AS a${i}`, ",")} FROM c WHERE c.n < 0`,
        `SELECT VALUE 1 FROM c WHERE ${many(30_000, (i) => `c.p=${i}`, " OR ")} OR`,
    ];
    const link = `dbs/${container.database.id}`;
    const containersFeed = { path: `/${link}/colls`, type: "colls", link };
    const longest = [];
    for (const query of texts)
        for (const where of [{}, containersFeed]) {
            const agent = new Agent();
            let isOver = false;
            const asked = askPage(own, container, query, { agent, ...where }).finally(() => (isOver = true));
            longest.push((await readTimes(own, container, () => isOver)).at(-1));
            const answer = await asked;
            agent.destroy();
            assert.equal(answer.status, query.endsWith("OR") ? 400 : 200, answer.text.slice(0, 300));
        }
    longest.sort((a, b) => a - b);
    t.diagnostic(`the longest read beside each text took ${longest.map((ms) => ms.toFixed()).join(", ")} ms`);
    assert.ok(quantile(longest, 0.5) < 40, "a read waits while a text is read");
});

test("queries that would hold too much are refused, and say so", async () => {
    for (const container of containers)
        for (const query of [
            `SELECT VALUE [a, b, d, e] ${FOUR} ORDER BY a`,
            `SELECT DISTINCT VALUE [a, b, d, e] ${FOUR} WHERE c.n < 0 OR a >= 0 ORDER BY c.n`,
            `SELECT a, b, d, e, COUNT(1) AS count ${FOUR} GROUP BY a, b, d, e`,
            "SELECT VALUE MAKELIST(c.list) FROM c JOIN a IN c.list JOIN b IN c.list",
        ]) {
            const answer = await askPage(server, container, query, { size: -1 });
            assert.equal(answer.status, 400, `${query}: ${answer.text.slice(0, 300)}`);
            assert.match(answer.json.message, /more than \d+ (bytes|steps)|longer than/, query);
        }
    // The server is none the worse for it.
    const answer = await askPage(server, containers[0], "SELECT VALUE COUNT(1) FROM c");
    assert.deepEqual(resultsOf(answer), [ITEMS.length]);
});

test("hundreds of thousands of groups by two keys are no trouble", async () => {
    const query =
        "SELECT a, b, COUNT(1) AS count FROM c JOIN a IN c.list JOIN b IN c.part WHERE c.n < 4 GROUP BY a, b";
    for (const container of containers) {
        const { resources } = await container.items.query(query, { maxItemCount: 10 }).fetchNext();
        assert.equal(resources.length, 10);
        for (const { count } of resources) assert.equal(count, 4);
    }
});

test("patterns without end are stopped", async () => {
    const query = "SELECT VALUE REGEXMATCH(REPLICATE('a', 9999), '(a+)+[bc]')";
    const answer = await askPage(server, containers[0], query);
    assert.equal(answer.status, 400, answer.text);
    assert.match(answer.json.message, /more than \d+ steps|too complex|longer than/);
});

test("a row of results of one item is cut into pages as well", async () => {
    for (const container of containers) {
        const query = `SELECT VALUE [a, b, d, e] ${FOUR} WHERE c.n = 7`;
        const found = [];
        for (let token, page = 0; page < 5; page++) {
            const answer = await askPage(server, container, query, { size: 300, token });
            found.push(...resultsOf(answer, 300));
            token = answer.headers["x-ms-continuation"];
            assert.ok(token);
        }
        const expected = Array.from({ length: 1500 }, (_, i) => [0, 0, Math.floor(i / 1000), i % 1000]);
        assert.deepEqual(found, expected);
    }
});
