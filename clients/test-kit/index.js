// index.js - a server for tests: starts it, seeds it, saves and restores databases, stops it.
//
// CommonJS, so that Jest can load it as it is; `import` works, too. It needs nothing but Node.
"use strict";
const { spawn } = require("node:child_process");
const { createHmac } = require("node:crypto");
const { dirname, basename } = require("node:path");

// The well-known key of emulators, which is good on this machine only.
const DEVELOPMENT_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const FAST = ["--durability", "relaxed"];
const STOP_MS = 10_000;
const OUTPUT_CHARS_MAX = 20_000; // of the log, for messages

const findBinary = (binary) => binary ?? process.env.ORRERY ?? "orrery";

// Names that begin with ORRERY_ are options of the server. Those of the shell must not change tests.
function environment(key) {
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ORRERY"));
    return { ...Object.fromEntries(kept), ORRERY_KEY: key };
}

/** Runs the program; its output so far is in `output`. */
function launch(binary, args, { key, cwd }) {
    const child = spawn(binary, args, { env: environment(key), cwd, stdio: ["pipe", "pipe", "pipe"] });
    child.output = "";
    for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text) => (child.output = (child.output + text).slice(-OUTPUT_CHARS_MAX)));
    child.stdin.on("error", () => {}); // it may end before it has read everything
    child.ended = new Promise((resolve) => {
        child.once("error", (error) => {
            const hint = "name the program with the option `binary`, with ORRERY in the environment, or put it on the PATH";
            child.output += error.code === "ENOENT" ? `there is no '${binary}': ${hint}` : `${error}`;
            resolve(-1);
        });
        child.once("close", (code, signal) => resolve(code ?? signal));
    });
    return child;
}

/** The endpoint that the server prints when it is ready. */
function whenReady(child, timeoutMs) {
    return new Promise((resolve, reject) => {
        const fail = (why) => {
            child.kill("SIGKILL");
            reject(new Error(`orrery ${why}:\n${child.output}`));
        };
        const timer = setTimeout(() => fail(`was not ready within ${timeoutMs} ms`), timeoutMs);
        child.ended.then((how) => {
            clearTimeout(timer);
            fail(`ended with ${how} before it was ready`);
        });
        child.stdout.on("data", () => {
            const found = /^ {2}Endpoint +(https?:\/\/\S+?)\/\s/m.exec(child.output);
            if (!found) return;
            clearTimeout(timer);
            resolve(found[1]);
        });
    });
}

class Orrery {
    #child;
    #binary;

    constructor(child, binary, endpoint, key) {
        this.#child = child;
        this.#binary = binary;
        this.endpoint = endpoint;
        this.key = key;
        this.connectionString = `AccountEndpoint=${endpoint}/;AccountKey=${key};`;
        this.pid = child.pid;
    }

    /** The last lines of the server's log. */
    get log() {
        return this.#child.output;
    }

    /** Makes the server have what a seed file says: its path, or its content as an object. */
    async seed(file, { folder } = {}) {
        const isPath = typeof file === "string";
        const [name, cwd] = isPath ? [basename(file), dirname(file)] : ["-", folder];
        const args = ["seed", "--endpoint", this.endpoint, ...(this.endpoint.startsWith("https:") ? ["--insecure"] : []), name];
        const child = launch(this.#binary, args, { key: this.key, cwd });
        child.stdin.end(isPath ? "" : JSON.stringify(file));
        const code = await child.ended;
        if (code !== 0) throw new Error(`orrery seed ended with ${code}:\n${child.output}`);
        return child.output;
    }

    async #ask(method, path, link, type) {
        const date = new Date().toUTCString();
        const text = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
        const signature = createHmac("sha256", Buffer.from(this.key, "base64")).update(text).digest("base64");
        const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
        const headers = { authorization, "x-ms-date": date, "x-ms-version": "2020-07-15" };
        const answer = await fetch(`${this.endpoint}${path}`, { method, headers });
        const body = await answer.text();
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${body}`);
        return body === "" ? undefined : JSON.parse(body);
    }

    // Signed like a request for the database itself.
    #askSnapshot(method, database, name, action = "") {
        const path = `/_orrery/dbs/${encodeURIComponent(database)}/snapshots/${encodeURIComponent(name)}${action}`;
        return this.#ask(method, path, `dbs/${database}`, "dbs");
    }

    /** Saves the state of a database under a name; an older one of that name is replaced. */
    snapshot(database, name = "clean") {
        return this.#askSnapshot("PUT", database, name);
    }

    /** Takes a database back to what was saved. */
    restore(database, name = "clean") {
        return this.#askSnapshot("POST", database, name, "/restore");
    }

    dropSnapshot(database, name = "clean") {
        return this.#askSnapshot("DELETE", database, name);
    }

    snapshots() {
        return this.#ask("GET", "/_orrery/snapshots", "", "");
    }

    /** Ends the server and removes its data. May be called again. */
    async stop() {
        this.#child.ref();
        this.#child.stdin.end();
        const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS);
        await this.#child.ended;
        clearTimeout(timer);
    }
}

/**
 * Starts a server on a free port, with its data in a temporary folder, and waits until it is ready. It ends when `stop` is called,
 * or when this process ends, however that happens.
 */
async function startOrrery({ binary, seed, args = [], key = DEVELOPMENT_KEY, isThrottled = false, timeoutMs = 60_000 } = {}) {
    const program = findBinary(binary);
    const isPath = typeof seed === "string";
    const limit = isThrottled ? [] : ["--no-rate-limit"];
    const where = ["--temporary", "--stop-at-eof", "--host", "127.0.0.1", "--port", "0"];
    const child = launch(program, ["serve", ...where, ...FAST, ...limit, ...(isPath ? ["--seed", seed] : []), ...args], { key });
    const endpoint = await whenReady(child, timeoutMs);
    // A test that forgets to stop the server can end all the same.
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref?.();
    const orrery = new Orrery(child, program, endpoint, key);
    if (seed !== undefined && !isPath) {
        await orrery.seed(seed).catch(async (error) => {
            await orrery.stop();
            throw error;
        });
    }
    return orrery;
}

// The same as functions.
const seed = (orrery, file, options) => orrery.seed(file, options);
const snapshot = (orrery, database, name) => orrery.snapshot(database, name);
const restore = (orrery, database, name) => orrery.restore(database, name);

module.exports = { startOrrery, seed, snapshot, restore };
