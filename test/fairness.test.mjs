// Short requests beside many that want the whole server: they are over long before those are.
//
// Nothing here depends on how fast the machine is: the short ones end while the long ones run.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import test from "node:test";

import { callItems, fill, ownContainer, SIZES } from "./lib/items.mjs";
import { askAll, askPage, resultsOf } from "./lib/queries.mjs";

const ARGS = ["--durability", "relaxed", "--threads", "2", "--no-rate-limit"];
const list = Array.from({ length: 1000 }, (_, i) => i);
const ITEMS = Array.from({ length: 2000 }, (_, i) => ({ id: `${i}`, pk: `k${i % 10}`, n: i, text: "x".repeat(200) }));
const JOIN = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.list JOIN b IN c.list JOIN d IN c.list JOIN e IN c.list";

/** Asks something on `count` connections, over and over until it is stopped; `answers` are their statuses. */
function keepBusy(count, ask) {
    const load = { answers: [], isOver: false, count };
    load.ended = Promise.all(
        Array.from({ length: count }, async () => {
            const agent = new Agent({ keepAlive: true, maxSockets: 1 });
            while (!load.isOver) load.answers.push((await ask(agent)).status);
            agent.destroy();
        }),
    );
    return load;
}

const moment = () => new Promise((resolve) => setTimeout(resolve, 500));

/** Forty look-ups that an index serves and forty reads; how long the longest of each took. */
async function shortOnes(own, container) {
    const longest = { lookup: 0, read: 0 };
    for (let i = 0; i < 40; i++) {
        let begun = performance.now();
        const n = (i * 37) % ITEMS.length;
        const found = await askAll(own, container, `SELECT VALUE c.id FROM c WHERE c.n = ${n}`);
        longest.lookup = Math.max(longest.lookup, performance.now() - begun);
        assert.deepEqual(found, [`${n}`]);
        begun = performance.now();
        assert.equal((await callItems(own, container, { id: `${n}`, key: `k${n % 10}` })).status, 200);
        longest.read = Math.max(longest.read, performance.now() - begun);
    }
    return longest;
}

const say = (longest) => `the longest look-up took ${longest.lookup.toFixed()} ms, read ${longest.read.toFixed()}`;

test("short requests are over while sixteen cartesian joins run, and these end as well", async (t) => {
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, ARGS);
    await fill(container, [...ITEMS, { id: "list", pk: "list", list }]);
    const load = keepBusy(16, (agent) => askPage(own, container, JOIN, { agent }));
    await moment();
    t.diagnostic(say(await shortOnes(own, container)));
    assert.deepEqual(load.answers, [], "no join is over yet");
    load.isOver = true;
    await load.ended; // each has its own five seconds, or thirty altogether
    assert.deepEqual(load.answers, Array(16).fill(400));
});

test("short requests go on beside sixty scans, which find what they look for", async (t) => {
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, ARGS);
    await fill(container, ITEMS);
    const query = "SELECT VALUE c.n FROM c WHERE LENGTH(REPLACE(CONCAT(c.text, c.id), 'y', 'xy')) > 0 AND c.n % 500 = 1";
    const load = keepBusy(60, async (agent) => {
        const answer = await askPage(own, container, query, { agent, size: -1 });
        assert.deepEqual(resultsOf(answer).sort((a, b) => a - b), [1, 501, 1001, 1501]);
        return answer;
    });
    await moment();
    t.diagnostic(say(await shortOnes(own, container)));
    load.isOver = true;
    await load.ended;
    t.diagnostic(`${load.answers.length} scans`);
});

test("plans of long texts and items of many numbers delay no other requests, and are answered", async (t) => {
    const { server: own, container } = await ownContainer(t, SIZES[0], {}, ARGS);
    await fill(container, ITEMS);
    const terms = Array.from({ length: 30_000 }, (_, i) => `c.p=${i}`).join(" OR ");
    const headers = { "x-ms-cosmos-is-query-plan-request": "true" };
    const plans = keepBusy(24, (agent) =>
        askPage(own, container, `SELECT * FROM c WHERE ${terms}`, { agent, headers }),
    );
    const body = `{"id":"many","pk":"many","n":[${"1,".repeat(999_999)}1]}`;
    const upsert = { "x-ms-documentdb-is-upsert": "true", prefer: "return=minimal" };
    const writes = keepBusy(2, (agent) =>
        callItems(own, container, { method: "POST", key: "many", body, agent, headers: upsert }),
    );
    await moment();
    t.diagnostic(say(await shortOnes(own, container)));
    plans.isOver = true;
    writes.isOver = true;
    await Promise.all([plans.ended, writes.ended]);
    t.diagnostic(`${plans.answers.length} plans, ${writes.answers.length} writes`);
    assert.deepEqual([...new Set(plans.answers)], [200]);
    assert.deepEqual([...new Set(writes.answers.map((status) => (status === 201 ? 200 : status)))], [200]);
});
