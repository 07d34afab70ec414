// processor-host.mjs - a host of a change feed processor in a thread of its own, so that a test can end it at any moment.
//
// It sends each page to the test and saves its position only after the test has said that it has got it.
import { parentPort, workerData } from "node:worker_threads";

import { Host } from "./processor.mjs";
import { clientOf } from "./sdk.mjs";

const { server, database, monitored, leases, ...options } = workerData;
const client = clientOf(server);
const container = (id) => client.database(database).container(id);

let pages = 0;
const waiting = new Map();
parentPort.on("message", (number) => {
    waiting.get(number)();
    waiting.delete(number);
});

function handle(items, { lease }) {
    const number = pages++;
    parentPort.postMessage({ number, items, lease });
    return new Promise((resolve) => waiting.set(number, resolve));
}

const host = new Host({ ...options, server, monitored: container(monitored), leases: container(leases), handle });
await host.start();
setInterval(() => host.check(), 50);
