// copies.mjs - `orrery copy --swap` under writers, killed at random moments and begun again.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { contentOf, fill } from "./items.mjs";
import { clientOf } from "./sdk.mjs";
import { temporaryFolder } from "./server.mjs";
import { start } from "./transfer.mjs";
import { call, unique } from "./wire.mjs";

const WRITERS = 8;
const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** An application with a client of its own, which knows the key of its items by the container's definition. */
class Writer {
    operations = 0;
    refreshed = 0;
    items = new Map(); // id -> what was acknowledged last; undefined if it was deleted

    constructor(server, random, name, database, container) {
        this.random = random;
        this.name = name;
        this.container = clientOf(server).database(database).container(container);
        this.paths = ["/pk"];
        // Not by its client, which would learn the new key from it.
        this.rid = async () => (await call(server, { path: `/dbs/${database}/colls/${container}` })).json._rid;
    }

    keyOf(item) {
        return this.paths.map((path) => item[path.slice(1)]);
    }

    newItem(id) {
        return { id, pk: `p${this.random.below(5)}`, user: `u${this.random.below(5)}`, by: this.name, v: 1, text: "x".repeat(this.random.below(200)) };
    }

    /** Runs an operation that names an item by its key; after a 404 or 400 it looks whether the key is another one now. */
    async named(item, operation) {
        try {
            return await operation(this.container.item(item.id, this.keyOf(item)));
        } catch (error) {
            if (error.code !== 404 && error.code !== 400) throw error;
            const { resource } = await this.container.read();
            if (String(resource.partitionKey.paths) === String(this.paths)) throw error;
            this.paths = resource.partitionKey.paths;
            this.refreshed++;
            return operation(this.container.item(item.id, this.keyOf(item)));
        }
    }

    async step() {
        const known = [...this.items.values()].filter(Boolean);
        const kind = known.length < 5 ? 0 : this.random.below(100);
        const item = known.length > 0 ? this.random.pick(known) : undefined;
        this.operations++;
        if (kind < 30) {
            const made = this.newItem(`${this.name}-${this.items.size}`);
            await this.container.items.create(made);
            this.items.set(made.id, made);
        } else if (kind < 55) {
            const next = { ...item, v: item.v + 1 };
            await this.container.items.upsert(next);
            this.items.set(item.id, next);
        } else if (kind < 70) {
            const next = { ...item, v: item.v + 1 };
            await this.named(item, (found) => found.replace(next));
            this.items.set(item.id, next);
        } else if (kind < 78) {
            // To another user: with the new key it would be another item, and is not found.
            const next = { ...item, v: item.v + 1, user: `u${this.random.below(5)}` };
            try {
                await this.container.item(item.id, item.pk).replace(next);
                this.items.set(item.id, next);
            } catch (error) {
                if (error.code !== 404) throw error;
                const { resource } = await this.container.read();
                assert.deepEqual(resource.partitionKey.paths, ["/user"], "it was there");
                this.paths = resource.partitionKey.paths;
            }
        } else if (kind < 88) {
            await this.named(item, (found) => found.delete());
            this.items.set(item.id, undefined);
        } else {
            // By its id, in all partitions: there is one, and it is the newest.
            const query = { query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: item.id }] };
            const before = await this.rid();
            const { resources } = await this.container.items.query(query).fetchAll();
            // A query that is under way at the swap may read some partitions before and some after it.
            if ((await this.rid()) !== before) return;
            assert.deepEqual(resources.map(contentOf), [item], "a query finds it, once");
        }
    }
}

/** Kills a copy some time after its start or, one time in two, about when writes are held for the swap. */
function killSome(child, random, ms_max, state) {
    const kill = () => child.kill("SIGKILL");
    let timer;
    if (existsSync(state) || random.chance(50)) {
        timer = setTimeout(kill, random.below(ms_max));
        return () => clearTimeout(timer);
    }
    // The name of the old container is chosen just before that.
    const wait_ms = random.below(60);
    const watch = setInterval(() => {
        if (!existsSync(state) || !readFileSync(state, "utf8").includes("-before-")) return;
        clearInterval(watch);
        timer = setTimeout(kill, wait_ms);
    }, 1);
    return () => {
        clearInterval(watch);
        clearTimeout(timer);
    };
}

/**
 * One container with `items` items, eight writers, and a copy that is killed `kills` times before it may end. Checks
 * every answer on the way, and everything at the end.
 */
export async function campaign({ server, random, kills, kill_ms_max, items, throughput = 30_000 }) {
    const id = unique("swap");
    const client = clientOf(server);
    const { database } = await client.databases.createIfNotExists({ id: "campaign" });
    const { container } = await database.containers.create({ id, partitionKey: { paths: ["/pk"] }, throughput });
    const still = Array.from({ length: items }, (_, i) => ({ id: `still-${i}`, pk: `p${i % 11}`, user: `u${i % 3}`, n: i }));
    await fill(container, still);
    const before = (await container.read()).resource._rid;
    const writers = Array.from({ length: WRITERS }, (_, i) => new Writer(server, random, `w${i}`, "campaign", id));
    let isOver = false;
    const failures = [];
    const loop = async (step) => {
        while (!isOver && failures.length === 0) await step().catch((error) => failures.push(error));
    };
    let probes = 0;
    const probe = async () => {
        const found = await call(server, { path: `/dbs/campaign/colls/${id}` });
        assert.equal(found.status, 200, "there is always a container with this name");
        probes++;
        await delay(2);
    };
    const running = [...writers.map((writer) => loop(() => writer.step())), loop(probe)];
    const state = join(temporaryFolder(), "copy.state");
    const args = ["--quiet", "--partition-key", "/user", "--swap", "--resume", state];
    let killed = 0;
    let result;
    for (;;) {
        const child = start("copy", server.endpoint, container, args);
        const cancel = killed < kills ? killSome(child, random, kill_ms_max, state) : () => {};
        result = await child.done;
        cancel();
        if (result.signal !== "SIGKILL") break;
        killed++;
    }
    await delay(150); // writers go on with the new container
    isOver = true;
    await Promise.all(running);
    if (failures.length > 0) throw failures[0];
    assert.equal(result.code, 0, result.stderr);
    const { resource: after } = await container.read();
    assert.notEqual(after._rid, before);
    assert.deepEqual(after.partitionKey.paths, ["/user"]);
    // Another client, which has never seen the old container.
    const fresh = clientOf(server).database("campaign").container(id);
    const found = (await fresh.items.readAll().fetchAll()).resources.map(contentOf);
    const expected = [...still, ...writers.flatMap((writer) => [...writer.items.values()].filter(Boolean))];
    const byId = (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
    assert.deepEqual(found.sort(byId), expected.sort(byId), "nothing is lost, nothing is there twice");
    const { resources: all } = await database.containers.readAll().fetchAll();
    const old = all.filter((other) => other.id.startsWith(`${id}-`));
    assert.equal(old.length, 1);
    assert.match(old[0].id, /-before-\d{8}T\d{6}Z$/);
    assert.equal(old[0]._rid, before);
    await database.container(old[0].id).delete();
    await fresh.delete();
    const operations = writers.reduce((sum, writer) => sum + writer.operations, 0);
    return { operations, probes, killed, state, refreshed: writers.filter((w) => w.paths[0] === "/user").length };
}
