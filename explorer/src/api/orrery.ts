// orrery.ts - what the server tells about its partitions: /_orrery, described in docs/seeing.md and docs/splits.md.
import { ApiError, pathOf, request } from "./client";

export type Grain = "second" | "5min";
export const STEP_S: Record<Grain, number> = { second: 1, "5min": 300 };

export interface RangeLayout {
    id: string;
    min: string; // hashes in hexadecimal; "" and "FF" are the ends
    max: string;
    parents: string[];
    space: number; // what the cluster calls it
    items: number;
    bytes: number;
    logicalPartitions: number | null;
    logicalPartitionsExact: boolean;
    ru: { allotted: number; lastSecond: number; lastMinute: number };
    throttled: { lastMinute: number };
    normalizedConsumption: number;
}

export interface Move {
    event: number;
    database: string;
    container: string;
    what: string;
    reason: string;
    stage: string;
    sources: string[];
    targets: string[];
    ended: number; // seconds since 1970; 0 if not yet
    percent: number;
    items: number;
    fenceMicroseconds: number;
    message: string;
}

export interface Layout {
    rid: string;
    time: number;
    hasStatistics: boolean;
    throughput: { mode: string; ru: number; current?: number; isShared: boolean };
    move: Omit<Move, "database" | "container"> | null;
    missingRanges?: string[]; // of a cluster: ids of ranges whose node does not answer, which have zeros
    ranges: RangeLayout[];
    totals: { items: number; bytes: number };
}

interface Counts {
    ru: number[];
    requests: number[];
    throttled: number[];
}

export interface HistoryRange extends Counts {
    id: string;
    isKept: boolean;
    allotted: number[]; // request units a second, as they were then
    operations?: ({ kind: string } & Counts)[]; // if it was asked for
}

export interface History {
    step: number;
    from: number;
    to: number;
    ranges: HistoryRange[];
}

export interface IndexPaths {
    paths: string[]; // as indexing policies spell them
    isComplete: boolean;
}

export interface Events {
    moves: Move[];
}

export type By = "ru" | "throttled" | "size";

export interface TopRow {
    key: string; // as clients send it
    isCut: boolean;
    epk: string;
    items?: number;
    amount: number;
    share: number;
}

const link = (db: string, coll: string, what: string): string => `_orrery/${pathOf("dbs", db, "colls", coll)}/${what}`;

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await request<T>("GET", path, { signal })).body;
}

export const readLayout = (db: string, coll: string, signal?: AbortSignal): Promise<Layout> => get(link(db, coll, "layout"), signal);

export const readHistory = (db: string, coll: string, grain: Grain, from: number, hasOperations: boolean, signal?: AbortSignal): Promise<History> =>
    get(link(db, coll, `history?grain=${grain}&from=${from}&operations=${hasOperations}`), signal);

// Of one partition in one slot, with the kinds of its requests.
export const readSlot = (db: string, coll: string, grain: Grain, slot: number, range: string, signal?: AbortSignal): Promise<History> =>
    get(link(db, coll, `history?grain=${grain}&from=${slot * STEP_S[grain]}&to=${(slot + 1) * STEP_S[grain]}&operations=true&range=${range}`), signal);

// The server counts single keys by the minute, and has the current one and so many before it.
export const TOP_MINUTES = 5;

export const readLargest = async (db: string, coll: string, count: number, signal?: AbortSignal): Promise<TopRow[]> =>
    (await get<{ rows: TopRow[] }>(link(db, coll, `top?by=size&count=${count}`), signal)).rows;

export interface RangeKeys {
    from: number; // whole minutes
    to: number;
    rows: TopRow[];
    missingRanges?: string[];
}

// The keys of one partition in the minutes that a time lies in.
export const readKeys = (db: string, coll: string, by: By, count: number, range: string, from: number, to: number, signal?: AbortSignal): Promise<RangeKeys> =>
    get(link(db, coll, `top?by=${by}&count=${count}&range=${range}&from=${from}&to=${to}`), signal);

export const readPaths = (db: string, coll: string, signal?: AbortSignal): Promise<IndexPaths> => get(link(db, coll, "paths"), signal);

export interface RecordedQuery {
    query: string | null; // without values; null for all that are too long to be kept
    executions: number;
    partitionVisits: number;
    ru: number;
    first: number; // seconds since 1970
    last: number;
}

// What the server has recorded since it began, the most expensive first; null if it records nothing.
export async function readQueries(db: string, coll: string, signal?: AbortSignal): Promise<RecordedQuery[] | null> {
    try {
        return (await get<{ rows: RecordedQuery[] }>(link(db, coll, "queries?by=ru&count=100"), signal)).rows;
    } catch (error) {
        if (error instanceof ApiError && error.status === 400)
            return null;
        throw error;
    }
}

export const readEvents = (signal?: AbortSignal): Promise<Events> => get("_orrery/events", signal);

// Whether the server splits and merges on request. Throws if it does not, or not for this key.
export async function checkChaos(): Promise<void> {
    await request("GET", "_orrery/chaos");
}

export async function askSplit(db: string, coll: string, range: string): Promise<void> {
    await request("POST", `_orrery/chaos/${pathOf("dbs", db, "colls", coll)}/split`, { body: { range } });
}

export async function askMerge(db: string, coll: string, ranges: string[]): Promise<void> {
    await request("POST", `_orrery/chaos/${pathOf("dbs", db, "colls", coll)}/merge`, { body: { ranges } });
}

// '["ada",7]' as '"ada", 7'.
export function keyText(row: { key: string; isCut: boolean }): string {
    if (row.isCut)
        return `${row.key}...`;
    try {
        const values: unknown = JSON.parse(row.key);
        return Array.isArray(values) ? values.map((value) => JSON.stringify(value)).join(", ") : row.key;
    } catch {
        return row.key;
    }
}
