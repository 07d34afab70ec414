// processor.mjs - a change feed processor on a lease container, with the traffic of the processors of the SDKs.
//
// Several hosts share the ranges of the monitored container. What they agree on is in the lease container alone, whose
// partition key is the id: a document for each range, with its owner and the position that the owner has reached.
//
//     {prefix}.info         exists when the leases have been created
//     {prefix}.lock         held while one host creates them; expires by its ttl
//     {prefix}..{token}     a lease: the id of a range (version 0), or "min-max" of an interval (version 1)
//
// Every change of a lease is a replace with If-Match. A host that gets 412 reads the lease again, and has lost it if it
// has another owner. A host that stops renewing its leases loses them after `expire_ms`.
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";

import { askFeed, pageOf } from "./feed.mjs";
import { rangesOf } from "./splits.mjs";

const INTERVALS = { acquire_ms: 100, renew_ms: 150, expire_ms: 1000, poll_ms: 20 };
const ATTEMPTS = 5;

class LeaseLost extends Error {}

/** The answer of a call that may fail with one of `codes`; any other failure is one of the test. */
async function attempt(promise, ...codes) {
    try {
        const response = await promise;
        return { code: response.statusCode, resource: response.resource, etag: response.headers.etag };
    } catch (error) {
        if (!codes.includes(error.code)) throw error;
        assert.equal(error.substatus ?? 0, 0, `${error.code} of a lease has no sub-status`);
        return { code: error.code };
    }
}

/** The prefix of all documents of a processor, as the SDKs make it: resource ids go into the ids of items. */
export async function prefixOf(monitored, name) {
    const { resource } = await monitored.read();
    const { resource: database } = await monitored.database.read();
    return `${name}localhost_${database._rid}_${resource._rid}`;
}

export class Host {
    #owned = new Map(); // id of a lease: what it is, and its writes one after another
    #loops = [];
    #isStopped = false;
    conflicts = 0; // answers 412
    failure; // of any of its loops

    /**
     * `handle` gets the items of a page, and what it returns is awaited before the position is saved. A host with
     * `forgetsEtags` keeps the body that it sent, with the old ETag in it, as one of the SDKs does.
     */
    constructor({ server, monitored, leases, name, prefix, handle, forgetsEtags = false, size = 10, intervals = {} }) {
        Object.assign(this, { server, monitored, leases, name, prefix, handle, forgetsEtags, size });
        this.intervals = { ...INTERVALS, ...intervals };
    }

    get ownedIds() {
        return [...this.#owned.keys()];
    }

    async start() {
        await this.#initialise();
        this.#loop(() => this.#balance(), this.intervals.acquire_ms);
        this.#loop(() => this.#renew(), this.intervals.renew_ms);
        return this;
    }

    /** Ends in order: gives its leases back. */
    async stop() {
        this.#isStopped = true;
        await Promise.all(this.#loops);
        for (const id of this.ownedIds) {
            try {
                await this.#change(id, { Owner: null });
            } catch (error) {
                if (!(error instanceof LeaseLost)) throw error;
            }
        }
        this.check();
    }

    check() {
        if (this.failure) throw this.failure;
    }

    #loop(work, every_ms) {
        const run = async () => {
            while (!this.#isStopped) {
                if ((await work()) === false) return;
                await wait(every_ms);
            }
        };
        this.#loops.push(
            run().catch((error) => {
                this.failure ??= error;
                this.#isStopped = true;
            }),
        );
    }

    // --- The lease container

