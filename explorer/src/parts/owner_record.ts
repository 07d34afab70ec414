// owner_record.ts - which partitions have changed owners, and why.
//
// A node tells the changes that it had a part in. The others are seen here, between two looks at who owns what, as long
// as the page is open. Either way a change is one of a space and an epoch, which grows with each of them.
import type { ClusterEvent, ClusterStatus } from "../api/cluster";

export interface OwnerChange {
    space: number;
    epoch: number;
    owner: string;
    at: number; // seconds since 1970
    reason: string; // empty if this page has only seen it
}

const CHANGES_MAX = 500;
const FIRST_EPOCH = 1; // it is not a change that a partition gets its first owner

// The better one tells of a change, the greater: the new owner only says that it serves now.
const WORTH: Record<string, number> = { handOver: 2, takeOver: 2, rescued: 2, serving: 1 };

const worthOf = (event: ClusterEvent): number => WORTH[event.kind] ?? 0;

export class OwnerRecord {
    changes: OwnerChange[] = []; // the newest first
    private readonly known = new Map<string, OwnerChange & { worth: number }>();
    private readonly owners = new Map<number, { owner: string; epoch: number }>();

    // 'now' is the server's time.
    take({ spaces, events }: Pick<ClusterStatus, "spaces" | "events">, now: number): void {
        for (const event of events) {
            if (worthOf(event) > 0 && event.space !== undefined && (event.epoch ?? 0) > FIRST_EPOCH)
                this.add({ space: event.space, epoch: event.epoch!, owner: event.node, at: event.atMs / 1000, reason: event.reason }, worthOf(event));
        }
        for (const { id, owner, epoch } of spaces) {
            const before = this.owners.get(id);
            if (before !== undefined && before.owner !== owner && before.epoch < epoch)
                this.add({ space: id, epoch, owner, at: now, reason: "" }, 0);
            this.owners.set(id, { owner, epoch });
        }
        const living = new Set(spaces.map(({ id }) => id));
        for (const id of this.owners.keys()) {
            if (!living.has(id))
                this.owners.delete(id);
        }
        this.changes = [...this.known.values()].sort((a, b) => b.at - a.at || b.epoch - a.epoch);
        for (const { space, epoch } of this.changes.splice(CHANGES_MAX))
            this.known.delete(`${space} ${epoch}`);
    }

    private add(change: OwnerChange, worth: number): void {
        const name = `${change.space} ${change.epoch}`;
        if (worth > (this.known.get(name)?.worth ?? -1))
            this.known.set(name, { ...change, worth });
    }
}
