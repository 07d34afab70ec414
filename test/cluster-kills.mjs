// cluster-kills.mjs - three nodes over a primary and its standby, under eight clients, for ROUNDS rounds (10) from SEED:
// in each round something dies, stops, is cut off, has a full disk or a clock that is wrong, while partitions are split and
// merged. Nothing acknowledged may be lost or be there twice, clients must be served again within SERVED_MS (10 s), copies
// must be equal whenever they are seen at the same place, and all of them must come to the same place. After each round all
// nodes are stopped at once, and their folders checked.
//
// All kinds of rounds occur in turn, in an order of the seed's; KINDS=fullDisk,jumpClock has only those. MOVES=no leaves
// partitions alone. Needs root, for a network of its own, and a C compiler (lib/clock.mjs).
//
// What is wrong with data ends the campaign. A round in which clients had to wait too long, or a node died by itself, does
// not, but the campaign has failed then, too. What fails leaves its folder, with the data and the log of every node, and
// says where.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";

import { askChaos, eventsOf } from "./lib/chaos.mjs";
import { Clock } from "./lib/clock.mjs";
import { Cluster, Engine } from "./lib/cluster.mjs";
import { smallDisk } from "./lib/disk.mjs";
import { pathOf } from "./lib/items.mjs";
import { CONTAINER, Clients } from "./lib/kill-clients.mjs";
import { Network, enterNetwork } from "./lib/namespaces.mjs";
import { Random } from "./lib/random.mjs";
import { ROOT, Server, runBeside } from "./lib/server.mjs";
import { checkRanges } from "./lib/splits.mjs";
import { call, send } from "./lib/wire.mjs";

enterNetwork();

const ROUNDS = Number(process.env.ROUNDS ?? 10);
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000) >>> 0;
const SERVED_MS = Number(process.env.SERVED_MS ?? 10_000);
const LONGER_THAN_A_LEASE_MS = 7000;
const EQUAL_MS = 60_000;
const WATCH_MS = 100; // between two looks at the copies
const DISK_MB = 1024;
const LEFT_MB = [0, 20]; // no write at all, or only those that make room, with the memtables of CACHE
const CACHE = ["--cache", "8M"];
const LEVEL = ["--consistency", "Strong"]; // what one client has seen, all others must see
const SLOW_MOVES = ["--enable-chaos", "--merge", "always", "--split-rate", "200K"]; // so that moves are under way for a while
const RANGES_MAX = 8;
const ASKED_MS = 4000;
const MOVE_MS = 60_000;
const CATALOGUE = 1; // the space whose owner splits and merges
const JUMP_S = 3600;
const KEY = Buffer.alloc(64, 7).toString("base64");

/** A node with a network, a disk and a clock of its own. */
class Node extends Server {
    get endpoint() {
        return `http://${this.options.host}:${this.port}`;
    }

    /** Checks its folder while it is stopped. A copy that has just been dropped may still be there if it stopped in the middle
     * of things; it goes when the node is back. */
    async check({ leftoversMax = Infinity } = {}) {
        const { status, stdout, stderr } = await runBeside(["check", "--data", this.data], { within: this.disk.within });
        const leftovers = stdout.match(/^space \d+: about \d+ bytes that belong to no container$/gm)?.length ?? 0;
        const findings = Number(/: (\d+) findings\s*$/.exec(stdout)?.[1] ?? NaN);
        const isGood = status === 0 || (leftovers > 0 && leftovers <= leftoversMax && findings === leftovers);
        if (!isGood) throw new Error(`the folder of ${this.name}: ${stdout}${stderr}`);
    }
}

/** Asks a node that may be paused, or cut off. */
async function ask(request) {
    let timer;
    const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("no answer")), ASKED_MS)));
    return Promise.race([request, late]).finally(() => clearTimeout(timer));
}

/** Has partitions split and merged, one after the other. */
class Moves {
    done = { split: 0, merge: 0, failed: 0, unknown: 0 }; // not known if the node that was asked has died
    reasons = {}; // why moves have failed -> how often
    #isRunning = false;
    #work;

    constructor(cluster, random) {
        Object.assign(this, { cluster, random });
    }

