// server.mjs - starts the real binary, and ends it for sure.
//
// Every server has its own temporary folder and takes any free port, so tests may run beside each
// other. Whatever a test forgets is killed when its process exits, and the folders go with it.
import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const BINARY = process.env.ORRERY ?? process.env.ORRERY_BIN ?? join(ROOT, "build/orrery");

/** The same program, as if the journal of a cluster had one more format (the target orrery_next). */
export const NEXT_BINARY = process.env.ORRERY_NEXT ?? join(ROOT, "build/release/orrery_next");

/** The key of every sample, accepted on loopback addresses when no other is given. */
export const DEVELOPMENT_KEY =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const START_MS = 30_000;
const running = new Set();
const folders = new Set();

process.on("exit", () => {
    for (const child of running) child.kill("SIGKILL");
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

export function temporaryFolder() {
    const folder = mkdtempSync(join(tmpdir(), "orrery-test-"));
    folders.add(folder);
    return folder;
}

/** Whether a process runs: one that has ended may be in the list until somebody has taken note. */
export function isRunning(pid) {
    try {
        return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    } catch {
        return false;
    }
}

// The server takes names that begin with ORRERY_ for its own; those of the tests are none.
export function environment(extra) {
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ORRERY"));
    return { ...Object.fromEntries(kept), ...extra };
}

/** Runs a command of the binary to its end; `within` is a command that runs it, as in disk.mjs. */
export function run(args, { env = {}, cwd, within = [] } = {}) {
    const [file, ...rest] = [...within, BINARY, ...args];
    const result = spawnSync(file, rest, {
        env: environment(env),
        cwd,
        encoding: "utf8",
        timeout: START_MS,
        killSignal: "SIGKILL",
    });
    if (result.error) throw result.error;
    return { status: result.status, stdout: result.stdout, stderr: result.stderr };
}

/** The same, while this process goes on. */
export function runBeside(args, { within = [] } = {}) {
    const [file, ...rest] = [...within, BINARY, ...args];
    return new Promise((resolve, reject) => {
        execFile(file, rest, { env: environment(), encoding: "utf8" }, (error, stdout, stderr) => {
            if (error && typeof error.code !== "number") reject(error);
            else resolve({ status: error?.code ?? 0, stdout, stderr });
        });
    });
}

export class Server {
    #child;
    #exited;
    #watchers = []; // called with each new line until they return true
    lines = []; // of standard error: the log
    stdout = "";

    constructor(options) {
        this.options = options;
        this.data = options.data ?? join(temporaryFolder(), "data");
        this.key = options.key ?? DEVELOPMENT_KEY;
    }

    async start() {
        const { args = [], env = {}, host = "127.0.0.1", cwd, within = [], binary = BINARY } = this.options;
        // Tests are in a hurry: only those that are about throttling are throttled.
        const limit = this.options.isThrottled ? [] : ["--no-rate-limit"];
        const keys = this.options.key ? ["--key", this.options.key] : [];
        const serve = ["serve", "--data", this.data, "--host", host, "--port", "0", ...limit, ...keys, ...args];
        const [file, ...rest] = [...within, binary, ...serve];
        const child = spawn(file, rest, { env: environment(env), cwd, stdio: ["ignore", "pipe", "pipe"] });
        this.#child = child;
        running.add(child);
        this.#exited = new Promise((resolve) => {
            child.once("close", (code, signal) => {
                running.delete(child);
                resolve({ code, signal });
            });
        });
        child.stdout.setEncoding("utf8").on("data", (text) => (this.stdout += text));
        this.port = await this.#ready(child);
        return this;
    }

    #ready(child) {
        return new Promise((resolve, reject) => {
            const fail = (why) => reject(new Error(`${why}:\n${this.lines.join("\n")}`));
            const timer = setTimeout(() => fail("the server did not get ready"), START_MS);
            child.once("error", reject);
            child.once("close", (code, signal) => {
                clearTimeout(timer);
                fail(`the server ended with ${code ?? signal} before it was ready`);
            });
            createInterface({ input: child.stderr }).on("line", (line) => {
                this.lines.push(line);
                this.#watchers = this.#watchers.filter((watcher) => !watcher(line));
                const port = / server\.ready port=(\d+)/.exec(line);
                if (!port) return;
                clearTimeout(timer);
                resolve(Number(port[1]));
            });
        });
    }

    /** Waits until the log has such a line. */
    logged(pattern) {
        if (this.lines.some((line) => pattern.test(line))) return Promise.resolve();
        return new Promise((resolve) => {
            this.#watchers.push((line) => pattern.test(line) && (resolve(), true));
        });
    }

    get isRunning() {
        return running.has(this.#child);
    }

    get pid() {
        return this.#child.pid;
    }

    get exited() {
        return this.#exited;
    }

    get endpoint() {
        return `http://127.0.0.1:${this.port}`;
    }

    get tlsEndpoint() {
        return `https://127.0.0.1:${this.port}`;
    }

    /** Asks it to stop, as a service manager does; what it answered with, and how long it took. One that a failed test has
     * paused goes on, or it would never end. */
    async stop(signal = "SIGTERM") {
        const begun = performance.now();
        this.#child.kill(signal);
        this.#child.kill("SIGCONT");
        const ended = await this.#exited;
        return { ...ended, took_ms: performance.now() - begun };
    }

    /** Stops all its threads, as a machine does that hangs. The signal alone is not enough: until one thread has taken it,
     * which may be late on a busy machine, the others go on and answer. */
    async pause() {
        process.kill(this.pid, "SIGSTOP");
        const tasks = `/proc/${this.pid}/task`;
        const isStopped = (id) => !existsSync(`${tasks}/${id}`) || /^State:\tT/m.test(readFileSync(`${tasks}/${id}/status`, "utf8"));
        while (!readdirSync(tasks).every(isStopped)) await wait(1);
    }

    resume() {
        process.kill(this.pid, "SIGCONT");
    }

    /** The power fails. Does nothing if it has ended already. */
    async kill() {
        if (!this.isRunning) return;
        this.#child.kill("SIGKILL");
        await this.#exited;
    }

    /** Stops it, and expects that it ends well: without a leak or a race that a sanitizer found. */
    async stopWell() {
        const { code, signal } = await this.stop();
        if (code === 0) return;
        throw new Error(`the server ended with ${code ?? signal}:\n${this.lines.slice(-80).join("\n")}`);
    }

    async restart() {
        await this.stopWell();
        return this.start();
    }
}

