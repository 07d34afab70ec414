// fairness.mjs - a load beside which others are measured: requests that want much, over and over.
//
//   node fairness.mjs --endpoint URL --load NAME --connections N
//
//   joins    cartesian joins of the arrays of an item, which end by their limit
//   scans    a filter that no index serves, over all orders
//   plans    query plans of the longest texts
//   writes   items of a million numbers
//
// It prints "ready" when the first request is under way on every connection, goes on until it is killed
// and prints how many requests were answered, by status, when it gets SIGTERM.
import { Agent } from "node:http";
import { parseArgs } from "node:util";

import { send, signed } from "../test/lib/wire.mjs";

/** The one that emulators have, and a server without a key of its own. */
const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const { values: options } = parseArgs({
    options: {
        endpoint: { type: "string" },
        load: { type: "string" },
        connections: { type: "string" },
    },
});

const QUERY = {
    "content-type": "application/query+json",
    "x-ms-documentdb-isquery": "true",
    "x-ms-documentdb-query-enablecrosspartition": "true",
};
const ask = (container, query, headers = {}) => ({
    path: `/dbs/b/colls/${container}/docs`,
    headers: { ...QUERY, ...headers },
    body: JSON.stringify({ query, parameters: [] }),
});
const PLAN_BYTES = 512 * 1024 - 200;
const NUMBERS = 1_000_000;

function longText() {
    let text = "SELECT * FROM c WHERE c.p = 0";
    for (let i = 1; text.length < PLAN_BYTES - 20; i++) text += ` OR c.p = ${i}`;
    return text;
}

const LOADS = {
    joins: () =>
        ask("lists", "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l"),
    scans: () => ask("c", "SELECT VALUE c.id FROM c WHERE c.quantity * c.price < 0 AND LENGTH(c.note) > 0"),
    plans: () =>
        ask("c", longText(), {
            "x-ms-cosmos-is-query-plan-request": "true",
            "x-ms-cosmos-supported-query-features": "Aggregate, Distinct, MultipleOrderBy, OrderBy, OffsetAndLimit",
        }),
    writes: () => ({
        path: "/dbs/b/colls/lists/docs",
        headers: {
            "content-type": "application/json",
            "x-ms-documentdb-is-upsert": "true",
            "x-ms-documentdb-partitionkey": '["w"]',
            prefer: "return=minimal",
        },
        body: `{"id":"w","pk":"w","n":[${"1,".repeat(NUMBERS - 1)}1]}`,
    }),
};

const request = LOADS[options.load]();
const statuses = {};
let isOver = false;

async function repeat() {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isOver) {
        const { path, headers, body } = request;
        const authorised = { ...headers, ...signed({ key: KEY, method: "POST", path }) };
        const answer = await send(options.endpoint, { method: "POST", path, headers: authorised, body, agent });
        const about = answer.status < 400 ? `${answer.status}` : `${answer.status} ${answer.text.slice(0, 150)}`;
        statuses[about] = (statuses[about] ?? 0) + 1;
    }
}

process.on("SIGTERM", () => {
    console.log(JSON.stringify({ load: options.load, statuses }));
    process.exit(0);
});
for (let i = 0; i < Number(options.connections); i++)
    repeat().catch((error) => {
        console.error(`${options.load}: ${error.message}`);
        process.exit(1);
    });
setTimeout(() => console.log("ready"), 500);
