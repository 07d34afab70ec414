// A container of a hundred physical partitions: queries of every kind give what they give on one, many at
// once stay within the memory that the server promises, and point reads go on beside them.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import test from "node:test";

import { complaint, filled } from "./lib/every-way.mjs";
import { callItems, fill, HUNDRED, newContainer, SIZES, until } from "./lib/items.mjs";
import { rangesOf } from "./lib/merge.mjs";
import { askPage, resultsOf } from "./lib/queries.mjs";
import { chooseSeed, Random } from "./lib/random.mjs";
import { randomItems } from "./lib/random-queries.mjs";
import { clientOf } from "./lib/sdk.mjs";
import { ofOneNode, sharedServer } from "./lib/server.mjs";
import { each } from "./lib/spec.mjs";
import { metric } from "./lib/wire.mjs";

const THREADS = 2;
const args = ["--durability", "relaxed", "--threads", `${THREADS}`, "--cache", "64M", "--extensions"];
const server = await sharedServer({ args });
const { database } = await clientOf(server).databases.create({ id: "many" });

const seed = chooseSeed();
const CASES = Number(process.env.ORRERY_TEST_CASES ?? 300) / 6;

test("random queries give on a hundred partitions what they give on one", async (t) => {
    t.diagnostic(`ORRERY_TEST_SEED=${seed}`);
    const containers = await filled(database, [SIZES[0], HUNDRED], randomItems(new Random(seed), 300));
    assert.equal((await rangesOf(server, containers[1][1])).length, 100);
    const seen = { answers: 0, rows: 0 };
    const wrong = [];
    await each(Array.from({ length: CASES }, (_, i) => i + 1), async (number) => {
        const r = new Random(seed ^ Math.imul(number, 0x9e3779b1));
        const what = await complaint(server, containers, r, seen);
        if (what) wrong.push(`case ${number}: ${what}`);
    });
    t.diagnostic(`${CASES} queries, ${seen.answers} answers compared, ${seen.rows} rows`);
    assert.equal(wrong.length, 0, `ORRERY_TEST_SEED=${seed}\n${wrong.join("\n")}`);
    assert.ok(seen.rows > CASES);
});

// ---- much at once ----

const text = "x".repeat(1000);
const ITEMS = Array.from({ length: 4000 }, (_, i) => ({
    id: `${i}`,
    pk: `k${i % 1000}`,
    n: (i * 7919) % 4000,
    text,
    list: Array.from({ length: 50 }, (_, k) => (i * 31 + k * 17) % 10007),
}));
const large = await newContainer(database, HUNDRED);
await fill(large, ITEMS);

const TWO = "FROM c JOIN a IN c.list JOIN b IN c.list";

/** Queries that hold as much as they may, or more: 400 says that it would be more. */
const HEAVY = [
    ["SELECT * FROM c ORDER BY c.n", 200],
    ["SELECT VALUE c FROM c ORDER BY c.text", 200],
    ["SELECT VALUE [c.text, a] FROM c JOIN a IN c.list ORDER BY a", 200],
    ["SELECT VALUE [c, a] FROM c JOIN a IN c.list ORDER BY a", 400],
    [`SELECT a, b, COUNT(1) AS k ${TWO} WHERE c.n < 400 GROUP BY a, b`, 400],
    ["SELECT a, c.n, COUNT(1) AS k FROM c JOIN a IN c.list GROUP BY a, c.n", 200],
    ["SELECT a, COUNT(1) AS k, MAKELIST(c.text) AS l FROM c JOIN a IN c.list GROUP BY a", 200],
    ["SELECT DISTINCT VALUE [c.text, a] FROM c JOIN a IN c.list ORDER BY c.n", 200],
];

const MB = 1024;

/** What the server has of the system's memory, and had at most, in kilobytes. */
function memory() {
    const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
    const [now, most] = ["VmRSS", "VmHWM"].map((name) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)[1]));
    return { now, most };
}
const forgetMost = () => writeFileSync(`/proc/${server.pid}/clear_refs`, "5");

// The sanitizers keep what is freed, and shadows of everything.
const isSanitized = () => /lib[at]san/.test(readFileSync(`/proc/${server.pid}/maps`, "utf8"));

// What a query may hold is 256 MB, and as many run at a time as there are threads; as much again is for
// everything else: the store's cache, answers of 4 MB, parts that are read ahead. In six runs it was 583 MB at most.
const MEMORY_MAX = (THREADS * 256 + 256) * MB;

test("memory is bounded by threads, however many queries there are", { skip: ofOneNode("the memory of a process") }, async (t) => {
    forgetMost();
    const before = memory().now;
    const ask = async ([query, status]) => {
        const agent = new Agent();
        const answer = await askPage(server, large, query, { size: -1, agent });
        agent.destroy();
        // A slow machine may not get through it in the five seconds of a page, and has held as much by then.
        if (answer.status === 400) assert.match(answer.json.message, /more than 268435456 bytes|takes longer/);
        else assert.equal(answer.status, status, `${query}: ${answer.text.slice(0, 300)}`);
    };
    const [, , sorted, , grouped] = HEAVY;
    for (const [what, queries] of [
        ["one of each", HEAVY],
        ["8 sorts", Array(8).fill(sorted)],
        ["8 groupings", Array(8).fill(grouped)],
    ]) {
        await Promise.all(queries.map(ask));
        const { now, most } = memory();
        const [a, b, c] = [before, most, now].map((kb) => (kb / MB).toFixed());
        t.diagnostic(`${what}: ${a} MB before, ${b} MB at most, ${c} MB afterwards`);
        if (!isSanitized()) assert.ok(most <= MEMORY_MAX, `${what}: ${most} KB, more than ${MEMORY_MAX}`);
    }
});

test("point reads go on while many queries run over all partitions", { skip: ofOneNode("a node counts its own requests") }, async (t) => {
    const RUNAWAY = `SELECT VALUE COUNT(1) ${TWO} JOIN d IN c.list JOIN e IN c.list WHERE a + b + d + e < 0`;
    const READS = 400;
    const before = await metric(server, "orrery_queries_cancelled_total");
    const agent = new Agent();
    let over = 0;
    for (let i = 0; i < 8; i++)
        askPage(server, large, RUNAWAY, { agent })
            .catch(() => undefined) // their connections are closed in the end
            .then(() => over++);
    await until(async () => (await metric(server, "orrery_requests_open")) === 9, { every_ms: 5 });

    const reader = new Agent({ keepAlive: true, maxSockets: 4 });
    await each(ITEMS.slice(0, READS), async ({ id, pk, n }) => {
        const answer = await callItems(server, large, { id, key: pk, agent: reader });
        assert.equal(answer.status, 200);
        assert.equal(answer.json.n, n);
    });
    assert.equal(over, 0, `${READS} reads were not over before a query`);
    const quick = await askPage(server, large, "SELECT VALUE c.n FROM c WHERE c.id = '7'", { agent: reader });
    assert.deepEqual(resultsOf(quick), [ITEMS[7].n]);
    t.diagnostic(`${over} of 8 queries were over after ${READS} reads and a query`);
    reader.destroy();
    agent.destroy();
    await until(async () => (await metric(server, "orrery_queries_cancelled_total")) === before + 8);
});
