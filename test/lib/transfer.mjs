// transfer.mjs - `orrery import` and `orrery export` as their users run them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, request } from "node:http";

import { BINARY } from "./server.mjs";

const LIMIT_MS = 120_000;
const running = new Set();

process.on("exit", () => {
    for (const child of running) child.kill("SIGKILL");
});

/** Starts a command about a container; `done` is its end: code, signal, stdout, stderr. */
export function start(command, endpoint, container, args, { input, env = {} } = {}) {
    const where = ["--endpoint", endpoint, "--database", container.database.id, "--container", container.id];
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ORRERY"));
    const child = spawn(BINARY, [command, ...where, ...args], {
        env: { ...Object.fromEntries(kept), ...env },
        stdio: ["pipe", "pipe", "pipe"],
    });
    running.add(child);
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    timer.unref();
    const out = { stdout: "", stderr: "" };
    for (const name of Object.keys(out)) child[name].setEncoding("utf8").on("data", (text) => (out[name] += text));
    child.stdin.on("error", () => {}); // it may end before it has read everything
    if (input !== undefined) child.stdin.end(input);
    child.done = new Promise((resolve) => {
        child.once("close", (code, signal) => {
            clearTimeout(timer);
            running.delete(child);
            resolve({ code, signal, ...out });
        });
    });
    return child;
}

/** Runs a command to its end. */
export function transfer(command, server, container, args, options) {
    return start(command, server.endpoint, container, args, options).done;
}

/** The same, and it must end with that code. */
export async function transferred(command, server, container, args, { code = 0, ...options } = {}) {
    const result = await transfer(command, server, container, args, options);
    assert.equal(result.code, code, result.stderr);
    return result;
}

/** The digest of a container: "HASH COUNT". */
export async function digestOf(server, container) {
    const { stdout } = await transferred("export", server, container, ["--quiet", "--digest", "--output", "/dev/null"]);
    assert.match(stdout, /^[0-9A-F]{32} \d+\n$/);
    return stdout.trim();
}

/**
 * A proxy in front of a server. `hook` sees every request and its body; what it returns is the answer,
 * and the server is not asked: { status, headers, body }. It may also wait, and return nothing.
 */
export async function proxyOf(t, server, hook) {
    const proxy = createServer(async (incoming, outgoing) => {
        const pieces = [];
        for await (const piece of incoming) pieces.push(piece);
        const body = Buffer.concat(pieces);
        const own = await Promise.resolve(hook(incoming, body)).catch((error) => {
            outgoing.destroy(); // so that the command ends, and the test with it
            throw error;
        });
        if (own) {
            outgoing.writeHead(own.status, own.headers);
            outgoing.end(own.body);
            return;
        }
        const to = { port: server.port, host: "127.0.0.1", method: incoming.method, path: incoming.url, headers: incoming.headers };
        const forwarded = request(to, (answer) => {
            outgoing.writeHead(answer.statusCode, answer.headers);
            answer.pipe(outgoing);
        });
        forwarded.on("error", () => outgoing.destroy());
        forwarded.end(body);
    });
    await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    t.after(() => {
        proxy.closeAllConnections?.();
        proxy.close();
    });
    return { endpoint: `http://127.0.0.1:${proxy.address().port}`, port: proxy.address().port };
}

export const isBulk = (incoming) => incoming.headers["x-ms-cosmos-is-batch-request"] === "True";
export const isPage = (incoming) =>
    incoming.url.endsWith("/docs") && (incoming.method === "GET" || incoming.headers["x-ms-documentdb-isquery"] === "True");
