// partitions.mjs - queries through the official SDK, as orrery bench asks them over plain HTTP.
//
//   orrery bench query --print-queries ... | node partitions.mjs --endpoint URL --container NAME [option...]
//
// Reads the bodies of queries, a line each, and runs them in turn, from the first one again if there
// are not enough. Prints the line of JSON that orrery bench would have printed, or with --answers what
// the answer to each query was: how many results, and what their numbers add up to.
//
//   --merge server       what merges the results of partitions: `server`, the default of the SDK, or
//                        `client`: the SDK fetches a plan and merges
//   --page-size 100      results of a page
//   --connections 1      queries under way at a time
//   --seconds 2          how long to measure, after --warmup-ms 1000; what is under way then is waited for
//   --pid PID            the server's process, to measure its CPU
//
// A query that fails ends the program.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { clientOf } from "../test/lib/sdk.mjs";

/** The one that emulators have, and a server without a key of its own. */
const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const { values: options } = parseArgs({
    options: {
        endpoint: { type: "string" },
        container: { type: "string" },
        merge: { type: "string", default: "server" },
        "page-size": { type: "string", default: "100" },
        connections: { type: "string", default: "1" },
        seconds: { type: "string", default: "2" },
        "warmup-ms": { type: "string", default: "1000" },
        pid: { type: "string" },
        answers: { type: "boolean", default: false },
    },
});

/** An option that is a number of at least 1. */
function count(name) {
    const value = Number(options[name]);
    if (!Number.isInteger(value) || value < 1)
        throw new Error(`expected --${name} from 1, found '${options[name]}'`);
    return value;
}
if (!["server", "client"].includes(options.merge))
    throw new Error(`expected --merge server or client, found '${options.merge}'`);
const feed = {
    maxItemCount: count("page-size"),
    ...(options.merge === "client" && { forceQueryPlan: true }),
};

const { items } = clientOf({ endpoint: options.endpoint, key: KEY }).database("b").container(options.container);
const queries = readFileSync(0, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));

/** Runs a query to its end. The first page is the first one that has results: the SDK may give
 * empty ones. */
async function ask(turn) {
    const begin = performance.now();
    // The SDK keeps a query's continuation in the options it is given: no two may share them.
    const iterator = items.query(queries[turn % queries.length], { ...feed });
    const results = [];
    let first;
    while (iterator.hasMoreResults()) {
        const { resources } = await iterator.fetchNext();
        results.push(...(resources ?? []));
        if (results.length > 0) first ??= performance.now();
    }
    const end = performance.now();
    return { results, first_us: ((first ?? end) - begin) * 1000, last_us: (end - begin) * 1000 };
}

/** CPU of the server with all its threads, from /proc/PID/stat; the name in it may have spaces. */
const ticksPerS = Number(execFileSync("getconf", ["CLK_TCK"]));
function serverCpuUs() {
    if (options.pid === undefined) return 0;
    const fields = readFileSync(`/proc/${count("pid")}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1e6) / ticksPerS;
}

/** Asks until the time is over, and waits for the rest. */
async function askFor(ms) {
    const end = performance.now() + ms;
    const times = [];
    let turn = 0;
    const one = async () => {
        while (performance.now() < end) {
            const { first_us, last_us } = await ask(turn++);
            times.push({ first_us, last_us });
        }
    };
    await Promise.all(Array.from({ length: count("connections") }, one));
    return times;
}

/** What so much of all the values does not exceed. */
function percentile(values, share) {
    const sorted = [...values].sort((a, b) => a - b);
    return Math.round(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]);
}

async function measure() {
    await askFor(Number(options["warmup-ms"]));
    const serverBefore = serverCpuUs();
    const clientBefore = process.cpuUsage();
    const begin = performance.now();
    const times = await askFor(count("seconds") * 1000);
    const us = (performance.now() - begin) * 1000;
    const client = process.cpuUsage(clientBefore);
    const clientUs = client.user + client.system;
    const serverUs = serverCpuUs() - serverBefore;
    const first = times.map(({ first_us }) => first_us);
    const last = times.map(({ last_us }) => last_us);
    return {
        requests: times.length,
        seconds: us / 1e6,
        requests_per_s: (times.length * 1e6) / us,
        latency_us: { p50: percentile(last, 0.5), p99: percentile(last, 0.99) },
        first_page_p50_us: percentile(first, 0.5),
        first_page_p99_us: percentile(first, 0.99),
        server_cpu_us_per_request: serverUs / times.length,
        client_cpu_us_per_request: clientUs / times.length,
        client_busy: clientUs / us,
    };
}

/** A result is a number, or has one: the `n` of a group, the `total` of an order. */
const numberOf = (result) => (typeof result === "number" ? result : (result.n ?? result.total));

if (options.answers) {
    for (let turn = 0; turn < queries.length; turn++) {
        const { results } = await ask(turn);
        const sum = results.reduce((total, result) => total + numberOf(result), 0);
        console.log(`${turn} ${results.length} ${sum.toFixed(2)}`);
    }
} else {
    console.log(JSON.stringify(await measure()));
}