/** A server that lives until the test that asked for it is done, and must then end well. */
export async function startServer(t, options = {}) {
    const server = new Server(options);
    t.after(() => (server.isRunning ? server.stopWell() : undefined));
    return server.start();
}

/** The same for a test that says nothing of one process: with ORRERY_TEST_NODES=N a cluster, as in sharedServer. */
export async function startAny(t, options = {}) {
    if (!process.env.ORRERY_TEST_NODES) return startServer(t, options);
    const { sharedCluster } = await import("./cluster.mjs");
    return sharedCluster(Number(process.env.ORRERY_TEST_NODES), options, (end) => t.after(end));
}

/** The option `skip` of a test in a file that runs against several nodes, too: `why` it is about one. */
export const ofOneNode = (why) => (process.env.ORRERY_TEST_NODES ? why : false);

/** One server for all tests of a file; it must end well, or the file fails. With ORRERY_TEST_NODES=N it is a
 * cluster of so many nodes, and each request goes to another one. */
export async function sharedServer(options = {}) {
    if (process.env.ORRERY_TEST_NODES) {
        const { sharedCluster } = await import("./cluster.mjs");
        return sharedCluster(Number(process.env.ORRERY_TEST_NODES), options);
    }
    const server = new Server(options);
    await server.start();
    after(() => server.stopWell());
    return server;
}
