// cluster-kills.mjs - three nodes over a primary and its standby, under eight clients, for ROUNDS rounds (10) from SEED:
// in each round something dies, stops, or is cut off. Nothing acknowledged may be lost or be there twice, clients must be
// served again, and at the end all copies must be equal.
//
// Needs root, for a network of its own. What fails leaves its folder, with the log of every node, and says where.
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";

import { Cluster, Engine } from "./lib/cluster.mjs";
import { Clients } from "./lib/kill-clients.mjs";
import { Network, enterNetwork } from "./lib/namespaces.mjs";
import { Random } from "./lib/random.mjs";
import { ROOT, Server, run } from "./lib/server.mjs";
import { call } from "./lib/wire.mjs";

enterNetwork();

const ROUNDS = Number(process.env.ROUNDS ?? 10);
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000) >>> 0;
const SERVED_MS = Number(process.env.SERVED_MS ?? 10_000);
const LONGER_THAN_A_LEASE_MS = 7000;
const KEY = Buffer.alloc(64, 7).toString("base64");

/** A node in a namespace of its own. */
class Node extends Server {
    get endpoint() {
        return `http://${this.options.host}:${this.port}`;
    }
}

class Campaign {
    random = new Random(SEED);
    folder = mkdtempSync(join(tmpdir(), `orrery-kills-${SEED}-`));
    network = new Network();
    engine = new Engine();
    primary = "a";
    kinds = {};

    async begin() {
        const url = `${await this.network.engine(this.engine.database())}?sslmode=disable`;
        this.cluster = new Cluster(undefined, { engine: { database: () => url }, args: ["--allow-weak-engine"] });
        for (const name of ["a", "b", "c"]) {
            const { address, within } = this.network.add(name);
            const { args } = await this.cluster.options(name, { host: address });
            const data = join(this.folder, name);
            const node = new Node({ data, host: address, key: KEY, within, args });
            node.name = name;
            this.cluster.nodes.push(node);
            await node.start();
        }
        await this.#complete();
        // Of its own: how many choices clients make depends on time, and the same seed must kill the same.
        this.clients = new Clients(this.cluster.nodes, new Random(SEED + 1));
        await this.clients.prepare();
    }

    #complete() {
        const live = (status) => status.nodes.filter((node) => node.state === "live").length === 3;
        return this.cluster.until(live, "three nodes that live");
    }

    acts = {
        killNode: async (node) => {
            await node.kill();
            await wait(this.random.pick([0, LONGER_THAN_A_LEASE_MS]));
            await node.start();
        },
        pauseNode: async (node) => {
            process.kill(node.pid, "SIGSTOP");
            await wait(LONGER_THAN_A_LEASE_MS);
            process.kill(node.pid, "SIGCONT");
        },
        stopNode: async (node) => {
            await node.stopWell();
            await wait(this.random.below(2000));
            await node.start();
        },
        cutFromEngine: (node) => this.#cut(node, "engine"),
        cutFromNodes: (node) => this.#cut(node, "nodes"),
        killPrimary: async () => {
            const dead = this.primary;
            this.primary = dead === "a" ? "b" : "a";
            await this.#engine("kill", dead);
            await this.#engine("promote", this.primary);
            await wait(LONGER_THAN_A_LEASE_MS);
            await this.#engine("standby", dead);
        },
    };

    // Clients go on meanwhile, and connections pass through this process.
    #engine(command, server) {
        return promisify(execFile)(join(ROOT, "test/postgres-pair.sh"), [command, this.engine.folder, server]);
    }

    async #cut(node, from) {
        this.network.cut(node.name, from);
        await wait(LONGER_THAN_A_LEASE_MS);
        this.network.heal(node.name, from);
    }

    async round(number) {
        const kind = this.random.pick(Object.keys(this.acts));
        const node = this.random.pick(this.cluster.nodes);
        this.kinds[kind] = (this.kinds[kind] ?? 0) + 1;
        const before = this.clients.operations;
        this.clients.longest_ms = 0;
        await this.clients.begin(number);
        await wait(500 + this.random.below(2500));
        await this.acts[kind](node);
        await this.#complete();
        await wait(1000);
        await this.clients.end();
        await this.clients.check();
        const { operations, longest_ms, longestWhat, faults } = this.clients;
        const what = { round: number, kind, node: kind === "killPrimary" ? undefined : node.name };
        console.log(JSON.stringify({ ...what, operations: operations - before, longest_ms, longestWhat }));
        this.longest_ms = Math.max(this.longest_ms ?? 0, longest_ms);
        if (longest_ms > SERVED_MS) faults.push(`no service for ${longest_ms} ms: ${longestWhat}`);
        if (faults.length > 0) throw new Error(`round ${number} (${kind} ${node.name}): ${faults.slice(0, 20).join("; ")}`);
    }

    /** Copies of a space that are at the same place have the same digest. */
    async digests() {
        const { spaces } = await this.cluster.status();
        let compared = 0;
        for (const { id } of spaces) {
            const at = new Map(); // place -> digest
            const all = await Promise.all(this.cluster.nodes.map((node) => this.#digest(node, id)));
            for (const one of all.filter(Boolean)) {
                if (at.has(one.place) && at.get(one.place) !== one.digest) throw new Error(`copies of space ${id} differ at ${one.place}`);
                if (at.has(one.place)) compared++;
                at.set(one.place, one.digest);
            }
        }
        return compared;
    }

    async #digest(node, space) {
        const path = `/_orrery/cluster/digest?space=${space}`;
        const { status, json, text } = await call(node, { path, type: "", link: "" });
        if (status === 404) return undefined; // no copy of it here
        if (status !== 200) throw new Error(`the digest of space ${space} at ${node.name}: ${status} ${text}`);
        return json;
    }

    async finish() {
        const compared = await this.digests();
        for (const node of this.cluster.nodes) await node.stopWell();
        for (const node of this.cluster.nodes) {
            const { status, stdout, stderr } = run(["check", "--data", node.data]);
            if (status !== 0) throw new Error(`the folder of ${node.name}: ${stdout}${stderr}`);
        }
        return compared;
    }

    figures() {
        const { operations, byKind, errors } = this.clients;
        const sum = { seed: SEED, kinds: this.kinds, operations, byKind, errors: Object.fromEntries(errors), longest_ms: this.longest_ms };
        return JSON.stringify(sum);
    }

    async end(isGood) {
        for (const node of this.cluster.nodes) {
            if (!isGood) writeFileSync(join(this.folder, `${node.name}.log`), `${node.lines.join("\n")}\n`);
            if (node.isRunning) process.kill(node.pid, "SIGCONT");
            await node.kill();
        }
        if (!isGood) {
            mkdirSync(join(this.folder, "engine"));
            for (const name of ["a.log", "b.log"]) copyFileSync(join(this.engine.folder, name), join(this.folder, "engine", name));
        }
        this.engine.end();
        this.network.end();
        if (isGood) rmSync(this.folder, { recursive: true });
    }
}

console.log(`SEED=${SEED} ROUNDS=${ROUNDS}`);
const campaign = new Campaign();
let failure;
try {
    await campaign.begin();
    for (let number = 0; number < ROUNDS; number++) await campaign.round(number);
    console.log(`${await campaign.finish()} pairs of copies are equal`);
} catch (error) {
    failure = error;
}
if (campaign.clients) console.log(campaign.figures());
if (failure) console.log(`FAILED: ${failure.stack}\nSEED=${SEED}; folders and logs are in ${campaign.folder}`);
await campaign.end(!failure);
process.exit(failure ? 1 : 0);