    begin() {
        this.#isRunning = process.env.MOVES !== "no";
        this.#work = this.#live();
        this.#work.catch(() => {}); // end() throws it
    }

    async #live() {
        while (this.#isRunning) {
            try {
                await this.#move();
            } catch (error) {
                if (error instanceof assert.AssertionError) throw error;
            }
            await wait(this.random.below(500));
        }
    }

    /** The last one comes to its end. */
    async end() {
        this.#isRunning = false;
        await this.#work;
    }

    /** The partitions as a node knows them. */
    async ranges(node) {
        const path = `${pathOf(CONTAINER)}/pkranges`;
        const { status, text, json } = await ask(call(node, { path }));
        if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
        return json.PartitionKeyRanges.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
    }

    #choose(ranges) {
        if (ranges.length === 1 || (ranges.length < RANGES_MAX && this.random.chance(50))) {
            const { id } = this.random.pick(ranges);
            return ["split", { range: id, parts: 2, by: this.random.pick(["size", "hash"]) }];
        }
        const first = this.random.below(ranges.length - 1);
        return ["merge", { ranges: ranges.slice(first, first + 2).map(({ id }) => id) }];
    }

    #fail(reason) {
        this.done.failed++;
        this.reasons[reason] = (this.reasons[reason] ?? 0) + 1;
    }

    async #owner(space) {
        const { spaces } = await ask(this.cluster.status(this.random.pick(this.cluster.living)));
        return spaces.find(({ id }) => id === space).owner;
    }

    async #move() {
        const owner = await this.#owner(CATALOGUE);
        const node = this.cluster.living.find(({ name }) => name === owner);
        const [what, body] = this.#choose(await this.ranges(node));
        const answer = await ask(askChaos(node, CONTAINER, what, body));
        if (answer.status !== 202) return; // one that was undone is done again, for instance
        const [move, { pid }] = [answer.json.event, node];
        for (const end = Date.now() + MOVE_MS; ; await wait(50)) {
            const { moves } = await ask(eventsOf(node)).catch(() => ({}));
            const { stage, message } = moves?.find(({ event }) => event === move) ?? {};
            if (stage === "done") return this.done[what]++;
            if (stage === "failed") return this.#fail(message);
            if (!node.isRunning || node.pid !== pid) return this.done.unknown++;
            // Every node tells the moves of the catalogue's owner, and that has become another one.
            if (moves && !stage && (await this.#owner(CATALOGUE)) !== node.name) return this.done.unknown++;
            assert.ok(Date.now() < end, `the ${what} ${move} of ${node.name} does not end: ${JSON.stringify(moves)}`);
        }
    }
}

class Campaign {
    random = new Random(SEED);
    folder = mkdtempSync(join(tmpdir(), `orrery-kills-${SEED}-`));
    network = new Network();
    engine = new Engine();
    primary = "a";
    kinds = {}; // kind -> rounds, longest_ms
    wrong = []; // what is wrong, but not with data
    compared = 0; // how often two copies were seen at one place, and were equal
    #seen = new Map(); // in this round: space -> place -> digest
    #isWatching = false;
    #deck = [];
    #ends = []; // of the disks

