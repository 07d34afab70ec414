// spread.mjs - a proxy that gives each request to another node, at random.
//
// It runs in a thread of its own, because tests wait for commands that ask the server (run() of server.mjs) and
// would stop it meanwhile.
import { Agent, createServer, request as httpRequest } from "node:http";
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";

import { Random } from "./random.mjs";

function serve({ endpoints, seed }) {
    const random = new Random(seed);
    const agent = new Agent({ keepAlive: true });
    // What is too long for a header is for the nodes to say.
    const server = createServer({ maxHeaderSize: 1 << 20 }, (incoming, outgoing) => {
        const url = new URL(random.pick(endpoints));
        const { method, url: path, rawHeaders: headers } = incoming; // also one that is there twice
        const sent = httpRequest({ hostname: url.hostname, port: url.port, method, path, headers, agent }, (answer) => {
            outgoing.writeHead(answer.statusCode, answer.statusMessage, answer.rawHeaders);
            answer.pipe(outgoing);
            answer.once("error", () => outgoing.destroy());
        });
        sent.once("error", () => outgoing.destroy());
        outgoing.once("close", () => sent.destroy());
        incoming.pipe(sent);
    });
    server.keepAliveTimeout = 60_000;
    server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
}

/** `endpoints` are the nodes that may be asked; the port of the proxy on 127.0.0.1, and how to end it. */
export function startSpreading(endpoints, seed) {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { spread: { endpoints, seed } } });
    return new Promise((resolve, reject) => {
        worker.once("error", reject);
        worker.once("message", (port) => resolve({ port, end: () => worker.terminate() }));
    });
}

if (!isMainThread && workerData?.spread) serve(workerData.spread);
