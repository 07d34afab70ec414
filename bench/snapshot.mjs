// snapshot.mjs - how long a restore takes, by how much has changed, and what many of them leave behind.
//
//   node snapshot.mjs --endpoint URL --pid PID --data DIR --items N --rounds N --restores N --out FILE
//
// The database "b" has the container "c" with N items. Prints a table, and "restored" when it is done.
import { appendFileSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { clientOf } from "../test/lib/sdk.mjs";
import { restore, save, succeed } from "../test/lib/snapshots.mjs";

/** The one that emulators have, and a server without a key of its own. */
const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const { values: options } = parseArgs({
    options: {
        endpoint: { type: "string" },
        pid: { type: "string" },
        data: { type: "string" },
        items: { type: "string" },
        rounds: { type: "string" },
        restores: { type: "string" },
        out: { type: "string" },
    },
});
const server = { endpoint: options.endpoint, key: KEY };
const container = clientOf(server).database("b").container("c");
const items = Number(options.items);

const bytesOf = (folder) =>
    readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
        const path = join(folder, entry.name);
        return sum + (entry.isDirectory() ? bytesOf(path) : statSync(path).size);
    }, 0);
const mb = (bytes) => (bytes / 1048576).toFixed(1);
const percentile = (values, p) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * p))];

/** Replaces 8 of 10 items, deletes one and creates one. */
async function change(known, count, round) {
    const operations = [];
    for (let i = 0; i < count; i++) {
        const item = known[(round * count + i) % known.length];
        const { pk } = item;
        if (i % 10 === 8) operations.push({ operationType: "Delete", id: item.id, partitionKey: pk });
        else if (i % 10 === 9)
            operations.push({ operationType: "Create", partitionKey: pk, resourceBody: { ...item, id: `new-${i}` } });
        else operations.push({ operationType: "Upsert", partitionKey: pk, resourceBody: { ...item, changed: round } });
    }
    for (let at = 0; at < operations.length; at += 100) {
        const answers = await container.items.bulk(operations.slice(at, at + 100));
        const wrong = answers.find(({ statusCode }) => statusCode >= 300);
        if (wrong) throw new Error(JSON.stringify(wrong));
    }
}

const TICK_MS = 10;

/** Of the server, with all its threads. */
function cpu_ms() {
    const fields = readFileSync(`/proc/${options.pid}/stat`, "utf8").replace(/.*\) /, "").split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

async function timed(asked) {
    const begun = performance.now();
    const before = cpu_ms();
    const { json } = await succeed(asked());
    return { wall_ms: performance.now() - begun, server_ms: json.tookUs / 1000, cpu_ms: cpu_ms() - before };
}

const countItems = async () => (await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll()).resources[0];
const { resources: known } = await container.items.query("SELECT TOP 20000 * FROM c").fetchAll();
const before = await countItems();
if (before !== items) throw new Error(`there are ${before} items, not ${items}`);

function row(name, times) {
    for (const time of times) appendFileSync(options.out, `${JSON.stringify({ name, ...time })}\n`);
    console.log(
        `${name.padEnd(44)} ${percentile(times.map((t) => t.server_ms), 0.5).toFixed(1).padStart(9)} ` +
            `${Math.max(...times.map((t) => t.server_ms)).toFixed(1).padStart(9)} ` +
            `${percentile(times.map((t) => t.wall_ms), 0.5).toFixed(1).padStart(9)} ` +
            `${(times.reduce((sum, t) => sum + t.cpu_ms, 0) / times.length).toFixed(1).padStart(9)}`,
    );
}

console.log(`${"ms".padEnd(44)} ${["median", "longest", "client", "CPU"].map((name) => name.padStart(9)).join(" ")}`);
const saves = [];
for (let round = 0; round < Number(options.rounds); round++) saves.push(await timed(() => save(server, "b", "clean")));
row(`save, ${items} items`, saves);
for (const count of [0, 10, 100, 1000, 10_000]) {
    const times = [];
    for (let round = 0; round < Number(options.rounds); round++) {
        await change(known, count, round);
        times.push(await timed(() => restore(server, "b", "clean")));
    }
    row(`restore after ${count} changed items`, times);
}

const size = bytesOf(options.data);
const times = [];
for (let round = 0; round < Number(options.restores); round++) {
    await change(known, 100, round % 200);
    times.push(await timed(() => restore(server, "b", "clean")));
}
row(`${options.restores} restores after 100 changed items each`, times);
const now = await countItems();
if (now !== items) throw new Error(`there are ${now} items, not ${items}`);
console.log(`restored; ${mb(size)} MB on disk before these restores, ${mb(bytesOf(options.data))} MB after them`);