    async #initialise() {
        const info = `${this.prefix}.info`;
        const lock = `${this.prefix}.lock`;
        for (;;) {
            const { statusCode } = await this.leases.item(info, info).read();
            if (statusCode === 200) return;
            assert.equal(statusCode, 404);
            const locked = await attempt(this.leases.items.create({ id: lock, ttl: 30 }), 409);
            if (locked.code === 409) {
                await wait(20);
                continue;
            }
            for (const range of await rangesOf(this.monitored)) await this.#createLease(range, null);
            await attempt(this.leases.items.create({ id: info }), 409);
            const condition = { accessCondition: { type: "IfMatch", condition: locked.etag } };
            await attempt(this.leases.item(lock, lock).delete(condition), 412, 404);
            return;
        }
    }

    /** A lease for a whole range, or for a part of it. */
    #createLease({ id, minInclusive, maxExclusive }, ContinuationToken) {
        const token = id ?? `${minInclusive}-${maxExclusive}`;
        return attempt(
            this.leases.items.create({
                id: `${this.prefix}..${token}`,
                version: id === undefined ? 1 : 0,
                LeaseToken: token,
                FeedRange: { Range: { min: minInclusive, max: maxExclusive, isMinInclusive: true, isMaxInclusive: false } },
                Owner: null,
                ContinuationToken,
                properties: {},
                timestamp: new Date().toISOString(),
                Mode: "Incremental Feed",
            }),
            409,
        );
    }

    async allLeases() {
        const query = `SELECT * FROM c WHERE STARTSWITH(c.id, '${this.prefix}..')`;
        return (await this.leases.items.query(query).fetchAll()).resources;
    }

    /** Replaces a lease; `isOurs` tells whether the version that is there now may be changed. */
    async #replace(lease, change, isOurs) {
        for (let i = 0; i < ATTEMPTS; i++) {
            const body = { ...lease, ...change, timestamp: new Date().toISOString() };
            const options = {
                accessCondition: { type: "IfMatch", condition: lease._etag },
                ...(this.forgetsEtags && { initialHeaders: { prefer: "return=minimal" } }),
            };
            const { code, resource, etag } = await attempt(this.leases.item(lease.id, lease.id).replace(body, options), 412, 404, 409);
            if (code === 200) {
                assert.notEqual(etag, lease._etag, "a write gives a new ETag");
                if (this.forgetsEtags) return body;
                assert.equal(resource._etag, etag);
                return resource;
            }
            if (code !== 412) throw new LeaseLost(`${lease.id} is gone`);
            this.conflicts++;
            const read = await this.leases.item(lease.id, lease.id).read();
            if (read.statusCode !== 200 || !isOurs(read.resource)) throw new LeaseLost(`${lease.id} was taken`);
            lease = read.resource;
        }
        throw new LeaseLost(`${lease.id}: ${ATTEMPTS} attempts`);
    }

    /** Changes a lease of this host, one change after the other. */
    #change(id, change) {
        const owned = this.#owned.get(id);
        if (owned === undefined) return Promise.reject(new LeaseLost(id));
        const isOurs = ({ Owner }) => Owner === this.name;
        const next = owned.writes.then(async () => {
            try {
                owned.lease = await this.#replace(owned.lease, change, isOurs);
            } catch (error) {
                this.#owned.delete(id);
                throw error;
            }
        });
        owned.writes = next.catch(() => {});
        return next;
    }

    // --- Balancing

    async #balance() {
        const all = await this.allLeases();
        const now = Date.now();
        const isFree = ({ Owner, timestamp }) => !Owner || now - Date.parse(timestamp) > this.intervals.expire_ms;
        const counts = new Map([[this.name, 0]]);
        for (const lease of all) if (!isFree(lease)) counts.set(lease.Owner, (counts.get(lease.Owner) ?? 0) + 1);
        const target = Math.ceil(all.length / counts.size);
        const need = target - counts.get(this.name);
        if (need <= 0) return;
        const free = all.filter((lease) => isFree(lease) && !this.#owned.has(lease.id));
        if (free.length > 0) {
            for (const lease of free.slice(0, need)) await this.#acquire(lease);
            return;
        }
        const [owner, most] = [...counts].sort((a, b) => b[1] - a[1])[0];
        // A host that needs more than one may take from those that have just their share: 4 leases, 2 + 2, and a third host.
        const isEnough = most > target - (need > 1 ? 1 : 0);
        if (owner !== this.name && isEnough) await this.#acquire(all.find((lease) => lease.Owner === owner));
    }

    async #acquire(seen) {
        let lease;
        try {
            // Somebody else may have been faster; the version that was seen must still be there.
            lease = await this.#replace(seen, { Owner: this.name }, ({ Owner }) => Owner === seen.Owner);
        } catch (error) {
            if (error instanceof LeaseLost) return;
            throw error;
        }
        this.#owned.set(lease.id, { lease, writes: Promise.resolve() });
        this.#loop(() => this.#process(lease.id), 0);
    }

    async #renew() {
        for (const id of this.ownedIds) {
            try {
                await this.#change(id, {});
            } catch (error) {
                if (!(error instanceof LeaseLost)) throw error;
            }
        }
    }

    // --- The monitored container

    /** Reads a page of a lease and saves how far it came; false when the lease is not ours any more. */
    async #process(id) {
        const owned = this.#owned.get(id);
        if (owned === undefined) return false;
        const { FeedRange, LeaseToken, version, ContinuationToken } = owned.lease;
        const interval = { minInclusive: FeedRange.Range.min, maxExclusive: FeedRange.Range.max };
        const range = version === 0 ? LeaseToken : await this.#rangeOf(interval);
        if (range === undefined) return this.#moved(id, interval, ContinuationToken);
        const scope = version === 0 ? { range } : { range, interval };
        const answer = await askFeed(this.server, this.monitored, { ...scope, size: this.size, etag: ContinuationToken ?? undefined });
        try {
            if (answer.status === 410) {
                const substatus = answer.headers["x-ms-substatus"];
                assert.ok(["1002", "1007"].includes(substatus), `410 with ${substatus}: ${answer.text}`);
                if (substatus === "1002") return await this.#moved(id, interval, ContinuationToken);
                await wait(this.intervals.poll_ms);
                return true;
            }
            const { status, items, etag } = pageOf(answer);
            if (status === 304) {
                await wait(this.intervals.poll_ms);
                return true;
            }
            await this.handle(items, { lease: id, host: this.name });
            await this.#change(id, { ContinuationToken: etag });
            return true;
        } catch (error) {
            if (error instanceof LeaseLost) return false;
            throw error;
        }
    }

    /** The range that an interval is a part of; undefined if it was cut. */
    async #rangeOf({ minInclusive, maxExclusive }) {
        const ranges = await rangesOf(this.monitored);
        return ranges.find((one) => one.minInclusive <= minInclusive && maxExclusive <= one.maxExclusive)?.id;
    }

    /** The range of a lease is gone: its children get its position, or the interval goes on in a larger range. */
    async #moved(id, { minInclusive, maxExclusive }, token) {
        const parts = (await rangesOf(this.monitored)).filter((one) => one.minInclusive < maxExclusive && minInclusive < one.maxExclusive);
        for (const part of parts) {
            const isWhole = minInclusive <= part.minInclusive && part.maxExclusive <= maxExclusive;
            const from = part.minInclusive > minInclusive ? part.minInclusive : minInclusive;
            const to = part.maxExclusive < maxExclusive ? part.maxExclusive : maxExclusive;
            await this.#createLease(isWhole ? part : { minInclusive: from, maxExclusive: to }, token);
        }
        const { writes } = this.#owned.get(id) ?? {};
        await writes;
        const { lease } = this.#owned.get(id) ?? {};
        this.#owned.delete(id);
        if (lease !== undefined) await attempt(this.leases.item(id, id).delete(), 404);
        return false;
    }
}

/**
 * How far behind a lease is, as two SDKs estimate it. `oneItem` reads a page of one item from the position;
 * `fromNow` compares the position with the ETag of a read from now.
 */
export async function estimate(server, monitored, { range, token }) {
    const now = pageOf(await askFeed(server, monitored, { range, etag: "*" }));
    const fromNow = now.position - (token ? Number(token.replaceAll('"', "")) : 1);
    if (!token) return { oneItem: 1, fromNow };
    const answer = await askFeed(server, monitored, { range, etag: token, size: 1 });
    if (answer.status === 304) return { oneItem: 0, fromNow };
    const session = answer.headers["x-ms-session-token"].split(":")[1].split("#")[1];
    return { oneItem: Number(session) - (Number(answer.json.Documents[0]._lsn) - 1), fromNow };
}
