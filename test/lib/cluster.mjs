// cluster.mjs - several nodes over a PostgreSQL server with a synchronous standby, all on this machine.
//
// The servers of the engine are started by postgres-pair.sh; each cluster has a database of its own in them, so
// that tests may share them (ORRERY_TEST_ENGINE names the folder of a pair that runs already).
import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { chooseSeed } from "./random.mjs";
import { clientOf } from "./sdk.mjs";
import { ROOT, Server, run, startServer, temporaryFolder } from "./server.mjs";
import { startSpreading } from "./spread.mjs";
import { call } from "./wire.mjs";

const SCRIPT = join(ROOT, "test/postgres-pair.sh");
let databases = 0;

function pair(command, folder, ...rest) {
    return execFileSync(SCRIPT, [command, folder, ...rest], { encoding: "utf8" }).trim();
}

/** Two PostgreSQL servers, "a" and its synchronous standby "b"; they end with this process. */
export class Engine {
    constructor() {
        const given = process.env.ORRERY_TEST_ENGINE;
        this.folder = given ?? join(temporaryFolder(), "engine");
        if (given) return;
        chmodSync(join(this.folder, ".."), 0o711); // its owner is another user if this one is root
        pair("start", this.folder, String(process.pid));
    }

    /** Makes a database; its URL. */
    database() {
        const name = `orrery_${process.pid}_${++databases}`;
        this.sql(this.primary, `CREATE DATABASE ${name}`);
        return pair("url", this.folder).replace(/\/postgres$/, `/${name}`);
    }

    primary = "a";

    sql(server, text, database = "postgres") {
        return pair("sql", this.folder, server, text, database);
    }

    kill(server) {
        pair("kill", this.folder, server);
    }

    run(server) {
        pair("run", this.folder, server);
    }

    /** The standby takes over from a primary that is dead. */
    promote() {
        this.primary = this.primary === "a" ? "b" : "a";
        pair("promote", this.folder, this.primary);
    }

    /** What was the primary becomes the standby of the one that has taken over. */
    standby() {
        pair("standby", this.folder, this.primary === "a" ? "b" : "a");
    }

    end() {
        if (!process.env.ORRERY_TEST_ENGINE) pair("end", this.folder);
    }
}

export function freePort() {
    return new Promise((resolve, reject) => {
        const server = createServer().once("error", reject);
        server.listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

export class Cluster {
    nodes = [];

    constructor(t, { engine, args = [], replicas = 3, isThrottled = false }) {
        this.t = t;
        this.isThrottled = isThrottled;
        this.engine = engine;
        this.url = engine.database();
        this.args = args;
        this.replicas = replicas;
        this.isThrottled = isThrottled;
        this.secret = join(temporaryFolder(), "secret");
        const made = run(["cluster", "secret"]);
        writeFileSync(this.secret, made.stdout, { mode: 0o600 });
    }

    /** The options of a node, for a server that a test starts by itself. */
    async options(name, { data, host = "127.0.0.1" } = {}) {
        const port = await freePort();
        const args = [
            ...["--port", String(port), "--cluster", this.url, "--cluster-secret", this.secret],
            ...["--node", name, "--advertise", `http://${host}:${port}`],
            ...["--replicas", String(this.replicas), ...this.args],
        ];
        return { data, args, isThrottled: this.isThrottled };
    }

    async add(name) {
        const node = await startServer(this.t, { ...(await this.options(name)), isThrottled: this.isThrottled });
        node.name = name;
        this.nodes.push(node);
        return node;
    }

    get living() {
        return this.nodes.filter((node) => node.isRunning);
    }

    client(node, options) {
        return clientOf(node, options);
    }

    /** What one node says of all of them. */
    async status(node = this.living[0]) {
        const answer = await call(node, { path: "/_orrery/cluster", type: "", link: "" });
        if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.text}`);
        return answer.json;
    }

    /** Waits until the copies of each space are at the same place of its log; they must be equal. Returns the digests. */
    async compareCopies() {
        const digests = [];
        for (const { id } of (await this.status()).spaces) {
            for (const end = Date.now() + 20_000; ; await wait(20)) {
                const copies = await Promise.all(this.nodes.map((node) => this.#copy(node, id)));
                const [first, ...others] = copies.filter(Boolean);
                if (first && others.every(({ place }) => place === first.place)) {
                    const isSame = others.every(({ digest }) => digest === first.digest);
                    if (!isSame) throw new Error(`copies of space ${id} differ at ${first.place}`);
                    digests.push(first.digest);
                    break;
                }
                if (Date.now() > end) throw new Error(`space ${id}: ${JSON.stringify(copies)}`);
            }
        }
        return digests;
    }

    async #copy(node, space) {
        const answer = await call(node, { path: `/_orrery/cluster/digest?space=${space}`, type: "", link: "" });
        if (answer.status === 404) return undefined; // there is none on this node
        if (answer.status !== 200) throw new Error(`space ${space} of ${node.name}: ${answer.status} ${answer.text}`);
        return answer.json;
    }

    /** Waits until the status of a node is as wanted. */
    async until(wanted, what, { node, within_ms = 60_000 } = {}) {
        const end = Date.now() + within_ms;
        for (;;) {
            const status = await this.status(node).catch((error) => ({ error: String(error) }));
            if (!status.error && wanted(status)) return status;
            if (Date.now() > end) throw new Error(`not ${what}: ${JSON.stringify(status).slice(0, 4000)}`);
            await wait(50);
        }
    }
}

/** A cluster of `count` nodes called a, b, c...; it ends with the test. */
export async function startCluster(t, { count = 3, ...options }) {
    const cluster = new Cluster(t, options);
    for (let i = 0; i < count; i++) await cluster.add(String.fromCharCode(97 + i));
    return cluster;
}

/** What sharedServer gives a file that runs against a cluster: the address is that of a proxy. `atEnd` is called with what
 * ends it. */
export async function sharedCluster(count, options, atEnd = after) {
    const given = options.args ?? [];
    const durability = given.indexOf("--durability"); // is the engine's in a cluster
    const own = given.filter((_, i) => durability < 0 || (i !== durability && i !== durability + 1));
    const engine = new Engine();
    const cluster = new Cluster(undefined, { engine, replicas: Math.min(count, 3) });
    for (let i = 0; i < count; i++) {
        const name = String.fromCharCode(97 + i);
        const { args } = await cluster.options(name);
        const node = new Server({ ...options, args: [...args, ...own] });
        node.name = name;
        cluster.nodes.push(await node.start());
    }
    const isComplete = (status) => status.nodes.filter((node) => node.state === "live").length === count;
    await cluster.until(isComplete, "complete");
    const proxy = await startSpreading(
        cluster.nodes.map((node) => node.endpoint),
        chooseSeed(),
    );
    atEnd(async () => {
        await proxy.end();
        await Promise.all(cluster.nodes.map((node) => node.stopWell()));
        engine.end();
    });
    const [first] = cluster.nodes;
    return {
        cluster,
        key: first.key,
        port: proxy.port,
        endpoint: `http://127.0.0.1:${proxy.port}`,
        data: first.data,
        lines: first.lines,
        restart: async () => {
            for (const node of cluster.nodes) {
                await node.restart();
                await cluster.until(isComplete, "complete again");
            }
        },
    };
}
