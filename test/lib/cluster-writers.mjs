// cluster-writers.mjs - clients that write to a cluster while nodes come and go, and whether all of it is there.
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";

import { clientOf } from "./sdk.mjs";

/** Clients that write all the time, each at any living node; what was acknowledged, and what was not. */
export class Writers {
    acknowledged = new Map(); // id -> last acknowledged n
    tried = new Map(); // id -> last n that was sent
    errors = [];
    #running = true;
    #lastDone = Date.now();
    longestGap_ms = 0;

    constructor(cluster, container, count = 6) {
        this.cluster = cluster;
        this.done = Promise.all(Array.from({ length: count }, (_, i) => this.#write(container, i)));
    }

    async #write(container, writer) {
        for (let i = 0; this.#running; i++) {
            const nodes = this.cluster.living;
            const node = nodes[(i + writer) % nodes.length];
            const id = `w${writer}-${i % 50}`;
            this.tried.set(id, i);
            try {
                await clientOf(node).database("shop").container(container).items.upsert({ id, pk: id, n: i });
                this.acknowledged.set(id, i);
                const now = Date.now();
                this.longestGap_ms = Math.max(this.longestGap_ms, now - this.#lastDone);
                this.#lastDone = now;
            } catch (error) {
                this.errors.push(error);
                await wait(20);
            }
        }
    }

    async stop() {
        this.#running = false;
        await this.done;
    }

    /** Every acknowledged write is there, or a later one of which nobody knows. */
    async check(container) {
        for (const [id, n] of this.acknowledged) {
            const { resource } = await container.item(id, id).read();
            assert.ok(resource, `${id} is lost`);
            assert.ok(resource.n >= n && resource.n <= this.tried.get(id), `${id}: ${resource.n}, acknowledged ${n}`);
        }
    }
}