    async begin() {
        const url = `${await this.network.engine(this.engine.database())}?sslmode=disable`;
        const args = ["--allow-weak-engine", ...CACHE, ...LEVEL, ...SLOW_MOVES];
        this.cluster = new Cluster(undefined, { engine: { database: () => url }, args });
        for (const name of ["a", "b", "c"]) {
            const { address, within } = this.network.add(name);
            const options = await this.cluster.options(name, { host: address });
            const disk = await smallDisk({ after: (end) => this.#ends.push(end) }, DISK_MB);
            const clock = new Clock();
            const own = { data: disk.data, within: [...within, ...disk.within], env: clock.env };
            const node = new Node({ ...options, ...own, host: address, key: KEY });
            Object.assign(node, { name, disk, clock });
            this.cluster.nodes.push(node);
            await node.start();
        }
        await this.#complete();
        // Of its own: how many choices clients make depends on time, and the same seed must kill the same.
        this.clients = new Clients(this.cluster.nodes, new Random(SEED + 1));
        await this.clients.prepare();
        this.moves = new Moves(this.cluster, new Random(SEED + 2));
    }

    /** Waits until all nodes live. One that has ended by itself, which is wrong, is started again. */
    async #complete() {
        for (const node of this.cluster.nodes.filter(({ isRunning }) => !isRunning)) {
            this.wrong.push(`${node.name} has ended by itself: ${node.lines.at(-1)}`);
            await node.check();
            await node.start();
        }
        const live = (status) => status.nodes.filter((node) => node.state === "live").length === 3;
        return this.cluster.until(live, "three nodes that live");
    }

    acts = {
        killNode: async (node) => {
            await node.kill();
            await Promise.all([node.check(), wait(this.random.pick([0, LONGER_THAN_A_LEASE_MS]))]);
            await node.start();
        },
        pauseNode: async (node) => {
            await node.pause();
            await wait(LONGER_THAN_A_LEASE_MS);
            node.resume();
        },
        stopNode: async (node) => {
            await node.stopWell();
            await Promise.all([node.check(), wait(this.random.below(2000))]);
            await node.start();
        },
        cutFromEngine: (node) => this.#cut(node, "engine"),
        cutFromNodes: (node) => this.#cut(node, "nodes"),
        cutFromClients: (node) => this.#cut(node, "clients"),
        fullDisk: async (node) => {
            const left_MB = this.random.pick(LEFT_MB);
            if (left_MB === 0) node.disk.fill();
            else node.disk.leave(left_MB);
            await wait(LONGER_THAN_A_LEASE_MS);
            node.disk.release();
            await this.#recover(node);
            return { left_MB };
        },
        jumpClock: async (node) => {
            const ahead_s = this.random.pick([JUMP_S, -JUMP_S]);
            node.clock.set(ahead_s);
            await wait(LONGER_THAN_A_LEASE_MS);
            node.clock.set(0);
            return { ahead_s };
        },
        killPrimary: async () => {
            const dead = this.primary;
            this.primary = this.#standby;
            await this.#engine("kill", dead);
            await this.#engine("promote", this.primary);
            await wait(LONGER_THAN_A_LEASE_MS);
            await this.#engine("standby", dead);
        },
        // What the primary has committed when it comes back, no standby has.
        standbyAwayCrash: async () => {
            await this.#engine("stop", this.#standby);
            await wait(this.random.below(500));
            await this.#engine("kill", this.primary);
            await wait(this.random.below(500));
            await this.#engine("run", this.primary);
            await wait(this.random.below(2000));
            await this.#engine("run", this.#standby);
            await wait(1000);
        },
        // Two primaries, of which the older one has no standby that would let it acknowledge anything.
        pausePrimary: async () => {
            const paused = this.primary;
            await this.#engine("pause", paused);
            this.primary = this.#standby;
            await this.#engine("promote", this.primary);
            await wait(this.random.pick([0, LONGER_THAN_A_LEASE_MS]));
            await this.#engine("resume", paused);
            await wait(LONGER_THAN_A_LEASE_MS);
            await this.#engine("standby", paused);
        },
    };

    get #standby() {
        return this.primary === "a" ? "b" : "a";
    }

