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
export const patientClient = (server, { requestTimeout = 60_000 } = {}) =>
    clientOf(server, {
        connectionPolicy: {
            enableBackgroundEndpointRefreshing: false,
            requestTimeout, // a timer of a request that was tried again may live that long
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

const SAVED_MS = 800; // less than the second that a partition saves up
const LATE_MS = 15;

/** One try of acceptedRate; `isSteady` says whether the clients did ask without a pause. */
async function measure(clients, next, seconds) {
    const begun = performance.now();
    const seen = { units: 0, ms: 0, isSteady: true };
    let from; // when it began,
    let units = 0; // since then,
    let waitedAt; // and when a client had to wait at last
    const run = async (client, first) => {
        for (let i = first; seen.ms < 1000 * seconds && performance.now() < begun + 2000 * seconds; i++) {
            const asked = performance.now();
            const { headers } = await next(client, i);
            const now = performance.now();
            units += Number(headers["x-ms-request-charge"]);
            const retries = Number(headers["x-ms-throttle-retry-count"]);
            if (!(retries > 0)) continue;
            seen.isSteady &&= from === undefined || now - waitedAt < SAVED_MS;
            waitedAt = now;
            const late = (now - asked - Number(headers["x-ms-throttle-retry-wait-time-ms"])) / retries;
            if (late > LATE_MS) continue;
            // It was let in as soon as there was something, and left nothing.
            if (from !== undefined) Object.assign(seen, { units, ms: now - from });
            else if (now > begun + 1500) [from, units] = [now, 0];
        }
    };
    await Promise.all(clients.map(run));
    return seen;
}

/**
 * What clients that ask without a pause get, in request units a second, over `seconds`. `next(client, i)`
 * is the i-th request of a client; each begins with another i. It is measured from an answer for which
 * its client had to wait, and no longer than it was told, to another such answer, so that nothing was
 * saved up before, and nothing is left over. If the clients came to a stop in between, as they do on a
 * machine with other things to do, something may have been lost, and it is tried again.
 */
export async function acceptedRate(clients, next, seconds) {
    for (let left = 4; ; left--) {
        const { units, ms, isSteady } = await measure(clients, next, seconds);
        if (isSteady || left === 0) return { rate: (units * 1000) / ms, seconds: ms / 1000, isSteady };
    }
}
