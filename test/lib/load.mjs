// load.mjs - clients that want more than they may have, and what they get.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { clientOf } from "./sdk.mjs";
import { temporaryFolder } from "./server.mjs";

// As published; see docs/request-units.md.
const READS = [
    [1, 1.0],
    [2, 1.04],
    [4, 1.14],
    [8, 1.33],
    [16, 1.67],
    [32, 2.19],
    [64, 4.76],
    [128, 9.95],
    [256, 20.28],
    [512, 40.95],
    [1024, 145.9],
    [2048, 291.8],
];

/** Options that make every point read cost `factor` times as much: few requests use up a lot. */
export function readsCost(factor) {
    const path = join(temporaryFolder(), "charges");
    writeFileSync(path, READS.map(([kb, ru]) => `read ${kb}KB = ${(ru * factor).toFixed(2)}\n`).join(""));
    return ["--charges", path];
}

/** A client whose own retries go on for as long as a test does. */
export const patientClient = (server) =>
    clientOf(server, {
        connectionPolicy: {
            enableBackgroundEndpointRefreshing: false,
            retryOptions: { maxRetryAttemptCount: 10_000, maxWaitTimeInSeconds: 600 },
        },
    });

/** A client that is told of every 429. */
export const impatientClient = (server) =>
    clientOf(server, {
        connectionPolicy: {
            enableBackgroundEndpointRefreshing: false,
            retryOptions: { maxRetryAttemptCount: 0 },
        },
    });

/** Keys of which the first lies in the first of the container's partitions, and so on. */
export async function keysByPartition(container, count) {
    const keys = [];
    for (let i = 0; keys.filter(Boolean).length < count; i++) {
        const { headers } = await container.items.upsert({ id: "x", pk: `key ${i}` });
        keys[Number(headers["x-ms-documentdb-partitionkeyrangeid"])] ??= `key ${i}`;
    }
    return keys;
}

/**
 * What clients that ask without a pause get, in request units a second, over about `seconds`.
 * `next(client, i)` is the i-th request of a client; each begins with another i. The time begins and
 * ends with an answer for which its client had to wait, so that nothing was saved up before, and
 * nothing is left over.
 */
export async function acceptedRate(clients, next, seconds) {
    const waited = [];
    const answers = [];
    const end = performance.now() + (seconds + 2) * 1000;
    const run = async (client, first) => {
        for (let i = first; performance.now() < end; i++) {
            const { headers } = await next(client, i);
            const at = performance.now();
            answers.push([at, Number(headers["x-ms-request-charge"])]);
            if (Number(headers["x-ms-throttle-retry-count"]) > 0) waited.push(at);
        }
    };
    await Promise.all(clients.map((client, i) => run(client, i)));
    const begin = waited.find((at) => at > end - (seconds + 1) * 1000);
    const last = waited.at(-1);
    const units = answers.reduce((sum, [at, ru]) => (at > begin && at <= last ? sum + ru : sum), 0);
    return { rate: (units * 1000) / (last - begin), seconds: (last - begin) / 1000, waits: waited.length };
}