    // Clients go on meanwhile, and connections pass through this process.
    #engine(command, server) {
        return promisify(execFile)(join(ROOT, "test/postgres-pair.sh"), [command, this.engine.folder, server]);
    }

    async #cut(node, from) {
        this.network.cut(node.name, from);
        await wait(LONGER_THAN_A_LEASE_MS);
        this.network.heal(node.name, from);
    }

    /** Waits until a node with room on its disk writes again. One whose log could not be written says that it must be
     * restarted. */
    async #recover(node) {
        for (const end = Date.now() + SERVED_MS; node.isRunning; await wait(100)) {
            const { status, text } = await send(node.endpoint, { path: "/healthz" }).catch((error) => ({ text: String(error) }));
            if (status === 200) return;
            if (/after a restart/.test(text)) return node.restart();
            if (Date.now() > end) throw new Error(`${node.name} with room on its disk: ${status} ${text}`);
        }
    }

    /** With `orrery check`, on every node, which all of them are stopped for; how long it took until they live again. */
    async #checkFolders() {
        const begun = Date.now();
        const { nodes } = this.cluster;
        await Promise.all(nodes.map((node) => node.stopWell()));
        await Promise.all(nodes.map((node) => node.check()));
        await Promise.all(nodes.map((node) => node.start()));
        await this.#complete();
        return Date.now() - begun;
    }

    /** All kinds in turn, in another order each time. */
    #nextKind() {
        if (this.#deck.length === 0) {
            const left = process.env.KINDS ? process.env.KINDS.split(",") : Object.keys(this.acts);
            while (left.length > 0) this.#deck.push(...left.splice(this.random.below(left.length), 1));
        }
        return this.#deck.pop();
    }

    async round(number) {
        const kind = this.#nextKind();
        const node = this.random.pick(this.cluster.nodes);
        const begun = Date.now();
        const { clients, moves, wrong } = this;
        const [operations, moved, wrongBefore] = [clients.operations, { ...moves.done }, wrong.length];
        const comparedBefore = this.compared;
        clients.longest_ms = 0;
        await clients.begin(number);
        moves.begin();
        const watched = this.#watch(clients.faults);
        await wait(500 + this.random.below(2500));
        const details = await this.acts[kind](node);
        await this.#complete();
        await wait(1000);
        this.#isWatching = false;
        await Promise.all([clients.end(), moves.end(), watched]);
        const underLoad = this.compared - comparedBefore;
        await clients.check();
        const equal_ms = await this.#equal(clients.faults);
        const check_ms = await this.#checkFolders();

        const { longest_ms, longestWhat, faults } = clients;
        const title = { round: number, kind, ...(this.acts[kind].length > 0 && { node: node.name }) };
        if (longest_ms > SERVED_MS) wrong.push(`no service for ${longest_ms} ms: ${longestWhat}`);
        const figures = { operations: clients.operations - operations, longest_ms, longestWhat, underLoad, equal_ms, check_ms };
        for (const what in moved) figures[what] = moves.done[what] - moved[what];
        const took_s = Math.round((Date.now() - begun) / 1000);
        console.log(JSON.stringify({ ...title, ...details, ...figures, took_s }));
        for (let i = wrongBefore; i < wrong.length; i++) {
            wrong[i] = `round ${number} (${kind} ${node.name}): ${wrong[i]}`;
            console.log(`WRONG: ${wrong[i]}`);
        }
        const sum = (this.kinds[kind] ??= { rounds: 0, longest_ms: 0 });
        sum.rounds++;
        sum.longest_ms = Math.max(sum.longest_ms, longest_ms);
        this.#stopOn(faults, `round ${number} (${kind} ${node.name})`);
    }

    #stopOn(faults, where) {
        if (faults.length === 0) return;
        throw new Error(`${where}: ${faults.slice(0, 20).map((text) => text.slice(0, 500)).join("; ")}`);
    }

    /** Waits until all nodes know the same partitions, and all copies of each space are at the same place, where they have
     * the same digest; how long it took. */
    async #equal(faults) {
        const begun = Date.now();
        const isEqual = new Set(); // spaces
        for (;;) {
            const unequal = await this.#compare(isEqual, faults);
            if (unequal.length === 0) return Date.now() - begun;
            if (Date.now() - begun > EQUAL_MS) {
                faults.push(`copies do not come to the same place: ${JSON.stringify(unequal)}`);
                return Date.now() - begun;
            }
            await wait(100);
        }
    }

    /** What is not equal yet. Spaces may come and go, when a move is undone that was under way. One without a copy is of a
     * change that was refused, and goes after the next one. */
    async #compare(isEqual, faults) {
        const unequal = [];
        const ranges = await Promise.all(this.cluster.nodes.map((node) => this.moves.ranges(node).catch(String)));
        const [first, ...others] = ranges.map((list) => JSON.stringify(list));
        if (typeof ranges[0] === "string" || others.some((other) => other !== first)) unequal.push({ ranges });
        else checkRanges(ranges[0]);
        const { spaces } = await this.cluster.status();
        for (const { id } of spaces.filter(({ id, tail, replicas }) => !isEqual.has(id) && tail + replicas.length > 0)) {
            const all = await Promise.all(this.cluster.nodes.map((node) => this.#digest(node, id)));
            this.#see(id, all, faults);
            if (all[0].digest && all.every(({ place }) => place === all[0].place)) isEqual.add(id);
            else unequal.push({ id, all });
        }
        return unequal;
    }

    /** Copies of a space that were seen at a place must be what others were there, also if it was at another time. */
    #see(id, all, faults) {
        if (!this.#seen.has(id)) this.#seen.set(id, new Map());
        const at = this.#seen.get(id);
        for (const { place, digest } of all.filter(({ digest }) => digest)) {
            if (!at.has(place)) at.set(place, digest);
            else if (at.get(place) === digest) this.compared++;
            else faults.push(`copies of space ${id} differ at ${place}`);
        }
    }

    /** Looks at all copies while clients write. Nodes may be away. */
    async #watch(faults) {
        this.#seen.clear();
        this.#isWatching = true;
        const unknown = () => ({});
        while (this.#isWatching) {
            const { spaces = [] } = await ask(this.cluster.status()).catch(unknown);
            for (const { id } of spaces) {
                const all = this.cluster.nodes.map((node) => ask(this.#digest(node, id)).catch(unknown));
                this.#see(id, await Promise.all(all), faults);
            }
            await wait(WATCH_MS);
        }
    }

    async #digest(node, space) {
        const path = `/_orrery/cluster/digest?space=${space}`;
        const { status, json, text } = await call(node, { path, type: "", link: "" });
        return status === 200 ? json : { place: `${status} ${text}` }; // of a copy that is being made, for instance
    }

    async finish() {
        for (const node of this.cluster.nodes) await node.stopWell();
        for (const node of this.cluster.nodes) await node.check({ leftoversMax: 0 });
    }

    figures() {
        const { operations, byKind, errors } = this.clients;
        const { kinds, compared } = this;
        const moves = { ...this.moves?.done, reasons: this.moves?.reasons };
        return JSON.stringify({ seed: SEED, kinds, operations, byKind, moves, errors: Object.fromEntries(errors), compared });
    }

    /** What is known of a node when something has failed. */
    async #keep(node) {
        const file = (suffix) => join(this.folder, `${node.name}${suffix}`);
        writeFileSync(file(".log"), `${node.lines.join("\n")}\n`);
        if (node.isRunning) node.resume();
        for (const name of ["cluster", "events"]) {
            const answer = await call(node, { path: `/_orrery/${name}`, type: "", link: "" }).catch(String);
            writeFileSync(file(`.${name}.json`), answer.text ?? answer);
        }
        await node.kill();
        spawnSync("cp", ["-a", node.disk.outside(node.data), file("")]);
    }

    async end(isGood) {
        for (const node of this.cluster?.nodes ?? []) await (isGood ? node.kill() : this.#keep(node));
        if (!isGood) {
            mkdirSync(join(this.folder, "engine"));
            for (const name of ["a.log", "b.log"]) copyFileSync(join(this.engine.folder, name), join(this.folder, "engine", name));
        }
        this.engine.end();
        this.network.end();
        for (const end of this.#ends) end();
        if (isGood) rmSync(this.folder, { recursive: true });
    }
}

console.log(`SEED=${SEED} ROUNDS=${ROUNDS}`);
const campaign = new Campaign();
let failure;
try {
    await campaign.begin();
    for (let number = 0; number < ROUNDS; number++) await campaign.round(number);
    await campaign.finish();
    if (campaign.wrong.length > 0) failure = new Error(campaign.wrong.join("\n"));
} catch (error) {
    failure = error;
}
if (campaign.clients) console.log(campaign.figures());
if (campaign.clients?.faults.length > 0) writeFileSync(join(campaign.folder, "faults"), campaign.clients.faults.join("\n"));
if (failure) console.log(`FAILED: ${failure.stack}\nSEED=${SEED}; folders and logs are in ${campaign.folder}`);
await campaign.end(!failure);
process.exit(failure ? 1 : 0);
