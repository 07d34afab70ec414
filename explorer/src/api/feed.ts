// feed.ts - following the change feed of a container through all its physical partitions.
//
// A position belongs to a part of the hashes, not to a partition: when partitions are split or merged, each part goes on
// where it was, in the partition that has it now. A part that is now in several partitions is cut.
import { ApiError, listAll, request, type JsonObject } from "./client";

const PAGE = 100;
const PAGES_PER_TURN = 5; // of one part; the rest comes with the next turn
const AT_ONCE = 6; // what browsers send to one host in parallel
const GONE = 410;
const TOO_MANY = 429;

interface Range {
    id: string;
    minInclusive: string;
    maxExclusive: string;
}

interface Part {
    min: string;
    max: string;
    etag: string | null; // null: the beginning
    range: Range;
}

export interface Change {
    range: string;
    item: JsonObject;
}

export class FeedReader {
    charge = 0;
    private parts: Part[] = [];
    private readonly found: Change[] = [];
    private isReading = false;

    // 'collection' is the path of the container.
    constructor(private readonly collection: string, readonly from: "now" | "beginning") {}

    get rangeCount(): number {
        return new Set(this.parts.map((part) => part.range.id)).size;
    }

    // What has changed since the last time, in the order of time as far as it is known. Nothing is lost if it fails, or is
    // called again before it has ended.
    async read(): Promise<Change[]> {
        if (this.isReading)
            return [];
        this.isReading = true;
        try {
            if (this.parts.length === 0)
                await this.begin();
            await this.readParts();
            return this.found.splice(0).sort((a, b) => Number(a.item["_ts"]) - Number(b.item["_ts"]) || Number(a.item["_lsn"]) - Number(b.item["_lsn"]));
        } finally {
            this.isReading = false;
        }
    }

    private async readParts(): Promise<void> {
        let isGone = false;
        const waiting = [...this.parts];
        const work = async (): Promise<void> => {
            for (let part = waiting.shift(); part !== undefined; part = waiting.shift())
                isGone = !await this.readPart(part) || isGone;
        };
        const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
        if (isGone)
            await this.follow();
        for (const end of ends) {
            if (end.status === "rejected")
                throw end.reason;
        }
    }

    private async begin(): Promise<void> {
        const ranges = await this.ranges();
        this.parts = ranges.map((range) => ({ min: range.minInclusive, max: range.maxExclusive, etag: this.from === "now" ? "*" : null, range }));
    }

    private async ranges(): Promise<Range[]> {
        const ranges = await listAll<Range & JsonObject>(`${this.collection}/pkranges`);
        return ranges.sort((a, b) => (a.minInclusive < b.minInclusive ? -1 : 1));
    }

    // After a split or a merge.
    private async follow(): Promise<void> {
        const ranges = await this.ranges();
        this.parts = this.parts.flatMap((part) => ranges
            .filter((range) => range.minInclusive < part.max && range.maxExclusive > part.min)
            .map((range) => ({
                min: range.minInclusive > part.min ? range.minInclusive : part.min,
                max: range.maxExclusive < part.max ? range.maxExclusive : part.max,
                etag: part.etag,
                range,
            })));
    }

    // False if the partition is gone.
    private async readPart(part: Part): Promise<boolean> {
        const { range } = part;
        for (let page = 0; page < PAGES_PER_TURN; page++) {
            const headers: Record<string, string> = {
                "a-im": "Incremental Feed",
                "x-ms-max-item-count": String(PAGE),
                "x-ms-documentdb-partitionkeyrangeid": range.id,
            };
            if (part.etag !== null)
                headers["if-none-match"] = part.etag;
            if (part.min > range.minInclusive || part.max < range.maxExclusive) {
                headers["x-ms-read-key-type"] = "EffectivePartitionKeyRange";
                headers["x-ms-start-epk"] = part.min;
                headers["x-ms-end-epk"] = part.max;
            }
            try {
                const answer = await request<JsonObject>("GET", `${this.collection}/docs`, { headers });
                this.charge += answer.charge;
                part.etag = answer.headers.get("etag") ?? part.etag;
                if (answer.status === 304)
                    return true;
                for (const item of answer.body["Documents"] as JsonObject[])
                    this.found.push({ range: range.id, item });
            } catch (error) {
                if (error instanceof ApiError && error.status === GONE)
                    return false;
                if (error instanceof ApiError && error.status === TOO_MANY)
                    return true; // the next turn goes on
                throw error;
            }
        }
        return true;
    }
}
