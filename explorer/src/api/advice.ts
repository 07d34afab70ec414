// advice.ts - which partition key a container should have: /_orrery/.../advice, which is what `orrery advise --json` prints
// (docs/choosing-a-partition-key.md).
import { pathOf, request } from "./client";

export interface AdvisedKey {
    key: string;
    kind: string;
    current: boolean;
    acceptable: boolean;
    score: number; // to 100
    values: number; // different ones, in the sample
    missingShare: number;
    largestShare: number; // of the items
    largestValue: string | null;
    largestBytes: number;
    storageSkew: number; // the fullest partition by the mean
    storageSkewAfterSplits: number;
    writeSkew: number;
    busiestValueShare: number;
    fullOn: string | null; // a day, "never", or null if no rate is known
    storage: number[]; // the share of each partition
    writes: number[][]; // likewise, for each of some times
    queries: { onePartitionShare: number; visitsMean: number; visitRuPerSecond: number; leastRuPerSecond: number; visits: number[] } | null;
    findings: { code: string; level: "note" | "warning" | "refusal"; text: string }[];
}

export interface IndexPart { path: string; order: string }

export interface Advice {
    conclusion: string;
    best: string | null;
    sample: { items: number; population: number; itemBytes: number };
    itemsPerDay: number | null;
    partitions: number;
    allKeys: boolean;
    keys: AdvisedKey[]; // the best first
    queries: { query: string | null; perSecond: number; measuredRu: number | null }[] | null;
    recorded: { executions: number; seconds: number } | null;
    indexing: {
        unused: { path: string; ru: number }[];
        composite: { index: IndexPart[]; required: boolean; query: number; savedRu: number; sparedItems: number }[];
        unusedComposite: { index: IndexPart[]; ru: number }[];
    } | null;
}

// 'growth' is how many new items a day are expected; null if only the items themselves can tell.
export async function readAdvice(db: string, coll: string, growth: number | null, signal: AbortSignal): Promise<Advice> {
    const path = `_orrery/${pathOf("dbs", db, "colls", coll)}/advice${growth === null ? "" : `?growth=${growth}`}`;
    return (await request<Advice>("GET", path, { signal })).body;
}
